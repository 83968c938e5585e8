"""Random draws that every run repeats: torch's generators from seeds, and orthogonal matrices from generators."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["as_generator", "random_rotation"]


def as_generator(seed: torch.Generator | int | None) -> torch.Generator:
    """The CPU generator that is given, a new generator for a seed, or torch's default generator for None."""
    if isinstance(seed, int):
        return torch.Generator().manual_seed(seed)
    return torch.default_generator if seed is None else seed


def random_rotation(n: int, generator: torch.Generator | int | None = None) -> Tensor:
    """An orthogonal float64 matrix (n, n), uniform over the orthogonal group: the Q of the QR of a normal matrix.

    ``scipy.stats.ortho_group`` draws the same distribution with NumPy's generators. The chapters' stored results and
    rotated weights were drawn with torch's generators.

    >>> q = random_rotation(4, 0)
    >>> torch.allclose(q @ q.T, torch.eye(4, dtype=torch.float64))
    True
    """
    q, r = torch.linalg.qr(torch.randn(n, n, generator=as_generator(generator), dtype=torch.float64))
    return q * r.diagonal().sign()
