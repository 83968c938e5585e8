"""The verdicts follow the stored penalties: each claim on studies that keep it, break it or leave it open."""

import zlib
from pathlib import Path

import numpy as np
import pytest
from grids import each

from affscore_book.stitching import claims
from affscore_book.stitching.controls import FIRST_HALVES, Controls
from affscore_book.stitching.merging import ALIGNMENTS, Averages
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import StitchingStudy, load_stitching

MYRTLE = [f"relu{i}" for i in range(1, 5)]
RESNET = ["relu", *(f"block{i}.relu{j}" for i in range(1, 10) for j in (1, 2))]
PAIRS = [(i, (i + 1) % 4) for i in range(4)]


def planted(kind, layers, stitch, points, fit="closed form", spread=0.0, noise=0.01, **more):
    """Records of four networks whose penalty at a layer is ``points(layer)``, ``spread`` more or less by pair.

    There is some noise, as equal pairs have no interval."""
    draw = np.random.default_rng(zlib.crc32(f"{kind} {stitch} {fit} {more}".encode()))
    return [
        {
            "task": fit.removesuffix(" form"),
            "bottom": f"{kind}_{i}",
            "top": f"{kind}_{j}",
            "layer": layer,
            "stitch": stitch,
            "fit": fit,
        }
        | {"reestimated": 0.9 - (points(layer) + spread * (i - 1.5) + noise * draw.uniform(-1, 1)) / 100}
        | more
        for i, j in PAIRS
        for layer in layers
    ]


def study(*parts, scores=None):
    kinds = ("myrtle", "myrtle_double_width", "resnet20", "plain20", "resnet20_without_last_relu")
    settings = {
        "dataset": "none",
        "residual_layers": ["relu", "block2.relu1", "block2.relu2", "block5.relu1"],
        "alpha": [0.001, 0.1, 10.0],
        "long_rank": "rank 1",
        "long_epochs": [20, 40],
        "temperatures": [0.1, 1.0, 10.0],
        "temperature_layers": ["relu1", "relu4"],
        "temperature_epochs": 20,
    }
    records = [record for part in parts for record in part]
    accuracies = {f"{kind}_{i}": 0.9 for kind in kinds for i in range(4)}
    return StitchingStudy(settings, accuracies, records, scores or {})


def by_what(rows, start):
    """The one row whose first words these are."""
    (found,) = (row for row in rows if row.what.startswith(start))
    return found


def verdicts(rows):
    return [row.verdict for row in rows]


@each(
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
    records = planted("myrtle", MYRTLE, "full", lambda layer: 1.0, "learned", noise=0)
    for record in records:
        if record["layer"] == f"relu{int(record['bottom'][-1]) + 1}":
            record["reestimated"] -= 0.08
    found = study(records, planted("myrtle", MYRTLE, "g_relu", lambda layer: 5.0, "learned"))
    full = claims.networks(found)[0]
    assert full.ours == pytest.approx(3)  # one pair of four has 9 points, the others 1
    # Without any one of them the worst layer has (1 + 9) / 2, so that they do not tell how sure the mean is.
    assert np.isnan(full.interval).all() and full.verdict == "undecided"


def ranks(*, four=12.0, one=20.0, later=30.0, wide=40.0, narrow=12.0, third=9.0):
    """The study of :func:`claims.ranking`: low ranks have their least at relu2, G_ReLU its most at relu3."""

    def at_least(points):
        return lambda layer: points if layer == "relu2" else 60.0

    def points(layer):
        return third if layer == "relu3" else 5.0

    return study(
        *(planted("myrtle", MYRTLE, "rank 1", at_least(one), fit) for fit in ("closed form", "learned")),
        planted("myrtle", MYRTLE, "rank 1", at_least(later), "learned", epochs=40),
        planted("myrtle", MYRTLE, "rank 4", at_least(four), "learned"),
        planted("myrtle", MYRTLE, "rank 2", lambda layer: 38.0),
        planted("myrtle", MYRTLE, "rank 4", lambda layer: narrow),
        planted("myrtle_double_width", MYRTLE, "rank 4", lambda layer: wide),
        planted("myrtle", MYRTLE, "g_relu", lambda layer: 5.0),
        *(planted("myrtle", MYRTLE, stitch, points, "learned") for stitch in ("full", "g_relu")),
    )


@each(
    ("changes", "orders", "widths"),
    [
        ({}, {"agrees"}, ["agrees", "held"]),
        ({"later": 4.0}, {"depends on the share and how the stitch is fitted"}, ["agrees", "held"]),
        ({"four": 4.0, "one": 4.0, "later": 4.0, "narrow": 4.0}, {"disagrees"}, ["agrees", "held"]),
        ({"wide": 50.0}, {"agrees"}, ["agrees", "failed"]),
        ({"narrow": 45.0}, {"agrees"}, ["disagrees", "held"]),
    ],
)
def test_low_ranks_must_cost_more_at_every_layer_at_an_equal_rank_and_at_an_equal_share(changes, orders, widths):
    rows = [row for row in claims.ranking(ranks(**changes)) if row.ours is not None]
    assert set(verdicts(rows[:5])) == orders and verdicts(rows[5:7]) == widths
    assert all(row.what.startswith("low rank") for row in rows[:5])


@each(("third", "expected"), [(9.0, "agrees"), (3.0, "disagrees")])
def test_the_penalty_must_fall_after_the_third_activation(third, expected):
    rows = claims.ranking(ranks(third=third))
    assert [by_what(rows, f"{name}, learned").verdict for name in ("full", "G_ReLU")] == [expected] * 2


def searched(*, start=6.0, soft=(40.0, 8.0, 30.0), best=(0.001, 0.1, 10.0, 10.0)):
    """The study of :func:`claims.search`; ``best`` has the alpha that costs each pair least, at every layer."""
    noise, pairs = "learned from noise", dict(zip(PAIRS, best, strict=True))
    alphas = [
        record | {"alpha": alpha}
        for alpha in (0.001, 0.1, 10.0)
        for record in planted("myrtle", MYRTLE, "g_relu", lambda _: 5.0, noise)
    ]
    for record in alphas:
        pair = tuple(int(record[side][-1]) for side in ("bottom", "top"))
        record["reestimated"] -= 0.01 * (record["alpha"] != pairs[pair])
    return study(
        alphas,
        planted("myrtle", MYRTLE, "g_relu", lambda _: 5.0, noise),
        planted("myrtle", MYRTLE, "g_relu", lambda _: start, f"{noise}, no head start"),
        *(planted("myrtle", ["relu1", "relu4"], "soft_sort", lambda _, lost=lost: lost, noise,
                  temperature=times) for times, lost in zip((0.1, 1.0, 10.0), soft, strict=True)),
    )  # fmt: skip


@each(
    ("changes", "expected"),
    [
        ({}, ["agrees", "held", "agrees"]),
        ({"start": 9.0, "soft": (40.0, 20.0, 30.0)}, ["disagrees", "failed", "agrees"]),
        ({"soft": (40.0, 8.0, 7.0)}, ["agrees", "held", "disagrees"]),
        ({"soft": (7.0, 8.0, 30.0)}, ["agrees", "held", "disagrees"]),
    ],
)
def test_searches_are_judged_by_what_they_lose_beyond_the_papers_choice(changes, expected):
    rows = claims.search(searched(**changes))
    starts = ("without a head start", "soft sorting at temperature", "soft sorting at 0.1/n")
    assert [by_what(rows, start).verdict for start in starts] == expected


def test_the_best_alphas_are_those_of_the_pairs():
    for best, decades in (((0.001, 0.1, 10.0, 10.0), 4), ((0.1,) * 4, 0), ((0.1, 10.0, 0.1, 0.1), 2)):
        rows = claims.search(searched(best=best))
        assert [row.ours for row in rows if row.what.startswith("best alphas")] == pytest.approx([decades] * 2)


@each(
    ("inside", "expected", "left", "same", "end", "place"),
    [(0.0, "agrees", 18.0, "held", 5.0, "held"), (9.0, "disagrees", 30.0, "failed", -5.0, "failed")],
)
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


@each("spread", [0.0, 3.0])
def test_the_share_of_the_shortcut_is_of_means_over_all_pairs_and_layers(spread):
    """10 points of 40 and 10 of 20: a third of the whole, not the mean of a quarter and a half."""
    alone = {"block1.relu1": 40.0, "block2.relu1": 20.0}
    found = study(
        planted("resnet20", list(alone), "g_relu", alone.get, spread=spread, noise=0),
        *(planted("resnet20", list(alone), "g_relu", lambda layer, less=less: alone[layer] - less,
                  f"closed form, {second}", spread, noise=0)
          for second, less in (("shortcut too", 10), ("shortcut at random", 5))),
    )  # fmt: skip
    share = claims.shortcut_share(found, list(alone))
    assert share.mean == pytest.approx(1 / 3)
    assert claims.shortcut_share(found, list(alone), "shortcut at random").mean == pytest.approx(1 / 6)
    assert (share.high > share.low) == (spread > 0), "equal pairs have no interval"


@each(
    ("gap", "full", "saved", "chance", "expected"),
    [
        (15.0, 4.0, 12.0, 3.0, ["agrees", "agrees", "held", "held"]),
        (-1.0, -4.0, 2.0, -3.0, ["disagrees", "disagrees", "failed", "failed"]),
    ],
)
def test_blocks_are_judged_by_their_gaps_and_the_shortcut_by_what_it_saves_beyond_chance(
    gap, full, saved, chance, expected
):
    inside = [layer for layer in RESNET if inside_block(layer)]
    left = 10 + gap - saved
    found = study(
        planted("resnet20", RESNET, "g_relu", lambda layer: 10 + gap * inside_block(layer)),
        planted("resnet20", RESNET, "full", lambda layer: 10 + full * inside_block(layer)),
        planted("resnet20", inside, "g_relu", lambda layer: left, "closed form, shortcut too"),
        planted("resnet20", inside, "g_relu", lambda layer: left + chance, "closed form, shortcut at random"),
    )
    assert verdicts(claims.blocks(found)) == expected


@each(("sign", "turned", "expected"), [(1, (), "held"), (-1, (), "failed"), (1, (7, 13), "undecided")])
def test_the_bridge_holds_where_score_and_penalty_rise_together_in_every_stage(sign, turned, expected):
    """Two layers are exchanged, as no rank correlation without any has an interval; then a whole stage is turned."""
    costs = np.arange(len(RESNET), dtype=float)
    costs[[2, 3]] = costs[[3, 2]]
    if turned:
        costs[slice(*turned)] *= -1
    scores = {f"plain20_{i}": {layer: 0.01 * k * sign for k, layer in enumerate(RESNET)} for i in range(4)}
    found = study(planted("plain20", RESNET, "g_relu", dict(zip(RESNET, costs + 20, strict=True)).get), scores=scores)
    assert verdicts(claims.bridge(found, "plain20")) == [expected]


def controlled(lost, backwards=None):
    """Four layers and four second halves; ``lost`` and ``backwards`` by the first half, 0 where it is not named."""
    draw = np.random.default_rng(0)
    tables, back = (
        {kind: means.get(kind, 0.0) + draw.uniform(-0.01, 0.01, (4, 4)) for kind in FIRST_HALVES}
        for means in (lost, backwards or {})
    )
    return Controls(MYRTLE, tables, back, back)


@each(
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
    above, draw = np.where(np.triu(np.ones((6, 6)), 1) > 0, 0.0, np.nan), np.random.default_rng(0)
    lost = {name: {kind: above + points[kind] + draw.uniform(-0.01, 0.01, (6, 6)) for kind in ALIGNMENTS}
            for name, points in (("ReLU", relu), ("linear", linear))}  # fmt: skip
    plain = {"ReLU": {"permutation": np.full(6, untrained) + np.arange(6) / 100}}
    return Averages({}, lost, lost, lost, plain)


@each("holds", [True, False])
def test_merging_is_judged_by_what_each_group_saves(holds):
    relu = dict(zip(ALIGNMENTS, (40, 3, 2, 9, 9) if holds else (3, 4, 5, 1, 1), strict=True))
    linear = dict.fromkeys(ALIGNMENTS, 0.0 if holds else 3.0)
    found = verdicts(claims.merging(averages(relu, linear, 20.0 if holds else 1.0)))
    assert found == ["held" if holds else "failed"] * 6


@each(("points", "expected"), [((30, 2), ["agrees"] * 2), ((4, 9), ["disagrees"] * 2)])
def test_a_permutation_costs_more_where_no_relu_follows(points, expected):
    parts = []
    for kind, extra in zip(("resnet20_without_last_relu", "resnet20"), points, strict=True):
        for stitch, cost in (("full", 3.0), ("g_relu", 3.0 + extra)):
            parts.append(planted(kind, RESNET, stitch, lambda layer, cost=cost: cost * (not inside_block(layer))))
    assert verdicts(claims.without_relu(study(*parts))) == expected


def leaky(accuracy, points):
    """Two networks a slope of LeakyReLU, by the accuracy of the slope, and one pair with its penalties."""
    kinds = {f"resnet20_slope{slope}": float(slope) for slope in claims.SLOPES}
    accuracies = {f"{kind}_{i}": accuracy(slope) + 0.001 * i * (1 + slope)
                  for kind, slope in kinds.items() for i in (0, 1)}  # fmt: skip
    records = [
        {"task": "closed", "bottom": f"{kind}_0", "top": f"{kind}_1", "layer": layer, "stitch": "g_relu",
         "fit": "closed form", "reestimated": (accuracies[f"{kind}_0"] + accuracies[f"{kind}_1"]) / 2
         - points(slope, layer) / 100}
        for kind, slope in kinds.items() for layer in RESNET
    ]  # fmt: skip
    return claims.leaky_slopes(StitchingStudy({}, accuracies, records, {}))


def test_slopes_are_judged_by_two_accuracies_each_and_over_the_slopes():
    """One pair a slope has no interval: what is asked of one slope alone stays undecided, however clear it looks."""

    def falls(slope):
        return 0.9 - 0.2 * slope**3

    def steady(slope, layer):  # exchanged neighbours, as no perfect order has an interval
        rank = sorted(map(float, claims.SLOPES), key=lambda one: {0.01: 1e-3, 1e-3: 0.01}.get(one, one)).index(slope)
        return 20.0 + rank if layer == RESNET[-1] else 10.0 + 2 * rank * (layer == "relu") + 5 * (layer != "relu")

    for points, sign in ((steady, "agrees"), (lambda slope, layer: 60 - steady(slope, layer), "disagrees")):
        rows = leaky(falls, points)
        assert [by_what(rows, f"accuracy: slope {slope}").verdict for slope in ("0.0001", "0.1 ")] == ["agrees"] * 2
        assert by_what(rows, "slopes below 1").verdict == "undecided"
        assert by_what(rows, "rank correlation of slope and penalty").verdict == sign
    risen = leaky(lambda slope: 0.7 + 0.2 * slope, steady)
    assert by_what(risen, "accuracy: slope 0.1 ").verdict == "disagrees"
    assert by_what(risen, "accuracy: slope 0.0001").verdict == "disagrees"


@pytest.fixture(scope="module")
def stored():
    return load_stitching(Path(__file__).parents[2] / "book" / "data" / "stitching" / "study.json")


def test_every_claim_with_a_number_has_an_interval_over_networks(stored):
    several = [
        claims.networks(stored), claims.ranking(stored), claims.search(stored), claims.blocks(stored),
        claims.blocks_more(stored), claims.bridge(stored, "plain20"), claims.leaky_slopes(stored),
    ]  # fmt: skip
    for row in (row for rows in several for row in rows):
        assert row.verdict == "not run here" or row.interval is not None, row.what
        assert "," in row.source
