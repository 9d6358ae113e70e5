"""The Transformer of *Attention Is All You Need* on NumPy and CuPy, every backward by hand."""

from minitransformer import accelerate
from minitransformer.backend import CPU, Device, DeviceError, select_device
from minitransformer.config import TransformerConfig
from minitransformer.loss import cross_entropy, cross_entropy_backward
from minitransformer.module import Module, Parameter, debug
from minitransformer.training.adam import Adam
from minitransformer.transformer import Transformer
from minitransformer.translator import Translator
from minitransformer.twins import accelerated

__version__ = "0.1.0"

__all__ = [
    "CPU",
    "Adam",
    "Device",
    "DeviceError",
    "Module",
    "Parameter",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "accelerate",
    "accelerated",
    "cross_entropy",
    "cross_entropy_backward",
    "debug",
    "select_device",
]
