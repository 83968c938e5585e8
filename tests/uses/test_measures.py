"""Costs, orders, correlations and alarms against closed forms and planted truths."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from affscore.companions import sign_entropy
from affscore_book.uses import alarm, costs, foreknowledge, removal
from affscore_book.uses.power import power_of_mean, spread_of_interval


def planted(seed, of=lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), calls=12):
    rng = np.random.default_rng(seed)
    known, kl = of(rng, calls)
    return [
        {"kl": 10.0**b, "score": 1 - a, "r2": 0.5, "position": at, "channels": 8, "positions": 4, "variance_share": 0.1}
        for at, (a, b) in enumerate(zip(known, kl, strict=True))
    ]


def test_divergence_of_two_biased_coins():
    p, q = torch.tensor([[0.25, 0.75]]), torch.tensor([[0.5, 0.5]])
    truth = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert costs.kl(p.log(), q.log()) == pytest.approx(truth)


def test_divergence_does_not_depend_on_a_shift_of_the_logits():
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    assert costs.kl(logits, logits + 7) == pytest.approx(0, abs=1e-12)


def test_sign_entropy_is_scipys():
    x = torch.randn(50, 3, 4, generator=torch.Generator().manual_seed(0)) + torch.tensor([0.0, 1.0, 3.0])[:, None]
    p = (x > 0).double().mean((0, 2)).numpy()
    assert sign_entropy(x) == pytest.approx(np.mean([stats.entropy([a, 1 - a], base=2) for a in p]), abs=1e-6)


def test_tokens_are_rows_of_channels_and_the_same_places_for_the_same_seed():
    x = torch.arange(2 * 3 * 4 * 4).float().view(2, 3, 4, 4)
    some = costs.tokens(x, 1, 0, 10)
    assert torch.equal(costs.tokens(2 * x, 1, 0, 10), 2 * some)
    assert torch.equal(some[:, 1] - some[:, 0], torch.full((10,), 16.0).double())


def test_a_network_of_lines_costs_nothing_to_make_affine():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 8), nn.LeakyReLU(1.0), nn.Linear(8, 3), nn.ReLU(), nn.Linear(3, 2))
    x = torch.randn(300, 5)
    first, second = costs.measure_costs(network.eval(), x[:200], x[200:])["calls"]
    assert first["kl"] < 1e-9
    assert first["r2"] == pytest.approx(1, abs=1e-6)
    assert first["score"] == pytest.approx(1, abs=1e-6)
    assert second["kl"] > 1e-4


def test_correlation_is_spearmans_for_one_network():
    calls = planted(0)
    ours = foreknowledge.correlation([calls], ["a"], foreknowledge.RIVALS["1 − score"]).mean
    theirs = stats.spearmanr([1 - call["score"] for call in calls], [call["kl"] for call in calls]).statistic
    assert ours == pytest.approx(theirs)


def test_networks_are_not_compared_with_each_other():
    """A network whose calls all cost more and all score lower adds nothing."""
    calls = planted(1)
    moved = [call | {"kl": 1000 * call["kl"], "score": call["score"] - 9} for call in calls]
    measure = foreknowledge.RIVALS["1 − score"]
    one = foreknowledge.correlation([calls], ["a"], measure).mean
    assert foreknowledge.correlation([calls, moved], ["a", "b"], measure).mean == pytest.approx(one, abs=0.02)


def test_each_family_has_the_same_weight_however_many_networks_it_has():
    good = planted(2, lambda rng, n: (np.arange(n), np.arange(n)))
    bad = planted(2, lambda rng, n: (np.arange(n), -np.arange(n)))
    measure = foreknowledge.RIVALS["1 − score"]
    assert foreknowledge.correlation([good, bad, bad, bad], ["a", "b", "b", "b"], measure).mean == pytest.approx(0)


def test_what_is_given_is_taken_out():
    """The measure knows the cost through the position alone."""

    def through_position(rng, n):
        return np.arange(n) + rng.normal(0, 2, n), np.arange(n) + rng.normal(0, 2, n)

    networks = [planted(seed, through_position, 40) for seed in range(8)]
    measure, families = foreknowledge.RIVALS["1 − score"], list("abcdefgh")
    given = {"position": foreknowledge.CONTROLS["position"]}
    assert foreknowledge.correlation(networks, families, measure).mean > 0.9
    assert abs(foreknowledge.correlation(networks, families, measure, given).mean) < 0.15


def test_shuffled_measures_know_nothing():
    networks = [planted(seed, lambda rng, n: (np.arange(n), np.arange(n))) for seed in range(4)]
    null = foreknowledge.permuted(networks, list("aabb"), foreknowledge.RIVALS["1 − score"], draws=200)
    assert abs(null.mean()) < 0.05
    assert null.max() < 0.7


def test_area_of_a_network_that_loses_nothing_is_its_accuracy():
    assert removal.area(0.9, [0.9, 0.9, 0.9], 17) == pytest.approx(90)


def test_lead_counts_each_family_once():
    def network(score, latest):
        rows = {"score": [score] * 3, "latest first": [latest] * 3}
        return {"whole": score, "calls": [0] * 10, "removal": rows}

    networks = [network(0.9, 0.8), network(0.9, 0.8), network(0.9, 0.9)]
    gap = removal.area_of(networks[0], "score") - removal.area_of(networks[0], "latest first")
    assert removal.lead(networks, ["a", "a", "b"], "score", "latest first").mean == pytest.approx(gap / 2)


def test_orders_put_the_most_linear_first():
    calls = [{"score": 0.2, "r2": 0.9, "sign_entropy": 0.3, "position": 0, "kl": 2.0}]
    calls += [{"score": 0.8, "r2": 0.1, "sign_entropy": 0.9, "position": 1, "kl": 1.0}]
    found = {name: removal.order_of(name, calls) for name in removal.REMOVAL_ORDERS}
    assert found == {
        "score": [1, 0],
        "paired R²": [0, 1],
        "sign entropy": [0, 1],
        "latest first": [1, 0],
        "true costs": [1, 0],
    }


def test_random_orders_differ_and_repeat():
    calls = [{}] * 12
    assert removal.order_of("random 1", calls) == removal.order_of("random 1", calls)
    assert removal.order_of("random 1", calls) != removal.order_of("random 2", calls)


def test_clean_batches_raise_one_false_alarm_in_a_hundred():
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(200):
        clean = rng.normal(size=100)
        rates.append(float((rng.normal(size=1000) > alarm.threshold(clean)).mean()))
    assert np.mean(rates) == pytest.approx(0.01, abs=0.003)


def test_distances_are_in_deviations_of_the_reference():
    rng = np.random.default_rng(0)
    reference = [{"score": row.tolist()} for row in rng.normal([0, 5], [1, 10], (400, 2))]
    moved = alarm.alarm_distances([{"score": [3.0, 5.0]}, {"score": [0.0, 35.0]}], reference, "score")
    assert moved == pytest.approx([1.5, 1.5], abs=0.15)


@pytest.mark.parametrize("fault", alarm.FAULTS)
def test_a_fault_touches_the_share_of_images_that_is_said(fault):
    images = torch.randint(0, 256, (8, 1, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))

    def standardise(x):
        return (x.float() / 255 - 0.3).expand(-1, 3, -1, -1)

    changed = (alarm.faulty(fault, 0.5, images, standardise) != standardise(images)).flatten(1).any(dim=1)
    assert changed.tolist() == [True] * 4 + [False] * 4


def test_power_of_a_sure_thing_and_of_nothing():
    assert power_of_mean(5.0, 0.1, 5, 1.0) == 1
    assert power_of_mean(0.0, 1.0, 5, 0.0) == pytest.approx(0.025, abs=0.005)


def test_spread_is_that_behind_the_interval():
    values = np.random.default_rng(0).normal(size=9)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert spread_of_interval(low, high, 9) == pytest.approx(values.std(ddof=1))


def test_with_no_call_removed_the_accuracy_is_that_of_the_network():
    torch.manual_seed(2)  # of seed 0 all answers are one class, with lines too
    network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x, calls = torch.randn(300, 5), [{"position": at, "score": at} for at in range(2)]
    with torch.no_grad():
        labels = network(x).argmax(1)
    found = removal.remove(network, calls, x, x, labels, ["score"], [0, 1, 2])["score"]
    assert found[0] == 1 > found[2]


def two_measures(seed, shared):
    """Networks of three families; the second measure is the first, and as much noise as is not shared."""
    rng = np.random.default_rng(seed)
    networks = []
    for _ in range(6):
        first = rng.uniform(size=14)
        second = shared * first + (1 - shared) * rng.uniform(size=14)
        networks.append([
            {"score": 1 - x, "r2": 1 - y, "kl": 10 ** (3 * x - 3), "position": at, "channels": 8, "positions": 4,
             "variance_share": 0.1} for at, (x, y) in enumerate(zip(first, second, strict=True))
        ])  # fmt: skip
    return networks, ["a", "a", "b", "b", "c", "c"]


SCORE, R2 = foreknowledge.RIVALS["1 − score"], foreknowledge.RIVALS["1 − paired R²"]


def test_agreement_is_the_mean_rank_correlation_of_two_measures():
    networks, families = two_measures(0, 0.5)
    each = [stats.spearmanr([1 - c["score"] for c in calls], [1 - c["r2"] for c in calls])[0] for calls in networks]
    assert foreknowledge.agreement(networks, families, SCORE, R2).mean == pytest.approx(np.mean(each))


def test_a_difference_of_two_measures_is_that_of_their_correlations():
    networks, families = two_measures(0, 0.0)
    found = foreknowledge.difference(networks, families, (SCORE, R2))
    one, other = (foreknowledge.correlation(networks, families, of).mean for of in (SCORE, R2))
    assert found.mean == pytest.approx(one - other)
    assert found.low > 0


def test_nothing_of_a_measure_is_unshared_given_itself_and_all_given_another_one():
    given = {"1 − paired R²": R2}
    assert foreknowledge.unshared(*two_measures(0, 1.0), SCORE, given) == pytest.approx(0, abs=1e-9)
    assert foreknowledge.unshared(*two_measures(0, 0.0), SCORE, given) > 0.9


def test_a_family_of_few_calls_has_no_correlation_given_many_controls():
    networks, families = two_measures(0, 0.5)
    networks[-2:] = [calls[:3] for calls in networks[-2:]]
    found = foreknowledge.in_each_family(networks, families, SCORE, foreknowledge.CONTROLS | {"1 − paired R²": R2})
    assert [name for name, value in found.items() if not math.isnan(value)] == ["a", "b"]


def test_orders_that_take_the_same_calls_are_told_from_those_that_do_not():
    calls = [{"score": 0.9 - 0.1 * at, "r2": 0.9 - 0.1 * at, "position": at} for at in range(8)]
    assert removal.same_calls({"calls": calls}, "score", "paired R²")
    assert not removal.same_calls({"calls": calls}, "score", "latest first")
    calls[0]["r2"], calls[1]["r2"] = calls[1]["r2"], calls[0]["r2"]  # the first to go is another one
    assert not removal.same_calls({"calls": calls}, "score", "paired R²")


def test_pairs_ranked_rightly_are_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    clean, wrong = rng.normal(size=30), rng.normal(1, 1, 40)
    stored = {"clean": [{"input": x} for x in clean], "faulty": [{"input": x} for x in wrong]}
    oracle = stats.mannwhitneyu(wrong, clean).statistic / 1200
    assert alarm.ranked_above(stored, "input") == pytest.approx(oracle)
    stored["clean"][0]["input"] = math.nan
    assert math.isnan(alarm.ranked_above(stored, "input"))
