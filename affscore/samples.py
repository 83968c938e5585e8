"""Samples are checked, centred and scaled before anything is computed from them.

All arithmetic is in float64, whatever the dtype of the input. Dividing by a power of two is exact and keeps squares
from overflowing or underflowing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "STILL", "centre", "check_pair", "check_samples", "constant", "exponent", "largest_magnitude", "on_one_thread",
    "power_of_two", "rounding_of",
]  # fmt: skip

#: In units of rounding, the variation up to which a channel, or a direction, is constant.
STILL = 8
_DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
)  # fmt: skip
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run CPU linear algebra on one thread, so that no bit of a result depends on the caller's settings."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


#: Decorator: the function runs on one thread.
on_one_thread = _one_thread()


def check_samples(value: Any, name: str) -> Tensor:
    """``value`` as an (n, d) tensor of its own dtype, or an error that says what it should be."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} is a masked array with masked entries; leave out those samples, or fill them.")
    try:
        if not isinstance(value, Tensor):
            array = np.array(value, order="C")
            value = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} should be an array or tensor of real numbers, but it is {value!r:.80}.") from error
    tensor: Tensor = value
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"{name} is a sparse, nested, quantised or meta tensor; it should be dense and hold values.")
    if tensor.dtype not in (*_DTYPES, *_UNSIGNED):
        raise TypeError(f"{name} has dtype {tensor.dtype}; it should hold real numbers of at least 16 bits or bytes.")
    if tensor.dtype in _UNSIGNED:  # few operators of torch accept these
        tensor = tensor.to(torch.float64)
    if tensor.ndim == 1:
        tensor = tensor[:, None]
    if tensor.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it should be (n, d) or (n,).")
    if tensor.shape[0] < 2:
        raise ValueError(f"{name} has n = {tensor.shape[0]} samples; a covariance needs n >= 2.")
    if tensor.shape[1] < 1:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it should have at least one column.")
    if not all(bool(torch.isfinite(end)) for end in tensor.detach().aminmax()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise ValueError(f"{name} holds {bad} values that are NaN or infinite; all should be finite.")
    return tensor


def check_pair(x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> tuple[Tensor, Tensor]:
    """Both as (n, d) tensors of their own dtype, or an error that says what they should be."""
    x, y = map(check_samples, (x, y), names)
    one, other = names
    if x.shape != y.shape:
        raise ValueError(
            f"{one} has shape {tuple(x.shape)} and {other} has shape {tuple(y.shape)}; they should be the same, "
            f"one row of {other} for each row of {one}."
        )
    if x.device != y.device:
        raise ValueError(f"{one} is on {x.device} and {other} is on {y.device}; they should be on the same device.")
    return x, y


def largest_magnitude(value: Tensor) -> Tensor:
    """The largest magnitude in each column."""
    value = value.detach()
    return torch.maximum(-value.amin(dim=0), value.amax(dim=0))  # a tenth of the time of aminmax(dim=0)


def exponent(largest: Tensor) -> Tensor:
    """The exponent of the smallest power of two above the largest magnitude: dividing by that power is exact.

    It is clamped to [-1000, 1000], so that the power and its inverse are representable.
    """
    top = largest.max()
    return torch.where(top > 0, torch.frexp(top).exponent.clamp(-1000, 1000), 0)


def power_of_two(power: Tensor) -> Tensor:
    """``2 ** power`` in float64. Multiplying by it is as exact as ``torch.ldexp`` and ten times as fast."""
    return torch.ldexp(torch.ones((), dtype=torch.float64, device=power.device), power)


def rounding_of(value: Tensor) -> Tensor:
    """Half a unit in the last place of the root mean square of each column: how far rounding moves its entries.

    It is that of the dtype of ``value``; whole numbers count as float64. Shape (d,), float64.

    >>> rounding_of(torch.tensor([[1.0, 8.0], [1.0, 8.0]])) * 2**24
    tensor([1., 8.], dtype=torch.float64)
    """
    eps = torch.finfo(value.dtype if value.is_floating_point() else torch.float64).eps
    wide = value.detach().to(torch.float64)
    largest = largest_magnitude(wide)
    scale = torch.where(largest > 0, largest, 1.0)  # whose square may overflow
    return eps / 2 * scale * (wide / scale).square().mean(dim=0).sqrt()


def constant(spread: Tensor, rounding: Tensor) -> Tensor:
    """Which channels count as constant: those whose samples leave the mean by at most :data:`STILL` times the rounding.

    This is the one rule, for arrays and for activations; ``rounding`` is that of :func:`rounding_of` or of
    :func:`affscore.pooling.rounding`. :mod:`affscore.score` estimates how far rounding moves the score of the others.
    """
    return spread <= STILL * rounding


def centre(value: Tensor, rounding: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Centred float64 samples of magnitude about 1, their mean, and the exponent of the power they were divided by.

    Channels that vary only by ``rounding``, by default that of the dtype, become exactly 0 (:func:`constant`).
    """
    limits = rounding_of(value) if rounding is None else rounding
    wide = value.to(torch.float64)
    outer = exponent(largest_magnitude(wide))
    centred = wide * power_of_two(-outer)
    mean = centred.mean(dim=0)
    centred -= mean
    # For data far from 0 the first mean is itself rounded; a second pass removes the remainder.
    rest = centred.mean(dim=0)
    centred -= rest
    spread = largest_magnitude(centred)
    still = constant(spread, limits * power_of_two(-outer))
    if bool(still.any()):
        centred = centred.masked_fill(still, 0.0)
    inner = exponent(spread)
    return centred * power_of_two(-inner), (mean + rest) * power_of_two(outer), outer + inner
