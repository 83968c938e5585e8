"""The chapter's rules can say no: each is shown failing on planted numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_signatures import made

from affscore.suite.tables import Table
from affscore_book.imagenet_signatures import claims as module
from affscore_book.imagenet_signatures.claims import (
    measure_claims,
    own_claims,
    pool_claims,
    skip_claims,
    start_claims,
)
from affscore_book.imagenet_signatures.finding import before_training

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def verdicts(rows):
    return [claim.verdict for claim in rows]


def family(**medians):
    return {name: made([value] * 3) for name, value in medians.items()}


@pytest.mark.parametrize(
    ("vits", "verdict"),
    [((0.50, 0.51), "there before training"), ((0.90, 0.91), "not there before training"), ((0.4, 0.9), "undecided")],
)
def test_the_lowest_family_is_judged_with_its_interval(vits, verdict):
    nets = family(vit_b_16=vits[0], vit_b_32=vits[1], vgg11=0.7, vgg13=0.71, vgg16=0.72)
    (claim,) = pool_claims({"trailing": nets})
    assert claim.verdict == verdict and "trailing" in claim.what
    assert verdicts(pool_claims({"spatial": nets}, kind="source"))[0] in ("agrees", "disagrees", "undecided")


def test_skips_can_fail_their_rule(block_network):
    with_skips = {i: block_network([0.5, *[0.6, 0.95 + 0.001 * i] * 8]) for i in range(3)}
    without = {i: block_network([0.5, *[0.70 + 0.001 * i, 0.69] * 8]) for i in range(3)}
    assert verdicts(skip_claims(with_skips)) == ["agrees", "not run here"]
    assert verdicts(skip_claims(without)) == ["disagrees", "not run here"]


@pytest.mark.parametrize(("strength", "verdict"), [(0.2, "agrees"), (-0.9, "disagrees"), (0.5, "undecided")])
def test_a_strong_measure_of_either_sign_is_found(strength, verdict):
    models = ["efficientnet_lite0", "myrtle, seed 0", "resnet20, seed 0", "plain20, seed 0"]
    columns = {name: [0.0, 0.01, 0.0, -0.01] for name in ("CKA", "sparsity", "entropy", "R2 held out")}
    norm = [strength + step for step in (-0.01, 0.0, 0.0, 0.01)]
    (claim,) = measure_claims(Table({"model": models} | columns | {"norm": norm}))
    assert claim.verdict == verdict and "norm" in claim.what


def test_the_start_of_vgg16_can_disagree():
    assert verdicts(start_claims(made(np.linspace(0.7, 0.99, 15)))) == ["agrees", "agrees"]
    assert verdicts(start_claims(made(np.linspace(0.9, 0.5, 15)))) == ["disagrees", "disagrees"]


def test_every_row_says_that_its_rule_came_after_a_look():
    networks = before_training(FOLDER)
    rows = [*start_claims(networks["vgg16"]), *own_claims(FOLDER, networks), *pool_claims({"spatial": networks})]
    assert all(claim.seen for claim in rows)


def test_our_own_hypotheses_can_fail(monkeypatch, block_network):
    start = [0.5, 0.6, 0.9, 0.7, 0.95, 0.65]
    rng = np.random.default_rng(0)

    def stored(folder, name, weights):
        like = {"resnet20": 0.0, "plain20": 0.4}[name] if weights == "fashion-mnist" else 0.01
        noise = np.abs(rng.normal(0, 1, (4, len(start)))) * like
        return {i: block_network(np.add(start, noise[i]) - 2) for i in range(4)}

    networks = {"resnet18": block_network(start), "resnet34": block_network(np.add(start, 0.01))}
    monkeypatch.setattr(module, "seeds", stored)
    assert verdicts(own_claims(FOLDER, networks)) == ["held", "held", "held"]
    start[:] = [0.5, 0.9, 0.6, 0.95, 0.7, 0.9]
    networks = {"resnet18": block_network(start), "resnet34": block_network(np.add(start, 0.01))}
    assert verdicts(own_claims(FOLDER, networks))[:2] == ["failed", "failed"]
