"""The explorer's JavaScript under Node, and a model small enough to compare with it often."""

import base64
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS, EOS, Vocabulary
from minitransformer.explorer.page import FOLDER
from minitransformer.models.registry import config_class, new_model

RUNNER = Path(__file__).parent / "run.mjs"
SIZES = {
    "transformer": dict(num_encoder_layers=2, num_decoder_layers=2),
    "language-model": dict(num_layers=2),
    "masked-language-model": dict(num_layers=2),
}


def node(*arguments, **options):
    """What Node prints; the test is skipped where there is none."""
    if not shutil.which("node"):
        pytest.skip("there is no node to run JavaScript with")
    command = ["node", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(page, folder=FOLDER, **request):
    """The answer of run.mjs with the modules of a folder, for the model in a page."""
    request["model"] = model_in(page)
    return json.loads(node(RUNNER, folder, input=json.dumps(request)))


def model_in(page):
    """The text of the element of a page that holds the model."""
    (text,) = re.findall(
        r'<script type="application/json" id="model">(.*?)</script>', page.decode()
    )
    return text


def decoded(array):
    """An array that run.mjs has written."""
    numbers = np.frombuffer(base64.b64decode(array["numbers"]), dtype="<f8")
    return numbers.reshape(array["shape"])


def names_of(model):
    """The names of its parameters, by which a page is asked for them."""
    return [name for name, _ in model.named_parameters()]


def same_bits(found, model):
    """Whether arrays that run.mjs has written are a model's parameters, each to the last bit."""
    pairs = zip(found, model.parameters(), strict=True)
    return all(decoded(a).tobytes() == p.data.astype(float).tobytes() for a, p in pairs)


@cache
def corpus():
    return toy_corpus()


@cache
def small_vocabulary():
    return Vocabulary.train([text for pair in corpus()["train"][:600] for text in pair], 400)


@cache
def masked_vocabulary():
    return Vocabulary.train([text for text, _ in corpus()["train"][:600]], 300, mask=True)


def small_model(vocabulary, kind="transformer", **changes):
    """A model in float64 whose parameters float32 has, none of them 0 or 1 on purpose."""
    fields = dict(d_model=8, num_heads=2, d_ff=12, max_length=40) | SIZES[kind] | changes
    model = new_model(config_class(kind).of_vocabulary(len(vocabulary), **fields), seed=1)
    drawn = np.random.default_rng(0).normal(scale=0.3, size=model.flat.data.shape)
    model.flat.data[:] = model.flat.data + drawn
    return model.to(dtype=np.float64)


def runs(vocabulary, number, kind="transformer"):
    """Requests to look into so many sentences, source and target of all lengths from 1 on.

    A language model is given the target alone, and a masked one the source.
    """
    rng = np.random.default_rng(0)
    pairs = corpus()["validation"][:number]
    requests = []
    for german, english in pairs:
        source = [*vocabulary.encode(german)[: rng.integers(0, 12)], EOS]
        target = [BOS, *vocabulary.encode(english)[: rng.integers(0, 12)]]
        position = int(rng.integers(len(source if kind.startswith("masked") else target)))
        piece = int(rng.integers(EOS, len(vocabulary)))
        request = dict(source=source, target=target, position=position, piece=piece, off=[])
        if kind.startswith("masked"):  # p counts among some pieces, this one in any case
            among = rng.random(len(vocabulary)) < 0.5
            among[piece] = True
            request["among"] = among.tolist()
        requests.append(request)
    return requests
