"""What a walk keeps of the paths into a unit; whole networks are in test_paths.py."""

from fractions import Fraction

import torch
from torch import nn

from affscore_book.linearized.graph import traced_graph
from affscore_book.linearized.walk import PathWalk


def test_units_are_joined_and_made_longer_and_no_path_stays_none():
    walk = PathWalk(traced_graph(nn.ReLU(), torch.zeros(1, 2)))
    bent = walk.longer(1)
    assert walk.states[bent] == {1: (1, 1)} and walk.longer(1) == bent
    joined = walk.mix([1, bent, 0, bent])
    assert walk.states[joined] == {0: (1, Fraction(1, 3)), 1: (2, Fraction(2, 3))}
    assert walk.mix([bent, 1, bent]) == joined and walk.mix([0, bent]) == bent
    assert walk.mix([0, 0]) == walk.longer(0) == 0
    assert walk.outputs(torch.zeros(1, 2)) == [{1: (1, 1)}] * 2
