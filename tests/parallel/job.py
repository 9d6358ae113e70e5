"""The command line as one of several processes, of a number of threads, with what can go wrong.

    mpiexec -n 2 python job.py THREADS TROUBLE train RECIPE ...

TROUBLE is ``-`` for none, or one of these with the rank that has it:

    nan:1      a gradient becomes NaN in the third step
    fail:1     the third step raises a MemoryError
    hang:1     the third step never ends; others wait for a second when they are asked to stop
    part:1     it takes the training for done after an epoch
    round:1    it finds a better score in every epoch, as by rounding
    version:1  it is of another release
    normed:*   there is the kind of models of normed.py, too
    slow:0     each shard takes a fiftieth of a second more, in every process
    count:FILE each process adds a byte to the file for each batch that it validates
    pids:DIR   each process writes its number, as PID, into the file DIR/RANK, and when it is
               watched makes the file DIR/RANK-watched, and when it is through DIR/RANK-through
"""

import os
import sys
import time
from pathlib import Path

from minitransformer.commands import cli, plot
from minitransformer.models.registry import KINDS
from minitransformer.parallel import mpi
from minitransformer.parallel.alone import Alone
from minitransformer.parallel.processes import all_processes
from minitransformer.tasks.language_modelling import LanguageModelling
from minitransformer.tasks.masked_language_modelling import MaskedLanguageModelling
from minitransformer.training import session
from minitransformer.training.step import TrainingStep
from minitransformer.training.trainer import Trainer


def job(threads, trouble, *arguments):
    plot.draw = lambda run_folder: None  # takes longer than all the rest
    processes = all_processes()
    if processes.count == 1:
        Alone.threads = int(threads)
    else:
        processes.threads = int(threads)
    kind, _, where = trouble.partition(":")
    if kind == "pids":
        _write_pids(Path(where), processes.rank)
    elif kind == "count":
        LanguageModelling.validate = counting(Path(where))
    elif kind == "normed":
        from normed import KIND, PLACE  # which imports the gradient checker, as all others need not

        KINDS[KIND] = PLACE
    elif kind == "slow" or where == str(processes.rank):
        _make(kind)
    elif kind == "hang":
        mpi.LAST_WAIT = 1.0
    return cli.main(arguments)


def _write_pids(folder, rank):
    unfinished = folder / f"{rank}-unfinished"
    unfinished.write_text(str(os.getpid()))
    unfinished.rename(folder / str(rank))  # whoever sees it can read it
    run = cli._main

    def watched(arguments):
        (folder / f"{rank}-watched").touch()
        status = run(arguments)
        (folder / f"{rank}-through").touch()
        return status

    cli._main = watched


def counting(path):
    """A ``validate`` of language models that adds a byte to the file for each of its batches."""
    validate = LanguageModelling.validate

    def counted(self, model):
        logits = model.logits

        def counted_logits(*inputs):
            with path.open("ab") as file:
                file.write(b".")
            return logits(*inputs)

        model.logits = counted_logits
        scores = validate(self, model)
        model.logits = logits
        return scores

    return counted


def _make(trouble):
    if trouble == "version":
        session.__version__ = "0.0.9"
        return
    if trouble == "part":
        Trainer._trained = lambda self: self.epoch > 0
        return
    if trouble == "round":
        validate = MaskedLanguageModelling.validate
        MaskedLanguageModelling.validate = lambda self, model: {
            **validate(self, model),
            "perplexity": -time.monotonic(),
        }
        return
    forward_backward = TrainingStep._forward_backward

    def troubled(self, number, shard, replica, part):
        losses = forward_backward(self, number, shard, replica, part)
        if trouble == "slow":
            time.sleep(0.02)
        elif number == 3 and trouble == "nan":
            replica.flat.grad[0] = float("nan")
        elif number == 3 and trouble == "hang":
            time.sleep(1000)
        elif number == 3:
            raise MemoryError("no room for a gradient")
        return losses

    TrainingStep._forward_backward = troubled


if __name__ == "__main__":
    sys.exit(job(*sys.argv[1:]))
