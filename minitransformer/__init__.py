"""The Transformer of *Attention Is All You Need* on NumPy and CuPy, every backward by hand."""

# ruff: noqa: E402
from importlib import import_module
from typing import TYPE_CHECKING

from minitransformer.core import interrupts

interrupts.end_quietly_while_importing()  # before the imports that take time

from minitransformer.core.backend import CPU, Device, DeviceError, select_device
from minitransformer.core.module import Module, debug
from minitransformer.core.parameter import Buffer, Parameter
from minitransformer.core.twins import accelerated
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.models.transformer import Transformer
from minitransformer.models.transformer_config import TransformerConfig
from minitransformer.optim.adam import Adam
from minitransformer.version import __version__

if TYPE_CHECKING:
    from minitransformer import accelerate
    from minitransformer.inference.classifier import Classifier
    from minitransformer.inference.translator import Translator

__all__ = [
    "CPU",
    "Adam",
    "Buffer",
    "Classifier",
    "Device",
    "DeviceError",
    "Module",
    "Parameter",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "__version__",
    "accelerate",
    "accelerated",
    "cross_entropy",
    "cross_entropy_backward",
    "debug",
    "select_device",
]


def __getattr__(name):
    """What the mathematics does without and would wait for, imported when it is first asked for."""
    if name == "accelerate":
        return import_module("minitransformer.accelerate")
    if name == "Classifier":
        return import_module("minitransformer.inference.classifier").Classifier
    if name == "Translator":
        return import_module("minitransformer.inference.translator").Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
