"""The widget in both languages, beside the chapter's own measures, and what the measures are blind to."""

import re

import numpy as np
import pytest

from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes
from affscore_book.similarity.widget import NAMES, ORDERS, CloudsCompared

MEASURES = {
    "relu": lambda x, y: procrustes(x, y, null=0),
    "relu_uncentred": lambda x, y: procrustes(x, y, centred=False, null=0),
    "orthogonal": lambda x, y: procrustes(x, y, "orthogonal", null=0),
    "max": lambda x, y: cka(x, y, "max", null=0),
    "linear": lambda x, y: cka(x, y, null=0),
}
FOUND = """(m, states) => states.map(state => {
  const { x, y, found, score } = m.evaluate(state);
  return [[x, y].map(cloud => cloud.map(channel => Array.from(channel))), found, score];
})"""


def values(**state):
    """Each measure of a state's clouds, from the chapter's functions."""
    return {name: measure(*CloudsCompared(**state).clouds()).value for name, measure in MEASURES.items()}


def test_both_languages_compute_the_same_clouds_values_and_nulls(node):
    random = np.random.default_rng(0)
    widgets = [
        CloudsCompared(
            angle=float(random.integers(-36, 37) * 5), images=int(random.integers(12, 49)), noise=random.uniform(),
            measure=str(random.choice(list(NAMES))), order=str(random.choice(ORDERS)),
            stretch=int(random.integers(-6, 7)),
        )
        for _ in range(8)
    ]  # fmt: skip
    found = node(CloudsCompared._esm, FOUND, [widget.state() for widget in widgets])
    for widget, (clouds, rows, score) in zip(widgets, found, strict=True):
        for cloud, expected in zip(clouds, widget.clouds(), strict=True):
            np.testing.assert_allclose(np.array(cloud).T, expected, atol=1e-9)
        own = {name: measure(*widget.clouds()).value for name, measure in MEASURES.items()}
        assert score == pytest.approx(own[widget.measure], abs=1e-6)
        for row, (name, expected) in zip(rows, widget.compared().items(), strict=True):
            assert list(row.values()) == pytest.approx(list(expected), abs=1e-6), (widget, name)
            assert row["value"] == pytest.approx(own[name], abs=1e-6)


@pytest.mark.parametrize(
    ("state", "blind"),
    [
        ({"order": "swapped", "stretch": 5}, {"relu", "relu_uncentred", "max"}),
        ({"angle": 35.0}, {"orthogonal", "linear"}),
        ({"angle": 90.0}, {"orthogonal", "linear", "max"}),  # one channel has its sign turned
        ({"order": "swapped"}, set(MEASURES)),
        ({"angle": 35.0, "stretch": -3}, set()),
        ({"noise": 0.3}, set()),
    ],
)
def test_a_measure_is_blind_to_its_own_group(state, blind):
    found = values(**state)
    assert {name for name, value in found.items() if value > 1 - 1e-7} == blind
    assert all(value < 0.99 for name, value in found.items() if name not in blind)


def test_an_unrelated_cloud_is_at_0_for_cka_only():
    for name, (value, mean, low, high) in CloudsCompared(noise=1.0).compared().items():
        assert low < mean < high
        assert abs(value - mean) < 1.5 * (high - low)
        assert (abs(mean) < 0.05) is (name in ("max", "linear"))
        assert (mean > 0.25) is (name not in ("max", "linear"))


def test_the_picture_shows_every_measure_and_no_false_zero():
    picture = CloudsCompared(noise=1.0, measure="linear").picture()
    for name, value in values(noise=1.0).items():
        assert f">{NAMES[name]}<" in picture
        assert f"{value:.3f}".replace("-", "\N{MINUS SIGN}") in picture
    assert not re.search(r">\N{MINUS SIGN}?0\.000<", picture)


def test_a_small_number_is_not_written_as_0(node):
    found = node(CloudsCompared._esm, "(m, values) => values.map(m.digits)", [1e-12, 4e-4, -4e-4, -0.25])
    assert found == ["0.000", "< 0.001", "> \N{MINUS SIGN}0.001", "\N{MINUS SIGN}0.250"]
