"""The chapter's rules can say no: each is shown failing on planted numbers."""

from pathlib import Path

import numpy as np
import pytest
from made_signatures import made

from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures import claims as module
from affscore_study.imagenet_signatures.claims import (
    deeper_with_norm,
    measure_claims,
    own_claims,
    pool_claims,
    skip_claims,
    start_claims,
)

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def verdicts(rows):
    return [claim.verdict for claim in rows]


def family(**medians):
    return {name: made([value] * 3) for name, value in medians.items()}


@pytest.mark.parametrize(("vits", "others", "said"), [
    ((0.50, 0.51), {}, ["there before training"] * 2),
    ((0.90, 0.91), {}, ["not there before training"] * 2),
    ((0.40, 0.90), {}, ["undecided"] * 2),
    ((0.50, 0.51), {"swin_t": 0.4, "swin_s": 0.41}, ["not there before training", "there before training"]),
    ((0.69, 0.6901), {"vgg13": 0.7001}, ["not there before training"] * 2),  # less than .02 is no difference
])  # fmt: skip
def test_the_lowest_family_is_judged_with_its_interval(vits, others, said):
    """Below all families, and below those of convnets."""
    nets = family(**{"vit_b_16": vits[0], "vit_b_32": vits[1], "vgg11": 0.7, "vgg13": 0.71} | others)
    assert verdicts(pool_claims({"trailing": nets})) == said


def test_skips_can_fail_their_rule(block_network):
    with_skips = {i: block_network([0.5, *[0.6, 0.95 + 0.001 * i] * 8]) for i in range(3)}
    without = {i: block_network([0.5, *[0.70 + 0.001 * i, 0.69] * 8]) for i in range(3)}
    assert verdicts(skip_claims(with_skips)) == ["agrees", "not run here"]
    assert verdicts(skip_claims(without)) == ["disagrees", "not run here"]
    hardly = {i: block_network([0.5, *[0.70, 0.71 + 0.0001 * i] * 8]) for i in range(3)}
    assert verdicts(skip_claims(hardly))[0] == "disagrees", "less than .02 is no difference"


@pytest.mark.parametrize(("strength", "verdict"), [(0.2, "agrees"), (-0.9, "disagrees"), (0.5, "undecided")])
def test_a_strong_measure_of_either_sign_is_found(strength, verdict):
    models = ["efficientnet_lite0", "myrtle, seed 0", "resnet20, seed 0", "plain20, seed 0"]
    columns = {name: [0.0, 0.01, 0.0, -0.01] for name in ("CKA", "sparsity", "entropy", "R2 held out")}
    norm = [strength + step for step in (-0.01, 0.0, 0.0, 0.01)]
    (claim,) = measure_claims(Table({"model": models} | columns | {"norm": norm}))
    assert claim.verdict == verdict and "norm" in claim.what


def draws(*scores, few=None):
    """Draws of the weights of one network, each with its scores with all channels and with few."""
    few = scores if few is None else few
    return [{"spatial": np.array(all_), "spatial50": np.array(some)} for all_, some in zip(scores, few, strict=True)]


RISING = [np.linspace(0.7, 0.99 - 0.001 * i, 15)[np.r_[0:10, 10 + i, 10:15]] for i in range(3)]
FALLING = [row[::-1] - 0.001 * i for i, row in enumerate(RISING)]


def test_start_of_vgg16_may_disagree_or_depend_on_channels():
    """The claim on the start of VGG-16 can disagree, and the number of channels can decide it."""
    assert verdicts(start_claims(draws(*RISING))) == ["agrees"] * 4
    assert verdicts(start_claims(draws(*FALLING))) == ["disagrees"] * 4
    assert verdicts(start_claims(draws(*RISING, few=FALLING))) == ["depends on the number of channels"] * 4
    assert verdicts(start_claims(draws(*[RISING[0]] * 3))) == ["not shown"] * 4  # equal draws tell nothing


def test_our_own_hypotheses_can_fail(monkeypatch, block_network):
    start = [0.5, 0.6, 0.9, 0.7, 0.95, 0.65]
    rng = np.random.default_rng(0)

    def stored(folder, name, weights):
        like = {"resnet20": 0.0, "plain20": 0.4}[name] if weights == "fashion-mnist" else 0.01
        noise = np.abs(np.random.default_rng(len(name + weights)).normal(0, 1, (4, len(start)))) * like
        return {i: block_network(np.add(start, noise[i]) - 2) for i in range(4)}

    monkeypatch.setattr(module, "seeds", stored)

    def said(wider):
        """Of the starts of ResNet20, of torchvision's, of what training adds, and of the shares."""
        networks = {"resnet18": block_network(start), "resnet34": block_network(np.multiply(start, 1.01))}
        lower = np.subtract(start, 0.2)  # what training adds may not lead above 1
        before = {i: block_network(lower + 1e-3 * rng.normal(size=len(start))) for i in range(4)}
        ends = [0.0, *[0.0, wider] * 3][: len(start)]
        after = {i: block_network(lower + ends + 1e-3 * rng.normal(size=len(start))) for i in range(4)}
        return verdicts(own_claims(FOLDER, networks, {"ResNet20": {"batch norm set": (before, after)}}))

    assert said(0.1) == ["held", "held", "held", "held"]
    assert said(0.01)[2] == "failed", "less than .02 is no difference"
    start[:] = [0.5, 0.9, 0.6, 0.95, 0.7, 0.9]
    assert said(0.1)[:3] == ["failed", "failed", "held"]


def test_deeper_networks_are_compared_by_architecture(monkeypatch):
    """Deeper networks may be more or less linear than one with normalisation, and each architecture counts once.

    Three architectures that part do not decide, however many seeds agree in each.
    """
    monkeypatch.setattr(module, "statistic", lambda number, network: network)  # a network is its mean score here

    def claim(levels):
        names = (*module.DEEPER, module.EARLY)
        return deeper_with_norm({  # no two are the same
            name: {seed: levels.get(name, 0.6) + 1e-3 * place * (1 + seed) for seed in range(3)}
            for place, name in enumerate(names)
        })  # fmt: skip

    for step, said in ((0.2, "agrees"), (0.01, "disagrees"), (-0.2, "disagrees")):
        assert claim(dict.fromkeys(module.DEEPER, 0.6 + step)).verdict == said
    parted = claim({"densenet40": 0.7, "efficientnet": 0.8})
    assert parted.ours == pytest.approx(0.1, abs=0.01) and parted.verdict == "undecided"
