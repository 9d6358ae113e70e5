"""One HTML file that needs no other: the page, its JavaScript and the numbers of a model.

A page that is opened by a double click may not fetch modules from beside it. So they are put one
after the other, each after those that it imports, and lose their ``import`` and ``export``; names
at the top of a module are therefore unique among all of them. The page's policy lets its own style
and script run, by their hashes, and nothing else.

How the parameters stand in it says ``stored.py``; it computes with them in float64, and where that
takes a while a worker does it, so that the page stays awake. Text from outside, the vocabulary and
the sentences, enters as JSON without any ``<``, so that it can end no script.
"""

import base64
import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.explorer.first_view import least_sure
from minitransformer.explorer.stored import (
    BLOCK,
    as_stored,
    bits_of,
    numbers_in_page,
    stored_size,
)
from minitransformer.inference.trained import require_finite
from minitransformer.runs.checkpoint.file import CheckpointError
from minitransformer.version import __version__

FOLDER = Path(__file__).parent
LARGEST = 40_000_000  # bytes of a page
# Operations a piece, as `operations` has them, of which a browser does about 0.7e9 a second.
AT_ONCE = 20_000_000  # with more a worker computes: a sentence of 30 pieces takes a second
MOST = 300_000_000  # and with more than these it would be a quarter of a minute
# What a search engine shows, and who is sent the address. A picture to go with it would have to lie
# at an address of its own, and the page is one file that needs no other.
DESCRIPTION = (
    "A small Transformer. It runs in this page, forward and backward: choose another word, switch "
    "a head off, open a box, and see what follows."
)
LAYERS = "num_layers", "num_encoder_layers", "num_decoder_layers"
KINDS = "transformer", "language-model", "masked-language-model"

IMPORT = re.compile(r'^import \{[^}]*\} from "(\./|\.\./)([\w/]+\.js)";\n+', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(function|class|const|let)\b)", re.MULTILINE)


@dataclass(frozen=True)
class Own:
    """A learner's functions, as a page shows them: it computes with the package's.

    Attributes:
        file: the name of theirs.
        sources: the text of each function, by its name.
        compared: how many sentences were translated with both.
        differ: how many of these the learner's translate otherwise.
        certificate: that of their training, or None.
    """

    file: str
    sources: dict[str, str]
    compared: int
    differ: int
    certificate: str | None = None


@dataclass(frozen=True)
class Origin:
    """What a page says of the training that its model comes from, as far as that is known.

    Attributes:
        corpus: as in the recipe, or empty.
        label_smoothing: ε of the loss.
        words: those of the source sentences it was trained on, each once and without marks, or None
            if the page may not have them.
        own: an Own, where it is of a learner's functions and they are shown, or None.
    """

    corpus: str = ""
    label_smoothing: float = 0.0
    words: list[str] | None = None
    own: Own | None = None


UNKNOWN = Origin()


def explorer_page(
    model, vocabulary, examples=(), languages=None, lessons=None, origin=UNKNOWN, epochs=None
):
    """The page, as the bytes of its file.

    Args:
        model: a Transformer, a LanguageModel or a MaskedLanguageModel.
        vocabulary: what it was trained with.
        examples: texts to begin with.
        languages: the codes of source and target, as ``("de", "en")``, or None if they are unknown;
            of what does not translate, twice the same.
        lessons: where the page of a lesson is, by its number, ``{"07": "../lessons/..."}``; the
            page links to those.
        origin: an Origin.
        epochs: models by the number of the epoch of the training after which they were this model;
            one of them can be looked at in its place, rounded to 8 bits.

    Raises:
        RunError: see :func:`require_explorable`; or the page is larger than LARGEST; or a
            parameter is NaN or infinite; or the vocabulary is one that the page cannot read.
        DivergedError: from an example the model makes NaN.
    """
    require_explorable(model.config)
    require_finite(model)
    is_translator = model.config.kind == "transformer"
    bits, epochs = bits_of(model.config), epochs or {}
    for earlier in epochs.values():
        require_finite(earlier)
    works_beside = operations(model.config) > AT_ONCE
    first = least_sure(as_stored(model, bits), vocabulary, examples) if is_translator else None
    contents = {
        "config": model.config.as_dict(),
        "vocabulary": _contents_of(vocabulary),
        "shapes": {path: parameter.data.shape for path, parameter in model.named_parameters()},
        "bits": bits,
        "block": BLOCK,
        "numbers": numbers_in_page(model, bits),
        "epochs": [
            {"epoch": epoch, "numbers": numbers_in_page(earlier, 8)}
            for epoch, earlier in sorted(epochs.items())
        ],
        "works_beside": works_beside,
        "examples": list(examples),
        "first": first,
        "languages": languages,
        "lessons": lessons or {},
        "version": __version__,
        "parameters": model.config.num_parameters(),
        **asdict(origin),
    }
    parts = {
        "description": DESCRIPTION,
        "style": (FOLDER / "style.css").read_text(encoding="utf-8"),
        "model": escaped_json(contents),
        "script": script("main.js"),
        "worker": script("worker.js") if works_beside else "",
        "worker_source": "blob:" if works_beside else "'none'",
    }
    parts |= {f"{name}_hash": inline_hash(parts[name]) for name in ("style", "script")}
    template = (FOLDER / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template).encode()
    _require_fits(len(page), "such a page")
    return page


def require_explorable(config, num_epochs=0):
    """Refuse the configuration of a model that the page cannot compute, or cannot hold.

    Args:
        config: that of a model.
        num_epochs: of how many epochs the page is to have the model beside it.

    Raises:
        CheckpointError: says which kind or which size is possible.
    """
    if config.kind not in KINDS:
        raise CheckpointError(
            f"the explorer shows models of kind {', '.join(KINDS)}, and this one is of kind "
            f"{config.kind!r}; minitransformer train toy makes one that it shows"
        )
    if config.adapted:
        raise CheckpointError(
            "this model has adapters, for which the explorer has no mathematics; merge them first: "
            "minitransformer merge"
        )
    what = f"a page with the {config.num_parameters():,} parameters of this model"
    what += f", and with {num_epochs} epochs," if num_epochs else ""
    size = stored_size(config, bits_of(config)) + num_epochs * stored_size(config, 8)
    _require_fits(size, what)
    if (count := operations(config)) > MOST:
        raise CheckpointError(
            f"a browser would need {count // 10**6:,} million operations for each piece, and "
            f"{MOST // 10**6:,} million are the most; explore a model of fewer layers"
        )


def operations(config):
    """About how many a page needs for each piece that a model says, and its gradients.

    Each parameter is in eight: twice in a product as the model says the piece, twice as all boxes
    are computed, and four times backward. What else a layer takes was measured.
    """
    layers = sum(value for name, value in config.as_dict().items() if name in LAYERS)
    return 8 * config.num_parameters() + 500_000 * layers


def _contents_of(vocabulary):
    """The pieces of a vocabulary, by id, and by what unit texts are cut into them."""
    pieces = vocabulary.pieces(range(len(vocabulary)))
    if isinstance(vocabulary, CharacterVocabulary):
        return {"unit": "characters", "pieces": pieces}
    if isinstance(vocabulary, Vocabulary):
        unit = "subwords and a mask" if vocabulary.has_mask else "subwords"
        return {"unit": unit, "pieces": pieces}
    if isinstance(vocabulary, ScoredVocabulary):
        kept = json.loads(vocabulary.model)  # as bytes, each a character below 256
        pieces = [p.encode("utf-8", "surrogateescape").decode("latin-1") for p in kept["pieces"]]
        return {"unit": "scored", "pieces": pieces, "scores": kept["scores"]}
    raise CheckpointError(
        "the explorer cuts texts into characters, subwords, or pieces with scores as Llama's, and "
        "this vocabulary has others; explore a model that was trained here"
    )


def script(main):
    """A module and all that it imports as one script, each after those that it imports itself."""
    sources = {}

    def visit(path):
        if path not in sources:
            source = path.read_text(encoding="utf-8")
            for up, name in IMPORT.findall(source):
                visit((path.parent / up / name).resolve())
            sources[path] = EXPORT.sub("", IMPORT.sub("", source))

    visit((FOLDER / main).resolve())
    titled = (
        f"// --- {path.relative_to(FOLDER.resolve())} ---\n\n{source}"
        for path, source in sources.items()
    )
    return "\n".join(titled)


def inline_hash(text):
    """By what a Content-Security-Policy knows an element with this text between two line ends."""
    digest = hashlib.sha256(f"\n{text}\n".encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def escaped_json(value):
    """JSON in ASCII that may stand within a script: ``</script>`` and ``<!--`` cannot occur."""
    return json.dumps(value, separators=(",", ":")).replace("<", r"\u003c")


def _require_fits(size, what):
    if size > LARGEST:
        millions = LARGEST * 6 / (8 + 16 / BLOCK) / 10**6
        raise CheckpointError(
            f"{what} has {size:,} bytes, and {LARGEST:,} are the most: that is a model of about "
            f"{millions:.0f} million parameters in 8 bits, with few sentences and no epochs; "
            "explore a smaller one, as minitransformer train toy makes it, or put less beside it"
        )
