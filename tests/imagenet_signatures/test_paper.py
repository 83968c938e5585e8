"""What is quoted from the paper is complete, and our means stand beside it."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from affscore.suite.suites import PAPER
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.paper import (
    AVERAGES,
    BEGINNINGS,
    FAMILY_MEASURES,
    HEADINGS,
    TABLE_2,
    table_1_claims,
    table_2,
    the_paper_against_itself,
)


def test_table_1_asks_whether_the_measure_named_is_the_strongest_of_either_sign():
    columns = {"model": ["vgg11", "vgg16", "vit_b_16", "vit_b_32", "convnext_tiny", "mean"], "CKA": [0.1] * 6}
    numbers = {"norm": [0.0, 0.0, -0.5, -0.6, 0.0, 0.0], "entropy": [-0.9, -0.3, 0.0, 0.0, 0.0, 0.0]}
    held_out = [0.0, 0.0, -0.95, -0.85, 0.0, 0.0]
    table = Table(columns | {"sparsity": [0.1] * 6, "R2": [math.nan] * 6, "R2 held out": held_out} | numbers)
    families = {name: BEGINNINGS[name] for name in ("VGGs", "ViTs", "Convnexts")}
    vgg, vit, convnext = table_1_claims(table, families, "source", "here")
    assert vgg.ours == pytest.approx(0.5) and vgg.verdict == "undecided"  # two networks, far apart
    assert vit.ours == pytest.approx((-0.45 - 0.25) / 2) and vit.accept == (0, math.inf)
    assert convnext.verdict == "not run here" and "images than channels" in convnext.needs
    (alone,) = table_1_claims(table, {"VGGs": "vgg11"}, "source", "here")
    assert alone.ours == pytest.approx(0.8) and alone.interval is None and alone.verdict == "agrees"
    every = table_1_claims(table, families, "untrained", "here")
    assert {claim.kind for claim in every if claim.ours is not None} == {"untrained"}
    turned = Table({name: [-each for each in table[name]] if name == "entropy" else list(table[name]) for name in
                    ("model", *columns, "sparsity", "R2", "R2 held out", *numbers)})  # fmt: skip
    assert table_1_claims(turned, {"VGGs": "vgg11"}, "source", "here")[0].verdict == "disagrees"  # the other sign


def test_the_paper_is_compared_with_its_own_rows():
    table = {row["what"]: row for row in the_paper_against_itself().rows()}
    assert table["average of CKA"]["own rows"] == f"{statistics.fmean(row[0] for row in TABLE_2.values()):.3f}"
    rows = [TABLE_2[f"efficientnet_b{i}"][0] for i in (1, 2, 3, 4)]
    assert table["EffNets, CKA"] == {
        "what": "EffNets, CKA", "printed": "0.42", "own rows": f"{statistics.fmean(rows):.3f}"
    }  # fmt: skip
    assert table["MNASNets, CKA"]["own rows"] == "no rows"
    needed = float(table["CKA of MNASNets, if in the average"]["own rows"])
    every = [*(row[0] for row in TABLE_2.values()), *[needed] * 4]
    assert statistics.fmean(every) == pytest.approx(AVERAGES["cka"][0], abs=1e-4)


def test_quoted_tables_are_complete():
    assert set(PAPER) - set(TABLE_2) == {"mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"}
    assert set(TABLE_2) <= set(PAPER) and len(TABLE_2) == 32
    rows = np.array(list(TABLE_2.values()))
    assert rows.shape == (32, len(HEADINGS)) and np.abs(rows).max() <= 1
    # The paper's averages are over more networks than it lists, but not far off: a slip of the pen would show.
    for column, measure in enumerate(HEADINGS):
        mean, std = AVERAGES[measure]
        assert abs(rows[:, column].mean() - mean) < 0.035 and abs(rows[:, column].std() - std) < 0.02
    assert all(measure in HEADINGS for measure, _ in FAMILY_MEASURES.values())
    assert BEGINNINGS.keys() == FAMILY_MEASURES.keys()
    assert len(table_2()) == 34
