"""What is looked for in the trained networks of the paper: each sentence can be seen, and can fail to be."""

from pathlib import Path

import numpy as np
import pytest

from affscore import Signature
from affscore_book.imagenet_signatures.calls import places
from affscore_book.imagenet_signatures.paper_networks import Pair, paper_networks
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures import seen as module
from affscore_study.imagenet_signatures.paper_tables import CROP_DRAWS, varied_networks
from affscore_study.kit.rules import read_rules
from affscore_study.suite.compare import companion_correlations

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


@pytest.fixture(scope="module")
def pairs():
    return paper_networks(FOLDER)


def flat(signature, inside, last):
    """A signature like this one, with one score inside the blocks and another after the additions."""
    scores = np.where(places(signature)["last in its block"], last, inside)
    scores = scores + 1e-9 * np.arange(len(scores))  # a test of modes wants different numbers
    return Signature(signature.calls, scores[None], companions=signature.companions, batch_sizes=[64])


def seen(here, *draws, varied=None):
    """Whether what is measured is seen in the draws and on other photographs, and its number in the first draw."""
    (row,) = [
        row for row in module.seen_in(draws if draws[1:] else draws * 2, varied or {}).rows() if row["here"] == here
    ]
    return row["seen"], row["number"]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "one_mode", lambda scores: 0.5)  # takes a second
    module._one_mode.cache_clear()
    yield
    module._one_mode.cache_clear()


def rows(draws, varied=None, width=0.99):
    """The audit's rows, with one score of every call at equal width."""
    equal = np.full(len(draws[0]["resnet152"].trained.calls), width)
    claims = module.network_claims(draws if draws[1:] else draws * 2, varied or module.by_name(draws[0]), equal)
    return {claim.what: claim for claim in claims}


def test_a_separation_can_be_missing_and_draws_can_disagree(pairs, quick):
    def made(inside, last, name="resnet152"):
        return pairs | {name: Pair(flat(pairs[name].trained, inside, last), pairs[name].start)}

    gap, level = "ResNet-152: after the additions − inside", "ResNet-152: after the additions"
    clear, hardly, none = made(0.8, 0.98), made(0.8, 0.9), made(0.8, 0.8)
    assert seen(gap, hardly) == ("seen", pytest.approx(0.1)) and seen(gap, none)[0] == "not seen"
    assert seen(gap, hardly, none)[0] == "on some crops" and seen(gap, none, hardly)[0] == "on some crops"
    elsewhere = {name: {"resnet152": pair["resnet152"].trained} for name, pair in {"gap": hardly, "none": none}.items()}
    assert seen(gap, hardly, varied=elsewhere["none"])[0] == "on some crops"
    assert seen(gap, hardly, varied=elsewhere["gap"])[0] == "seen"
    assert [seen(level, draw)[0] for draw in (clear, hardly)] == ["seen", "not seen"]
    found = [rows(draws, module.by_name(other))[f"{gap} (one network)"] for draws, other in (
        ([clear], clear), ([none], none), ([hardly, none], none), ([hardly, hardly], none))]  # fmt: skip
    assert [claim.verdict for claim in found] == ["agrees", "disagrees", *["depends on the pictures"] * 2]
    assert {claim.interval for claim in found} == {None}, "draws of crops are no networks"
    deeper = made(0.5, 0.8) | {"resnet50": made(0.5, 0.9, "resnet50")["resnet50"]}
    assert seen("after the additions, ResNet-152 − ResNet-50", deeper) == ("not seen", pytest.approx(-0.1))


def test_one_network_or_width_decides_only_if_others_agree(pairs, quick):
    """What one network or one width shows decides only if the others say the same."""

    def said(last, less, width):
        levels = {"resnet152": last, "resnet50": less}
        made = {name: Pair(flat(pairs[name].trained, 0.8, level), pairs[name].start) for name, level in levels.items()}
        every = rows([pairs | made], width=width).values()
        found = [claim.verdict for claim in every if claim.theirs == '"close to 1" after the skip']
        assert len(found) == 3
        return set(found)

    assert said(0.98, 0.98, 0.98) == {"agrees"} and said(0.9, 0.9, 0.9) == {"disagrees"}
    on = {"depends on the network and the number of channels"}
    assert said(0.98, 0.98, 0.9) == said(0.98, 0.9, 0.98) == on


def test_every_row_says_that_one_network_decides(pairs, quick):
    """Every row says that one network decides, and which networks were trained on for another task."""
    every = [*rows([pairs]).values(), *module.table_2_claims([pairs], module.by_name(pairs))]
    assert all(module.ONE in claim.what for claim in every)
    for what in (claim.what for claim in every):
        on = ("ResNet-50" in what or "VGG-16" in what) and "VGG-16 before (" not in what
        assert ("trained on" in what) == on, what


def test_training_can_make_a_network_more_linear(pairs):
    turned = pairs | {"vgg16": Pair(*reversed(pairs["vgg16"]))}
    assert seen("rank correlation of call and score, VGG-16 before", turned)[0] == "not seen"
    for networks, said in ((turned, "not seen"), (pairs, "seen")):
        assert seen("mean score, VGG-16, trained − before", networks)[0] == said


def test_scores_of_one_kind_have_one_mode(pairs):
    deep = pairs["resnet152"].trained
    noise = np.random.default_rng(0).normal(scale=0.01, size=deep.scores.shape)
    for last, said in ((0.9, "seen"), (0.5, "not seen")):
        made = flat(deep, 0.5, last)
        made.scores[:] += noise
        what = "ResNet-152: p-value of one mode (Silverman)"
        assert seen(what, pairs | {"resnet152": Pair(made, deep)})[0] == said


def test_blocks_whose_last_score_is_highest_are_counted(block_network):
    up, down = [0.5, 0.6, 0.9], [0.5, 0.95, 0.9]
    assert module.highest(block_network([0.7, *up, *down, *up], calls=3)) == pytest.approx(2 / 3)


def test_correlations_are_judged_by_the_printed_ones(pairs, monkeypatch):
    *_, rule = read_rules("imagenet_signatures", "table_2")
    for far, verdict in ((0.09, "agrees"), (0.11, "disagrees")):
        columns = {measure: [one.theirs + far] for measure, one in rule.each.items()}
        names = {"model": ["resnet152", "resnet50", "vgg16"]}
        table = Table(names | {measure: values * 3 for measure, values in columns.items()})
        monkeypatch.setattr(module, "companion_correlations", lambda _, table=table: table)
        found = module.table_2_claims([pairs], module.by_name(pairs))
        assert [claim.verdict for claim in found if claim.what.startswith("VGG-16")] == [verdict] * 5


def test_rows_are_in_the_ledger(quick):
    """Each row is in the ledger with the same verdict."""
    draws, varied = [paper_networks(FOLDER, draw) for draw in range(CROP_DRAWS)], varied_networks(FOLDER)
    every, claims = module.seen_in(draws, varied).rows(), rows(draws, varied)
    assert len(every) > 30
    for row in (row for row in every if not row["here"].startswith("standard deviation")):
        (claim,) = [claim for what, claim in claims.items() if what.startswith(f"{row['here']} (")]
        assert claim.ours == row["number"]
        if claim.depends_on in ("", "the pictures"):
            said = {"agrees": "seen", "held": "seen", "disagrees": "not seen", "failed": "not seen"}
            assert said.get(claim.verdict, "on some crops") == row["seen"]


def test_lead_is_over_the_strongest_other_measure(pairs):
    """A lead is over the strongest other measure, with the sign of the paper."""
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
