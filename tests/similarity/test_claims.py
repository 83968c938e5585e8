"""The verdicts follow the stored numbers: each claim on studies that keep it, break it or leave it open."""

import itertools

import numpy as np
import pytest
from grids import each
from scipy import stats

from affscore_book.similarity import claims
from affscore_book.similarity.study import SimilarityStudy

PAIRS = [f"{a}-{b}" for a, b in itertools.combinations(range(4), 2)]
WIDTHS = {"constant width": "myrtle_constant_width", "double width": "myrtle_double_width"}
WITH, WITHOUT = "resnet20", "resnet20_without_last_relu"


def similar(layers, diagonal, *, away=0.5, spread=0.0, heights=None, coded=None):
    """A kind of networks: CKA by kernel along the diagonal, ``away`` elsewhere; the last layer varies with network 0.

    ``heights``: by group, what Procrustes is above a null of 0.3; ``coded``: the same by the paper's code, else equal.
    Values differ by a hair from pair to pair, as equal ones have no interval.
    """
    names = [f"relu{i}" for i in range(1, layers + 1)]
    cka = {}
    for kernel, along in diagonal.items():
        maps = np.full((6, layers, layers), away)
        maps[:, range(layers), range(layers)] = along
        maps[:3, -1, -1] -= spread
        maps[3:, -1, -1] += spread
        maps[:, range(layers), range(layers)] += len(kernel) * 1e-8 * np.outer(range(6), range(1, layers + 1))
        cka[kernel] = {
            pair: {"map": table.tolist(), "null": table.tolist()} for pair, table in zip(PAIRS, maps, strict=True)
        }
    measures = dict(heights or {})
    measures |= {f"{group}_uncentred": values for group, values in (coded or measures).items()}
    procrustes = {
        name: {
            pair: {
                group: [0.3 + values[at] * (1 + 1e-6 * number) + 1e-6 * at * number, 0.3]
                for group, values in measures.items()
            }
            for number, pair in enumerate(PAIRS)
        }
        for at, name in enumerate(names)
    }
    return names, procrustes, cka


def study(kinds=None, dissected=None):
    """``kinds``: name -> :func:`similar`; ``dissected``: kind -> (fraction at 0, at 1, rise inside, spread)."""
    content = {"settings": {"seeds": 4}, "layers": {}, "procrustes": {}, "cka": {}}
    for name, parts in (kinds or {}).items():
        content["layers"][name], content["procrustes"][name], content["cka"][name] = parts
    curves, inside, units = {}, {}, {}
    for kind, (start, end, rise, spread) in (dissected or {}).items():
        for seed in range(4):
            off, level = spread * (seed - 1.5), 0.001 * (seed - 1.5)
            one = {"units": 8, "fraction": [[start + level, end + level + off]] * 3, "chance": [[0, 0]]}
            curves[f"{kind}_{seed}"] = {"garments": {"block3.relu2": one}}
            inside[f"{kind}_{seed}"] = {"block3.a.0": [[0.2, 0.2 + rise + off]] * 3}
            steps = [{"shares": {"object": 0.3 + 1e-9 * seed, "edge": 0.1}, "best": [[5, "boot", 0.2]]}] * 3
            units[f"{kind}_{seed}"] = {"block3.relu2": steps}
    content |= {"dissection": curves, "dissection_pixels": curves}
    content |= {"inside": dict.fromkeys(("map", "pixels"), inside), "units": dict.fromkeys(("map", "pixels"), units)}
    return SimilarityStudy(content)


FLAT = {"linear": [0.9] * 4, "max": [0.9] * 4}
HEIGHTS = {"relu": [0.3, 0.2, 0.1, 0.2], "orthogonal": [0.5, 0.4, 0.3, 0.2]}
MIXED = "depends on what a decay is"


def widths(width, kind):
    """The rows on one width, by what they measure; the other width shows nothing."""
    flat = similar(4, FLAT, heights=dict.fromkeys(HEIGHTS, [0.1] * 4))
    rows = claims.other_widths(study({name: kind if what == width else flat for what, name in WIDTHS.items()}))
    return {row.what[len(width) + 2 :]: row for row in rows if row.what.startswith(width)}


@each(
    ("relu", "spread", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.6], 0.0, ["agrees", "agrees", "agrees"]),
        ([0.9, 0.7, 0.8, 0.88], 0.0, [MIXED, MIXED, "disagrees"]),
        ([0.9, 0.9, 0.91, 0.95], 0.0, ["disagrees", "disagrees", "disagrees"]),
        ([0.9, 0.8, 0.7, 0.6], 0.2, ["undecided", "undecided", "undecided"]),
    ],
)
def test_a_decay_is_a_lower_end_or_a_fall_at_every_step(relu, spread, expected):
    kind = similar(4, {"linear": [0.95, 0.9, 0.9, 0.85], "max": relu}, spread=0.0, heights=HEIGHTS)
    kind[2]["max"] = similar(4, {"max": relu}, spread=spread)[2]["max"]
    found = list(widths("constant width", kind).values())[:3]
    assert [row.verdict for row in found] == expected
    ours = [relu[0] - relu[3], min(-np.diff(relu)), relu[0] - relu[3] - 0.1]
    np.testing.assert_allclose([row.ours for row in found], ours, atol=1e-5)
    doubled = widths("double width", kind)
    assert doubled["G_ReLU-CKA, least fall of three steps"].ours == pytest.approx(ours[1], abs=1e-5)


def test_where_the_measure_decides_the_verdict_says_so():
    """By heights G_ReLU rises at the last activation and lies below; by the paper's code it falls and lies above."""
    coded = {"relu": [0.5, 0.5, 0.4, 0.3], "orthogonal": [0.5, 0.4, 0.3, 0.4]}
    found = widths("constant width", similar(4, FLAT, heights=HEIGHTS, coded=coded))
    by_code, centred = (f"({reading})" for reading in claims.READINGS)
    for what, ours in (("G_ReLU − orthogonal, mean of relu2 and relu3", (0.1, -0.2)),
                       ("G_ReLU, relu3 − relu4", (0.1, -0.1)), ("orthogonal, relu4 − relu3", (0.1, -0.1))):  # fmt: skip
        rows = [found[f"{what} {reading}"] for reading in (by_code, centred)]
        assert {row.verdict for row in rows} == {"depends on the measure"}
        np.testing.assert_allclose([row.ours for row in rows], ours, atol=1e-5)
    assert found[f"G_ReLU, relu1 − relu3 {by_code}"].verdict == "agrees"


def test_the_papers_own_tables_differ():
    """Seven of ten signs by hand: G_ReLU lies above at the second and third layer, and falls at the last."""
    assert claims.kept_signs() == 7


def test_the_same_depth_is_compared_with_all_other_depths():
    flat, steep = {"linear": [0.95] * 4, "max": [0.95, 0.8, 0.7, 0.6]}, {"linear": [0.3] * 4, "max": [0.5] * 4}
    rows = claims.same_depth(study({"myrtle": similar(4, flat, away=0.6), "resnet20": similar(4, steep, away=0.5)}))
    found = {row.what: (round(row.ours, 6), row.verdict) for row in rows}
    assert found["Myrtle, linear CKA: same depth − other depths"] == (0.35, "agrees")
    assert found["Myrtle, G_ReLU CKA: at the first activation"] == (0.95, "agrees")
    assert found["Myrtle, G_ReLU CKA: first − last activation"] == (0.35, "agrees")
    assert found["ResNet20, linear CKA: same depth − other depths"] == (-0.2, "disagrees")
    assert found["ResNet20, linear CKA: at the first activation"] == (0.3, "disagrees")


def test_the_contrast_of_early_and_late_layers_says_which_layers_it_compares():
    """Planted: the ends are .5 alike by one kernel and .7 by the other; neighbours and diagonals differ by more."""
    names, procrustes, cka = similar(4, {"linear": [0.95] * 4, "max": [0.9, 0.8, 0.8, 0.7]}, away=0.6)
    for kernel, ends, beside in (("linear", 0.7, 0.8), ("max", 0.5, 0.5)):
        for number, maps in enumerate(cka[kernel].values()):
            table = np.array(maps["map"])
            table[0, -1], table[-1, 0] = ends + 0.05 + 1e-6 * len(kernel) * number, ends - 0.05
            table[[0, 1, 2], [1, 2, 3]], table[[1, 2, 3], [0, 1, 2]] = beside + 0.04, beside - 0.04
            maps["map"] = table.tolist()
    kind = names, procrustes, cka
    rows = {row.what: row for row in claims.same_depth(study({"myrtle": kind, "resnet20": kind}))}
    what = "Myrtle: contrast of early and late layers, linear CKA − G_ReLU CKA"
    for reading, ours in (
        ("same layer − first and last", (0.95 - 0.7) - (0.8 - 0.5)),
        ("neighbours − first and last", (0.8 - 0.7) - (0.5 - 0.5)),
        ("first and last alone", (1 - 0.7) - (1 - 0.5)),
    ):
        row = rows[f"{what} ({reading})"]
        assert row.ours == pytest.approx(ours, abs=1e-4)
        assert row.verdict == "depends on which layers are compared"


@each(
    ("with_relu", "without", "expected"),
    [
        ((0.5, 0.3, 0.1, 0.0), (0.3, 0.3, 0.1, 0.0), ["agrees", "agrees", "held", *["agrees"] * 4]),
        (
            (0.5, 0.5, -0.1, 0.0),
            (0.5, 0.3, -0.1, 0.0),
            ["disagrees", "disagrees", "failed", "disagrees", "agrees", *["disagrees"] * 2],
        ),
        ((0.5, 0.4, 0.1, 0.2), (0.5, 0.5, 0.1, 0.2), [*["undecided"] * 3, "disagrees", "agrees", *["undecided"] * 2]),
    ],
)
def test_units_that_fall_and_units_that_stay(with_relu, without, expected):
    wiggle = 1e-4  # equal values have no interval of Welch's
    dissected = {WITH: (*with_relu[:3], with_relu[3] + wiggle), WITHOUT: (*without[:3], without[3] + wiggle)}
    rows = claims.single_units(study(dissected=dissected), "pixels")
    assert [row.verdict for row in rows] == expected
    assert rows[4].ours == pytest.approx(0.75)


def test_a_difference_of_two_kinds_has_the_interval_of_welch():
    """By hand: unequal spreads, the standard error of both means, and Satterthwaite's degrees of freedom."""
    drops = {WITH: (0.5, 0.3, 0.0, 0.02), WITHOUT: (0.5, 0.4, 0.0, 0.1)}
    row = claims.single_units(study(dissected=drops))[2]
    offsets = np.arange(4) - 1.5
    errors = np.array([(spread * offsets).var(ddof=1) / 4 for spread in (0.02, 0.1)])
    freedom = errors.sum() ** 2 / (errors**2 / 3).sum()
    half = stats.t.ppf(0.975, freedom) * np.sqrt(errors.sum())
    np.testing.assert_allclose(row.interval, (0.1 - half, 0.1 + half))
