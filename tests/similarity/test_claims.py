"""The verdicts follow the stored numbers: each claim on studies that keep it, break it or leave it open."""

import numpy as np
import pytest

from affscore_book.similarity.study import SimilarityStudy
from affscore_study.similarity import claims

CONSTANT, DOUBLE = "myrtle_constant_width", "myrtle_double_width"
WITH, WITHOUT = "resnet20", "resnet20_without_last_relu"
FASTER = "fall of G_ReLU-CKA − fall of linear CKA, first to last activation"
MIXED = "depends on what a decay is"
HAIR = np.random.default_rng(0)


class Planted(SimilarityStudy):
    """Four networks of each kind: CKA (6, layers, layers) by kind and kernel, Procrustes (6, layers, 2) by kind and
    measure, and by kind the interpretable fraction (4, 2) at alpha = 0 and 1 and what it rises by inside blocks, (4,).
    """

    def __init__(self, cka, similarities=None, units=None):
        self.cka, self.similarities, self.units = cka, similarities, units

    def networks(self, kind):
        return 4

    def maps(self, kind, kernel, which="map"):
        return self.cka[kind, kernel]

    def procrustes(self, kind, measure):
        return self.similarities[kind, measure]

    def curves(self, prefix, **_):
        return self.units[prefix][0]

    def inside_rises(self, prefix, **_):
        return self.units[prefix][1]

    def categories(self, prefix, **_):
        """Three of four interpretable units are objects, in a rotated basis as many as planted."""
        rotated = self.units.get("objects when rotated", 0.2)
        return {"object": hairy(np.full((4, 2), (0.3, rotated))), "edge": np.full((4, 2), (0.1, 0.4 - rotated))}


def hairy(values):
    """The values, different by a hair from network to network, as equal ones have no interval."""
    return values + 1e-7 * HAIR.uniform(-1, 1, values.shape)


def maps(along, away=0.5, spread=0.0):
    """CKA of six pairs: along the diagonal, elsewhere, and how much the last layer varies with the first network."""
    found = np.full((6, len(along), len(along)), away)
    found[:, range(len(along)), range(len(along))] = along
    found[:, -1, -1] += np.repeat([-spread, spread], 3)
    return hairy(found)


def above_null(heights):
    return hairy(np.stack([0.3 + np.tile(heights, (6, 1)), np.full((6, len(heights)), 0.3)], -1))


HEIGHTS = {"relu": [0.3, 0.2, 0.1, 0.2], "orthogonal": [0.5, 0.4, 0.3, 0.2]}


def widths(relu=(0.9,) * 4, spread=0.0, coded=HEIGHTS):
    """The rows on both widths, by what they say; ``coded`` are the heights by the paper's code."""
    kinds, measures = (CONSTANT, DOUBLE), HEIGHTS | {f"{group}_uncentred": row for group, row in coded.items()}
    cka = {(kind, "linear"): maps([0.95, 0.9, 0.9, 0.85]) for kind in kinds}
    cka |= {(kind, "max"): maps(relu, spread=spread) for kind in kinds}
    heights = {(kind, name): above_null(row) for kind in kinds for name, row in measures.items()}
    return {row.what: row for row in claims.other_widths(Planted(cka, heights))}


@pytest.mark.parametrize(
    ("relu", "spread", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.6], 0.0, ["agrees", "agrees", "agrees"]),
        ([0.9, 0.7, 0.8, 0.88], 0.0, [MIXED, MIXED, "disagrees"]),
        ([0.9, 0.9, 0.91, 0.95], 0.0, ["disagrees", "disagrees", "disagrees"]),
        ([0.9, 0.8, 0.7, 0.6], 0.2, ["undecided", "undecided", "undecided"]),
    ],
)
def test_a_decay_is_a_lower_end_or_a_fall_at_every_step(relu, spread, expected):
    rows = widths(relu, spread)
    found = list(rows.values())[:3]
    assert [row.verdict for row in found] == expected
    ours = [relu[0] - relu[3], min(-np.diff(relu)), relu[0] - relu[3] - 0.1]
    np.testing.assert_allclose([row.ours for row in found], ours, atol=1e-5)
    assert rows["double width: G_ReLU-CKA, least fall of three steps"].ours == pytest.approx(ours[1], abs=1e-5)


class InBlocks(Planted):
    """A residual network of five activations, the second and the fourth inside a block, beside a Myrtle of four."""

    def inside(self, kind):
        return np.array([False, True, False, True, False])


@pytest.mark.parametrize(
    ("inside", "orthogonal", "expected"),
    [
        (-0.2, [0.6, 0.3, 0.5, 0.2, 0.4], ["agrees", "agrees", "held", "held"]),
        (0.2, [0.2, 0.5, 0.3, 0.6, 0.4], ["disagrees", "disagrees", "held", "failed"]),
    ],
)
def test_inside_blocks_and_along_depth(inside, orthogonal, expected):
    """Of the ResNet: less or more similar inside blocks, and whether both groups order its layers alike; of the Myrtle:
    falls to the third activation, and a rise at the last for one group only."""
    along = np.array([0.9, 0.85, 0.8, 0.75, 0.7])
    steps = inside * np.array([0, 1, 0, 1, 0])
    cka = {("resnet20", "linear"): maps(0.8 + steps), ("resnet20", "max"): maps(along + steps)}
    cka |= {("myrtle", kernel): maps([0.9, 0.8, 0.7, last]) for kernel, last in (("linear", 0.8), ("max", 0.6))}
    names = [*HEIGHTS, *(f"{group}_uncentred" for group in HEIGHTS)]
    heights = {("myrtle", name): above_null(HEIGHTS[name.partition("_")[0]]) for name in names}
    heights |= {
        ("resnet20", "relu"): above_null([0.6, 0.3, 0.5, 0.2, 0.4]),
        ("resnet20", "orthogonal"): above_null(orthogonal),
    }
    rows = claims.trained_pairs(InBlocks(cka, heights))
    found = {row.what.removesuffix(" (raw)").partition(" (not centred")[0]: row for row in rows}
    blocks = [f"{name} CKA: outside blocks − inside" for name in ("linear", "G_ReLU")]
    blocks += [f"{name} Procrustes: outside blocks − inside" for name in ("G_ReLU", "orthogonal")]
    assert [found[f"ResNet20, {what}"].verdict for what in blocks] == expected
    alike = found["ResNet20: rank correlation of G_ReLU and orthogonal Procrustes over 19 activations"]
    assert alike.ours == pytest.approx(-np.sign(inside)) and alike.verdict == "not shown"  # equal in all networks
    assert found[f"ResNet20: {FASTER}"].ours == pytest.approx(0.2, abs=1e-5)
    assert found[f"Myrtle: {FASTER}"].ours == pytest.approx(0.2, abs=1e-5)
    for what, ours in (("orthogonal − G_ReLU, mean of layers", 0.15), ("G_ReLU, relu1 − relu3", 0.2),
                       ("G_ReLU, relu4 − relu3", 0.1), ("orthogonal, relu4 − relu3", -0.1)):  # fmt: skip
        assert found[what].ours == pytest.approx(ours, abs=1e-5)
        assert found[what].verdict == ("agrees" if ours > 0 else "disagrees")


def test_where_the_measure_decides_the_verdict_says_so():
    """By heights G_ReLU rises at the last activation and lies below; by the paper's code it falls and lies above."""
    found = widths(coded={"relu": [0.5, 0.5, 0.4, 0.3], "orthogonal": [0.5, 0.4, 0.3, 0.4]})
    for what, ours in (("G_ReLU − orthogonal, mean of relu2 and relu3", (0.1, -0.2)),
                       ("G_ReLU, relu3 − relu4", (0.1, -0.1)), ("orthogonal, relu4 − relu3", (0.1, -0.1))):  # fmt: skip
        rows = [found[f"constant width: {what} ({reading})"] for reading in claims.READINGS]
        assert {row.verdict for row in rows} == {"depends on the measure"}
        np.testing.assert_allclose([row.ours for row in rows], ours, atol=1e-5)


def test_the_papers_own_tables_differ():
    """Seven of ten signs by hand: G_ReLU lies above at the second and third layer, and falls at the last."""
    assert claims.kept_signs() == 7


def test_the_same_depth_is_compared_with_all_other_depths():
    rows = claims.same_depth(Planted({
        ("myrtle", "linear"): maps([0.95] * 4, 0.6), ("myrtle", "max"): maps([0.95, 0.8, 0.7, 0.6], 0.6),
        ("resnet20", "linear"): maps([0.3] * 4), ("resnet20", "max"): maps([0.5] * 4),
    }))  # fmt: skip
    found = {row.what: (round(row.ours, 5), row.verdict) for row in rows}
    assert found["Myrtle, linear CKA: same depth − other depths"] == (0.35, "agrees")
    assert found["Myrtle, G_ReLU CKA: at the first activation"] == (0.95, "agrees")
    assert found["Myrtle, G_ReLU CKA: first − last activation"] == (0.35, "agrees")
    assert found["ResNet20, linear CKA: same depth − other depths"] == (-0.2, "disagrees")
    assert found["ResNet20, linear CKA: at the first activation"] == (0.3, "disagrees")


def test_contrast_of_early_and_late_names_its_layers():
    """The contrast of early and late layers says which layers it compares.

    The planted ends are .5 alike by one kernel and .7 by the other; neighbours and diagonals differ by more.
    """
    cka = {}
    for kernel, along, ends, beside in (("linear", [0.95] * 4, 0.7, 0.8), ("max", [0.9, 0.8, 0.8, 0.7], 0.5, 0.5)):
        table = maps(along, 0.6)
        table[:, 0, -1], table[:, -1, 0] = ends + 0.05, ends - 0.05
        table[:, [0, 1, 2], [1, 2, 3]], table[:, [1, 2, 3], [0, 1, 2]] = beside + 0.04, beside - 0.04
        cka["myrtle", kernel] = cka["resnet20", kernel] = hairy(table)
    rows = {row.what: row for row in claims.same_depth(Planted(cka))}
    for reading, ours in (
        ("same layer − first and last", (0.95 - 0.7) - (0.8 - 0.5)),
        ("neighbours − first and last", (0.8 - 0.7) - (0.5 - 0.5)),
        ("first and last alone", (1 - 0.7) - (1 - 0.5)),
    ):
        row = rows[f"Myrtle: contrast of early and late layers, linear CKA − G_ReLU CKA ({reading})"]
        assert row.ours == pytest.approx(ours, abs=1e-4)
        assert row.verdict == "depends on which layers are compared"


OFFSETS = np.arange(4) - 1.5


def dissected(start, end, rise, spread):
    """Four networks: the fraction at 0 and at 1, what it rises by inside, and how much the last two vary."""
    level, off = 0.001 * OFFSETS, (spread + 1e-4) * OFFSETS  # equal values have no interval of Welch's
    return np.stack([start + level, end + level + off], 1), rise + off


@pytest.mark.parametrize(
    ("with_relu", "without", "expected"),
    [
        (
            (0.5, 0.3, 0.1, 0.0),
            (0.3, 0.3, 0.1, 0.0),
            ["agrees", "agrees", "held", "agrees", "agrees", "held", "agrees", "agrees"],
        ),
        (
            (0.5, 0.5, -0.1, 0.0),
            (0.5, 0.3, -0.1, 0.0),
            ["disagrees", "disagrees", "failed", "disagrees", "agrees", "held", *["disagrees"] * 2],
        ),
        (
            (0.5, 0.4, 0.1, 0.2),
            (0.5, 0.5, 0.1, 0.2),
            [*["undecided"] * 3, "disagrees", "agrees", "held", "undecided", "undecided"],
        ),
    ],
)
def test_units_that_fall_and_units_that_stay(with_relu, without, expected):
    rows = claims.single_units(Planted({}, units={WITH: dissected(*with_relu), WITHOUT: dissected(*without)}))
    assert [row.verdict for row in rows] == expected
    assert rows[4].ours == pytest.approx(0.75 - 0.5) and rows[5].ours == pytest.approx(0.75)


def test_objects_dominate_only_beyond_any_direction():
    """Objects dominate only beyond what any direction has of them."""
    units = {WITH: dissected(0.5, 0.3, 0.1, 0.0), WITHOUT: dissected(0.3, 0.3, 0.1, 0.0)}
    for rotated, verdict in ((0.2, "agrees"), (0.35, "disagrees")):
        rows = claims.single_units(Planted({}, units=units | {"objects when rotated": rotated}))
        assert [rows[4].verdict, rows[5].verdict] == [verdict, "held"]
