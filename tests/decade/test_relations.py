"""Accuracy, other measures and families beside signatures: planted relations are found, and chance is not."""

from dataclasses import replace

import numpy as np
import pytest
from planted_decade import CALLS, decade, noise, verdicts

from affscore_book.decade.collection import kin
from affscore_book.decade.networks import SETTINGS
from affscore_study.decade import relations
from affscore_study.decade.claims import DISTANCES


def level(name: str) -> float:
    return np.random.default_rng(sum(map(ord, name))).uniform(0.4, 0.9)


def levels(name: str, seed: int) -> np.ndarray:
    return level(name) + noise(name, seed)


def size(name: str) -> int:
    return int(np.random.default_rng([9, *map(ord, name)]).integers(100, 1000))


@pytest.mark.parametrize(("accuracy", "told"), [(level, ["agrees", "held"]), (size, ["disagrees", "not shown"])])
def test_accuracy_that_follows_the_score_is_told(accuracy, told):
    """An accuracy that follows the mean score is told, and one that follows the size is not.

    A correlation that shuffled values reach as well shows nothing.
    """
    networks = {name: {s: replace(each, accuracy=accuracy(name), parameters=size(name)) for s, each in seeds.items()}
                for name, seeds in decade(levels).items()}  # fmt: skip
    rows = relations.accuracy_claims(networks, draws=200)
    assert verdicts(rows) == told and (rows[0].ours > 0.3) == (rows[1].ours == 0) == (accuracy is level)


def with_companions(of):
    """``of(measure, name, seed, scores)`` gives each measure of the trained calls."""
    networks = decade(levels)
    for name, seeds in networks.items():
        for seed, each in seeds.items():
            for measure in ("cka", "norm", "entropy_change", "r2_held_out", "sparsity_before", "sparsity_after"):
                each.end.companions[measure] = of(measure, name, seed, each.end.mean)[None]
    return networks


@pytest.mark.parametrize(("share", "verdict"), [(0.97, "disagrees"), (0.1, "agrees")])
def test_a_measure_that_copies_the_score_is_found(share, verdict):
    def of(measure: str, name: str, seed: int, scores: np.ndarray) -> np.ndarray:
        other = noise(measure + name, seed)
        return share * (scores - level(name)) + (1 - share) * other if measure == "norm" else other

    claim, squared = relations.other_measure_claims(with_companions(of))
    assert claim.verdict == verdict and (share < 0.5 or "norm" in claim.what)
    assert "R2" in squared.what and squared.verdict == "agrees"


def test_the_strongest_measure_is_chosen_anew_without_a_family():
    """CKA copies the score in half of the families and the norm in the other half: either may be the strongest."""
    half = sorted({kin(name) for name in SETTINGS})[::2]

    def of(measure: str, name: str, seed: int, scores: np.ndarray) -> np.ndarray:
        own = measure == ("cka" if kin(name) in half else "norm")
        return scores if own else noise(measure + name, seed)

    claim, _ = relations.other_measure_claims(with_companions(of))
    low, high = claim.interval
    assert "11 families" in claim.what and high - low > 0.3 and claim.verdict == "undecided"


def test_many_networks_of_one_family_are_one_result():
    """In the six VGGs and the three ResNets alone the norm copies the score: two families of twelve."""

    def of(measure: str, name: str, seed: int, scores: np.ndarray) -> np.ndarray:
        return scores if measure == "norm" and kin(name) in ("vgg", "resnet") else noise(measure + name, seed)

    claim, _ = relations.other_measure_claims(with_companions(of))
    assert claim.ours == pytest.approx(2 / 12, abs=0.15)


def test_a_family_of_one_network_is_counted_by_its_seeds():
    networks = with_companions(lambda measure, name, seed, scores: noise(measure + name, seed))
    table = relations.member_correlations(networks, {"VGGs": "vgg", "Swins": "swin"})
    assert list(table["model"]).count("swin") == 3 and list(table["model"]).count("vgg16") == 1
    swins = [row["norm"] for row in table.rows() if row["model"] == "swin"]
    whole = relations.member_correlations(networks, {}).row("swin")
    assert np.mean(swins) == pytest.approx(whole["norm"]) and len(set(swins)) == 3
    each = [np.corrcoef(one.end.mean, one.end.companions["norm"][0])[0, 1] for one in networks["swin"].values()]
    assert swins == pytest.approx(each)


def test_families_that_are_close_and_families_of_chance():
    def close(name: str, seed: int) -> np.ndarray:
        return level(kin(name)) + noise(name, seed)

    assert verdicts(relations.family_claims(decade(close))) == ["agrees"] * 2
    random = np.random.default_rng(0)
    points = random.normal(size=(20, 3))
    table = np.linalg.norm(points[:, None] - points, axis=-1)
    parts = [relations.permutation_share(table, random.integers(0, 4, 20).tolist(), draws=100) for _ in range(20)]
    assert 0.2 < np.mean(parts) < 0.8


def test_distances_are_symmetric_and_zero_to_themselves():
    names, table = relations.family_distances(decade(levels), next(iter(DISTANCES.values())))
    assert len(names) == len(table) and (table == table.T).all() and not table.diagonal().any()
    one, other = names.index("vgg11"), names.index("vit_4")
    assert table[one, other] == pytest.approx(np.sqrt(CALLS) * abs(level("vgg11") - level("vit_4")), rel=0.1)
