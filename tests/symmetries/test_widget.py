"""The widget in both languages, and what the groups say about it."""

import numpy as np
import pytest
import torch

from affscore_book.symmetries.table import intertwiner
from affscore_book.symmetries.widget import ORDERS, HiddenAction


def test_widget_draws_the_same_curves_in_both_languages(node):
    random = np.random.default_rng(0)
    widgets = [
        HiddenAction(
            activation=str(random.choice(["relu", "leaky_relu", "tanh", "gaussian", "identity"])),
            angle=float(random.integers(-36, 37) * 5), order=str(random.choice(ORDERS)),
            first=int(random.integers(-8, 9)), second=int(random.integers(-8, 9)),
        )
        for _ in range(40)
    ]  # fmt: skip
    keys = ["x", "after", "hidden", "wanted", "fitted"]
    body = "(m, [states, keys]) => states.map(s => { const r = m.evaluate(s); return keys.map(k => Array.isArray(r[k]) "
    found = node(HiddenAction._esm, body + "? r[k].map(v => Array.from(v)) : r[k]); })",
                 [[widget.state() for widget in widgets], keys])  # fmt: skip
    for widget, values in zip(widgets, found, strict=True):
        curves = widget.curves()
        for key, value in zip(keys, values, strict=True):
            np.testing.assert_allclose(np.array(value).T, curves[key], atol=1e-6, err_msg=f"{widget} {key}")


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ({"first": 5, "second": -8, "order": "swapped"}, ["relu", "leaky_relu", "identity"]),
        ({"angle": 180.0}, ["tanh", "gaussian", "identity"]),
        ({"angle": 90.0}, ["tanh", "gaussian", "identity"]),
        ({"angle": 40.0}, ["identity"]),
        ({"order": "swapped"}, ["relu", "leaky_relu", "tanh", "gaussian", "identity"]),
    ],
)
def test_widget_says_what_the_groups_say(state, kept):
    for name in ("relu", "leaky_relu", "tanh", "gaussian", "identity"):
        widget = HiddenAction(activation=name, **state)
        member = intertwiner(name).contains(torch.from_numpy(widget.matrix()))
        assert member is (name in kept)
        assert (widget.score() < 1e-9) is member
        assert (": an output layer gives" in widget.picture()) is member
