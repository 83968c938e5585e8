"""The verdicts follow the stored penalties: each claim on studies that keep it, break it or leave it open."""

from pathlib import Path

import numpy as np
import pytest

from affscore_book.stitching import claims
from affscore_book.stitching.controls import FIRST_HALVES, Controls
from affscore_book.stitching.merging import ALIGNMENTS, Averages
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import StitchingStudy, load_stitching

MYRTLE = [f"relu{i}" for i in range(1, 5)]
RESNET = ["relu", *(f"block{i}.relu{j}" for i in range(1, 10) for j in (1, 2))]
PAIRS = [(i, (i + 1) % 4) for i in range(4)]


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
    kinds = ("myrtle", "resnet20", "plain20", "resnet20_without_last_relu")
    settings = {
        "dataset": "none",
        "residual_layers": ["relu", "block2.relu1", "block2.relu2", "block5.relu1"],
        "alpha": [0.001, 10.0],
    }
    records = [record for part in parts for record in part]
    accuracies = {f"{kind}_{i}": 0.9 for kind in kinds for i in range(4)}
    return StitchingStudy(settings, accuracies, records, scores or {})


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


def test_the_worst_layer_is_found_anew_when_a_network_is_left_out():
    """Each of the four pairs has its worst layer elsewhere: a layer named beforehand would cost less."""
    records = planted("myrtle", MYRTLE, "full", lambda layer: 1.0, "learned")
    for record in records:
        if record["layer"] == f"relu{int(record['bottom'][-1]) + 1}":
            record["reestimated"] -= 0.08
    found = study(records, planted("myrtle", MYRTLE, "g_relu", lambda layer: 5.0, "learned"))
    full = claims.networks(found)[0]
    assert full.ours == pytest.approx(3)  # one pair of four has 9 points, the others 1
    assert full.interval == pytest.approx((3, 3))  # without any one of them the worst layer has (1 + 9) / 2


@pytest.mark.parametrize(("lowest", "expected"), [(6.0, "agrees"), (4.0, "disagrees")])
def test_rank_4_must_cost_more_than_g_relu_at_every_layer(lowest, expected):
    """Only at relu2 does rank 4 cost less than elsewhere; with the old statistics it costs nothing anywhere."""
    rank = planted("myrtle", MYRTLE, "rank 4", lambda layer: lowest if layer == "relu2" else 30.0, "learned", kept=0.9)
    others = [planted("myrtle", MYRTLE, stitch, lambda layer: 5.0, "learned") for stitch in ("full", "g_relu")]
    rows = claims.ranking(study(rank, *others))
    assert verdicts(rows)[:3] == [expected, "disagrees", "not run here"]
    assert "relu2" in rows[0].what


@pytest.mark.parametrize(("third", "expected"), [(9.0, "agrees"), (3.0, "disagrees")])
def test_the_penalty_must_fall_after_the_third_activation(third, expected):
    def points(layer):
        return third if layer == "relu3" else 5.0

    parts = [planted("myrtle", MYRTLE, stitch, points, "learned", kept=0.9) for stitch in ("full", "g_relu", "rank 4")]
    assert verdicts(claims.ranking(study(*parts)))[3:] == [expected] * 2


@pytest.mark.parametrize(("inside", "expected"), [(0.0, "agrees"), (9.0, "disagrees")])
@pytest.mark.parametrize(("left", "same"), [(18.0, "held"), (30.0, "failed"), (8.0, "failed")])
@pytest.mark.parametrize(("end", "place"), [(5.0, "held"), (-5.0, "failed")])
def test_inside_blocks_the_full_stitch_must_cost_less_than_g_relu_and_what_is_left_be_the_outside(
    inside, expected, left, same, end, place
):
    costs = {"block2.relu1": 0.0, "block5.relu1": inside}  # outside, the full stitch may cost what it likes

    def points(layer):
        return 30.0 if inside_block(layer) else 20.0

    within = [layer for layer in RESNET if inside_block(layer)]
    chosen = study().settings["residual_layers"]
    found = study(
        planted("resnet20", chosen, "full", lambda layer: costs.get(layer, 40.0), "learned"),
        planted("resnet20", chosen, "g_relu", lambda layer: 5.0, "learned"),
        planted("resnet20", RESNET, "g_relu", points),
        planted("resnet20", within, "g_relu", lambda layer: left, "closed form, shortcut too"),
        planted("resnet20", within, "g_relu", lambda layer: left + end, "closed form, block's end too"),
        planted("plain20", RESNET, "g_relu", lambda layer: left if inside_block(layer) else 20.0),
    )
    assert (
        verdicts(claims.blocks_more(found))
        == [expected, *["not run here"] * 2, same, same, place] + ["not run here"] * 2
    )


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_the_share_of_the_shortcut_is_of_means_over_all_pairs_and_layers(spread):
    """10 points of 40 and 10 of 20: a third of the whole, not the mean of a quarter and a half."""
    alone = {"block1.relu1": 40.0, "block2.relu1": 20.0}
    found = study(
        planted("resnet20", list(alone), "g_relu", alone.get, spread=spread),
        planted(
            "resnet20", list(alone), "g_relu", lambda layer: alone[layer] - 10, "closed form, shortcut too", spread
        ),
    )
    share = claims.shortcut_share(found, list(alone))
    assert share.mean == pytest.approx(1 / 3)
    assert (share.high - share.low > 1e-6) == (spread > 0)


@pytest.mark.parametrize(("saved", "expected"), [(12.0, "held"), (2.0, "failed"), (-10.0, "failed")])
@pytest.mark.parametrize(("gap", "agrees"), [(15.0, "agrees"), (-1.0, "disagrees")])
@pytest.mark.parametrize(("full", "fully"), [(4.0, "agrees"), (-4.0, "disagrees")])
@pytest.mark.parametrize(("chance", "matters"), [(3.0, "held"), (-3.0, "failed")])
def test_blocks_are_judged_by_their_gaps_and_the_shortcut_by_what_it_saves_beyond_chance(
    saved, expected, gap, agrees, full, fully, chance, matters
):
    inside = [layer for layer in RESNET if inside_block(layer)]
    left = 10 + gap - saved
    found = study(
        planted("resnet20", RESNET, "g_relu", lambda layer: 10 + gap * inside_block(layer)),
        planted("resnet20", RESNET, "full", lambda layer: 10 + full * inside_block(layer)),
        planted("resnet20", inside, "g_relu", lambda layer: left, "closed form, shortcut too"),
        planted("resnet20", inside, "g_relu", lambda layer: left + chance, "closed form, shortcut at random"),
    )
    assert verdicts(claims.blocks(found)) == [agrees, fully, expected, matters]


@pytest.mark.parametrize(("sign", "expected"), [(1, "held"), (-1, "failed")])
def test_the_bridge_holds_where_score_and_penalty_rise_together(sign, expected):
    scores = {f"plain20_{i}": {layer: 0.01 * k * sign for k, layer in enumerate(RESNET)} for i in range(4)}
    costs = {layer: float(k) for k, layer in enumerate(RESNET)}
    found = study(planted("plain20", RESNET, "g_relu", costs.get), scores=scores)
    assert verdicts(claims.bridge(found, "plain20")) == [expected]


def controlled(lost, backwards=None):
    """Four layers and four second halves; ``lost`` and ``backwards`` by the first half, 0 where it is not named."""
    tables = {kind: np.full((4, 4), float(lost.get(kind, 0.0))) + np.eye(4) / 100 for kind in FIRST_HALVES}
    back = {kind: np.full((4, 4), (backwards or {}).get(kind, 0.0)) + np.eye(4) / 100 for kind in FIRST_HALVES}
    return Controls(MYRTLE, tables, tables, back, back)


@pytest.mark.parametrize(
    ("lost", "backwards", "expected"),
    [
        ({"noise": 80}, {"another seed": 0.5}, ["held"] * 9),
        ({"clustered noise": 9, "noise": 9, "other task": 9, "shuffled labels": 9, "untrained": 9},
         {"another seed": -0.5}, ["failed"] * 9),
    ],
)  # fmt: skip
def test_controls_are_judged_by_what_they_lose(lost, backwards, expected):
    assert verdicts(claims.controls(controlled(lost, backwards))) == expected


def averages(relu, linear, untrained):
    """Six networks of which each pair loses what is given, by alignment."""
    above = np.where(np.triu(np.ones((6, 6)), 1) > 0, np.add.outer(np.arange(6), np.arange(6)) / 1000, np.nan)
    lost = {name: {kind: above * 1 + points[kind] for kind in ALIGNMENTS}
            for name, points in (("ReLU", relu), ("linear", linear))}  # fmt: skip
    plain = {"ReLU": {"permutation": np.full(6, untrained) + np.arange(6) / 100}}
    return Averages({}, lost, lost, lost, plain)


@pytest.mark.parametrize("holds", [True, False])
def test_merging_is_judged_by_what_each_group_saves(holds):
    relu = dict(zip(ALIGNMENTS, (40, 3, 2, 9, 9) if holds else (3, 4, 5, 1, 1), strict=True))
    linear = dict.fromkeys(ALIGNMENTS, 0.0 if holds else 3.0)
    found = verdicts(claims.merging(averages(relu, linear, 20.0 if holds else 1.0)))
    assert found == ["held" if holds else "failed"] * 6


@pytest.mark.parametrize(("points", "expected"), [((30, 2), ["agrees"] * 2), ((4, 9), ["disagrees"] * 2)])
def test_a_permutation_costs_more_where_no_relu_follows(points, expected):
    parts = []
    for kind, extra in zip(("resnet20_without_last_relu", "resnet20"), points, strict=True):
        for stitch, cost in (("full", 3.0), ("g_relu", 3.0 + extra)):
            parts.append(
                planted(kind, RESNET, stitch, lambda layer, cost=cost: cost * (not inside_block(layer)), spread=0.1)
            )
    assert verdicts(claims.without_relu(study(*parts))) == expected


@pytest.fixture(scope="module")
def stored():
    return load_stitching(Path(__file__).parents[2] / "book" / "data" / "stitching" / "study.json")


def test_every_claim_with_a_number_has_an_interval_over_networks(stored):
    several = [
        claims.networks(stored), claims.ranking(stored), claims.search(stored), claims.blocks(stored),
        claims.blocks_more(stored), claims.bridge(stored, "plain20"), claims.leaky_slopes(),
    ]  # fmt: skip
    for row in (row for rows in several for row in rows):
        assert row.verdict == "not run here" or row.interval is not None, row.what
        assert "," in row.source
