"""A verdict must be able to say no."""

import math

import pytest

from affscore_book.kit.claims import Claim, ClaimTable, near, verdict


@pytest.mark.parametrize("ours", [0.55, 0.6, 0.65])
def test_agrees_inside_and_on_the_ends(ours):
    assert verdict(ours, (0.55, 0.65)) == "agrees"


@pytest.mark.parametrize("ours", [0.5499, 0.6501, -0.6, math.nan, math.inf, -math.inf])
def test_disagrees_outside_and_for_nan(ours):
    assert verdict(ours, (0.55, 0.65)) == "disagrees"


def test_near_is_symmetric():
    low, high = near(0.6, 0.05)
    assert low == pytest.approx(0.55) and high == pytest.approx(0.65)


@pytest.mark.parametrize("tolerance", [-0.1, math.nan])
def test_near_refuses_a_bad_tolerance(tolerance):
    with pytest.raises(ValueError, match=r"tolerance is .*at least 0"):
        near(0.6, tolerance)


@pytest.mark.parametrize("accept", [(1, 0), (math.nan, 1), (0, math.nan)])
def test_verdict_refuses_an_empty_range(accept):
    with pytest.raises(ValueError, match=r"accept is .*low <= high"):
        verdict(0.5, accept)


def test_table_shows_every_verdict_and_escapes():
    table = ClaimTable(
        [
            Claim("a < b", "paper", 0.5, 0.5, near(0.5, 0.1)),
            Claim("wrong", "paper", 0.5, 0.9, near(0.5, 0.1)),
            Claim("vague", "slides", "large", 0.9, None),
        ]
    )
    assert [claim.verdict for claim in table.claims] == ["agrees", "disagrees", "not testable"]
    head, *rows = ([cell.strip() for cell in line.split("|")] for line in repr(table).splitlines())
    assert [row[head.index("verdict")] for row in rows] == ["agrees", "disagrees", "not testable"]
    assert "<td>a &lt; b</td>" in table._repr_html_() and table._repr_html_().count("<tr>") == 4


def test_what_was_not_measured_has_no_verdict_and_says_what_it_needs():
    table = ClaimTable([Claim("std", "slides", 0.013, None, near(0.013, 0.01), needs="weights of vit_h_14")])
    assert table.claims[0].verdict == "not run here"
    _, row = (line.split(" | ") for line in repr(table).splitlines())
    assert [cell.strip() for cell in row] == [
        "std", "0.013", "-", "not run here", "needs weights of vit_h_14", "slides",
    ]  # fmt: skip


@pytest.mark.parametrize(("ours", "needs"), [(None, ""), (0.5, "a GPU")])
def test_a_claim_has_either_a_number_or_what_it_takes_to_get_one(ours, needs):
    with pytest.raises(ValueError, match=r"ours is .* and needs"):
        Claim("std", "slides", 0.013, ours, None, needs)


@pytest.mark.parametrize(
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


def test_an_interval_holds_its_number():
    for interval in [(0.3, 0.4), (math.nan, 0.4)]:
        with pytest.raises(ValueError, match="should hold ours"):
            Claim("gap", "paper", "> 0", 0.2, (0.0, 0.5), interval=interval)
