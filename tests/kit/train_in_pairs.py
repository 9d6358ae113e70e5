"""Starts two trainings at a time in one run folder, which at most one of them may have.

    python train_in_pairs.py FOLDER TRIALS

The runs are in FOLDER/run-0, FOLDER/run-1, …, new ones and such as are gone on with in turns; what
a process said is in FOLDER/run-0-PID. A line is printed for each run: its number, the processes and
their exit statuses. The trainings are forks of one process, which has imported everything once and
never started a thread.
"""

import os
import select
import sys
import threading
from pathlib import Path

from tiny_run import tiny_recipe, tiny_trainer
from tqdm import tqdm
from waiting import HANGS

from minitransformer.commands import plot
from minitransformer.commands.cli import main as minitransformer
from minitransformer.training.recipe import settings
from minitransformer.training.trainer import Trainer


def main(folder, trials):
    tqdm.set_lock(threading.RLock())  # its own would be shared by the forks
    plot.draw = lambda run_folder: None  # takes longer than all the rest
    recipe = tiny_recipe(folder / "corpus", epochs=1, shards=1)
    for trial in range(trials):
        run = folder / f"run-{trial}"
        if trial % 2:
            tiny_trainer(recipe, run)
            arguments = ["--resume", run]
        else:
            arguments = ["toy", *_flags(recipe), "--run-folder", run]
        (go, start), one, two = os.pipe(), os.pipe(), os.pipe()
        children = [_trained(run, arguments, go, other) for other in (two, one)]
        for pipe in (one, two):
            os.close(pipe[1])
        os.write(start, b"12")
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(trial, *children, *statuses)


def _trained(run, arguments, go, other):
    """A process that trains as soon as it can read from ``go``; its number.

    Each process holds open the writing end of a pipe of its own. Before the first step it waits
    until ``other``, that of the other process, is closed by its end: so neither comes too late to
    meet the other one training.
    """
    child = os.fork()
    if child:
        return child
    os.close(other[1])
    train = Trainer.train
    Trainer.train = lambda self: (select.select([other[0]], [], [], HANGS), train(self))
    with open(f"{run}-{os.getpid()}", "w") as sys.stderr:
        os.read(go, 1)
        status = minitransformer(["train", *map(str, arguments)])
    os._exit(status)


def _flags(recipe):
    values = {name: v for name, v in recipe.values().items() if settings()[name].type is not bool}
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value != ""]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
