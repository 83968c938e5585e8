"""The stored draws are whole, single ones are found again, and claims over draws have the intervals they name."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from affscore_book.redshift.complexity import dct_frequency
from affscore_book.redshift.networks import PANELS
from affscore_book.redshift.study import load_draws
from affscore_study.redshift.claims import middle_draw, share_of_draws
from affscore_study.redshift.draws import image_of, layer_scores, measured, random_network

STUDY = Path(__file__).resolve().parents[2] / "book" / "data" / "redshift" / "study.json"


def test_stored_study_is_complete_and_one_draw_reproducible():
    """The stored study is complete, and single draws of it are found again."""
    study = load_draws(STUDY)
    assert np.shape(study.scores) == (200, 8, 3)
    assert set(study.maps) == set(study.settings["maps"]["activations"]) and len(study.maps) >= 8
    shift, scale, activation = list(PANELS)[5]
    again = layer_scores(activation, scale=scale, shift=shift, seed=199, draw="paired")
    np.testing.assert_allclose(study.scores[199, 5], again, atol=1e-6)
    for activation, depth, scale, seed in (("gelu", 2, 4.0, 3), ("sine", 1, 0.5, 9)):
        maps = study.settings["maps"]
        where = maps["depths"].index(depth), maps["scales"].index(scale), seed
        network = random_network(scale=scale, depth=depth, seed=seed, draw="paired")
        score, frequency = study.maps[activation]["depth"][where]
        again = layer_scores(activation, scale=scale, depth=depth, seed=seed, draw="paired", grid=16)
        assert score == pytest.approx(again.mean().item(), abs=1e-6)
        assert frequency == pytest.approx(dct_frequency(image_of(network, activation)), abs=1e-6)
    found = measured({"dct": dct_frequency}, (0.0, 4.0, "gelu"), 3)  # three hidden layers
    np.testing.assert_allclose(found["dct"], study.maps["gelu"]["depth"][2, 3, :3, 1], atol=1e-6)


@pytest.mark.parametrize(("count", "draws"), [(200, 200), (0, 50), (50, 200)])
def test_share_of_draws_has_clopper_pearson_interval(count, draws):
    """A share of draws has the interval of Clopper and Pearson.

    Its ends are the shares at which so many or more, or so few or less, have a chance of 2.5 %.
    """
    share, low, high = share_of_draws(np.arange(draws) < count)
    assert share == count / draws
    assert low == 0 if count == 0 else stats.binom.sf(count - 1, draws, low) == pytest.approx(0.025)
    assert high == 1 if count == draws else stats.binom.cdf(count, draws, high) == pytest.approx(0.025)


def test_interval_of_a_middle_draw_has_its_coverage():
    """The interval of a middle draw holds the median 95 times out of 100."""
    rng = np.random.default_rng(0)
    found = [middle_draw(rng.exponential(size=60)) for _ in range(200)]
    held = np.mean([each.low <= np.log(2) <= each.high for each in found])
    assert 0.93 < held < 0.99
