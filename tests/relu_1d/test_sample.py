"""The reader's own numbers: what is read, what is refused and why, and the same score and picture in the browser."""

import html
import math
import re

import numpy as np
import pytest

from affscore import affine_map, affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.relu_1d.sample import LARGEST, MOST, read_numbers
from affscore_book.relu_1d.widget import OwnSample

GOOD = {
    "1 2": [1, 2],
    "1,2;3\n4\t5\r\n6": [1, 2, 3, 4, 5, 6],
    "  1 , 2 ;3 ,\n": [1, 2, 3],
    "1e3 -2.5E-2 +.5 7.": [1000, -0.025, 0.5, 7],
    "\u22121\u00a02": [-1, 2],
    f"{LARGEST} -1e-300": [LARGEST, -1e-300],
    " ".join(map(str, range(MOST))): list(range(MOST)),
}
BAD = {
    "": "There are no numbers; a score needs at least two.",
    " ,\n": "There are no numbers; a score needs at least two.",
    "7": "There is one number; a score needs at least two.",
    "1 2 abc": "The third entry, 'abc', is not a number.",
    "1 two 3": "The second entry, 'two', is not a number.",
    "[1, 2]": "The first entry, '[1', is not a number.",
    "1 2 nan": "The third entry, 'nan', is not a number.",
    "1 2 inf": "The third entry, 'inf', is not a number.",
    "0x10 2": "The first entry, '0x10', is not a number.",
    "1_0 2": "The first entry, '1_0', is not a number.",
    "\u0661 2": "The first entry, '\u0661', is not a number.",
    "e5 1": "The first entry, 'e5', is not a number.",
    "1 -": "The second entry, '-', is not a number.",
    "1,,2": "The second entry is empty.",
    ",1 2": "The first entry is empty.",
    "1 -1e101": "The second entry, '-1e101', is too large to compute with.",
    "1 1e999": "The second entry, '1e999', is too large to compute with.",
    "1 " + 30 * "\U0001d4b3": f"The second entry, '{20 * chr(0x1D4B3)}\u2026', is not a number.",
    "3 3.0 3": "All 3 numbers are equal; a score needs numbers that differ.",
    " ".join(["1"] * (MOST + 1)): f"There are {MOST + 1} entries; at most {MOST} are taken.",
    **{
        " ".join(["1"] * (count - 1) + ["x"]): f"The {which} entry, 'x', is not a number."
        for count, which in [(10, "tenth"), (11, "11th"), (12, "12th"), (21, "21st"), (22, "22nd"), (23, "23rd"),
                             (24, "24th"), (111, "111th"), (113, "113th"), (121, "121st"), (200, "200th")]
    },
}  # fmt: skip


def test_numbers_are_read(node):
    found = node(OwnSample._esm, "(m, texts) => texts.map((text) => Array.from(m.readNumbers(text)))", list(GOOD))
    for (text, wanted), theirs in zip(GOOD.items(), found, strict=True):
        assert read_numbers(text).tolist() == wanted == theirs


def test_what_is_wrong_is_said_in_both_languages(node):
    body = '(m, texts) => texts.map((numbers) => m.evaluate({ activation: "relu", numbers }))'
    for (text, problem), found in zip(BAD.items(), node(OwnSample._esm, body, list(BAD)), strict=True):
        with pytest.raises(ValueError, match=re.escape(problem)):
            read_numbers(text)
        assert found["problem"] == problem and math.isnan(found["score"])
        widget = OwnSample(numbers=text)
        assert math.isnan(widget.score()) and problem in html.unescape(widget.picture())


def samples():
    """Few and many, with ties, far from 0, tiny, huge, with an outlier, all negative, all positive."""
    rng = np.random.default_rng(0)
    yield from ([-1.0, 2.0], [0.0, 0.0, 1.0], [-3.0, -2.0, -1.0], [1e8, 1e8 + 1, 1e8 + 3], [1e-300, -1e-300, 3e-300])
    yield from ([-1e100, 3e99, 1e100], [-0.75, -1.0, -0.5, -2.0, 0.1], [5.0, 5.0, 5.0, 5.0000001])
    for size in (3, 10, 100, 3000):
        yield from (rng.normal(0, 2, size).tolist(), [*rng.integers(-2, 4, size).tolist(), -1e5])
        yield [*rng.standard_cauchy(size).tolist(), 1e4]


def test_the_page_computes_what_python_computes(node):
    cases = [{"activation": name, "numbers": " ".join(map(repr, x))} for x in samples() for name in CHOICES]
    found = node(OwnSample._esm, "(m, cases) => cases.map(c => { const { score, mean, sd, negative } = m.evaluate(c);"
                 "return { score, mean, sd, negative }; })", cases)  # fmt: skip
    scores = []
    for case, got in zip(cases, found, strict=True):
        x = read_numbers(case["numbers"])
        scores.append(affinity_score(x, CATALOGUE[case["activation"]](x).numpy(), covariance="empirical").item())
        scaled = x / np.abs(x).max()
        mean, spread = np.abs(x).max() * scaled.mean(), np.abs(x).max() * scaled.std()
        np.testing.assert_allclose(got["score"], scores[-1], rtol=0, atol=1e-9)
        np.testing.assert_allclose([got["mean"], got["sd"]], [mean, spread], rtol=1e-9, atol=1e-12 * spread)
        assert got["negative"] == (x < 0).sum()
    assert any(map(math.isnan, scores)) and np.nanmin(scores) < 0.05 and np.nanmax(scores) == 1


def test_the_score_is_the_gap_of_the_picture(node):
    """1 minus the root mean square distance of the points from the line, the affine image, over the root of 2."""
    states = [{"activation": name, "numbers": OwnSample().numbers + " -0.2 -3"} for name in CHOICES]
    body = "(m, states) => states.map((s) => m.evaluate(s)).map((e) => [Array.from(e.inputs), Array.from(e.outputs)])"
    for state, (inputs, outputs) in zip(states, np.array(node(OwnSample._esm, body, states)), strict=True):
        gap = math.sqrt(np.mean((inputs - outputs) ** 2) / 2)
        assert 1 - gap == pytest.approx(OwnSample(**state).score(), abs=1e-9)
        x = np.sort(read_numbers(state["numbers"]))
        y = CATALOGUE[state["activation"]](x).numpy()
        image = affine_map(x, y, covariance="empirical")(x[:, None])[:, 0]
        np.testing.assert_allclose((image - y.mean()) / y.std(), inputs, atol=1e-9)


def test_a_constant_output_has_no_points():
    widget = OwnSample(numbers="-1 -2 -4")
    assert math.isnan(widget.score())
    assert "undefined: the output is constant" in widget.picture() and "h0" not in widget.picture()
    assert "3 negative (100 %, shaded)" in widget.picture() and "h0" in OwnSample().picture()
