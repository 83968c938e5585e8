"""A verdict must be able to say no."""

import math

import pytest

from affscore_book.kit.statistics import student_interval
from affscore_study.kit.claims import CLAIMS_MIME, Claim, ClaimTable, depending, near

GAP = {"what": "gap", "source": "paper", "theirs": "> 0", "ours": 1.0, "accept": (0, math.inf)}


@pytest.mark.parametrize(
    ("ours", "holds"),
    [(0.55, True), (0.6, True), (0.65, True), (0.5499, False), (0.6501, False), (-0.6, False), (math.nan, False),
     (math.inf, False), (-math.inf, False)],
)  # fmt: skip
def test_range_is_closed_and_each_kind_has_its_verdicts(ours, holds):
    """A range includes its ends and no NaN, and each kind of claim has its own verdicts."""
    for kind, words in (
        ("source", ("disagrees", "agrees")),
        ("untrained", ("not there before training", "there before training")),
        ("own", ("failed", "held")),
        ("recovered", tuple(f"{word}reproduced with settings that we recovered" for word in ("not ", ""))),
    ):
        assert Claim(**GAP | {"ours": ours, "accept": (0.55, 0.65), "kind": kind}).verdict == words[holds]
        assert Claim(**GAP | {"interval": (-1, 2), "kind": kind}).verdict == "undecided"
    assert near(0.6, 0.05) == pytest.approx((0.55, 0.65))


def test_table_shows_verdicts_and_keeps_rows_for_the_ledger():
    """A table shows verdicts and what a measurement needs, and it keeps its rows for the ledger."""
    table = ClaimTable(
        [
            Claim("a < b", "paper", "> 0", 0.71234, (0, 1), kind="own"),
            Claim("std", "slides", 0.013, None, near(0.013, 0.01), needs="weights of vit_h_14"),
            Claim("share", "paper", "all", 1.0, (0.5, 1.0), interval=(math.nan, math.nan)),
            Claim("low", "paper", "0", 0.1, (0.0, 0.2), interval=(0.0, 0.3), bracket="range over widths"),
        ],
        digits=2,
    )
    names = ("what", "theirs", "ours", "verdict", "holds if", "source", "kind", "bracket")
    rows = [
        ("a < b", "> 0", "0.71", "held", "0.00 to 1.00", "paper", "own", ""),
        ("std", "0.013", "-", "not run here", "needs weights of vit_h_14", "slides", "source", ""),
        ("share", "all", "1.00 [not estimable]", "not shown", "0.50 to 1.00", "paper", "source", "95 %"),
        ("low", "0", "0.10 [0.00, 0.30] (range over widths)", "undecided", "0.00 to 0.20", "paper", "source",
         "range over widths"),
    ]  # fmt: skip
    assert table._repr_mimebundle_() == {CLAIMS_MIME: [dict(zip(names, row, strict=True)) for row in rows]}
    shown = [tuple(cell.strip() for cell in line.split("|")) for line in repr(table).splitlines()]
    assert shown == [names[:6], *(row[:6] for row in rows)]
    assert "<td>a &lt; b</td>" in table._repr_html_() and table._repr_html_().count("<tr>") == 5


@pytest.mark.parametrize(
    ("accept", "says"),
    [((-math.inf, 0), "at most 0.00"), ((0.5, math.inf), "at least 0.50"), ((0, 1), "0.00 to 1.00")],
)
def test_the_rule_is_written_as_a_reader_says_it(accept, says):
    for seen, after in ((False, ""), (True, " (set after a look)")):
        assert Claim(**GAP | {"accept": accept, "seen": seen}).rule(2) == says + after


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "ours"}, "kind is 'ours'"), ({"accept": None}, "accept is None for 'gap'"),
        ({"ours": None}, "ours is None and needs ''"), ({"needs": "a GPU"}, "ours is 1.0 and needs 'a GPU'"),
        ({"interval": (1.3, 1.4)}, "should hold ours"), ({"interval": (math.nan, 1.4)}, "should hold ours"),
        *(({"accept": empty}, "accept is .*low <= high") for empty in [(1, 0), (math.nan, 1), (0, math.nan)]),
    ],
)  # fmt: skip
def test_claims_that_cannot_be_judged(change, message):
    with pytest.raises(ValueError, match=message):
        Claim(**GAP | change)


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        ((0.1, 0.3), "agrees"), ((0.0, 0.5), "agrees"), ((-0.1, 0.3), "undecided"), ((0.1, 0.6), "undecided"),
        ((-math.inf, math.inf), "undecided"), ((-0.3, -0.1), "disagrees"), ((0.6, 0.9), "disagrees"),
    ],
)  # fmt: skip
def test_an_interval_decides_only_as_a_whole(interval, says):
    middle = 0.2 if math.isinf(interval[0]) else sum(interval) / 2
    claim = Claim(**GAP | {"ours": middle, "accept": (0.0, 0.5), "interval": interval})
    assert claim.verdict == says
    assert f"[{interval[0]:.3f}, {interval[1]:.3f}]" in repr(ClaimTable([claim]))


def row(ours: float, spread: float | None = None) -> Claim:
    return Claim(**GAP | {"ours": ours, "interval": spread and (ours - spread, ours + spread)})


@pytest.mark.parametrize(
    ("readings", "says"),
    [
        ([row(1.0), row(-1.0)], ["depends on the start"] * 2),
        ([row(1.0), row(2.0)], ["agrees"] * 2),
        ([row(-1.0), row(-2.0)], ["disagrees"] * 2),
        ([row(1.0, 0.5), row(0.2, 1.0)], ["agrees", "undecided"]),
        ([row(1.0, 0.5), row(-1.0, 0.5), row(0.2, 0.5)], ["depends on the start"] * 2 + ["undecided"]),
    ],
)
def test_verdict_follows_conventions_that_disagree(readings, says):
    """Accepted and rejected readings make the verdict name the convention; undecided ones contradict none."""
    assert [row.verdict for row in depending("the start", readings)] == says


def test_a_claim_over_repetitions_has_their_mean_and_interval():
    found = student_interval([0.2, 0.4, 0.3])
    claim = Claim.over("gap", "paper", "> 0", found, (0, math.inf), kind="own", seen=True)
    more = {"ours": found.mean, "interval": (found.low, found.high), "kind": "own", "seen": True}
    assert claim == Claim(**GAP | more)
