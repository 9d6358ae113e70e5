"""Runs the battery over many seeds and prints, as Markdown, what is said of each wrong pair.

python tests/gradcheck/run_battery.py --seeds 40
"""

import argparse
import time
from collections import Counter

from battery import RIGHT, WRONG
from battery.verdicts import fault, verdict


def main(seeds):
    start = time.perf_counter()
    rejected = Counter()
    for pair in RIGHT:
        for seed in range(seeds):
            found = verdict(pair, seed)
            if found.word not in ("right", pair.verdict):
                rejected[str(pair)] += 1
    accepted, named = Counter(), Counter()
    print("| pair | what was done wrong | kind | what is said | cause |")
    print("|---|---|---|---|---|")
    for pair in WRONG:
        found = [verdict(pair, seed) for seed in range(seeds)]
        accepted.update(str(pair) for each in found if fault(pair, each))
        causes = [each.cause(pair.tag) for each in found]
        named.update(causes)
        shown = found[causes.index(max(causes, key=ORDER.index))]  # the worst of all seeds
        print(row(pair, shown))
    print(f"\n{len(RIGHT)} right and {len(WRONG)} wrong pairs, {seeds} seeds each,", end=" ")
    print(f"{time.perf_counter() - start:.0f} s\n")
    print(f"- right ones rejected: {told(rejected, seeds)}")
    print(f"- wrong ones accepted, or with other gradients than are wrong: {told(accepted, seeds)}")
    for cause in ORDER:
        print(f"- {cause}: {named[cause]} of {named.total()}")


ORDER = ("named", "silent", "wrongly named")


def row(pair, found):
    said = "; ".join(f"{name}: {cause}".lstrip(": ") for name, cause in found.causes.items())
    cells = pair.right, pair.truth, pair.tag, said or found.word, found.cause(pair.tag)
    return f"| {' | '.join(str(cell).replace('|', '∣') for cell in cells)} |"


def told(counter, seeds):
    return "; ".join(f"{name} ({n} of {seeds})" for name, n in counter.items()) or "none"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    main(parser.parse_args().seeds)
