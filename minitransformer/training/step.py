"""A step of a training: forward and backward of all shards, the sum of gradients, the update.

Everything random in a step is drawn from generators made from the seed, the number of the step and
the number of the shard. So what a step does does not depend on who works on which shard, nor on
whether the training was cut off before it.
"""

from functools import partial
from itertools import islice

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.twins import accelerated
from minitransformer.core.workers import workers_for
from minitransformer.layers.token_ids import ids_checked_before
from minitransformer.optim.clipping import clip_scale
from minitransformer.parallel.alone import ALONE


class TrainingStep:
    """Takes the steps of a training.

    Args:
        model: a Model.
        config: TrainingConfig.
        processes: those that share the steps.

    Attributes:
        optimizer: that of the config.
        num_shards: into how many a batch is cut.
        shards: the numbers of those of this process.
        replicas: of the model, one for each of them; the first is the model itself.
        workers: Workers that share the shards.
        num_tokens: of the last step.
    """

    def __init__(self, model, config, processes=ALONE):
        self.model, self.config, self.processes = model, config, processes
        self.num_shards = config.shards or 1
        self.shards = range(self.num_shards)[processes.part(self.num_shards)]
        self.workers = workers_for(model.device, self.num_shards, processes.threads)
        with model.device.as_current():
            self.optimizer = config.new_optimizer(model.flat)
            replicas = [model, *(model.replica() for _ in self.shards[1:])]
        self.replicas = replicas[: len(self.shards)]  # none where there are fewer shards
        self._buffers = [buffer for _, buffer in model.named_buffers()]
        self.num_tokens, self._last = 0, None  # losses and norm of the last step, on the device

    def parts(self, batches):
        """Yield what each shard of this process has of the first batch, then of the next.

        They are cut on the host, where that waits for no GPU.
        """
        mine = self.processes.part(self.num_shards)
        for batch in batches:
            yield from batch.split(self.num_shards)[mine]

    def take(self, number, batches, learning_rate, parts=None):
        """One update of the parameters from the summed gradients of ``batches``.

        Each replica runs forward and backward on its shard of each batch.

        Args:
            number: of the step, from 1.
            parts: an iterator whose next items are what the shards of this process have of them, as
                they are on the device; by default the batches are cut here.
        """
        config = self.config
        self.num_tokens = sum(batch.num_tokens for batch in batches)
        parts = parts or self.parts(batches)
        of_batches = [list(islice(parts, len(self.shards))) for _ in batches]
        buffers_before = self._lend_buffers()
        # On a GPU ids have been checked before they went there.
        with accelerated(config.accelerate, config.matmul_precision), ids_checked_before():
            losses = self.workers.map(
                partial(self._forward_backward, number),
                self.shards,
                self.replicas,
                zip(*of_batches, strict=True),
            )
            norm = self._sum_gradients()
            scale = clip_scale(norm, config.clip_norm) if config.clip_norm else 1.0
            self.optimizer.step(learning_rate, scale, self.workers)
        self._merge_buffers(buffers_before, losses)
        self._last = [loss for shard in losses for loss in shard], norm

    def last(self):
        """Loss, NLL and norm of the gradient of the last step; waits for the device. Or None."""
        if self._last is None:
            return None
        losses, norm = self._last
        losses = self.processes.gathered([list(map(to_host, pair)) for pair in losses])
        loss, nll = (float(sum(values)) for values in zip(*losses, strict=True))
        return loss, nll, float(norm)

    def _forward_backward(self, number, shard, replica, part):
        """The gradient of one shard, in its replica; returns loss and NLL of each batch's part.

        They are shares of the whole step's, and on the device.
        """
        config = self.config
        rng = replica.device.generator(step_seed(config.seed, number, shard))
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
                num_tokens=self.num_tokens,
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

    def _lend_buffers(self):
        """Give the replicas the model's buffers; returns copies of them."""
        before = [buffer.data.copy() for buffer in self._buffers]
        for replica in self.replicas[1:] if before else ():
            for (_, buffer), data in zip(replica.named_buffers(), before, strict=True):
                buffer.data = data
        return before

    def _merge_buffers(self, before, losses):
        """Make one of what the shards have left in each buffer, the same in all processes."""
        if not before:
            return
        kept = to_host if self.processes.count > 1 else self.model.device.asarray
        copies = self.processes.gathered(
            [
                [kept(buffer.data) for _, buffer in replica.named_buffers()]
                for replica, of_shard in zip(self.replicas, losses, strict=True)
                if of_shard
            ]
        )
        for buffer, old, *of_shards in zip(self._buffers, before, *copies, strict=True):
            of_shards = [self.model.device.asarray(data) for data in of_shards]
            buffer.data = buffer.merge(old, of_shards)


def step_seed(seed, step, shard=0):
    """The seed of one shard's generator in one step, the same on every machine."""
    return int(np.random.SeedSequence((seed, step, shard)).generate_state(1)[0])
