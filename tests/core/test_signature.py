"""Signatures: what they hold, and how they are stored."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from small_network import Dead, images, network

from affscore import Signature, signature
from affscore.calls import Call, Constant, Excluded, Undecided
from affscore.companions import MEASURES
from affscore.errors import AffscoreWarning
from affscore.measuring import batch_results
from affscore.settings import Settings
from affscore.signatures import SCHEMA


def test_dead_calls_are_undefined_and_stored(tmp_path):
    """Dead calls are undefined and flagged, they raise no error, and a stored signature keeps all of this."""
    x = torch.rand(20, 4) * 0.1 + 0.1
    result = signature(Dead(), [x, -x], provenance={"data": "made for the test"}, companions=True)
    assert result.dead.tolist() == [[False, False, True], [False, True, True]]
    assert result.mean[1] == result.scores[0, 1] and math.isnan(result.mean[2]) and math.isnan(result.std[2])
    assert "2 dead in some batch" in repr(result) and "dead" in result.table()
    for name in ("cka", "r2", "r2_held_out"):
        assert np.array_equal(np.isnan(result.companions[name]), result.dead), name
    assert np.isfinite(result.companions["norm"]).all() and (result.companions["sparsity_after"][:, 2] == 1).all()
    path = tmp_path / "result.json"
    result.save(path)
    again = Signature.load(path)
    np.testing.assert_array_equal(again.scores, result.scores)
    for name in MEASURES:
        np.testing.assert_array_equal(again.companions[name], result.companions[name])
    for name in ("calls", "excluded", "pool", "covariance", "batch_sizes", "provenance"):
        assert getattr(again, name) == getattr(result, name), name
    raw = json.loads(path.read_text())
    assert raw["schema"] == SCHEMA and raw["scores"][0][2] is None
    assert {"device", "versions", "started", "seconds", "model", "data"} <= set(raw["provenance"])


@pytest.fixture
def stored(tmp_path):
    """The file of a signature of two batches with one companion measure."""
    path = tmp_path / "result.json"
    signature(network(), images(), companions=["cka"]).save(path)
    return path


def test_a_file_that_was_cut_off_or_is_no_json_is_a_clear_error(stored):
    path, whole = stored, stored.read_bytes()
    cut = [whole[: int(fraction * (len(whole) - 2))] for fraction in (0.0, 0.3, 0.9, 0.999)]
    odd = [b"\xff\xfe", b"[" * 100_000, b'{"schema": ' + b"9" * 5000 + b"}", b'{"a": ' * 50_000]
    for data in (*cut, *odd):
        path.write_bytes(data)
        words = "result.json is not complete JSON .*was it cut off" if data in cut else "result.json is not"
        with pytest.raises(ValueError, match=words):
            Signature.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: raw.update(schema="other/9"), "has schema 'other/9'; it should be"),
        (lambda raw: raw.pop("calls"), "not a valid signature: KeyError"),
        (lambda raw: raw["scores"][0].pop(), "scores has a row of 2 numbers for 3 calls"),
        (lambda raw: raw["scores"][0].__setitem__(0, "high"), "scores holds 'high', which is not a finite number"),
        (lambda raw: raw["scores"][0].__setitem__(0, math.nan), "holds NaN, which is not JSON"),
        (lambda raw: raw["scores"][0].__setitem__(0, 10**400), "not a valid signature: OverflowError"),
        (lambda raw: raw["scores"][0].__setitem__(0, 1.01), "a score is above 1"),
        (lambda raw: raw.update(covariance="empirical", scores=[[-0.1] * 3] * 2), "without shrinkage is below 0"),
        (lambda raw: (raw["scores"].pop(), raw["companions"].clear()), "batch_sizes has 2 numbers for 1 batches"),
        (lambda raw: raw["calls"][0].pop("name"), "not a valid signature: TypeError"),
        (lambda raw: raw["calls"][0].update(ordinal="0"), r"the call '2:relu\[0\]' has a value of a wrong type"),
        (lambda raw: raw["calls"].__setitem__(0, raw["calls"][1]), "two calls have the same name"),
        (lambda raw: raw["calls"][0].update(ordinal=-1), "should be named"),
        (lambda raw: raw["calls"][0].update(shape=[6, -6, 6]), r"has the shape \(6, -6, 6\)"),
        (lambda raw: raw["calls"][0].update(channel_axis=-1), r"the channel_axis of '2:relu\[0\]' is -1"),
        (lambda raw: raw.update(pool="trailing"), r"the channel_axis of '2:relu\[0\]' is 1"),
        (lambda raw: raw.update(provenance=[]), r"provenance is \[\]; it should be a mapping"),
        (lambda raw: raw.update(companion={}), r"unknown keys \['companion'\]"),
        (lambda raw: raw["companions"].update(hsic=raw["scores"]), "companions names 'hsic'; the measures are 'cka'"),
        (lambda raw: raw["companions"]["cka"].pop(), r"the companion 'cka' has shape \(1, 3\)"),
        (lambda raw: raw.update(companions=[1]), "not a valid signature: AttributeError"),
    ],
)
def test_a_wrong_file_is_a_clear_error(stored, change, words):
    path = stored.with_name("changed.json")
    path.write_text(stored.read_text())
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=words):
        Signature.load(path)


def test_a_failed_save_keeps_the_old_file(stored):
    result, before = Signature.load(stored), stored.read_text()
    result.provenance["bad"] = object()
    with pytest.raises(TypeError):
        result.save(stored)
    assert stored.read_text() == before and list(stored.parent.iterdir()) == [stored]


def test_the_table_has_a_line_for_each_call():
    result = signature(network(), images())
    lines = result.table().splitlines()
    assert len(lines) == 4 and lines[3].endswith("gate") and "2:relu[0]" in lines[1]
    assert f"{result.mean[0]:.2f}" in lines[1] and f"{result.std[0]:.2f}" in lines[1]


def test_only_companions_asked_for_are_kept():
    """Only the companions that were asked for are kept, and they do not change the scores."""
    plain, some = (signature(network(), images(), companions=names) for names in (False, ["sparsity_after", "cka"]))
    assert not plain.companions and tuple(some.companions) == ("cka", "sparsity_after")
    assert np.array_equal(plain.scores, some.scores)


def test_results_that_do_not_belong_together_are_an_error():
    a, b = next(batch_results(network(), images(1))), next(batch_results(Dead(), [torch.randn(32, 5)]))
    c = next(batch_results(network(), images(1), Settings(companions=["cka"])))
    for results, words in (
        ([], "results is empty"),
        ([a, b], "differ from those of batch 0"),
        ([a, c], "the companions of batch 0 differ"),
    ):
        with pytest.raises(ValueError, match=words):
            Signature.from_results(results, pool="spatial", covariance="ledoit_wolf")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_sizes": [32, 1]}, "integers of at least 2"),
        ({"scores": [0.5]}, r"scores has shape \(1,\)"),
        ({"scores": [[math.inf], [0.5]]}, "a score is infinite"),
        ({"companions": {"norm": [[math.inf], [0.5]]}}, "the companion 'norm' is infinite"),
        ({"provenance": {"folder": Path()}}, "provenance cannot be stored as JSON: Object of type"),
        ({"calls": [Call("relu", "", "relu", 0, False, (3,), 1)]}, r"the call 'relu' should be named ':relu\[0\]'"),
    ],
)
def test_what_loading_refuses_cannot_be_made(change, words):
    sound = {"calls": [Call(":relu[0]", "", "relu", 0, False, (3,), 1)], "scores": [[0.5]] * 2, "batch_sizes": [9, 9]}
    Signature(**sound)
    with pytest.raises(ValueError, match=words):
        Signature(**sound | change)


def test_reasons_and_masks_are_stored_or_have_defaults(tmp_path):
    """The kind of exclusion and the mask of a call are stored, and files that lack them have defaults."""
    kinds, path = (Excluded, Constant, Undecided), tmp_path / "a.json"
    calls, excluded = (
        [Call(":relu[0]", "", "relu", 0, False, (3,), 1, True)],
        [kind(":tanh[0]", "why") for kind in kinds],
    )
    Signature(calls, [[0.5]], excluded, batch_sizes=[9]).save(path)
    loaded = Signature.load(path)
    assert (loaded.calls, loaded.excluded) == (calls, excluded) and [type(item) for item in loaded.excluded] == [*kinds]
    raw = json.loads(path.read_text())
    for entry in (*raw["calls"], *raw["excluded"]):
        entry.pop("masked", entry.pop("kind", None))
    path.write_text(json.dumps(raw))
    older = Signature.load(path)
    assert not older.calls[0].masked and [type(item) for item in older.excluded] == [Excluded] * 3


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^path: there is no file .*nothing\.json\.$"):
        Signature.load(tmp_path / "nothing.json")


def test_loading_an_unfinished_signature_warns(tmp_path):
    """A warning at loading names the number of batches of an unfinished signature."""
    path = tmp_path / "a.json"
    calls = [Call(":relu[0]", "", "relu", 0, False, (3,), 1)]
    Signature(calls, [[0.5]], batch_sizes=[9], provenance={"unfinished_of": 40}).save(path)
    with pytest.warns(AffscoreWarning, match=r"a\.json is unfinished: it has 1 of 40 batches\."):
        assert Signature.load(path).scores.tolist() == [[0.5]]


def made(**companions):
    calls = [Call(f"layer{i}:relu[0]", f"layer{i}", "relu", 0, False, (8,), 1) for i in range(3)]
    left = [Excluded("layer1:tanh[0]", "x"), Excluded("head:tanh[0]", "x")]
    options = {"batch_sizes": [4, 5], "companions": companions, "excluded": left}
    return Signature(calls, [[0.1, 0.2, 0.3], [0.3, 0.4, math.nan]], **options)


def test_a_part_is_chosen_by_names_and_keeps_what_belongs_to_it():
    whole = made(cka=[[1, 2, 3], [4, 5, 6]])
    part = whole["layer1*"]
    assert [call.name for call in part] == ["layer1:relu[0]"] and part.batch_sizes == whole.batch_sizes
    np.testing.assert_array_equal(part.scores, whole.scores[:, 1:2])
    np.testing.assert_array_equal(part.companions["cka"], [[2], [5]])
    assert [item.name for item in part.excluded] == ["layer1:tanh[0]"]
    assert [call.name for call in whole] == [call.name for call in whole["*"]]
    with pytest.raises(KeyError, match=r"'relu' matches the name of no call; the names include layer0:relu\[0\]"):
        whole["relu"]
    with pytest.raises(TypeError, match="the index is 0; it should be a pattern"):
        whole[0]


def test_the_twin_stands_beside_the_score_where_it_was_measured():
    twin = made(twin=[[0.9, 0.8, 0.7], [0.7, 0.6, 0.5]])
    assert [line.split()[3] for line in twin.table().splitlines()] == ["twin", "0.80", "0.70", "0.60"]
    assert "linear twins 0.60 to 0.80" in repr(twin) and "twin" not in repr(made()) + made().table()
