"""Path lengths: random networks against generating functions, closed forms, spellings, and what is refused."""

import math
import operator
import random
from fractions import Fraction

import numpy as np
import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from affscore_book.kit.networks import BasicBlock, mlp, resnet
from affscore_book.linearized.graph import traced_graph
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.walk import PathWalk


class Network(nn.Module):
    """Runs a list of (function, places of its arguments); the output is the last value."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.parts = steps, nn.ModuleList(step for step, _ in steps if isinstance(step, nn.Module))

    def forward(self, x):
        values = [x]
        for step, places in self.steps:
            values.append(step(*(values[place] for place in places)))
        return values[-1]


#: A path that meets k non-linear units counts as BIG**k, so that the sum over all paths, one number, tells all counts.
BIG = 10**30
#: The paths into a unit, and the mean over NAPL's walk, which takes one of the units that any path reaches.
NOTHING, START = (0, Fraction(0)), (1, Fraction(1))


def joined(units):
    reached = [unit for unit in units if unit[0]]
    return (sum(paths for paths, _ in units), sum(walk for _, walk in reached) / max(1, len(reached)))


def bent(unit, nonlinear=True):
    return (unit[0] * BIG, unit[1] * BIG) if nonlinear else unit


def slopes(channels, nonlinear):
    """A PReLU whose first channels are not linear."""
    layer = nn.PReLU(channels)
    layer.weight.data = torch.tensor([0.2] * nonlinear + [1.0] * (channels - nonlinear))
    return layer


def random_network(seed):
    """A random network of 1 to 6 channels a layer on 2 x 2 pixels, its input channels, and its outputs' units."""
    draw = random.Random(seed)
    values, steps = [[START] * draw.randint(1, 3)], []

    def pick(width=None):
        return draw.choice([i for i, units in enumerate(values) if width in (None, len(units))][-4:])

    for _ in range(draw.randint(10, 30)):
        place = pick()
        units = values[place]
        width, made = len(units), draw.randint(1, 3)
        others = [pick(width), pick(width)]
        kept = draw.randint(0, width)
        half, outer = units[: width // 2], units[width // 2 :]
        summed = {2: (lambda a, b: a - b), 3: (lambda a, b, c: a + (b + c))}
        some = [place, *others[: draw.randint(1, 2)]]
        kinds = [
            (nn.Conv2d(width, made, 3, padding=1), [place], [joined(units)] * made),
            (nn.ReLU(), [place], [bent(unit) for unit in units]),
            (F.gelu, [place], [bent(unit) for unit in units]),
            (slopes(width, kept), [place], [bent(unit, i < kept) for i, unit in enumerate(units)]),
            (nn.LeakyReLU(1.0), [place], units),
            (summed[len(some)], some, [joined(row) for row in zip(*(values[i] for i in some), strict=True)]),
            (lambda x: F.pad(x, (0, 0, 0, 0, 1, 0)), [place], [NOTHING, *units]),
            (nn.MaxPool2d(3, stride=1, padding=1), [place], units),
            (lambda x: 0.5 * x + 1, [place], units),
        ]
        if width % 2 == 0:
            grouped = nn.Conv2d(width, 4, 1, groups=2)
            kinds.append((grouped, [place], [joined(half)] * 2 + [joined(outer)] * 2))
            kinds.append((lambda x: x[:, 1:], [place], units[1:]))
        if width + len(values[-1]) <= 6:
            kinds.append((lambda a, b: torch.cat([a, b], 1), [place, len(values) - 1], units + values[-1]))
        step, places, found = draw.choice([kind for kind in kinds if len(kind[2]) <= 6])
        # A norm after each step: sums that are read by sums only once would be one sum.
        steps += [(step, places), (nn.BatchNorm2d(len(found)), [len(values)])]
        values += [found, found]
    if draw.random() < 0.3:
        steps += [(nn.Flatten(), [len(values) - 1]), (nn.Linear(4 * len(values[-1]), 2), [len(values)])]
        values += [values[-1], [joined(values[-1] * 4)] * 2]
    return Network(steps), len(values[0]), values[-1]


def test_counts_and_weights_match_generating_functions():
    """Counts and weights of paths are the coefficients of generating functions."""
    compared = 0
    for seed in range(30):
        torch.manual_seed(seed)
        network, channels, units = random_network(seed)
        if not any(paths for paths, _ in units):
            continue
        lengths = path_lengths(network, torch.zeros(2, channels, 2, 2))
        powers = [BIG**k for k in range(lengths.counts.shape[1])]
        for unit, counts, weights in zip(units, lengths.counts, lengths.weights, strict=True):
            assert all(type(count) is int and count < BIG for count in counts)
            assert unit == (np.dot(counts, powers), np.dot(weights, powers)), seed
        number = np.arange(len(powers))
        paths, reached = lengths.counts.sum(), sum(bool(paths) for paths, _ in units)
        assert lengths.apl == float(Fraction((lengths.counts @ number).sum(), paths))
        assert lengths.napl == float((lengths.weights @ number).sum() / reached)
        compared += 1
    assert compared > 20


def test_units_are_joined_and_made_longer_and_no_path_stays_none():
    walk = PathWalk(traced_graph(nn.ReLU(), torch.zeros(1, 2)))
    bent = walk.longer(1)
    assert walk.states[bent] == {1: (1, 1)} and walk.longer(1) == bent
    joined = walk.mix([1, bent, 0, bent])
    assert walk.states[joined] == {0: (1, Fraction(1, 3)), 1: (2, Fraction(2, 3))}
    assert walk.mix([bent, 1, bent]) == joined and walk.mix([0, bent]) == bent
    assert walk.mix([0, 0]) == walk.longer(0) == 0
    assert walk.outputs(torch.zeros(1, 2)) == [{1: (1, 1)}] * 2


class Skip(nn.Module):
    """A skip over some layers."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x)


@pytest.mark.parametrize("seed", range(3))
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


def test_zero_padded_channels_have_no_skip_path():
    """Channels that are padded with zeros carry no path through the skip connection.

    The channels that a block adds can only be reached through its branch.
    """
    lengths = path_lengths(nn.Sequential(BasicBlock(4, 8, 2), nn.Identity()), torch.zeros(1, 4, 8, 8))
    assert lengths.counts.tolist() == [[0, skip, 32] for skip in (0, 0, 1, 1, 1, 1, 0, 0)]  # length 1: relu2 alone
    means = [sum(k * weight for k, weight in enumerate(row)) for row in lengths.weights]
    assert means == [2, 2, 1.5, 1.5, 1.5, 1.5, 2, 2]
    assert lengths.napl == 1.75  # not 1.5


def test_more_paths_than_any_float_holds_are_counted_exactly():
    lengths = path_lengths(mlp(64, 200, side=4), torch.zeros(1, 1, 4, 4))
    assert lengths.paths.tolist() == [16 * 64**200] * 10
    assert lengths.apl == lengths.napl == 200 and "e+363 paths" in repr(lengths).lower()


@pytest.mark.parametrize("blocks", [1, 2, 7])
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
        lambda self, x: F.hardtanh(self.a(x), 0.0, 6.0, inplace=True),
        lambda self, x: self.a(x).clamp(min=0),
    ],
    "no activation": [
        lambda self, x: self.a(x),
        lambda self, x: F.dropout(self.a(x), training=self.training),
        lambda self, x: F.batch_norm(self.a(x), torch.zeros(4), torch.ones(4)) * self.p - 1,
        lambda self, x: -self.a(x).mul(2.0) / 3,
        lambda self, x: F.adaptive_avg_pool2d(self.a(x), output_size=2),
        lambda self, x: F.interpolate(F.pad(self.a(x), (1, 1, 1, 1), mode="reflect"), scale_factor=2),
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
    ],
    "three summands": [
        lambda self, x: x + self.act(self.a(x)) + self.b(x),
        lambda self, x: x + (self.b(x) + self.act(self.a(x))),
        lambda self, x: torch.add(x, self.b(x)).add_(self.act(self.a(x))),
    ],
    "padded": [
        lambda self, x: F.pad(x[:, :2], (0, 0, 0, 0, 1, 1)) + self.a(x),
        lambda self, x: F.pad(x[:, :2], pad=(0, 0, 0, 0, 1, 1), value=3.0) + self.a(x),
        lambda self, x: torch.cat([torch.zeros(2, 1, 8, 8), x[:, :2], self.p.expand(2, 4, 8, 8)[:, :1]], 1) + self.a(x),
    ],
}


@pytest.mark.parametrize("what", SPELLINGS)
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


def test_a_network_of_torchvision_that_writes_in_place():
    """The first activation, and by block half of one in the branch and one after the sum."""
    lengths = path_lengths(torchvision.models.resnet18(weights=None), torch.zeros(1, 3, 32, 32))
    assert lengths.napl == 1 + 8 * (1 / 2 + 1) < lengths.apl < 17 and lengths.counts.shape == (1000, 18)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


REFUSED = {
    "depends on values": (nn.Sequential(nn.ReLU(), Branching()), X, "network: Sequential cannot be traced: module 1"),
    "depends on values at the top": (Branching(), X, "the forward method fails on symbolic values"),
    "wrong channels": (nn.Sequential(nn.Conv2d(3, 4, 1)), X, r"module 0 fails for inputs of shape \(2, 4, 8, 8\): "),
    "no channels": (nn.ReLU(), torch.zeros(3), r"inputs: got shape \(3,\); it should be \(batch, channels, ...\)"),
    "empty": (nn.ReLU(), torch.zeros(0, 3), r"inputs: got shape \(0, 3\)"),
    "no batch": (nn.Sequential(nn.Conv2d(4, 2, 1)), torch.zeros(4, 8, 8), "without an axis for the batch"),
    "gate": (Written(lambda self, x: x * self.a(x).sigmoid()), X, r"mul \(node mul\) multiplies two paths"),
    "gate in a module": (
        nn.Sequential(nn.ReLU(), Written(lambda self, x: self.a(x).mul_(x))), X, r"mul_ \(node mul_ in module 1\)"
    ),
    "quotient": (Written(lambda self, x: 1 / x), X, "an operation without a rule"),
    "softmax": (nn.Sequential(nn.Linear(8, 8), nn.Softmax(1)), X, "module 1 is a Softmax, an operation without"),
    "slopes of a function": (Written(lambda self, x: F.prelu(x, self.p[:, 0, 0])), X, "should be a module"),
    "positions that differ": (
        nn.Sequential(nn.Flatten(0, 2), slopes(8, 2), nn.Unflatten(0, (2, 4, 8)), nn.Conv2d(4, 4, 1)), X, "merges units"
    ),
    "slopes that are no numbers": (nn.Sequential(nn.PReLU(4, math.nan)), X, "slopes that are not finite numbers"),
    "over the batch": (Written(lambda self, x: x.mean(0)), X, "an operation without a rule"),
    "into a constant": (Written(lambda self, x: torch.zeros(2, 4, 8, 8).add_(x)), X, "is called in a way that path"),
    "no path": (Written(lambda self, x: torch.ones(2, 3)), X, "no path leads from the inputs of Written"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_path_lengths_is_refused_in_a_sentence(what, capfd):
    network, inputs, sentence = REFUSED[what]
    with pytest.raises(ValueError, match=sentence) as raised:
        path_lengths(network, inputs)
    assert str(raised.value).endswith(".") and len(str(raised.value).splitlines()) == 1
    assert capfd.readouterr() == ("", "")
