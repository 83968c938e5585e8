"""Checks, centring and scaling of samples, before anything is computed from them.

All arithmetic is in float64, whatever the dtype of the input. Dividing by a power of two is exact and keeps squares
from overflowing or underflowing. NumPy arrays and torch tensors are handled alike (:mod:`affscore.arrays`).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from affscore.arrays import constant_of, double, is_tensor, namespace

__all__ = [
    "STILL", "centre", "check_pair", "check_samples", "constant", "exponent", "largest_magnitude", "power_of_two",
    "rounding_of",
]  # fmt: skip

#: A channel or direction that varies by at most this many units of rounding counts as constant.
STILL = 8
_DTYPES = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
    "uint8",
)  # fmt: skip


def check_samples(value: Any, name: str) -> Any:
    """Return ``value`` as an (n, d) array or tensor of its own dtype; raise ValueError or TypeError otherwise."""
    samples = _tensor(value, name) if is_tensor(value) else _array(value, name)
    if samples.ndim == 1:
        samples = samples[:, None]
    if samples.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(samples.shape)}; it should be (n, d) or (n,).")
    if samples.shape[0] < 2:
        raise ValueError(f"{name} has n = {samples.shape[0]} samples; a covariance needs n >= 2.")
    if samples.shape[1] < 1:
        raise ValueError(f"{name} has shape {tuple(samples.shape)}; it should have at least one column.")
    held = constant_of(samples)
    xp = namespace(held)
    if not all(bool(xp.isfinite(end)) for end in (held.min(), held.max())):
        bad = int((~xp.isfinite(held)).sum())
        raise ValueError(f"{name} holds {bad} values that are NaN or infinite; all should be finite.")
    return samples


def _array(value: Any, name: str) -> np.ndarray:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} is a masked array with masked entries; leave out those samples, or fill them.")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # a list of tensors that need a gradient
        raise TypeError(f"{name} should be an array or tensor of real numbers, but it is {value!r:.80}.") from error
    if array.dtype.name not in _DTYPES:
        raise TypeError(
            f"{name} should be an array or tensor of real numbers of at least 16 bits or bytes, but it has dtype "
            f"{array.dtype}: {value!r:.80}."
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _tensor(value: Any, name: str) -> Any:
    torch = sys.modules["torch"]
    if value.layout is not torch.strided or value.is_nested or value.is_quantized or value.is_meta:
        raise TypeError(f"{name} is a sparse, nested, quantised or meta tensor; it should be dense and hold values.")
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise TypeError(f"{name} has dtype {value.dtype}; it should hold real numbers of at least 16 bits or bytes.")
    # Few operators of torch accept unsigned numbers of more than eight bits.
    return double(value) if dtype in ("uint16", "uint32", "uint64") else value


def check_pair(x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> tuple[Any, Any]:
    """Return both values as in :func:`check_samples`, as tensors if one is; their shapes and devices must agree."""
    x, y = map(check_samples, (x, y), names)
    one, other = names
    if x.shape != y.shape:
        raise ValueError(
            f"{one} has shape {tuple(x.shape)} and {other} has shape {tuple(y.shape)}; they should be the same, "
            f"one row of {other} for each row of {one}."
        )
    if is_tensor(x) or is_tensor(y):
        torch = sys.modules["torch"]
        x, y = (v if is_tensor(v) else _tensor(torch.from_numpy(np.array(v, order="C")), "") for v in (x, y))
        if x.device != y.device:
            raise ValueError(f"{one} is on {x.device} and {other} is on {y.device}; they should be on the same device.")
    return x, y


def largest_magnitude(value: Any) -> Any:
    """The largest magnitude in each column."""
    value, xp = constant_of(value), namespace(value)
    return xp.maximum(-xp.amin(value, axis=0), xp.amax(value, axis=0))


def exponent(largest: Any) -> Any:
    """The exponent of the smallest power of two above the largest magnitude: dividing by that power is exact.

    It is clipped to [-1000, 1000], so that the power and its inverse are representable.
    """
    top, xp = largest.max(), namespace(largest)
    return xp.where(top > 0, xp.clip(xp.frexp(top)[1], -1000, 1000), 0)


def power_of_two(power: Any) -> Any:
    """``2 ** power`` in float64. Multiplying by it is as exact as ``ldexp`` and ten times as fast."""
    one = power.new_ones((), dtype=sys.modules["torch"].float64) if is_tensor(power) else np.float64(1)
    return namespace(power).ldexp(one, power)


def rounding_of(value: Any) -> Any:
    """The size of rounding errors in each column: half a unit in the last place of its root mean square.

    The unit is that of the dtype of ``value``; integers count as float64. The result is float64 of shape (d,).

    >>> rounding_of(np.array([[1.0, 8.0], [1.0, 8.0]], dtype=np.float32)) * 2**24
    array([1., 8.])
    """
    xp, wide = namespace(value), double(constant_of(value))
    real = value.is_floating_point() if is_tensor(value) else value.dtype.kind == "f"
    eps = float(xp.finfo(value.dtype if real else xp.float64).eps)
    largest = largest_magnitude(wide)
    scale = xp.where(largest > 0, largest, 1.0)
    if bool(((scale > 1e-140) & (scale < 1e140)).all()):  # no square overflows
        return eps / 2 * xp.sqrt(xp.mean(xp.square(wide), axis=0))
    return eps / 2 * scale * xp.sqrt(xp.mean(xp.square(wide / scale), axis=0))


def constant(spread: Any, rounding: Any) -> Any:
    """The mask of constant channels: their samples differ from the mean by at most :data:`STILL` times the rounding.

    The same rule holds for arrays and for activations; ``rounding`` comes from :func:`rounding_of` or
    :func:`affscore.pooling.rounding`. :mod:`affscore.score` estimates how rounding changes the score of the others.
    """
    return spread <= STILL * rounding


def centre(value: Any, rounding: Any = None) -> tuple[Any, Any, Any]:
    """Centred float64 samples of magnitude about 1, their mean, and the exponent of the power of two divided out.

    Channels that vary only by ``rounding``, by default that of the dtype, become exactly 0 (:func:`constant`).
    """
    limits = rounding_of(value) if rounding is None else rounding
    wide, xp = double(value), namespace(value)
    outer = exponent(largest_magnitude(wide))
    centred = wide * power_of_two(-outer)
    mean = xp.mean(centred, axis=0)
    centred -= mean
    # For data far from 0 the first mean is rounded itself; a second pass removes the remainder.
    rest = xp.mean(centred, axis=0)
    centred -= rest
    spread = largest_magnitude(centred)
    still = constant(spread, limits * power_of_two(-outer))
    if bool(still.any()):
        centred = xp.where(still, 0.0, centred)
    inner = exponent(spread)
    centred *= power_of_two(-inner)
    return centred, (mean + rest) * power_of_two(outer), outer + inner
