"""What the choice of an activation decides, and where score and complexity part, follow the stored draws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from affscore_book.redshift.networks import PANELS
from affscore_book.redshift.study import load_draws
from affscore_study.kit.rules import judged
from affscore_study.redshift import claims

STUDY = load_draws(Path(__file__).resolve().parents[2] / "book" / "data" / "redshift" / "study.json")


def test_score_and_complexity_part_with_relu_depth_only():
    """Score and complexity disagree for ReLU networks that get deeper, and only there."""
    rows = {
        row.what.partition(": ")[0]: row
        for row in judged("redshift", "complexity", {"score": claims.score_and_complexity(STUDY)})
    }
    assert {what: row.verdict for what, row in rows.items()} == {
        "relu, score and frequency, by shift": "agrees",
        "relu, score and frequency, by scale": "held",
        "relu, score and frequency, by depth": "failed",
        "tanh, score and frequency, by depth": "held",
    }
    mirrored = {"relu": STUDY.maps["relu"] | {"depth": STUDY.maps["relu"]["depth"] * [-1, 1]}}
    turned = claims.score_and_complexity(replace(STUDY, maps=STUDY.maps | mirrored))
    turned = judged("redshift", "complexity", {"score": turned})
    assert [row.verdict for row in turned] == ["agrees", "failed", "held", "held"]


def planted(choice, scale):
    """Images of three draws: tanh's differ from ReLU's by one factor, those of large weights from small by another."""
    return {
        (t, s, a): {"measure": np.full(3, (choice if a == "tanh" else 1.0) * (scale if s == 6 else 1.0))}
        for t, s, a in PANELS
    }


def test_the_choice_is_weighed_against_the_scale():
    assert claims.weight_of_the_choice(planted(2.0, 1 / 4.0), "measure", 1.0) == pytest.approx([0.5] * 3)
    assert claims.weight_of_the_choice(planted(9.0, 3.0), "measure", 6.0) == pytest.approx([2.0] * 3)
    noise = np.random.default_rng(0).normal(size=40)
    for factor, verdict in ((1.1, "agrees"), (30.0, "disagrees")):
        found = planted(factor, 5.0)
        spread = {
            key: {"measure": values["measure"][0] * np.exp(0.05 * noise * key[1])} for key, values in found.items()
        }
        rows = judged("redshift", "inductive_bias", {"choice": claims.inductive_bias(spread)})
        assert [row.verdict for row in rows] == [verdict] * 2


def test_the_choice_can_weigh_at_large_weights_only():
    """Planted: at small weights the two paint one image, at large ones tanh's is changed far more than ReLU's."""
    noise = np.random.default_rng(0).normal(size=(8, 40))
    found = {
        key: {"measure": (30.0 if key[1:] == (6.0, "tanh") else 1.0) * np.exp(0.05 * spread)}
        for key, spread in zip(planted(1.0, 1.0), noise, strict=True)
    }
    rows = judged("redshift", "inductive_bias", {"choice": claims.inductive_bias(found)})
    assert [row.ours < 1 for row in rows] == [True, False]
    assert {row.verdict for row in rows} == {"depends on the size of the weights and the measure"}


def test_start_of_the_scale_decides_about_factors_only():
    """Where a scale begins decides about factors and about nothing else.

    Above a planted floor of 1 each factor is known; counted from zero it is nearer to 1.
    """
    noise = np.exp(0.02 * np.random.default_rng(0).normal(size=(8, 40)))
    floor = dict(zip(PANELS, (0.1, 0.1, 0.4, 2.0, 0.1, 0.1, 0.9, 0.8), strict=True))
    found = {
        key: {"cosine": 1 + middle * spread, "excess": middle * spread}
        for (key, middle), spread in zip(floor.items(), noise, strict=True)
    }
    zero, above = "cosine, from zero", "cosine, above one half period"
    rows = judged("redshift", "pictures", claims.picture_factors(found, {zero: "cosine", above: "excess"}))
    by_row = {row.what: row for row in rows}
    assert len(by_row) == 10
    for what, factor, verdict in (
        ("ReLU, 1x to 6x", 4.0, "depends on where the scale begins"),
        ("ReLU 6x, raw to shifted", 9 / 4, "depends on where the scale begins"),
        ("tanh, 1x to 6x", 20.0, "held"),
        ("6x shifted, ReLU / tanh", 9 / 8, "held"),
    ):
        assert by_row[f"{what}, median draw ({above})"].ours == pytest.approx(factor, rel=0.05)
        assert {by_row[f"{what}, median draw ({reading})"].verdict for reading in (zero, above)} == {verdict}
    alone = judged("redshift", "unexplained", claims.picture_factors(found, {"excess": "excess"}))
    assert [row.verdict for row in alone if row.what.startswith("ReLU,")] == ["disagrees"]
