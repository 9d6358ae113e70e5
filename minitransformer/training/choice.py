"""Which parameters a training ends with: the best epoch's, or the mean of the last ones'.

A run keeps the parameters after an epoch as long as somebody who goes on from one of its
checkpoints may need them for that.
"""

from contextlib import suppress

from minitransformer.runs.checkpoint import (
    CheckpointError,
    average,
    checkpoints,
    load_model_arrays,
    load_state,
)
from minitransformer.training.state import require_sense


def choose(trainer):
    """Write the best epoch's parameters, or the mean of the last ones' if it scores better."""
    run, score, first = trainer.run, trainer.task.score, trainer.processes.first

    def mean_of(epochs):
        return first(average, [run.epoch_file(epoch) for epoch in epochs])

    origin, value = f"epoch {trainer.best['epoch']}", trainer.best[score.name]
    chosen = mean_of([trainer.best["epoch"]])
    last = _last_epochs(trainer.config, trainer.epoch)
    if len(last) > 1:
        mean = mean_of(last)
        load_model_arrays(trainer.model, mean)
        value_of_mean = trainer.validate()[score.name]
        if score.better(value_of_mean, value):
            origin, value = f"mean of epochs {last[0]} to {last[-1]}", value_of_mean
            chosen = mean
    load_model_arrays(trainer.model, chosen)
    first(lambda: run.save_model(chosen, origin, **{score.name: value}))
    trainer.progress.say(f"chosen by validation {score.label}, {score.shown(value)}: {origin}")


def require_epochs(run, config, epoch, best):
    """Raise a CheckpointError unless all that a training at its end would ask for is there."""
    for needed in _epochs_needed(config, epoch, best):
        run.load(run.epoch_file(needed))


def prune(run, config, score):
    """Remove all checkpoints but two, and the epochs that neither of them needs at its end."""
    if len(checkpoints(run.checkpoints)) > 2:  # of a process that was killed before it did
        run.prune_checkpoints()
    needed = set()
    for path in checkpoints(run.checkpoints):
        with suppress(CheckpointError):  # nobody goes on from a damaged one
            state = load_state(path)
            require_sense(path, state, config, score)
            needed |= _epochs_needed(config, state["epoch"], state["best"])
    run.prune_epochs(needed)


def _epochs_needed(config, epoch, best):
    return {*_last_epochs(config, epoch), *([best["epoch"]] if best else [])}


def _last_epochs(config, epoch):
    """Those whose mean is tried."""
    return range(max(1, epoch - config.average + 1), epoch + 1)
