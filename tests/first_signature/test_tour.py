"""Where the inputs of every call lie, against a count by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from affscore import signature
from affscore_book.first_signature.tour import BINS, RANGE, load_tour
from affscore_book.first_signature.twins import load_twins
from affscore_book.first_signature.widget import SignatureTour
from affscore_book.first_signature.zigzag import load_zigzag
from affscore_study.first_signature.tour import inputs_of_calls
from affscore_study.first_signature.yardsticks import load_yardsticks


def network() -> nn.Module:
    torch.manual_seed(0)
    activation = nn.ReLU6()  # one module, called twice
    return nn.Sequential(nn.Linear(3, 5), activation, nn.Linear(5, 4), activation).eval()


def test_bars_and_shares_are_those_of_the_inputs():
    model, x = network(), 5 * torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    rows = inputs_of_calls(model, x.split(64), signature(model, [x]))
    with torch.no_grad():
        inputs = [model[0](x).numpy(), model[2](model[1](model[0](x))).numpy()]
    for row, values in zip(rows, inputs, strict=True):
        counts, _ = np.histogram(values.astype(np.float64), bins=BINS, range=RANGE)
        np.testing.assert_allclose(row["heights"], 100 * counts / counts.max(), atol=0.51)
        assert row["below"] == pytest.approx(100 * (values < 0).mean(), abs=0.051)
        assert row["above"] == pytest.approx(100 * (values > 6).mean(), abs=0.051)
    assert [row["score"] for row in rows] == pytest.approx(signature(model, [x]).mean, abs=5e-5)
    assert not any(module._forward_pre_hooks for module in model.modules())
    with pytest.raises(ValueError, match=r"calls ReLU6 2 times; the signature has 1 calls"):
        inputs_of_calls(model, [x], signature(model[:2], [x]))


def test_the_stored_tour_is_complete():
    calls = load_tour("book/data")
    assert len(calls) == 33 and {len(call["heights"]) for call in calls} == {BINS}
    twins = load_twins("book/data/first_signature/twins.json")
    np.testing.assert_allclose([call["score"] for call in calls], twins["score"][0], atol=2e-4)
    np.testing.assert_allclose([call["twin"] for call in calls], twins["twin"][0], atol=1e-4)
    widget = SignatureTour(calls=calls, call=33)
    assert widget.score() == calls[-1]["score"] and "the head: " in widget.picture()
    assert np.isnan(SignatureTour(calls=calls, call=34).score())


@pytest.mark.parametrize(("load", "name", "content"), [
    (load_twins, "twins", '{"draws": {"1": {"score": [1.0]}}}'),
    (load_yardsticks, "yardsticks", '{"blocks": {"score": [[1, 2, 3, 4]]}}'),
    (load_zigzag, "zigzag", '{"networks": {"a": [{"number": 1}]}}'),
])  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path, load, name, content):
    (tmp_path / f"{name}.json").write_text(content)
    with pytest.raises(ValueError, match=rf"is not a complete file of book/data/first_signature/{name}\.py"):
        load(tmp_path / f"{name}.json")
