"""PyTorch's side of ``language_model.py``: the layers of ``torch_model.py``, and fused Adam."""

import copy
from dataclasses import asdict
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F
from torch_model import EncoderLayer, from_ours


class TorchLanguageModel(nn.Module):
    """The model of a LanguageModelConfig in pre-norm."""

    def __init__(self, config):
        super().__init__()
        self.scale = config.d_model**0.5
        self.embedding = nn.Embedding(config.vocabulary_size, config.d_model)
        self.positions = nn.Embedding(config.max_length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model, eps=config.epsilon)

    def forward(self, ids):
        """Logits (B, T, V) of ids (B, T)."""
        positions = torch.arange(ids.shape[1])
        x = self.dropout(self.scale * self.embedding(ids) + self.positions(positions))
        for layer in self.encoder:
            x = layer(x, mask=None, is_causal=True)
        return F.linear(self.norm(x), self.embedding.weight)

    def loss(self, ids, labels):
        """The mean loss of the labels that are not 0."""
        return F.cross_entropy(self(ids).flatten(0, 1), labels.flatten(), ignore_index=0)


def from_our_language_model(arrays, config):
    """As :func:`from_ours`, of a LanguageModel."""
    renamed = {
        path.replace("stack.", "encoder.").replace("embedding.", "source_embedding."): x
        for path, x in arrays.items()
    }
    stack = SimpleNamespace(
        **asdict(config) | dict(num_encoder_layers=config.num_layers, num_decoder_layers=0)
    )
    stack.norm = "post"  # that at the end has another name here
    return from_ours(renamed, stack) | {
        "norm.weight": arrays["stack.norm.gamma"],
        "norm.bias": arrays["stack.norm.beta"],
        "positions.weight": arrays["positions.table"],
    }


class TorchSide:
    """Takes the steps that a Trainer is about to take.

    Args:
        trainer: at its beginning.
        batches: the batch of each step, from the first again after the last.
        steps: of the whole training.

    Attributes:
        losses: that of each step.
    """

    def __init__(self, trainer, batches, steps):
        self.trainer, self.steps, self.losses = trainer, steps, []
        config = trainer.model.config
        self.model = TorchLanguageModel(config)
        ours = {path: p.data for path, p in trainer.model.named_parameters()}
        weights = from_our_language_model(ours, config)
        self.model.load_state_dict({name: torch.tensor(x) for name, x in weights.items()})
        self.batches = [_tensors(batch) for batch in batches]
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True
        )

    def take_step(self):
        config, step = self.trainer.config, len(self.losses)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model.loss(*self.batches[step % len(self.batches)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip_norm)
        learning_rate = config.learning_rate(step + 1, self.steps, None)
        self.optimizer.param_groups[0]["lr"] = learning_rate
        self.optimizer.step()
        self.losses.append(float(loss.detach()))

    def gradients(self):
        """Of the first batch, by PyTorch's names, in float64."""
        model = copy.deepcopy(self.model).double()
        model.loss(*self.batches[0]).backward()
        return {name: p.grad.numpy() for name, p in model.named_parameters()}

    @torch.no_grad()
    def validate(self):
        """The NLL of the validation text, in nats a character."""
        batches = self.trainer.task.validation_batches
        total = sum(
            float(self.model.loss(*_tensors(batch))) * batch.num_tokens for batch in batches
        )
        return total / sum(batch.num_tokens for batch in batches)


def _tensors(batch):
    return [torch.tensor(ids, dtype=torch.int64) for ids in (batch.ids, batch.labels)]
