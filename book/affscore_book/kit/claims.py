"""What a source claims, beside what we find, with a verdict that is computed.

A chapter states the accepted range first, then measures, then lets :func:`verdict` decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from affscore.suite.tables import Table

__all__ = ["Claim", "ClaimTable", "near", "verdict"]


def near(theirs: float, tolerance: float) -> tuple[float, float]:
    """The accepted range for a quoted number: ``(theirs - tolerance, theirs + tolerance)``.

    >>> near(0.75, 0.25)
    (0.5, 1.0)
    """
    return theirs - tolerance, theirs + tolerance


def verdict(ours: Any, accept: tuple[float, float]) -> str:
    """``"agrees"`` if our number lies in the accepted range ``(low, high)``, ends included, else ``"disagrees"``.

    ``ours`` is a number or anything ``float()`` takes. NaN never agrees. Raises ValueError for an empty range.

    >>> verdict(0.62, near(0.6, 0.05)), verdict(0.72, near(0.6, 0.05)), verdict(float("nan"), (0, 1))
    ('agrees', 'disagrees', 'disagrees')
    """
    low, high = accept
    if not low <= high:
        raise ValueError(f"accept is ({low}, {high}); it should be (low, high) with low <= high.")
    return "agrees" if low <= float(ours) <= high else "disagrees"


@dataclass(frozen=True)
class Claim:
    """One line of a :class:`ClaimTable`.

    Attributes
    ----------
    what
        What is measured.
    source
        Where the claim stands.
    theirs
        The claim as the source puts it, a number or words.
    ours
        Our number; ``None`` where it was not measured: the verdict is then "not run here".
    accept
        The range of ``ours`` in which the claim holds, ``(low, high)``. ``None`` where the source does not say
        enough to test it: the verdict is then "not testable".
    needs
        What a measurement needs, where there is none: data, weights, the command.
    interval
        Where repetitions, such as seeds, put ``ours``: ``(low, high)``. The claim then agrees if the whole interval
        is accepted, disagrees if nothing of it is, and is ``"undecided"`` otherwise. Ends may be infinite.
    """

    what: str
    source: str
    theirs: str | float
    ours: float | None
    accept: tuple[float, float] | None
    needs: str = ""
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if (self.ours is None) != bool(self.needs):
            raise ValueError(
                f"ours is {self.ours!r} and needs {self.needs!r} for {self.what!r}; a claim should have a number "
                "or say what it takes to get one."
            )
        if self.interval is not None and not (
            self.ours is not None and self.interval[0] <= self.ours <= self.interval[1]
        ):
            raise ValueError(f"interval is {self.interval} for {self.what!r}; it should hold ours, {self.ours}.")

    @property
    def verdict(self) -> str:
        """``"agrees"``, ``"disagrees"``, ``"undecided"``, ``"not testable"`` or ``"not run here"``."""
        if self.ours is None:
            return "not run here"
        if self.accept is None:
            return "not testable"
        if self.interval is not None:
            (low, high), (least, most) = self.interval, self.accept
            if low < least <= high or low <= most < high:
                return "undecided"
        return verdict(self.ours, self.accept)


class ClaimTable(Table):
    """Claims in a table, as text and as HTML; numbers are shown with ``digits`` decimals.

    >>> ClaimTable([Claim("score of x^3", "slides", 0.71, 0.7113, near(0.71, 0.005))])
    what         | theirs | ours  | verdict | accepted       | source
    score of x^3 | 0.71   | 0.711 | agrees  | 0.705 to 0.715 | slides

    Where there is no number, the column of accepted ranges says what one needs. An interval stands behind its number.
    """

    def __init__(self, claims: Iterable[Claim], digits: int = 3) -> None:
        self.claims = list(claims)
        headings, rows = ("what", "theirs", "ours", "verdict", "accepted", "source"), []
        for claim in self.claims:
            accept = "-" if claim.accept is None else " to ".join(f"{end:.{digits}f}" for end in claim.accept)
            accept = f"needs {claim.needs}" if claim.needs else accept
            ours = "-" if claim.ours is None else f"{float(claim.ours):.{digits}f}"
            if claim.interval is not None:
                ours += " [{:.{digits}f}, {:.{digits}f}]".format(*claim.interval, digits=digits)
            rows.append((claim.what, str(claim.theirs), ours, claim.verdict, accept, claim.source))
        super().__init__(dict(zip(headings, zip(*rows, strict=True), strict=True)), align=False)
