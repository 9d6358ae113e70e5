"""What the state of a checkpoint has to be, for a training to go on from it.

step              updates made
epoch, position   the epochs done, and how many batches of the next one are
best              {"bleu": …, "epoch": …} of the best validation, or None before the first
seconds           the time that training and validation have taken

The best score has the name that the task gives it, ``"bleu"`` for a translation.
"""

from minitransformer.runs.checkpoint import CheckpointError
from minitransformer.runs.checkpoint.fields import count, number, require_fields


def require_sense(where, state, epochs, score):
    """Refuse a state that no training of so many epochs, chosen by that score, was ever in.

    Raises:
        CheckpointError: which names ``where`` the state is from.
    """
    counters = dict.fromkeys(("step", "epoch", "position"), count)
    require_fields(where, state, **counters, seconds=number)
    best = state.get("best")
    if best is not None:
        require_fields(f"{where}, best", best, **{score: number}, epoch=count)
    step, epoch, best_epoch = state["step"], state["epoch"], best["epoch"] if best else 0
    if not (step >= epoch and epoch <= epochs and min(epoch, 1) <= best_epoch <= epoch):
        raise CheckpointError(
            f"{where} is damaged: no training of {epochs} epochs has been at step {step} with "
            f"{epoch} epochs done, {best_epoch} the best"
        )
