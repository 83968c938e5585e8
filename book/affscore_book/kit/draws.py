"""Random draws that every run repeats: torch's generators from seeds, and orthogonal matrices from them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["as_generator", "random_rotation"]


def as_generator(seed: torch.Generator | int | None) -> torch.Generator:
    """A generator on the CPU as it is, one for a seed, or torch's own for None."""
    if isinstance(seed, int):
        return torch.Generator().manual_seed(seed)
    return torch.default_generator if seed is None else seed


def random_rotation(n: int, generator: torch.Generator | int | None = None) -> Tensor:
    """An orthogonal float64 matrix (n, n), uniform over the orthogonal group: Q of QR of a normal matrix.

    ``scipy.stats.ortho_group`` is the same from numpy's generators; the stored results and the weights that the
    chapters move were drawn with torch's.

    >>> q = random_rotation(4, 0)
    >>> torch.allclose(q @ q.T, torch.eye(4, dtype=torch.float64))
    True
    """
    q, r = torch.linalg.qr(torch.randn(n, n, generator=as_generator(generator), dtype=torch.float64))
    return q * r.diagonal().sign()
