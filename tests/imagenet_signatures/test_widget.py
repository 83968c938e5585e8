"""The switch between pools and the walk through blocks: numbers are the signatures', and JavaScript's are Python's."""

import json
import math
import re

import numpy as np
import pytest
from made_signatures import published, random_scores

from affscore_book.imagenet_signatures import widget as module
from affscore_book.imagenet_signatures.widget import BlockWalk, PoolSwitch, block_walk, pool_switch

NAMES = ["vgg11", "vgg13", "vgg16", "resnet18", "vit_b_16", "vit_b_32", "vit_l_16"]
STATES = [(pool, name) for pool in module.POOLS for name in ("", "vgg11", "vit_b_16", "stranger")]


@pytest.fixture(scope="module")
def signatures():
    """Seven networks by both pools: the pools differ in the ViTs, and one network has a dead call."""
    spatial, trailing = {}, {}
    for i, name in enumerate(NAMES):
        rows = random_scores(i, 2, 6 + i)
        if name == "vgg13":
            rows[:, 3] = math.nan
        spatial[name] = published(name, rows)
        trailing[name] = published(name, rows - 0.15 if "vit" in name else rows)
    return {"spatial": spatial, "trailing": trailing}


@pytest.fixture(scope="module")
def widget(signatures):
    return pool_switch(**signatures)


def again(widget, **changes):
    return PoolSwitch(**(widget.state() | changes))


def line_of(picture, look):
    """The drawn strokes of the first line with this look."""
    return re.search(rf'<path class="{look}" d="([^"]*)"', picture)[1]


def test_widget_scores_are_medians_by_pool(widget, signatures):
    """The scores are the medians of the signatures by the pool that is chosen."""
    for pool, networks in signatures.items():
        for name, signature in networks.items():
            shown = again(widget, pool=pool, selected=name)
            assert shown.score() == pytest.approx(np.nanmedian(signature.mean), abs=1e-4)
            assert f"{shown.score():.3f}" in shown.picture() and name in shown.picture()
    # Only what differs is stored twice, and moves.
    twice = [network["name"] for network in widget.models if network["trailing"] is not None]
    assert twice == [name for name in NAMES if "vit" in name]
    text = json.dumps(widget.state())
    assert "NaN" not in text and not re.search(r"\.\d{5}", text)
    trails = [line_of(again(widget, pool=pool).picture(), "image-line") for pool in module.POOLS]
    moves = [sum(start != end for start, end in re.findall(r"M([^ML]+)L([^ML]+)", trail)) for trail in trails]
    assert moves == [0, len(twice)]


def test_text_tells_what_each_pool_keeps(signatures):
    """The text says what each pool keeps and that nothing was trained."""
    tokens = {name: each for name, each in signatures["trailing"].items() if name == "vit_b_32"}
    call = tokens["vit_b_32"].calls[0]
    object.__setattr__(call, "shape", (50, 3072))
    object.__setattr__(call, "channel_axis", 2)
    shown = pool_switch(tokens, tokens)
    for pool, kept in (("spatial", 3072), ("trailing", 50)):
        text = again(shown, pool=pool).picture()
        assert "before training" in text and f"the {pool} pool makes {kept} numbers of 50 x 3072" in text
    assert shown.selected == "vit_b_32"
    dead = {"alexnet": published("alexnet", np.full((1, 3), math.nan))}
    assert math.isnan(pool_switch(dead, dead).score()) and "no network to show" in PoolSwitch().picture()


def test_javascript_agrees_with_python(widget, node):
    """JavaScript computes and chooses as Python does."""
    states = [again(widget, pool=pool, selected=name) for pool, name in STATES]
    found = node(
        widget._esm,
        "(m, all) => all.map(s => [m.evaluate(s).score, m.chosen(s).name])",
        [state.state() for state in states],
    )
    for state, (score, name) in zip(states, found, strict=True):
        assert score == pytest.approx(state.score(), abs=1e-12)
        assert name == module.chosen(state.models, state.selected)["name"]
    assert len({name for _, name in found}) == 2


def test_families_are_named_at_their_middle(widget, node):
    """A family is named at the middle of its networks, and the axis leaves room for the names."""
    assert node(widget._esm, "(m, models) => m.families(models)", widget.models) == [["VGG", 2.0], ["ViT", 6.0]]
    for room in (0, 2):
        low = node(widget._esm, f"(m, values) => m.floor([...values, NaN], {room})", [0.73, 0.4, 0.98])
        assert low == pytest.approx(0.4 - room / 10)


@pytest.fixture(scope="module")
def walk(block_network):
    """Seven blocks of three calls, before and after training."""
    each = [block_network(np.round(random_scores(seed, 1, 22)[0], 4), calls=3) for seed in (0, 1)]
    return block_walk(*each)


def walked(walk, **changes):
    return BlockWalk(**(walk.state() | changes))


def test_highest_blocks_are_counted_up_to_the_one_shown(node):
    """The blocks that are highest behind the addition are counted up to the one that is shown."""
    up, down = [0.5, 0.6, 0.9], [0.5, 0.95, 0.9]
    walk = BlockWalk(trained=[0.7, *up, *down, *up], start=[0.5] * 10)
    states = [*(walked(walk, block=block) for block in range(4)), walked(walk, block=3, weights="start")]
    found = node(walk._esm, "(m, all) => all.map(m.highest)", [state.state() for state in states])
    assert found == [0, 1, 1, 2, 0]  # at the start none is higher than the others


def test_javascript_walks_as_python_does(walk, node):
    states = [walked(walk, block=b, weights=w) for b in (0, 1, 4, 7, 9) for w in ("trained", "start")]
    found = node(
        walk._esm, "(m, all) => all.map(s => [m.evaluate(s).score, m.calls(s)])",
        [state.state() for state in states],
    )  # fmt: skip
    for state, each in zip(states, found, strict=True):
        assert each == [state.score(), state.calls()]
    for weights, scores in (("trained", walk.trained), ("start", walk.start)):  # the last call of each block
        assert [walked(walk, block=block, weights=weights).score() for block in range(8)] == scores[::3]


def test_still_picture_has_every_call_and_unequal_blocks_fail(walk, block_network):
    """The still picture has every call and the block, and blocks of another shape are refused."""
    picture = walked(walk, block=2).picture()
    strokes = re.findall(r'<path class="image-line inside" d="([^"]*)"', picture)  # a cross has two
    assert picture.count('class="input-dot"') == 7 and [line.count("M") / 2 for line in strokes] == [1 + 2 * 7, 2]
    assert "Block 2: inside" in picture and repr(walk) == "BlockWalk(7 blocks, block=0, weights='trained')"
    assert "no network to show" in BlockWalk().picture()
    two = block_network(np.linspace(0.5, 0.9, 7))
    with pytest.raises(ValueError, match="three in each block"):
        block_walk(two, two)
