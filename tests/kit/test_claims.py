"""A verdict must be able to say no."""

import math

import pytest
from grids import each

from affscore_book.kit.claims import CLAIMS_MIME, Claim, ClaimTable, near, side_by_side, verdict
from affscore_book.kit.statistics import student_interval


@each(
    ("ours", "says"),
    [(0.55, "agrees"), (0.6, "agrees"), (0.65, "agrees"), (0.5499, "disagrees"), (0.6501, "disagrees"),
     (-0.6, "disagrees"), (math.nan, "disagrees"), (math.inf, "disagrees"), (-math.inf, "disagrees")],
)  # fmt: skip
def test_a_range_holds_its_ends_and_no_nan(ours, says):
    assert verdict(ours, (0.55, 0.65)) == says
    assert near(0.6, 0.05) == pytest.approx((0.55, 0.65))


@each("accept", [near(0.6, -0.1), (1, 0), (math.nan, 1), (0, math.nan)])
def test_empty_ranges_are_refused(accept):
    with pytest.raises(ValueError, match=r"accept is .*low <= high"):
        verdict(0.5, accept)


def test_table_shows_every_verdict_and_escapes():
    table = ClaimTable(
        [
            Claim("a < b", "paper", 0.5, 0.5, near(0.5, 0.1)),
            Claim("wrong", "paper", 0.5, 0.9, near(0.5, 0.1)),
        ]
    )
    assert [claim.verdict for claim in table.claims] == ["agrees", "disagrees"]
    head, *rows = ([cell.strip() for cell in line.split("|")] for line in repr(table).splitlines())
    assert [row[head.index("verdict")] for row in rows] == ["agrees", "disagrees"]
    assert "<td>a &lt; b</td>" in table._repr_html_() and table._repr_html_().count("<tr>") == 3


def test_what_was_not_measured_has_no_verdict_and_says_what_it_needs():
    table = ClaimTable([Claim("std", "slides", 0.013, None, near(0.013, 0.01), needs="weights of vit_h_14")])
    assert table.claims[0].verdict == "not run here"
    _, row = (line.split(" | ") for line in repr(table).splitlines())
    assert [cell.strip() for cell in row] == [
        "std", "0.013", "-", "not run here", "needs weights of vit_h_14", "slides",
    ]  # fmt: skip


@each(
    ("kind", "words"),
    [
        ("source", ("agrees", "disagrees")),
        ("untrained", ("there before training", "not there before training")),
        ("own", ("held", "failed")),
    ],
)
def test_each_kind_of_claim_has_its_words(kind, words):
    assert tuple(Claim("gap", "paper", "> 0", ours, (0, math.inf), kind=kind).verdict for ours in (1, -1)) == words
    both = Claim("gap", "paper", "> 0", 0.5, (0, math.inf), interval=(-1, 2), kind=kind)
    assert both.verdict == "undecided"


@each(
    ("accept", "says"),
    [((-math.inf, 0), "at most 0.00"), ((0.5, math.inf), "at least 0.50"), ((0, 1), "0.00 to 1.00")],
)
def test_the_rule_is_written_as_a_reader_says_it(accept, says):
    table = ClaimTable([Claim("gap", "paper", "> 0", 0.7, accept)], digits=2)
    assert table.rows()[0]["holds if"] == says
    table = ClaimTable([Claim("gap", "paper", "> 0", 0.7, accept, seen=True)], digits=2)
    assert table.rows()[0]["holds if"] == f"{says} (set after a look)"


def test_the_rows_go_into_the_stored_output():
    bundle = ClaimTable([Claim("gap", "paper", "> 0", 0.71234, (0, 1), kind="own")], digits=2)._repr_mimebundle_()
    assert bundle == {
        CLAIMS_MIME: [
            {"what": "gap", "theirs": "> 0", "ours": "0.71", "verdict": "held", "holds if": "0.00 to 1.00",
             "source": "paper", "kind": "own", "interval": False}
        ]
    }  # fmt: skip


@each(
    ("change", "message"),
    [
        ({"kind": "ours"}, "kind is 'ours'"), ({"accept": None}, "accept is None for 'gap'"),
        ({"ours": None}, "ours is None and needs ''"), ({"needs": "a GPU"}, "ours is 1.0 and needs 'a GPU'"),
        ({"interval": (1.3, 1.4)}, "should hold ours"), ({"interval": (math.nan, 1.4)}, "should hold ours"),
    ],
)  # fmt: skip
def test_claims_that_cannot_be_judged(change, message):
    with pytest.raises(ValueError, match=message):
        Claim(**{"what": "gap", "source": "paper", "theirs": "> 0", "ours": 1.0, "accept": (0, 1)} | change)


@each(
    ("interval", "says"),
    [
        ((0.1, 0.3), "agrees"),
        ((0.0, 0.5), "agrees"),
        ((-0.1, 0.3), "undecided"),
        ((0.1, 0.6), "undecided"),
        ((-math.inf, math.inf), "undecided"),
        ((-0.3, -0.1), "disagrees"),
        ((0.6, 0.9), "disagrees"),
    ],
)
def test_an_interval_decides_only_as_a_whole(interval, says):
    middle = 0.2 if math.isinf(interval[0]) else sum(interval) / 2
    claim = Claim("gap", "paper", "> 0", middle, (0.0, 0.5), interval=interval)
    assert claim.verdict == says
    assert f"[{interval[0]:.3f}, {interval[1]:.3f}]" in repr(ClaimTable([claim]))


def test_what_repetitions_cannot_tell_is_undecided_and_says_so():
    claim = Claim("share", "paper", "all", 1.0, (0.5, 1.0), interval=(math.nan, math.nan))
    assert claim.verdict == "undecided"
    assert "1.00 [not estimable]" in repr(ClaimTable([claim], digits=2))


def row(ours: float, spread: float | None = None) -> Claim:
    return Claim("w", "p", "> 0", ours, (0, math.inf), interval=spread and (ours - spread, ours + spread))


@each(
    ("readings", "says"),
    [
        ([row(1.0), row(-1.0)], ["depends on the start"] * 2),
        ([row(1.0), row(2.0)], ["agrees"] * 2),
        ([row(-1.0), row(-2.0)], ["disagrees"] * 2),
        ([row(1.0, 0.5), row(0.2, 1.0)], ["agrees", "undecided"]),
        ([row(1.0, 0.5), row(-1.0, 0.5), row(0.2, 0.5)], ["depends on the start"] * 2 + ["undecided"]),
    ],
)
def test_a_convention_that_decides_is_the_verdict_and_an_undecided_reading_is_no_opposite(readings, says):
    rows = side_by_side("the start", dict(zip("abc", readings, strict=False)))
    assert [row.what for row in rows] == ["w (a)", "w (b)", "w (c)"][: len(rows)]
    assert [row.verdict for row in rows] == says


def test_a_claim_over_repetitions_has_their_mean_and_interval():
    found = student_interval([0.2, 0.4, 0.3])
    claim = Claim.over("w", "paper, Figure 1", "above 0", found, (0.0, 1.0), kind="own", seen=True)
    wanted = Claim("w", "paper, Figure 1", "above 0", found.mean, (0.0, 1.0), interval=(found.low, found.high),
                   kind="own", seen=True)  # fmt: skip
    assert claim == wanted
