"""Every widget of the book by the name of its class, for tests that check them all."""

import importlib
from pathlib import Path

import affscore_book
from affscore_book.kit.widgets import ComputedWidget

for path in sorted(Path(affscore_book.__file__).parent.glob("*/widget.py")):
    importlib.import_module(f"affscore_book.{path.parent.name}.widget")
WIDGETS = dict(sorted(ComputedWidget.registry.items()))
