"""The benchmarks are scripts, not a package: their tests find them where ``python`` would."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
