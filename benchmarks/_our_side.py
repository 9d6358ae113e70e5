"""Our side of a comparison: the step of minitransformer's own Trainer."""

import os
from dataclasses import fields, replace
from pathlib import Path
from time import perf_counter

import numpy as np
from _flops import gemm_shapes
from _gemm import best_rate
from _machine import blas_of, peak_mb
from threadpoolctl import threadpool_limits


class OurSide:
    """Takes training steps on a Workload.

    Args:
        workload: a Workload.
        settings: Settings.

    Attributes:
        trainer: the Trainer that takes the steps.
    """

    def __init__(self, workload, settings):
        if settings.precision == "tf32":
            os.environ["CUPY_TF32"] = "1"  # CuPy reads it when it is imported
        from minitransformer import TransformerConfig
        from minitransformer.core.backend import select_device
        from minitransformer.core.memory import keep_freed_memory
        from minitransformer.data.text.batches import Batch

        self.workload, self.settings = workload, settings
        self.device = select_device(settings.device)
        names = [field.name for field in fields(TransformerConfig)]
        self.config = TransformerConfig(**{n: getattr(workload.config, n) for n in names})
        names = [field.name for field in fields(Batch)]
        self.batches = [Batch(*(getattr(b, n) for n in names)) for b in workload.batches]
        self.trainer = self._trainer(self.config)
        if settings.accelerate and settings.device == "cpu":
            keep_freed_memory()  # as Trainer.train does

    def take_steps(self, indices):
        """Train on the batches of these indices; returns the seconds it took."""
        from minitransformer.core.staging import staged

        with self._blas_threads():
            start = perf_counter()
            trainer, batches = self.trainer, [self.batches[index] for index in indices]
            for batch in staged(batches, self.device, trainer.model.check):
                trainer.take_step([batch], self.settings.total_steps)
            self.device.synchronize()
            return perf_counter() - start

    def losses(self, indices):
        """Train on the batches of these indices; returns the loss of each step."""
        self.trainer.config = replace(self.trainer.config, log_every=1)
        before = len(self.trainer.run.log)
        self.take_steps(indices)
        return [entry["loss"] for entry in self.trainer.run.log[before:]]

    def gradients(self, index, file, dtype):
        """The loss of a batch at the first weights, without dropout; its gradients go to a file.

        Computed in ``dtype``.
        """
        still = dict(dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0)
        trainer = self._trainer(replace(self.config, **still), dtype)
        with self._blas_threads():
            trainer.take_step([self.batches[index]], self.settings.total_steps)
        asarray = self.device.xp.asnumpy if self.settings.device != "cpu" else np.asarray
        named = trainer.model.named_parameters()
        np.savez(file, **{path: asarray(parameter.grad) for path, parameter in named})
        return trainer.run.log[0]["loss"]

    def gemm(self):
        """GFLOP/s of each matrix product of the model on all threads, the better of two ways.

        Either each worker has a part of the rows and a BLAS of one thread, as in a training step,
        or one BLAS shares out the whole product.
        """
        workers = self.trainer.workers
        rates = self._gemm_rates(1, self.settings.threads, map)
        if workers.count > 1:
            of_workers = self._gemm_rates(workers.count, 1, workers.map)
            rates = {name: max(rate, of_workers[name]) for name, rate in rates.items()}
        return rates

    def _gemm_rates(self, parts, blas_threads, run):
        """``parts`` products at once, each of an equal share of the rows."""
        xp, rng = self.device.xp, np.random.default_rng(0)

        def product(m, k, n):
            a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
            return self.device.asarray(a), self.device.asarray(b), xp.empty((m, n), np.float32)

        rates = {}
        with threadpool_limits(blas_threads, user_api="blas"):
            for name, shape in gemm_shapes(self.config, self.workload.rows // parts).items():
                products = [product(*shape) for _ in range(parts)]

                def multiply(products=products):
                    list(run(lambda abc: xp.matmul(*abc[:2], out=abc[2]), products))

                flops = 2 * parts * shape[0] * shape[1] * shape[2]
                rates[name] = best_rate(multiply, self.device.synchronize, flops)
        return rates

    def facts(self):
        """What computes: name, BLAS with its kernels, threads."""
        count = self.trainer.workers.count
        blas_threads = 1 if count > 1 else self.settings.threads
        return {
            "name": "minitransformer" + ("" if self.settings.accelerate else ", reference"),
            "blas": blas_of(self.device),
            "threads": f"{count} of Python, {blas_threads} of the BLAS in each",
        }

    def memory(self):
        """The most memory so far, in MB: of the process, and of the GPU if that is used."""
        peaks = {"peak_mb": peak_mb()}
        if self.settings.device != "cpu":
            peaks["device_peak_mb"] = self.device.xp.get_default_memory_pool().total_bytes() / 1e6
        return peaks

    def _trainer(self, config, dtype="float32"):
        from minitransformer.core.backend import CPU
        from minitransformer.core.workers import available_cores, default_shards
        from minitransformer.models.transformer import Transformer
        from minitransformer.tasks.translation import Translation
        from minitransformer.training.config import TrainingConfig
        from minitransformer.training.trainer import Trainer

        class Steps(Translation):
            """What of the task a step asks."""

            def __init__(self):
                pass

        settings = self.settings
        model = Transformer(config, device=self.device, dtype=dtype)
        for path, parameter in model.named_parameters():
            parameter.data[...] = self.device.asarray(self.workload.weights[path])
        shards = 1
        if self.device == CPU:
            shards = default_shards(max(batch.size for batch in self.batches), available_cores())
        training = TrainingConfig(
            label_smoothing=settings.smoothing,
            clip_norm=settings.clip_norm,
            schedule="linear",
            peak_learning_rate=settings.peak_learning_rate,
            warmup_steps=settings.warmup_steps,
            shards=min(shards, settings.threads),
            accelerate=settings.accelerate,
            matmul_precision=settings.precision,
            seed=settings.seed,
        )
        log = _Log()
        return Trainer(model, training, run=log, task=Steps(), progress=log)

    def _blas_threads(self):
        """As :meth:`Trainer.train` sets them."""
        threads = 1 if self.trainer.workers.count > 1 else self.settings.threads
        return threadpool_limits(threads, user_api="blas")


def update_seconds(trainer):
    """How long a Trainer takes over the norm of its gradient and the update of all parameters.

    The parameters stay as they are; Adam's averages do not.
    """
    from minitransformer.core.twins import accelerated
    from minitransformer.optim.clipping import gradient_norm

    with trainer.workers.one_blas_thread(), accelerated():
        start = perf_counter()
        gradient_norm(trainer.model.flat.grad)
        trainer.optimizer.step(0.0, 1.0, trainer.workers)
        return perf_counter() - start


class _Log:
    """In the place of a Trainer's run folder and of its progress bar."""

    checkpoints = Path("no checkpoints")  # where the Trainer looks for one when a run is lost

    def __init__(self):
        self.log = []

    def stepped(self, entry, total_steps):
        pass
