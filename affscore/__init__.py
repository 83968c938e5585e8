"""How non-linear is a neural network? The affinity score and non-linearity signatures."""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from affscore.affine import AffineMap, affine_map
from affscore.errors import AffscoreError, AffscoreWarning
from affscore.score import affinity_score, paired_affinity_score, wasserstein2

if TYPE_CHECKING:
    from affscore.measuring import signature
    from affscore.signatures import Signature, SignatureError
    from affscore.zoo.datasets import load_dataset
    from affscore.zoo.models import load_model

__version__ = metadata.version("affscore")

__all__ = [
    "AffineMap",
    "AffscoreError",
    "AffscoreWarning",
    "Signature",
    "SignatureError",
    "affine_map",
    "affinity_score",
    "load_dataset",
    "load_model",
    "paired_affinity_score",
    "signature",
    "wasserstein2",
]

_LATER = {
    "Signature": "affscore.signatures",
    "SignatureError": "affscore.signatures",
    "load_dataset": "affscore.zoo.datasets",
    "load_model": "affscore.zoo.models",
    "signature": "affscore.measuring",
}


def __getattr__(name: str) -> Any:
    """Import a name that needs torch, or more, on its first use."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
