"""The training loop: steps, validation, checkpoints, and going on where a run was cut off.

Everything random in a step is drawn from a generator made from the seed and the step, and the
batches of an epoch depend on the seed and the epoch alone. So the state of a run is its parameters,
the optimizer's vectors and three counters, and a resumed run repeats an uninterrupted one bit for
bit.
"""

import math
import time
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice

import numpy as np

from minitransformer.accelerate import keep_freed_memory
from minitransformer.accelerate.cuda import matmul_precision
from minitransformer.core.backend import CPU, array_namespace, to_host
from minitransformer.core.errors import ExplainedError
from minitransformer.core.interrupts import Interrupt, interrupts_noted, interrupts_raised
from minitransformer.core.twins import accelerated
from minitransformer.core.workers import workers_for
from minitransformer.layers.token_ids import ids_checked_before
from minitransformer.optim.adam import Adam
from minitransformer.optim.clipping import clip_scale
from minitransformer.parallel.alone import ALONE
from minitransformer.runs.checkpoint import (
    CheckpointError,
    average,
    checkpoints,
    load_model_arrays,
    load_state,
    model_arrays,
    newest_checkpoint,
)
from minitransformer.training.state import require_sense


class TrainingError(ExplainedError):
    """The training cannot go on; the message says where it stopped and what to try."""


class Stopped(Exception):
    """The user or the system asked to stop; the run is saved and can be resumed.

    Attributes:
        signum: the signal that asked.
    """

    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum


class Trainer:
    """Trains a model in a run folder.

    Args:
        model: a Model.
        config: TrainingConfig.
        run: RunFolder to log and save to.
        task: a Task: what the model is trained for.
        progress: Progress, which shows the state of affairs to the user.
        processes: those that share the training, of which the first alone uses ``run``.

    Attributes:
        step: updates made.
        epoch, position: the epochs done, and how many batches of the next one are.
        best: ``{"bleu": …, "epoch": …}`` of the best validation so far, or None; by the name of the
            task's score.
        seconds: the time that training and validation have taken, interruptions aside.
    """

    def __init__(self, model, config, run, task, progress, processes=ALONE):
        self.model, self.config, self.run = model, config, run
        self.task, self.progress, self.processes = task, progress, processes
        self.num_shards = config.shards or 1
        self.shards = range(self.num_shards)[processes.part(self.num_shards)]  # of this process
        self.workers = workers_for(model.device, self.num_shards, processes.threads)
        task.workers = processes.shared(self.workers)
        with model.device.as_current():
            self.optimizer = Adam(model.flat)
            replicas = [model, *(model.replica() for _ in self.shards[1:])]
        self.replicas = replicas[: len(self.shards)]  # none where there are fewer shards
        self.step = self.epoch = self.position = 0
        self.best = None
        self.seconds = 0.0
        self._clock = None  # when ``seconds`` was brought up to date
        self._last_step = None  # what _read_last_step reads
        self._tokens, self._seconds = 0, 0.0  # since the last log entry

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
            # An exception might hit amid an update.
            with self.workers.one_blas_thread(), interrupts_noted() as signals:
                if not self.step:
                    self.save()  # so that a folder without a checkpoint has lost what it had
                while not (self.processes.gathered(signals) or self._trained()):
                    self._train_epoch(signals)
                    self._finish_epoch()
            if asked := self.processes.gathered(signals):
                raise Stopped(asked[0])
            try:
                with interrupts_raised():  # at any moment: all of the training is saved
                    self._choose()
            except Interrupt as interrupt:
                raise Stopped(interrupt.signum) from interrupt

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
            CheckpointError: the position is beyond the epoch.
        """
        total_steps = self.total_steps  # first, for a task keeps the batches of one epoch
        batches = self.task.batches(self.epoch)
        if self.position > len(batches):
            raise CheckpointError(
                f"the newest checkpoint of {self.run.path} is of batch {self.position} of an epoch "
                f"of {len(batches)}; take the whole folder from a copy of the run"
            )
        parts = self._parts(batches[self.position :])  # cut where that waits for no GPU
        ahead = self.task.staged(parts, self.model)
        while self.position < len(batches):
            group = batches[self.position : self.position + self.config.accumulate]
            self.position += len(group)
            self.take_step(group, total_steps, ahead)
            yield

    @cached_property
    def total_steps(self):
        """Updates of the whole training."""
        return math.ceil(len(self.task.batches(0)) / self.config.accumulate) * self.config.epochs

    def _finish_epoch(self):
        self._raise_if_lost()
        left_out = self.task.left_out(self.epoch)
        self.epoch += 1
        self.position = 0
        scores, score = self._validate(), self.task.score
        counters = {"step": self.step, "epoch": self.epoch, "seconds": self._elapsed()}
        entry = {"kind": "validation", **counters, **scores}
        if left_out:
            entry["left_out"] = left_out
        self.processes.first(self.run.log.append, entry)
        if self.best is None or score.better(scores[score.name], self.best[score.name]):
            self.best = {score.name: scores[score.name], "epoch": self.epoch}
        self.progress.validated(entry, self.best, score)
        self.processes.first(self.run.save_epoch, self.model, self.epoch)
        self.save()
        self.processes.first(self._prune_epochs)

    def _validate(self):
        """The first process's scores, for all: others may round otherwise, and decide otherwise."""
        with accelerated(self.config.accelerate), self.workers.one_blas_thread():
            scores = self.task.validate(self.model)
        return self.processes.first(lambda: scores)

    def _elapsed(self):
        now = time.monotonic()
        self.seconds += now - (self._clock or now)
        self._clock = now
        return self.seconds

    def _trained(self):
        """Whether all epochs are done, or too many since the best one."""
        patience = self.config.patience
        impatient = patience and self.best and self.epoch - self.best["epoch"] >= patience
        return self.epoch >= self.config.epochs or impatient

    def _prune_epochs(self):
        """Remove the epochs that no checkpoint needs, not the one to go back to either."""
        needed = set()
        for path in checkpoints(self.run.checkpoints):
            with suppress(CheckpointError):  # nobody goes on from a damaged one
                state = load_state(path)
                require_sense(path, state, self.config.epochs, self.task.score.name)
                needed |= self._epochs_needed(state["epoch"], state["best"])
        self.run.prune_epochs(needed)

    def _epochs_to_average(self, epoch):
        return range(max(1, epoch - self.config.average + 1), epoch + 1)

    def _epochs_needed(self, epoch, best):
        """The epochs whose parameters a training at its end, after ``epoch``, asks for, a set."""
        return {*self._epochs_to_average(epoch), *([best["epoch"]] if best else [])}

    def _choose(self):
        """Write the best epoch's parameters, or the mean of the last ones' if it scores better."""
        score = self.task.score
        origin, value = f"epoch {self.best['epoch']}", self.best[score.name]
        chosen = self._average([self.best["epoch"]])
        last = self._epochs_to_average(self.epoch)
        if len(last) > 1:
            mean = self._average(last)
            load_model_arrays(self.model, mean)
            value_of_mean = self._validate()[score.name]
            if score.better(value_of_mean, value):
                origin, value = f"mean of epochs {last[0]} to {last[-1]}", value_of_mean
                chosen = mean
        load_model_arrays(self.model, chosen)
        self.processes.first(lambda: self.run.save_model(chosen, origin, **{score.name: value}))
        self.progress.say(f"chosen by validation {score.label}, {score.shown(value)}: {origin}")

    def _average(self, epochs):
        return self.processes.first(average, [self.run.epoch_file(epoch) for epoch in epochs])

    def _parts(self, batches):
        """Yield what each shard of this process has of the first batch, then of the next."""
        mine = self.processes.part(self.num_shards)
        for batch in batches:
            yield from batch.split(self.num_shards)[mine]

    def take_step(self, batches, total_steps, parts=None):
        """One update of the parameters from the summed gradients of ``batches``.

        Each replica runs forward and backward on its shard of each batch.

        Args:
            parts: an iterator whose next items are what the shards of this process have of them, as
                they are on the device; by default the batches are cut here.

        Raises:
            TrainingError: as for :meth:`train`, in a step that is logged.
        """
        start = time.perf_counter()
        config = self.config
        self.step += 1
        num_tokens = sum(batch.num_tokens for batch in batches)
        parts = parts or self._parts(batches)
        of_batches = [list(islice(parts, len(self.shards))) for _ in batches]
        # On a GPU ids have been checked before they went there.
        precision = matmul_precision(config.matmul_precision)
        with accelerated(config.accelerate), precision, ids_checked_before():
            losses = self.workers.map(
                partial(self._forward_backward, num_tokens),
                self.shards,
                self.replicas,
                zip(*of_batches, strict=True),
            )
            norm = self._sum_gradients()
            scale = clip_scale(norm, config.clip_norm) if config.clip_norm else 1.0
            learning_rate = config.learning_rate(self.step, total_steps, self.model.config.d_model)
            self.optimizer.step(learning_rate, scale, self.workers)

        self._last_step = [loss for shard in losses for loss in shard], norm
        logged = self.step % config.log_every == 0 or self.step == 1
        values = self._read_last_step() if logged else {}
        self._tokens += num_tokens
        self._seconds += time.perf_counter() - start
        if logged:
            entry = {
                "kind": "train",
                "step": self.step,
                "epoch": self.epoch,
                **values,
                "learning_rate": learning_rate,
                "tokens_per_second": self._tokens / self._seconds,
            }
            self.processes.first(self.run.log.append, entry)
            self.progress.stepped(entry, total_steps)
            self._tokens, self._seconds = 0, 0.0

    def _forward_backward(self, num_tokens, shard, replica, part):
        """The gradient of one shard, in its replica; returns loss and NLL of each batch's part.

        They are shares of the whole step's, and on the device.
        """
        config = self.config
        rng = replica.device.generator(step_seed(config.seed, self.step, shard))
        replica.flat.grad.fill(0)
        losses = []
        for batch in part:
            if not batch.num_tokens:
                continue  # fewer pairs than shards
            loss, cache = replica.loss(
                batch,
                rng,
                smoothing=config.label_smoothing,
                kappa=config.consistency,
                num_tokens=num_tokens,
            )
            replica.loss_backward(1.0, cache)
            losses.append(loss)
        return losses

    def _sum_gradients(self):
        """Make the model's gradient the sum of those of all shards; returns its norm."""
        total = self.model.flat.grad
        gradients = [replica.flat.grad for replica in self.replicas]
        ordered = self.config.ordered_sums
        self.processes.add(total, gradients, self.num_shards, self.workers, ordered)
        return self.processes.norm(total)

    def _read_last_step(self):
        """Loss, NLL and norm of the gradient; waits for the device that computes them."""
        losses, norm = self._last_step
        losses = self.processes.gathered([list(map(to_host, pair)) for pair in losses])
        loss, nll = (float(sum(values)) for values in zip(*losses, strict=True))
        norm = float(norm)
        hopeless = self.task.hopeless(self.model)
        if not (loss < hopeless and norm < math.inf):  # NaN is not below anything
            raise self._error(f"the loss is {loss:.4g}, the norm of its gradient {norm:.4g},")
        return {"loss": loss, "nll": nll, "gradient_norm": norm}

    def _raise_if_lost(self):
        """Look before anything is saved: most steps are not looked at."""
        if self._last_step is not None:
            self._read_last_step()
        data = self.model.flat.data
        if bool((~array_namespace(data).isfinite(data)).any()):
            raise self._error("a parameter is NaN or infinite")

    def _error(self, what):
        every = f" (every {self.config.log_every} steps are looked at)"
        return TrainingError(
            f"{what} at step {self.step}, epoch {self.epoch + 1}, batch {self.position}"
            f"{every if self.config.log_every > 1 else ''}; the last good checkpoint is "
            f"{newest_checkpoint(self.run.checkpoints) or 'none yet'}. The same recipe would come "
            "here again: start a new run with a lower peak_learning_rate, more warmup_steps or a "
            "smaller clip_norm"
        )

    def save(self):
        """Write a checkpoint of the whole state.

        Raises:
            TrainingError: the loss or a parameter is not finite; nothing is written.
        """
        self._raise_if_lost()
        state = {
            "step": self.step,
            "epoch": self.epoch,
            "position": self.position,
            "best": self.best,
            "seconds": self._elapsed(),
        }
        self.processes.require_same(parameters=self.model.flat.data)
        arrays = model_arrays(self.model, **self.optimizer.vectors)
        self.processes.first(self.run.save_checkpoint, arrays, state)

    def resume(self):
        """Go back to the newest whole checkpoint; returns whether there was one.

        Raises:
            CheckpointError: there was a training, and no checkpoint of it is whole; or the newest
                one is none of this training, or what it needs of earlier epochs is not there.
        """
        loaded = self.processes.first(self.run.load_newest_checkpoint)
        if loaded is None:
            self.processes.first(self.run.require_untrained)
        else:
            arrays, state = loaded
            where = f"the newest checkpoint of {self.run.path}"
            require_sense(where, state, self.config.epochs, self.task.score.name)
            load_model_arrays(self.model, arrays, **self.optimizer.vectors)
            self.step = self.optimizer.t = state["step"]
            self.epoch = state["epoch"]
            self.position, self.best = state["position"], state["best"]
            self.seconds = state["seconds"]
            for epoch in self._epochs_needed(self.epoch, self.best):
                self.processes.first(self._require_epoch, epoch)
            self.processes.first(self._prune)
        self.processes.first(self.run.log.forget_after, self.step, self.epoch)
        return loaded is not None

    def _prune(self):
        """Remove what a process has left that was killed before it did."""
        if len(checkpoints(self.run.checkpoints)) > 2:
            self.run.prune_checkpoints()
        self._prune_epochs()

    def _require_epoch(self, epoch):
        self.run.load(self.run.epoch_file(epoch))


def step_seed(seed, step, shard=0):
    """The seed of one shard's generator in one step, the same on every machine."""
    return int(np.random.SeedSequence((seed, step, shard)).generate_state(1)[0])
