"""What the state of a checkpoint has to be, for a training to go on from it.

step              updates made
epoch, position   the epochs done, and how many batches of the next one are
best              {"bleu": …, "epoch": …} of the best validation, or None before the first
seconds           the time that training and validation have taken
plateau           {"drops": …, "epoch": …} of the learning rate, where that is its schedule

The best score has the name that the task gives it, ``"bleu"`` for a translation.
"""

from minitransformer.runs.checkpoint.fields import count, number, require_fields
from minitransformer.runs.checkpoint.file import CheckpointError

COUNTERS = "step", "epoch", "position", "best", "seconds"


def require_sense(where, state, config, score):
    """Refuse a state that no training by this config and this Score was ever in.

    Raises:
        CheckpointError: which names ``where`` the state is from.
    """
    counters = dict.fromkeys(("step", "epoch", "position"), count)
    require_fields(where, state, **counters, seconds=number)
    best = state.get("best")
    if best is not None:
        require_fields(f"{where}, best", best, **{score.name: number}, epoch=count)
    step, epoch, best_epoch = state["step"], state["epoch"], best["epoch"] if best else 0
    possible = step >= epoch and epoch <= config.epochs
    if config.schedule == "plateau":
        plateau = require_fields(where, state, plateau=dict)["plateau"]
        require_fields(f"{where}, plateau", plateau, drops=count, epoch=count)
        possible = possible and plateau["drops"] <= plateau["epoch"] <= epoch
    if not (possible and min(epoch, 1) <= best_epoch <= epoch):
        raise CheckpointError(
            f"{where} is damaged: no training of {config.epochs} epochs has been at step {step} "
            f"with {epoch} epochs done, {best_epoch} the best"
        )
