"""The command line: each command is a file in ``commands/``."""

import argparse

import minitransformer
from minitransformer.commands import gradcheck


def main(arguments=None):
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    return options.run(options)


def _parser():
    parser = argparse.ArgumentParser(prog="minitransformer", description=minitransformer.__doc__)
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {minitransformer.__version__}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    gradcheck.add(commands)
    return parser
