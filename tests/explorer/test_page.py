"""The page is one whole file, no larger than it says, and nothing breaks out of it."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from in_node import ask, model_in, names_of, node, same_bits, small_model

from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.explorer.page import (
    FOLDER,
    LARGEST,
    escaped_json,
    explorer_page,
    require_explorable,
    script,
)
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.registry import new_model
from minitransformer.models.restricted_transformer import RestrictedTransformerConfig
from minitransformer.models.transformer_config import TransformerConfig
from minitransformer.runs.checkpoint.file import CheckpointError, RunError

BREAKOUTS = [
    "</script><b>x</b>", "<!-- <script>", "</SCRIPT >", "a\u2028b", "{{script}}", r"\u003c",
]  # fmt: skip
MODULES = sorted(FOLDER.rglob("*.js"))
SOURCES = [path.read_text(encoding="utf-8") for path in MODULES]


def test_every_module_is_in_the_page_once_without_import_and_export(tmp_path):
    joined = script("main.js")
    titles = re.findall(r"^// --- (.*) ---$", joined, re.MULTILINE)
    others = {path.relative_to(FOLDER).as_posix() for path in MODULES} - {"worker.js"}
    assert sorted(titles) == sorted(others)
    worker = script("worker.js")
    assert "--- worker.js ---" in worker
    for text in (joined, worker):
        assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
        (tmp_path / "joined.mjs").write_text(text, encoding="utf-8")
        node("--check", tmp_path / "joined.mjs")


def test_the_joined_modules_compute_what_the_modules_do(model, vocabulary, tmp_path):
    """Here what joins a module and all that it imports has the place of that module."""
    names = "arrays.js", "translate.js", "generate.js", "sampling.js", "random.js", "learn.js"
    for name in (*names, "load.js"):
        source = (FOLDER / name).read_text(encoding="utf-8")
        exported = re.findall(r"^export (?:function\*?|class) (\w+)", source, re.MULTILINE)
        joined = f"{script(name)}\nexport {{ {', '.join(exported)} }};\n"
        (tmp_path / name).write_text(joined, encoding="utf-8")
    request = dict(
        texts=["Der Hund ist müde."],
        runs=[dict(source=[9, 3], target=[2, 7], off=[], position=1, piece=5)],
        translations=[dict(source=[9, 8, 3], forced=[], off=[])],
        learned=[
            dict(
                source=[9, 3], pieces=[7, 3], off=[], steps=2, optimizer="adam", learning_rate=0.01
            )
        ],
    )
    page = explorer_page(model, vocabulary)
    assert ask(page, tmp_path, **request) == ask(page, **request)
    made = dict(made=[dict(text="Der Hund", temperature=1.0, seed=2)], seeds=[3])
    page = explorer_page(small_model(vocabulary, "language-model"), vocabulary)
    assert ask(page, tmp_path, **made) == ask(page, **made)


def test_no_source_ends_a_script_or_asks_for_anything_from_elsewhere():
    assert not any(re.search("</script|<!--", source, re.IGNORECASE) for source in SOURCES)
    others = [(FOLDER / name).read_text(encoding="utf-8") for name in ("page.html", "style.css")]
    elsewhere = re.compile(
        r"https?://(?!www\.w3\.org/2000/svg\b)|\bfetch\(|XMLHttpRequest|@import|\burl\((?!#|data:)"
    )
    assert not any(elsewhere.search(source) for source in SOURCES + others)


def test_the_numbers_in_the_page_are_the_parameters_to_the_last_bit(model, vocabulary):
    exact = new_model(model.config, seed=5)
    exact.flat.data[:8] = [0, -0.0, 1, -1, 3e38, 1e-38, -1e-45, 1 / 3]
    answer = ask(explorer_page(exact, vocabulary), parameters=names_of(exact))
    assert same_bits(answer["parameters"], exact)


def test_a_text_that_would_end_the_script_does_not(model):
    texts = [" ".join(BREAKOUTS)] * 5
    vocabulary = Vocabulary.train([*texts, "".join(BREAKOUTS)], 60)
    hostile = new_model(TransformerConfig.of_vocabulary(60, d_model=8, num_heads=2, d_ff=8))
    page = explorer_page(hostile, vocabulary, BREAKOUTS)
    assert len(re.findall(rb"</script", page, re.IGNORECASE)) == 3  # of model, worker, modules
    assert b"<!--" not in page
    found = json.loads(model_in(page))
    assert found["vocabulary"]["pieces"] == vocabulary.pieces(range(60))
    assert found["examples"] == BREAKOUTS
    answer = ask(page, texts=BREAKOUTS)
    assert answer["examples"] == BREAKOUTS
    assert answer["ids"] == [vocabulary.encode(text) for text in BREAKOUTS]


@pytest.mark.parametrize("text", [*BREAKOUTS, "\u2029", "'\"`${1}"])
def test_escaped_json_is_the_same_json_in_ascii_without_a_less_than_sign(text):
    escaped = escaped_json({text: text})
    assert json.loads(escaped) == {text: text}
    assert escaped.isascii()
    assert "<" not in escaped


@pytest.mark.parametrize(("config", "says"), [
    (LanguageModelConfig(60, 8, num_heads=2, d_ff=8, lora=1), "merge them first: minitransf"),
    (RestrictedTransformerConfig.of_vocabulary(60, window=3), "shows models of kind transf"),
])  # fmt: skip
def test_a_model_that_the_page_has_no_mathematics_for_is_refused(config, says):
    with pytest.raises(CheckpointError, match=says):
        require_explorable(config)


def test_too_many_sentences_are_refused(model, vocabulary):
    with pytest.raises(CheckpointError, match="40,000,000 are the most"):
        explorer_page(model, vocabulary, ["a" * LARGEST])


def test_no_script_and_no_style_but_the_page_s_own_may_run(model, vocabulary):
    page = explorer_page(model, vocabulary)
    (policy,) = re.findall(rb'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.decode().split("; "))
    assert rules["default-src"] == "'none'"
    for rule, element in {
        "script-src": rb'<script type="module">(.*?)</script>',
        "style-src": rb"<style>(.*?)</style>",
    }.items():
        (text,) = re.findall(element, page, re.DOTALL)
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
    assert not any(re.search(r'setAttribute\(\s*"style"', source) for source in SOURCES)


def test_it_says_to_others_what_it_is(model, vocabulary):
    page = explorer_page(model, vocabulary).decode()
    said = dict(re.findall(r'<meta (?:name|property)="(.*?)" content="(.*?)">', page))
    assert said["og:title"] == "Inside a Transformer"
    assert said["description"] == said["og:description"]
    assert 50 < len(said["description"]) < 200


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_parameter_that_is_no_number_is_refused(model, vocabulary, number):
    diverged = new_model(model.config)
    diverged.flat.data[7] = number
    with pytest.raises(RunError, match="its training has diverged"):
        explorer_page(diverged, vocabulary)
