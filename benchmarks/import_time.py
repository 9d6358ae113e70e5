"""How long does a program wait for its imports?

    python benchmarks/import_time.py

Beside ``import numpy``, which every program here needs, stand ``import minitransformer`` and
``minitransformer --version``, each in a new process, turn by turn. Counted are the imports, without
the start of Python itself. A machine that does other things makes single ones slow: the fastest and
the median of many rounds are shown.
"""

import argparse
import statistics
import subprocess
import sys

import _options

from minitransformer.commands.arguments import positive

PROGRAMS = {
    "import numpy": "import numpy",
    "import minitransformer": "import minitransformer",
    "minitransformer --version": (
        "from contextlib import suppress\n"
        "from minitransformer.commands.cli import main\n"
        "with suppress(SystemExit): main(['--version'])"
    ),
}


def main(arguments=None):
    """Measure and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=positive, default=40, help="default: %(default)s")
    seconds = measure(parser.parse_args(arguments).rounds)
    print(f"{'':<26}{'fastest':>20}{'median':>20}")
    for program, times in seconds.items():
        row = f"{program:<26}"
        for figure in (min, statistics.median):
            ratio = figure(times) / figure(seconds["import numpy"])
            row += f"{1000 * figure(times):>9.1f} ms {ratio:>5.2f} ×"
        print(row)
    return 0


def measure(rounds):
    """The seconds of each program in each round."""
    seconds = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            timed = (
                "from time import perf_counter\n"
                f"start = perf_counter()\n{program}\nprint(perf_counter() - start)"
            )
            command = [sys.executable, "-c", timed]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds[name].append(float(done.stdout.split()[-1]))
    return seconds


if __name__ == "__main__":
    _options.end(main)
