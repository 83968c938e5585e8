"""Samples before anything is computed of them: checked, centred and scaled, on one thread.

All is float64 from here on, whatever the dtype of the input. Powers of two are taken out, which is exact, so that
squares neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "centre",
    "check_pair",
    "check_samples",
    "exponent",
    "largest_magnitude",
    "on_one_thread",
    "power_of_two",
    "steady",
]

_DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
)  # fmt: skip
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run the block's CPU linear algebra on one thread, so that its bits do not depend on the caller's settings."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


#: Decorates a function so that it runs on one thread.
on_one_thread = _one_thread()


def check_samples(value: Any, name: str) -> Tensor:
    """``value`` as an (n, d) tensor of its own dtype, or an error that says what it should have been."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} is a masked array with masked entries; leave out those samples, or fill them.")
    try:
        tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value, order="C"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} should be an array or tensor of real numbers, but it is {value!r:.80}.") from error
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"{name} is a sparse, nested, quantised or meta tensor; it should hold all its numbers.")
    if tensor.dtype not in (*_DTYPES, *_UNSIGNED):
        raise TypeError(f"{name} has dtype {tensor.dtype}; it should hold real numbers of at least 16 bits or bytes.")
    if tensor.dtype in _UNSIGNED:  # which hardly any operator of torch takes
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


def check_pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both as (n, d) tensors of their own dtype, or an error that says what they should have been."""
    x, y = check_samples(x, "x"), check_samples(y, "y")
    if x.shape != y.shape:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and y has shape {tuple(y.shape)}; they should be the same, "
            "one row of y for each row of x."
        )
    if x.device != y.device:
        raise ValueError(f"x is on {x.device} and y is on {y.device}; they should be on the same device.")
    return x, y


def largest_magnitude(value: Tensor) -> Tensor:
    """The largest magnitude in each column."""
    value = value.detach()
    return torch.maximum(-value.amin(dim=0), value.amax(dim=0))  # a tenth of the time of aminmax(dim=0)


def exponent(largest: Tensor) -> Tensor:
    """The exponent of the power of two just above the largest magnitude: dividing by that power is exact.

    At most 1000 either way, so that the power and its inverse are floating-point numbers.
    """
    top = largest.max()
    return torch.where(top > 0, torch.frexp(top).exponent.clamp(-1000, 1000), 0)


def power_of_two(exponent: Tensor) -> Tensor:
    """As a float64 number: a product with it takes a tenth of the time of ``torch.ldexp``, and is as exact."""
    return torch.ldexp(torch.ones((), dtype=torch.float64, device=exponent.device), exponent)


def _unit(value: Tensor) -> float:
    """The share of its size by which a constant channel may vary."""
    return 4 * min(torch.finfo(value.dtype).eps, 1.2e-7) if value.is_floating_point() else 4 * 2.0**-52


def steady(value: Tensor, rounding: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Samples in which channels that vary by no more than ``rounding`` are constant, and bool (d,): which these are.

    Where none varies by more than the largest of these limits, none is told from another one's rounding. Last, bool
    (d,): which of these :func:`centre` would take for a signal, because what pooling left of them is itself small.
    """
    spread = largest_magnitude(value - value.mean(dim=0))
    constant = (spread <= rounding) | (spread.max() <= rounding.max())
    signal = constant & (spread > _unit(value) * largest_magnitude(value))
    return torch.where(constant, value[0], value), constant, signal


def centre(value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Centred float64 samples of magnitude about 1, their mean, and the exponent of the power of two taken out.

    Channels that vary by no more than rounding in the precision of their input become exactly 0.
    """
    rounding = _unit(value)
    wide = value.to(torch.float64)
    largest = largest_magnitude(wide)
    outer = exponent(largest)
    centred = wide * power_of_two(-outer)
    mean = centred.mean(dim=0)
    centred -= mean
    # The first mean of data far from 0 is itself rounded; the second pass removes what that leaves.
    rest = centred.mean(dim=0)
    centred -= rest
    spread = largest_magnitude(centred)
    constant = spread <= rounding * power_of_two(-outer) * largest
    if bool(constant.any()):
        centred = centred.masked_fill(constant, 0.0)
    inner = exponent(spread)
    return centred * power_of_two(-inner), (mean + rest) * power_of_two(outer), outer + inner
