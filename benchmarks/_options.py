"""The options that several benchmarks have, said once."""

import argparse
import os
import sys
import traceback
from functools import partial
from pathlib import Path

from _process import SideError

from minitransformer.commands.arguments import new_file, positive, whole
from minitransformer.commands.cli import TRACEBACK
from minitransformer.core.errors import ExplainedError, in_words

SHARED = {
    "--config": dict(choices=("toy", "tiny", "base"), default="tiny", help="size of the model"),
    "--data-dir": dict(help="folder with Multi30k; without it and MINITRANSFORMER_DATA, toy text"),
    "--device": dict(default="cpu", help="cpu, cuda or cuda:N, for each side"),
    "--threads": dict(type=whole, default=0, help="of each side; 0 is one for each core"),
    "--batch-tokens": dict(
        type=positive, default=4096, help="padded tokens a batch, both languages together"
    ),
    "--json": dict(type=new_file, metavar="FILE", help="write the result to a file"),
}


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults there are; argparse itself also says ``(default: None)``."""

    def _get_help_string(self, action):
        return action.help if action.default is None else super()._get_help_string(action)


def parser(description, *shared):
    """An ArgumentParser with those of the ``SHARED`` options that are named."""
    made = argparse.ArgumentParser(description=description, formatter_class=_Help)
    for name in shared:
        made.add_argument(name, **SHARED[name])
    return made


def end(main, run=lambda main: main()):
    """End a script with the status of main(), of which what a user can mend is a line.

    Args:
        run: calls it, as several processes do that are to end together.
    """
    sys.exit(run(partial(_status_of, main)))


def _status_of(main):
    try:
        return main()
    except (OSError, ExplainedError, SideError) as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exception(error)
        print(f"{Path(sys.argv[0]).name}: {in_words(error)}", file=sys.stderr)
        return 1
