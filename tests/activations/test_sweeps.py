"""Scores of samples follow the law of many coordinates, and the stored sweep is what they give."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import Sweep, load_sweep
from affscore_study.activations.samples import FIGURE_8, pooled_score, sample_score
from affscore_study.redshift.draws import layer_scores

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "activations" / "figure_8.json"


@pytest.mark.parametrize("name", ["relu", "tanh", "silu", "gelu"])
def test_many_independent_coordinates_give_the_paired_law(name):
    for mean in (-0.5, 0.5):
        law = score_curve(name, mean, coupling="paired").item()
        assert sample_score(name, mean, 1.0, n=400, d=150) == pytest.approx(law, abs=0.01)
    # Where the activation falls the dimension decides.
    one, many = (sample_score("silu", -5.0, 0.5, n=400, d=d) for d in (1, 150))
    assert one > 0.75 and many < 0.2
    assert score_curve("silu", -5.0, 0.5, coupling="paired").item() < -0.35


def test_samples_are_reproducible_and_shared():
    same = [sample_score("relu", 0.5, 1.0, n=50, d=3, seed=2) for _ in range(2)]
    assert same[0] == same[1] != sample_score("relu", 0.5, 1.0, n=50, d=3, seed=3)
    # Shifting and scaling ReLU's output changes nothing, so it has seen the same inputs.
    assert sample_score(lambda x: 5 * torch.relu(x) + 1, 0.5, 1.0, n=50, d=3, seed=2) == pytest.approx(same[0])
    assert math.isnan(sample_score("relu", -20.0, 1.0, n=50, d=3))


def test_pooling_smooths_positions_that_have_much_in_common():
    """Each position is standard normal still, and the average is that of ReLU smoothed by the positions' own parts."""
    sizes = {"channels": 16, "positions": 16, "n": 1000, "common": 0.5}
    flat, pooled = (pooled_score("relu", pool=pool, **sizes) for pool in (1, 16))
    own = 0.5**0.5
    smooth = score_curve(lambda x: own * torch.special.ndtr(x / own) * (x / own) + own * _density(x / own), 0.0, own)
    assert flat == pytest.approx(score_curve("relu", 0.0).item(), abs=0.03)
    assert pooled == pytest.approx(smooth.item(), abs=0.03) and smooth > flat + 0.05
    # What all positions share entirely is what one position has.
    alone, shared = (pooled_score("relu", channels=32, positions=4, pool=p, n=200, common=1.0) for p in (4, 2))
    assert alone == pytest.approx(shared, abs=0.03)
    with pytest.raises(ValueError, match="between 0 and 1"):
        pooled_score("relu", channels=2, positions=2, pool=1, n=9, common=1.5)


def _density(z):
    return torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


NAN = math.nan
#: Two activations over three means and two widths: b is lower by 0.2 and 0.4 where both have a score, and 0 elsewhere.
TWO = Sweep(
    np.arange(3.0), np.array([1.0, 2.0]),
    {"a": np.array([[0.9, NAN], [0.8, 0.7], [NAN, NAN]]), "b": np.array([[0.7, 0.0], [0.6, 0.3], [0.0, 0.0]])},
    {"n": 3, "d": 2, "seed": 0},
)  # fmt: skip


def test_a_sweep_has_a_law_that_is_undefined_where_it_is():
    law = replace(TWO, scores={"relu": TWO.scores["a"]}).law()
    assert np.isnan(law.scores["relu"]).sum() == 3 and law.settings["d"] == 1
    assert law.scores["relu"][1, 1] == pytest.approx(score_curve("relu", 1.0, 2.0).item())
    assert repr(law) == "Sweep(1 activations, 3 means, 2 standard deviations, n=infinite, d=1, seed=0)"


def test_activations_are_compared_where_both_have_a_score():
    """Where the first is dead the second scores 0, which must not count."""
    gap, (least, most) = TWO.gap("b", "a")
    assert (gap, least, most) == pytest.approx((-0.8 / 3, -0.4, -0.2)), "with one of two widths left out, the other"
    assert TWO.alive("a").sum() == 3
    # On those inputs b is below 0.5, 0.6, ..., 0.95 at 1, 1, 1, 2, 2, 2 means, a at 0, 0, 0, 1, 1, 2.
    assert list(TWO.extra_means("b", "a").items()) == [(0.5, 1), (0.6, 1), (0.7, 1), (0.8, 1), (0.9, 1), (0.95, 0)]
    # With 1 wherever the first is dead: two more inputs of the first width, two of the second.
    sweep = TWO.dead_as_one()
    assert sweep.alive("a").all() and sweep.scores["a"][2].tolist() == [1.0, 1.0]
    assert sweep.gap("b", "a")[0] == pytest.approx((-0.2 - 0.2 - 1 - 1 - 0.4 - 1) / 6)
    assert sweep.extra_means("b", "a")[0.9] == 2, "three means against one"


def test_the_released_code_calls_affine_what_hardly_varies():
    """SiLU at -20 varies by less than 1e-6 and at 0 it does not; ReLU at -20 not at all."""
    scores = {"silu": np.array([[0.1], [0.7]]), "relu": np.array([[NAN], [0.6]])}
    sweep = Sweep(np.array([-20.0, 0.0]), np.array([1.0]), scores, {}).released()
    assert sweep.scores["silu"][:, 0].tolist() == pytest.approx([1.0, 0.7], abs=1e-4)
    assert sweep.scores["relu"][:, 0].tolist() == [1.0, 0.6]
    # The identity at width 1e-3 has v = 1e-6, so 1 - sqrt(v / (2 (v + 1e-6))) is 1/2 there.
    sweep = Sweep(np.zeros(1), np.array([0.999e-3]), {"identity": np.ones((1, 1))}, {}).released()
    assert sweep.scores["identity"].item() == pytest.approx(0.5, abs=1e-3)


def test_the_stored_sweep_follows_the_law():
    """In 300 dimensions the score is that of the paired law, or slightly above 0 where that is negative."""
    sweep = load_sweep(STORED)
    assert set(sweep.scores) == set(FIGURE_8)
    for name, scores in sweep.scores.items():
        for j, std in enumerate(sweep.stds):
            law, ours = score_curve(name, sweep.means, std, coupling="paired").numpy(), scores[:, j]
            # Farther out float64 rounds tanh to a few values, and the law knows no rounding.
            seen = (law > 0.1) & (np.abs(sweep.means) < 12)
            assert np.nanmax(np.abs(ours - law)[seen], initial=0) < 0.08
            assert np.nanmax(ours[law < 0], initial=0) < 0.12


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"std is -1.0"):
        sample_score("relu", 0.0, -1.0, n=9, d=2)
    with pytest.raises(ValueError, match=r"pool is 3; it should divide"):
        pooled_score("relu", channels=2, positions=8, pool=3, n=9)
    (tmp_path / "sweep.json").write_text('{"settings": {"means": [1], "stds": [1]}, "scores": {"relu": []}}')
    with pytest.raises(ValueError, match=r"is not a complete file of book/data/activations/figure_8\.py"):
        load_sweep(tmp_path / "sweep.json")


@pytest.mark.parametrize("in_place", [torch.relu_, torch.nn.ReLU(inplace=True), lambda x: x.clamp_(min=0)])
def test_functions_that_work_in_place_get_a_copy(in_place):
    sizes = {"channels": 8, "positions": 4, "pool": 2, "n": 50}
    assert sample_score(in_place, 0, 1, 50, 3) == pytest.approx(sample_score("relu", 0, 1, 50, 3), rel=1e-12)
    assert pooled_score(in_place, **sizes) == pytest.approx(pooled_score("relu", **sizes), rel=1e-12)
    torch.testing.assert_close(layer_scores(in_place, seed=1, grid=6), layer_scores("relu", seed=1, grid=6))
