"""``python -m minitransformer`` is the command ``minitransformer``."""

import sys

from minitransformer.commands.cli import main

sys.exit(main())
