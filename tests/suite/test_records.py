"""Records: a file is complete or not there, whatever is changed in it is an error, and numbers keep every bit."""

import errno
import hashlib
import json
import math
import os
import random
import resource
import struct

import pytest

from affscore.signature import BatchResult
from affscore.suite import records
from affscore.suite.records import RecordError, differences, merge, names, progress_of, read_batches, set_aside
from affscore.tracing import Call, Excluded

RUN = {
    "batches": 3, "pool": "spatial", "covariance": "ledoit_wolf", "companions": ["cka"],
    "provenance": {"model": "net é", "data": {"seed": 0}},
}  # fmt: skip
CALLS = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (4, 2), 1) for i in range(3)]
SKIPPED = [{"file": 'a "quoted".png', "reason": "broken"}]


def batch(index, scores=(0.1, math.nan, 1e-300)):
    companions = {"cka": [math.inf, -math.inf, -0.0]}
    return BatchResult(index, 16, CALLS, [Excluded("x", "why")], list(scores), companions)


def write(folder, index=0, run=RUN, **options):
    records.write_batch(folder, "net", run, batch(index, **options), SKIPPED)
    return folder / "records" / "net" / f"batch-{index:05}.json"


def bits(result):
    numbers = [*result.scores, *result.companions["cka"]]
    return [struct.pack("<d", value) for value in numbers]


def test_a_record_is_what_the_description_says(tmp_path):
    """Oracle: the checksum computed again from the text."""
    text = write(tmp_path, 12).read_text("ascii")
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(content) == ["schema", "run", "batch", "sha256"] and text.endswith("}\n")
    body = text[: text.rindex(', "sha256"')] + "}"
    assert hashlib.sha256(body.encode()).hexdigest() == content["sha256"]
    assert content["run"] == RUN and content["batch"]["skipped"] == SKIPPED
    assert [path.name for path in (tmp_path / "records" / "net").iterdir()] == ["batch-00012.json"]


def test_numbers_keep_every_bit(tmp_path):
    pick = random.Random(0)
    scores = [struct.unpack("<d", pick.randbytes(8))[0] for _ in range(300)] + [5e-324, -0.0, 0.1, math.pi]
    scores = [math.nan if math.isnan(value) else value for value in scores]
    write(tmp_path, scores=scores)
    run, found = read_batches(tmp_path, "net")
    result, skipped = found[0]
    assert run == RUN and skipped == SKIPPED and bits(result) == bits(batch(0, scores))
    assert (result.calls, result.excluded, result.size) == (CALLS, [Excluded("x", "why")], 16)


def test_every_changed_byte_and_every_cut_is_found(tmp_path):
    write(tmp_path, 0)
    path, pick = write(tmp_path, 1), random.Random(0)
    whole = path.read_bytes()
    spoiled = [whole[:length] for length in range(0, len(whole), 7)] + [whole + b"\n", b"[]", b'"', b"\0" * 9, b"\xff"]
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << pick.randrange(8)
        spoiled.append(bytes(changed))
    for data in spoiled:
        path.write_bytes(data)
        with pytest.raises(RecordError, match=r"the record .*batch-00001\.json is damaged: it was changed after"):
            read_batches(tmp_path, "net")
        assert path.read_bytes() == data


def test_a_file_under_another_name_is_damaged(tmp_path):
    path = write(tmp_path, 1)
    path.rename(path.with_name("batch-00002.json"))
    with pytest.raises(RecordError, match=r"batch-00002\.json is damaged"):
        progress_of(tmp_path, "net")


def test_another_run_is_refused_by_name(tmp_path):
    write(tmp_path, 0)
    write(tmp_path, 1, RUN | {"batches": 4, "pool": "trailing"})
    with pytest.raises(RecordError) as caught:
        merge(tmp_path, "net")
    assert str(caught.value).endswith(
        "batch-00001.json is the record of another run: batches is 4 there and 3 here; "
        "pool is 'trailing' there and 'spatial' here."
    )


def test_differences_of_nested_values():
    assert differences(RUN, json.loads(json.dumps(RUN))) == []
    assert differences({"a": [1, 2], "b": {"c": 0}}, {"a": [1, 3], "d": None}) == [
        "a is [1, 2] there and [1, 3] here", "b is {'c': 0} there and None here",
    ]  # fmt: skip


def test_another_schema_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "SCHEMA", "affscore.batch/2")
    write(tmp_path)
    monkeypatch.undo()
    with pytest.raises(RecordError, match=r"has schema 'affscore.batch/2'; it should be 'affscore.batch/1'"):
        read_batches(tmp_path, "net")


def test_records_of_the_old_form_are_an_error_in_a_sentence(tmp_path):
    (tmp_path / "records").mkdir()
    old = tmp_path / "records" / "net.0.jsonl"
    old.write_text('{"header": {}}\n')
    assert names(tmp_path) == ["net"]
    for attempt in (read_batches, progress_of, merge):
        with pytest.raises(RecordError, match=r"net\.0\.jsonl is a record of an older form, which cannot be read"):
            attempt(tmp_path, "net")
    assert set_aside(tmp_path, "net") == [old.with_name("net.0.jsonl.old1")]
    assert progress_of(tmp_path, "net") == (0, 0) and names(tmp_path) == []


def test_what_is_set_aside_is_renamed_together(tmp_path):
    for number in (1, 2):
        path = write(tmp_path)
        (tmp_path / "net.json").write_text(str(number))
        before = path.read_bytes()
        aside = set_aside(tmp_path, "net")
        assert aside == [tmp_path / f"net.json.old{number}", tmp_path / "records" / f"net.old{number}"]
        assert (aside[1] / path.name).read_bytes() == before and aside[0].read_text() == str(number)
    assert names(tmp_path) == [] and set_aside(tmp_path, "net") == []


def test_merging_needs_every_batch(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no record of net"):
        merge(tmp_path, "net")
    write(tmp_path, 2)
    with pytest.raises(RecordError, match=r"the records of net in .* hold 1 of 3 batches; missing 0, 1\."):
        merge(tmp_path, "net")
    assert records.some(range(20)) == "0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
    write(tmp_path, 0)
    write(tmp_path, 1)
    found = merge(tmp_path, "net")
    assert found.batch_sizes == [16] * 3 and found.provenance["data"]["skipped"] == SKIPPED * 3
    assert progress_of(tmp_path, "net") == (3, 3)


# What is in a batch already that is written again, to see that it stays; or nothing.
@pytest.fixture(params=[False, True], ids=["new", "again"])
def before(request, tmp_path):
    return write(tmp_path, scores=(0.5, 0.5, 0.5)).read_bytes() if request.param else None


def check(path, before):
    """The file is as it was, and nothing lies beside it."""
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(path.parent.iterdir())) == (before is not None)


def test_a_record_is_on_the_disk_before_it_is_in_its_place(tmp_path, monkeypatch, before):
    path, really, synced = tmp_path / "records" / "net" / "batch-00000.json", os.fsync, []

    def sync(file):
        synced.append(os.fstat(file).st_size)
        assert (path.read_bytes() if path.exists() else None) == before
        really(file)

    monkeypatch.setattr(records.os, "fsync", sync)
    assert write(tmp_path).stat().st_size == synced[0] and len(synced) == 1


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch, before, error):
    def fail(_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(records.os, "fsync", fail)
        with pytest.raises(type(error), match=r"cannot be written \(No space left" if error.args else None) as caught:
            write(tmp_path)
    if error.args:
        assert caught.value.errno == errno.ENOSPC and "Errno" not in str(caught.value)
    check(tmp_path / "records" / "net" / "batch-00000.json", before)


@pytest.mark.parametrize("room", [0, 1, 300])
def test_a_full_disk_of_the_system(tmp_path, before, room):
    """The system itself cuts the write short and then refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        with pytest.raises(OSError, match=r"the record .*batch-00000\.json cannot be written"):
            write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(tmp_path / "records" / "net" / "batch-00000.json", before)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "records").write_text("")
    with pytest.raises(OSError, match=r"the record .*records/net/batch-00000\.json cannot be written \(Not a dir"):
        write(tmp_path)
