"""The training: epochs of steps, validations, checkpoints, and going on where one was cut off.

What a step draws depends on the seed and the step alone (``step.py``), and the batches of an epoch
on the seed and the epoch. So the state of a run is what the model keeps, the optimizer's vectors
and a few counters, and a resumed run repeats an uninterrupted one bit for bit.
"""

import math
import time
from functools import cached_property
from itertools import islice, tee

from minitransformer.core.backend import CPU
from minitransformer.core.interrupts import Stopped, interrupts_noted, stopped_by_interrupts
from minitransformer.core.memory import keep_freed_memory
from minitransformer.core.staging import staged
from minitransformer.core.twins import accelerated
from minitransformer.parallel.alone import ALONE
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays
from minitransformer.runs.checkpoint.file import CheckpointError
from minitransformer.training.choice import choose, epochs_needed, prune
from minitransformer.training.state import COUNTERS, require_sense
from minitransformer.training.step import TrainingStep
from minitransformer.training.watch import Watch


class Trainer:
    """Trains a model in a run folder.

    Args:
        model: a Model.
        config: TrainingConfig.
        run: RunFolder to log and save to, of several processes that of a Job for all of them.
        task: a Task: what the model is trained for.
        progress: Progress, which shows the state of affairs to the user.
        processes: those that share the training.

    Attributes:
        stepper: the TrainingStep, whose optimizer and workers are ``optimizer`` and ``workers``.
        step: updates made.
        epoch, position: the epochs done, and how many batches of the next one are.
        best: ``{"bleu": …, "epoch": …}`` of the best validation so far, or None; by the name of the
            task's score.
        plateau: what lowers the learning rate where validations get no better (Plateau).
        seconds: the time that training and validation have taken, interruptions aside.
    """

    def __init__(self, model, config, run, task, progress, processes=ALONE):
        self.model, self.config, self.run = model, config, run
        self.task, self.progress, self.processes = task, progress, processes
        self.stepper, self.watch = TrainingStep(model, config, processes), Watch(self)
        self.optimizer, self.workers = self.stepper.optimizer, self.stepper.workers
        task.workers, progress.unit = processes.shared(self.workers), task.unit
        self.step = self.epoch = self.position = 0
        self.best, self.plateau = None, config.new_plateau()
        self.seconds, self._clock = 0.0, None  # and when that was brought up to date

    def train(self):
        """Train to the end, from wherever the state is, and write the run's ``model.npz``.

        Raises:
            TrainingError: the loss is NaN, infinite or has exploded.
            Stopped: after Ctrl-C or another signal that asks to stop, with everything saved.
        """
        self._clock = time.monotonic()
        if self.config.accelerate and self.model.device == CPU:
            keep_freed_memory()
        with self.model.device.as_current():
            # Noted, for an exception might hit amid an update.
            with self.workers.one_blas_thread(), interrupts_noted() as signals:
                if not self.step:
                    self.save()  # so that a folder without a checkpoint has lost what it had
                while not (self.processes.gathered(signals) or self._trained()):
                    self._train_epoch(signals)
                    self._finish_epoch()
            if asked := self.processes.gathered(signals):
                raise Stopped(asked[0])
            with stopped_by_interrupts():  # at any moment: all of the training is saved
                choose(self)

    def _train_epoch(self, signals):
        for _ in self.steps():
            asked = self.processes.gathered(signals)
            if asked or self.step % self.config.save_every == 0:
                self.save()
            if asked:
                raise Stopped(asked[0])

    def steps(self):
        """Take the steps of this epoch that are still to do, a generator that yields after each.

        Raises:
            TrainingError: as for :meth:`train`.
        """
        total_steps = self.total_steps  # first, for a task keeps the batches of one epoch
        batches, ahead = tee(islice(self.task.batches(self.epoch), self.position, None))
        parts = staged(self.stepper.parts(ahead), self.model.device, self.model.check)
        while group := list(islice(batches, self.config.accumulate)):
            self.position += len(group)
            self.take_step(group, total_steps, parts)
            yield

    @cached_property
    def total_steps(self):
        """Updates of the whole training."""
        return math.ceil(self.task.num_batches(0) / self.config.accumulate) * self.config.epochs

    def take_step(self, batches, total_steps, parts=None):
        """A step with its learning rate; arguments as for :meth:`TrainingStep.take`.

        Raises:
            TrainingError: as for :meth:`train`, in a step that is logged.
        """
        start, self.step = time.perf_counter(), self.step + 1
        of_model, drops = self.model.config, self.plateau.drops
        rate = self.config.learning_rate(self.step, total_steps, of_model, drops)
        self.stepper.take(self.step, batches, rate, parts)
        self.watch.step_taken(rate, total_steps, start)

    def _finish_epoch(self):
        self.watch.require_hope()
        left_out = self.task.left_out(self.epoch)
        self.epoch, self.position = self.epoch + 1, 0
        scores, score = self.validate(), self.task.score
        counters = {"step": self.step, "epoch": self.epoch, "seconds": self._elapsed()}
        entry = {"kind": "validation", **counters, **scores}
        entry |= {"left_out": left_out} if left_out else {}
        self.run.log.append(entry)
        if self.best is None or score.better(scores[score.name], self.best[score.name]):
            self.best = {score.name: scores[score.name], "epoch": self.epoch}
        self.plateau.look(self.epoch, self.best["epoch"])
        self.progress.validated(entry, self.best, score)
        self.run.save_epoch(self.model, self.epoch)
        self.save()
        prune(self.run, self.config, score)

    def validate(self):
        """The first process's scores, for all: others may round otherwise, and decide otherwise."""
        with accelerated(self.config.accelerate), self.workers.one_blas_thread():
            scores = self.task.validate(self.model)
        return self.processes.first(lambda: scores)

    def _elapsed(self):
        now = time.monotonic()
        self.seconds, self._clock = self.seconds + now - (self._clock or now), now
        return self.seconds

    def _trained(self):
        """Whether all epochs are done, or too many since the best one."""
        patience = self.config.patience
        impatient = patience and self.best and self.epoch - self.best["epoch"] >= patience
        return self.epoch >= self.config.epochs or impatient

    def save(self):
        """Write a checkpoint of the whole state.

        Raises:
            TrainingError: the loss or a parameter is not finite; nothing is written.
        """
        self.watch.require_hope()
        self._elapsed()
        state = {name: getattr(self, name) for name in COUNTERS}
        if self.config.schedule == "plateau":
            state["plateau"] = self.plateau.state()
        arrays = model_arrays(self.model, **self.optimizer.vectors)
        buffers = {path: buffer.data for path, buffer in self.model.named_buffers()}
        self.processes.require_same(parameters=self.model.flat.data, **buffers)
        self.run.save_checkpoint(arrays, state)

    def resume(self):
        """Go back to the newest whole checkpoint; returns whether there was one.

        Raises:
            CheckpointError: there was a training, and no checkpoint of it is whole; or the newest
                one is none of this training, or what it needs of earlier epochs is not there.
                Nothing in the folder has changed then.
        """
        if (loaded := self.run.load_newest_checkpoint()) is None:
            self.run.require_untrained()
        else:
            arrays, state = loaded
            where = f"the newest checkpoint of {self.run.path}"
            require_sense(where, state, self.config, self.task.score)
            load_model_arrays(self.model, arrays, **self.optimizer.vectors)
            vars(self).update((name, state[name]) for name in COUNTERS)
            self.optimizer.t = self.step
            if self.config.schedule == "plateau":
                self.plateau.resume(**state["plateau"])
            if self.position and self.position > (count := self.task.num_batches(self.epoch)):
                raise CheckpointError(
                    f"{where} is of batch {self.position} of an epoch of {count}; take the whole "
                    "folder from a copy of the run"
                )
            self.run.require_epochs(epochs_needed(self.config, self.epoch, self.best))
        self.run.log.forget_after(self.step, self.epoch)
        prune(self.run, self.config, self.task.score)
        return loaded is not None
