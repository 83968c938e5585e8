"""What a network is beside its weights: any attribute tells two networks apart, and in every process alike."""

import functools
import os
import re
import subprocess
import sys
import threading
from collections import deque
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig

from affscore_study.suite.checksums import network_checksum


class Kind(Enum):
    ONE = 1
    TWO = 2


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Holding(nn.Module):
    """A module that keeps a value as an attribute."""

    def __init__(self, value):
        super().__init__()
        self.held = nn.ReLU()
        self.value = value


def times(factor):
    return lambda x: x * factor


def linear(weight):
    part = nn.Linear(1, 1, bias=False)
    part.weight.data.fill_(weight)
    return part


def in_itself(value):
    circle = [value]
    circle.append({"again": circle})
    return circle


def pairs():
    """Two values that make different networks, by what they are; each is made anew."""
    return {
        "functions": (F.silu, F.gelu),
        "functions of PyTorch": (torch.tanh, torch.sigmoid),
        "operators": (torch.ops.aten.tanh.default, torch.ops.aten.sigmoid.default),
        "lambdas": (lambda x: x + 1, lambda x: x + 2),
        "what a function encloses": (times(2), times(3)),
        "partials": (functools.partial(F.gelu, approximate="tanh"), functools.partial(F.gelu, approximate="none")),
        "methods": ([1].append, [2].append),
        "classes": (nn.ReLU, nn.GELU),
        "lists": ([1, (2, 3)], [1, (2, 4)]),
        "a list and a tuple": ([1], (1,)),
        "dictionaries": ({"a": 1, "b": [2]}, {"a": 1, "b": [3]}),
        "sets": ({"p", "q", "r", F.silu}, {"p", "q", "s", F.silu}),
        "plain objects": (SimpleNamespace(slope=1, more=[2]), SimpleNamespace(slope=1, more=[3])),
        "objects with slots": (Slotted(1), Slotted(2)),
        "nothing and something": (None, 0),
        "a number and its text": (1, "1"),
        "data types": (torch.float32, torch.float64),
        "tensors": (torch.ones(3), torch.tensor([1.0, 1.0, 1.5])),
        "sparse tensors": (torch.eye(2).to_sparse(), (2 * torch.eye(2)).to_sparse()),
        "conjugates": (torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j])),
        "arrays": (np.arange(3), np.arange(3.0)),
        "arrays of objects": (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
        "networks in a list": ([linear(1.0)], [linear(2.0)]),
        "members of an enumeration": (Kind.ONE, Kind.TWO),
        "patterns": (re.compile("a"), re.compile("b")),
        "decimals": (Decimal("0.1"), Decimal("0.2")),
        "queues": (deque([1, 2]), deque([2, 1])),
        "lists in themselves": (in_itself(1), in_itself(2)),
        "configurations": (BertConfig(hidden_act="relu"), BertConfig(hidden_act="gelu")),
    }


@pytest.mark.parametrize("what", pairs())
def test_checksum_follows_the_value_held(what):
    """Networks that hold equal values have one checksum, and those that hold other values have another."""
    (one, other), (again, _) = pairs()[what], pairs()[what]
    if "lambda" in what:
        again = one
    assert network_checksum(Holding(one)) == network_checksum(Holding(again)) != network_checksum(Holding(other))


@pytest.mark.weekly  # starts processes; what it hashes is tested above
def test_the_checksum_is_the_same_in_every_process():
    """Neither the seed of hashes, on which the order of a set depends, nor a place in memory is part of it."""
    code = "import test_checksums as t; print(*(t.network_checksum(t.Holding(one)) for one, _ in t.pairs().values()))"
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    one, other = (
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True, text=True, check=True,
        ).stdout.split()
        for seed in "12"
    )  # fmt: skip
    assert one == other and len(one) == len(pairs())


def test_checksum_ends_on_references_back_to_the_network():
    """The checksum ends on an attribute that refers back to the network, and it tells such attributes apart."""
    one, other = Holding(None), Holding(None)
    for module in (one, other):
        module.value = [module, module.held]
    assert network_checksum(one) == network_checksum(other)
    other.value = [other.held, other]
    assert network_checksum(one) != network_checksum(other)


def test_a_long_chain_of_objects_does_not_use_up_the_stack():
    chain = None
    for number in range(100_000):
        chain = SimpleNamespace(number=number, next=chain)
    assert network_checksum(Holding(chain)) == network_checksum(Holding(chain))
    while chain:  # taken apart from its head: Python would free it by a call a link
        chain = chain.next


def test_what_cannot_be_taken_apart_counts_by_its_kind():
    locks, lock = [threading.Lock(), threading.Lock()], threading.RLock()
    first, second, third = (network_checksum(Holding(value)) for value in (*locks, lock))
    assert first == second != third


def test_equal_values_are_equal_however_they_were_put_together():
    shared = (1, 2)
    for one, other in (
        ([shared, shared], [(1, 2), tuple([1, 2])]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ):
        assert network_checksum(Holding(one)) == network_checksum(Holding(other))


def test_a_compiled_network_is_the_same_in_every_process():
    one, other = (torch.compile(nn.Sequential(nn.Linear(2, 2), nn.ReLU())) for _ in range(2))
    assert network_checksum(one) == network_checksum(other)


def test_a_layer_of_pytorch_keeps_its_activation_as_an_attribute():
    layers = [nn.TransformerEncoderLayer(8, 2, 16, activation=function) for function in (F.silu, F.silu, torch.tanh)]
    first, again, other = map(network_checksum, layers)
    assert first == again != other


def test_a_pass_leaves_the_network_what_it_was():
    """A network of the zoo that was measured can be measured again."""
    from affscore.zoo.models import load_model

    network = load_model("vit_b_32", weights="random").model.eval()
    before = network_checksum(network)
    with torch.no_grad():
        network(torch.zeros(1, 3, 224, 224))
    assert network_checksum(network) == before
