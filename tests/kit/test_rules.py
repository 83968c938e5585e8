"""A rule is read to the number, decides what it says, and whatever it leaves open is an error in a sentence."""

import math
import re
from pathlib import Path

import pytest

from affscore_book.kit.statistics import Interval
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judge, parse_rules, read_rules

STUDY = Path(__file__).resolve().parents[2] / "book" / "affscore_study"
ROOMS = sorted(path.parent.name for path in STUDY.glob("*/claims.toml"))
SLOPE = 'what = "slope"\nsource = "paper"\ntheirs = "rises"\n'


def rules(text, table="t"):
    return parse_rules(text, "room/claims.toml")[table]


def decided(row, found, **words):
    return judge(rules("[t.row]\n" + row), {"row": found}, **words)


@pytest.mark.parametrize(
    ("bound", "accept"),
    [
        ("at_least = 0.02", (0.02, math.inf)), ("at_most = -0.02", (-math.inf, -0.02)), ("between = [-1, 2]", (-1, 2)),
        ("exactly = 10", (10, 10)), ("factor = 1.5", (1 / 1.5, 1.5)),
    ],
)  # fmt: skip
def test_each_bound_is_its_range_to_the_last_bit(bound, accept):
    (claim,) = decided(SLOPE + bound, 1.0)
    assert claim == Claim("slope", "paper", "rises", 1.0, accept)


def test_within_lies_around_the_printed_number():
    (claim,) = decided('what = "mean"\nsource = "paper"\ntheirs = 0.9\nwithin = 0.01', 0.905)
    assert claim.accept == (0.9 - 0.01, 0.9 + 0.01) and claim.verdict == "agrees"


def test_within_reads_a_number_that_is_printed_with_its_digits():
    (claim,) = decided('what = "std"\nsource = "paper"\ntheirs = "0.020"\nwithin = 0.005', 0.03)
    assert claim.theirs == "0.020" and claim.verdict == "disagrees"


def test_repetitions_that_decide_otherwise_are_the_verdict():
    row = SLOPE + 'at_least = 0\nrepeated_over = "the pictures"'
    found = [decided(row, numbers)[0] for numbers in ([1.0, 2.0, math.nan], [1.0, -1.0], [-1.0])]
    assert [claim.verdict for claim in found] == ["agrees", "depends on the pictures", "disagrees"]
    assert [claim.ours for claim in found] == [1.0, 1.0, -1.0]


def test_a_planted_wrong_bound_turns_the_verdict():
    """The same number by the rule as it is and by one with the other sign."""
    assert [decided(SLOPE + bound, 0.5)[0].verdict for bound in ("at_least = 0", "at_most = 0")] == [
        "agrees", "disagrees",
    ]  # fmt: skip


def test_kind_moment_and_bracket_are_the_rules():
    (own,) = decided('what = "slope"\nsource = "ours, here"\ntheirs = "-"\nat_least = 0', 1.0)
    assert (own.kind, own.seen, own.bracket) == ("own", False, "95 %")
    row = SLOPE + 'at_least = 0\nkind = "recovered"\nrule_set = "after"\nbracket = "98.75 %"'
    (claim,) = decided(row, Interval(1.0, 0.5, 2.0))
    assert (claim.kind, claim.seen, claim.bracket, claim.interval) == ("recovered", True, "98.75 %", (0.5, 2.0))


@pytest.mark.parametrize(("found", "verdict"), [
    ((0.5, 0.1, 0.9), "agrees"), ((0.5, -0.1, 1.1), "undecided"), ((0.1, 0.05, 0.15), "disagrees"),
    ((0.1, 0.05, 0.3), "undecided"), ((-0.7, -2.0, 0.1), "disagrees"), ((0.0, -0.3, 0.3), "undecided"),
])  # fmt: skip
def test_rule_of_two_halves_needs_both(found, verdict):
    """A rule of two halves needs both, and it fails only beyond its interval."""
    (claim,) = decided(SLOPE + "at_least = 0.0\nmean_at_least = 0.2", Interval(*found))
    assert claim.verdict == verdict


def test_what_was_not_measured_says_what_it_needs():
    text = f'[t.idle]\n{SLOPE}needs = "a GPU"\n[t.row]\n{SLOPE}at_least = 0\nneeds = "{{missing}}"'
    rows = judge(rules(text), {"row": None}, missing="weights")
    assert [(row.ours, row.accept, row.needs) for row in rows] == [(None, None, "a GPU"), (None, None, "weights")]
    assert judge(rules(text), {"row": "three seeds"}, missing="")[1].needs == "three seeds"


def test_family_has_a_row_for_each_name():
    """A family has a row for each name, which may have its own words or bounds."""
    text = SLOPE.replace("slope", "slope of {}") + "at_least = 0"
    assert [row.what for row in decided(text, {"relu": 1.0, "tanh": -1.0})] == ["slope of relu", "slope of tanh"]
    each = text + '\neach.tanh = { at_most = 0, source = "ours" }\neach.relu = {}'
    rows = decided(each, {"relu": 1.0, "tanh": -1.0})
    assert [(row.what, row.accept, row.kind) for row in rows] == [
        ("slope of tanh", (-math.inf, 0), "own"), ("slope of relu", (0, math.inf), "source"),
    ]  # fmt: skip


def test_a_family_of_which_nothing_was_measured_needs_no_measure():
    row = SLOPE.replace("slope", "slope of {}") + 'needs = "weights of {}"\neach = { relu = {}, tanh = {} }'
    assert [claim.needs for claim in judge(rules("[t.row]\n" + row), {})] == ["weights of relu", "weights of tanh"]


def test_readings_that_differ_are_the_verdict():
    row = SLOPE + 'at_least = 0\ndepends_on = "the start"\nreadings = { raw = {}, set = { rule_set = "after" } }'
    rows = decided(row, {"set": 1.0, "raw": -1.0})
    assert [(row.what, row.seen) for row in rows] == [("slope (raw)", False), ("slope (set)", True)]
    assert {row.verdict for row in rows} == {"depends on the start"}
    (claim,) = decided(SLOPE.replace("slope", "{reading} slope") + 'at_least = 0\ndepends_on = "x"', {"raw": 1.0})
    assert (claim.what, claim.verdict) == ("raw slope", "agrees")


def test_readings_of_one_member_say_nothing_on_another():
    row = SLOPE.replace("slope", "slope, {}") + 'at_least = 0\ndepends_on = "the start"'
    rows = decided(row, {"relu": {"raw": 1.0, "set": 2.0}, "tanh": {"raw": 1.0, "set": -2.0}})
    assert [row.verdict for row in rows] == ["agrees"] * 2 + ["depends on the start"] * 2


def test_words_of_a_measure_and_of_a_table_fill_a_rule():
    row = SLOPE.replace("slope", "slope, {pool} pool (power {power})") + "at_least = 0"
    (claim,) = decided(row, Worded(Interval(1.0, 0.5, 2.0), {"power": "0.9"}), pool="spatial")
    assert (claim.what, claim.verdict) == ("slope, spatial pool (power 0.9)", "agrees")


def test_rows_inherit_from_their_table():
    """Rows keep what their table has in common, and a bound of their own replaces that of the table."""
    text = '[t]\nsource = "ours"\ntheirs = "-"\nat_least = 0\n[t.a]\nwhat = "a"\n[t.b]\nwhat = "b"\nexactly = 1'
    assert [(rule.name, rule.accept) for rule in rules(text)] == [("a", (0, math.inf)), ("b", (1, 1))]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[t", "claims.toml is no TOML"),
        ("t = 1", "claims.toml: t is 1; it should be a table of rows"),
        (f"[t.row]\n{SLOPE}at_leest = 1", "t.row: key 'at_leest' is unknown; it should be one of at_least, at_most"),
        ('[t.row]\nsource = "a"\ntheirs = 1\nat_least = 1', "t.row: what is None; it should be a text"),
        ('[t.row]\nwhat = "a"\ntheirs = 1\nat_least = 1', "t.row: source is None; it should be a text"),
        ('[t.row]\nwhat = "a"\nsource = "b"\nat_least = 1', "t.row: theirs is None; it should be a number or a text"),
        (f'[t.row]\n{SLOPE}kind = "mine"\nat_least = 1', "t.row: kind is 'mine'; it should be one of source, unt"),
        (f'[t.row]\n{SLOPE}rule_set = "later"\nat_least = 1', "rule_set is 'later'; it should be 'before' or 'after'"),
        (f"[t.row]\n{SLOPE}", "t.row has no bound; it should have one of at_least"),
        (f"[t.row]\n{SLOPE}at_least = 1\nat_most = 0", "t.row has at_least and at_most; it should have one of"),
        (f"[t.row]\n{SLOPE}between = [1, 0]", r"t.row: between is [1, 0], which no number meets"),
        (f"[t.row]\n{SLOPE}between = [1]", r"t.row: between is [1], which no number meets"),
        (f"[t.row]\n{SLOPE}factor = 0.5", "t.row: factor is 0.5, which no number meets"),
        (f"[t.row]\n{SLOPE}factor = 0", "t.row: factor is 0, which no number meets"),
        (f'[t.row]\n{SLOPE}at_least = "0.1"', "t.row: at_least is '0.1'; a bound should be a number"),
        (f"[t.row]\n{SLOPE}within = 1", "t.row: within stands beside 'rises'; it should stand beside a number"),
        (f"[t.row]\n{SLOPE}at_most = 1\nmean_at_least = 0", "mean_at_least stands beside at_most; it should stand"),
        (f"[t.row]\n{SLOPE}at_most = 1\neach = 3", "t.row: each is 3; it should be a table of what differs"),
        (f"[t.row]\n{SLOPE}at_most = 1\neach.x = {{ wat = 1 }}", "t.row.each.x: key 'wat' is unknown"),
    ],
)  # fmt: skip
def test_an_error_of_a_file_names_file_row_and_key(text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_rules(text, "room/claims.toml")


@pytest.mark.parametrize(
    ("row", "measured", "says"),
    [
        ("at_least = 0", {}, "room/claims.toml, t.row has no measure; measured should have 'row'"),
        ("at_least = 0", {"row": 1.0, "raw": 1.0}, "measured has 'raw', which is in no rule; the rules are row"),
        ("at_least = 0", {"row": None}, "t.row: measured is None; the rule should then say what a measurement needs"),
        ('needs = "a GPU"', {"row": 1.0}, "t.row: measured is 1.0; the rule has no bound that could decide it"),
        ('at_least = 0\ndepends_on = "x"', {"row": 1.0}, "measured is 1.0; it should be a mapping, a reading a name"),
        ('at_least = 0\ndepends_on = "x"', {"row": {}}, "measured is {}; it should be a mapping, a reading a name"),
        ("at_least = 0", {"row": [1.0]}, "t.row: measured is [1.0]; it should be a number or an Interval"),
        ('at_least = 0\nrepeated_over = "x"', {"row": 1.0}, "measured is 1.0; it should be a list of numbers"),
        ("at_least = 0\neach = { a = {}, b = {} }", {"row": {"a": 1.0}}, "measured has a; it should have a, b"),
        ("at_least = 0\neach = { a = {} }", {"row": {"a": 1.0, "c": 1.0}}, "measured has a, c; it should have a"),
        ('at_least = 0\nsource = "{pool}"', {"row": 1.0}, "'{pool}' has {pool}; words should have 'pool'"),
    ],
)  # fmt: skip
def test_an_error_of_what_was_measured_names_the_rule(row, measured, says):
    text = "\n".join(line for line in SLOPE.splitlines() if line.split()[0] not in row.split())
    with pytest.raises(ValueError, match=re.escape(says)):
        judge(rules(f"[t.row]\n{text}\n{row}"), measured)


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_rules_can_be_read(room):
    assert parse_rules((STUDY / room / "claims.toml").read_text(encoding="utf-8"), room)


def test_a_table_that_a_file_lacks_is_named():
    with pytest.raises(ValueError, match=r"table is 'figure_5'; redshift/claims\.toml has figure_4, orders, "):
        read_rules("redshift", "figure_5")
