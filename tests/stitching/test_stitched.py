"""Stitched networks: cut, joined by planted truth, frozen but for the stitch."""

import copy
import math
from pathlib import Path

import pytest
import torch
from planted_images import ARCHITECTURES, acted_on, difference, images, random_network
from torch.nn import functional

from affscore_book.kit.networks import activation_layers, load_network, myrtle
from affscore_book.kit.training import image_data
from affscore_book.stitching.moments import Moments
from affscore_book.stitching.study import inside_block, penalty
from affscore_study.stitching.learning import accuracy_of, learn, reestimate
from affscore_study.stitching.maps import STITCHES, Full, MonomialStitch, stitch_layer
from affscore_study.stitching.stitched import State, Stitched, layer_moments, layer_states, split

NETWORKS = Path(__file__).parents[2] / "book" / "data" / "networks"
# One with blocks and one without every time; the variants of the first weekly.
KINDS = [n if n in ("myrtle", "resnet20") else pytest.param(n, marks=pytest.mark.weekly) for n in ARCHITECTURES]


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_split_network_is_whole_and_one_pass_has_all_cuts(name):
    """The two parts of a network compose to it, and one pass gives the state at every cut."""
    network, x = random_network(name), images(4)
    expected = network(x)
    for layer, found in layer_states(network, activation_layers(network), x).items():
        bottom, top = split(network, layer)
        state = bottom(x)
        assert torch.equal(top(state), expected), layer
        assert torch.equal(found.value, state.value) and (found.skip is None) == (state.skip is None), layer
        assert found.skip is None or torch.equal(found.skip, state.skip), layer


def test_inside_a_block_the_shortcut_is_the_first_networks():
    """Equation E.54, written out."""
    one, other, x = random_network("resnet20", 1), random_network("resnet20", 2), images(4)
    stitch = stitch_layer("full", (8, 8))
    with torch.no_grad():
        h = one.relu(one.norm(one.conv(x)))
        for i in (1, 2, 3):
            h = getattr(one, f"block{i}")(h)
        block = one.block4
        kept = functional.pad(h[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2))
        inner = torch.einsum("oi,nihw->nohw", stitch.weight, block.relu1(block.a(h)))
        h = torch.relu(other.block4.b(inner) + kept)
        for i in range(5, 10):
            h = getattr(other, f"block{i}")(h)
        expected = other.linear(other.flatten(other.pool(h)))
        found = Stitched(one, other, "block4.relu1", stitch)(x)
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_the_closed_form_recovers_a_planted_element_of_the_group(name):
    network = random_network(name)
    other, _ = acted_on(network, 0)
    x, held_out = images(16), images(8, 100)
    assert difference(network, other, held_out) < 1e-4
    moments = layer_moments(network, other, x)
    for layer in activation_layers(network):
        stitch = stitch_layer("g_relu", moments[layer]).rounded()
        assert difference(network, Stitched(network, other, layer, stitch), held_out) < 1e-3, layer
    # Any other element does not do: the check would see a wrong permutation.
    wrong = MonomialStitch(stitch.permutation.roll(1), stitch.scale)
    assert difference(network, Stitched(network, other, layer, wrong), held_out) > 1e-2


@pytest.mark.parametrize("name", ["resnet20", pytest.param("resnet20 with slope", marks=pytest.mark.weekly)])
def test_moved_residual_stream_needs_the_shortcut_stitched(name):
    """With a moved residual stream, stitching fails inside blocks unless the shortcut is stitched too."""
    network = random_network(name)
    other, _ = acted_on(network, 5, ties=True)
    x, held_out = images(16), images(8, 1)
    assert difference(network, other, held_out) < 1e-4
    moments = layer_moments(network, other, x, skips=True)
    for layer in activation_layers(network):
        stitch = stitch_layer("g_relu", moments[layer]).rounded()
        error = difference(network, Stitched(network, other, layer, stitch), held_out)
        if not inside_block(layer):
            assert error < 1e-3, layer
            continue
        assert error > 1e-2, layer
        skip = stitch_layer("g_relu", moments[layer.removesuffix("relu1") + "shortcut"]).rounded()
        assert difference(network, Stitched(network, other, layer, stitch, skip), held_out) < 1e-3, layer


def test_dead_and_duplicated_channels_may_be_swapped():
    network = random_network("myrtle")
    with torch.no_grad():
        network.norm3.weight[2], network.norm3.bias[2] = 0, -1  # dead: ReLU gives 0 everywhere
        network.norm3.weight[5], network.norm3.bias[5] = 0, -1
        network.conv3.weight[7] = network.conv3.weight[6]  # twice the same channel
        for tensor in (network.norm3.weight, network.norm3.bias, network.norm3.running_mean, network.norm3.running_var):
            tensor[7] = tensor[6]
    other, _ = acted_on(network, 0)
    moments = layer_moments(network, other, images(16), ["relu3"])["relu3"]
    assert int((moments.correlation().abs().sum(1) == 0).sum()) == 2
    stitch = stitch_layer("g_relu", moments).rounded()
    assert bool((stitch.scale > 0).all())
    assert difference(network, Stitched(network, other, "relu3", stitch), images(8, 1)) < 1e-3


@pytest.fixture(scope="module")
def fashion():
    """1,000 training and 400 test images, standardised, with labels."""
    data = image_data("fashion-mnist", train=1000)
    test = data.test.take(slice(0, 400))
    return data.standardise(data.train.images), data.train.labels, data.standardise(test.images), test.labels


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("myrtle_0", ["relu2", "relu4"]),
        pytest.param("resnet20_0", ["block8.relu1", "block9.relu2"], marks=pytest.mark.weekly),
    ],
)
def test_the_learned_stitch_has_no_penalty_on_planted_truth(name, layers, fashion):
    x, labels, test, test_labels = fashion
    network, _ = load_network(NETWORKS / f"{name}.safetensors")
    other, _ = acted_on(network, 1)
    moments = layer_moments(network, other, x[:100], layers)
    for layer in layers:
        stitched = Stitched(network, other, layer, stitch_layer("g_relu", moments[layer], head_start=0))
        learn(stitched, stitched.states(x[:200]), labels[:200], epochs=1, seed=0, learning_rate=1e-3)
        states = stitched.states(test)
        identity = Stitched(network, network, layer)
        right = accuracy_of(identity, states, test_labels)
        assert right > 0.8
        stitched.stitch = found = stitched.stitch.rounded()
        assert abs(penalty(right, right, accuracy_of(stitched, states, test_labels))) <= 0.25, layer  # an image
        # The check sees a wrong permutation.
        stitched.stitch = MonomialStitch(found.permutation.roll(1), found.scale)
        assert penalty(right, right, accuracy_of(stitched, states, test_labels)) > 3, layer


def bits(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", STITCHES)
def test_only_the_stitch_learns(kind):
    one, other = random_network("resnet20", 0), random_network("resnet20", 1)
    one.train()  # what the caller's networks are set to does not matter, and stays
    before = [bits(one), bits(other)]
    stitched = Stitched(one, other, "block5.relu2", stitch_layer(kind, (8, 8)))
    inner, stitch = bits(stitched.top) | bits(stitched.bottom), bits(stitched.stitch)
    stitched.train()
    x, labels = images(40), torch.arange(40) % 10
    states = stitched.states(x)
    learn(stitched, states, labels, epochs=1, seed=0, batch_size=10)
    fresh = reestimate(stitched, states)
    accuracy_of(stitched, states, labels)
    assert same(inner, bits(stitched.top) | bits(stitched.bottom))
    assert same(before[0], bits(one)) and same(before[1], bits(other))
    assert one.training and not other.training and not stitched.top.training and not stitched.bottom.training
    assert not same(stitch, bits(stitched.stitch))
    assert not same(bits(stitched.top), bits(fresh.top))  # and the copy did change
    assert {name for name, p in stitched.named_parameters() if p.requires_grad} <= {f"stitch.{name}" for name in stitch}


def test_batch_norm_is_reestimated_from_the_stitched_features():
    one, other = random_network("myrtle", 0), random_network("myrtle", 1)
    stitched = Stitched(one, other, "relu1", stitch_layer("full", (4, 4)))
    states = stitched.states(images(300))
    fresh = reestimate(stitched, states)
    with torch.no_grad():
        features = other.conv2(stitched.stitch(states.value)).reshape(3, 100, 8, -1).transpose(1, 2).flatten(2)
    assert torch.allclose(fresh.top.after.norm2.running_mean, features.mean(2).mean(0), atol=1e-5)
    assert torch.allclose(fresh.top.after.norm2.running_var, features.var(2).mean(0), rtol=1e-4)
    assert not fresh.top.after.norm2.training
    # Without batch norm behind the cut there is nothing to measure.
    last = Stitched(one, other, "relu4", stitch_layer("full", (32, 32)))
    assert same(bits(last), bits(reestimate(last, last.states(images(4)))))


def test_moments_of_parts_add_up_and_are_those_of_the_layers():
    one, other, x = random_network("resnet20", 0), random_network("resnet20", 1), images(260)
    one.train()
    found = layer_moments(one, other, x, skips=True)
    assert one.training and one.block1.training and not other.training
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in one.modules())
    assert set(found) == set(activation_layers(one)) | {f"block{i}.shortcut" for i in range(1, 10)}
    for layer in ("relu", "block4.relu1", "block9.relu2"):
        states = [split(network, layer)[0](x) for network in (one, other)]
        whole = Moments.of(*(state.value for state in states))
        assert torch.allclose(found[layer].yx, whole.yx, rtol=1e-5) and found[layer].count == whole.count
        assert torch.allclose(found[layer].correlation(), whole.correlation(), atol=1e-5)
        if inside_block(layer):
            whole = Moments.of(*(state.skip for state in states))
            assert torch.allclose(found["block4.shortcut"].xx, whole.xx, rtol=1e-5)


def test_networks_that_do_not_fit_are_refused():
    network, wider = random_network("myrtle"), myrtle(width=8, channels=1).eval()
    residual, plain = random_network("resnet20"), random_network("plain20")
    eye = Full(torch.eye(4))
    stitched = Stitched(network, network, "relu1", Full(torch.eye(4)))
    fixed = Stitched(network, network, "relu1", MonomialStitch(torch.arange(4), torch.ones(4)))
    states, labels = State(torch.ones(3, 4, 32, 32)), torch.zeros(2, dtype=torch.int64)
    infinite = State(states.value[:2] * math.inf)
    cases = [
        (lambda: split(network, "relu9"), "layer is 'relu9'.*relu1, relu2, relu3, relu4"),
        (lambda: layer_moments(network, network, images(2), ["relu9"]), "'relu9'.*relu1"),
        (lambda: Stitched(network, wider, "relu1"), "relu1.* 4 .*8"),
        (lambda: Stitched(network, wider, "relu1", eye), "4 channels to 4"),
        (lambda: Stitched(network, residual, "relu", eye), "layer is 'relu'"),
        (lambda: Stitched(residual, plain, "block1.relu1", eye), "shortcut"),
        (lambda: Stitched(network, network, "relu1", eye, eye), "skip_"),
        (lambda: learn(stitched, states, labels, epochs=1, seed=0), "states holds 3 images and labels 2"),
        (lambda: accuracy_of(stitched, states, labels), "states holds 3 images and labels 2"),
        (lambda: learn(copy.deepcopy(stitched), infinite, labels, epochs=1, seed=0), "loss of epoch 1 is not finite"),
        (lambda: learn(fixed, states, labels, epochs=1, seed=0), r"Monomial\(4 -> 4\) has nothing to learn"),
        (lambda: penalty(0.9, 91.3, 0.8), "top is 91.3"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
