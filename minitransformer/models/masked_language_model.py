"""The masked language model (Devlin et al. 2019): the other half, which says words left out.

    x = E[ids] √D + P        y = the stack of x, each position seeing all of them
    logits = y Eᵀ            row t scores what stands at t

It is the :class:`LanguageModel` without its causal mask, and so an encoder: what follows a word
says as much of it as what comes before. A word that is to be said must not be seen: a training
puts the id of a mask in its place. Positions are learned and the activation is the paper's, as
there; BERT's second task, which of two sentences follows the other, is left out.

``B`` batch, ``T`` length.
"""

from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.errors import require
from minitransformer.layers.masks import padding_mask, window_mask
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.token_config import TokenConfig


@dataclass(frozen=True)
class MaskedLanguageModelConfig(LanguageModelConfig):
    """The sizes and choices of a masked language model, which are those of a language model."""

    kind: ClassVar[str] = "masked-language-model"
    task: ClassVar[str] = "masked language modelling"
    begins_with: ClassVar[tuple] = ("masked-language-model",)
    own_head: ClassVar[tuple] = TokenConfig.own_head

    def __post_init__(self):
        super().__post_init__()
        require(not self.lora, f"lora={self.lora} is for models of kind 'language-model'")


class MaskedLanguageModel(LanguageModel):
    """Built from a MaskedLanguageModelConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = MaskedLanguageModelConfig

    def mask(self, ids):
        """What the positions of ids (B, T), on the device, may look at: (B, 1, T or 1, T)."""
        mask = padding_mask(ids, self.config.pad_id)
        return mask & window_mask(ids, self.config.window) if self.config.window else mask
