"""The public summary's code, as the chapter prints it: what it counts, and that this is not the method."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from affscore_book.linearized.paths import path_lengths

NOTEBOOK = Path(__file__).parents[2] / "book" / "linearized.ipynb"


@pytest.fixture(scope="module")
def printed() -> dict[str, Any]:
    """The class and the function of the chapter's cell, without what the cell does with them."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    (cell,) = (cell for cell in cells if cell["id"] == "linearized-summary")
    tree = ast.parse("".join(cell["source"]))
    tree.body = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    names: dict[str, Any] = {"torch": torch, "nn": nn}
    exec(compile(tree, "the summary", "exec"), names)
    return names


class Skip(nn.Module):
    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return x + self.layers(x)


def chain(activation: Any, width: int) -> nn.Sequential:
    return nn.Sequential(*(module for _ in range(3) for module in (nn.Linear(width, width), activation())))


def test_the_count_is_of_negative_values_by_the_number_of_modules(printed):
    """In closed form, and the same for networks whose path lengths differ; the linear layers are never run."""
    torch.manual_seed(0)
    width, x = 5, torch.randn(60, 5)
    layers = chain(printed["SparsifiedPReLU"], width)
    expected = 3 * float((x < 0).sum()) / 60
    assert float(printed["average_path_length"](layers, x)) == pytest.approx(expected / 7)
    assert float(printed["average_path_length"](Skip(layers), x)) == pytest.approx(expected / 8)
    assert float(printed["average_path_length"](Skip(layers), x.abs())) == 0
    assert path_lengths(chain(nn.ReLU, width), x).napl == 3
    assert path_lengths(Skip(chain(nn.ReLU, width)), x).napl == 1.5
