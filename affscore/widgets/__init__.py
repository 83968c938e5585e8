"""Widgets that compute in the browser, without a kernel. They need the extra ``affscore[widgets]``."""

from affscore.widgets.activations import ActivationExplorer
from affscore.widgets.base import ComputedWidget
from affscore.widgets.compare import ArchitectureMap, ScoreHistory, architecture_map, score_history
from affscore.widgets.first_signature import ScoreSlider
from affscore.widgets.linearized import LinearizedNetwork
from affscore.widgets.redshift import RedshiftImage
from affscore.widgets.relu_1d import ReluRange
from affscore.widgets.symmetries import HiddenAction
from affscore.widgets.theory import CloudThroughActivation

__all__ = [
    "ActivationExplorer",
    "ArchitectureMap",
    "CloudThroughActivation",
    "ComputedWidget",
    "HiddenAction",
    "LinearizedNetwork",
    "RedshiftImage",
    "ReluRange",
    "ScoreHistory",
    "ScoreSlider",
    "architecture_map",
    "score_history",
]
