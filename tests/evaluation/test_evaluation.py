import json
import math

import pytest
import sacrebleu
from elsewhere import in_a_process

from minitransformer.evaluation.scores import Scores, paired_bootstrap, score, table

VERSION = f"version:{sacrebleu.__version__}"
SIGNATURES = {
    "bleu_cased_13a": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{VERSION}",
    "bleu_lowercased": f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|{VERSION}",
    "chrf2": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|{VERSION}",
}
HYPOTHESES = ["A dog runs over the green grass.", "Two men are playing chess, outside", "a Bus"]
REFERENCES = ["A dog runs across the green grass.", "Two men play chess outside.", "A bus stops"]


def test_scores_are_those_of_sacrebleu():
    scores = score(HYPOTHESES, REFERENCES)
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES])
    lowercased = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True)
    assert scores.bleu_cased_13a == bleu.score
    assert scores.bleu_lowercased == lowercased.score
    assert scores.chrf2 == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.bleu_cased_13a < scores.bleu_lowercased  # "a Bus" against "A bus"
    assert scores.num_sentences == 3


def test_an_empty_translation_is_scored_as_missing():
    sentence = "two dogs run over green grass"
    scores = score(["", sentence], [sentence, sentence])
    assert math.isclose(scores.bleu_cased_13a, 100 * math.exp(1 - 12 / 6), rel_tol=1e-12)
    assert scores.exact_match == 50


def test_an_exact_match_is_cased_and_ignores_blanks_at_the_edges():
    hypotheses = ["A dog.", "a dog.", " A dog. ", "A  dog."]
    assert score(hypotheses, ["A dog."] * 4).exact_match == 50


def test_text_that_looks_tokenized_is_warned_about_once(caplog):
    tokenized = ["a dog runs ."] * 100
    score(tokenized, tokenized)
    assert sum("forgot to detokenize" in message for message in caplog.messages) == 1


def test_signatures_say_how_each_score_was_computed():
    assert score(HYPOTHESES, REFERENCES).signatures == SIGNATURES


@pytest.mark.parametrize(("given", "expected", "says"), [
    *((n, m, f"^{n} translations .* {m} references") for n, m in ((2, 3), (3, 2), (0, 2))),
    (0, 0, "no translations"),
])  # fmt: skip
def test_nothing_and_unequal_numbers_of_lines_are_refused(given, expected, says):
    with pytest.raises(ValueError, match=says):
        score(["a"] * given, ["a"] * expected)


def test_scores_survive_json():
    scores = score(HYPOTHESES, REFERENCES)
    assert Scores(**json.loads(json.dumps(scores.as_dict()))) == scores


def test_a_table_has_a_row_for_each_checkpoint_and_each_signature_once():
    rows = {
        "step 500": Scores(9.5, 10.0, 31.2, 0.0, SIGNATURES, 1000),
        "average": Scores(100.0, 100.0, 100.0, 100.0, SIGNATURES, 1000),
    }
    assert table(rows) == (
        "|          |  BLEU | BLEU lowercased | chrF2 | exact match % | sentences |\n"
        "| -------- | ----: | --------------: | ----: | ------------: | --------: |\n"
        "| step 500 |   9.5 |            10.0 |  31.2 |           0.0 |      1000 |\n"
        "| average  | 100.0 |           100.0 | 100.0 |         100.0 |      1000 |\n"
        "\n"
        f"- BLEU: `{SIGNATURES['bleu_cased_13a']}`\n"
        f"- BLEU lowercased: `{SIGNATURES['bleu_lowercased']}`\n"
        f"- chrF2: `{SIGNATURES['chrf2']}`"
    )


def test_a_table_of_scores_from_different_versions_names_both():
    older = {name: text.replace(VERSION, "version:2.0.0") for name, text in SIGNATURES.items()}
    rows = {
        "then": Scores(9.5, 10.0, 31.2, 0.0, older, 10),
        "now": Scores(9.5, 10.0, 31.2, 0.0, SIGNATURES, 10),
    }
    for signature in (*older.values(), *SIGNATURES.values()):
        assert table(rows).count(signature) == 1


def test_sacrebleu_is_imported_only_to_score():
    in_a_process(
        "import sys, minitransformer.evaluation.scores; sys.exit('sacrebleu' in sys.modules)"
    )


def test_a_bootstrap_tells_a_difference_from_luck():
    """Of 80 sentences the second set spoils every fourth, and the third others, as many."""
    references = [f"the {i} dogs run over the green grass of {i}" for i in range(80)]
    spoilt = ["a cat sleeps here"]
    some = [spoilt[0] if i % 4 == 0 else r for i, r in enumerate(references)]
    others = [spoilt[0] if i % 4 == 1 else r for i, r in enumerate(references)]
    results, signature = paired_bootstrap(
        {"some": some, "all": references, "others": others, "again": some}, references
    )
    assert results["all"].bleu == pytest.approx(100)
    assert results["some"].bleu == sacrebleu.corpus_bleu(some, [references]).score
    assert results["some"].low < results["some"].bleu < results["some"].high < results["all"].low
    assert results["some"].p is None  # which the others are compared with
    assert results["all"].p < 0.01
    assert results["others"].p > 0.3
    assert results["again"].p == 1
    assert signature.startswith("nrefs:1|bs:1000|seed:12345|case:mixed")
