"""The paper's sentences on its own networks: "not run here" without results, and with them each rule can say no."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
from torchvision.models import get_model_weights

from affscore.suite.architectures import facts
from affscore.suite.suites import PAPER, WEIGHTS
from affscore_book.imagenet_signatures.finding import before_training
from affscore_book.imagenet_signatures.full_results import Results
from affscore_book.imagenet_signatures.paper import DEVIATIONS, FAMILY_MEASURES, SLIDE_STDS
from affscore_book.imagenet_signatures.sentences import in_one_row, paper_claims, rank_interval
from affscore_book.imagenet_signatures.trained import places

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
#: Rows that no run on these pictures answers; and R2 within a batch, 1 where there are more channels than images.
NEVER = 3 + len(DEVIATIONS) + 1


def published(start, name, pool):
    weights = get_model_weights(name)[WEIGHTS.get(name, "IMAGENET1K_V1")]
    about = {"model": name, "weights": {"weights": str(weights)}}
    first = {"scores": start.scores[:1], "batch_sizes": [512], "companions": {
        measure: rows[:1] for measure, rows in start.companions.items()
    }}  # fmt: skip
    axes = {} if pool == "spatial" else {"channel_axis": -1}
    calls = [dataclasses.replace(call, **axes) for call in start.calls]
    return dataclasses.replace(start, pool=pool, calls=calls, provenance=about, **first)


@pytest.fixture(scope="module")
def results():
    """All networks, with the scores that they have before training."""
    pools = {
        pool: {name: published(each, name, pool) for name, each in before_training(FOLDER, pool=pool).items()}
        for pool in ("spatial", "trailing")
    }
    assert list(pools["spatial"]) == list(PAPER)
    return Results("imagenette", pools, dict.fromkeys(PAPER, 0.01), {})


def hash_of(name):
    """A number of its own for each network, so that no two are the same: a variance of 0 has no interval."""
    return PAPER.index(name) ** 2


def changed(results, scores, pools=("spatial", "trailing")):
    """Other mean scores: ``scores`` takes the name of a network and its scores."""
    signatures = {
        pool: {name: dataclasses.replace(each, scores=scores(name, each.scores) + 1e-4 * (hash_of(name) % 7))
               if pool in pools else each
               for name, each in networks.items()}
        for pool, networks in results.signatures.items()
    }  # fmt: skip
    return results._replace(signatures=signatures)


def verdict(results, what):
    (claim,) = [claim for claim in paper_claims(results) if claim.what.startswith(what)]
    return claim.verdict


def test_without_results_every_row_says_what_it_needs_and_where_it_stands():
    rows = paper_claims(None)
    assert {claim.verdict for claim in rows} == {"not run here"} and len({claim.what for claim in rows}) == len(rows)
    assert all(claim.needs and re.match(r"(CVPR 2025|slides), ", claim.source) for claim in rows)
    for quoted in (FAMILY_MEASURES, SLIDE_STDS, DEVIATIONS):
        assert all(any(name in claim.what for claim in rows) for name in quoted)


def test_rows_that_one_run_decides_are_one_row_with_a_list(results):
    rows, few = paper_claims(None), in_one_row(paper_claims(None))
    assert len(few) == 1 + 3 + len(DEVIATIONS) and few[0].verdict == "not run here"
    assert all(row.what in few[0].what for row in rows if row not in few)
    assert in_one_row(paper_claims(results)) == paper_claims(results)


def test_with_results_the_rows_fill_and_no_row_comes_or_goes(results):
    rows = paper_claims(results)
    assert len(rows) == len(paper_claims(None))
    assert [claim.source for claim in rows] == [claim.source for claim in paper_claims(None)]
    assert sum(claim.verdict == "not run here" for claim in rows) == NEVER
    assert all(claim.kind == "source" and "imagenette" in claim.what for claim in rows if claim.ours is not None)


def test_with_some_networks_the_rows_that_need_others_name_one(results):
    few = {pool: {name: networks[name] for name in PAPER if "resnet" in name}
           for pool, networks in results.signatures.items()}  # fmt: skip
    rows = paper_claims(results._replace(signatures=few))
    assert len(rows) == len(paper_claims(None))
    filled = [claim for claim in rows if claim.ours is not None]
    assert [claim.what.split(":")[0].split(",")[0] for claim in filled] == [
        "rank correlation of depth and score after the additions",
        "rank correlation of depth and how far that is above the score inside", "std over batches", "ResNets",
    ]  # fmt: skip
    assert any(claim.needs.startswith("alexnet and 30 more, pretrained: ") for claim in rows)
    first, *others = in_one_row(rows)
    assert first.ours is None and not any("pretrained: " in claim.needs for claim in others)
    assert [claim for claim in others if claim.ours is not None] == filled


def flat(level):
    """Every network's scores at a level of its own, with a little spread."""
    return lambda name, scores: level(name) + 0.01 * np.linspace(-1, 1, scores.shape[1])[None]


def year(name):
    return 0.05 * (facts(name).year - 2012)


@pytest.mark.parametrize("pool", ["spatial", "trailing"])
def test_vits_can_be_the_lowest_family_or_not(results, pool):
    for level, said in ((0.2, "agrees"), (0.9, "disagrees")):
        planted = changed(results, flat(lambda name, level=level: level if "vit" in name else 0.6), (pool,))
        assert verdict(planted, f"ViT − the lowest other family: {pool}") == said


def test_the_years_can_rise_or_fall(results):
    assert verdict(changed(results, flat(year)), "rank correlation of year") == "agrees"
    assert verdict(changed(results, flat(lambda name: 0.9 - year(name))), "rank correlation of year") == "disagrees"


def test_deeper_resnets_have_to_come_closer_to_1(results):
    for sign, said in ((1, "agrees"), (-1, "disagrees")):
        planted = changed(results, flat(lambda name, sign=sign: 0.5 + sign * 1e-3 * facts(name).depth))
        assert verdict(planted, "rank correlation of depth and score after") == said


def test_the_separation_has_to_grow_with_depth(results):
    for sign, said in ((1, "agrees"), (-1, "disagrees")):
        def scores(name, old, sign=sign):
            if "resnet" not in name:
                return old
            last = places(results.signatures["spatial"][name])["last in its block"]
            return np.where(last, 0.9, 0.5 - sign * 1e-3 * facts(name).depth)[None]

        assert verdict(changed(results, scores), "rank correlation of depth and how far") == said


def test_deeper_vggs_can_change(results):
    for step, said in ((0.0, "agrees"), (0.01, "disagrees")):
        planted = changed(results, flat(lambda name, step=step: 0.5 + step * facts(name).depth * ("vgg" in name)))
        assert verdict(planted, "highest − lowest median score of the four VGGs") == said


def test_the_spread_of_plain_stacks_can_be_wide(results):
    def spread(wide):
        def scores(name, old):
            half = 0.3 if name.startswith(("alexnet", "vgg")) == wide else 0.1
            return 0.5 + half * np.linspace(-1, 1, old.shape[1])[None]

        return scores

    assert verdict(changed(results, spread(False)), "largest spread") == "agrees"
    assert verdict(changed(results, spread(True)), "largest spread") == "disagrees"


def test_swin_can_be_far_from_alexnet(results):
    for level, said in ((0.5, "agrees"), (0.9, "disagrees")):
        planted = changed(results, flat(lambda name, level=level: {"alexnet": 0.5, "swin_b": level}.get(name, 0.7)))
        assert verdict(planted, "distance of AlexNet to Swin-B") == said


def test_scores_can_tell_the_accuracy_or_nothing(results):
    told = changed(results, flat(lambda name: facts(results.signatures["spatial"][name]).accuracy / 100))
    assert verdict(told, "part of the groups") == "agrees"
    assert verdict(told, "ViTs: correlation of least score") == "disagrees"  # it should fall with the accuracy
    fallen = changed(results, flat(lambda name: 1 - facts(results.signatures["spatial"][name]).accuracy / 100))
    assert verdict(fallen, "ViTs: correlation of least score") == "agrees"
    same = changed(results, lambda name, scores: np.full_like(scores, 0.5), ("trailing",))
    assert verdict(same, "part of the groups") == "disagrees"


def test_std_over_batches_is_judged_by_the_slides_own_number(results):
    stds = dict.fromkeys(PAPER, 0.01) | {"alexnet": 0.02}
    planted = results._replace(std=stds)
    assert verdict(planted, "std over batches, alexnet") == "disagrees"
    assert verdict(planted, "std over batches, vgg16") == "agrees"


def test_rank_intervals_shrink_and_stay_inside():
    few, many = rank_interval(0.6, 7), rank_interval(0.6, 70)
    assert -1 < few.low < many.low < 0.6 < many.high < few.high < 1
    assert math.isclose(math.atanh(few.high) - math.atanh(0.6), 1.96 * math.sqrt(1.06 / 4), rel_tol=1e-3)
    for end in (-1.0, 1.0):
        assert rank_interval(end, 8).low <= end <= rank_interval(end, 8).high
