"""Where the time of a training step goes, by kind of work.

    python benchmarks/profile_step.py --config tiny --data-dir DIR

A thread looks a thousand times a second at what each worker is doing and sorts it by the functions
that are being called, the innermost known one first, and by whether the line is a matrix product.
That reaches into every thread, slows nothing down that matters, and serves the readable functions
and their faster twins alike. (Short stretches of plain Python count for the array operation that
follows: while Python's lock is held, nobody can look.)
"""

import concurrent.futures.thread
import linecache
import math
import sys
import threading
from collections import Counter

import _options
import _results
from _flops import batch_flops
from _machine import cores, machine
from _our_side import OurSide
from _settings import Settings
from _workload import make_workload

from minitransformer.commands.arguments import positive

SECONDS_BETWEEN_LOOKS = 0.001

PRODUCTS, BIAS = "linear maps: matrix products", "bias, ReLU and their gradients"
LOGITS, LOSS = "logits: matrix products", "cross-entropy"
HEADS, SCORES = "attention: products with heads", "attention: other work"
GRADIENTS = "adding up gradients, clipping"
WAITING = "waiting for another worker"
REST = "the rest"

# A part of a function's name; what its matrix products count as, and all else in it.
KINDS = (
    ("projected_loss", LOGITS, LOSS),
    ("cross_entropy", LOSS, LOSS),
    ("consistency", LOSS, LOSS),
    ("adam", "Adam", "Adam"),
    ("gradient", GRADIENTS, GRADIENTS),
    ("clip", GRADIENTS, GRADIENTS),
    ("layer_norm", "LayerNorm", "LayerNorm"),
    ("softmax", "softmax", "softmax"),
    ("dropout", "dropout", "dropout"),
    ("draw_mask", "dropout", "dropout"),
    ("residual", "dropout and residual sums", "dropout and residual sums"),
    ("scatter_add", "embedding", "embedding"),
    ("embed", "embedding", "embedding"),
    ("column_sums", BIAS, BIAS),
    ("relu", BIAS, BIAS),
    ("linear", PRODUCTS, BIAS),
    ("feed_forward", PRODUCTS, BIAS),
    ("attention", HEADS, SCORES),
)


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    workload = make_workload(
        options.config, options.data_dir, batch_tokens=options.batch_tokens, count=options.steps
    )
    side = OurSide(
        workload,
        Settings(threads=options.threads or cores(), accelerate=not options.reference),
    )
    arguments = sys.argv[1:] if arguments is None else arguments
    result = {
        "kind": "profile_step",
        **machine(["profile_step.py", *arguments]),
        "config": options.config,
        "corpus": workload.corpus,
        "side": side.facts(),
        **profile(side, range(options.steps)),
        "gemm_peak_gflops": max(side.gemm().values()),
    }
    print(table(result))
    _results.write(result, options.json)
    return 0


def profile(side, indices):
    """Take these steps once to warm up and once to look at them.

    Args:
        side: OurSide.
        indices: of the batches.

    Returns:
        dict of ``seconds_per_step``; ``shares``, by kind, of the time of all workers together; and
        ``gflop_per_step``, operations of matrix products, padding not counted.

    Raises:
        SystemExit: the steps are too short to be seen.
    """
    side.take_steps(indices)
    with Looks(side.trainer.workers.count) as looks:
        seconds = side.take_steps(indices)
    total = looks.counts.total()
    if not total:
        raise SystemExit("the steps were over before anybody could look; take more: --steps N")
    flops = [sum(batch_flops(side.config, side.batches[i]).values()) for i in indices]
    return {
        "steps": len(indices),
        "gflop_per_step": sum(flops) / len(indices) / 1e9,
        "looks": total,
        "seconds_per_step": seconds / len(indices),
        "shares": {kind: count / total for kind, count in looks.counts.most_common()},
    }


class Looks:
    """While in the ``with``, counts by kind what the workers do.

    Args:
        workers: how many there are.

    Attributes:
        counts: how often a worker was seen at each kind of work.
    """

    def __init__(self, workers):
        self.workers = workers
        self.counts = Counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _look(self):
        while not self._done.wait(SECONDS_BETWEEN_LOOKS):
            self.look()

    def look(self):
        own = threading.get_ident()
        frames = sys._current_frames().items()
        kinds = [kind_of(frame) for thread, frame in frames if thread != own]
        working = [kind for kind in kinds if kind is not None]
        self.counts.update(working)
        self.counts[WAITING] += max(0, self.workers - len(working))


def kind_of(frame):
    """The kind of work that a thread does, from its innermost frame; None when it waits."""
    if frame.f_code.co_filename in (threading.__file__, concurrent.futures.thread.__file__):
        return None
    frames = [frame]
    while frames[-1].f_back:
        frames.append(frames[-1].f_back)
    for frame in frames:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if ".grad +=" in line:
            return GRADIENTS
        for part, of_product, of_other in KINDS:
            if part in frame.f_code.co_name:
                kind = of_product if " @ " in line or "matmul(" in line else of_other
                of_loss = any("projected_loss" in outer.f_code.co_name for outer in frames)
                return {PRODUCTS: LOGITS, BIAS: LOSS}.get(kind, kind) if of_loss else kind
    return REST


def table(result):
    """A profile as text."""
    width = max(map(len, result["shares"]))
    lines = [
        f"{result['cpu']}; {result['side']['blas']}, {result['side']['threads']}",
        f"{result['config']} on {result['corpus']}, {result['side']['name']}: "
        f"{1000 * result['seconds_per_step']:.0f} ms a step",
        "",
        f"{'':{width}}  share  ms a step",
    ]
    for kind, share in result["shares"].items():
        milliseconds = 1000 * share * result["seconds_per_step"]
        lines.append(f"{kind:{width}}  {share:5.1%}  {milliseconds:9.1f}")
    of_products = sum(result["shares"].get(kind, 0) for kind in (PRODUCTS, LOGITS, HEADS))
    seconds, peak = of_products * result["seconds_per_step"], result["gemm_peak_gflops"]
    speed = result["gflop_per_step"] / seconds if seconds else math.nan  # a step of too few looks
    lines += [
        "",
        f"matrix products: {of_products:.1%}, {1000 * seconds:.1f} ms",
        f"their speed: {speed:.0f} GFLOP/s, {speed / peak:.0%} of the peak, {peak:.0f}",
    ]
    return "\n".join(lines)


def _parsed(arguments):
    parser = _options.parser(
        __doc__.splitlines()[0], "--config", "--data-dir", "--threads", "--batch-tokens", "--json"
    )
    add = parser.add_argument
    add("--steps", type=positive, default=20, help="steps to look at")
    add("--reference", action="store_true", help="the readable functions, not their faster twins")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
