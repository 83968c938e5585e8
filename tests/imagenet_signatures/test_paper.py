"""What is quoted from the paper is complete, and our means stand beside it."""

import math
import statistics

import numpy as np
import pytest

from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.imagenet_signatures.printed import HEADINGS, TABLE_2
from affscore_book.kit.statistics import student_interval
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.paper import (
    AVERAGES,
    BEGINNINGS,
    FAMILY_MEASURES,
    printed_claims,
    table_1_claims,
    the_paper_against_itself,
)

COLUMNS = ("CKA", "norm", "sparsity", "entropy", "R2", "R2 held out")


def correlated(**rows):
    """A table of correlations; a row is a name, with "_seed_" for ", seed ", and its columns in order."""
    names = [name.replace("_seed_", ", seed ") for name in rows]
    return Table({"model": names} | dict(zip(COLUMNS, zip(*rows.values(), strict=True), strict=True)))


def lead(family, **rows):
    (claim,) = table_1_claims(correlated(**rows), {family: BEGINNINGS[family]}, "here")
    return claim


NAN = math.nan
VGG = {"vgg11": (0.1, 0.0, 0.1, -0.9, NAN, 0.02), "vgg13": (0.1, 0.0, 0.1, -0.88, NAN, 0.0),
       "vgg16": (0.1, 0.0, 0.1, -0.91, NAN, 0.01)}  # fmt: skip


def test_table_1_asks_for_the_strongest_measure():
    """Table 1 asks whether the measure that it names is the strongest one of either sign."""
    found = lead("VGGs", **VGG)
    assert found.ours == pytest.approx(np.mean([0.9, 0.88, 0.91]) - 0.1) and found.verdict == "agrees"
    assert found.source == "CVPR 2025, Table 1, VGGs" and found.theirs == "entropy, -0.90"
    turned = {name: (*row[:3], -row[3], *row[4:]) for name, row in VGG.items()}
    assert lead("VGGs", **turned).verdict == "disagrees"  # the other sign
    vit = {"vit_b_16": (0.1, -0.5, 0.1, 0, 0, -0.95), "vit_b_32": (0.1, -0.6, 0.1, 0, 0, -0.85)}
    assert lead("ViTs", **vit).ours == pytest.approx((-0.45 - 0.25) / 2)
    assert lead("ViTs", **vit).verdict == "undecided"  # two networks, far apart
    convnext = lead("Convnexts", convnext_tiny=(0.1, 0, 0, 0, NAN, 0))
    assert convnext.verdict == "not run here" and "images than channels" in convnext.needs


def test_one_network_decides_nothing_and_seeds_count_once():
    """One network decides nothing, and seeds of one network are not architectures."""
    (name, row), *_ = VGG.items()
    alone = lead("VGGs", **{name: row})
    assert alone.ours == pytest.approx(0.8) and alone.verdict == "not shown"
    seeds = {f"vgg11_seed_{i}": (0.1, 0.0, 0.1, -0.9 + 0.01 * i, NAN, 0.0) for i in range(3)}
    of_one = lead("VGGs", **seeds)
    assert of_one.verdict == "agrees" and "by seeds" in of_one.what
    several = lead("VGGs", **seeds, vgg13=(0.1, 0.0, 0.1, -0.5, NAN, 0.0))
    assert several.verdict == "undecided" and "by architectures" in several.what  # two results, not four


def test_the_rival_is_not_given_its_ordinary_interval():
    """Each of four rivals may be stronger by chance: what is below 0 for one of them alone does not decide."""
    leads = np.array([-0.02, -0.05, -0.09])
    rows = {f"vgg{i}": (0.5, 0.0, 0.0, -0.5 - lead, NAN, 0.0) for i, lead in zip((11, 13, 16), leads, strict=True)}
    assert student_interval(leads).high > 0 and student_interval(leads, 0.8).high < 0
    assert lead("VGGs", **rows).interval[1] == pytest.approx(student_interval(leads, 1 - 0.05 / 4).high)
    assert lead("VGGs", **rows).interval[0] == pytest.approx(student_interval(leads).low)


def test_the_paper_is_compared_with_its_own_rows():
    table = {row["what"]: row for row in the_paper_against_itself().rows()}
    assert table["average of CKA"]["own rows"] == f"{statistics.fmean(row[0] for row in TABLE_2.values()):.3f}"
    rows = [TABLE_2[f"efficientnet_b{i}"][0] for i in (1, 2, 3, 4)]
    assert table["EffNets, CKA"] == {
        "what": "EffNets, CKA", "printed": "0.42", "own rows": f"{statistics.fmean(rows):.3f}"
    }  # fmt: skip
    assert table["MNASNets, CKA"]["own rows"] == "no rows"
    counts = [int(row["own rows"]) for what, row in table.items() if what.startswith("rows in which")]
    assert sum(counts) == len(TABLE_2) and len(counts) == len(HEADINGS)


def test_averages_and_copies_of_the_paper_are_checked(monkeypatch):
    """Averages and copies within the paper are found, and they can be right."""

    def verdicts():
        return {claim.what: claim.verdict for claim in printed_claims()}

    def of(beginning):
        return [verdict for what, verdict in verdicts().items() if what.startswith(beginning)]

    assert of("pairs of networks") == ["disagrees"] and of("EffNets") == ["disagrees"]
    assert of("VGGs") == ["agrees"] and not of("MNASNets")
    assert set(of("average of CKA")) == {"depends on how many networks are averaged"}
    monkeypatch.setitem(TABLE_2, "densenet169", (0.5, 0.5, 0.5, 0.5, 0.5))
    for name in (name for name in TABLE_2 if name.startswith("efficientnet")):
        monkeypatch.setitem(TABLE_2, name, (0.42, 0.9, *TABLE_2[name][2:]))
    assert of("pairs of networks") == ["agrees"] == of("EffNets")
    monkeypatch.setitem(FAMILY_MEASURES, "MNASNets", ("CKA", -0.9))
    assert set(of("average of CKA")) != {"agrees"}
    assert of("largest part of the printed rows") == ["agrees"]
    for name in TABLE_2:
        monkeypatch.setitem(TABLE_2, name, (0.1, -0.99, 0.1, 0.1, 0.1))
    assert of("largest part of the printed rows") == ["disagrees"]


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
