"""What the checker says of the battery's pairs over many seeds, as a table in Markdown.

    python tests/gradcheck/run_battery.py --seeds 40

The figures at its end: right pairs rejected, wrong ones accepted, causes named and not.
"""

import argparse
import time
from collections import Counter

from battery import RIGHT, WRONG
from battery.verdicts import fault, verdict

BEST_TO_WORST = ("named", "silence", "wrongly named")


def main(seeds):
    start = time.perf_counter()
    rejected, accepted, said = Counter(), Counter(), Counter()
    for pair in RIGHT:
        rejected[pair] = sum(bool(fault(pair, verdict(pair, seed))) for seed in range(seeds))
    print("| what it was → what it is | what is said of it, at worst | |\n|---|---|---|")
    for pair in WRONG:
        found = [verdict(pair, seed) for seed in range(seeds)]
        accepted[pair] = sum(bool(fault(pair, each)) for each in found)
        judged = [each.judged(pair.tag) for each in found]
        said.update(judged)
        worst = max(judged, key=BEST_TO_WORST.index)
        at_worst = found[judged.index(worst)]
        cells = pair, str(at_worst) or at_worst.word, worst
        print(f"| {' | '.join(str(cell).replace('|', '∣') for cell in cells)} |")
    seconds = time.perf_counter() - start
    print(f"\n{len(RIGHT)} right and {len(WRONG)} wrong pairs, {seeds} seeds, {seconds:.0f} s.")
    print(f"Right ones rejected: {_told(rejected)}.")
    print(f"Wrong ones not rejected, or with others than the wrong gradients: {_told(accepted)}.")
    print("Causes:", ", ".join(f"{word} {said[word]}" for word in BEST_TO_WORST))


def _told(times):
    return "; ".join(f"{pair} ({n} times)" for pair, n in times.items() if n) or "none"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many (default %(default)s)")
    main(parser.parse_args().seeds)
