"""Path lengths: every path of random networks counted one by one, closed forms, real networks, and what is refused."""

import itertools
import math
import operator
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
import torchvision
from grids import each
from torch import nn
from torch.nn import functional as F

from affscore_book.kit.networks import BasicBlock, mlp, resnet
from affscore_book.linearized.paths import path_lengths


class Network(nn.Module):
    """Runs a list of (function, places of its arguments) and returns the values at some places."""

    def __init__(self, channels, steps, outputs):
        super().__init__()
        self.channels, self.steps, self.outputs = channels, steps, outputs
        self.parts = nn.ModuleList(step for step, _ in steps if isinstance(step, nn.Module))

    def forward(self, x):
        values = [x]
        for step, places in self.steps:
            values.append(step(*(values[place] for place in places)))
        return tuple(values[place] for place in self.outputs)


class Unit:
    """A unit of the hand-built graph: the units that it reads, a sum of sums kept apart, and if it is non-linear."""

    def __init__(self, parents=(), nonlinear=False, start=False, sum_of=None):
        self.parents, self.nonlinear, self.start, self.sum_of = list(parents), nonlinear, start, sum_of
        self.paths = int(start) + sum(parent.paths for parent in self.parents)


class Builder:
    """A random network of 1 to 3 channels a layer on 2 x 2 pixels, and beside it, by hand, its units and edges."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.limit = self.draw.choice((100, 1000, 4000))
        torch.manual_seed(seed)
        self.channels = self.draw.randint(1, 3)
        self.steps, self.values = [], [[Unit(start=True) for _ in range(self.channels)]]
        self.readers = Counter()  # how often the value at a place is read
        for _ in range(self.draw.randint(20, 60)):  # many attempts fail
            self.grow()

    def grow(self):
        kinds = [self.layer, self.activation, self.add, self.rearrange]
        made = self.draw.choices(kinds, (2, 2, 2, 1))[0]()
        if made is None:
            return
        step, places, units = made
        if sum(unit.paths for unit in units) <= self.limit:
            self.steps.append((step, places))
            self.values.append(units)
            self.readers.update(places)

    def pick(self, width=None):
        places = [i for i, units in enumerate(self.values) if width in (None, len(units))]
        return self.draw.choice(places[-4:])

    def layer(self):
        place = self.pick()
        inputs = self.values[place]
        width, kernel = self.draw.randint(1, 3), self.draw.choice((1, 3))
        if len(inputs) % 2 == 0 and self.draw.random() < 0.4:  # two groups
            width = self.draw.choice((2, 4))
            half, step = len(inputs) // 2, nn.Conv2d(len(inputs), width, kernel, padding=kernel // 2, groups=2)
            units = [Unit(inputs[:half] if i < width // 2 else inputs[half:]) for i in range(width)]
        else:
            step = nn.Conv2d(len(inputs), width, kernel, padding=kernel // 2)
            units = [Unit(inputs) for _ in range(width)]
        return step, [place], units

    def activation(self):
        place = self.pick()
        width = len(self.values[place])
        slopes = [self.draw.choice((0.0, 0.3, 1.0, 1.0)) for _ in range(width)]
        step, nonlinear = self.draw.choice(
            [
                (nn.ReLU(), [True] * width),
                (F.gelu, [True] * width),
                (lambda x: x.sigmoid(), [True] * width),
                (nn.LeakyReLU(1.0), [False] * width),
                (lambda x: F.leaky_relu(x, 0.1), [True] * width),
                (nn.Identity(), [False] * width),
                *[(nn.PReLU(width), [slope != 1 for slope in slopes])] * 4,
            ]
        )
        if isinstance(step, nn.PReLU):
            step.weight.data = torch.tensor(slopes)
        return step, [place], [Unit([u], flag) for u, flag in zip(self.values[place], nonlinear, strict=True)]

    def add(self):
        first = self.pick()
        places = [first] + [self.pick(len(self.values[first])) for _ in range(self.draw.choice((1, 1, 2)))]
        units = [Unit(parents, sum_of=places) for parents in zip(*(self.values[p] for p in places), strict=True)]
        steps = (lambda *x: sum(x), lambda *x: x[0] + sum(x[1:])), (lambda a, b: torch.add(a, b), lambda a, b: a - b)
        return self.draw.choice(steps[0] if len(places) == 3 else steps[0] + steps[1]), places, units

    def rearrange(self):
        place, other = self.pick(), self.pick()
        units, more = self.values[place], self.values[other]
        width = len(units)
        if width + len(more) <= 6 and self.draw.random() < 0.4:
            return (lambda a, b: torch.cat([a, b], 1)), [place, other], [Unit([u]) for u in units + more]
        kind = self.draw.choice(("pad", "slice", "shuffle", "pool", "norm", "scale"))
        keep = [Unit([u]) for u in units]
        if kind == "pad" and width <= 3:
            return (lambda x: F.pad(x, (0, 0, 0, 0, 1, 0))), [place], [Unit(), *keep]
        if kind == "slice" and width > 1:
            return (lambda x: x[:, 1:]), [place], keep[1:]
        if kind == "shuffle" and width == 4:
            return nn.ChannelShuffle(2), [place], [keep[i] for i in (0, 2, 1, 3)]
        same = {
            "pool": nn.MaxPool2d(3, stride=1, padding=1), "norm": nn.BatchNorm2d(width), "scale": lambda x: 0.5 * x + 1
        }  # fmt: skip
        return (same[kind], [place], keep) if kind in same else None

    def build(self):
        """The network, and the units of its outputs. It may end in a linear layer on all positions of all channels."""
        outputs = [len(self.values) - 1]
        flat = [Unit([u]) for u in self.values[-1] * 4] if self.draw.random() < 0.3 else None
        if flat and 2 * sum(unit.paths for unit in flat) <= self.limit:
            self.steps += [(nn.Flatten(), outputs), (nn.Linear(len(flat), 2), [len(self.values)])]
            self.readers.update(outputs)
            outputs, self.values = [len(self.values) + 1], [*self.values, flat, [Unit(flat) for _ in range(2)]]
        if self.draw.random() < 0.3:
            outputs = [self.draw.randrange(len(self.values) - 2 if flat else len(self.values)), *outputs]
        self.readers.update(outputs)
        for units in self.values:
            for index, unit in enumerate(units):
                if unit.sum_of:
                    unit.parents = list(self.open_sum(unit.sum_of, index))
        return Network(self.channels, self.steps, outputs), [unit for place in outputs for unit in self.values[place]]

    def open_sum(self, places, index):
        for place in places:
            unit = self.values[place][index]
            if unit.sum_of and self.readers[place] == 1:
                yield from self.open_sum(unit.sum_of, index)
            else:
                yield unit


def walks(unit, length=0, choices=1):
    """Every path that ends in a unit, one by one: its length, and one over its probability in NAPL's walk."""
    length += unit.nonlinear
    if unit.start:
        yield length, choices
    parents = [parent for parent in unit.parents if parent.paths]
    for parent in parents:
        yield from walks(parent, length, choices * len(parents))


@each("seed", range(60))
def test_counts_and_weights_equal_those_of_all_paths_one_by_one(seed):
    built = (Builder(s).build() for s in itertools.count(seed, 1000))
    network, units = next(one for one in built if any(unit.paths for unit in one[1]))
    walked = [Counter(walks(unit)) for unit in units]
    lengths = path_lengths(network, torch.zeros(2, network.channels, 2, 2))
    assert len(lengths.counts) == len(lengths.weights) == len(walked)
    total, number, walk = 0, 0, Fraction(0)
    for paths, counts, weights in zip(walked, lengths.counts, lengths.weights, strict=True):
        expected_counts, expected_weights = Counter(), Counter()
        for (length, choices), times in paths.items():
            expected_counts[length] += times
            expected_weights[length] += Fraction(times, choices)
            total, number, walk = total + times * length, number + times, walk + Fraction(times * length, choices)
        assert {k: n for k, n in enumerate(counts) if n} == expected_counts
        assert {k: w for k, w in enumerate(weights) if w} == expected_weights
    assert lengths.apl == float(Fraction(total, number))
    assert lengths.napl == float(walk / sum(bool(paths) for paths in walked))
    assert all(type(count) is int for count in lengths.counts.flat)


class Skip(nn.Module):
    """A skip over some layers."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x)


def slopes(channels, nonlinear):
    """A PReLU whose first channels are not linear."""
    layer = nn.PReLU(channels)
    layer.weight.data = torch.tensor([0.2] * nonlinear + [1.0] * (channels - nonlinear))
    return layer


def fully_connected(width, depth):
    return [module for _ in range(depth) for module in (nn.Linear(width, width), nn.ReLU())]


def test_figure_1_of_the_paper():
    lengths = path_lengths(Skip(*fully_connected(4, 4)), torch.zeros(1, 4))
    assert lengths.paths.tolist() == [257] * 4
    assert lengths.counts.tolist() == [[1, 0, 0, 0, 256]] * 4
    assert lengths.weights.tolist() == [[Fraction(1, 2), 0, 0, 0, Fraction(1, 2)]] * 4
    assert lengths.weights[0, 4] / lengths.counts[0, 4] == Fraction(1, 512)  # of one deep path
    assert lengths.apl == 1024 / 257 and lengths.napl == 2
    np.testing.assert_array_equal(lengths.shares("apl"), [1 / 257, 0, 0, 0, 256 / 257])
    np.testing.assert_array_equal(lengths.shares("napl"), [0.5, 0, 0, 0, 0.5])


@each("seed", range(3))
def test_an_identity_skip_halves_what_its_branch_adds(seed):
    """depth_out = depth_in + (sum of the branch's shares) / 2 + the share after the addition."""
    draw = random.Random(seed)
    kept = [draw.randint(0, 8) for _ in range(10)]
    network = resnet(8, (3,), channels=1)
    network.relu = slopes(8, kept[0])
    for i, block in enumerate((network.block1, network.block2, network.block3)):
        block.relu1, block.relu2 = slopes(8, kept[2 * i + 1]), slopes(8, kept[2 * i + 2])
    expected = kept[0] / 8 + sum(kept[i] / 16 + kept[i + 1] / 8 for i in (1, 3, 5))
    assert path_lengths(network, torch.zeros(1, 1, 32, 32)).napl == pytest.approx(expected, rel=1e-15)


def test_channels_padded_with_zeros_carry_no_path_through_the_skip():
    """The channels that a block adds can only be reached through its branch."""
    lengths = path_lengths(nn.Sequential(BasicBlock(4, 8, 2), nn.Identity()), torch.zeros(1, 4, 8, 8))
    assert lengths.counts.tolist() == [[0, skip, 32] for skip in (0, 0, 1, 1, 1, 1, 0, 0)]  # length 1: relu2 alone
    means = [sum(k * weight for k, weight in enumerate(row)) for row in lengths.weights]
    assert means == [2, 2, 1.5, 1.5, 1.5, 1.5, 2, 2]
    assert lengths.napl == 1.75  # not 1.5


def test_more_paths_than_any_float_holds_are_counted_exactly():
    lengths = path_lengths(mlp(64, 200, side=4), torch.zeros(1, 1, 4, 4))
    assert lengths.paths.tolist() == [16 * 64**200] * 10
    assert lengths.apl == lengths.napl == 200 and "e+363 paths" in repr(lengths).lower()


@each("blocks", [1, 2, 7])
def test_the_lengths_in_a_chain_of_skips_are_binomial(blocks):
    """With NAPL's weights each block is passed or skipped with probability 1/2."""
    network = nn.Sequential(*(Skip(nn.Linear(3, 3), nn.ReLU()) for _ in range(blocks)))
    lengths = path_lengths(network, torch.zeros(1, 3))
    ways = [math.comb(blocks, k) for k in range(blocks + 1)]
    assert lengths.weights.tolist() == [[Fraction(n, 2**blocks) for n in ways]] * 3
    assert lengths.counts[0].tolist() == [n * 3**k for k, n in enumerate(ways)]  # k layers of width 3


class Written(nn.Module):
    """A forward method given as a function of the module and its input, with layers to call."""

    def __init__(self, forward):
        super().__init__()
        self.a, self.b, self.act = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()
        self.writes, self.p, self.written = nn.ReLU(inplace=True), nn.Parameter(torch.ones(4, 1, 1)), forward

    def forward(self, x):
        return self.written(self, x)


X = torch.zeros(2, 4, 8, 8)


def same(lengths, other):
    return lengths.counts.tolist() == other.counts.tolist() and lengths.weights.tolist() == other.weights.tolist()


SPELLINGS = {
    "activation": [
        lambda self, x: self.act(self.a(x)),
        lambda self, x: self.writes(self.a(x)),
        lambda self, x: F.relu(self.a(x), True),
        lambda self, x: self.a(x).relu_(),
        lambda self, x: F.leaky_relu(self.a(x), negative_slope=0.9),
        lambda self, x: F.prelu(self.a(x), torch.zeros(4)),
        lambda self, x: F.hardtanh(self.a(x), 0.0, 6.0, inplace=True),
        lambda self, x: self.a(x).clamp(min=0),
    ],
    "no activation": [
        lambda self, x: self.a(x),
        lambda self, x: F.leaky_relu(self.a(x), 1.0),
        lambda self, x: F.prelu(self.a(x), torch.ones(4)),
        lambda self, x: F.dropout(self.a(x), training=self.training),
        lambda self, x: F.batch_norm(self.a(x), torch.zeros(4), torch.ones(4)) * self.p - 1,
        lambda self, x: F.conv2d(x, self.a.weight, None),
        lambda self, x: -self.a(x).mul(2.0) / 3,
        lambda self, x: self.a(x).mean((2, 3), keepdim=True),
        lambda self, x: torch.sum(F.adaptive_avg_pool2d(self.a(x), 2), 3),
        lambda self, x: F.interpolate(F.pad(self.a(x), (1, 1, 1, 1), mode="reflect"), scale_factor=2),
        lambda self, x: F.linear(x.permute(0, 2, 3, 1), self.a.weight[:, :, 0, 0]).movedim(-1, 1),
        lambda self, x: (x.transpose(1, -1).contiguous() @ self.a.weight[:, :, 0, 0]).transpose(-1, 1),
        lambda self, x: self.a(x)[:, :, ::2, 1:].reshape(x.size(0), 4, -1).view(x.shape[0], 4, 7, 4),
        lambda self, x: torch.cat(torch.chunk(self.a(x), 2, dim=1), dim=1),
        lambda self, x: torch.stack([self.a(x), x], 2)[:, :, 0],
    ],
    "skip": [
        lambda self, x: x + self.act(self.a(x)),
        lambda self, x: self.act(self.a(x)).add_(x),
        lambda self, x: operator.iadd(self.act(self.a(x)), x),
        lambda self, x: sum([x, self.act(self.a(x))]),
        lambda self, x: x - self.act(self.a(x)) + self.p + 1,
        lambda self, x: self.p + (torch.zeros_like(x) + x) + self.act(self.a(x)),
    ],
    "three summands": [
        lambda self, x: x + self.act(self.a(x)) + self.b(x),
        lambda self, x: x + (self.b(x) + self.act(self.a(x))),
        lambda self, x: torch.add(x, self.b(x)).add_(self.act(self.a(x))),
    ],
    "padded": [
        lambda self, x: F.pad(x[:, :2], (0, 0, 0, 0, 1, 1)) + self.a(x),
        lambda self, x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :2], torch.ones(2, 1, 8, 8)], 1) + self.a(x),
        lambda self, x: torch.cat([x.new_zeros(2, 1, 8, 8), x[:, :2], self.p.expand(2, 4, 8, 8)[:, :1]], 1) + self.a(x),
    ],
}


@each("what", SPELLINGS)
def test_all_spellings_of_an_operation_count_the_same(what):
    expected = {
        "activation": ([[0, 4]] * 4, 1.0),
        "no activation": ([[4]] * 4, 0.0),
        "skip": ([[1, 4]] * 4, 1 / 2),
        "three summands": ([[5, 4]] * 4, 1 / 3),
        "padded": ([[4], [5], [5], [4]], 0.0),
    }[what]
    for i, forward in enumerate(SPELLINGS[what]):
        lengths = path_lengths(Written(forward), X)
        assert (lengths.counts.tolist(), lengths.napl) == (expected[0], pytest.approx(expected[1], rel=1e-15)), i


def test_what_is_written_in_place_is_what_a_skip_reads():
    """relu(x) overwrites x before the skip adds it; so does +=."""
    written = path_lengths(Written(lambda self, x: self.b(self.writes(x)) + x), X)
    assert same(written, path_lengths(Written(lambda self, x: self.b(self.act(x)) + self.act(x)), X))
    assert not same(written, path_lengths(Written(lambda self, x: self.b(self.act(x)) + x), X))

    def augmented(self, x):
        y = self.a(x)
        z = self.act(y)
        y += z
        return y + self.b(z)

    def spelled_out(self, x):
        y = self.a(x)
        z = self.act(y)
        return (y + z) + self.b(z)

    assert same(path_lengths(Written(augmented), X), path_lengths(Written(spelled_out), X))


def test_functional_convolutions_have_groups_too():
    for forward in (
        lambda self, x: F.conv2d(x, self.a.weight[:, :2], None, 1, 0, 1, 2),
        lambda self, x: F.conv_transpose2d(x, self.a.weight[:, :2], groups=2),
    ):
        network = nn.Sequential(slopes(4, 2), Written(forward))
        assert path_lengths(network, X).counts.tolist() == [[0, 2], [0, 2], [2, 0], [2, 0]]


def test_several_outputs_are_taken_together():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 2), nn.Linear(2, 4)

        def forward(self, x, scale=None):
            hidden = F.relu(self.a(x))
            return {"last": self.b(hidden), "first": [hidden]}

    lengths = path_lengths(Two(), torch.zeros(1, 3))
    assert lengths.counts.tolist() == [[0, 6]] * 4 + [[0, 3]] * 2
    assert lengths.napl == 1


def test_a_network_of_torchvision_at_any_size_of_image_and_batch():
    """The first activation, and by block half of one in the branch and one after the sum."""
    network = torchvision.models.resnet18(weights=None)
    small, large = (path_lengths(network, torch.zeros(shape)) for shape in ((1, 3, 32, 32), (3, 3, 65, 97)))
    assert same(small, large)
    assert small.napl == 1 + 8 * (1 / 2 + 1) < small.apl < 17 and small.counts.shape == (1000, 18)


def test_densenet_by_a_recursion_over_its_channels():
    """Two activations and two convolutions a layer, the block's channels side by side."""
    network = torchvision.models.densenet121(weights=None)
    lengths = path_lengths(network, torch.zeros(1, 3, 64, 64))
    channels = [(3, 3, Fraction(1))] * 64  # paths, their total length, mean length of NAPL's walk

    def activation(units):
        return [(paths, total + paths, depth + 1) for paths, total, depth in units]

    def convolution(units, width):
        paths, total, depth = (sum(column) for column in zip(*units, strict=True))
        return [(paths, total, depth / len(units))] * width

    for i, layers in enumerate((6, 12, 24, 16)):
        for _ in range(layers):
            hidden = activation(convolution(activation(channels), 128))
            channels = channels + convolution(hidden, 32)
        if i < 3:
            channels = convolution(activation(channels), len(channels) // 2)
    ((paths, total, depth),) = convolution(activation(channels), 1)
    assert lengths.paths.tolist() == [paths] * 1000
    assert lengths.apl == float(Fraction(total, paths)) and lengths.napl == float(depth)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


REFUSED = {
    "depends on values": (nn.Sequential(nn.ReLU(), Branching()), X, "network: Sequential cannot be traced: module 1"),
    "depends on values at the top": (Branching(), X, "the forward method fails on symbolic values"),
    "wrong channels": (nn.Sequential(nn.Conv2d(3, 4, 1)), X, r"module 0 fails for inputs of shape \(2, 4, 8, 8\): "),
    "no channels": (nn.ReLU(), torch.zeros(3), r"inputs: got shape \(3,\); it should be \(batch, channels, ...\)"),
    "empty": (nn.ReLU(), torch.zeros(0, 3), r"inputs: got shape \(0, 3\)"),
    "no batch": (nn.Conv2d(4, 2, 1), torch.zeros(4, 8, 8), "without an axis for the batch"),
    "gate": (Written(lambda self, x: x * self.a(x).sigmoid()), X, r"mul \(node mul\) multiplies two paths"),
    "gate in a module": (
        nn.Sequential(nn.ReLU(), Written(lambda self, x: self.a(x).mul_(x))), X, r"mul_ \(node mul_ in module 1\)"
    ),
    "quotient": (Written(lambda self, x: 1 / x), X, "an operation without a rule"),
    "softmax": (nn.Sequential(nn.Linear(8, 8), nn.Softmax(1)), X, "module 1 is a Softmax, an operation without"),
    "over the batch": (Written(lambda self, x: x.mean(0)), X, "an operation without a rule"),
    "over channels that differ": (nn.Sequential(slopes(4, 2), Written(lambda self, x: x.mean(1))), X, "merges units"),
    "into a constant": (Written(lambda self, x: torch.zeros(2, 4, 8, 8).add_(x)), X, "is called in a way that path"),
    "no path": (Written(lambda self, x: torch.ones(2, 3)), X, "no path leads from the inputs of Written"),
}  # fmt: skip


@each("what", REFUSED)
def test_what_has_no_path_lengths_is_refused_in_a_sentence(what, capfd):
    network, inputs, sentence = REFUSED[what]
    with pytest.raises(ValueError, match=sentence) as raised:
        path_lengths(network, inputs)
    assert str(raised.value).endswith(".") and len(str(raised.value).splitlines()) == 1
    assert capfd.readouterr() == ("", "")


def test_slopes_that_are_no_numbers_are_refused():
    network = nn.Sequential(nn.Linear(2, 2), nn.PReLU(2))
    network[1].weight.data[0] = math.nan
    with pytest.raises(ValueError, match="slopes that are not finite numbers"):
        path_lengths(network, torch.zeros(1, 2))
