"""Hooks leave nothing behind."""

import pytest
import torch
from torch import nn

from affscore_study.kit.hooks import attached


def test_hooks_are_removed_after_an_error_too():
    seen, modules = [], [nn.ReLU(), nn.Tanh()]
    hooks = [module.register_forward_hook(lambda module, *_: seen.append(module)) for module in modules]
    with pytest.raises(RuntimeError, match="stop"), attached(hooks):
        for module in modules:
            module(torch.zeros(1))
        raise RuntimeError("stop")
    for module in modules:
        module(torch.zeros(1))
    assert seen == modules
