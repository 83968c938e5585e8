"""The verdicts follow the stored penalties: each claim on studies that keep it, break it or leave it open."""

import numpy as np
import pytest

from affscore_book.stitching.controls import FIRST_HALVES, Controls
from affscore_book.stitching.merging import ALIGNMENTS, Averages
from affscore_book.stitching.study import StitchingStudy, inside_block, shortcut_share
from affscore_study.stitching import claims

MYRTLE = [f"relu{i}" for i in range(1, 5)]
RESNET = ["relu", *(f"block{i}.relu{j}" for i in range(1, 10) for j in (1, 2))]
SETTINGS = {
    "residual_layers": ["relu", "block2.relu1", "block2.relu2", "block5.relu1"],
    "alpha": [0.001, 0.1, 10.0],
    "long_rank": "rank 1",
    "long_epochs": [20, 40],
    "temperatures": [0.1, 1.0, 10.0],
    "temperature_layers": ["relu1", "relu4"],
    "temperature_epochs": 20,
}
NOISE, HAIR = "learned from noise", np.random.default_rng(0)


def hairy(values, size=0.01):
    """The values, different by a hair from network to network, as equal ones have no interval."""
    return values + size * HAIR.uniform(-1, 1, values.shape)


class Planted(StitchingStudy):
    """A study of four networks a kind, each the first of one pair, whose penalties are given.

    ``more`` are penalties, by kind, of the pairs of four further networks.

    ``points(kind, layer, stitch, fit, **more)`` is the penalty of all pairs, or one a pair; pairs differ by ``spread``.
    """

    def __init__(self, points, spread=0.0, hair=0.01, accuracies=None, scores=None, more=None):
        super().__init__(SETTINGS, accuracies or {}, [], scores or {})
        vars(self).update(points=points, spread=spread, hair=hair, more=more or {})  # the class is frozen

    def layers(self, kind):
        return MYRTLE if kind.startswith("myrtle") else RESNET

    def table(self, kind, layer, stitch, fit="closed form", **more):
        table = np.full((4, 4), np.nan)
        values = self.points(kind, layer, stitch, fit, **more) + self.spread * (np.arange(4) - 1.5)
        table[np.arange(4), (np.arange(4) + 1) % 4] = hairy(values, self.hair)
        if kind in self.more:
            table = np.pad(table, (0, 4), constant_values=np.nan)
            table[4 + np.arange(4), 4 + (np.arange(4) + 1) % 4] = hairy(np.full(4, self.more[kind]), self.hair)
        return table


def by_what(rows, start):
    """The one row whose first words these are."""
    (found,) = (row for row in rows if row.what.startswith(start))
    return found


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
def test_loss_is_judged_at_the_worst_learned_layers(full, group, spread, expected):
    """The loss is judged at the worst layers of learned stitches.

    The worst layer of G_ReLU does not count, that of the full stitch does.
    """

    def points(kind, layer, stitch, fit):
        learned = full * (layer == "relu4") if stitch == "full" else group + 20 * (layer == "relu4")
        return learned if fit == "learned" else 50.0

    assert verdicts(claims.networks(Planted(points, spread))) == expected


def test_worst_layer_is_found_anew_without_each_network():
    """The worst layer is found anew when a network is left out.

    Each of the four pairs has its worst layer elsewhere: a layer named beforehand would cost less.
    """
    full = claims.networks(Planted(lambda _, layer, *__: 1.0 + 8 * (np.arange(4) == MYRTLE.index(layer)), hair=0))[0]
    assert full.ours == pytest.approx(3)  # one pair of four has 9 points, the others 1
    # Without any one of them the worst layer has (1 + 9) / 2, so that they do not tell how sure the mean is.
    assert np.isnan(full.interval).all() and full.verdict == "not shown"


def ranks(*, four=12.0, one=20.0, later=30.0, wide=40.0, narrow=12.0, third=9.0):
    """The study of :func:`claims.ranking`: low ranks have their least at relu2, G_ReLU its most at relu3."""

    def points(kind, layer, stitch, fit, epochs=None):
        if stitch == "rank 1":
            return (one if epochs is None else later) if layer == "relu2" else 60.0
        if stitch == "rank 4" and fit == "learned":
            return four if layer == "relu2" else 60.0
        closed = {"rank 2": 38.0, "rank 4": wide if kind == "myrtle_double_width" else narrow}
        return closed.get(stitch, third if (fit, layer) == ("learned", "relu3") else 5.0)

    return Planted(points)


@pytest.mark.parametrize(
    ("changes", "orders", "widths"),
    [
        ({}, {"agrees"}, ["agrees", "held"]),
        ({"later": 4.0}, {"depends on the share and how the stitch is fitted"}, ["agrees", "held"]),
        ({"four": 4.0, "one": 4.0, "later": 4.0, "narrow": 4.0}, {"disagrees"}, ["agrees", "held"]),
        ({"wide": 50.0}, {"agrees"}, ["agrees", "failed"]),
        ({"narrow": 45.0}, {"agrees"}, ["disagrees", "held"]),
    ],
)
def test_low_ranks_cost_more_at_equal_rank_and_share(changes, orders, widths):
    """Low ranks must cost more at every layer, both at an equal rank and at an equal share."""
    rows = [row for row in claims.ranking(ranks(**changes)) if row.ours is not None]
    assert set(verdicts(rows[:5])) == orders and verdicts(rows[5:7]) == widths


@pytest.mark.parametrize(("third", "expected"), [(9.0, "agrees"), (3.0, "disagrees")])
def test_the_penalty_must_fall_after_the_third_activation(third, expected):
    rows = claims.ranking(ranks(third=third))
    assert [by_what(rows, f"{name}, learned").verdict for name in ("full", "G_ReLU")] == [expected] * 2


def searched(*, start=6.0, soft=(40.0, 8.0, 30.0), best=(0.001, 0.1, 10.0, 10.0)):
    """The study of :func:`claims.search`; ``best`` has the alpha that costs each pair least, at every layer."""

    def points(kind, layer, stitch, fit, alpha=None, temperature=None):
        if temperature is not None:
            return soft[SETTINGS["temperatures"].index(temperature)]
        return (5.0 if fit == NOISE else start) + (0.0 if alpha is None else 1.0 * (np.array(best) != alpha))

    return Planted(points)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["agrees", "held", "agrees"]),
        ({"start": 9.0, "soft": (40.0, 20.0, 30.0)}, ["disagrees", "failed", "agrees"]),
        ({"soft": (40.0, 8.0, 7.0)}, ["agrees", "held", "disagrees"]),
        ({"soft": (7.0, 8.0, 30.0)}, ["agrees", "held", "disagrees"]),
    ],
)
def test_searches_are_judged_against_the_papers_choice(changes, expected):
    """Searches are judged by what they lose beyond the paper's choice."""
    rows = claims.search(searched(**changes))
    starts = ("without a head start", "soft sorting at temperature", "soft sorting at 0.1/n")
    assert [by_what(rows, start).verdict for start in starts] == expected


def test_the_best_alphas_are_those_of_the_pairs():
    for best, decades in (((0.001, 0.1, 10.0, 10.0), 4), ((0.1,) * 4, 0), ((0.1, 10.0, 0.1, 0.1), 2)):
        rows = claims.search(searched(best=best))
        assert [row.ours for row in rows if row.what.startswith("best alphas")] == pytest.approx([decades] * 2)


@pytest.mark.parametrize(
    ("inside", "left", "end", "expected"),
    [
        (0.0, 18.0, 5.0, ["agrees", "held", "held", "held"]),
        (9.0, 30.0, -5.0, ["disagrees", "failed", "failed", "failed"]),
    ],
)
def test_full_stitch_costs_less_than_g_relu_inside_blocks(inside, left, end, expected):
    """Inside blocks the full stitch must cost less than G_ReLU, and what is left must be the outside."""

    def points(kind, layer, stitch, fit):
        if fit == "learned":  # outside, the full stitch may cost what it likes
            full = {"block2.relu1": 0.0, "block5.relu1": inside}.get(layer, 40.0)
            return full if stitch == "full" else 5.0
        if not inside_block(layer):
            return 20.0
        ways = {"closed form, shortcut too": left, "closed form, block's end too": left + end}
        return ways.get(fit, left if kind == "plain20" else 30.0)

    rows = claims.blocks_more(Planted(points))
    assert [row.verdict for row in rows if row.ours is not None] == expected


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_share_of_the_shortcut_is_of_means(spread):
    """The share of the shortcut is one of means over all pairs and layers.

    10 points of 40 and 10 of 20: a third of the whole, not the mean of a quarter and a half.
    """
    alone, saved = {"block1.relu1": 40.0, "block2.relu1": 20.0}, {"closed form": 0, "closed form, shortcut too": 10}
    found = Planted(lambda kind, layer, stitch, fit: alone[layer] - saved.get(fit, 5), spread)
    share, random = (shortcut_share(found, list(alone), f"shortcut {how}") for how in ("too", "at random"))
    assert share.mean == pytest.approx(1 / 3, abs=1e-3) and random.mean == pytest.approx(1 / 6, abs=1e-3)
    assert (share.high - share.low > 0.01) == (spread > 0)


@pytest.mark.parametrize(
    ("gap", "full", "saved", "chance", "expected"),
    [
        (15.0, 4.0, 12.0, 3.0, ["agrees", "agrees", "held", "held"]),
        (-1.0, -4.0, 2.0, -3.0, ["disagrees", "disagrees", "failed", "failed"]),
    ],
)
def test_blocks_are_judged_by_gaps_and_shortcut_by_savings(gap, full, saved, chance, expected):
    """Blocks are judged by their gaps, and the shortcut by what it saves beyond chance."""

    def points(kind, layer, stitch, fit):
        left = 10 + gap - saved
        ways = {"closed form, shortcut too": left, "closed form, shortcut at random": left + chance}
        return ways.get(fit, 10 + (full if stitch == "full" else gap) * inside_block(layer))

    assert verdicts(claims.blocks(Planted(points))) == expected


@pytest.mark.parametrize(
    ("sign", "turned", "expected"), [(1, (), "held"), (-1, (), "failed"), (1, (7, 13), "undecided")]
)
def test_bridge_needs_score_and_penalty_to_rise_together(sign, turned, expected):
    """The bridge holds where score and penalty rise together in every stage.

    Two layers are exchanged, as no rank correlation without any has an interval; then a whole stage is turned.
    """
    costs = np.arange(len(RESNET), dtype=float)
    costs[[2, 3]] = costs[[3, 2]]
    if turned:
        costs[slice(*turned)] *= -1
    scores = {f"plain20_{i}": {layer: 0.01 * k * sign for k, layer in enumerate(RESNET)} for i in range(4)}
    found = Planted(lambda kind, layer, *_: costs[RESNET.index(layer)] + 20, scores=scores)
    assert verdicts(claims.bridge(found, "plain20")) == [expected]


@pytest.mark.parametrize(
    ("lost", "backwards", "expected"),
    [
        ({}, {"another seed": 0.5}, ["held"] * 8),
        ({"clustered noise": 9, "other task": 9, "shuffled labels": 9, "untrained": 9},
         {"another seed": -0.5}, ["failed"] * 8),
    ],
)  # fmt: skip
def test_controls_are_judged_by_what_they_lose(lost, backwards, expected):
    """Four layers and four second halves; by the first half, 0 where it is not named."""
    tables, back = (
        {kind: hairy(np.full((4, 4), means.get(kind, 0.0))) for kind in FIRST_HALVES} for means in (lost, backwards)
    )
    assert verdicts(claims.controls(Controls(MYRTLE, tables, back, back))) == expected


@pytest.mark.parametrize(
    ("relu", "linear", "untrained", "expected"),
    [((40, 3, 2, 9, 9), (0,) * 5, 20.0, ["held"] * 6), ((3, 4, 5, 1, 1), (3,) * 5, 1.0, ["failed"] * 6)],
)
def test_merging_is_judged_by_what_each_group_saves(relu, linear, untrained, expected):
    """Six networks of which each pair loses what is given, by alignment."""
    pairs = np.where(np.triu(np.ones((6, 6)), 1) > 0, 0.0, np.nan)
    lost = {name: {kind: hairy(pairs + points) for kind, points in zip(ALIGNMENTS, row, strict=True)}
            for name, row in (("ReLU", relu), ("linear", linear))}  # fmt: skip
    plain = {"ReLU": {"permutation": hairy(np.full(6, untrained))}}
    assert verdicts(claims.merging(Averages({}, lost, lost, lost, plain))) == expected


@pytest.mark.parametrize(("without", "between", "expected"), [(30, 2, ["agrees"] * 2), (4, 9, ["disagrees"] * 2)])
def test_a_permutation_costs_more_where_no_relu_follows(without, between, expected):
    def points(kind, layer, stitch, fit):
        extra = without if kind == "resnet20_without_last_relu" else between
        return (3.0 + extra * (stitch == "g_relu")) * (not inside_block(layer))

    assert verdicts(claims.without_relu(Planted(points))) == expected
    some = claims.without_relu(Planted(points, more={"resnet20": 500.0}))[1]
    assert some.ours == pytest.approx(without - between, abs=0.1), "seeds that one kind alone has do not count"


def leaky(accuracy, points):
    """Two networks a slope of LeakyReLU, by the accuracy of the slope, and their penalties."""
    kinds = {f"resnet20_slope{slope}": float(slope) for slope in claims.SLOPES}
    accuracies = {f"{kind}_{i}": accuracy(slope) + 0.001 * i * (1 + slope)
                  for kind, slope in kinds.items() for i in (0, 1)}  # fmt: skip
    found = Planted(lambda kind, layer, *_: points(kinds[kind], layer), accuracies=accuracies)
    return claims.leaky_slopes(found)


def test_slopes_are_judged_singly_and_together():
    """Slopes are judged by two accuracies each and over all slopes.

    One pair a slope has no interval: what is asked of one slope alone is not shown, however clear it looks.
    """

    def steady(slope, layer):  # exchanged neighbours, as no perfect order has an interval
        rank = sorted(map(float, claims.SLOPES), key=lambda one: {0.01: 1e-3, 1e-3: 0.01}.get(one, one)).index(slope)
        return 20.0 + rank if layer == RESNET[-1] else 10.0 + 2 * rank * (layer == "relu") + 5 * (layer != "relu")

    for points, sign in ((steady, "agrees"), (lambda slope, layer: 60 - steady(slope, layer), "disagrees")):
        rows = leaky(lambda slope: 0.9 - 0.2 * slope**3, points)
        assert [by_what(rows, f"accuracy: slope {slope}").verdict for slope in ("0.0001", "0.1 ")] == ["agrees"] * 2
        assert by_what(rows, "slopes below 1").verdict == "not shown"
        assert by_what(rows, "rank correlation of slope and penalty").verdict == sign
    risen = leaky(lambda slope: 0.7 + 0.2 * slope, steady)
    assert [by_what(risen, f"accuracy: slope {slope}").verdict for slope in ("0.0001", "0.1 ")] == ["disagrees"] * 2
