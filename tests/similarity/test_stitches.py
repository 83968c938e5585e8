"""Similarity against the price of a stitch: planted relations are found, and four layers decide nothing."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from affscore_book.similarity.study import load_similarity
from affscore_book.stitching.study import load_stitching
from affscore_study.similarity import stitches

DATA = Path(__file__).resolve().parents[2] / "book" / "data"


@pytest.fixture(scope="module")
def stored():
    return load_similarity(DATA / "similarity" / "study.json"), load_stitching(DATA / "stitching" / "study.json")


def test_a_planted_relation_is_found_and_a_reversed_one_too(stored, monkeypatch):
    """Penalties that fall as heights rise give -1 whatever network is left out; those that rise give 1."""
    study, stitched = stored
    layers = ~study.inside("resnet20")
    heights = study.heights("resnet20", "relu")[:, layers]
    for sign in (-1, 1):
        networks = study.networks("resnet20")
        tables = np.full((layers.sum(), networks, networks), np.nan)
        for number, (a, b) in enumerate(itertools.combinations(range(networks), 2)):
            tables[:, a, b] = tables[:, b, a] = sign * heights[number]
        monkeypatch.setattr(type(stitched), "tables", lambda *_, planted=tables: planted)
        found = stitches.over_layers(study, stitched, layers)
        assert found.mean == pytest.approx(sign) and math.isnan(found.low)


def test_four_layers_leave_the_sentence_open(stored):
    rows = stitches.stitch_claims(*stored)
    assert rows[0].verdict == "not shown" and math.isnan(rows[0].interval[0])
    assert all(-1 <= end <= 1 for row in rows[1:] for end in row.interval)


def test_the_table_compares_with_the_papers_own_numbers(stored):
    """By hand from the printed numbers: G_ReLU's penalties order the layers 3, 2, 4, 1, its similarities 4, 3, 1, 2."""
    (full, group) = stitches.against_stitches(*stored).rows()
    assert group["paper"] == pytest.approx(1 - 6 * (1 + 1 + 9 + 1) / 60)
    assert full["paper"] < group["paper"]
    assert all(-1 <= group[ours] <= 0 for ours in ("ours, not centred", "ours, above the null"))
