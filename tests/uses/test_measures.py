"""Costs, orders, correlations and alarms against closed forms and planted truths."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from affscore_book.uses.alarm import threshold
from affscore_book.uses.foreknowledge import CONTROLS, RIVALS
from affscore_book.uses.removal import REMOVAL_ORDERS, area, area_of
from affscore_study.uses import alarm, correlations, costs, removal
from affscore_study.uses.power import power_of_mean, spread_of_interval

SCORE, R2 = RIVALS["1 − score"], RIVALS["1 − paired R²"]


def calls_of(known, cost, r2=None):
    """Calls of a network by 1 − score and the logarithm of the cost."""
    r2 = np.full(len(known), 0.5) if r2 is None else r2
    return [
        {"kl": 10.0**b, "score": 1 - a, "r2": 1 - c, "position": at}
        | {"channels": 8, "positions": 4, "variance_share": 0.1}
        for at, (a, b, c) in enumerate(zip(known, cost, r2, strict=True))
    ]


def test_divergence_is_exact_and_ignores_shifts_of_logits():
    """The divergence is that of two coins, whatever the shift of the logits."""
    p, q = torch.tensor([[0.25, 0.75]]), torch.tensor([[0.5, 0.5]])
    assert costs.kl(p.log() + 7, q.log()) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))


def test_tokens_are_rows_of_channels_at_seeded_positions():
    """Tokens are rows of channels, at the same positions for the same seed."""
    x = torch.arange(2 * 3 * 4 * 4).float().view(2, 3, 4, 4)
    some = costs.tokens(x, 1, 0)
    assert torch.equal(costs.tokens(2 * x, 1, 0), 2 * some)
    assert torch.equal(some[:, 1] - some[:, 0], torch.full((32,), 16.0).double())


def test_a_network_of_lines_costs_nothing_to_make_affine():
    torch.manual_seed(0)
    layers = nn.Linear(5, 8), nn.LeakyReLU(1.0), nn.Linear(8, 3), nn.ReLU(), nn.Linear(3, 2), nn.Sigmoid()
    network = nn.Sequential(*layers)
    x = torch.randn(300, 5)
    found = costs.measure_costs(network.eval(), x[:200], x[200:], torch.zeros(100))
    first, second = found["calls"]  # the sigmoid is a gate
    assert first["kl"] < 1e-9 and second["kl"] > 1e-5
    assert (first["r2"], first["score"]) == pytest.approx((1, 1), abs=1e-6)
    assert first["accuracy"] == found["accuracy"] == (network(x[200:]).argmax(1) == 0).double().mean()


def test_correlation_is_spearmans_within_each_network():
    """The correlation is Spearman's within each network, and networks are not compared with each other.

    A network whose calls all cost more and all score lower adds nothing.
    """
    calls = calls_of(*np.random.default_rng(1).normal(size=(2, 12)))
    theirs = stats.spearmanr([1 - call["score"] for call in calls], [call["kl"] for call in calls]).statistic
    assert correlations.correlation([calls], ["a"], SCORE).mean == pytest.approx(theirs)
    moved = [call | {"kl": 1000 * call["kl"], "score": call["score"] - 9} for call in calls]
    assert correlations.correlation([calls, moved], ["a", "b"], SCORE).mean == pytest.approx(theirs, abs=0.02)


def test_each_family_has_the_same_weight():
    """Each family has the same weight, however many networks it has."""
    order = np.arange(12)
    good, bad = calls_of(order, order), calls_of(order, -order)
    assert correlations.correlation([good, bad, bad, bad], list("abbb"), SCORE).mean == pytest.approx(0)


def test_what_is_given_is_taken_out():
    """The measure knows the cost through the position alone."""
    rng, order = np.random.default_rng(0), np.arange(40)
    networks = [calls_of(*(order + rng.normal(0, 2, (2, 40)))) for _ in range(8)]
    given = {"position": CONTROLS["position"]}
    assert correlations.correlation(networks, list("abcdefgh"), SCORE).mean > 0.9
    assert abs(correlations.correlation(networks, list("abcdefgh"), SCORE, given).mean) < 0.15


def test_shuffled_measures_know_nothing():
    networks = [calls_of(np.arange(12), np.arange(12))] * 4
    null = correlations.permuted(networks, list("aabb"), SCORE, {}, draws=200)
    assert abs(null.mean()) < 0.05 and null.max() < 0.7


def two_measures(shared):
    """Networks of three families; the second measure is the first, and as much noise as is not shared."""
    rng, networks = np.random.default_rng(0), []
    for _ in range(6):
        first = rng.uniform(size=14)
        networks.append(calls_of(first, 3 * first - 3, shared * first + (1 - shared) * rng.uniform(size=14)))
    return networks, list("aabbcc")


def test_agreement_difference_and_unshared_part_of_measures():
    """Two measures have an agreement, a difference and a part that the one does not share with the other."""
    networks, families = two_measures(0.5)
    own = [stats.spearmanr([1 - c["score"] for c in calls], [1 - c["r2"] for c in calls])[0] for calls in networks]
    assert correlations.agreement(networks, families, SCORE, R2).mean == pytest.approx(np.mean(own))
    apart, same, given = two_measures(0.0), two_measures(1.0), {"1 − paired R²": R2}
    found = correlations.difference(*apart, (SCORE, R2))
    one, other = (correlations.correlation(*apart, of).mean for of in (SCORE, R2))
    assert found.mean == pytest.approx(one - other) and found.low > 0
    assert correlations.unshared(*same, SCORE, given) == pytest.approx(0, abs=1e-9)
    assert correlations.unshared(*apart, SCORE, given) > 0.9


def test_family_of_few_calls_has_no_partial_correlation():
    """A family of few calls has no correlation given many controls."""
    networks, families = two_measures(0.5)
    networks[-2:] = [calls[:3] for calls in networks[-2:]]
    found = correlations.in_each_family(networks, families, SCORE, CONTROLS | {"1 − paired R²": R2})
    assert [name for name, value in found.items() if not math.isnan(value)] == ["a", "b"]


def test_area_is_accuracy_and_a_lead_counts_families_once():
    """The area of a network that loses nothing is its accuracy, and a lead counts each family once."""
    assert area(0.9, [0.9, 0.9, 0.9], 17) == pytest.approx(90)

    def network(score, latest):
        rows = {"score": [score] * 3, "latest first": [latest] * 3}
        return {"whole": score, "calls": [0] * 10, "removal": rows}

    networks = [network(0.9, 0.8), network(0.9, 0.8), network(0.9, 0.9)]
    gap = area_of(networks[0], "score") - area_of(networks[0], "latest first")
    assert removal.lead(networks, ["a", "a", "b"], "score", "latest first").mean == pytest.approx(gap / 2)


def test_orders_start_with_the_most_linear_call():
    """Orders put the most linear call first, and random ones differ by draw and can be repeated."""
    calls = [{"score": 0.2, "r2": 0.9, "sign_entropy": 0.3, "position": 0, "kl": 2.0}]
    calls += [{"score": 0.8, "r2": 0.1, "sign_entropy": 0.9, "position": 1, "kl": 1.0}]
    found = {name: removal.order_of(name, calls)[0] for name in REMOVAL_ORDERS}
    assert found == {"score": 1, "paired R²": 0, "sign entropy": 0, "latest first": 1, "true costs": 1}
    once, again, other = (removal.order_of(f"random {draw}", [{}] * 12) for draw in (1, 1, 2))
    assert once == again != other


def test_orders_that_take_the_same_calls_are_recognised():
    """Orders that take the same calls are told from those that do not."""
    calls = [{"score": 0.9 - 0.1 * at, "r2": 0.9 - 0.1 * at, "position": at} for at in range(8)]
    assert removal.same_calls({"calls": calls}, "score", "paired R²")
    assert not removal.same_calls({"calls": calls}, "score", "latest first")
    calls[0]["r2"], calls[1]["r2"] = calls[1]["r2"], calls[0]["r2"]  # the first to go is another one
    assert not removal.same_calls({"calls": calls}, "score", "paired R²")


def test_nothing_removed_keeps_the_accuracy():
    """With no call removed, the accuracy is that of the network."""
    torch.manual_seed(2)  # of seed 0 all answers are one class, with lines too
    network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x, calls = torch.randn(300, 5), [{"position": at, "score": at} for at in range(2)]
    labels = network(x).argmax(1)
    found = removal.remove(network, calls, x, x, labels, ["score"], [0, 1, 2])["score"]
    assert found[0] == 1 > found[2]


def test_clean_batches_raise_one_false_alarm_in_a_hundred():
    rng = np.random.default_rng(0)
    rates = [(rng.normal(size=1000) > threshold(rng.normal(size=100))).mean() for _ in range(200)]
    assert np.mean(rates) == pytest.approx(0.01, abs=0.003)
    with pytest.raises(ValueError, match="clean has 99 batches"):
        threshold(rng.normal(size=99))


def test_distances_are_in_deviations_of_the_reference():
    rng = np.random.default_rng(0)
    reference = [{"score": row.tolist(), "input": [1.0]} for row in rng.normal([0, 5], [1, 10], (400, 2))]
    wrong = [{"score": [3.0, 5.0], "input": [2.0]}, {"score": [0.0, 35.0], "input": [0.0]}]
    assert alarm.alarm_distances(wrong, reference, "score") == pytest.approx([1.5, 1.5], abs=0.15)
    assert np.isnan(alarm.alarm_distances(wrong, reference, "input")).all()  # what does not vary tells nothing
    nothing = [{"batch norm": []}]
    assert np.isnan(alarm.alarm_distances(nothing, nothing, "batch norm")).all()


def test_readings_are_those_of_the_network_by_hand():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    network = nn.Sequential(*layers).eval()  # the norm's statistics are 0 and 1
    inputs = torch.randn(40, 3, 6, 6)
    found = alarm.readings(network, inputs)
    with torch.no_grad():
        before, logits = network[:2](inputs), network(inputs)
    pooled = before.mean((2, 3))
    assert found["batch norm"] == pytest.approx([float(pooled.mean(0).abs().mean())], abs=1e-5)
    assert found["channel means of calls"] == pytest.approx(pooled.mean(0).tolist(), abs=1e-5)
    assert found["means of calls"] == pytest.approx([float(pooled.mean()), float(pooled.std())], abs=1e-5)
    assert found["answers"] == logits.argmax(1).tolist() and len(found["score"]) == 1 and len(found["input"]) == 6
    assert found["confidence"] == pytest.approx([float(logits.softmax(1).amax(1).mean())])
    assert not any(module._forward_pre_hooks for module in network.modules())


@pytest.mark.parametrize("fault", alarm.FAULTS)
def test_a_fault_touches_the_share_of_images_that_is_said(fault):
    images = torch.randint(0, 256, (8, 1, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))

    def standardise(x):
        return (x.float() / 255 - 0.3).expand(-1, 3, -1, -1)

    changed = (alarm.faulty(fault, 0.5, images, standardise) != standardise(images)).flatten(1).any(dim=1)
    assert changed.tolist() == [True] * 4 + [False] * 4


def test_pairs_ranked_rightly_are_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    clean, wrong = rng.normal(size=30), rng.normal(1, 1, 40)
    stored = {"clean": [{"input": x} for x in clean], "faulty": [{"input": x} for x in wrong]}
    assert alarm.ranked_above(stored, "input") == pytest.approx(stats.mannwhitneyu(wrong, clean).statistic / 1200)
    stored["clean"][0]["input"] = math.nan
    assert math.isnan(alarm.ranked_above(stored, "input"))


def test_power_has_its_limits_and_spread_is_recovered():
    """The power is 1 for a large effect and 2.5 % for none, and the spread is recovered from an interval."""
    assert power_of_mean(5.0, 0.1, 5, 1.0) == 1
    assert power_of_mean(0.0, 1.0, 5, 0.0) == pytest.approx(0.025, abs=0.005)
    values = np.random.default_rng(0).normal(size=9)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert spread_of_interval(low, high, 9) == pytest.approx(values.std(ddof=1))
