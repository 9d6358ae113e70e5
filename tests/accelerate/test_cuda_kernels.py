"""The kernels themselves: they compile, touch nothing they should not, and wait where they must."""

import re
import shutil
import subprocess
import sys
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_shim.machine import (
    KernelError,
    Machine,
    build,
    compiler,
    read_arrays,
    replay,
    sanitizer,
    write_launch,
)

from minitransformer.accelerate.cuda import kernels
from minitransformer.core.counter_generator import CounterGenerator, philox
from minitransformer.core.twins import accelerated
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.dropout import dropout
from minitransformer.layers.embedding import embedding_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.residual import residual
from minitransformer.loss.cross_entropy import cross_entropy
from minitransformer.loss.projected_loss import projected_loss
from minitransformer.optim.adam import adam_update

ALL_KERNELS = set(kernels.parameter_types(kernels.source()))

# Kernels that break the rules, each in its own way.
BROKEN = """
extern "C" __global__ void right(Real* x) {
    __shared__ Real shared[64];
    shared[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = shared[63 - threadIdx.x];
}

extern "C" __global__ void without_barrier(Real* x) {
    __shared__ Real shared[64];
    shared[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = shared[63 - threadIdx.x];
}

extern "C" __global__ void next_row_too_soon(Real* x) {
    __shared__ Real shared[64];
    for (int row = 0; row < 2; row++) {
        shared[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = shared[63 - threadIdx.x];
    }
}

extern "C" __global__ void reads_one_too_far(Real* x) {
    Real next = x[threadIdx.x + 1];
    __syncthreads();
    x[threadIdx.x] = next;
}

extern "C" __global__ void writes_past_shared(Real* x) {
    __shared__ Real shared[63];
    shared[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = shared[threadIdx.x];
}

extern "C" __global__ void loads_unaligned(Real* x) {
    double two = *reinterpret_cast<const double*>(x + 1);
    __syncthreads();
    x[threadIdx.x] = two;
}

extern "C" __global__ void some_leave(Real* x) {
    if (threadIdx.x == 3) return;
    __syncthreads();
    x[threadIdx.x] = 0;
}

extern "C" __global__ void uninitialised(Real* x) {
    __shared__ Real shared[64];
    if (threadIdx.x != 3) shared[threadIdx.x] = 0;
    __syncthreads();
    x[threadIdx.x] = shared[3];
}
"""


needs_compiler = pytest.mark.skipif(not compiler(), reason="g++ is not installed")


# Beside wrong addresses, what else C++ leaves undefined is looked for, such as a load of four
# numbers that are not aligned, which a GPU refuses.
SANITIZE = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}


def run_every_kernel(device):
    """Every kernel at least once, on few numbers, but with several warps, blocks and odd ends."""
    rng, numbers = CounterGenerator(1, device.xp), np.random.default_rng(0)

    def arrays(*shapes):
        return [device.asarray(numbers.standard_normal(s).astype(np.float32)) for s in shapes]

    x, h, gamma, beta = arrays((70, 131), (70, 131), 131, 131)
    dropout(x, 0.3, rng)
    residual(x, h, 0.3, rng)
    _, cache = layer_norm(x[:17], gamma, beta)
    layer_norm_backward(h[:17], cache)
    x, *weights = arrays((70, 6), (6, 35), 35, (35, 6), 6)
    y, cache = feed_forward(x, *weights, 0.3, rng)
    feed_forward_backward(y, cache)
    query, key, value = arrays((2, 2, 3, 4), (2, 2, 37, 4), (2, 2, 37, 4))
    mask = device.asarray(np.arange(37) < np.array([5, 30])[:, None, None, None])
    y, cache = scaled_dot_product_attention(query, key, value, mask, 0.3, rng)
    scaled_dot_product_attention_backward(y, cache)
    logits, x, weight, dx = arrays((3, 1030), (3, 4), (5, 4), (12, 4))
    cross_entropy(logits, np.array([1029, 0, 5]), 0.1)
    projected_loss(x, weight, np.array([4, 0, 2]), 0.1)  # the gradient in place of the logits
    projected_loss(arrays((2, 3, 4))[0], weight, np.array([[4, 0, 2]]), 0.1, 0.5)
    ids = device.asarray(np.array([1, 4, 4, 1, 1, 1, 1, 0, 1, 1, 1, 1]))
    embedding_backward(dx, (ids, weight, 2.0))
    adam_update(*arrays(1030, 1030, 1030, 1030), 0.1, 1, 0.9, 0.98, 1e-9, arrays(())[0])


def test_the_kernels_need_no_header():
    """CuPy compiles them with NVRTC, which unlike nvcc and g++ knows none of these by itself."""
    code = re.sub("//.*", "", kernels.source())
    assert not re.findall(r"#include|\b(?:std|INFINITY|NAN|u?int\d+_t|(?:FLT|DBL|INT)_\w+)\b", code)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize("real", kernels.REALS.values())
def test_all_kernels_compile_for_gpus_without_a_warning_or_a_spilled_register(tmp_path, real):
    program = tmp_path / "kernels.cu"
    program.write_text(kernels.source())
    architectures = [f"-gencode=arch=compute_{version},code=sm_{version}" for version in (80, 90)]
    strictly = ["-Werror=all-warnings", "-Xptxas=-v"]
    command = ["nvcc", "-std=c++17", f"-DReal={real}", *architectures, *strictly, "-fatbin"]
    done = subprocess.run(
        [*command, program, "-o", tmp_path / "kernels.fatbin"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    usage = [line for line in done.stderr.splitlines() if "spill stores" in line]
    assert len(usage) >= len(architectures) * len(ALL_KERNELS)
    assert all("0 bytes stack frame, 0 bytes spill stores" in line for line in usage), usage


def sanitizer_or_skip(folder, kind):
    before = sanitizer(folder, kind)
    if before is None:
        pytest.skip(f"g++'s {kind} sanitizer does not run here")
    return before


@pytest.mark.slow
@pytest.mark.parametrize("kind", SANITIZE)
def test_every_kernel_is_clean_under_the_sanitizer(shim, tmp_path, kind):
    machine = shim.machine
    with open(tmp_path / "launches", "wb") as machine.log, accelerated():
        run_every_kernel(shim.device)
    assert set(machine.launched) == ALL_KERNELS

    before = sanitizer_or_skip(tmp_path, kind)
    program = build(tmp_path, "float", flags=SANITIZE[kind], main="replay.cpp")
    done = replay(before, program, tmp_path / "launches")
    assert done.returncode == 0, done.stderr.decode()
    assert list(read_arrays(done.stdout)) == machine.results


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "caught"), [
    ("address", {"reads_one_too_far", "writes_past_shared", "loads_unaligned"}),
    ("thread", {"without_barrier", "next_row_too_soon"}),
])  # fmt: skip
def test_the_sanitizers_catch_what_is_broken(tmp_path, kind, caught):
    before = sanitizer_or_skip(tmp_path, kind)
    program = build(tmp_path, "float", BROKEN, flags=SANITIZE[kind], main="replay.cpp")
    refused = set()
    for name in ("right", "without_barrier", "next_row_too_soon", *caught):
        launches = tmp_path / name
        with open(launches, "wb") as file:
            write_launch(file, name, (1, 1), (64, 1), [np.ones(64, np.float32)])
        done = replay(before, program, launches)
        if done.returncode:
            assert b"Sanitizer" in done.stderr or b"runtime error" in done.stderr
            refused.add(name)
    assert refused == caught


@pytest.fixture(scope="module")
def broken_machine(tmp_path_factory):
    if not compiler():
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("broken")
    machine = Machine({"float": build(folder, "float", BROKEN)})

    def run(name, block=(64, 1)):
        x = np.arange(64, dtype=np.float32)
        machine.run(name, x.dtype, (1, 1), block, [x])
        return x

    return run


def test_the_machine_runs_a_right_kernel_right(broken_machine):
    assert np.array_equal(broken_machine("right"), np.arange(64)[::-1])


def test_the_machine_notices_a_barrier_that_some_threads_never_reach(broken_machine):
    with pytest.raises(KernelError, match="never reach"):
        broken_machine("some_leave")
    assert np.array_equal(broken_machine("right"), np.arange(64)[::-1])  # it is none the worse


def test_shared_memory_holds_garbage_at_first(broken_machine):
    broken_machine("right")
    assert np.isnan(broken_machine("uninitialised")).all()


def test_the_machine_refuses_what_a_gpu_refuses(broken_machine):
    with pytest.raises(KernelError, match="1024 threads"):
        broken_machine("right", (1025, 1))
    with pytest.raises(KernelError, match="1024 threads"):
        broken_machine("right", (0, 1))


# --- Philox


def test_philox_gives_the_words_its_authors_published():
    """The known answers for philox4x32 with 10 rounds that come with Random123."""
    ones = 2**32 - 1
    pi = 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((ones,) * 4, (ones,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    words = philox(pi, (0xA4093822, 0x299F31D0))
    assert words == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


WORDS = """
extern "C" __global__ void words(Real* unused, u64* out, u64 key, u64 draw, u64 block) {
    Bits bits = philox(key, draw, block);
    for (int i = 0; i < 4; i++) out[i] = bits.word[i];
}
"""


@needs_compiler
def test_the_kernels_draw_the_words_of_the_reference(tmp_path):
    common = files("minitransformer.accelerate.cuda.kernels").joinpath("common.cu").read_text()
    machine = Machine({"float": build(tmp_path, "float", common + WORDS)})
    rng = np.random.default_rng(0)
    for key, draw, block in rng.integers(2**64, size=(20, 3), dtype=np.uint64):
        out = np.zeros(4, np.uint64)
        arguments = [np.zeros(1, np.float32), out, key, draw, block]
        machine.run("words", np.dtype(np.float32), (1, 1), (1, 1), arguments)
        halves = [(int(n) % 2**32, int(n) // 2**32) for n in (block, draw, key)]
        assert tuple(out) == philox((*halves[0], *halves[1]), halves[2])


def test_a_counter_generator_draws_other_numbers_each_time_and_for_each_seed():
    rng, same, other = (CounterGenerator(seed) for seed in (3, 3, 4))
    draws = [rng.random((40, 50)), rng.random((40, 50)), other.random((40, 50))]
    assert np.array_equal(draws[0], same.random((40, 50)))
    for x in draws:
        assert x.dtype == np.float32
        assert x.min() >= 0
        assert x.max() < 1
        assert abs(x.mean() - 0.5) < 4 / np.sqrt(12 * x.size)  # four standard errors
    # Independent draws share about 2000² / 2²⁴ = 0.2 of their numbers.
    assert len(np.unique(draws)) > 3 * 2000 - 10


# --- Launches


def test_an_array_of_another_type_than_a_kernel_reads_is_refused():
    x, wide = np.zeros((2, 4), np.float32), np.zeros((2, 4))
    with pytest.raises(TypeError, match="reads float32 here, and was given float64"):
        kernels.launch("dropout", (1, 1), (256, 1), x, wide, 2, 4, 0, 0, 0, 1.0)
    half = x.astype(np.float16)
    with pytest.raises(TypeError, match="float32 or float64, not in float16"):
        kernels.launch("dropout", (1, 1), (256, 1), half, half, 2, 4, 0, 0, 0, 1.0)


def test_an_array_with_gaps_is_refused():
    x, y = np.zeros((2, 8), np.float32)[:, ::2], np.zeros((2, 4), np.float32)
    for given in (x, y), (y, x):
        with pytest.raises(TypeError, match="'dropout' was given an array with gaps"):
            kernels.launch("dropout", (1, 1), (256, 1), *given, 2, 4, 0, 0, 0, 1.0)


def test_kernels_are_compiled_once_for_each_type_when_they_are_first_used(monkeypatch):
    started, compiled = [], []

    class RawModule:
        def __init__(self, code, options):
            compiled.append(options)
            assert code == kernels.source()

        def get_function(self, name):
            return lambda grid, block, args: started.append((name, grid, block, args))

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(RawModule=RawModule))
    for cached in (kernels._module, kernels._function):
        cached.cache_clear()
    x, y = np.zeros((2, 2, 4), np.float32)
    for _ in range(2):
        kernels.launch("dropout", (1, 2), (256, 1), x, y, 2, 4, 2**64 - 1, 7, 9, 0.5)
    kernels.launch("dropout", (0, 1), (256, 1), x, y, 0, 4, 0, 0, 0, 1.0)
    for cached in (kernels._module, kernels._function):
        cached.cache_clear()

    assert compiled == [("-std=c++17", "-DReal=float")]
    assert len(started) == 2  # and none for an empty grid, which CUDA refuses
    name, grid, block, (first, second, *numbers) = started[0]
    assert (name, grid, block) == ("dropout", (1, 2), (256, 1))
    assert first is x
    assert second is y
    assert numbers == [2, 4, 2**64 - 1, 7, 9, 0.5]
    types = np.int64, np.int64, np.uint64, np.uint64, np.uint32, np.float32
    assert tuple(map(type, numbers)) == types
