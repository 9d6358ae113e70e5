"""A training on a learner's functions: what is asked before it, and what is said after it."""

import io
import shutil
from contextlib import contextmanager
from statistics import median
from tempfile import TemporaryDirectory

from minitransformer.checkpoint import CheckpointError
from minitransformer.errors import ExplainedError
from minitransformer.evaluation import score
from minitransformer.exercises import parts_of
from minitransformer.exercises.parts import WRONG
from minitransformer.gradcheck import CheckError
from minitransformer.own.check import check_own
from minitransformer.own.file import OwnFile
from minitransformer.regular_file import read_regular, written_whole
from minitransformer.run_folder import MOST_OWN, RunFolder
from minitransformer.training.progress import Progress
from minitransformer.training.session import TEST_SPLITS, load_split, prepare
from minitransformer.translator import Translator
from minitransformer.twins import standing_in

FIRST = 20  # steps, in which rounding has not grown yet
SAMPLES = 3  # sentences that beam search translates


def checked(path, anyway, say):
    """The OwnFile at ``path``, all of whose functions are right, or wrong ``anyway``.

    Args:
        say: is told whose functions will run, in lines of text.

    Raises:
        CheckError: the file cannot be run, nothing is written in it, or a function is wrong.
    """
    file = OwnFile(path)
    wrong = [v for v in check_own(file).verdicts if v.status == WRONG]
    if not file.written:
        raise CheckError(f"nothing is written in {path} yet; minitransformer check own says more")
    if wrong and not anyway:
        raise CheckError(
            f"wrong in {path}: {', '.join(file.wrong)}. Mend it, or see what comes of it: --anyway"
            + "".join(f"\n{verdict}" for verdict in wrong)
        )
    others = [part.functions[0] for part in parts_of("own") if part not in file.written]
    say(f"yours: {', '.join(part.functions[0] for part in file.written)}")
    say(f"the package's: {', '.join(others) or 'none'}")
    if wrong:
        say(f"wrong, and used anyway: {', '.join(file.wrong)}")
    return file


@contextmanager
def explained(file):
    """Inside, what the results of a wrong function break is an error that says so.

    Raises:
        CheckError: in place of a TypeError, ValueError, IndexError or AttributeError.
    """
    try:
        yield
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        if not file.wrong or isinstance(error, ExplainedError):
            raise
        raise CheckError(
            f"the training cannot go on: {error}; wrong is {', '.join(file.wrong)}, and what it "
            "returned may not be what is needed"
        ) from error


def require_kept(run_folder, path):
    """Let a run go on with the functions that it was begun with alone.

    Args:
        path: of the file that is to stand in, or None.

    Raises:
        CheckpointError: it is another one; or there should be none, or one.
    """
    kept = run_folder.own
    if not kept.exists():
        if path:
            raise CheckpointError(f"{run_folder.path} is trained without a file of yours; leave it")
        return
    if not path or read_regular(path, MOST_OWN) != read_regular(kept, MOST_OWN):
        differs = f"{path} differs from it" if path else "its code only runs when you say so"
        raise CheckpointError(
            f"{run_folder.path} is trained on the functions in {kept}, and {differs}; go on: "
            f"{run_folder.resume_command()}"
        )


def certify(file, run_folder, recipe, device):
    """Write what is yours in a run that has just been trained; returns it as Markdown.

    It goes into the folder as ``certificate.md``. The package's functions begin the same training
    for that, an epoch of it, to lay their losses beside the learner's; and the test split is
    translated: greedily, and a few sentences of it with beam search, which takes them one by one.

    Args:
        file: the OwnFile, which stands in.
    """
    begin_with_the_packages(run_folder, recipe, device)
    split = TEST_SPLITS[recipe.data.corpus]
    sources, references = zip(*load_split(recipe.data, split), strict=True)
    translator = Translator.load(run_folder.path, device)
    scores = score(translator.translate(list(sources), beam_size=1), list(references))
    samples = sources[:SAMPLES]
    said = zip(samples, translator.translate(list(samples)), strict=True)
    lines = [
        "# A Transformer of your own",
        "",
        f"{len(file.written)} of {len(parts_of('own'))} functions are yours.",
        f"Of the package's functions, {', '.join(sorted(file.others)) or 'none'} ran.",
        "",
        "| function | whose | |",
        "|---|---|---|",
    ]
    for part in parts_of("own"):
        whose = "yours" if part in file.written else "the package's"
        if part.functions[0] in file.wrong:
            whose = "yours, wrong"
        ran = not (file.used | file.others).isdisjoint(part.functions)
        lines.append(f"| `{part.functions[0]}` | {whose} | {'ran' if ran else ''} |")
    difference, pace = _beside_the_packages(run_folder)
    lines += [
        "",
        f"- {split}, greedy: {scores.exact_match:.1f} % of {scores.num_sentences:,} sentences are "
        f"exactly the reference, BLEU {scores.bleu_cased_13a:.1f}",
        *(f"- beam search: {source} → {translation}" for source, translation in said),
        f"- the losses of the first {FIRST} steps differ from those of the package's readable "
        f"functions, from the same seed, by {difference:.1e} of their size at most",
        f"- tokens a second: {pace:.2f} of what theirs are",
        f"- SHA-256 of own.py: {file.fingerprint}",
    ]
    text = "\n".join(lines)
    with written_whole(run_folder.path / "certificate.md") as out:
        out.write(f"{text}\n".encode())
    return text


def begin_with_the_packages(run_folder, recipe, device):
    """Train an epoch of the recipe on the package's readable functions; its log is the run's."""
    with standing_in(None), TemporaryDirectory() as folder:
        beside = RunFolder(folder)
        recipe = recipe.with_value("accelerate", False)
        trainer = prepare(recipe, beside, device, Progress(io.StringIO()))
        with trainer.model.device.as_current(), trainer.workers.one_blas_thread():
            trainer.train_epoch()
        shutil.copyfile(beside.log.path, run_folder.package_log.path)


def _beside_the_packages(run_folder):
    """The largest relative difference of the first losses, and the ratio of the speeds."""
    mine, theirs = (
        {entry["step"]: entry for entry in log.entries() if entry["kind"] == "train"}
        for log in (run_folder.log, run_folder.package_log)
    )
    both = [(mine[step], theirs[step]) for step in sorted(mine.keys() & theirs.keys())]
    differences = [abs(a["loss"] / b["loss"] - 1) for a, b in both if a["step"] <= FIRST]
    pace = median(a["tokens_per_second"] / b["tokens_per_second"] for a, b in both)
    return max(differences), pace
