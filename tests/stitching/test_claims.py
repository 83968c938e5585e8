"""The verdicts follow the stored penalties: each claim on studies that keep it, break it or leave it open."""

from pathlib import Path

import pytest

from affscore_book.stitching import claims
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import StitchingStudy, load_stitching

MYRTLE = [f"relu{i}" for i in range(1, 5)]
RESNET = ["relu", *(f"block{i}.relu{j}" for i in range(1, 10) for j in (1, 2))]
PAIRS = [(i, (i + 1) % 4) for i in range(4)]
SLOPES = {0.0001: "resnet20_slope0.0001", 0.1: "resnet20_slope0.1", 1.0: "resnet20_slope1"}


def planted(kind, layers, stitch, points, fit="closed form", spread=0.0, **more):
    """Records of four networks whose penalty at a layer is ``points(layer)``, and ``spread`` more or less by pair."""
    return [
        {
            "task": fit.removesuffix(" form"),
            "bottom": f"{kind}_{i}",
            "top": f"{kind}_{j}",
            "layer": layer,
            "stitch": stitch,
            "fit": fit,
        }
        | {"reestimated": 0.9 - (points(layer) + spread * (i - 1.5)) / 100}
        | more
        for i, j in PAIRS
        for layer in layers
    ]


def study(*parts, scores=None):
    kinds = ("myrtle", "resnet20", "plain20", *SLOPES.values())
    settings = {"dataset": "none", "residual_layers": ["relu", "block2.relu1", "block2.relu2"], "alpha": [0.001, 10.0]}
    records = [record for part in parts for record in part]
    accuracies = {f"{kind}_{i}": 0.9 for kind in kinds for i in range(4)}
    return StitchingStudy(settings | {"lasso": [0.1]}, accuracies, records, scores or {})


def verdicts(rows):
    return [row.verdict for row in rows]


@pytest.mark.parametrize(
    ("full", "group", "spread", "expected"),
    [
        (2.0, 9.0, 0.0, ["agrees", "agrees"]),
        (3.0, 11.0, 0.0, ["disagrees", "disagrees"]),
        (2.0, 9.0, 2.0, ["undecided", "undecided"]),
    ],
)
def test_what_is_lost_is_judged_at_the_worst_layers_of_learned_stitches(full, group, spread, expected):
    last = {"relu4": 1}  # the worst layer of G_ReLU does not count, that of the full stitch does
    found = study(
        planted("myrtle", MYRTLE, "full", lambda layer: full * last.get(layer, 0), "learned", spread),
        planted("myrtle", MYRTLE, "g_relu", lambda layer: group + 20 * last.get(layer, 0), "learned", spread),
        planted("myrtle", MYRTLE, "full", lambda layer: 50.0),
        planted("myrtle", MYRTLE, "g_relu", lambda layer: 50.0),
    )
    assert verdicts(claims.networks(found)) == expected


@pytest.mark.parametrize(("lowest", "expected"), [(6.0, "agrees"), (4.0, "disagrees")])
def test_a_rank_must_cost_more_than_g_relu_at_every_layer(lowest, expected):
    """Only at relu2 does rank 4 cost less than elsewhere; the old statistics cost nothing anywhere."""
    ranks = [
        planted("myrtle", MYRTLE, rank, lambda layer: lowest if layer == "relu2" else 30.0, "learned", kept=0.9)
        for rank in ("rank 1", "rank 2", "rank 4")
    ]
    others = [planted("myrtle", MYRTLE, stitch, lambda layer: 5.0, "learned") for stitch in ("full", "g_relu")]
    rows = claims.ranking(study(*ranks, *others))
    assert verdicts(rows)[:6] == [expected] * 3 + ["disagrees"] * 3
    assert all("relu2" in row.what for row in rows[:3])


@pytest.mark.parametrize(("inside", "expected"), [(0.0, "agrees"), (9.0, "disagrees")])
@pytest.mark.parametrize(("outside", "always"), [({}, "agrees"), ({"block2.relu2": 2.0}, "disagrees")])
def test_inside_blocks_every_stitch_must_cost_less_than_g_relu(inside, expected, outside, always):
    """Outside, rank 1 must cost more everywhere, and rank 2 somewhere."""

    def points(layer):
        return inside if inside_block(layer) else outside.get(layer, 20.0)

    chosen = study().settings["residual_layers"]
    learned = [planted("resnet20", chosen, stitch, points, "learned") for stitch in ("rank 1", "rank 2", "full")]
    found = study(
        *learned,
        planted("resnet20", chosen, "g_relu", lambda layer: 5.0, "learned"),
        *(planted("resnet20", RESNET, stitch, points) for stitch in ("full", "g_relu")),
        planted("resnet20", RESNET, "g_relu", points, "closed form, shortcut too"),
        planted("plain20", RESNET, "g_relu", points),
    )
    assert verdicts(claims.blocks_more(found))[:5] == [always, "agrees"] + [expected] * 3


@pytest.mark.parametrize(("saved", "expected"), [(12.0, "held"), (2.0, "failed"), (-10.0, "failed")])
@pytest.mark.parametrize(("gap", "agrees"), [(15.0, "agrees"), (-1.0, "disagrees")])
def test_blocks_are_judged_by_their_gap_and_the_shortcut_by_what_it_saves(saved, expected, gap, agrees):
    inside = [layer for layer in RESNET if inside_block(layer)]
    found = study(
        planted("resnet20", RESNET, "g_relu", lambda layer: 10 + gap * inside_block(layer)),
        planted("resnet20", inside, "g_relu", lambda layer: 10 + gap - saved, "closed form, shortcut too"),
    )
    assert verdicts(claims.blocks(found)) == [agrees, expected]


@pytest.mark.parametrize(("sign", "expected"), [(1, "held"), (-1, "failed")])
def test_the_bridge_holds_where_score_and_penalty_rise_together(sign, expected):
    scores = {f"plain20_{i}": {layer: 0.01 * k * sign for k, layer in enumerate(RESNET)} for i in range(4)}
    costs = {layer: float(k) for k, layer in enumerate(RESNET)}
    found = study(planted("plain20", RESNET, "g_relu", costs.get), scores=scores)
    assert verdicts(claims.bridge(found, "plain20")) == [expected]


def test_slopes_are_judged_along_all_layers():
    def rows(last, wave):
        ends = RESNET[-2:]
        parts = [
            planted(kind, RESNET, "g_relu", lambda layer, top=slope: (last if layer in ends and top == 1 else 5)
                    + (0 if top == 1 else wave) * inside_block(layer))
            for slope, kind in SLOPES.items()
        ]  # fmt: skip
        return verdicts(claims.leaky_slopes(study(*parts), SLOPES))

    assert rows(last=20.0, wave=40.0) == ["agrees", "agrees", "agrees", "disagrees"]
    assert rows(last=40.0, wave=4.0) == ["agrees", "agrees", "disagrees", "agrees"]


@pytest.fixture(scope="module")
def stored():
    return load_stitching(Path(__file__).parents[2] / "book" / "data" / "stitching" / "study.json")


def test_claims_on_networks_of_several_seeds_have_intervals_and_two_networks_have_none(stored):
    several = [
        claims.networks(stored), claims.ranking(stored), claims.search(stored), claims.blocks(stored),
        claims.blocks_more(stored), claims.signatures(stored), claims.bridge(stored, "plain20"),
    ]  # fmt: skip
    for row in (row for rows in several for row in rows):
        assert row.verdict == "not run here" or row.interval is not None, row.what
        assert "," in row.source
    slopes = claims.leaky_slopes(
        stored, {slope: f"resnet20_slope{slope:g}" for slope in (1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 1)}
    )
    assert all(row.interval is None for row in slopes)
