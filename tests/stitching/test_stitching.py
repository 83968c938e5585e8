"""Stitching: cutting networks, stitches in closed form and learned, planted truth, what stays frozen, intervals.

The group action, the residual formula, the regressions and the bootstrap are written again here, without affscore's.
"""

import copy
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from torch import nn
from torch.nn import functional

from affscore_book.kit.networks import BasicBlock, activation_layers, load_network, myrtle, resnet20
from affscore_book.kit.training import image_data
from affscore_book.stitching.maps import (
    KINDS,
    Birkhoff,
    Full,
    Lasso,
    LowRank,
    Moments,
    Monomial,
    SoftSort,
    assignment,
    hungarian,
    least_squares,
    sinkhorn,
    soft_sort,
    stitch_layer,
)
from affscore_book.stitching.stitched import (
    State,
    Stitched,
    accuracy_of,
    inside_block,
    layer_moments,
    learn,
    penalty,
    reestimate,
    split,
)
from affscore_book.stitching.study import interval, load_study

BOOK = Path(__file__).parents[2] / "book"
NETWORKS = BOOK / "data" / "networks"

ARCHITECTURES = {
    "myrtle": lambda: myrtle(width=4, channels=1),
    "myrtle without norm": lambda: myrtle(width=4, channels=1, norm=False),
    "resnet20": lambda: resnet20(width=4, channels=1),
    "plain20": lambda: resnet20(width=4, channels=1, residual=False),
    "resnet20 without last relu": lambda: resnet20(width=4, channels=1, last_relu=False),
    "resnet20 with slope": lambda: resnet20(width=4, channels=1, slope=0.1),
}


def random_network(name, seed=0):
    """A network whose weights, gains, biases and running statistics are all random, so that nothing is 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    network = ARCHITECTURES[name]().eval()
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            scale = math.sqrt(2 / module.weight[0].numel())
            module.weight.data = scale * torch.randn(module.weight.shape, generator=generator)
            if module.bias is not None:
                module.bias.data = 0.1 * torch.randn(module.bias.shape, generator=generator)
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in ((module.weight.data, 0.5, 1.5), (module.bias.data, -0.3, 0.3),
                                      (module.running_mean, -0.1, 0.1), (module.running_var, 0.5, 1.5)):  # fmt: skip
                tensor.uniform_(low, high, generator=generator)
    return network


def images(n=24, seed=0):
    return torch.randn(n, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


# ------------------------------------------------------------------- the group action, written independently


def monomial(n, generator):
    """(permutation, scale): new channel i is scale[i] times old channel permutation[i]."""
    return torch.randperm(n, generator=generator), torch.rand(n, generator=generator) * 1.5 + 0.5


def acted_on(network, seed, ties=False):
    """The network with every hidden layer permuted and scaled; residual streams only with ``ties``.

    Returns the new network and {activation or shortcut: (permutation, scale)}.
    """
    generator = torch.Generator().manual_seed(seed)
    network = copy.deepcopy(network)
    elements = {}

    def outputs(convolution, norm, permutation, scale):
        convolution.weight.data = convolution.weight.data[permutation]
        if norm is None:
            convolution.weight.data *= scale[:, None, None, None]
            convolution.bias.data = convolution.bias.data[permutation] * scale
        else:
            for tensor in (norm.weight.data, norm.bias.data, norm.running_mean, norm.running_var):
                tensor.copy_(tensor[permutation])
            norm.weight.data *= scale
            norm.bias.data *= scale

    def inputs(layer, permutation, scale):
        shape = (1, -1) + (1,) * (layer.weight.ndim - 2)
        layer.weight.data = layer.weight.data[:, permutation] / scale.reshape(shape)

    def identity(n):
        return torch.arange(n), torch.ones(n)

    children = dict(network.named_children())
    blocks = [child for child in children.values() if isinstance(child, BasicBlock)]
    if not blocks:
        for i in range(1, 5):
            convolution, norm = children[f"conv{i}"], children.get(f"norm{i}")
            elements[f"relu{i}"] = monomial(convolution.out_channels, generator)
            outputs(convolution, norm, *elements[f"relu{i}"])
            inputs(children[f"conv{i + 1}"] if i < 4 else children["linear"], *elements[f"relu{i}"])
        return network, elements

    stream = monomial(children["conv"].out_channels, generator)
    if not ties and blocks[0].residual:
        stream = identity(children["conv"].out_channels)
    outputs(children["conv"], children["norm"], *stream)
    elements["relu"] = stream
    for i, block in enumerate(blocks, start=1):
        inner = monomial(block.a[0].out_channels, generator)
        inputs(block.a[0], *stream)
        outputs(block.a[0], block.a[1], *inner)
        inputs(block.b[0], *inner)
        n, new = block.b[0].out_channels, block.new_channels
        if not block.residual:
            stream = monomial(n, generator)
        elif new:  # the old channels stand in the middle, the new ones before and behind are free
            before = new // 2
            permutation, scale = identity(n)
            permutation[before : before + n - new] = before + stream[0]
            scale[before : before + n - new] = stream[1]
            if ties:
                free = torch.cat([torch.arange(before), torch.arange(before + n - new, n)])
                permutation[free] = free[torch.randperm(new, generator=generator)]
                scale[free] = torch.rand(new, generator=generator) + 0.5
            stream = permutation, scale
        outputs(block.b[0], block.b[1], *stream)
        elements |= {f"block{i}.relu1": inner, f"block{i}.relu2": stream, f"block{i}.shortcut": stream}
    inputs(children["linear"], *stream)
    return network, elements


def difference(one, other, x):
    """Largest difference of logits relative to their size."""
    with torch.no_grad():
        a, b = one(x), other(x)
    return float((a - b).abs().max() / a.abs().max())


# ------------------------------------------------------------------------------------------------- cutting


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_two_parts_of_a_network_are_the_network(name):
    network, x = random_network(name), images(4)
    with torch.no_grad():
        expected = network(x)
        for layer in activation_layers(network):
            bottom, top = split(network, layer)
            assert torch.equal(top(bottom(x)), expected), layer


def test_inside_a_block_the_shortcut_is_the_first_networks():
    """Equation E.54, written out."""
    one, other, x = random_network("resnet20", 1), random_network("resnet20", 2), images(4)
    stitch = stitch_layer("full", (8, 8), seed=3)
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


# --------------------------------------------------------------------------------------------- planted truth


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_closed_form_recovers_a_planted_element_of_the_group(name, seed):
    network = random_network(name, seed)
    other, elements = acted_on(network, seed)
    x, held_out = images(16, seed), images(8, seed + 100)
    assert difference(network, other, held_out) < 1e-4
    moments = layer_moments(network, other, x)
    for layer in activation_layers(network):
        stitch = stitch_layer("g_relu", moments[layer]).rounded()
        assert difference(network, Stitched(network, other, layer, stitch), held_out) < 1e-3, layer
        # Any other element does not do: the check would see a wrong permutation.
        wrong = Monomial(stitch.permutation.roll(1), stitch.scale)
        assert difference(network, Stitched(network, other, layer, wrong), held_out) > 1e-2, layer
        assert elements[layer][0].shape == stitch.permutation.shape


@pytest.mark.parametrize("name", ["resnet20", "resnet20 without last relu", "resnet20 with slope"])
def test_with_a_moved_residual_stream_stitching_fails_inside_blocks_unless_the_shortcut_is_stitched(name):
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
        ("myrtle_0", ["relu1", "relu2", "relu3", "relu4"]),
        ("myrtle_without_norm_0", ["relu3", "relu4"]),
        ("resnet20_0", ["block4.relu1", "block6.relu2", "block8.relu1", "block9.relu2"]),
        ("plain20_0", ["block4.relu1", "block6.relu2", "block9.relu2"]),
        ("resnet20_without_last_relu_0", ["block5.relu1", "block8.relu2"]),
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
        assert abs(penalty(right, right, accuracy_of(stitched.rounded(), states, test_labels))) <= 0.25, (
            layer
        )  # an image
        # The check sees a wrong permutation.
        found = stitched.stitch.rounded()
        stitched.stitch = Monomial(found.permutation.roll(1), found.scale)
        assert penalty(right, right, accuracy_of(stitched, states, test_labels)) > 3, layer


def test_from_noise_the_learned_stitch_finds_most_of_a_planted_permutation(fashion):
    x, labels, _, _ = fashion
    network, _ = load_network(NETWORKS / "myrtle_0.safetensors")
    other, elements = acted_on(network, 0)
    stitched = Stitched(network, other, "relu3", stitch_layer("g_relu", (64, 64)))
    losses = learn(stitched, stitched.states(x), labels, epochs=4, seed=0, learning_rate=0.1)
    assert losses[-1] < 0.6 * losses[0]
    found = (stitched.rounded().stitch.permutation == elements["relu3"][0]).double().mean()
    assert found > 0.3  # by chance 1 / 64


# -------------------------------------------------------------------------------------------------- frozen


def bits(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", KINDS)
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
    states = stitched.states(images(30))
    fresh = reestimate(stitched, states, batch_size=10)
    with torch.no_grad():
        features = other.conv2(stitched.stitch(states.value)).reshape(3, 10, 8, -1).transpose(1, 2).flatten(2)
    assert torch.allclose(fresh.top.after.norm2.running_mean, features.mean(2).mean(0), atol=1e-5)
    assert torch.allclose(fresh.top.after.norm2.running_var, features.var(2).mean(0), rtol=1e-4)
    assert not fresh.top.after.norm2.training
    # Without batch norm behind the cut there is nothing to measure.
    last = Stitched(one, other, "relu4", stitch_layer("full", (32, 32)))
    assert same(bits(last), bits(reestimate(last, last.states(images(4)))))


# ------------------------------------------------------------------------------------------- closed forms


def features(seed, n=40, inputs=5, outputs=6, side=3):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, inputs, side, side, generator=generator, dtype=torch.float64).exp()
    mix = torch.randn(outputs, inputs, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, outputs, side, side, generator=generator, dtype=torch.float64)
    return x, torch.relu(torch.einsum("oi,nihw->nohw", mix, x) + noise)


def rows(x):
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]).numpy()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rank", [None, 1, 2, 4])
def test_least_squares_of_any_rank_is_optimal(seed, rank):
    x, y = features(seed)
    a, b = rows(x), rows(y)
    found = least_squares(Moments.of(x, y), rank).numpy()
    full = np.linalg.lstsq(a, b, rcond=None)[0]
    if rank is None:
        assert np.allclose(found, full.T, atol=1e-9)
        return
    assert np.linalg.matrix_rank(found) == rank
    # Eckart and Young: the best approximation of the fitted values is their truncated singular value decomposition.
    u, s, v = np.linalg.svd(a @ full, full_matrices=False)
    assert np.allclose(a @ found.T, (u[:, :rank] * s[:rank]) @ v[:rank], atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_assignment_is_the_best_of_all_permutations_with_the_best_scales(seed):
    x, y = features(seed, outputs=5)
    permutation, scale = assignment(Moments.of(x, y))
    a, b = rows(x), rows(y)
    correlation = np.corrcoef(a.T, b.T)[5:, :5]
    best = max(itertools.permutations(range(5)), key=lambda p: sum(correlation[i, p[i]] for i in range(5)))
    assert permutation.tolist() == list(best)
    for i in range(5):
        expected = nnls(a[:, [best[i]]], b[:, i])[0][0]
        assert scale[i].item() == pytest.approx(max(expected, 1e-6), rel=1e-9)


def test_moments_of_parts_add_up_and_are_those_of_the_layers():
    one, other, x = random_network("resnet20", 0), random_network("resnet20", 1), images(10)
    one.train()
    found = layer_moments(one, other, x, skips=True, batch_size=3)
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


@pytest.mark.parametrize("kind", KINDS)
def test_stitches_start_at_the_closed_form(kind):
    x, y = features(0, inputs=6)
    moments = Moments.of(x, y)
    found = stitch_layer(kind, moments).rounded().matrix().double()
    if kind in ("g_relu", "soft_sort"):
        permutation, scale = assignment(moments)
        expected = torch.zeros(6, 6, dtype=torch.float64)
        expected[range(6), permutation] = scale
    else:
        expected = least_squares(moments, int(kind[5:]) if kind.startswith("rank") else None)
    assert torch.allclose(found, expected, atol=1e-4)


# ----------------------------------------------------------------------------------------------- stitches


@pytest.mark.parametrize("seed", range(4))
def test_sinkhorn_and_hungarian(seed):
    matrix = torch.rand(5, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.1
    even = sinkhorn(matrix, 500)
    assert torch.allclose(even.sum(0), torch.ones(5).double()) and torch.allclose(even.sum(1), torch.ones(5).double())
    assert bool((even >= 0).all())
    # Of the form D max(A, 0) E: on a doubly stochastic limit all 2 x 2 cross ratios are those of the start.
    start = matrix.clamp(min=1e-30)
    ratio = [m[0, 0] * m[1, 1] / (m[0, 1] * m[1, 0]) for m in (start, even)]
    if bool((matrix[:2, :2] > 0).all()):
        assert ratio[0].item() == pytest.approx(ratio[1].item())
    best = max(itertools.permutations(range(5)), key=lambda p: sum(matrix[i, p[i]] for i in range(5)))
    assert hungarian(matrix).tolist() == list(best)


def test_soft_sort_needs_the_absolute_value_that_the_paper_leaves_out():
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5])
    ordered = sorted(scores.tolist(), reverse=True)
    tau = 0.25
    logits = [[-abs(a - b) / tau for b in scores.tolist()] for a in ordered]
    expected = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in logits]
    assert torch.allclose(soft_sort(scores, tau), torch.tensor(expected))
    printed = torch.softmax(-(scores.sort(descending=True).values[:, None] - scores) / tau, dim=1)
    assert torch.allclose(printed, printed[:1].expand(4, 4))
    found = SoftSort(scores, torch.zeros(4)).rounded()
    assert found.permutation.tolist() == [2, 3, 0, 1]
    assert torch.allclose(SoftSort(scores, torch.zeros(4), 1e-3).matrix(), found.matrix())


@pytest.mark.parametrize("kind", ["g_relu", "soft_sort"])
def test_a_rounded_stitch_is_in_the_group(kind):
    stitched = Stitched(random_network("myrtle", 0), random_network("myrtle", 1), "relu2", stitch_layer(kind, (8, 8)))
    states = stitched.states(images(60))
    learn(stitched, states, torch.arange(60) % 10, epochs=3, seed=0, learning_rate=0.1, batch_size=10)
    matrix = stitched.rounded().stitch.matrix()
    assert bool((matrix >= 0).all()) and bool(((matrix > 0).sum(0) == 1).all() and ((matrix > 0).sum(1) == 1).all())
    assert stitched.rounded().stitch.sparsity(1e-7) == pytest.approx(1 - 1 / 8)
    x = torch.randn(2, 8, 3, 3)  # it intertwines ReLU with itself
    assert torch.allclose(torch.relu(stitched.rounded().stitch(x)), stitched.rounded().stitch(torch.relu(x)))


def test_birkhoff_stays_doubly_stochastic_and_its_scale_waits():
    stitched = Stitched(
        random_network("myrtle", 0), random_network("myrtle", 1), "relu1", stitch_layer("g_relu", (4, 4))
    )
    states, labels = stitched.states(images(40)), torch.arange(40) % 10
    seen = []
    project = stitched.stitch.project

    def watch(step):
        project(step)
        seen.append((stitched.stitch.transport.detach().clone(), stitched.stitch.scale.detach().clone()))

    stitched.stitch.project = watch
    learn(stitched, states, labels, epochs=4, seed=0, learning_rate=1e-3, batch_size=10)
    for transport, scale in seen:
        assert bool((transport >= 0).all() and (scale >= 0).all())
        assert torch.allclose(transport.sum(1), torch.ones(4), atol=1e-5)
        assert torch.allclose(transport.sum(0), torch.ones(4), atol=0.05)
    ones = [bool((scale == 1).all()) for _, scale in seen]
    assert ones == [True] * 8 + [False] * 8


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_the_norm_term_only_shrinks_the_learning_rate(alpha):
    """Its gradient is along P itself, and Sinkhorn iterations forget a factor of the whole matrix."""
    start = torch.rand(6, 6, generator=torch.Generator().manual_seed(0))
    slope = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    rate, results = 0.05, []
    norm = sinkhorn(start, 100).norm()
    for a, r in ((alpha, rate), (0.0, rate / (1 + rate * alpha / norm))):
        stitch = Birkhoff(start, torch.ones(6), alpha=a)
        ((stitch.transport * slope).sum() + stitch.penalty()).backward()
        with torch.no_grad():
            stitch.transport -= r * stitch.transport.grad
        stitch.project(r)
        results.append(stitch.transport.detach())
    assert torch.allclose(*results, atol=1e-6)
    assert not torch.allclose(results[0], sinkhorn(start, 100), atol=1e-3)


def test_a_larger_lasso_is_sparser():
    one, other = random_network("myrtle", 0), random_network("myrtle", 1)
    sparsities = []
    for strength in (0.0, 0.1):
        stitched = Stitched(one, other, "relu2", stitch_layer("lasso", (8, 8), strength=strength))
        states = stitched.states(images(60))
        learn(stitched, states, torch.arange(60) % 10, epochs=20, seed=0, batch_size=10, learning_rate=0.003)
        sparsities.append(stitched.stitch.sparsity())
    assert sparsities[1] > sparsities[0] + 0.1


@pytest.mark.parametrize("kind", [*KINDS, "rank 3"])
def test_a_stitch_acts_on_channels_alike_at_every_pixel(kind):
    stitch = stitch_layer(kind, (5, 5), seed=1)
    x = torch.randn(3, 5, 2, 4, generator=torch.Generator().manual_seed(0))
    expected = torch.einsum("oi,nihw->nohw", stitch.matrix(), x)
    assert torch.allclose(stitch(x), expected, atol=1e-5)
    assert "bias" not in dict(stitch.named_parameters())
    if kind.startswith("rank"):
        assert int(torch.linalg.matrix_rank(stitch.matrix())) == int(kind[5:])


# ------------------------------------------------------------------------------------ penalties, intervals


def test_penalty():
    assert penalty(0.9, 0.8, 0.85) == pytest.approx(0)
    assert penalty(0.9, 0.8, 0.75) == pytest.approx(10)


@pytest.mark.parametrize("seed", range(3))
def test_the_bootstrap_draws_networks(seed):
    """Against all 27 equally likely draws of three networks."""
    values = np.random.default_rng(seed).normal(size=(3, 3))
    means = []
    for draw in itertools.product(range(3), repeat=3):
        kept = [values[i, j] for i in draw for j in draw if i != j]
        if kept:
            means.append(np.mean(kept))
    found = interval(values, draws=20000, level=0.8)
    expected = np.quantile(means, [0.1, 0.9])
    off = values[~np.eye(3, dtype=bool)]
    assert found.mean == pytest.approx(off.mean())
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.05)
    assert interval(np.full((4, 4), 2.0)) == (2.0, 2.0, 2.0)


def test_the_interval_covers_the_truth_less_often_than_it_says_with_four_networks_and_as_often_with_many():
    """Each network has an effect of its own: pairs are not independent, and four networks are few."""
    generator = np.random.default_rng(0)
    share, naive = {}, {}
    for networks in (4, 30):
        covered, too_narrow = [], []
        for _ in range(200):
            effects = generator.normal(size=networks)
            values = effects[:, None] + effects + 0.1 * generator.normal(size=(networks, networks))
            found = interval(values, draws=300)
            covered.append(found.low <= 0 <= found.high)
            pairs = values[~np.eye(networks, dtype=bool)]
            half = 1.96 * pairs.std() / math.sqrt(len(pairs))  # as if the pairs were independent
            too_narrow.append(abs(pairs.mean()) <= half)
        share[networks], naive[networks] = np.mean(covered), np.mean(too_narrow)
    assert share[4] < share[30] and 0.88 < share[30] < 0.99
    assert share[4] > naive[4] + 0.05 and naive[30] < 0.6


# -------------------------------------------------------------------------------------------- stored results


def stored(**changes):
    """A file of book/data/stitching/make.py with two pairs of two networks."""

    def record(i, j, kept, **more):
        names = {"bottom": f"myrtle_{i}", "top": f"myrtle_{j}", "layer": "relu1", "channels": 4}
        return names | {"stitch": "full", "fit": "closed form", "kept": kept, "reestimated": kept + 0.1} | more

    content = {
        "settings": {"dataset": "none", "images": {"test": 10}},
        "made_with": {},
        "networks": {"myrtle_0": {"accuracy": 0.8}, "myrtle_1": {"accuracy": 0.9}},
        "tasks": {
            "closed: a": [record(0, 1, 0.75), record(0, 1, 0.35, stitch="g_relu")],
            "closed: b": [record(1, 0, 0.65), record(1, 0, 0.7, stitch="g_relu")],
            "alpha: a": [record(0, 1, 0.1, stitch="g_relu", alpha=1.0)],
            "signature: a": [{"network": "myrtle_1", "layer": "relu1", "scores": [0.5, 0.75]}],
        },
    }
    return json.dumps(content | changes)


def test_the_stored_results_are_read_as_penalties(tmp_path):
    file = tmp_path / "stitching.json"
    file.write_text(stored(), encoding="utf-8")
    study = load_study(file)
    kept = study.table("myrtle", "relu1", "full", norm="kept")
    assert np.isnan(kept.diagonal()).all()
    assert kept[0, 1] == pytest.approx(10) and kept[1, 0] == pytest.approx(20)
    assert study.penalty("myrtle", "relu1", "full").mean == pytest.approx(5)
    assert study.table("myrtle", "relu1", "g_relu", alpha=1.0)[0, 1] == pytest.approx(65)
    assert study.table("myrtle", "relu1", "g_relu")[0, 1] == pytest.approx(40)  # not the one with an alpha
    assert study.share_below("myrtle", "full", "g_relu") == 0.5
    assert study.pairs() == {"myrtle, alpha": 1, "myrtle, closed": 2}
    assert study.mean_penalty("myrtle", ["relu1"], "full") == pytest.approx(5)
    assert study.layer_scores("myrtle")[1].tolist() == [0.625] and np.isnan(study.layer_scores("myrtle")[0, 0])
    with pytest.raises(ValueError, match="no record of resnet20"):
        study.table("resnet20", "relu1", "full")
    with pytest.raises(ValueError, match="norm is 'new'"):
        study.table("myrtle", "relu1", "full", norm="new")
    with pytest.raises(ValueError, match="no scores of resnet20"):
        study.layer_scores("resnet20")


@pytest.mark.parametrize("text", ["", "{}", stored()[:-9], "[1]", stored(networks={"myrtle_0": 3})])
def test_a_damaged_file_is_named(text, tmp_path):
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.json is not a complete file"):
        load_study(tmp_path / "x.json")


def test_the_rank_correlation_is_that_of_layers(tmp_path):
    """Three layers in which score and penalty rise together in every network, then with the scores turned round."""
    tasks = {}
    for i, j in itertools.permutations(range(3), 2):
        names = {"bottom": f"plain_{i}", "top": f"plain_{j}", "stitch": "g_relu", "fit": "closed form"}
        values = [{"layer": f"relu{k}", "kept": 0.0, "reestimated": 0.8 - 0.1 * k - 0.01 * i} for k in range(3)]
        tasks[f"closed: {i} {j}"] = [names | value for value in values]
    for turn, expected in ((1, 1.0), (-1, -1.0)):
        for i in range(3):
            scores = [0.1 * k for k in range(3)][::turn]
            named = [{"network": f"plain_{i}", "layer": f"relu{k}", "scores": [s]} for k, s in enumerate(scores)]
            tasks[f"signature: {i}"] = named
        networks = {f"plain_{i}": {"accuracy": 0.9} for i in range(3)}
        (tmp_path / "x.json").write_text(stored(tasks=tasks, networks=networks), encoding="utf-8")
        found = load_study(tmp_path / "x.json").rank_correlation("plain", draws=50)
        assert found == pytest.approx((expected, expected, expected))


def test_the_books_results_are_of_the_committed_networks():
    """Every record has accuracies of whole images, and its networks are there with the accuracy on all images."""
    study = load_study(BOOK / "data" / "stitching" / "study.json")
    count = study.settings["images"]["test"]
    for record in study.records:
        for norm in ("kept", "reestimated"):
            assert 0 <= record[norm] <= 1 and record[norm] * count == pytest.approx(round(record[norm] * count))
        assert (NETWORKS / f"{record['bottom']}.safetensors").exists()
    content = json.loads((BOOK / "data" / "stitching" / "study.json").read_text())
    for name, about in content["networks"].items():
        assert about["accuracy_all_test"] == load_network(NETWORKS / f"{name}.safetensors")[1]["accuracy"]
        assert abs(about["accuracy"] - about["accuracy_all_test"]) < 4 * 0.5 / math.sqrt(count)


# -------------------------------------------------------------------------------------------------- errors


def error_cases():
    network = random_network("myrtle")
    wider = myrtle(width=8, channels=1).eval()
    residual, plain = random_network("resnet20"), random_network("plain20")
    x = torch.ones(2, 3, 4, 4)
    nan = x.clone()
    nan[0, 0, 0, 0] = math.nan
    stitched = Stitched(network, network, "relu1", Full(torch.eye(4)))
    states, labels = State(torch.ones(3, 4, 32, 32)), torch.zeros(2, dtype=torch.int64)
    eye = torch.eye(3)
    return {
        "unknown layer": (lambda: split(network, "relu9"), "layer is 'relu9'.*relu1, relu2, relu3, relu4"),
        "unknown layers": (lambda: layer_moments(network, network, images(2), ["norm1"]), "'norm1'.*relu1"),
        "identity between unequal widths": (lambda: Stitched(network, wider, "relu1"), "relu1.* 4 .*8"),
        "stitch of another size": (lambda: Stitched(network, wider, "relu1", Full(torch.eye(4))), "4 channels to 4"),
        "sides": (lambda: Stitched(network, residual, "relu", Full(eye)), "layer is 'relu'"),
        "square": (lambda: stitch_layer("g_relu", (4, 8)), "square.*4 and 8 channels"),
        "square soft sort": (lambda: stitch_layer("soft_sort", (4, 8)), "square.*4 and 8 channels"),
        "square birkhoff": (lambda: Birkhoff(torch.ones(2, 3), torch.ones(2)), r"transport has shape \(2, 3\)"),
        "one shortcut": (lambda: Stitched(residual, plain, "block1.relu1", Full(torch.eye(4))), "shortcut"),
        "no shortcut": (lambda: Stitched(network, network, "relu1", Full(torch.eye(4)), Full(torch.eye(4))), "skip_"),
        "unknown kind": (lambda: stitch_layer("ful", (3, 3)), "kind is 'ful'.*'full'"),
        "rank 0": (lambda: stitch_layer("rank 0", (3, 3)), "rank should be between 1 and 3"),
        "rank 4 of 3": (lambda: stitch_layer("rank 4", (3, 3)), "rank should be between 1 and 3"),
        "least squares rank": (lambda: least_squares(Moments.of(x, x), 9), "rank is 9"),
        "channels of x": (lambda: Full(eye)(torch.ones(1, 4, 2, 2)), r"x has shape \(1, 4, 2, 2\).*\(n, 3, H, W\)"),
        "flat x": (lambda: Full(eye)(torch.ones(1, 3)), r"x has shape \(1, 3\)"),
        "NaN": (lambda: Moments.of(x, nan), "y holds values that are NaN"),
        "moments' shapes": (lambda: Moments.of(x, torch.ones(3, 3, 4, 4)), r"\(2, 3, 4, 4\) and y \(3, 3, 4, 4\)"),
        "sum of moments": (lambda: Moments.of(x, x) + Moments.of(x, torch.ones(2, 5, 4, 4)), "cannot be added"),
        "NaN weight": (lambda: Full(eye * math.nan), "weight has shape .* finite"),
        "low rank": (lambda: LowRank(torch.ones(3, 2), torch.ones(3, 3)), "left has shape .* right"),
        "no permutation": (lambda: Monomial(torch.tensor([0, 0]), torch.ones(2)), "permutation is"),
        "scale 0": (lambda: Monomial(torch.tensor([0, 1]), torch.tensor([1.0, 0.0])), "positive"),
        "strength": (lambda: Lasso(eye, -1), "strength is -1"),
        "head start": (lambda: Birkhoff(eye, torch.ones(3), head_start=2), "head_start 2"),
        "temperature": (lambda: SoftSort(torch.ones(3), torch.ones(3), -1), "temperature is -1"),
        "counts": (lambda: learn(stitched, states, labels, epochs=1, seed=0), "states holds 3 images and labels 2"),
        "counts to evaluate": (lambda: accuracy_of(stitched, states, labels), "states holds 3 images and labels 2"),
        "diverges": (
            lambda: learn(copy.deepcopy(stitched), State(states.value[:2] * math.inf), labels, epochs=1, seed=0),
            "loss of epoch 1 is not finite",
        ),
        "accuracy in percent": (lambda: penalty(0.9, 91.3, 0.8), "top is 91.3"),
        "not square": (lambda: interval([[1.0, 2.0]]), r"\(1, 2\)"),
        "no pair": (lambda: interval([[1.0]]), "no finite entry"),
    }


@pytest.mark.parametrize("case", error_cases())
def test_errors_name_what_is_wrong(case):
    call, message = error_cases()[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_fixed_stitch_cannot_learn_and_a_foreign_network_cannot_be_cut():
    network = random_network("myrtle")
    fixed = Stitched(network, network, "relu1", Monomial(torch.arange(4), torch.ones(4)))
    with pytest.raises(ValueError, match=r"Monomial\(4 -> 4\) has nothing to learn"):
        learn(fixed, fixed.states(images(2)), torch.zeros(2, dtype=torch.int64), epochs=1, seed=0)
    with pytest.raises(TypeError, match="network is a Linear"):
        split(nn.Linear(2, 2), "relu1")
