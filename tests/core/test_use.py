"""What makes the function fit the hand: chosen calls, rows, pictures, devices, errors and where warnings point."""

import ast
import inspect
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_network import Dead, Made, images, network
from torch import nn

import affscore
import affscore.forward
import affscore.tracing
from affscore import AffscoreError, AffscoreWarning, SignatureError, signature
from affscore.settings import Settings
from affscore.torch_internals import TESTED
from affscore_study.suite.requests import RunError
from affscore_study.suite.suites import SuiteError

ROOT = Path(affscore.__file__).parents[1]
NAMES = ["2:relu[0]", "4:silu[0]", "7:sigmoid[0]"]


@pytest.mark.parametrize(
    ("pattern", "left"), [("4*", NAMES[1:2]), ("*:relu[0]", NAMES[:1]), ("*:si*", NAMES[1:]), ("?:*", NAMES)]
)
def test_only_calls_asked_for_are_scored(pattern, left):
    """Only the calls that match the pattern are scored, and their scores are those of a full signature."""
    whole = signature(network(), images(), companions=["cka"])
    chosen = signature(network(), images(), companions=["cka"], calls=pattern)
    places = [NAMES.index(name) for name in left]
    assert [call.name for call in chosen.calls] == left and chosen.provenance["calls"] == pattern
    np.testing.assert_array_equal(chosen.scores, whole.scores[:, places])
    np.testing.assert_array_equal(chosen.companions["cka"], whole.companions["cka"][:, places])


def test_other_modules_are_not_pooled(monkeypatch):
    """Activations outside of the modules asked for are not pooled."""
    pooled = []
    inner = affscore.tracing.pooled
    monkeypatch.setattr(affscore.tracing, "pooled", lambda x, *rest: pooled.append(x.shape) or inner(x, *rest))
    signature(network(), images(1), calls="7:*")
    assert pooled == [(32, 20)] * 2


def test_activation_begun_outside_the_pattern_is_reported():
    """An activation that begins outside of the modules asked for is reported in a warning and not scored."""
    model = nn.Module()
    model.gate, model.end = nn.Sigmoid(), Made(lambda x, y: x * y)
    model.forward = lambda x: model.end(x, model.gate(x))
    assert [call.name for call in signature(model, [torch.randn(20, 4)]).calls] == ["end:silu[0]"]
    with pytest.warns(AffscoreWarning, match="end:silu.0. is not scored: it starts in a module that the pattern"):
        assert not signature(model, [torch.randn(20, 4)], calls="end:*").calls


def test_pattern_without_a_match_is_an_error():
    """A pattern that matches no call is an error that lists the calls."""
    with pytest.raises(SignatureError, match=r"calls is 'layer3\.\*', which matches no call .* 2:relu\[0\], 4:silu"):
        signature(network(), images(1), calls="layer3.*")


def test_the_function_spells_out_every_setting_with_its_default():
    spelled = inspect.signature(signature).parameters
    for name, default in vars(Settings()).items():
        assert spelled[name].default == (default if name != "channel_axis" else None), name
        assert spelled[name].annotation is not inspect.Parameter.empty
    assert all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in spelled.values())


def test_the_device_auto_is_a_gpu_only_where_there_is_one(monkeypatch):
    asked = affscore.measuring.resolve_device
    for there, device in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert asked(network(), "auto").type == device


def test_rows_hold_plain_values():
    found = signature(Dead(), [torch.full((4, 3), -9.0) + torch.randn(4, 3), torch.randn(4, 3) + 9], companions=["cka"])
    rows = found.rows()
    assert len(rows) == len(found) == 3 and [row["call"] for row in rows] == [call.name for call in found.calls]
    assert {type(value) for row in rows for value in row.values()} == {str, int, bool, tuple, float}
    np.testing.assert_array_equal([row["score"] for row in rows], found.mean)
    for row, values in zip(rows, found.companions["cka"].T, strict=True):
        known = [value for value in values if not math.isnan(value)]
        assert row["cka"] == pytest.approx(sum(known) / len(known) if known else math.nan, nan_ok=True)


def test_a_notebook_shows_the_picture_and_the_table(monkeypatch):
    found = signature(network(), images(1), provenance={"model": "<b>"})
    shown = found._repr_html_()
    assert 'src="data:image/png;base64,' in shown and "4:silu[0]" in shown
    assert "&lt;b&gt;" in shown and "<b>" not in shown
    monkeypatch.setitem(sys.modules, "affscore.plots", None)
    assert "<img" not in found._repr_html_() and "4:silu[0]" in found._repr_html_()


def test_the_plot_draws_the_twins_that_were_measured():
    found = signature(network(), images(1), companions=["twin"])
    drawn = {line.get_label(): line.get_ydata() for line in found.plot(twin=True).lines}
    np.testing.assert_array_equal(drawn["linear twins"], found.companions["twin"][0])
    assert "linear twins" not in {line.get_label() for line in found.plot().lines}
    with pytest.raises(ValueError, match="the twins were not measured"):
        signature(network(), images(1)).plot(twin=True)


@pytest.mark.parametrize("progress", [False, True])
def test_network_without_activations_warns_at_the_line(progress):
    """A network without activations has an empty signature, and the warning points at the caller's line."""
    with pytest.warns(AffscoreWarning, match="no activation call was detected") as caught:
        result = signature(nn.Linear(3, 2), [torch.randn(8, 3)], progress=progress)
    assert result.scores.shape == (1, 0) and "0 activation calls, 1 batch" in repr(result)
    assert [warning.filename for warning in caught] == [__file__]


def test_the_warning_of_a_function_points_at_the_line():
    x = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.warns(AffscoreWarning, match="x and y vary so little") as caught:
        affscore.affinity_score((1e6 + x).astype("f4"), (2e6 + x).astype("f4"))
    assert [warning.filename for warning in caught] == [__file__]


def test_the_errors_of_the_package_have_one_base():
    for kind in (SignatureError, SuiteError, RunError):
        assert issubclass(kind, AffscoreError) and issubclass(kind, ValueError)


def test_zoo_is_at_the_top_and_imported_on_demand():
    """Networks and data sets are available at the top of the package, which imports them only on demand."""
    code = "import sys, affscore; assert 'affscore.zoo' not in sys.modules and 'load_model' in dir(affscore)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert affscore.load_model.__module__ == "affscore.zoo.models" and "load_dataset" in dir(affscore)
    assert affscore.load_dataset.__module__ == "affscore.zoo.datasets"
    with pytest.raises(AttributeError, match="no attribute 'load_modle'"):
        affscore.load_modle  # noqa: B018


def test_what_is_private_in_pytorch_is_used_in_one_file_only():
    private = re.compile(r"torch(\.\w+)*\._(?!_)\w|\b(_schema|_cdata|_op_dk|_version)\b")
    for path in sorted((ROOT / "affscore").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        used += [f"{node.module}.{each.name}" for node in imports for each in node.names]
        found = [name for name in used if private.search(name) and name != "self._version"]
        assert bool(found) == (path.name == "torch_internals.py"), (path, found)


def test_the_version_of_pytorch_that_is_tested_is_the_locked_one():
    assert f"\ntorch=={TESTED}\n" in (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_a_pytorch_that_lacks_something_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "affscore.torch_internals")
    monkeypatch.setitem(sys.modules, "torch.utils.weak", None)
    with pytest.raises(ImportError, match=rf"was tested with PyTorch {TESTED}; version .* lacks something it needs"):
        __import__("affscore.torch_internals")
