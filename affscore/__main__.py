"""``python -m affscore`` is the same as the installed command ``affscore``."""

import sys

from affscore.cli.main import main

sys.exit(main())
