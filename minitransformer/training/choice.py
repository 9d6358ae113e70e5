"""Which parameters a training ends with: the best epoch's, or the mean of the last ones'.

A run keeps the parameters after an epoch as long as somebody who goes on from one of its
checkpoints may need them for that.
"""

from contextlib import suppress

from minitransformer.runs.checkpoint.arrays import load_model_arrays
from minitransformer.runs.checkpoint.file import CheckpointError
from minitransformer.training.state import require_sense


def choose(trainer):
    """Write the best epoch's parameters, or the mean of the last ones' if it scores better."""
    run, score = trainer.run, trainer.task.score
    origin, value = f"epoch {trainer.best['epoch']}", trainer.best[score.name]
    chosen = run.mean_of_epochs([trainer.best["epoch"]])
    last = _last_epochs(trainer.config, trainer.epoch)
    if len(last) > 1:
        mean = run.mean_of_epochs(last)
        load_model_arrays(trainer.model, mean)
        value_of_mean = trainer.validate()[score.name]
        if score.better(value_of_mean, value):
            origin, value = f"mean of epochs {last[0]} to {last[-1]}", value_of_mean
            chosen = mean
    load_model_arrays(trainer.model, chosen)
    run.save_model(chosen, origin, **{score.name: value})
    trainer.progress.say(f"chosen by validation {score.label}, {score.shown(value)}: {origin}")


def prune(run, config, score):
    """Remove all checkpoints but two, and the epochs that neither of them needs at its end."""
    run.prune_checkpoints()  # of a process that was killed before it did
    needed = set()
    for path, state in run.checkpoint_states():
        with suppress(CheckpointError):  # nobody goes on from a damaged one
            require_sense(path, state, config, score)
            needed |= epochs_needed(config, state["epoch"], state["best"])
    run.prune_epochs(needed)


def epochs_needed(config, epoch, best):
    """What a training at its end, with so many epochs done, would ask for."""
    return {*_last_epochs(config, epoch), *([best["epoch"]] if best else [])}


def _last_epochs(config, epoch):
    """Those whose mean is tried."""
    return range(max(1, epoch - config.average + 1), epoch + 1)
