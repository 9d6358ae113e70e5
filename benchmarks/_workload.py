"""What both sides of a benchmark work on: one model, its first weights, and batches of real text.

It is made once and written to a folder, from which the process of each side reads it.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

MULTI30K_PIECES, TOY_PIECES = 8000, 1000
LONGEST_SIDE = 256  # tokens, as in the recipes of ``minitransformer train``


@dataclass
class Workload:
    """One model and some batches for it.

    Attributes:
        corpus: the name of the text they are made of.
        config: the model's TransformerConfig, or an object of the same fields.
        weights: arrays by the paths of ``Transformer.named_parameters``.
        batches: objects with arrays ``source``, ``target`` and ``labels`` and ``num_tokens``.
        padding: the share of all positions that is padding.
    """

    corpus: str
    config: object
    weights: dict
    batches: list
    padding: float

    @property
    def rows(self):
        """Positions of one side of a batch, on average."""
        positions = sum(batch.source.size + batch.target.size for batch in self.batches)
        return positions // (2 * len(self.batches))

    @classmethod
    def load(cls, folder):
        """What :func:`save` wrote; needs nothing but NumPy."""
        folder = Path(folder)
        facts = json.loads((folder / "workload.json").read_text(encoding="utf-8"))
        with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
            weights = dict(arrays)
        batches = []
        with np.load(folder / "batches.npz", allow_pickle=False) as arrays:
            for i, num_tokens in enumerate(facts["num_tokens"]):
                ids = {side: arrays[f"{side}{i}"] for side in ("source", "target", "labels")}
                batches.append(SimpleNamespace(**ids, num_tokens=num_tokens))
        config = SimpleNamespace(**facts["config"])
        return cls(facts["corpus"], config, weights, batches, facts["padding"])

    def save(self, folder):
        """Write everything to an existing folder."""
        folder = Path(folder)
        facts = {
            "corpus": self.corpus,
            "config": asdict(self.config),
            "padding": self.padding,
            "num_tokens": [batch.num_tokens for batch in self.batches],
        }
        (folder / "workload.json").write_text(json.dumps(facts), encoding="utf-8")
        np.savez(folder / "weights.npz", **self.weights)
        ids = {
            f"{side}{i}": getattr(batch, side)
            for i, batch in enumerate(self.batches)
            for side in ("source", "target", "labels")
        }
        np.savez(folder / "batches.npz", **ids)


def make_workload(preset, data_dir=None, *, batch_tokens=4096, count=None, seed=0, **overrides):
    """A Workload of Multi30k, where there is a folder with it, or else of the toy corpus.

    Args:
        preset: of TransformerConfig, such as ``"tiny"``.
        data_dir: a folder with Multi30k; the environment variable of the package may name it too.
        batch_tokens: padded tokens in a batch, both sides together.
        count: how many batches; all of an epoch by default.
        seed: of weights and order of batches.
        overrides: fields of the TransformerConfig.
    """
    # Imported here, so that the process of the PyTorch side holds nothing of our package.
    from minitransformer import TransformerConfig
    from minitransformer.data.text.batches import BatchReport, encode_pairs, make_batches
    from minitransformer.models.transformer import Transformer

    corpus, vocabulary, pairs = _text(data_dir)
    config = TransformerConfig.preset(preset, len(vocabulary), **overrides)
    longest = min(LONGEST_SIDE, config.max_length, batch_tokens // 2)
    encoded, _ = encode_pairs(vocabulary, pairs, longest)
    batches = make_batches(encoded, batch_tokens, np.random.default_rng(seed))[:count]
    model = Transformer(config, seed)
    weights = {path: parameter.data for path, parameter in model.named_parameters()}
    return Workload(corpus, config, weights, batches, BatchReport.of(batches).padding)


def _text(data_dir):
    """Name of the corpus, its vocabulary and its training pairs."""
    from minitransformer.data.files import DATA_VARIABLE
    from minitransformer.data.text.corpus import clean_for_training
    from minitransformer.data.text.multi30k import load_multi30k
    from minitransformer.data.text.toy import toy_corpus
    from minitransformer.data.text.vocabulary import Vocabulary

    if data_dir or os.environ.get(DATA_VARIABLE):
        corpus, size = "Multi30k", MULTI30K_PIECES
        pairs, _ = clean_for_training(load_multi30k("train", data_dir))
    else:
        corpus, size = "the toy corpus", TOY_PIECES
        pairs = toy_corpus()["train"]
    return corpus, Vocabulary.train([text for pair in pairs for text in pair], size), pairs
