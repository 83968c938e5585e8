"""Claims of a source together with our numbers, and the verdicts that are computed from them.

An audit states the rule first (:mod:`affscore_study.kit.rules`), then measures, and the claim gives the verdict. The
rows of a :class:`ClaimTable` are stored in the notebook's output a second time as JSON, from which the build makes the
ledger of all claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from affscore.arguments import check_choice
from affscore_book.kit.statistics import Interval
from affscore_book.kit.tables import Table

__all__ = ["CLAIMS_MIME", "FLOOR", "KINDS", "Claim", "ClaimTable", "depending", "near"]

CLAIMS_MIME = "application/vnd.affscore.claims+json"

#: The least difference of scores that counts. On the source's slides, the scores of two batches differ by up to 0.02.
FLOOR = 0.02

# For each kind of claim, the words for a number in the accepted range and for a number outside.
_WORDS = {
    "source": ("agrees", "disagrees"),
    "untrained": ("there before training", "not there before training"),
    "own": ("held", "failed"),
    "recovered": (
        "reproduced with settings that we recovered", "not reproduced with settings that we recovered",
    ),
}  # fmt: skip


#: The kinds of claims, which :class:`Claim` explains.
KINDS = tuple(_WORDS)


def near(theirs: float, tolerance: float) -> tuple[float, float]:
    """The accepted range for a quoted number: ``(theirs - tolerance, theirs + tolerance)``.

    >>> near(0.75, 0.25)
    (0.5, 1.0)
    """
    return theirs - tolerance, theirs + tolerance


@dataclass(frozen=True)
class Claim:
    """One line of a :class:`ClaimTable`.

    Attributes
    ----------
    what
        The measured quantity.
    source
        The place of the claim, such as ``"CVPR 2025, Figure 6"``.
    theirs
        The claim in the source, a number or words.
    ours
        Our number; ``None`` if it was not measured, with the verdict "not run here".
    accept
        The range of ``ours`` in which the claim holds, ``(low, high)``, ends included. An end may be infinite, and
        NaN is in no range. It is ``None`` only if ``ours`` is.
    needs
        The requirements of a measurement that is missing: data, weights, the command, or facts missing in the source.
    interval
        The interval of ``ours`` over repetitions such as seeds, ``(low, high)``. The claim then agrees if the whole
        interval is accepted, disagrees if no part of it is, and is ``"undecided"`` otherwise, because an end of the
        range lies in it. Ends may be infinite. Two NaN mean that the repetitions do not show how certain the number is:
        there is only one, or all give the same value, or the test would hardly ever find an effect. The claim is then
        ``"not shown"`` for every number.
    bracket
        The kind of interval: the level of a confidence interval over networks, families, seeds or draws, ``"95 %"`` or
        another, or the choices over which it is a range, such as ``"range over widths"``, which is no statement on
        chance.
    kind
        ``"source"`` is the source's claim in the source's setting or a smaller one. ``"untrained"`` is a claim about
        trained networks that is tested with random weights, so that it can only hold before training or not.
        ``"own"`` is a hypothesis of this book, which can be held or fail. ``"recovered"`` is a number that the source
        prints without its settings, computed with settings that we found to fit.
    seen
        Whether the rule was set after a first look at the numbers, which the table then shows.
    depends_on
        The convention on which the verdict depends, if :func:`depending` found one; it is then the verdict.

    Raises
    ------
    ValueError
        If there is neither a number with a range nor a text for what it needs, if the range is empty, or if the
        interval does not contain the number.
    """

    what: str
    source: str
    theirs: str | float
    ours: float | None
    accept: tuple[float, float] | None
    needs: str = ""
    interval: tuple[float, float] | None = None
    bracket: str = "95 %"
    kind: str = "source"
    seen: bool = False
    depends_on: str = ""

    @classmethod
    def over(
        cls, what: str, source: str, theirs: str | float, found: Interval, accept: tuple[float, float], **more: Any
    ) -> Claim:
        """A claim on a mean over repetitions, with its interval; ``more`` are other attributes.

        >>> Claim.over("gap", "paper", "> 0", Interval(0.9, math.nan, math.nan), (0, 1)).verdict
        'not shown'
        """
        return cls(what, source, theirs, found.mean, accept, interval=found[1:], **more)

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        if (self.ours is None) != bool(self.needs):
            raise ValueError(
                f"ours is {self.ours!r} and needs {self.needs!r} for {self.what!r}; a claim should have a number "
                "or say what it takes to get one."
            )
        if self.ours is not None and self.accept is None:
            raise ValueError(f"accept is None for {self.what!r}; a claim with a number should have a range.")
        if self.accept is not None and not self.accept[0] <= self.accept[1]:
            raise ValueError(f"accept is {self.accept} for {self.what!r}; it should be (low, high) with low <= high.")
        if self.interval is None or (all(map(math.isnan, self.interval)) and self.ours is not None):
            return
        if self.ours is None or not self.interval[0] <= self.ours <= self.interval[1]:
            raise ValueError(f"interval is {self.interval} for {self.what!r}; it should hold ours, {self.ours}.")

    @property
    def verdict(self) -> str:
        """The verdict: a word of the kind, "undecided", "not shown", "depends on ..." or "not run here"."""
        if self.ours is None or self.accept is None:
            return "not run here"
        if self.depends_on:
            return f"depends on {self.depends_on}"
        least, most = self.accept
        if self.interval is not None:
            low, high = self.interval
            if math.isnan(low):
                return "not shown"
            if low < least <= high or low <= most < high:
                return "undecided"
        yes, no = _WORDS[self.kind]
        return yes if least <= self.ours <= most else no

    def rule(self, digits: int) -> str:
        """The accepted range in words, or the needs of a measurement.

        >>> Claim("slope", "slides", "positive", 2.0, (0, math.inf)).rule(1)
        'at least 0.0'
        """
        if self.accept is None or self.needs:
            return f"needs {self.needs}"
        low, high = (f"{end:.{digits}f}" for end in self.accept)
        after = " (set after a look)" if self.seen else ""
        if math.isinf(self.accept[0]):
            return f"at most {high}{after}"
        return f"at least {low}{after}" if math.isinf(self.accept[1]) else f"{low} to {high}{after}"


def depending(convention: str, readings: Sequence[Claim]) -> list[Claim]:
    """The rows of one claim under several conventions, none of which the source fixes, with a common verdict.

    ``convention`` is the text after "depends on". If one reading is accepted and another one is not, the verdict of
    both is "depends on ``convention``". A reading that is undecided or not shown keeps its verdict and does not change
    those of others.

    >>> numbers = {"rise (raw)": 0.5, "rise (norm set)": -0.3}
    >>> rows = [Claim(what, "paper", "> 0", ours, (0, math.inf)) for what, ours in numbers.items()]
    >>> [row.verdict for row in depending("the start", rows)]
    ['depends on the start', 'depends on the start']
    """
    open_ = {"undecided", "not shown", "not run here"}
    differ = len({row.verdict for row in readings} - open_) > 1
    return [replace(row, depends_on=convention if differ and row.verdict not in open_ else "") for row in readings]


class ClaimTable(Table):
    """Claims in a table, as text and as HTML; numbers are shown with ``digits`` decimals.

    >>> ClaimTable([Claim("score of x^3", "slides", 0.71, 0.7113, near(0.71, 0.005))])
    what         | theirs | ours  | verdict | holds if       | source
    score of x^3 | 0.71   | 0.711 | agrees  | 0.705 to 0.715 | slides

    If there is no number, the column of rules has its needs. A number is followed by its interval, or by the words "not
    estimable" if the repetitions give none, and then by the bracket unless it is a 95 % interval.
    """

    def __init__(self, claims: Iterable[Claim], digits: int = 3) -> None:
        self.claims = list(claims)
        headings, rows = ("what", "theirs", "ours", "verdict", "holds if", "source"), []
        for claim in self.claims:
            ours = "-" if claim.ours is None else f"{float(claim.ours):.{digits}f}"
            if claim.interval is not None and math.isnan(claim.interval[0]):
                ours += " [not estimable]"
            elif claim.interval is not None:
                ours += " [{:.{digits}f}, {:.{digits}f}]".format(*claim.interval, digits=digits)
                ours += "" if claim.bracket == "95 %" else f" ({claim.bracket})"
            rows.append((claim.what, str(claim.theirs), ours, claim.verdict, claim.rule(digits), claim.source))
        super().__init__(dict(zip(headings, zip(*rows, strict=True), strict=True)), align=False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The rows of the table as JSON for the ledger, each with its kind and its bracket, "" without one."""
        more = (
            {"kind": claim.kind, "bracket": "" if claim.interval is None else claim.bracket} for claim in self.claims
        )
        return {CLAIMS_MIME: [row | each for row, each in zip(self.rows(), more, strict=True)]}
