"""What is quoted from the paper is complete, and our means stand beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from affscore.suite.suites import PAPER
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.paper import (
    AVERAGES,
    FAMILY_MEASURES,
    HEADINGS,
    TABLE_2,
    table_1_claims,
    table_2,
)


def test_table_1_claims_take_means_over_families_and_say_what_is_missing():
    columns = {"model": ["vgg11", "vgg16", "vit_b_16", "mean"], "CKA": [0.1] * 4, "sparsity": [0.1] * 4}
    numbers = {"norm": [0.0, 0.0, -0.5, 0.0], "entropy": [-0.9, -0.3, 0.0, 0.0], "R2": [math.nan] * 4}
    claims = {claim.what: claim for claim in table_1_claims(Table(columns | numbers))}
    assert claims["VGGs: entropy"].ours == pytest.approx(-0.6) and claims["VGGs: entropy"].verdict == "agrees"
    assert claims["ViTs: norm"].verdict == "agrees" and claims["Convnexts: r2"].verdict == "not run here"
    assert len(claims) == len(FAMILY_MEASURES)


def test_quoted_tables_are_complete():
    assert set(PAPER) - set(TABLE_2) == {"mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"}
    assert set(TABLE_2) <= set(PAPER) and len(TABLE_2) == 32
    rows = np.array(list(TABLE_2.values()))
    assert rows.shape == (32, len(HEADINGS)) and np.abs(rows).max() <= 1
    # The paper's averages are over more networks than it lists, but not far off: a slip of the pen would show.
    for column, measure in enumerate(HEADINGS):
        mean, std = AVERAGES[measure]
        assert abs(rows[:, column].mean() - mean) < 0.035 and abs(rows[:, column].std() - std) < 0.02
    assert all(measure in HEADINGS for _, measure, _ in FAMILY_MEASURES.values())
    assert len(table_2()) == 34
