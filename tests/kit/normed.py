"""What has buffers: a batch norm, its cases, and a language model whose features it norms."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minitransformer import Buffer, Module, Parameter
from minitransformer.cases.case import B, Case, D, HostGenerator, T, module
from minitransformer.core.backend import array_namespace
from minitransformer.models.language_model import LanguageModel, LanguageModelConfig

KIND, PLACE = "normed", "normed:Normed"  # for KINDS
SHARE = 0.1  # of a batch in the running statistics


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

    def features(self, ids, rng=None):
        y, features_cache = super().features(ids, rng)
        y, norm_cache = self.batch_norm.forward(y, rng)
        return y, (features_cache, norm_cache)

    def features_backward(self, dy, cache):
        features_cache, norm_cache = cache
        super().features_backward(self.batch_norm.backward(dy, norm_cache), features_cache)


def sum_of_changes(before, copies):
    return before + sum(copy - before for copy in copies)


class BatchNorm(Module):
    """(x − mean) / σ of each feature, over all positions; without ``rng`` the running ones."""

    def __init__(self, d_model):
        self.gamma = Parameter(np.ones(d_model))
        self.beta = Parameter(np.zeros(d_model))
        self.mean = Buffer(np.zeros(d_model))
        self.variance = Buffer(np.ones(d_model))
        self.steps = Buffer(np.zeros((), np.int64), sum_of_changes)

    def forward(self, x, rng=None):
        mean, variance = self.mean.data, self.variance.data
        if rng is not None:
            mean = x.mean(axis=(0, 1))
            variance = ((x - mean) * (x - mean)).mean(axis=(0, 1))
            self.mean.data = (1 - SHARE) * self.mean.data + SHARE * mean
            self.variance.data = (1 - SHARE) * self.variance.data + SHARE * variance
            self.steps.data = self.steps.data + 1
        inverse_sigma = 1 / array_namespace(x).sqrt(variance + 1e-5)
        x_hat = (x - mean) * inverse_sigma
        return self.gamma.data * x_hat + self.beta.data, (x_hat, inverse_sigma, rng is not None)

    def backward(self, dy, cache):
        x_hat, inverse_sigma, of_batch = cache
        self.gamma.grad += (dy * x_hat).sum(axis=(0, 1))
        self.beta.grad += dy.sum(axis=(0, 1))
        dx_hat = dy * self.gamma.data
        if not of_batch:
            return inverse_sigma * dx_hat
        through_sigma = x_hat * (dx_hat * x_hat).mean(axis=(0, 1))
        return inverse_sigma * (dx_hat - dx_hat.mean(axis=(0, 1)) - through_sigma)


class InTraining(BatchNorm):
    def forward(self, x):
        return super().forward(x, HostGenerator(array_namespace(x)))


CASES = [
    Case("batch norm, running statistics", module(lambda rng: BatchNorm(D), (B, T, D))),
    Case("batch norm, in training", module(lambda rng: InTraining(D), (B, T, D))),
]
