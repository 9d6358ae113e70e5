"""Runs a training again and again, each time killed with SIGKILL, until it is done.

    python kill_often.py FOLDER KILLS KIND

It is of a model of that kind. Whole runs are made in FOLDER/killed-0, FOLDER/killed-1, … until
there were KILLS kills; one that nobody kills is in FOLDER/whole. The attempts are forks of one
process, which has imported everything once and never started a thread: a fork would have only some
of them.
"""

import math
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from tiny_run import trained
from tiny_tasks import recipe_of_kind
from tqdm import tqdm


def main(folder, kills, kind):
    # Forks share tqdm's own lock: one that is killed while it holds it would stop all that follow.
    tqdm.set_lock(threading.RLock())
    recipe = recipe_of_kind(kind, folder / "corpus", epochs=8)
    start = time.perf_counter()
    _done_before(math.inf, recipe, folder / "whole")
    # Exponential waits hit every moment alike, and however slow the machine is now and then, one
    # of them is long enough to get on.
    mean = (time.perf_counter() - start) / 8
    rng = random.Random(0)
    killed = runs = 0
    while killed < kills:
        while not _done_before(rng.expovariate(1 / mean), recipe, folder / f"killed-{runs}"):
            killed += 1
        runs += 1
    print(f"{killed} kills in {runs} runs")


def _done_before(seconds, recipe, run):
    """Go on with the run in a process, killed after ``seconds`` if not inf; whether it was done."""
    child = os.fork()
    if child == 0:
        try:
            trained(recipe, run)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if seconds < math.inf:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)  # the dead can be killed until they are waited for
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(f"the training in {run} failed")
    return os.WIFEXITED(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
