"""Where the built book is. AFFSCORE_SITE points the browser tests at another copy."""

import os
from pathlib import Path

SITE = Path(os.environ.get("AFFSCORE_SITE", Path(__file__).resolve().parents[2] / "_build" / "html"))
