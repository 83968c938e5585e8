"""Intertwiner groups: which matrices pass through an activation.

A matrix ``A`` is an intertwiner of an activation ``sigma``, applied to each coordinate of ``x``, if there is a matrix
``phi(A)`` with ``sigma(A x) = phi(A) sigma(x)`` for every ``x``, both invertible. By Theorem E.14 all of them are a
permutation times a diagonal matrix unless sigma is affine, so one channel decides.

*   :func:`intertwiner` gives the group of an activation: sample it, test membership, apply ``phi``.
*   :func:`find_intertwiner` finds the group of any function of one number from its values, or says why it cannot.

What they do to networks is in :mod:`affscore_book.symmetries.action`.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, section 3.1 and appendix E.2. Table 1 is extended to the whole catalogue, and to PReLU
with a slope for each channel; the detector is ours.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from affscore_book.activations.sweeps import CATALOGUE, Activation, Function, lookup

__all__ = [
    "Finding",
    "GeneralLinear",
    "Intertwiner",
    "Monomial",
    "PReLUGroup",
    "defect",
    "find_intertwiner",
    "intertwiner",
    "passing",
    "violations",
]


# ------------------------------------------------------------------------------------------------ the groups


class Intertwiner(abc.ABC):
    """The intertwiner group of an activation: its elements are (n, n) matrices A with sigma(A x) = phi(A) sigma(x).

    Columns: A acts on a column ``x``. Samples in rows, ``X`` of shape (N, n), become ``X @ A.T``.
    """

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """What the matrices look like, in words."""

    @property
    @abc.abstractmethod
    def phi_description(self) -> str:
        """What phi does, in words."""

    @abc.abstractmethod
    def _sample(self, n: int, generator: torch.Generator, spread: float) -> Tensor: ...

    @abc.abstractmethod
    def _why_not(self, a: Tensor, tolerance: float) -> str: ...

    @abc.abstractmethod
    def _phi(self, a: Tensor, tolerance: float) -> Tensor: ...

    def sample(
        self,
        n: int,
        generator: torch.Generator | int | None = None,
        *,
        spread: float = 1.0,
        dtype: torch.dtype = torch.float64,
    ) -> Tensor:
        """A random element of shape (n, n).

        Parameters
        ----------
        n
            Number of channels.
        generator
            A generator on the CPU, or a seed. None takes torch's own.
        spread
            Standard deviation of the logarithm of the scalings, where the group has any; 0 leaves them at 1. The
            paper draws lognormal scalings too (section 3.3).
        dtype
            Of the result.

        Raises
        ------
        ValueError
            If ``n`` is less than 1, or ``spread`` is negative or not finite.
        """
        if n < 1:
            raise ValueError(f"n is {n}; it should be at least 1.")
        if not 0 <= spread < math.inf:
            raise ValueError(f"spread is {spread}; it should be a finite number that is at least 0.")
        return self._sample(n, _generator(generator), spread).to(dtype)

    def why_not(self, a: Tensor, tolerance: float | None = None) -> str:
        """Why a matrix does not belong to the group, as a sentence; "" if it does.

        ``tolerance`` is relative; None is 1e-9 in float64 and 1e-5 in lower precision. Raises as :meth:`contains`.
        """
        a, tolerance = _square(a, tolerance)
        return self._why_not(a, tolerance)

    def contains(self, a: Tensor, tolerance: float | None = None) -> bool:
        """Whether the (n, n) matrix ``a`` belongs to the group, up to a relative ``tolerance``.

        Entries below ``tolerance`` times the largest of their row count as 0. None is 1e-9 in float64 and 1e-5 in
        lower precision.

        Raises
        ------
        TypeError
            If ``a`` is not a real tensor of floating point.
        ValueError
            If it is not square, is empty, or holds NaN or infinity.
        """
        return not self.why_not(a, tolerance)

    def phi(self, a: Tensor, tolerance: float | None = None) -> Tensor:
        """phi(a), of the shape, dtype and device of ``a``.

        Raises
        ------
        TypeError, ValueError
            As :meth:`contains`; and ValueError, with the reason, if ``a`` is not in the group.
        """
        a, tolerance = _square(a, tolerance)
        reason = self._why_not(a, tolerance)
        if reason:
            raise ValueError(f"a is not in the group ({self.description}): {reason}")
        return self._phi(a, tolerance)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description}; phi: {self.phi_description})"


def _generator(generator: torch.Generator | int | None) -> torch.Generator:
    if isinstance(generator, int):
        return torch.Generator().manual_seed(generator)
    return torch.default_generator if generator is None else generator


def _square(a: Any, tolerance: float | None) -> tuple[Tensor, float]:
    if not isinstance(a, Tensor) or not a.is_floating_point():
        kind = a.dtype if isinstance(a, Tensor) else type(a).__name__
        raise TypeError(f"a is of type {kind}; it should be a real floating-point tensor.")
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not len(a):
        raise ValueError(f"a has shape {tuple(a.shape)}; it should be (n, n) with n of at least 1.")
    if not bool(a.isfinite().all()):
        raise ValueError(f"a holds {a[~a.isfinite()][0].item()}; all entries should be finite.")
    if tolerance is None:
        tolerance = 1e-9 if a.dtype == torch.float64 else 1e-5
    elif not 0 <= tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}; it should be at least 0 and below 1.")
    return a, tolerance


def _leading(a: Tensor, tolerance: float) -> tuple[Tensor, Tensor, str]:
    """The column and the value of the only entry of each row, and why there is not one in each row and column."""
    size, column = a.abs().max(dim=1)
    for row in range(len(a)):
        if size[row] == 0:
            return column, size, f"row {row} is 0."
        others = int((a[row].abs() > tolerance * size[row]).sum()) - 1
        if others:
            return column, size, f"row {row} has {others + 1} entries that are not 0; it should have one."
    if len(set(column.tolist())) < len(a):
        double = int(column.bincount(minlength=len(a)).argmax())
        return column, size, f"column {double} has entries in several rows; it should have one."
    return column, a[torch.arange(len(a)), column], ""


def _monomial(column: Tensor, value: Tensor) -> Tensor:
    """The matrix with value[i] at (i, column[i])."""
    return torch.zeros(len(value), len(value), dtype=value.dtype, device=value.device).scatter_(
        1, column[:, None], value[:, None]
    )


def _permutation(n: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(n, generator=generator)


def _signs(n: int | tuple[int, ...], generator: torch.Generator) -> Tensor:
    return 2.0 * torch.randint(0, 2, (n,) if isinstance(n, int) else n, generator=generator).double() - 1


def _orthogonal(n: int, generator: torch.Generator) -> Tensor:
    """A random orthogonal matrix, uniform over the group (QR with the signs of R's diagonal)."""
    q, r = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))
    return q * r.diagonal().sign()


@dataclass(frozen=True, repr=False)
class Monomial(Intertwiner):
    """Matrices P D, P a permutation and D diagonal; the entries lambda of D satisfy sigma(lambda x) = b sigma(x).

    Every activation that is not affine has such a group (Theorem E.14), so only one channel has to be looked at.

    Attributes
    ----------
    scalings
        ``"one"``: abs(lambda) = 1; ``"positive"``: any abs(lambda) > 0; ``"discrete"``: powers of ``base``.
    flip
        b for lambda = -1: 1 for an even function, -1 for an odd one, 0 where negative lambda are not allowed.
    degree
        b = lambda**degree for positive lambda.
    base
        The smallest lambda above 1, for ``"discrete"``.
    """

    scalings: str
    flip: int = 0
    degree: float = 1.0
    base: float = 1.0

    @property
    def description(self) -> str:
        start = {
            "one": "",
            "positive": "scalings" if self.flip else "positive scalings",
            "discrete": f"scalings by powers of {self.base:.6g}",
        }[self.scalings]
        if not start:
            return "signed permutations" if self.flip else "permutations"
        signs = " with either sign" if self.flip and self.scalings == "discrete" else ""
        return f"{start}{signs} times permutations"

    @property
    def phi_description(self) -> str:
        if self.scalings == "one":
            return "abs(A)" if self.flip > 0 else "A"
        odd = self.flip == (-1 if self.degree % 2 == 1 else 1) and self.degree == int(self.degree)
        power = f"entries to the power {self.degree:.6g}"
        if self.flip == 0:
            return "A" if self.degree == 1 else ("the permutation" if self.degree == 0 else power)
        if self.degree == 0:
            return "signs of the entries" if self.flip < 0 else "the permutation"
        if abs(self.degree - 1) < 1e-9:
            return "abs(A)" if self.flip > 0 else "A"
        return power if odd else f"{power} of abs(A)" + ("" if self.flip > 0 else ", with their signs")

    def allows(self, value: float, tolerance: float = 1e-9) -> bool:
        """Whether lambda = ``value`` belongs to the group of one channel."""
        if value == 0 or (value < 0 and not self.flip):
            return False
        if self.scalings == "positive":
            return True
        if self.scalings == "one":
            return abs(abs(value) - 1) <= tolerance
        power = math.log(abs(value)) / math.log(self.base)
        return abs(self.base ** round(power) / abs(value) - 1) <= tolerance

    def factor(self, value: Tensor) -> Tensor:
        """b(lambda) for lambda = ``value``, of any shape; ``value`` is not checked."""
        size = torch.ones_like(value) if self.scalings == "one" else value.abs() ** self.degree
        return size * value.sign() if self.flip < 0 else size

    def _sample(self, n: int, generator: torch.Generator, spread: float) -> Tensor:
        column = _permutation(n, generator)
        value = torch.ones(n, dtype=torch.float64)
        if self.scalings == "positive":
            value = (spread * torch.randn(n, generator=generator, dtype=torch.float64)).exp()
        elif self.scalings == "discrete":
            value = self.base ** torch.randint(-1, 2, (n,), generator=generator).double()
        if self.flip:
            value = value * _signs(n, generator)
        return _monomial(column, value)

    def _why_not(self, a: Tensor, tolerance: float) -> str:
        column, value, reason = _leading(a, tolerance)
        if reason:
            return reason
        for row, entry in enumerate(value.tolist()):
            if not self.allows(entry, tolerance):
                return f"the entry {entry:.6g} at ({row}, {int(column[row])}) is not one of its scalings."
        return ""

    def _phi(self, a: Tensor, tolerance: float) -> Tensor:
        column, value, _ = _leading(a, tolerance)
        return _monomial(column, self.factor(value))


@dataclass(frozen=True, repr=False)
class GeneralLinear(Intertwiner):
    """Matrices that mix channels: the groups of affine functions.

    Attributes
    ----------
    kind
        ``"linear"``, sigma(x) = c x: every invertible A, phi(A) = A. ``"affine"``, sigma(x) = a x + c with a and c
        not 0: those with A 1 = 1 (rows that sum to 1), phi(A) = A. ``"constant"``: every invertible A; phi is not
        unique, and the identity serves.
    """

    kind: str = "linear"

    @property
    def description(self) -> str:
        return "invertible matrices" + (" whose rows sum to 1" if self.kind == "affine" else "")

    @property
    def phi_description(self) -> str:
        return "the identity" if self.kind == "constant" else "A"

    def _sample(self, n: int, generator: torch.Generator, spread: float) -> Tensor:
        if self.kind == "affine":
            # A basis that starts with (1, ..., 1); A fixes its first vector.
            ones = torch.ones(n, 1, dtype=torch.float64)
            rest = torch.randn(n, n - 1, generator=generator, dtype=torch.float64)
            basis = torch.linalg.qr(torch.cat([ones, rest], dim=1))[0]
            inner = torch.eye(n, dtype=torch.float64)
            inner[0, 1:] = torch.randn(n - 1, generator=generator, dtype=torch.float64)
            if n > 1:
                inner[1:, 1:] = GeneralLinear()._sample(n - 1, generator, spread)
            return basis @ inner @ basis.T
        scale = (spread * torch.randn(n, generator=generator, dtype=torch.float64)).exp()
        return (_orthogonal(n, generator) * scale) @ _orthogonal(n, generator)

    def _why_not(self, a: Tensor, tolerance: float) -> str:
        values = torch.linalg.svdvals(a)
        if values[-1] <= tolerance * values[0]:
            return "it is singular."
        sums = a.sum(dim=1) - 1
        if self.kind == "affine" and bool((sums.abs() > tolerance * a.abs().sum(dim=1)).any()):
            row = int(sums.abs().argmax())
            return f"row {row} sums to {sums[row].item() + 1:.6g}, not to 1."
        return ""

    def _phi(self, a: Tensor, tolerance: float) -> Tensor:
        return torch.eye(len(a), dtype=a.dtype, device=a.device) if self.kind == "constant" else a.clone()


@dataclass(frozen=True, repr=False)
class PReLUGroup(Intertwiner):
    """The group of a PReLU with a slope for each channel: max(0, x_i) + s_i min(0, x_i).

    Channels of slope 1 are linear: any invertible matrix may mix them, and phi is that matrix. An entry lambda from
    a channel j to a channel i of other slopes is alone in its row and column, and either lambda > 0 and s_i = s_j,
    with phi = lambda, or lambda < 0 and s_i s_j = 1, with phi = lambda s_i. So slope -1 flips in place, and slope 0
    has no flip. This extension of Table 1 is ours.

    Attributes
    ----------
    slopes
        The slope of each channel; slopes within 1e-9 of each other count as equal.
    """

    slopes: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.slopes or not all(math.isfinite(s) for s in self.slopes):
            raise ValueError(f"slopes is {self.slopes}; it should hold at least one number, all of them finite.")

    @property
    def description(self) -> str:
        linear = sum(map(self._linear, self.slopes))
        return (
            f"invertible matrices on the {linear} of {len(self.slopes)} channels with slope 1, on the others scalings "
            "times permutations that keep the slope, or turn it over with a change of sign"
        )

    @property
    def phi_description(self) -> str:
        return "A, and lambda times the slope where a negative lambda turns a slope over"

    @staticmethod
    def _linear(slope: float) -> bool:
        return abs(slope - 1) <= 1e-9

    def partners(self, i: int, sign: int) -> list[int]:
        """The channels j that may feed channel i through a lambda of that sign; those of slope 1 are left out."""
        target = self.slopes[i]
        if self._linear(target):
            return []
        return [
            j
            for j, slope in enumerate(self.slopes)
            if not self._linear(slope) and (abs(slope - target) if sign > 0 else abs(slope * target - 1)) <= 1e-9
        ]

    def _matrix_slopes(self, a: Tensor) -> Tensor:
        if len(a) != len(self.slopes):
            raise ValueError(f"a has shape {tuple(a.shape)}; this PReLU has {len(self.slopes)} channels.")
        return torch.tensor(self.slopes, dtype=a.dtype, device=a.device)

    def _sample(self, n: int, generator: torch.Generator, spread: float) -> Tensor:
        if n != len(self.slopes):
            raise ValueError(f"n is {n}; this PReLU has {len(self.slopes)} channels.")
        a = torch.zeros(n, n, dtype=torch.float64)
        linear = [i for i in range(n) if self._linear(self.slopes[i])]
        if linear:
            index = torch.tensor(linear)
            a[index[:, None], index] = GeneralLinear()._sample(len(linear), generator, spread)
        free = [i for i in range(n) if i not in linear]
        sources: dict[int, int] = {}
        for slope in sorted({self.slopes[i] for i in free}):
            same = [i for i in free if self.slopes[i] == slope]
            for i, k in zip(same, _permutation(len(same), generator).tolist(), strict=True):
                sources[i] = same[k]
        value = (spread * torch.randn(n, generator=generator, dtype=torch.float64)).exp()
        # As many channels of slope 1/s must go to slope s as the other way round, so flips come in pairs (i, j), or
        # alone for slope -1.
        for i in free:
            others = [j for j in self.partners(i, -1) if j >= i]
            if others and torch.rand(1, generator=generator) < 0.5:
                j = others[int(torch.randint(0, len(others), (1,), generator=generator))]
                if value[i] > 0 and value[j] > 0:
                    sources[i], sources[j] = sources[j], sources[i]
                    value[i] = -value[i]
                    if j != i:
                        value[j] = -value[j]
        for i, j in sources.items():
            a[i, j] = value[i]
        return a

    def _why_not(self, a: Tensor, tolerance: float) -> str:
        slopes = self._matrix_slopes(a)
        linear = (slopes - 1).abs() <= 1e-9
        size = a.abs().amax(dim=1, keepdim=True)
        mixed = (a.abs() > tolerance * size) & (linear[:, None] != linear)
        if bool(mixed.any()):
            i, j = mixed.nonzero()[0].tolist()
            return f"the entry at ({i}, {j}) joins a channel of slope 1 to one of another slope."
        if bool(linear.any()):
            reason = GeneralLinear()._why_not(a[linear][:, linear], tolerance)
            if reason:
                return f"on the channels of slope 1, {reason}"
        rest = (~linear).nonzero()[:, 0]
        if not len(rest):
            return ""
        column, value, reason = _leading(a[rest[:, None], rest], tolerance)
        if reason:
            return f"on the channels of other slopes, {reason}"
        for row, col, entry in zip(rest.tolist(), rest[column].tolist(), value.tolist(), strict=True):
            if col not in self.partners(row, 1 if entry > 0 else -1):
                wanted = "equal slopes" if entry > 0 else "slopes whose product is 1"
                return (
                    f"the entry {entry:.6g} at ({row}, {col}) needs {wanted}, and the channels have "
                    f"{self.slopes[row]:.6g} and {self.slopes[col]:.6g}."
                )
        return ""

    def _phi(self, a: Tensor, tolerance: float) -> Tensor:
        slopes = self._matrix_slopes(a)
        linear = (slopes - 1).abs() <= 1e-9
        flipped = torch.where(a < 0, a * slopes[:, None], a)
        kept = a.abs() > tolerance * a.abs().amax(dim=1, keepdim=True)
        return torch.where(linear[:, None], a, flipped) * (kept | linear[:, None]) * (linear[:, None] == linear)


_PERMUTATIONS, _SIGNED = Monomial("one"), Monomial("one", flip=-1)
_EVEN = Monomial("one", flip=1)

# Table 1, for the whole catalogue. What is not listed has permutations only.
_TABLE: dict[str, Intertwiner] = {
    "identity": GeneralLinear(),
    **dict.fromkeys(("relu", "leaky_relu", "prelu", "rrelu"), Monomial("positive", degree=1)),
    "relu_squared": Monomial("positive", degree=2),
    "heaviside": Monomial("positive", degree=0),
    "sign": Monomial("positive", flip=-1, degree=0),
    "abs": Monomial("positive", flip=1, degree=1),
    "square": Monomial("positive", flip=1, degree=2),
    "cube": Monomial("positive", flip=-1, degree=3),
    **dict.fromkeys(
        (
            "tanh", "lecun_tanh", "hardtanh", "softsign", "arctan", "erf", "isru", "sqnl", "symlog", "tanhshrink",
            "hardshrink", "softshrink", "plu", "sine", "gcu",
        ),
        _SIGNED,
    ),
    **dict.fromkeys(("lisht", "gaussian", "ricker", "sq_rbf", "cosine"), _EVEN),
}  # fmt: skip


_FOUND: dict[str, Intertwiner] = {}  # groups of modules, so that they are looked for once


def _leaky(slope: float) -> Intertwiner:
    """The group of max(0, x) + slope min(0, x)."""
    if slope == 1:
        return GeneralLinear()
    return Monomial("positive", flip=1 if slope == -1 else 0, degree=1)


def intertwiner(activation: str | Activation | nn.Module | Function) -> Intertwiner:
    """The intertwiner group of an activation.

    Parameters
    ----------
    activation
        A name in the catalogue of activations, an :class:`Activation`, or a module of ``torch.nn``: ReLU,
        LeakyReLU and PReLU (with one slope or one for each channel) by their slopes, others that the catalogue has
        with default parameters. Any other function goes through :func:`find_intertwiner`.

    Raises
    ------
    ValueError
        If the name is unknown, or the group of a function cannot be told from its values.
    TypeError
        If the argument is neither a name nor callable.

    Examples
    --------
    >>> group = intertwiner("relu")
    >>> group
    Monomial(positive scalings times permutations; phi: A)
    >>> a = group.sample(3, 0)                                            # (3, 3), float64
    >>> x = torch.randn(3, 5, dtype=torch.float64)
    >>> torch.allclose(torch.relu(a @ x), group.phi(a) @ torch.relu(x))
    True
    >>> group.why_not(torch.tensor([[0.8, -0.6], [0.6, 0.8]]))
    'row 0 has 2 entries that are not 0; it should have one.'
    >>> intertwiner(torch.nn.LeakyReLU(-1.0)).phi_description              # the absolute value
    'abs(A)'
    """
    if isinstance(activation, nn.LeakyReLU):
        return _leaky(activation.negative_slope)
    if isinstance(activation, nn.PReLU):
        slopes = activation.weight.detach().double().tolist()
        return _leaky(slopes[0]) if len(slopes) == 1 else PReLUGroup(tuple(slopes))
    if isinstance(activation, nn.Identity):
        return GeneralLinear()
    if isinstance(activation, nn.ReLU):
        return _TABLE["relu"]
    row = lookup(activation)
    if row.name in CATALOGUE:
        return _TABLE.get(row.name, _PERMUTATIONS)
    # A module of torch without parameters is determined by what it prints.
    key = ""
    if isinstance(activation, nn.Module) and type(activation).__module__.startswith("torch.nn."):
        key = "" if [*activation.parameters()] else repr(activation)
    if key in _FOUND:
        return _FOUND[key]
    with torch.no_grad():
        finding = find_intertwiner(row)
    if finding.group is None:
        raise ValueError(f"activation is {row.title}, and its group cannot be told from its values: {finding.reason}")
    if key:
        _FOUND[key] = finding.group
    return finding.group


def defect(
    function: str | Activation | Function,
    a: Tensor,
    b: Tensor,
    *,
    reach: float = 1e3,
    points: int = 1000,
    seed: int = 0,
) -> float:
    """How far sigma(a x) is from b sigma(x) at worst, relative to the terms in it: 0 for equal, at most 1.

    Parameters
    ----------
    function
        Name, activation or function of a float64 tensor.
    a, b
        (n, n) float64 matrices.
    reach, points
        Coordinates of x have random signs and magnitudes between 1e-4 and ``reach``, uniform in the logarithm.

    Returns
    -------
    The largest abs(sigma(a x) - b sigma(x)) / (abs(sigma(a x)) + abs(b) abs(sigma(x))), taken entry by entry.

    Raises
    ------
    ValueError
        If ``a`` and ``b`` are not square and of one size, or ``reach`` is not above 1e-4.

    >>> a = torch.diag(torch.tensor([2.0, 3.0], dtype=torch.float64))
    >>> defect("relu6", a, a, reach=1.0), round(defect("relu6", a, a, reach=100.0), 1)
    (0.0, 0.5)
    """
    a, b = _square(a, None)[0], _square(b, None)[0]
    if a.shape != b.shape:
        raise ValueError(f"a has shape {tuple(a.shape)} and b has {tuple(b.shape)}; both should have one shape.")
    if not 1e-4 < reach < math.inf:
        raise ValueError(f"reach is {reach}; it should be finite and above 1e-4.")
    row = lookup(function)
    generator = torch.Generator().manual_seed(seed)
    shape = (len(a), points)
    size = torch.rand(shape, generator=generator, dtype=torch.float64) * math.log(reach / 1e-4) + math.log(1e-4)
    x = size.exp() * _signs(shape, generator)
    image, value = row(a @ x), row(x)
    scale = image.abs() + b.abs() @ value.abs()
    gap = (image - b @ value).abs()
    return float(torch.where(gap == 0, 0.0, gap / scale).max())


def passing(
    function: str | Activation | Function,
    group: Intertwiner,
    *,
    draws: int = 10,
    size: int = 4,
    tolerance: float = 1e-10,
    seed: int = 0,
) -> int:
    """How many of ``draws`` random elements A of a group pass through a function and come out as the group's phi(A).

    An element (size, size) passes if its :func:`defect` is at most ``tolerance``. Raises ValueError for fewer than one
    draw.

    >>> passing("tanh", intertwiner("tanh")), passing("tanh", intertwiner("relu"))
    (10, 0)
    """
    if draws < 1:
        raise ValueError(f"draws is {draws}; it should be at least 1.")
    elements = [group.sample(size, seed + draw) for draw in range(draws)]
    return sum(defect(function, a, group.phi(a)) <= tolerance for a in elements)


# ---------------------------------------------------------------------------------------------- the detector

_STEPS = 32  # points for each doubling of abs(x)
_DOUBLINGS = 30  # from the end of the domain down to 1e-9 of it
_SHIFTS = 6 * _STEPS  # lambda up to 64
_ENOUGH = 100.0  # a symmetry seen only on a shorter range is not reported


@dataclass(frozen=True)
class Finding:
    """What :func:`find_intertwiner` found.

    Attributes
    ----------
    group
        The group; None if it cannot be told.
    reason
        Why, in a sentence.
    reach
        The values were compared for 0 and abs(x) between ``reach`` / 1e9 and ``reach``.
    """

    group: Intertwiner | None
    reason: str
    reach: float

    def __repr__(self) -> str:
        return f"Finding({'cannot tell' if self.group is None else self.group.description}: {self.reason})"


def find_intertwiner(
    function: str | Activation | Function,
    *,
    domain: tuple[float, float] = (-1e3, 1e3),
    tolerance: float = 1e-9,
) -> Finding:
    """Find the intertwiner group of a function of one number from its values.

    By Theorem E.14 one channel decides: which lambda have a b with ``sigma(lambda x) = b sigma(x)`` for all x? The
    function is evaluated on a grid that is uniform in log abs(x), where a scaling is a shift. One counter-example
    disproves a lambda for good. A lambda without one is a symmetry *on the domain*, so the domain has to be wide:
    within (-1, 1) ReLU6 is ReLU.

    Parameters
    ----------
    function
        Maps a float64 tensor of any shape to one of the same shape, entry by entry.
    domain
        Where to look, (low, high) on both sides of 0.
    tolerance
        Relative error of the function's values, 1e-9 for float64; take 1e-5 for a function that computes in
        float32. A lambda whose violation is between this and 1000 times as much is not decided.

    Returns
    -------
    Finding
        Without a group where the function gives NaN, is noisy or random, or has a symmetry on a domain that does not
        reach 100 on both sides. Groups of discrete scalings are found for factors between 1.02 and 64.

    Raises
    ------
    ValueError
        If ``domain`` or ``tolerance`` makes no sense, or the function changes the shape.

    Examples
    --------
    >>> find_intertwiner("relu_squared").group
    Monomial(positive scalings times permutations; phi: entries to the power 2)
    >>> find_intertwiner(lambda x: x.clamp(0, 6), domain=(-2.0, 2.0)).group is None
    True
    >>> find_intertwiner(lambda x: x.clamp(0, 6)).group
    Monomial(permutations; phi: A)
    """
    row = lookup(function)
    low, high = map(float, domain)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"domain is {domain}; it should be (low, high), finite, with low < high.")
    if not 0 < tolerance <= 1e-3:
        raise ValueError(f"tolerance is {tolerance}; it should be above 0 and at most 0.001.")
    reach = min(-low, high)
    if reach <= 0:
        return Finding(None, f"the domain ({low:g}, {high:g}) is not on both sides of 0.", 0.0)
    size = reach * 2.0 ** (-torch.arange(_DOUBLINGS * _STEPS, -1, -1, dtype=torch.float64) / _STEPS)
    values, zero = _evaluate(row, torch.stack([size, -size])), float(_evaluate(row, torch.zeros(1))[0])
    for x, y in ((size, values[0]), (-size, values[1])):
        if bool(y.isnan().any()):
            return Finding(None, f"the function is NaN at x = {x[y.isnan()][0].item():.6g}.", reach)
    if not math.isfinite(zero):
        return Finding(None, f"the function is {zero} at 0.", reach)
    finite = values.isfinite().all(dim=0)
    if not bool(finite.all()):
        if not bool(finite[: len(finite) // 2].all()):
            at = size[~finite][0].item()
            return Finding(None, f"the function is infinite at x = {at:.6g} or {-at:.6g}.", reach)
        keep = int((~finite).nonzero()[0, 0])
        size, values, reach = size[:keep], values[:, :keep], size[keep - 1].item()
    trouble = _noise(row, size, values, tolerance)
    if trouble:
        return Finding(None, trouble, reach)
    return _classify(row, _Values(size, values, zero, tolerance), reach)


def _evaluate(row: Activation, x: Tensor) -> Tensor:
    y = row(x)
    if not isinstance(y, Tensor) or y.shape != x.shape:
        shape = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"function gave {shape} for an input of shape {tuple(x.shape)}; it should keep the shape.")
    return y.detach().double()


def _noise(row: Activation, size: Tensor, values: Tensor, tolerance: float) -> str:
    """Why the values cannot be trusted to the tolerance, or ""."""
    x = torch.stack([size, -size])
    if not torch.equal(_evaluate(row, x), values):
        return "the function is random: it gave two values for one x."
    # In another arrangement; with a tolerance, because the ends of an array may be computed by other instructions.
    again = _evaluate(row, x.flatten().flip(0)).flip(0).reshape(values.shape)
    if not torch.allclose(again, values, rtol=tolerance, atol=tolerance * float(values.abs().max())):
        return "the function does not work entry by entry: its value at one x depends on others."
    some = size[(size <= 10) & (size >= size[-1] * 1e-3)][::2]
    some = torch.cat([some, -some])
    # Second differences over a ten-millionth of x: nothing but rounding is left of a piecewise smooth function.
    left, middle, right = (_evaluate(row, some * (1 + shift)) for shift in (-1e-7, 0.0, 1e-7))
    total = left.abs() + 2 * middle.abs() + right.abs()
    change = (left - 2 * middle + right).abs()[total > 0] / total[total > 0]
    noise = float(change.quantile(0.75)) if len(change) else 0.0
    if noise > tolerance:
        return f"the values are noisy: they waver by {noise:.1g} of their size, and the tolerance is {tolerance:.1g}."
    return ""


@dataclass(frozen=True)
class _Values:
    """A function on a grid: sizes (m,), values (2, m) at size and at -size, the value at 0."""

    size: Tensor
    values: Tensor
    zero: float
    tolerance: float

    def compare(self, before: Tensor, after: Tensor, envelope: Tensor, envelope_after: Tensor) -> tuple[float, float]:
        """The violation of after = b before, relative, and b; arrays are (2, k)."""
        at = int(before.abs().argmax())
        pivot, image = before.flatten()[at].item(), after.flatten()[at].item()
        b = image / pivot if pivot else math.nan
        if not b or not math.isfinite(b):
            return 1.0, math.nan
        gap = (after - b * before).abs()
        scale = after.abs() + abs(b) * before.abs()
        # Rounding of what the function subtracts inside, and underflow.
        floor = 64 * 2.3e-16 * (envelope_after + abs(b) * envelope) + 1e-290 * (1 + abs(b))
        worst = float((((gap - floor).clamp(min=0)) / scale.clamp(min=1e-300)).max())
        if self.zero:
            worst = max(worst, abs(1 - b) / (1 + abs(b)))
        return worst, b

    @cached_property
    def envelope(self) -> Tensor:
        """The largest abs(value) at or below each size, on either side."""
        return self.values.abs().amax(dim=0).clamp(min=abs(self.zero)).cummax(dim=0).values

    def shifted(self, shift: int, flip: bool) -> tuple[float, float]:
        """Violation and b for lambda = +-2^(shift / _STEPS), shift >= 0."""
        count = len(self.size) - shift
        after = self.values.flip(0) if flip else self.values
        envelope = self.envelope
        return self.compare(self.values[:, :count], after[:, shift:], envelope[:count], envelope[shift:])

    def scaled(self, row: Activation, value: float) -> tuple[float, float]:
        """Violation and b for lambda = value, which need not be on the grid; abs(value) >= 1."""
        keep = self.size * abs(value) <= self.size[-1]
        x = self.size[keep] * value
        after = _evaluate(row, torch.stack([x, -x]))
        envelope = self.envelope[keep]
        larger = after.abs().amax(dim=0).cummax(dim=0).values.maximum(envelope)
        return self.compare(self.values[:, keep], after, envelope, larger)


def _classify(row: Activation, found: _Values, reach: float) -> Finding:
    size, values, zero, tolerance = found.size, found.values, found.zero, found.tolerance
    envelope = found.envelope
    top = envelope[-1].item()

    def seen(group: Intertwiner, reason: str) -> Finding:
        if reach < _ENOUGH:
            text = f"up to {reach:.3g} {reason}, but only a domain of +-{_ENOUGH:g} or more would show a bend far out."
            return Finding(None, text, reach)
        return Finding(group, f"{reason} up to {reach:.3g}.", reach)

    if bool(((values - zero).abs() <= tolerance * abs(zero)).all()):
        return seen(GeneralLinear("constant"), "it is constant")
    slope, middle = (values[0, -1] - values[1, -1]) / (2 * reach), (values[0, -1] + values[1, -1]) / 2
    lines = middle + slope * torch.stack([size, -size])
    rounding = 64 * 2.3e-16 * top
    gaps = (values - lines).abs()
    gap = float(torch.where(gaps <= rounding + 1e-290, 0.0, gaps / (values.abs() + lines.abs())).max())
    if gap <= tolerance and abs(zero - middle) <= rounding + tolerance * abs(zero):
        if float(abs(middle)) <= max(rounding, tolerance * float(abs(slope * size[0]))):
            return seen(GeneralLinear(), "it is a straight line through 0")
        return seen(GeneralLinear("affine"), "it is a straight line that misses 0")

    positive = [found.shifted(shift, flip=False) for shift in range(1, _SHIFTS + 1)]
    # Irrational factors, so that a function that only repeats on the grid does not pass.
    positive += [found.scaled(row, math.exp(power)) for power in (0.1234567, 0.7182818, math.sqrt(2), math.e)]
    worst = max(violation for violation, _ in positive)
    if tolerance < worst <= 1000 * tolerance:
        text = (
            f"scalings violate the rule by {worst:.1g}, neither below {tolerance:.1g} nor above {1000 * tolerance:.1g}."
        )
        return Finding(None, text, reach)
    violation, b = found.shifted(0, flip=True)
    if tolerance < violation <= 1000 * tolerance:
        return Finding(None, f"lambda = -1 violates the rule by {violation:.1g}: too close to call.", reach)
    flip = int(math.copysign(1, b)) if violation <= tolerance and abs(abs(b) - 1) <= 10 * tolerance else 0
    parity = {0: "", 1: "it is even", -1: "it is odd"}[flip]
    if worst <= tolerance:
        degree = _rounded(math.log(positive[_SHIFTS - 1][1]) / math.log(2.0 ** (_SHIFTS / _STEPS)))
        reason = f"it is homogeneous of degree {degree:.6g}" + (f" and {parity[6:]}" if parity else "")
        return seen(Monomial("positive", flip=flip, degree=degree), reason)
    base, b = _lattice(row, found, [violation for violation, _ in positive[:_SHIFTS]])
    if base:
        degree = _rounded(math.log(b) / math.log(base))
        reason = f"it repeats when x is multiplied by {base:.6g}" + (f", and {parity}" if parity else "")
        return seen(Monomial("discrete", flip=flip, degree=degree, base=base), reason)
    if flip:
        return seen(Monomial("one", flip=flip), parity)
    negative = [found.shifted(shift, flip=True)[0] for shift in range(1, _SHIFTS + 1)]
    if min(negative) <= tolerance:
        power = 2.0 ** ((1 + negative.index(min(negative))) / _STEPS)
        return Finding(
            None, f"lambda = {-power:.6g} is a symmetry and -1 is not; such groups have no name here.", reach
        )
    return Finding(_PERMUTATIONS, f"every other lambda has a counter-example with abs(x) up to {reach:.3g}.", reach)


def _rounded(degree: float) -> float:
    """The whole number that a degree is up to rounding, else the degree."""
    return float(round(degree)) if abs(degree - round(degree)) < 1e-7 else degree


def _lattice(row: Activation, found: _Values, violations: list[float]) -> tuple[float, float]:
    """The smallest lambda > 1 that is a symmetry, and its b; (0, 0) if there is none up to 64."""

    padded = [1.0, *violations, 1.0]
    dips = [i for i in range(1, len(padded) - 1) if padded[i] <= min(padded[i - 1], padded[i + 1]) and padded[i] < 0.5]
    for shift in dips[:16]:
        # Ternary search: near the right lambda the violation has the shape of a V.
        low, high = math.log(2) * (shift - 1) / _STEPS, math.log(2) * (shift + 1) / _STEPS
        for step in range(80):
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            one, other = (found.scaled(row, math.exp(power))[0] for power in (left, right))
            low, high = (low, right) if one <= other else (left, high)
            if step == 15 and min(one, other) > 0.01:
                break  # a dip that does not reach 0
        power = (low + high) / 2
        for value in (2.0 ** (shift / _STEPS), float(round(math.exp(power), 9)), math.exp(power)):
            violation, b = found.scaled(row, value)
            if violation <= found.tolerance and b > 0 and value > 1.01:
                return value, b
    return 0.0, 0.0


def violations(function: str | Activation | Function, factors: Any, *, reach: float = 1e3) -> Tensor:
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
    row = lookup(function)
    factors = torch.as_tensor(factors, dtype=torch.float64)
    if not bool(((factors != 0) & factors.isfinite()).all()):
        raise ValueError("factors holds 0 or a number that is not finite; a symmetry is invertible.")
    size = reach * 2.0 ** (-torch.arange(_DOUBLINGS * _STEPS, -1, -1, dtype=torch.float64) / _STEPS)
    values = _evaluate(row, torch.stack([size, -size]))
    keep = values.isfinite().all(dim=0)
    zero = float(_evaluate(row, torch.zeros(1))[0])
    found = _Values(size[keep], values[:, keep], zero, 1e-9)
    larger = torch.where(factors.abs() < 1, 1 / factors, factors)
    result = [found.scaled(row, value)[0] for value in larger.flatten().tolist()]
    return torch.tensor(result, dtype=torch.float64).reshape(factors.shape)
