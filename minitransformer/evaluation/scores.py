"""How good translations are: BLEU and chrF2 as sacreBLEU computes them, and exact matches.

A BLEU score means something only together with how it was computed, so each score carries
sacreBLEU's signature. The headline is cased BLEU with the tokenizer 13a, on raw text (Post 2018,
*A Call for Clarity in Reporting BLEU Scores*).
"""

from dataclasses import asdict, dataclass

from minitransformer.core.errors import InputError
from minitransformer.core.libraries import library
from minitransformer.evaluation.tables import aligned

_LABELS = {  # field of Scores -> what people call it, in the order in which it is printed
    "bleu_cased_13a": "BLEU",
    "bleu_lowercased": "BLEU lowercased",
    "chrf2": "chrF2",
    "exact_match": "exact match %",
}


@dataclass(frozen=True)
class Scores:
    """What one set of translations scored.

    Attributes:
        bleu_cased_13a, bleu_lowercased, chrf2: 0 to 100, of the corpus as a whole.
        exact_match: percentage of translations equal to their reference, blanks at the edges aside.
        signatures: sacreBLEU's, by the name of the score.
        num_sentences: how many translations were scored.
    """

    bleu_cased_13a: float
    bleu_lowercased: float
    chrf2: float
    exact_match: float
    signatures: dict[str, str]
    num_sentences: int

    def as_dict(self):
        """Numbers, strings and a dict of strings, for JSON; ``Scores(**scores.as_dict())``."""
        return asdict(self)


def sacrebleu_metrics():
    """sacreBLEU's metrics; who will score after hours of work asks for them before it.

    Raises:
        MissingLibraryError: there is no sacreBLEU.
    """
    return library("sacrebleu.metrics", "a score")


def score(hypotheses, references):
    """The Scores of translations against one reference each, both raw: cased, not tokenized.

    Args:
        hypotheses: list of translations; an empty one is allowed and matches nothing.
        references: list of what they should be, in the same order.

    Raises:
        ValueError: the lists differ in length, or are empty.
        MissingLibraryError: there is no sacreBLEU.
    """
    sacrebleu = sacrebleu_metrics()
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} translations cannot be scored against {len(references)} references;"
            " give one reference for each, in the same order"
        )
    if not hypotheses:
        raise InputError("there are no translations to score; give at least one")
    metrics = {
        "bleu_cased_13a": sacrebleu.BLEU(tokenize="13a"),
        # force: the metric above has warned already if the text looks tokenized.
        "bleu_lowercased": sacrebleu.BLEU(tokenize="13a", lowercase=True, force=True),
        "chrf2": sacrebleu.CHRF(beta=2),
    }
    values = {
        name: metric.corpus_score(hypotheses, [references]).score
        for name, metric in metrics.items()
    }
    matches = sum(h.strip() == r.strip() for h, r in zip(hypotheses, references, strict=True))
    return Scores(
        **values,
        exact_match=100 * matches / len(references),
        # Asked for last: a metric knows how many references there are only once it has seen them.
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
        num_sentences=len(references),
    )


def table(rows):
    """Scores side by side, as a Markdown table with the signatures below it.

    Args:
        rows: dict from what was scored (a checkpoint, a split) to its Scores.
    """
    cells = [["", *_LABELS.values(), "sentences"]]
    for name, scores in rows.items():
        values = (f"{getattr(scores, field):.1f}" for field in _LABELS)
        cells.append([name, *values, str(scores.num_sentences)])
    signatures = dict.fromkeys(  # each once: rows scored alike share theirs
        f"{_LABELS[field]}: `{signature}`"
        for scores in rows.values()
        for field, signature in scores.signatures.items()
    )
    return "\n".join([aligned(cells), "", *(f"- {signature}" for signature in signatures)]).rstrip()


@dataclass(frozen=True)
class Resampled:
    """What a set of translations scored, and how far chance may have helped.

    Attributes:
        bleu: cased BLEU of the corpus as a whole.
        low, high: within which 95 % of the resampled corpora score.
        p: how often a difference to the first set as large as this one comes of resampling alone;
            None of the first set.
    """

    bleu: float
    low: float
    high: float
    p: float | None


def paired_bootstrap(systems, references):
    """Whether translations are better than others, or had luck with the sentences (Koehn 2004).

    Sentences are drawn again and again, with repetition, as many as there are, the same for all
    sets; 1,000 times, from a seed that is sacreBLEU's.

    Args:
        systems: dict from a name to the list of its translations; the first are compared with.
        references: what they should be, in the same order.

    Returns:
        A dict from the name to its Resampled, and sacreBLEU's signature.

    Raises:
        MissingLibraryError: there is no sacreBLEU.
    """
    bleu = sacrebleu_metrics().BLEU(tokenize="13a")
    significance = library("sacrebleu.significance", "a comparison")
    test = significance.PairedTest(
        list(systems.items()), {"BLEU": bleu}, [references], test_type="bs"
    )
    signatures, found = test()
    results, (first, *_) = {}, systems.values()
    for (name, texts), of in zip(systems.items(), found["BLEU"], strict=True):
        same = results and texts == first  # which sacreBLEU takes for a sure difference
        bounds = (float(of.mean + side * of.ci) for side in (-1, 1))
        results[name] = Resampled(of.score, *bounds, 1.0 if same else of.p_value)
    return results, str(signatures["BLEU"])
