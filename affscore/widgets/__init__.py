"""Widgets that compute in the browser, without a kernel. They need the extra ``affscore[widgets]``."""

from affscore.widgets.base import ComputedWidget
from affscore.widgets.first_signature import ScoreSlider

__all__ = ["ComputedWidget", "ScoreSlider"]
