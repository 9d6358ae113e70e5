"""A training on a learner's functions: what is asked before it, and what is said after it."""

import io
import shlex
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from tempfile import TemporaryDirectory

from minitransformer.core.interrupts import Stopped
from minitransformer.core.regular_file import written_whole
from minitransformer.core.twins import standing_in
from minitransformer.course.own.check import check_own
from minitransformer.course.own.file import OwnFile
from minitransformer.course.own.package import parts_of_the_transformer
from minitransformer.course.time_limit import timely
from minitransformer.evaluation.scores import score
from minitransformer.gradcheck import CheckError
from minitransformer.inference.translator import Translator
from minitransformer.tasks.splits import TEST_SPLITS, load_split
from minitransformer.tasks.translation import Translation
from minitransformer.training.job import Job
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import prepare, validated

FIRST = 20  # steps, in which rounding has not grown yet
MOST = 500  # steps on the package's functions
SAMPLES = 3  # sentences that beam search translates


def checked(path, anyway, say, parts=None):
    """The OwnFile at ``path``, all of whose functions are right, or wrong ``anyway``.

    Args:
        say: is told whose functions will run, in lines of text.
        parts: those that count; None for those of the first part.

    Raises:
        CheckError: the file cannot be run, nothing is written in it, or a function is wrong.
    """
    file = timely(OwnFile, path, parts or parts_of_the_transformer())
    verdicts = check_own(file, say).verdicts
    if not file.written:
        raise CheckError(
            f"nothing is written in {path} yet: minitransformer check own --file "
            f"{shlex.quote(str(path))}"
        )
    if file.wrong and not anyway:
        raise CheckError(
            f"wrong in {path}: {', '.join(file.wrong)}. Mend it, or see what comes of it: --anyway"
            + "".join(f"\n{v}" for v in verdicts if v.part.functions[0] in file.wrong)
        )
    others = [part.functions[0] for part in file.parts if part not in file.written]
    say(f"yours: {', '.join(part.functions[0] for part in file.written)}")
    say(f"the package's: {', '.join(others) or 'none'}")
    if file.wrong:
        say(f"wrong, and used anyway: {', '.join(file.wrong)}")
    return file


@contextmanager
def explained(file):
    """Inside, what comes of a wrong function is an error that names it.

    Raises:
        CheckError: in place of an error of any kind but those of the user and the system.
    """
    try:
        yield
    except (Stopped, OSError, MemoryError):
        raise
    except Exception as error:
        if not file.wrong:
            raise
        raise CheckError(
            f"{error}. This runs on a wrong {', '.join(file.wrong)}: what that returns may be too "
            "large, or of another form than is needed"
        ) from error


def certify(job):
    """Write what is yours in a trained run, that of a Job; returns it as Markdown.

    It goes into the folder as ``certificate.md``. The training is begun again for that, in a folder
    that goes away: some steps on the learner's functions, which stand in, and an epoch or MOST
    steps on the package's, to lay their losses side by side. Then the model is tried.
    """
    file, run_folder, device = job.own, job.folder, job.device
    pretrained = Pretrained.kept_in(run_folder)
    if pretrained:
        kept = {name: run_folder.load_kept(name) for name in run_folder.kept}
        pretrained = replace(pretrained, kept=kept)
    silent = Progress(io.StringIO())
    again = Job(job.recipe, job.path, device, silent, pretrained=pretrained)
    mine = _begin(again, silent, FIRST)
    with standing_in(None):
        readable = job.recipe.with_value("accelerate", False)
        theirs = _begin(replace(again, recipe=readable), job.progress, MOST)
    run_folder.package_log.write(theirs)
    tried = (_translations if job.task is Translation else _validation)(run_folder, device)
    lines = [
        "# A Transformer of your own",
        "",
        f"{len(file.written)} of {len(file.parts)} parts are yours.",
        f"Of the package's functions that yours can replace, {len(file.others) or 'none'} ran.",
        "",
        "| function | whose | ran |",
        "|---|---|---|",
    ]
    for part in file.parts:
        whose = "yours" if part in file.written else "the package's"
        if part.functions[0] in file.wrong:
            whose = "yours, wrong"
        for name in part.functions:
            ran = "yes" if name in file.used | file.others else "no"
            lines.append(f"| `{name}` | {whose} | {ran} |")
    lines += [
        "",
        *tried,
        *_side_by_side(mine, theirs, run_folder),
        f"- SHA-256 of own.py: {file.fingerprint}",
    ]
    text = "\n".join(lines)
    with written_whole(run_folder.certificate) as out:
        out.write(f"{text}\n".encode())
    return text


def _begin(job, progress, most):
    """The log entries of the first steps of a training, of an epoch at most; no more is kept."""
    with TemporaryDirectory() as path:
        data = job.recipe.data  # of an old run it may have what another corpus has a use for
        recipe = job.recipe.with_values({"log_every": 1, "corpus": data.corpus})
        trainer = prepare(replace(job, recipe=recipe, path=path))
        trainer.progress = progress
        with trainer.model.device.as_current(), trainer.workers.one_blas_thread():
            for _ in islice(trainer.steps(), most):
                pass
        progress.close()
        return trainer.run.log.entries()


def _translations(run_folder, device):
    """What is said of a translator: the test split, greedily, and some of it with beam search.

    A learner's beam search takes sentences one by one.
    """
    data = Recipe.of_run(run_folder).data
    split = TEST_SPLITS[data.corpus]
    sources, references = zip(*load_split(data, split), strict=True)
    translator = Translator.load(run_folder.path, device)
    scores = score(translator.translate(list(sources), beam_size=1), list(references))
    samples = sources[:SAMPLES]
    said = zip(samples, translator.translate(list(samples)), strict=True)
    return [
        f"- {split}, greedy: {scores.exact_match:.1f} % of {scores.num_sentences:,} sentences are "
        f"exactly the reference, BLEU {scores.bleu_cased_13a:.1f}",
        *(f"- beam search: {source} → {translation}" for source, translation in said),
    ]


def _validation(run_folder, device):
    """What is said of any other model: its scores on the text that validates."""
    scores, _, _ = validated(run_folder, Recipe.of_run(run_folder), device)
    words = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())
    return [f"- validation: {words}"]


def _side_by_side(mine, theirs, run_folder):
    """What is said of the losses."""
    both = list(zip(mine, theirs, strict=False))
    difference = max(abs(a["loss"] / b["loss"] - 1) for a, b in both)
    packages = {entry["step"]: entry["loss"] for entry in theirs}
    logged = [e for e in run_folder.log.entries() if e["kind"] == "train" and e["step"] in packages]
    last = logged[-1]
    return [
        f"- the losses of the first {len(both)} steps differ from those of the package's readable "
        f"functions, from the same seed, by {difference:.1e} of their size at most",
        f"- the loss of step {last['step']} was {last['loss']:.4f}, and with the package's "
        f"{packages[last['step']]:.4f}: rounding grows from step to step; loss.png has both curves",
    ]
