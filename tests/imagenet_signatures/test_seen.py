"""What is looked for in the trained networks of the paper: each sentence can be seen, and can fail to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from affscore import Signature
from affscore.suite.compare import companion_correlations
from affscore_book.imagenet_signatures import seen as module
from affscore_book.imagenet_signatures.paper_networks import CROP_DRAWS, Pair, paper_networks
from affscore_book.imagenet_signatures.trained import places

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


@pytest.fixture(scope="module")
def draws():
    return [paper_networks(FOLDER, draw) for draw in range(CROP_DRAWS)]


@pytest.fixture(scope="module")
def pairs(draws):
    return draws[0]


def flat(signature, inside, last):
    """A signature like this one, with one score inside the blocks and another after the additions."""
    scores = np.where(places(signature)["last in its block"], last, inside)
    scores = scores + 1e-9 * np.arange(len(scores))  # a test of modes wants different numbers
    return Signature(signature.calls, scores[None], companions=signature.companions, batch_sizes=[64])


def seen(pairs, here):
    (row,) = [row for row in module.seen_in([pairs, pairs]).rows() if row["here"] == here]
    return row["seen"], row["number"]


def test_blocks_can_be_without_a_separation(pairs):
    def made(gap):
        return pairs | {"resnet152": Pair(flat(pairs["resnet152"].trained, 0.8, 0.8 + gap), pairs["resnet152"].start)}

    what = "ResNet-152: after the additions − inside"
    assert seen(made(0.1), what) == ("seen", pytest.approx(0.1))
    assert seen(made(0.0), what)[0] == seen(made(-0.1), what)[0] == "not seen"
    found = [module.appendix_d_claims([made(gap), made(gap)]) for gap in (0.18, 0.1, 0.0)]
    verdicts = [[claim.verdict for claim in claims] for claims in found]
    assert verdicts == [["agrees", "agrees"], ["disagrees", "agrees"], ["disagrees", "disagrees"]]
    mixed = [made(0.1), made(0.0)]
    assert module.appendix_d_claims(mixed)[1].verdict == "undecided"
    (row,) = [row for row in module.seen_in(mixed).rows() if row["here"] == what]
    assert row["seen"] == "in some draws" and row["over draws"] == "0.000 to 0.100"


def test_a_network_can_be_far_from_1_behind_its_additions(pairs):
    def made(last):
        return pairs | {"resnet152": Pair(flat(pairs["resnet152"].trained, 0.5, last), pairs["resnet152"].start)}

    what = "ResNet-152: after the additions"
    for last, looked, said in ((0.97, "seen", "agrees"), (0.9, "not seen", "disagrees")):
        assert seen(made(last), what)[0] == looked
        claim = module.appendix_d_claims([made(last), made(last)])[0]
        assert claim.verdict == said and claim.interval is None, "draws of crops are no networks"
    assert module.appendix_d_claims([made(0.97), made(0.9)])[0].verdict == "undecided"


def test_a_deeper_network_can_be_farther_from_1(pairs):
    deep, less = (pairs[name].trained for name in ("resnet152", "resnet50"))
    turned = pairs | {
        "resnet152": Pair(flat(deep, 0.5, 0.8), pairs["resnet152"].start),
        "resnet50": Pair(flat(less, 0.5, 0.9), pairs["resnet50"].start),
    }
    assert seen(turned, "after the additions, ResNet-152 − ResNet-50") == ("not seen", pytest.approx(-0.1))


def test_training_can_make_a_network_more_linear(pairs):
    turned = pairs | {"vgg16": Pair(*reversed(pairs["vgg16"]))}
    assert seen(turned, "mean score, VGG-16, trained − before")[0] == "not seen"
    assert seen(turned, "rank correlation of call and score, VGG-16 before")[0] == "not seen"
    assert seen(pairs, "mean score, VGG-16, trained − before")[0] == "seen"


def test_scores_of_one_kind_have_one_mode(pairs):
    what = "ResNet-152: p-value of one mode (Silverman)"
    deep = pairs["resnet152"].trained
    noise = np.random.default_rng(0).normal(scale=0.01, size=deep.scores.shape)
    for last, verdict in ((0.9, "seen"), (0.5, "not seen")):
        made = flat(deep, 0.5, last)
        made.scores[:] += noise
        assert seen(pairs | {"resnet152": Pair(made, deep)}, what)[0] == verdict


def test_blocks_whose_last_score_is_highest_are_counted(block_network):
    up, down = [0.5, 0.6, 0.9], [0.5, 0.95, 0.9]
    assert module.highest(block_network([0.7, *up, *down, *up], calls=3)) == pytest.approx(2 / 3)


def test_correlations_are_judged_by_the_printed_ones(pairs, monkeypatch):
    own = companion_correlations({"vgg16": pairs["vgg16"].trained}).row("vgg16")
    near = tuple(own[measure] + 0.09 for measure in module.HEADINGS.values())
    far = tuple(value + 0.02 for value in near)
    for printed, verdict in ((near, "seen"), (far, "not seen")):
        monkeypatch.setitem(module.TABLE_2, "vgg16", printed)
        rows = [row for row in module.table_2_seen([pairs]).rows() if row["network"] == "VGG-16"]
        assert {row["seen"] for row in rows} == {verdict} and len(rows) == 5


def test_the_lesson_shows_some_of_the_rows_of_the_audit(draws):
    every, main = (module.seen_in(draws, every=each).rows() for each in (True, False))
    assert 5 <= len(main) <= 10 < len(every)
    assert all(any(row.items() <= each.items() for each in every) for row in main)


def test_a_sentence_without_its_ends_would_be_seen_in_anything():
    for each in module._sentences():
        low, high = each.accept
        assert low < high and not (np.isinf(low) and np.isinf(high))


def test_a_lead_is_over_the_strongest_other_with_the_sign_of_the_paper(pairs):
    found = pairs["resnet152"].trained
    row = companion_correlations({"": found}).row("")
    others = [abs(row[name]) for name in ("CKA", "norm", "entropy", "R2 held out")]
    assert module.lead(found, "ResNets") == pytest.approx(-row["sparsity"] - max(others))
    turned = Signature(
        found.calls, found.scores, batch_sizes=[64],
        companions=found.companions | {"sparsity_before": found.companions["sparsity_after"],
                                       "sparsity_after": found.companions["sparsity_before"]},
    )  # fmt: skip
    assert module.lead(turned, "ResNets") == pytest.approx(row["sparsity"] - max(others))


def test_the_climb_of_rising_scores_is_1(block_network):
    assert module.climb(block_network([0.1, 0.2, 0.3, 0.4, 0.5])) == pytest.approx(1)
    assert module.climb(block_network([0.5, 0.4, 0.3, 0.2, 0.1])) == pytest.approx(-1)


def test_a_row_says_its_rule_and_in_which_draws_it_holds():
    for accept, rule in (((0.02, np.inf), "at least 0.02"), ((-np.inf, -0.02), "at most −0.02"), ((0, 1), "0 to 1")):
        assert module._over_draws([0.5], accept)["seen if"] == rule
    words = [module._over_draws(numbers, (0.0, 1.0))["seen"] for numbers in ([0.5, 1.0], [0.5, 1.1], [-1, 2])]
    assert words == ["seen", "in some draws", "not seen"]
