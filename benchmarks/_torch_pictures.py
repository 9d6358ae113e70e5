"""PyTorch's side of ``pictures.py``: the two models as its users would write them, and the steps.

Pictures are (B, C, Y, X) here; in PyTorch's layout ``channels_last`` they lie in memory as ours do.
"""

import copy
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_model import EncoderLayer, from_ours

LAYOUTS = {"default": torch.contiguous_format, "channels last": torch.channels_last}


class ConvolutionNorm(nn.Sequential):
    """A 3 × 3 convolution without a bias, and a norm."""

    def __init__(self, c_in, c_out, stride):
        super().__init__(
            nn.Conv2d(c_in, c_out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(c_out)
        )


class Block(nn.Module):
    """Two convolutions, and the shortcut A past them."""

    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.steps = nn.ModuleList(
            [ConvolutionNorm(c_in, c_out, stride), ConvolutionNorm(c_out, c_out, 1)]
        )
        self.stride, self.zeros = stride, c_out - c_in

    def forward(self, x):
        first, second = self.steps
        y = second(F.relu(first(x)))
        if self.zeros:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.zeros))
        return F.relu(y + x)


class TorchResidualNetwork(nn.Module):
    """The model of a ResidualNetworkConfig of the small form, with shortcuts A."""

    def __init__(self, config):
        super().__init__()
        _, c_in, c_out, stride = config.first()
        self.first = ConvolutionNorm(c_in, c_out, stride)
        self.stages = nn.ModuleList(
            nn.ModuleList(Block(c_in, c_out, stride) for c_in, _, c_out, stride in stage)
            for stage in config.stages()
        )
        self.head = nn.Linear(c_out * 2 ** (len(self.stages) - 1), config.num_classes)

    def forward(self, x):
        """Logits of pictures (B, C, Y, X)."""
        x = F.relu(self.first(x))
        for stage in self.stages:
            for block in stage:
                x = block(x)
        return self.head(x.mean(dim=(2, 3)))


class TorchVisionTransformer(nn.Module):
    """The model of a VisionTransformerConfig in pre-norm."""

    def __init__(self, config):
        super().__init__()
        width, size = config.d_model, config.patch_size
        self.embedding = nn.Conv2d(config.channels, width, size, stride=size)
        self.class_token = nn.Parameter(torch.zeros(width))
        self.positions = nn.Parameter(torch.zeros(1 + config.num_patches, width))
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(width, eps=config.epsilon)
        self.head = nn.Linear(width, config.num_classes)

    def forward(self, x):
        """Logits of pictures (B, C, Y, X)."""
        x = self.embedding(x).flatten(2).transpose(1, 2)  # (B, N, D)
        x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)  # (B, 1 + N, D)
        x = self.dropout(x + self.positions)
        for layer in self.encoder:
            x = layer(x, mask=None)
        return self.head(self.norm(x[:, 0]))


def from_our_residual_network(arrays, config):
    """Our parameters, or their gradients, under the names and in the shapes of the one above."""
    theirs = {}
    for path, x in arrays.items():
        if path.endswith("convolution.weight"):
            theirs[path.replace("convolution", "0")] = x.transpose(3, 2, 0, 1)
        elif "norm" in path:
            name = path.replace("norm.gamma", "1.weight").replace("norm.beta", "1.bias")
            theirs[name] = x
        else:
            theirs[path] = x.T  # of the head, whose bias has one axis
    return theirs


def from_our_vision_transformer(arrays, config):
    """As :func:`from_our_residual_network`."""
    renamed = {path.replace("stack.", "encoder."): x for path, x in arrays.items()}
    fields = dict(num_encoder_layers=config.num_layers, num_decoder_layers=0, norm="post")
    stack = SimpleNamespace(**asdict(config) | fields)
    theirs = from_ours(renamed | {"source_embedding.weight": None}, stack)
    del theirs["embedding.weight"]
    size = config.patch_size
    kernel = arrays["embedding.linear.weight"].reshape(size, size, config.channels, -1)
    return theirs | {
        "embedding.weight": kernel.transpose(3, 2, 0, 1),
        "embedding.bias": arrays["embedding.linear.bias"],
        "class_token": arrays["class_token.token"],
        "positions": arrays["positions.table"],
        "norm.weight": arrays["stack.norm.gamma"],
        "norm.bias": arrays["stack.norm.beta"],
        "head.weight": arrays["head.weight"].T,
        "head.bias": arrays["head.bias"],
    }


KINDS = {
    "residual-network": (TorchResidualNetwork, from_our_residual_network),
    "vision-transformer": (TorchVisionTransformer, from_our_vision_transformer),
}


class TorchStep:
    """Takes the steps that a Trainer takes, from the same weights, on the same batches.

    Args:
        config: the TrainingConfig of ours.
        model_config: of our model.
        weights: its first ones, by path.
        batches: PictureBatches, of which each step takes the next.
        layout: a name in LAYOUTS.
    """

    def __init__(self, config, model_config, weights, batches, layout):
        self.config = config
        kind, self.renamed = KINDS[model_config.kind]
        self.model = kind(model_config)
        for name, x in self.renamed(weights, model_config).items():
            self.model.get_parameter(name).data = torch.tensor(np.ascontiguousarray(x))
        self.model.to(memory_format=LAYOUTS[layout])
        self.batches = [
            (
                torch.tensor(batch.pictures)
                .permute(0, 3, 1, 2)
                .contiguous(memory_format=LAYOUTS[layout]),
                torch.tensor(batch.labels),
            )
            for batch in batches
        ]
        self.optimizer = self._optimizer()
        self.steps = 0

    def _optimizer(self):
        recipe = self.config
        rate = recipe.peak_learning_rate  # what it is costs nothing
        if recipe.optimizer == "sgd":
            return torch.optim.SGD(
                self.model.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4
            )
        return torch.optim.AdamW(self.model.parameters(), rate, weight_decay=0.05, fused=True)

    def take_step(self):
        pictures, labels = self.batches[self.steps % len(self.batches)]
        self.steps += 1
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(
            self.model(pictures), labels, label_smoothing=self.config.label_smoothing
        )
        loss.backward()
        if self.config.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        self.optimizer.step()

    def gradients(self):
        """Of the first batch, by PyTorch's names, in float64 and without dropout."""
        model = copy.deepcopy(self.model).double()
        model.train(any(isinstance(module, nn.BatchNorm2d) for module in model.modules()))
        pictures, labels = self.batches[0]
        F.cross_entropy(
            model(pictures.double()), labels, label_smoothing=self.config.label_smoothing
        ).backward()
        return {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
