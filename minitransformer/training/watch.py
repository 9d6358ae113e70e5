"""What is looked at on the way: some steps, which are logged, and whether a training is lost."""

import math
import time

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import ExplainedError
from minitransformer.runs.checkpoint.folder import newest_checkpoint


class TrainingError(ExplainedError):
    """The training cannot go on; the message says where it stopped and what to try."""


class Watch:
    """Looks at the steps of a Trainer; each look waits for the device."""

    def __init__(self, trainer):
        self.trainer = trainer
        self.tokens, self.seconds = 0, 0.0  # since the last log entry

    def step_taken(self, learning_rate, total_steps, start):
        """Log a step, if it is one that is looked at.

        Args:
            start: what ``time.perf_counter()`` was when the step was begun.

        Raises:
            TrainingError: it is one, and the training is lost.
        """
        trainer = self.trainer
        logged = trainer.step % trainer.config.log_every == 0 or trainer.step == 1
        losses = self._losses() if logged else {}
        self.tokens += trainer.stepper.num_tokens
        self.seconds += time.perf_counter() - start
        if logged:
            entry = {"kind": "train", "step": trainer.step, "epoch": trainer.epoch, **losses}
            entry["learning_rate"] = learning_rate
            entry["tokens_per_second"] = self.tokens / self.seconds
            trainer.run.log.append(entry)
            trainer.progress.stepped(entry, total_steps)
            self.tokens, self.seconds = 0, 0.0

    def require_hope(self):
        """Look before anything is saved: most steps are not looked at.

        Raises:
            TrainingError: the last step, or what the model keeps, is that of a lost training.
        """
        self._losses()
        model = self.trainer.model
        buffers = {path: buffer.data for path, buffer in model.named_buffers()}
        for name, data in {"a parameter": model.flat.data, **buffers}.items():
            if data.dtype.kind == "f" and bool((~array_namespace(data).isfinite(data)).any()):
                raise self._error(f"{name} is NaN or infinite")

    def _losses(self):
        """Loss, NLL and norm of the gradient of the last step by their names, if there was one."""
        if (last := self.trainer.stepper.last()) is None:
            return {}
        loss, nll, norm = last
        hopeless = self.trainer.task.hopeless(self.trainer.model)
        if not (loss < hopeless and norm < math.inf):  # NaN is not below anything
            raise self._error(f"the loss is {loss:.4g}, the norm of its gradient {norm:.4g},")
        return {"loss": loss, "nll": nll, "gradient_norm": norm}

    def _error(self, what):
        trainer = self.trainer
        every = f" (every {trainer.config.log_every} steps are looked at)"
        return TrainingError(
            f"{what} at step {trainer.step}, epoch {trainer.epoch + 1}, batch {trainer.position}"
            f"{every if trainer.config.log_every > 1 else ''}; the last good checkpoint is "
            f"{newest_checkpoint(trainer.run.checkpoints) or 'none yet'}. The same recipe would "
            "come here again: start a new run with a lower peak_learning_rate, more warmup_steps "
            f"or a {'smaller clip_norm' if trainer.config.clip_norm else 'clip_norm, such as 1'}"
        )
