"""Find the intertwiner group of any function of one number from its values, or say why they cannot tell.

How, says :func:`find_intertwiner`. The detector is ours; Theorem E.14, on which it rests, is of Godfrey et al. 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from affscore_book.activations.catalogue import ActivationFunction, Function, lookup
from affscore_book.symmetries.groups import GeneralLinear, Intertwiner, Monomial

__all__ = ["Finding", "find_intertwiner", "violations"]

STEPS = 32  # points for each doubling of abs(x)
DOUBLINGS = 30  # from the end of the domain down to 1e-9 of it
LARGEST = 6 * STEPS  # lambda up to 64, in steps
ENOUGH = 100.0  # a symmetry seen only on a shorter range is not reported
TOLERANCE = 1e-9  # relative error of values; a violation between this and 1000 times as much decides nothing
ROUNDING = 64 * 2.3e-16  # of what a function adds and subtracts inside
SMALLEST = 1e-290  # below, numbers lose digits


@dataclass(frozen=True)
class Finding:
    """What :func:`find_intertwiner` found.

    Attributes
    ----------
    group
        The group; None if it cannot be told.
    reason
        Why, in a sentence.
    """

    group: Intertwiner | None
    reason: str


def find_intertwiner(
    function: str | ActivationFunction | Function, *, domain: tuple[float, float] = (-1e3, 1e3)
) -> Finding:
    """Find the intertwiner group of a function of one number from its values.

    By Theorem E.14 one channel decides: which lambda have a b with ``sigma(lambda x) = b sigma(x)`` for all x? The
    function is evaluated on a grid that is uniform in log abs(x). One counter-example disproves a lambda for good. A
    lambda without one is a symmetry *on the domain*, so the domain has to be wide: within (-1, 1) ReLU6 is ReLU.

    Parameters
    ----------
    function
        Maps a float64 tensor of any shape to one of the same shape, entry by entry, with values good to 1e-9.
    domain
        Where to look, (low, high) on both sides of 0.

    Returns
    -------
    Finding
        Without a group where the function gives NaN, is noisy or random, or has a symmetry on a domain that does not
        reach 100 on both sides. Groups of the powers of one lambda are not looked for: a function such as
        x (2 + sin(log(abs(x)))) has one, and counts as having no scalings.

    Raises
    ------
    ValueError
        If ``domain`` makes no sense, or the function changes the shape.

    Examples
    --------
    >>> find_intertwiner("relu_squared").group
    Monomial(positive scalings times permutations; phi: entries to the power 2)
    >>> find_intertwiner(lambda x: x.clamp(0, 6), domain=(-2.0, 2.0)).group is None
    True
    >>> find_intertwiner(lambda x: x.clamp(0, 6)).group
    Monomial(permutations; phi: A)
    """
    low, high = map(float, domain)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"domain is {domain}; it should be (low, high), finite, with low < high.")
    reach = min(-low, high)
    if reach <= 0:
        return Finding(None, f"the domain ({low:g}, {high:g}) is not on both sides of 0.")
    values = _Values.of(lookup(function), reach)
    trouble = _not_finite(values)
    values = values.finite()
    trouble = trouble or _noise(values)
    if trouble:
        return Finding(None, trouble)
    group, reason = _affine(values) or _scalings(values)
    if group is None or group == Monomial("one"):
        return Finding(group, reason)
    reach = values.reach
    if reach >= ENOUGH:
        return Finding(group, f"{reason} up to {reach:.3g}.")
    return Finding(
        None, f"up to {reach:.3g} {reason}, but only a domain of +-{ENOUGH:g} or more would show a bend far out."
    )


@dataclass(frozen=True)
class _Values:
    """A function on a grid: sizes (m,), ascending, x = size and -size (2, m), its values there, and at 0."""

    function: ActivationFunction
    size: Tensor
    x: Tensor
    values: Tensor
    zero: float

    @classmethod
    def of(cls, function: ActivationFunction, reach: float) -> _Values:
        size = reach * 2.0 ** (-torch.arange(DOUBLINGS * STEPS, -1, -1, dtype=torch.float64) / STEPS)
        x = torch.stack([size, -size])
        return cls(function, size, x, _evaluate(function, x), float(_evaluate(function, torch.zeros(1))[0]))

    def finite(self) -> _Values:
        """Up to the first size with an infinite value."""
        wrong = (~self.values.isfinite().all(dim=0)).nonzero()
        keep = int(wrong[0, 0]) if len(wrong) else len(self.size)
        return _Values(self.function, self.size[:keep], self.x[:, :keep], self.values[:, :keep], self.zero)

    @property
    def reach(self) -> float:
        return self.size[-1].item()

    @cached_property
    def envelope(self) -> Tensor:
        """The largest abs(value) at or below each size, on either side."""
        return self.values.abs().amax(dim=0).clamp(min=abs(self.zero)).cummax(dim=0).values

    def violation(self, factor: float) -> tuple[float, float]:
        """How far sigma(factor x) is from b sigma(x) at worst, relative, and b; abs(factor) >= 1."""
        keep = self.size * abs(factor) <= self.size[-1] * (1 + 1e-12)  # rounding must not drop the last point
        before, after = self.values[:, keep], _evaluate(self.function, self.x[:, keep] * factor)
        at = int(before.abs().argmax())
        pivot, image = before.flatten()[at].item(), after.flatten()[at].item()
        b = image / pivot if pivot else math.nan
        if not b or not math.isfinite(b):
            return 1.0, math.nan
        envelope = self.envelope[keep]
        larger = after.abs().amax(dim=0).cummax(dim=0).values.maximum(envelope)
        allowed = ROUNDING * (larger + abs(b) * envelope) + SMALLEST * (1 + abs(b))
        gap = ((after - b * before).abs() - allowed).clamp(min=0)
        worst = float((gap / (after.abs() + abs(b) * before.abs()).clamp(min=1e-300)).max())
        if self.zero:
            worst = max(worst, abs(1 - b) / (1 + abs(b)))
        return worst, b


def _evaluate(function: ActivationFunction, x: Tensor) -> Tensor:
    y = function(x)
    if not isinstance(y, Tensor) or y.shape != x.shape:
        shape = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"function gave {shape} for an input of shape {tuple(x.shape)}; it should keep the shape.")
    return y.detach().double()


def _not_finite(known: _Values) -> str:
    """Why the values cannot be compared, or ""."""
    undefined = known.values.isnan()
    if bool(undefined.any()):
        return f"the function is NaN at x = {known.x[undefined][0].item():.6g}."
    if not math.isfinite(known.zero):
        return f"the function is {known.zero} at 0."
    infinite = ~known.values.isfinite().all(dim=0)
    if bool(infinite[: len(infinite) // 2].any()):  # far out a function may overflow
        at = known.size[infinite][0].item()
        return f"the function is infinite at x = {at:.6g} or {-at:.6g}."
    return ""


def _noise(known: _Values) -> str:
    """Why the values cannot be trusted to the tolerance, or ""."""
    size, x, values = known.size, known.x, known.values
    if not torch.equal(_evaluate(known.function, x), values):
        return "the function is random: it gave two values for one x."
    # In another arrangement; with a tolerance, because the ends of an array may be computed by other instructions.
    again = _evaluate(known.function, x.flatten().flip(0)).flip(0).reshape(values.shape)
    if not torch.allclose(again, values, rtol=TOLERANCE, atol=TOLERANCE * float(values.abs().max())):
        return "the function does not work entry by entry: its value at one x depends on others."
    some = size[(size <= 10) & (size >= size[-1] * 1e-3)][::2]
    some = torch.cat([some, -some])
    # Second differences over a ten-millionth of x: nothing but rounding is left of a piecewise smooth function.
    left, middle, right = (_evaluate(known.function, some * (1 + shift)) for shift in (-1e-7, 0.0, 1e-7))
    total = left.abs() + 2 * middle.abs() + right.abs()
    change = (left - 2 * middle + right).abs()[total > 0] / total[total > 0]
    noise = float(change.quantile(0.75)) if len(change) else 0.0
    if noise > TOLERANCE:
        return f"the values are noisy: they waver by {noise:.1g} of their size, and the tolerance is {TOLERANCE:.1g}."
    return ""


def _affine(known: _Values) -> tuple[Intertwiner, str] | None:
    """The group of a constant or a straight line, and what it is."""
    values, zero = known.values, known.zero
    if bool(((values - zero).abs() <= TOLERANCE * abs(zero)).all()):
        return GeneralLinear("constant"), "it is constant"
    slope, middle = (values[0, -1] - values[1, -1]) / (2 * known.reach), (values[0, -1] + values[1, -1]) / 2
    line = middle + slope * known.x
    rounding = ROUNDING * known.envelope[-1].item()
    gaps = (values - line).abs()
    gap = float(torch.where(gaps <= rounding + SMALLEST, 0.0, gaps / (values.abs() + line.abs())).max())
    if gap > TOLERANCE or abs(zero - middle) > rounding + TOLERANCE * abs(zero):
        return None
    if float(abs(middle)) <= max(rounding, TOLERANCE * float(abs(slope * known.size[0]))):
        return GeneralLinear(), "it is a straight line through 0"
    return GeneralLinear("affine"), "it is a straight line that misses 0"


def _scalings(known: _Values) -> tuple[Intertwiner | None, str]:
    """The group of any other function by its scalings, or None, and why."""
    factors = [2.0 ** (step / STEPS) for step in range(1, LARGEST + 1)]
    positive = [known.violation(factor) for factor in factors]
    # Irrational factors, so that a function that only repeats at powers of 2**(1 / STEPS) does not pass.
    others = [known.violation(math.exp(power))[0] for power in (0.1234567, 0.7182818, math.sqrt(2), math.e)]
    worst = max(*others, *(violation for violation, _ in positive))
    undecided = 1000 * TOLERANCE
    if TOLERANCE < worst <= undecided:
        return (
            None,
            f"scalings violate the rule by {worst:.1g}, neither below {TOLERANCE:.1g} nor above {undecided:.1g}.",
        )
    violation, b = known.violation(-1.0)
    if TOLERANCE < violation <= undecided:
        return None, f"lambda = -1 violates the rule by {violation:.1g}: too close to call."
    flip = int(math.copysign(1, b)) if violation <= TOLERANCE and abs(abs(b) - 1) <= 10 * TOLERANCE else 0
    parity = {0: "", 1: "even", -1: "odd"}[flip]
    if worst <= TOLERANCE:
        degree = _rounded(math.log(positive[-1][1]) / math.log(factors[-1]))
        reason = f"it is homogeneous of degree {degree:.6g}" + (f" and {parity}" if parity else "")
        return Monomial("positive", flip=flip, degree=degree), reason
    if flip:
        return Monomial("one", flip=flip), f"it is {parity}"
    return Monomial("one"), f"every other lambda tried has a counter-example with abs(x) up to {known.reach:.3g}."


def _rounded(degree: float) -> float:
    """The whole number that a degree is up to rounding, else the degree."""
    return float(round(degree)) if abs(degree - round(degree)) < 1e-7 else degree


def violations(function: str | ActivationFunction | Function, factors: Any, *, reach: float = 1e3) -> Tensor:
    """How badly each lambda in ``factors`` fails to be a symmetry of one channel, with the b that suits it.

    The largest abs(sigma(lambda x) - b sigma(x)) / (abs(sigma(lambda x)) + abs(b sigma(x))) for abs(x) and
    abs(lambda x) up to ``reach``, where b is exact at the largest value of sigma; from 0 (a symmetry) to 1. Factors
    below 1 in magnitude are replaced by their inverses, which belong to the same group.

    Parameters
    ----------
    function
        Name, activation or function of a float64 tensor.
    factors
        Numbers other than 0, any shape.

    Returns
    -------
    Float64 tensor of that shape.

    >>> violations("relu", [2.0, -1.0])
    tensor([0., 1.], dtype=torch.float64)
    """
    factors = torch.as_tensor(factors, dtype=torch.float64)
    if not bool(((factors != 0) & factors.isfinite()).all()):
        raise ValueError("factors holds 0 or a number that is not finite; a symmetry is invertible.")
    known = _Values.of(lookup(function), reach).finite()
    larger = torch.where(factors.abs() < 1, 1 / factors, factors)
    result = [known.violation(value)[0] for value in larger.flatten().tolist()]
    return torch.tensor(result, dtype=torch.float64).reshape(factors.shape)
