"""One HTML file that needs no other: the page, its JavaScript and the numbers of a model.

A page that is opened by a double click may not fetch modules from beside it. So they are put one
after the other, each after those that it imports, and lose their ``import`` and ``export``; names
at the top of a module are therefore unique among all of them.

The parameters are stored as they were trained, in float32, and computed with in float64. Text from
outside, the vocabulary and the sentences, enters as JSON without any ``<``, so that it can end no
script.
"""

import base64
import json
import re
from pathlib import Path

from minitransformer.core.backend import to_host
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.inference.trained import require_finite
from minitransformer.runs.checkpoint.file import CheckpointError

FOLDER = Path(__file__).parent
LARGEST = 12_000_000  # bytes of a page
KINDS = "transformer", "language-model", "masked-language-model"

IMPORT = re.compile(r'^import \{[^}]*\} from "(\./|\.\./)([\w/]+\.js)";\n+', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(function|class|const|let)\b)", re.MULTILINE)


def explorer_page(model, vocabulary, examples=(), languages=None, lessons=None):
    """The page, as the bytes of its file.

    Args:
        model: a Transformer, a LanguageModel or a MaskedLanguageModel.
        vocabulary: what it was trained with.
        examples: texts to begin with.
        languages: the codes of source and target, as ``("de", "en")``, or None if they are unknown;
            of what does not translate, twice the same.
        lessons: where the page of a lesson is, by its number, ``{"07": "../lessons/..."}``; the
            page links to those.

    Raises:
        RunError: see :func:`require_explorable`; or the page is larger than LARGEST; or a
            parameter is NaN or infinite; or the vocabulary is one that the page cannot read.
    """
    require_explorable(model.config)
    require_finite(model)
    contents = {
        "config": model.config.as_dict(),
        "vocabulary": _contents_of(vocabulary),
        "shapes": {path: parameter.data.shape for path, parameter in model.named_parameters()},
        "numbers": base64.b64encode(to_host(model.flat.data).astype("<f4")).decode(),
        "examples": list(examples),
        "languages": languages,
        "lessons": lessons or {},
    }
    parts = {
        "style": (FOLDER / "style.css").read_text(encoding="utf-8"),
        "model": escaped_json(contents),
        "script": script("main.js"),
    }
    template = (FOLDER / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template).encode()
    _require_fits(len(page), "such a page")
    return page


def require_explorable(config):
    """Refuse the configuration of a model that the page cannot compute, or cannot hold.

    Raises:
        CheckpointError: says which kind or which size is possible.
    """
    if config.kind not in KINDS:
        raise CheckpointError(
            f"this is a model of kind {config.kind!r}, and the explorer has the mathematics of "
            f"{', '.join(KINDS)} alone; train one: minitransformer train toy"
        )
    if config.adapted:
        raise CheckpointError(
            "this model has adapters, for which the explorer has no mathematics; merge them first: "
            "minitransformer merge"
        )
    count = config.num_parameters()
    _require_fits(count * 16 // 3, f"a page with the {count:,} parameters of this model")


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


def escaped_json(value):
    """JSON in ASCII that may stand within a script: ``</script>`` and ``<!--`` cannot occur."""
    return json.dumps(value, separators=(",", ":")).replace("<", r"\u003c")


def _require_fits(size, what):
    if size > LARGEST:
        raise CheckpointError(
            f"{what} has {size:,} bytes, and {LARGEST:,} are the most: that is a model of about "
            f"{LARGEST * 3 // 16 // 100_000 / 10} million parameters, with few sentences; "
            "explore a smaller one, as minitransformer train toy makes it, or give fewer sentences"
        )
