"""Intertwiner groups: which matrices pass through an activation.

A matrix ``A`` is an intertwiner of an activation ``sigma``, applied to each coordinate of ``x``, if there is a matrix
``phi(A)`` with ``sigma(A x) = phi(A) sigma(x)`` for every ``x``, both invertible. By Theorem E.14 all of them are a
permutation times a diagonal matrix unless sigma is affine, so one channel decides.

Each class is a kind of group: sample it, test membership, apply ``phi``. Which activation has which is in
:mod:`affscore_book.symmetries.table`, what they do to networks in :mod:`affscore_book.symmetries.action`.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, section 3.1 and appendix E.2, extended to PReLU with a slope for each channel.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from affscore.arguments import whole_number
from affscore_book.kit.checking import square_matrix
from affscore_book.kit.draws import as_generator, random_rotation

__all__ = ["GeneralLinear", "Intertwiner", "Monomial", "PReLUGroup", "single_entries"]


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
    def _why_not(self, a: Tensor) -> str: ...

    @abc.abstractmethod
    def _phi(self, a: Tensor) -> Tensor: ...

    def sample(self, n: int, generator: torch.Generator | int | None = None, *, spread: float = 1.0) -> Tensor:
        """A random element, float64 of shape (n, n).

        Parameters
        ----------
        n
            Number of channels.
        generator
            A generator on the CPU, or a seed. None takes torch's own.
        spread
            Standard deviation of the logarithm of the scalings, where the group has any; 0 leaves them at 1. The
            paper draws lognormal scalings too (section 3.3).

        Raises
        ------
        ValueError
            If ``n`` is less than 1, or ``spread`` is negative or not finite.
        """
        whole_number("n", n, 1)
        if not 0 <= spread < math.inf:
            raise ValueError(f"spread is {spread}; it should be a finite number that is at least 0.")
        return self._sample(n, as_generator(generator), spread)

    def why_not(self, a: Tensor) -> str:
        """Why a matrix does not belong to the group, as a sentence; "" if it does. Raises as :meth:`contains`."""
        return self._why_not(square_matrix("a", a))

    def contains(self, a: Tensor) -> bool:
        """Whether the (n, n) matrix ``a`` belongs to the group, up to rounding.

        Entries below 1e-9 times the largest of their row count as 0; below 1e-5 times in lower precision than float64.

        Raises
        ------
        TypeError
            If ``a`` is not a real tensor of floating point.
        ValueError
            If it is not square, is empty, or holds NaN or infinity.
        """
        return not self.why_not(a)

    def phi(self, a: Tensor) -> Tensor:
        """phi(a), of the shape, dtype and device of ``a``.

        Raises
        ------
        TypeError, ValueError
            As :meth:`contains`; and ValueError, with the reason, if ``a`` is not in the group.
        """
        reason = self.why_not(a)
        if reason:
            raise ValueError(f"a is not in the group ({self.description}): {reason}")
        return self._phi(a)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description}; phi: {self.phi_description})"


def _tolerance(a: Tensor) -> float:
    return 1e-9 if a.dtype == torch.float64 else 1e-5


def _entries(a: Tensor) -> Tensor:
    """Which entries are not 0 beside the largest of their row."""
    return a.abs() > _tolerance(a) * a.abs().amax(dim=1, keepdim=True)


def single_entries(a: Tensor) -> tuple[Tensor, Tensor, str]:
    """Column and value of the only entry of each row, and why not each row and column has just one, or ""."""
    size, column = a.abs().max(dim=1)
    for row, entries in enumerate(_entries(a).sum(dim=1).tolist()):
        if size[row] == 0:
            return column, size, f"row {row} is 0."
        if entries > 1:
            return column, size, f"row {row} has {entries} entries that are not 0; it should have one."
    if len(set(column.tolist())) < len(a):
        double = int(column.bincount(minlength=len(a)).argmax())
        return column, size, f"column {double} has entries in several rows; it should have one."
    return column, a[torch.arange(len(a)), column], ""


def _from_entries(column: Tensor, value: Tensor) -> Tensor:
    """The matrix with value[i] at (i, column[i])."""
    a = torch.zeros(len(value), len(value), dtype=value.dtype, device=value.device)
    return a.scatter_(1, column[:, None], value[:, None])


@dataclass(frozen=True, repr=False)
class Monomial(Intertwiner):
    """Matrices P D, P a permutation and D diagonal; the entries lambda of D satisfy sigma(lambda x) = b sigma(x).

    Every activation that is not affine has such a group (Theorem E.14), so only one channel has to be looked at.

    Attributes
    ----------
    scalings
        ``"one"``: abs(lambda) = 1; ``"positive"``: any abs(lambda) > 0.
    flip
        b for lambda = -1: 1 for an even function, -1 for an odd one, 0 where negative lambda are not allowed.
    degree
        b = lambda**degree for positive lambda.
    """

    scalings: str
    flip: int = 0
    degree: float = 1.0

    @property
    def description(self) -> str:
        if self.scalings == "one":
            return "signed permutations" if self.flip else "permutations"
        return ("scalings" if self.flip else "positive scalings") + " times permutations"

    @property
    def phi_description(self) -> str:
        if abs(self.degree - 1) < 1e-9:
            return "abs(A)" if self.flip > 0 else "A"
        if self.degree == 0:
            return "signs of the entries" if self.flip < 0 else "the permutation"
        power = f"entries to the power {self.degree:.6g}"
        even_or_odd = {0.0: 1, 1.0: -1}.get(self.degree % 2)
        if self.flip in (0, even_or_odd):  # the power of a negative entry has the right sign
            return power
        return f"{power} of abs(A)" + ("" if self.flip > 0 else ", with their signs")

    def _sample(self, n: int, generator: torch.Generator, spread: float) -> Tensor:
        column = torch.randperm(n, generator=generator)
        value = torch.ones(n, dtype=torch.float64)
        if self.scalings == "positive":
            value = (spread * torch.randn(n, generator=generator, dtype=torch.float64)).exp()
        if self.flip:
            value = value * (2.0 * torch.randint(0, 2, (n,), generator=generator).double() - 1)
        return _from_entries(column, value)

    def _why_not(self, a: Tensor) -> str:
        column, value, reason = single_entries(a)
        if reason:
            return reason
        wrong = (value < 0) & (not self.flip)
        if self.scalings == "one":
            wrong |= (1 / value.double().abs() - 1).abs() > _tolerance(a)
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0, 0])
            return f"the entry {value[row].item():.6g} at ({row}, {int(column[row])}) is not one of its scalings."
        return ""

    def _phi(self, a: Tensor) -> Tensor:
        column, value, _ = single_entries(a)
        size = torch.ones_like(value) if self.scalings == "one" else value.abs() ** self.degree
        return _from_entries(column, size * value.sign() if self.flip < 0 else size)


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
        return (random_rotation(n, generator) * scale) @ random_rotation(n, generator)

    def _why_not(self, a: Tensor) -> str:
        values = torch.linalg.svdvals(a)
        if values[-1] <= _tolerance(a) * values[0]:
            return "it is singular."
        sums = a.sum(dim=1) - 1
        if self.kind == "affine" and bool((sums.abs() > _tolerance(a) * a.abs().sum(dim=1)).any()):
            row = int(sums.abs().argmax())
            return f"row {row} sums to {sums[row].item() + 1:.6g}, not to 1."
        return ""

    def _phi(self, a: Tensor) -> Tensor:
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
        return (
            f"invertible matrices on the {self.linear.sum()} of {len(self.slopes)} channels with slope 1, on the "
            "others scalings times permutations that keep the slope, or turn it over with a change of sign"
        )

    @property
    def phi_description(self) -> str:
        return "A, and lambda times the slope where a negative lambda turns a slope over"

    @property
    def linear(self) -> Tensor:
        """Which channels have slope 1, bool (n,)."""
        return (torch.tensor(self.slopes, dtype=torch.float64) - 1).abs() <= 1e-9

    def partners(self, i: int, sign: int) -> list[int]:
        """The channels j that may feed channel i through a lambda of that sign; those of slope 1 are left out."""
        slopes = torch.tensor(self.slopes, dtype=torch.float64)
        gap = slopes - slopes[i] if sign > 0 else slopes * slopes[i] - 1
        return ((gap.abs() <= 1e-9) & ~self.linear & ~self.linear[i]).nonzero()[:, 0].tolist()

    def _sample(self, n: int, generator: torch.Generator, spread: float) -> Tensor:
        if n != len(self.slopes):
            raise ValueError(f"n is {n}; this PReLU has {len(self.slopes)} channels.")
        a = torch.zeros(n, n, dtype=torch.float64)
        linear, free = self.linear, (~self.linear).nonzero()[:, 0].tolist()
        if bool(linear.any()):
            a[linear[:, None] & linear] = GeneralLinear()._sample(n - len(free), generator, spread).flatten()
        sources: dict[int, int] = {}
        for slope in sorted({self.slopes[i] for i in free}):
            same = [i for i in free if self.slopes[i] == slope]
            for i, k in zip(same, torch.randperm(len(same), generator=generator).tolist(), strict=True):
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
                    value[list({i, j})] *= -1
        for i, j in sources.items():
            a[i, j] = value[i]
        return a

    def _why_not(self, a: Tensor) -> str:
        if len(a) != len(self.slopes):
            raise ValueError(f"a has shape {tuple(a.shape)}; this PReLU has {len(self.slopes)} channels.")
        linear = self.linear.to(a.device)
        mixed = _entries(a) & (linear[:, None] != linear)
        if bool(mixed.any()):
            i, j = mixed.nonzero()[0].tolist()
            return f"the entry at ({i}, {j}) joins a channel of slope 1 to one of another slope."
        if bool(linear.any()):
            reason = GeneralLinear()._why_not(a[linear][:, linear])
            if reason:
                return f"on the channels of slope 1, {reason}"
        rest = (~linear).nonzero()[:, 0]
        if not len(rest):
            return ""
        column, value, reason = single_entries(a[rest[:, None], rest])
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

    def _phi(self, a: Tensor) -> Tensor:
        linear = self.linear.to(a.device)
        slopes = torch.tensor(self.slopes, dtype=a.dtype, device=a.device)
        flipped = torch.where(a < 0, a * slopes[:, None], a) * _entries(a)
        return torch.where(linear[:, None], a, flipped) * (linear[:, None] == linear)
