"""Features as the measures take them: checked, and their channels brought to mean 0 and norm 1.

Channels that do not vary have no direction; they are found here, reported and not compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["as_samples", "checked", "checked_pair", "square_sum", "unit_channels", "unit_live_channels", "unit_matrix"]


def checked(value: Any, name: str, least: int = 2) -> Tensor:
    """``value`` as a tensor of shape (n, d) or (n, C, H, W), or an error that says what it should have been."""
    try:
        tensor = value.detach() if isinstance(value, Tensor) else torch.from_numpy(np.array(value, order="C"))
    except TypeError as error:
        raise TypeError(f"{name} should be an array or tensor of real numbers, but it is {value!r:.80}.") from error
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{name} has dtype {tensor.dtype}; it should hold real numbers.")
    if tensor.ndim not in (2, 4) or 0 in tensor.shape[1:]:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}; it should be (n, channels) or (n, channels, height, width), "
            "each at least 1."
        )
    if tensor.shape[0] < least:
        raise ValueError(f"{name} has n = {tensor.shape[0]} samples; this measure needs n >= {least}.")
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        raise ValueError(f"{name} holds {bad} values that are NaN or infinite; all should be finite.")
    return tensor


def checked_pair(x: Any, y: Any, least: int = 2) -> tuple[Tensor, Tensor]:
    """Two checked features of the same samples, on the device of the first."""
    x, y = checked(x, "x", least), checked(y, "y", least)
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} samples and y has {len(y)}; row i of both should belong to the same sample.")
    return x, y.to(x.device)


def as_samples(x: Any) -> Tensor:
    """Every pixel of every feature map as a sample of its own.

    (n, C, H, W) to (n H W, C), pixels of an image after each other; (n, d) stays as it is.

    >>> as_samples(torch.zeros(5, 16, 8, 8)).shape
    torch.Size([320, 16])
    """
    x = checked(x, "x", 1)
    return x if x.ndim == 2 else x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def square_sum(x: Tensor) -> float:
    """The squared Frobenius norm."""
    return float(torch.linalg.vector_norm(x)) ** 2


def _others(x: Tensor) -> tuple[int, ...]:
    """All axes but that of the channels."""
    return (0, 2, 3)[: x.ndim - 1]


def _largest(x: Tensor) -> Tensor:
    """The largest magnitude in each channel, of shape (1, C) or (1, C, 1, 1)."""
    return x.abs().amax(_others(x), keepdim=True)


def _live(x: Tensor, name: str, centred: bool) -> tuple[Tensor, Tensor]:
    """``x`` in float64, centred if asked, and which of its channels vary (or differ from 0), bool (C,).

    A channel that varies by no more than rounding in the precision of ``x`` counts as constant.
    """
    wide = x.double()
    if centred:
        rounding = 4 * min(torch.finfo(x.dtype).eps, 1.2e-7) if x.is_floating_point() else 1e-15
        before = _largest(wide)
        for _ in range(2):  # the second pass removes what rounding leaves of a large mean
            wide = wide - wide.mean(_others(wide), keepdim=True)
        alive = _largest(wide) > rounding * before
    else:
        alive = _largest(wide) > 0
    if not bool(alive.any()):
        what = "vary" if centred else "differ from 0"
        raise ValueError(f"{name} has no channels that {what}; there is nothing to compare.")
    return wide, alive.flatten()


def unit_live_channels(x: Tensor, name: str, centred: bool = True) -> tuple[Tensor, Tensor]:
    """The live channels, each of norm 1, float64, and which channels those are, bool (C,)."""
    wide, alive = _live(x, name, centred)
    wide = wide[:, alive]
    return wide / torch.linalg.vector_norm(wide, dim=_others(wide), keepdim=True), alive


def unit_matrix(x: Tensor, name: str, centred: bool = True) -> tuple[Tensor, Tensor]:
    """All channels, their Frobenius norm together 1, float64, and which of them are live.

    Channels below rounding stay in: a rotation may have spread a small one over them all.
    """
    wide, alive = _live(x, name, centred)
    return wide / torch.linalg.vector_norm(wide), alive


def unit_channels(x: Any) -> Tensor:
    """Channels with mean 0 and norm 1 over samples and pixels; channels that do not vary become 0.

    This removes positive scales and translations of channels (the tilde of the paper's section 5).

    Returns float64, the shape of ``x``. Raises ValueError for wrong shapes, values that are not finite, or if no
    channel varies.

    >>> unit_channels([[3.0, 1.0], [-3.0, 1.0]])
    tensor([[ 0.7071,  0.0000],
            [-0.7071,  0.0000]], dtype=torch.float64)
    """
    x = checked(x, "x")
    values, alive = unit_live_channels(x, "x")
    result = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    result[:, alive] = values
    return result
