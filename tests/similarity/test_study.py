"""The stored comparisons of trained networks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from affscore_book.similarity.study import load_similarity

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "similarity" / "study.json"


def test_stored_results_are_strict_json_with_possible_values():
    json.loads(STORED.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    study = load_similarity(STORED)
    for kind, kernels in study.settings["kinds"].items():
        layers = len(study.layers(kind))
        pairs = math.comb(study.settings["seeds"], 2)
        for measure in study.settings["measures"][kind]:
            values = study.procrustes(kind, measure)
            assert values.shape == (pairs, layers, 2)
            # In the mean, networks are nearer to each other than to shuffled ones, at every layer.
            assert (values > 0.2).all() and (values < 1).all()
            assert (values[..., 0].mean(0) > values[..., 1].mean(0)).all()
        for kernel in kernels:
            maps = study.maps(kind, kernel)
            assert maps.shape == (pairs, layers, layers)
            assert (np.abs(maps) <= 1).all()
            assert np.abs(study.maps(kind, kernel, "null")).mean() < 0.05
    for name in study.dissected:
        for curve in study.dissection(name).values():
            assert (curve["fraction"] >= 0).all() and (curve["fraction"] <= 1).all()
            assert np.ptp(curve["fraction"][:, 0]) == 0


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"settings": 1', "\xff"])
def test_damaged_results_are_refused(text, tmp_path):
    (tmp_path / "results.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="is not a complete file of book/data/similarity"):
        load_similarity(tmp_path / "results.json")
