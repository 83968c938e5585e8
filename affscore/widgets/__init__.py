"""Widgets that compute in the browser, without a kernel. They need the extra ``affscore[widgets]``."""

from affscore.widgets.activations import ActivationExplorer
from affscore.widgets.base import ComputedWidget
from affscore.widgets.first_signature import ScoreSlider
from affscore.widgets.relu_1d import ReluRange

__all__ = ["ActivationExplorer", "ComputedWidget", "ReluRange", "ScoreSlider"]
