"""PyTorch's side of a comparison: the model of ``torch_model.py`` and fused Adam."""

import re
from time import perf_counter

import numpy as np
import torch
from _flops import gemm_shapes
from _gemm import best_rate
from _machine import peak_mb
from torch_model import TorchTransformer, load_ours


class TorchSide:
    """Takes training steps on a Workload; used as ``OurSide`` is.

    Args:
        workload: a Workload.
        settings: Settings.
    """

    def __init__(self, workload, settings):
        torch.set_num_threads(settings.threads)
        torch.backends.cuda.matmul.allow_tf32 = settings.precision == "tf32"
        torch.manual_seed(settings.seed)
        self.workload, self.settings, self.config = workload, settings, workload.config
        self.model = load_ours(TorchTransformer(self.config), workload.weights)
        self.model.to(settings.device).train()
        # Batches differ in their shapes: without dynamic, each shape would be compiled anew.
        self.loss = self.model.loss
        if settings.compile:
            self.loss = torch.compile(self.model.loss, dynamic=True)
        self.batches = [
            [
                torch.tensor(ids, dtype=torch.int64, device=settings.device)
                for ids in (batch.source, batch.target, batch.labels)
            ]
            for batch in workload.batches
        ]
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        self.step = 0

    def take_steps(self, indices):
        """Train on the batches of these indices; returns the seconds it took."""
        start = perf_counter()
        for index in indices:
            self._take_step(index)
        self._synchronize()
        return perf_counter() - start

    def losses(self, indices):
        """Train on the batches of these indices; returns the loss of each step."""
        return [float(self._take_step(index)) for index in indices]

    def _take_step(self, index):
        settings = self.settings
        self.step += 1
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(*self.batches[index], settings.smoothing)
        loss.backward()
        if settings.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm)
        self.optimizer.param_groups[0]["lr"] = learning_rate(settings, self.step)
        self.optimizer.step()
        return loss.detach()

    def gradients(self, index, file, dtype):
        """The loss of a batch at the first weights, without dropout; its gradients go to a file.

        Computed in ``dtype``; the gradients have torch's names.
        """
        model = TorchTransformer(self.config, getattr(torch, dtype)).to(self.settings.device)
        load_ours(model, self.workload.weights).eval()  # which turns dropout off and nothing else
        loss = model.loss(*self.batches[index], self.settings.smoothing)
        loss.backward()
        named = model.named_parameters()
        np.savez(file, **{name: parameter.grad.cpu().numpy() for name, parameter in named})
        return float(loss.detach())

    def gemm(self):
        """GFLOP/s of each matrix product of the model on all threads."""
        rates = {}
        for name, (m, k, n) in gemm_shapes(self.config, self.workload.rows).items():
            shapes = (m, k), (k, n), (m, n)
            a, b, out = (torch.randn(shape, device=self.settings.device) for shape in shapes)

            def multiply(a=a, b=b, out=out):
                torch.matmul(a, b, out=out)

            rates[name] = best_rate(multiply, self._synchronize, 2 * m * k * n)
        return rates

    def facts(self):
        """What computes: name, BLAS with its kernels, threads."""
        mode = "compiled" if self.settings.compile else "eager"
        return {
            "name": f"PyTorch {torch.__version__}, {mode}",
            "blas": torch_blas(self.settings.device),
            "threads": f"{torch.get_num_threads()} of PyTorch",
        }

    def memory(self):
        """The most memory so far, in MB: of the process, and of the GPU if that is used."""
        peaks = {"peak_mb": peak_mb()}
        if self.settings.device != "cpu":
            peaks["device_peak_mb"] = torch.cuda.max_memory_reserved() / 1e6
        return peaks

    def _synchronize(self):
        if self.settings.device != "cpu":
            torch.cuda.synchronize()


def learning_rate(settings, step):
    """Up to the peak at the end of the warm-up, then down to zero; written apart from our own."""
    if step <= settings.warmup_steps:
        return settings.peak_learning_rate * step / settings.warmup_steps
    left = (settings.total_steps - step) / (settings.total_steps - settings.warmup_steps)
    return settings.peak_learning_rate * max(0.0, left)


def torch_blas(device):
    """What multiplies PyTorch's matrices on a device: libraries and kernels, as PyTorch tells."""
    if device != "cpu":
        return f"cuBLAS of CUDA {torch.version.cuda}, {torch.cuda.get_device_name(device)}"
    found = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    name = found[1] if found else "unknown BLAS"
    return f"{name} and oneDNN, {torch.backends.cpu.get_cpu_capability()}"
