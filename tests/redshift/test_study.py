"""The stored draws are whole, and single ones are found again."""

import json
from pathlib import Path

import numpy as np
import pytest

from affscore_book.redshift.complexity import dct_frequency
from affscore_book.redshift.networks import PANELS, image_of, layer_scores, random_network
from affscore_book.redshift.study import load_draws

STUDY = Path(__file__).resolve().parents[2] / "book" / "data" / "redshift" / "study.json"


def test_the_stored_study_is_whole_and_one_draw_of_it_is_found_again():
    study = load_draws(STUDY)
    assert np.shape(study.scores) == (200, 8, 3) and study.dct.shape == study.fourier.shape == (200, 8)
    assert set(study.maps) == set(study.settings["maps"]["activations"]) and len(study.maps) >= 8
    for seed, index in ((0, 0), (7, 3), (199, 5)):
        shift, scale, activation = list(PANELS)[index]
        again = layer_scores(activation, scale=scale, shift=shift, seed=seed, draw="paired")
        np.testing.assert_allclose(study.scores[seed, index], again, atol=1e-6)
    for activation, depth, scale, seed in (("gelu", 2, 4.0, 3), ("sine", 1, 0.5, 9)):
        maps = study.settings["maps"]
        where = maps["depths"].index(depth), maps["scales"].index(scale), seed
        network = random_network(scale=scale, depth=depth, seed=seed, draw="paired")
        score, frequency = study.maps[activation]["depth"][where]
        again = layer_scores(activation, scale=scale, depth=depth, seed=seed, draw="paired", grid=16)
        assert score == pytest.approx(again.mean().item(), abs=1e-6)
        assert frequency == pytest.approx(dct_frequency(image_of(network, activation)), abs=1e-6)


def test_the_study_is_strict_json():
    json.loads(STUDY.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert STUDY.stat().st_size < 1_000_000
