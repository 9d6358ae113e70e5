"""Prints the lowest version of each dependency that setup.cfg allows, in the words of pip.

python tests/house/lowest_versions.py [EXTRA ...]
"""

import re
import sys
from configparser import ConfigParser
from pathlib import Path

SETUP = Path(__file__).parents[2] / "setup.cfg"


def lowest_versions(*extras):
    """``name==version`` for each line of what everybody needs, and of these extras."""
    setup = ConfigParser()
    setup.read(SETUP, encoding="utf-8")
    parts = [setup["options"]["install_requires"]]
    parts += [setup["options.extras_require"][extra] for extra in extras]
    lines = "".join(parts).strip().splitlines()
    return [re.sub(r" >= ([\d.]+).*", r"==\1", line) for line in lines]


if __name__ == "__main__":
    print("\n".join(lowest_versions(*sys.argv[1:])))
