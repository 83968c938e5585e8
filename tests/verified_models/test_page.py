"""The page says what is stored: totals, a row each, and whatever is not as it should be."""

import pytest

from affscore_study.verified_models.page import render

ROW = {
    "parameters": 5_680_552, "counted": {"gelu": 12, "sigmoid": 3}, "scored": {"gelu": 12, "sigmoid": 1}, "gates": 1,
    "excluded": [["sigmoid", "its input comes from a table", 2]], "identical": True, "time": 1.52,
}  # fmt: skip


def page(**models):
    versions = {"torch": "2.9", "torchvision": "0.24", "timm": "1.0", "transformers": "5.0"}
    models = {name.replace("__", "/"): row for name, row in models.items()}
    return render({"settings": {"versions": versions, "batch": 6, "rounds": 7}, "models": models})


def test_totals_and_rows():
    text = page(timm__vit_tiny=ROW, timm__other=ROW, torchvision__resnet18=ROW | {"parameters": 17_120, "time": 3.0})
    for line in (
        "for 3 networks:\n1 of torchvision 0.24, 2 of timm 1.0 and 0 of Hugging Face transformers 5.0, with torch 2.9.",
        "| Networks | 3 |", "| Activation calls that ran | 45 |", "| scored | 39, 3 of them gates |",
        "| seen and excluded, each with a reason | 6 |", "| Networks whose two counts agree | 3 of 3 |",
        "| Networks whose output has the same bits | 3 of 3 |",
        "| Time of a signature, in bare forward passes, median | 1.5 |", "| Networks without any scored call | 0 |",
        "| resnet18 | 17k | 15 | 13 | 1 | 2 | ✓ | 3.0 |", "| vit\\_<wbr>tiny | 5.7M | 15 | 13 | 1 | 2 | ✓ | 1.5 |",
        "*Its input comes from a table* (6 calls): timm/other 2, timm/vit\\_<wbr>tiny 2, torchvision/resnet18 2.",
        "while they are watched, or errors:\n\nNone.",
    ):  # fmt: skip
        assert line in text, line
    assert text.index("resnet18") < text.index("other") < text.index("vit\\_<wbr>tiny")


@pytest.mark.parametrize(("change", "agree", "line"), [
    ({"scored": {"gelu": 13, "sigmoid": 1}}, 1, "3 `sigmoid` ran, but the signature has 13 `gelu` and 3 `sigmoid`."),
    ({"identical": False}, 2, "- timm/odd_one: the output changes while the network is watched."),
    ({"error": "ValueError: no batch"}, 1, "- timm/odd_one has no signature: ValueError: no batch"),
    ({"scored": {"relu_squared": 12, "sigmoid": 1}}, 2, "odd\\_<wbr>one: 12 `gelu` became 12 `relu_squared`."),
    ({"constant": {"gelu": 2, "sigmoid": 1}}, 2, "their score is NaN.\n\ntimm/odd\\_<wbr>one 3.\n\n## Calls under"),
    ({"scored": {}, "gates": 0}, 1, "Every call of odd\\_<wbr>one is excluded"),
])  # fmt: skip
def test_what_is_not_as_usual_is_named_and_leaves_the_totals(change, agree, line):
    text, usual = page(timm__good=ROW, timm__odd_one=ROW | change), page(timm__good=ROW)
    assert line in text and "- timm/good" not in text and f"two counts agree | {agree} of 2 |" in text
    assert "**Without a signature.** None:" in usual and "their score is NaN.\n\nNone.\n\n" in usual
