"""The verdicts follow the stored numbers: each claim on studies that keep it, break it or leave it open."""

import itertools

import numpy as np
import pytest
from scipy import stats

from affscore_book.similarity import claims
from affscore_book.similarity.study import SimilarityStudy

PAIRS = [f"{a}-{b}" for a, b in itertools.combinations(range(4), 2)]
WIDTHS = {"constant width": "myrtle_constant_width", "double width": "myrtle_double_width"}
WITH, WITHOUT = "resnet20", "resnet20_without_last_relu"


def similar(layers, diagonal, *, away=0.5, spread=0.0, heights=None):
    """A kind of networks: CKA by kernel along the diagonal, ``away`` elsewhere; the last layer varies with network 0.

    ``heights``: by group, what Procrustes is above a null of 0.3.
    """
    names = [f"relu{i}" for i in range(1, layers + 1)]
    cka = {}
    for kernel, along in diagonal.items():
        maps = np.full((6, layers, layers), away)
        maps[:, range(layers), range(layers)] = along
        maps[:3, -1, -1] -= spread
        maps[3:, -1, -1] += spread
        cka[kernel] = {
            pair: {"map": table.tolist(), "null": table.tolist()} for pair, table in zip(PAIRS, maps, strict=True)
        }
    procrustes = {
        name: {pair: {group: [0.3 + values[at], 0.3] for group, values in (heights or {}).items()} for pair in PAIRS}
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
            steps = [{"shares": {"object": 0.3, "edge": 0.1}, "best": [[5, "boot", 0.2]]}] * 3
            units[f"{kind}_{seed}"] = {"block3.relu2": steps}
    content |= {"dissection": curves, "dissection_pixels": curves}
    content |= {"inside": dict.fromkeys(("map", "pixels"), inside), "units": dict.fromkeys(("map", "pixels"), units)}
    return SimilarityStudy(content)


@pytest.mark.parametrize(
    ("relu", "spread", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.6], 0.0, ["agrees", "agrees"]),
        ([0.9, 0.9, 0.9, 0.88], 0.0, ["agrees", "disagrees"]),
        ([0.9, 0.9, 0.9, 0.95], 0.0, ["disagrees", "disagrees"]),
        ([0.9, 0.8, 0.7, 0.8], 0.2, ["undecided", "undecided"]),
    ],
)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_decay_that_stays_at_another_width_is_no_artifact(relu, spread, expected, width):
    heights = {"relu": [0.3, 0.2, 0.1, 0.2], "orthogonal": [0.5, 0.4, 0.3, 0.2]}
    kind = similar(4, {"linear": [0.95, 0.9, 0.9, 0.85], "max": relu}, spread=0.0, heights=heights)
    kind[2]["max"] = similar(4, {"max": relu}, spread=spread)[2]["max"]
    flat = similar(4, {"linear": [0.9] * 4, "max": [0.9] * 4}, heights=dict.fromkeys(heights, [0.1] * 4))
    rows = claims.other_widths(study({name: kind if what == width else flat for what, name in WIDTHS.items()}))
    found = {row.what.removeprefix(f"{width}: "): row for row in rows if row.what.startswith(width)}
    first = [found[f"G_ReLU-CKA {what}, by"] for what in ("falls with depth", "decays faster")]
    assert [row.verdict for row in first] == expected
    assert [row.ours for row in first] == pytest.approx([relu[0] - relu[3], relu[0] - relu[3] - 0.1])
    assert found["G_ReLU-Procrustes falls to relu3, by"].ours == pytest.approx(0.2)
    assert found["G_ReLU-Procrustes rises at relu4, by"].verdict == "agrees"
    assert found["orthogonal-Procrustes rises at relu4, by"].ours == pytest.approx(-0.1)
    assert found["orthogonal-Procrustes rises at relu4, by"].verdict == "disagrees"
    assert found["G_ReLU below orthogonal, by"].ours == pytest.approx((0.2 + 0.2 + 0.2 + 0.0) / 4)
    assert rows[-1].verdict == "not run here"


def test_the_same_depth_is_compared_with_all_other_depths():
    flat, steep = {"linear": [0.95] * 4, "max": [0.95, 0.8, 0.7, 0.6]}, {"linear": [0.3] * 4, "max": [0.5] * 4}
    rows = claims.same_depth(study({"myrtle": similar(4, flat, away=0.6), "resnet20": similar(4, steep, away=0.5)}))
    found = {row.what: (round(row.ours, 6), row.verdict) for row in rows}
    assert found["Myrtle, linear-CKA: same depth more similar, by"] == (0.35, "agrees")
    assert found["Myrtle, G_ReLU-CKA: at the first activation"] == (0.95, "agrees")
    assert found["Myrtle, G_ReLU-CKA: last activation less similar than first, by"] == (0.35, "agrees")
    # 0.95 - 0.6 by the linear kernel, 0.7625 - 0.6 by the max kernel.
    assert found["Myrtle: early against late layers, less pronounced by G_ReLU-CKA, by"] == (0.1875, "agrees")
    assert found["ResNet20, linear-CKA: same depth more similar, by"] == (-0.2, "disagrees")
    assert found["ResNet20, linear-CKA: at the first activation"] == (0.3, "disagrees")


@pytest.mark.parametrize(
    ("with_relu", "without", "expected"),
    [
        ((0.5, 0.3, 0.1, 0.0), (0.3, 0.3, 0.1, 0.0), ["agrees"] * 7),
        ((0.5, 0.5, -0.1, 0.0), (0.5, 0.3, -0.1, 0.0), [*["disagrees"] * 4, "agrees", *["disagrees"] * 2]),
        ((0.5, 0.4, 0.1, 0.2), (0.5, 0.5, 0.1, 0.2), [*["undecided"] * 3, "disagrees", "agrees", *["undecided"] * 2]),
    ],
)
@pytest.mark.parametrize("top_of", ["map", "pixels"])
def test_units_that_fall_and_units_that_stay(with_relu, without, expected, top_of):
    wiggle = 1e-4  # equal values have no interval of Welch's
    dissected = {WITH: (*with_relu[:3], with_relu[3] + wiggle), WITHOUT: (*without[:3], without[3] + wiggle)}
    rows = claims.single_units(study(dissected=dissected), top_of)
    assert [row.verdict for row in rows] == expected
    assert all(top_of in row.what for row in rows)
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
