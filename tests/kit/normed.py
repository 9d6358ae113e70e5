"""What has buffers: a language model with a batch norm, which counts its steps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minitransformer import Buffer
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig

KIND, PLACE = "normed", "normed:Normed"  # for KINDS


@dataclass(frozen=True)
class NormedConfig(LanguageModelConfig):
    kind: ClassVar[str] = KIND

    def num_parameters(self):
        return super().num_parameters() + 2 * self.d_model


class Normed(LanguageModel):
    Config: ClassVar[type] = NormedConfig

    def build(self, config, rng):
        super().build(config, rng)
        self.batch_norm = BatchNorm(config.d_model)
        self.steps = Buffer(np.zeros((), np.int64), sum_of_changes)

    def features(self, ids, rng=None):
        y, features_cache = super().features(ids, rng)
        y, norm_cache = self.batch_norm.forward(y, rng)
        if rng is not None:
            self.steps.data = self.steps.data + 1
        return y, (features_cache, norm_cache)

    def features_backward(self, dy, cache):
        features_cache, norm_cache = cache
        super().features_backward(self.batch_norm.backward(dy, norm_cache), features_cache)


def sum_of_changes(before, copies):
    return before + sum(copy - before for copy in copies)
