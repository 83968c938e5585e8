"""The cloud that is turned and shuffled: JavaScript and Python agree on both scores, and on who changes places."""

import numpy as np
import pytest

from affscore_book.blind_spots.widget import STRETCH, ShuffleAndTurn, rows

SOURCE = ShuffleAndTurn._esm
STATES = [
    ShuffleAndTurn(shape=shape, angle=angle, shuffled=share)
    for shape in ("skewed", "round")
    for angle in (0.0, 35.0, 180.0)
    for share in (0.0, 0.05, 0.5, 1.0)
]


def test_both_languages_have_the_same_constants_and_paired_score(node):
    assert node(SOURCE, "m => m.STRETCH") == STRETCH
    found = node(SOURCE, "(m, states) => states.map((state) => m.evaluate(state).paired)", [s.state() for s in STATES])
    np.testing.assert_allclose(found, [widget.paired() for widget in STATES], atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05, 0.35, 1.0])
def test_both_languages_move_the_same_outputs(node, share):
    found = node(SOURCE, "(m, share) => m.rows(share, 56)", share)
    assert found == rows(share).tolist() and sorted(found) == list(range(56))
    moved = sum(i != row for i, row in enumerate(found))
    assert moved == (0 if share * 56 < 1.5 else pytest.approx(share * 56, abs=0.5))


def test_shuffling_and_turning_move_one_score_each():
    """Shuffling moves only the paired score, and turning a skewed cloud moves the other one."""
    still, mixed = (ShuffleAndTurn(angle=40.0, shuffled=share) for share in (0.0, 1.0))
    assert still.score() == pytest.approx(mixed.score(), abs=1e-12) and still.paired() > mixed.paired() + 0.3
    assert ShuffleAndTurn(angle=0.0).score() == pytest.approx(1) and ShuffleAndTurn(angle=180.0).score() < 0.5


def test_the_picture_says_both_scores():
    widget = ShuffleAndTurn(angle=20.0, shuffled=0.5)
    for name, score in (("Affinity", widget.score()), ("Paired", widget.paired())):
        assert f"{name} score {score:.3f}".replace("-", "\u2212") in widget.picture()
