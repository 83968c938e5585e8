"""The paper's sentences on its own networks: "not run here" without results, and with them each rule can say no."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
from torchvision.models import get_model_weights

from affscore.zoo.names import WEIGHTS
from affscore_book.imagenet_signatures.calls import places
from affscore_book.imagenet_signatures.finding import before_training
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.architectures import facts
from affscore_study.imagenet_signatures.full_results import Results
from affscore_study.imagenet_signatures.paper import (
    FAMILY_MEASURES,
    SLIDE_STDS,
)
from affscore_study.imagenet_signatures.sentences import paper_claims, rank_interval, sentence_claims

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
#: Rows that no run on these pictures answers; and R2 within a batch, 1 where there are more channels than images.
NEVER = 6 + 1


def published(start, name, pool):
    weights = get_model_weights(name)[WEIGHTS.get(name, "IMAGENET1K_V1")]
    about = {"model": name, "weights": {"weights": str(weights)}}
    companions = {measure: rows[:1] for measure, rows in start.companions.items()}
    axes = {} if pool == "spatial" else {"channel_axis": -1}
    calls = [dataclasses.replace(call, **axes) for call in start.calls]
    return dataclasses.replace(start, pool=pool, calls=calls, provenance=about, companions=companions,
                               scores=start.scores[:1], batch_sizes=[512])  # fmt: skip


@pytest.fixture(scope="module")
def results():
    """All networks, with the scores that they have before training."""
    pools = {
        pool: {name: published(each, name, pool) for name, each in before_training(FOLDER, pool=pool).items()}
        for pool in ("spatial", "trailing")
    }
    assert list(pools["spatial"]) == list(PAPER)
    return Results("imagenette", pools, dict.fromkeys(PAPER, 0.01), "a GPU")


def changed(results, scores, pools):
    """Other mean scores by some of the pools: ``scores`` takes the name of a network and its scores."""
    signatures = dict(results.signatures)
    for pool in pools:
        signatures[pool] = {
            # No two of a family are the same: a variance of 0 has no interval.
            name: dataclasses.replace(each, scores=scores(name, each.scores) + 1e-4 * (PAPER.index(name) ** 2 % 7))
            for name, each in signatures[pool].items()
        }
    return results._replace(signatures=signatures)


def verdict(results, rule, member=""):
    """Of a rule of one row, or of the row of a family that names its member."""
    (claim,) = [claim for claim in sentence_claims(results, rule) if member in claim.what]
    return claim.verdict


def test_rows_without_results_name_what_they_need():
    """Without results every row says what it needs and where it stands in its source."""
    rows = paper_claims(None)
    assert {claim.verdict for claim in rows} == {"not run here"} and len({claim.what for claim in rows}) == len(rows)
    assert all(claim.needs and re.match(r"(CVPR 2025|slides), ", claim.source) for claim in rows)
    for quoted in (FAMILY_MEASURES, SLIDE_STDS):
        assert all(any(name in claim.what for claim in rows) for name in quoted)
    assert len(rows) > 30, "each sentence is a row at its own place, so that what is not run is counted"


def test_with_results_the_rows_fill_and_no_row_comes_or_goes(results):
    claims = paper_claims(results)
    assert [claim.source for claim in claims] == [claim.source for claim in paper_claims(None)]
    assert sum(claim.verdict == "not run here" for claim in claims) == NEVER
    assert all("imagenette" in claim.what for claim in claims if claim.ours is not None)


def test_with_some_networks_the_rows_that_need_others_name_one(results):
    few = {pool: {name: networks[name] for name in PAPER if "resnet" in name}
           for pool, networks in results.signatures.items()}  # fmt: skip
    rows = paper_claims(results._replace(signatures=few))
    filled = [claim for claim in rows if claim.ours is not None]
    assert [claim.what.split(":")[0].split(",")[0] for claim in filled] == [
        "rank correlation of depth and score after the additions",
        "rank correlation of depth and how far that is above the score inside", "std over batches", "ResNets",
    ]  # fmt: skip
    assert any(claim.needs.startswith("alexnet and 30 more, pretrained: ") for claim in rows)


def flat(level):
    """Every network's scores at a level of its own, with a little spread."""
    return lambda name, scores: level(name) + 0.01 * np.linspace(-1, 1, scores.shape[1])[None]


def spread(wide):
    """Plain stacks are three times as wide as the others, or the others as they."""

    def scores(name, old):
        half = 0.3 if name.startswith(("alexnet", "vgg")) == wide else 0.1
        return 0.5 + half * np.linspace(-1, 1, old.shape[1])[None]

    return scores


def year(name):
    return 0.05 * (facts(name).year - 2012)


def depth(name):
    return 1e-3 * facts(name).depth


def test_every_rule_can_agree_and_disagree(results):
    starts = results.signatures["spatial"]

    def apart(sign):
        """Residual networks whose scores after the additions are .9, and inside lower with depth, or higher."""

        def scores(name, old):
            if "resnet" not in name:
                return old
            return np.where(places(starts[name])["last in its block"], 0.9, 0.5 - sign * depth(name))[None]

        return scores

    def accuracy(name):
        return facts(starts[name]).accuracy / 100

    vits = [flat(lambda name, level=level: level if "vit" in name else 0.6) for level in (0.2, 0.9)]
    swins = [flat(lambda name, level=level: {"alexnet": 0.5, "swin_b": level}.get(name, 0.7)) for level in (0.5, 0.9)]
    equal = lambda name, scores: np.full_like(scores, 0.5)  # noqa: E731
    rules = {
        ("vit", "spatial"): vits,
        ("vit", "trailing"): vits,
        ("years", ""): (flat(year), flat(lambda name: 0.9 - year(name))),
        ("deeper", ""): (
            flat(lambda name: 0.5 + depth(name)), flat(lambda name: 0.5 - depth(name))),
        ("distinct", ""): (apart(1), apart(-1)),
        ("medians", ""): (
            flat(lambda name: 0.5), flat(lambda name: 0.5 + 10 * depth(name) * ("vgg" in name))),
        ("spread", ""): (spread(False), spread(True)),
        ("alexnet_and_swin", ""): swins,
        ("told_best", ""): (flat(accuracy), equal),
        ("vit_accuracy", ""): (flat(lambda name: 1 - accuracy(name)), flat(accuracy)),
    }  # fmt: skip
    for (rule, member), cases in rules.items():
        pools = [member] if member else list(results.signatures)
        found = [verdict(changed(results, scores, pools), rule, member) for scores in cases]
        assert found == ["agrees", "disagrees"], rule
    stds = results._replace(std=dict.fromkeys(PAPER, 0.01) | {"alexnet": 0.02})
    assert [verdict(stds, "std", name) for name in ("vgg16", "alexnet")] == ["agrees", "disagrees"]


def test_rank_intervals_shrink_and_stay_inside():
    few, many = rank_interval(0.6, 7), rank_interval(0.6, 70)
    assert -1 < few.low < many.low < 0.6 < many.high < few.high < 1
    assert math.isclose(math.atanh(few.high) - math.atanh(0.6), 1.96 * math.sqrt(1.06 / 4), rel_tol=1e-3)
    for end in (-1.0, 1.0):
        assert rank_interval(end, 8).low <= end <= rank_interval(end, 8).high
