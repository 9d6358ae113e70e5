"""Fetch the part of Multi30k that a training and its scores need, or check a copy of it.

It is the first part of ``gpu_report.py``.
"""

import sys

from minitransformer.core.libraries import MissingLibraryError
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.multi30k import load_multi30k

SPLITS = "train", "validation", "test_2016_flickr"


def main():
    """Print how many pairs there are; the exit status says what is missing, if anything is."""
    try:
        print(", ".join(f"{split} {len(load_multi30k(split)):,}" for split in SPLITS), "pairs")
    except (CorpusError, MissingLibraryError, OSError) as error:
        return str(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
