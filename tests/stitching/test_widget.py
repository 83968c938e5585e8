"""The moving picture of the chapter: JavaScript computes what Python computes, and shows what the chapter says."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from affscore_book import stitching
from affscore_book.kit.bundle import bundle
from affscore_book.stitching.toy import PAIRS, load_toys
from affscore_book.stitching.widget import CUTS, STITCHES, TwoNetworks

TOYS = load_toys(Path(__file__).resolve().parents[2] / "book" / "data" / "stitching" / "toy.json")
STATES = [TwoNetworks(toys=TOYS, pair=p, cut=c, stitch=s) for p, c, s in itertools.product(PAIRS, CUTS, STITCHES)]
PROGRAM = """(m, [toys, states]) => states.map((state) => {
  const { score, penalty, share, matrix, alone } = m.evaluate({ toys, ...state });
  return { score, penalty, share, matrix, alone };
})"""


def test_every_state_has_the_stitch_and_the_penalty_of_python(node):
    states = [{"pair": w.pair, "cut": w.cut, "stitch": w.stitch} for w in STATES]
    for widget, found in zip(STATES, node(TwoNetworks._esm, PROGRAM, [TOYS, states]), strict=True):
        name = repr(widget)
        assert found["score"] == widget.score(), name
        np.testing.assert_allclose([found["score"], *found["alone"]], widget.accuracies(), err_msg=name)
        np.testing.assert_allclose(found["penalty"], widget.penalty(), atol=1e-9, err_msg=name)
        np.testing.assert_allclose(found["matrix"], widget.matrix(), rtol=1e-6, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(found["share"], widget.explained(), rtol=1e-6, atol=1e-9, err_msg=name)


def test_singular_values_are_those_of_numpy(node):
    random = np.random.default_rng(0)
    source = bundle(Path(stitching.__file__).with_name("toy_stitches.js"))
    square, flat = random.normal(size=(8, 8)), random.normal(size=(9, 2)) @ random.normal(size=(2, 5))
    for matrix in (square, flat, np.diag([1e-9, 1.0, 1e3]), np.zeros((3, 3))):
        found = node(source, "(m, a) => m.svd(a)", matrix.tolist())
        u, s, v = (np.array(found[key]) for key in "usv")
        np.testing.assert_allclose(s, np.linalg.svd(matrix, compute_uv=False), atol=1e-12, rtol=1e-12)
        np.testing.assert_allclose((u.T * s) @ v, matrix, atol=1e-12)


def test_without_networks_there_is_no_score():
    assert np.isnan(TwoNetworks().score()) and "no networks" in TwoNetworks().picture()


@pytest.mark.parametrize("cut", CUTS)
def test_a_low_penalty_does_not_need_a_trained_network(cut):
    """In closed form from an untrained first half; learned on the labels also into an untrained second half."""
    first = TwoNetworks(toys=TOYS, pair="untrained_first", cut=cut)
    assert first.accuracies()[1] == 0.5 and first.score() >= 0.95 and first.penalty() < -20
    second = TwoNetworks(toys=TOYS, pair="untrained_second", cut=cut)
    assert second.accuracies()[2] == second.score() == 0.5 and second.explained() > 0.8
    learned = TwoNetworks(toys=TOYS, pair="untrained_second", cut=cut, stitch="learned")
    assert learned.score() >= 0.95 and learned.explained() < 0
