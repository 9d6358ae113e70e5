"""Runs the tests with each set of kernels that NumPy's OpenBLAS has and this processor can run.

    python tests/house/with_kernels.py [KERNELS ...] [--threads N ...] [--float32] [--others N]

OpenBLAS chooses its kernels by the processor, and each set adds up in an order of its own; so does
each number of threads. What is right with one of them alone is right by chance.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
# By OpenBLAS's names; Prescott's, the oldest, it may report as Katmai's.
KERNELS = ("SkylakeX", "Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott")
SIDE_BY_SIDE = ("-n", "auto", "--dist", "worksteal", "-m", "not slow")
OF_FLOAT32 = re.compile("float32|rounding|parity")  # in the text of a file whose tests compare it
LOOK = """
import json, numpy, threadpoolctl
for dtype in ("float32", "float64"):
    x = numpy.ones((99, 99), dtype)
    assert (x @ x == 99).all()
print(json.dumps([p.get("architecture") for p in threadpoolctl.threadpool_info()
                  if p["internal_api"] == "openblas"]))
"""


def main():
    options = parser().parse_args()
    problems = {name: problem_with(name) for name in options.kernels or KERNELS}
    for name, problem in problems.items():
        if problem:
            print(f"{name}: passed over, {problem}")
    runs = [name for name, problem in problems.items() if not problem]
    if options.others:
        own = taken(os.environ)
        runs = [name for name in runs if name not in own][: options.others]
    files = files_of_float32() if options.float32 else []
    failed = []
    for kernels in runs:
        for threads in options.threads:
            what = f"{kernels}, {threads} thread{'s' * (threads > 1)}"
            print(f"\n{what}", flush=True)
            command = [sys.executable, "-m", "pytest", *SIDE_BY_SIDE, *files]
            if subprocess.run(command, env=environment(kernels, threads)).returncode:
                failed.append(what)
    print(f"\ntried {', '.join(runs) or 'none'}; failed: {'; '.join(failed) or 'none'}")
    return bool(failed) or not runs


def parser():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNELS", help=f"of {', '.join(KERNELS)}")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="of the BLAS")
    parser.add_argument("--float32", action="store_true", help="only files that compare float32")
    parser.add_argument("--others", type=int, metavar="N", help="the first N that are not its own")
    return parser


def taken(environment):
    """The kernels that OpenBLAS takes there, and a product of each is right."""
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def problem_with(name):
    """Why the kernels of this name cannot be tried here; None if they can."""
    try:
        kernels = taken(environment(name, 1))
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            return f"this processor cannot run them (signal {-error.returncode})"
        return f"a product of theirs is wrong or fails: {error.stderr.strip()[-200:]}"
    if not kernels:
        return "NumPy's BLAS is no OpenBLAS"
    others = [other for other in kernels if other != name and other in KERNELS]
    return f"OpenBLAS takes those of {others[0]} instead" if others else None


def environment(kernels, threads):
    return os.environ | {"OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": str(threads)}


def files_of_float32():
    files = sorted(TESTS.rglob("test_*.py"))
    return [str(file) for file in files if OF_FLOAT32.search(file.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    sys.exit(main())
