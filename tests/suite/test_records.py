"""Records: a file is complete or not there, whatever is changed in it is an error, numbers keep every bit, and who
renames records is alone with them."""

import errno
import hashlib
import json
import math
import os
import random
import resource
import signal
import struct
from dataclasses import asdict

import pytest
from small_run import forked

from affscore.calls import Call, Excluded
from affscore.signatures import BatchResult
from affscore.suite import records
from affscore.suite.records import RecordError, differences, merge, names, progress_of, read_batches, set_aside

RUN = {
    "batches": 3, "pool": "spatial", "covariance": "ledoit_wolf", "companions": ["norm"],
    "provenance": {"model": "net é", "data": {"seed": 0}},
}  # fmt: skip
SKIPPED = [{"file": 'a "quoted".png', "reason": "broken"}]


def batch(index, scores=(0.1, math.nan, 1e-300)):
    calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (4, 2), 1) for i in range(len(scores))]
    companions = {"norm": [math.nan, 1.7e308, 5e-324] * (len(scores) // 3)}
    return BatchResult(index, 16, calls, [Excluded("x", "why")], list(scores), companions)


def write(folder, index=0, run=RUN, **options):
    with records.held(folder, "net"):
        records.write_batch(folder, "net", run, batch(index, **options), SKIPPED)
    return folder / "records" / "net" / f"batch-{index:05}.json"


def bits(result):
    numbers = [*result.scores, *result.companions["norm"]]
    return [struct.pack("<d", value) for value in numbers]


def test_a_record_is_what_the_description_says(tmp_path):
    """Oracle: the checksum computed again from the text."""
    run = RUN | {"batches": 13}
    text = write(tmp_path, 12, run).read_text("ascii")
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(content) == ["schema", "run", "batch", "sha256"] and text.endswith("}\n")
    body = text[: text.rindex(', "sha256"')] + "}"
    assert hashlib.sha256(body.encode()).hexdigest() == content["sha256"]
    assert content["run"] == run and content["batch"]["skipped"] == SKIPPED
    assert [path.name for path in (tmp_path / "records" / "net").iterdir()] == ["batch-00012.json"]


def test_numbers_keep_every_bit(tmp_path):
    pick = random.Random(0)
    scores = [pick.random() for _ in range(150)] + [
        math.ldexp(pick.random(), -pick.randrange(1074)) for _ in range(146)
    ]
    scores += [5e-324, -0.0, math.nan, math.nextafter(1, 0)]
    write(tmp_path, scores=scores)
    run, found = read_batches(tmp_path, "net")
    result, skipped = found[0]
    assert run == RUN and skipped == SKIPPED and bits(result) == bits(batch(0, scores))
    assert result.calls == batch(0, scores).calls
    assert (result.excluded, result.size) == ([Excluded("x", "why")], 16)


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
    write(tmp_path, 1, RUN | {"batches": 4, "covariance": "empirical"})
    with pytest.raises(RecordError) as caught:
        merge(tmp_path, "net")
    assert str(caught.value).endswith(
        "batch-00001.json is the record of another run: batches is 4 there and 3 here; "
        "covariance is 'empirical' there and 'ledoit_wolf' here. With --restart it is renamed and measured anew."
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


def rechained(path, change):
    """Change a record and make its checksum anew, as somebody could who means it."""
    content = json.loads(path.read_bytes())
    del content["sha256"]
    change(content)
    checksum = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    path.write_text(json.dumps({**content, "sha256": checksum}) + "\n")


def put(value, *place):
    """A change: ``value`` at this place of a record."""

    def change(content):
        for key in place[:-1]:
            content = content[key]
        content[place[-1]] = value

    return change


def deep(levels):
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"": value}
    return value


IMPOSSIBLE = [
    put("7.5", "batch", "scores", 0), put("inf", "batch", "scores", 0), put("-inf", "batch", "scores", 0),
    put("half", "batch", "scores", 0), put(None, "batch", "scores", 0), put(["0.1"], "batch", "scores"),
    put("0.1", "batch", "scores"), put(None, "batch", "scores"),
    put("inf", "batch", "companions", "norm", 0), put(["0.1"], "batch", "companions", "norm"),
    put([], "batch", "companions"), put({}, "batch", "companions"), put({"size": []}, "batch", "companions"),
    put(None, "batch", "calls"), put([{"name": "x"}] * 3, "batch", "calls"), put("x", "batch", "calls", 0, "ordinal"),
    put(None, "batch", "calls", 0, "shape"), put([1.5], "batch", "calls", 0, "shape"),
    put("0:relu[0]", "batch", "calls", 1, "name"),
    put([{"name": "x"}], "batch", "excluded"), put(None, "batch", "excluded"),
    put(1, "batch", "size"), put("16", "batch", "size"), put(None, "batch", "size"),
    put("1", "batch", "index"), put(-1, "batch", "index"), put(2, "batch", "index"), put(None, "batch", "index"),
    put(None, "batch", "skipped"), put([{"file": "x"}], "batch", "skipped"), put([1], "batch", "skipped"),
    put(1, "batch", "more"), put({}, "batch"), put([], "batch"), put(None, "batch"), put(None, "schema"),
    put(None, "run"), put([], "run"), put({}, "run"), put("3", "run", "batches"), put(0, "run", "batches"),
    put(None, "run", "companions"), put("max", "run", "pool"), put("none", "run", "covariance"),
    put(None, "run", "provenance"), put({}, "run", "provenance"), put(deep(400), "run", "provenance"),
    lambda content: content.pop("batch"), lambda content: content.pop("schema"),
    lambda content: content["batch"].pop("size"),
]  # fmt: skip


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside a sound one"])
def test_a_record_with_impossible_values_is_an_error_that_names_it(tmp_path, alone):
    path = write(tmp_path, 1)
    if not alone:
        write(tmp_path, 0)
    sound = path.read_bytes()
    for number, change in enumerate(IMPOSSIBLE):
        path.write_bytes(sound)
        rechained(path, change)
        for attempt in (read_batches, progress_of, merge):
            with pytest.raises(RecordError, match=r"batch-00001\.json"):
                attempt(tmp_path, "net")
                pytest.fail(f"{attempt.__name__} takes change {number}")


def test_records_with_different_calls_do_not_belong_together(tmp_path):
    write(tmp_path, 0)
    rechained(write(tmp_path, 1), put(asdict(Call("9:relu[0]", "9", "relu", 0, False, (4, 2), 1)), "batch", "calls", 1))
    with pytest.raises(RecordError, match=r"batch-00001\.json is not a valid .*calls are not those of the first"):
        progress_of(tmp_path, "net")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[]", '["batch"]', "1" * 5000])
def test_a_file_that_is_no_record_is_damaged(tmp_path, text):
    path = write(tmp_path)
    path.write_text(text)
    with pytest.raises(RecordError, match=r"batch-00000\.json is damaged"):
        merge(tmp_path, "net")


def test_what_no_signature_could_hold_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="scores holds -inf"):
        write(tmp_path, scores=(0.1, -math.inf, 0.2))
    assert not list((tmp_path / "records" / "net").iterdir())


@pytest.mark.parametrize("make", [
    lambda path: os.mkfifo(path),
    lambda path: path.symlink_to(path.parents[2] / "outside"),
    lambda path: path.symlink_to(path.parents[2] / "nowhere"),
], ids=["pipe", "link", "link to nowhere"])  # fmt: skip
def test_what_is_no_file_of_ours_is_neither_read_nor_written(tmp_path, make):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    path = tmp_path / "records" / "net" / "batch-00000.json"
    path.parent.mkdir(parents=True)
    make(path)
    for attempt in (lambda: write(tmp_path), lambda: merge(tmp_path, "net")):
        with pytest.raises(RecordError, match=r"batch-00000\.json is damaged"):
            attempt()
    assert outside.read_text() == "mine" and not (tmp_path / "nowhere").exists()


def test_the_record_of_another_run_is_not_replaced(tmp_path):
    before = write(tmp_path).read_bytes()
    with pytest.raises(RecordError, match="the record of another run: covariance is 'ledoit_wolf' there and 'emp"):
        write(tmp_path, run=RUN | {"covariance": "empirical"})
    assert write(tmp_path).read_bytes() == before


def test_records_that_are_being_written_are_not_renamed(tmp_path):
    """Writers share them, here and in another process; who sets them aside is refused until all have ended."""
    path = write(tmp_path)
    hear, tell = os.pipe()
    child = forked(lambda: hold(tmp_path, tell))
    try:
        assert os.read(hear, 1) == b"!"
        with records.held(tmp_path, "net"):
            pass
        with pytest.raises(RecordError, match=r"records/net is being written by another process; wait for it to end"):
            set_aside(tmp_path, "net")
        assert path.exists() and len(list((tmp_path / "records").iterdir())) == 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert set_aside(tmp_path, "net") == [tmp_path / "records" / "net.old1"]


def test_children_of_a_writer_do_not_hold_what_it_left(tmp_path):
    """Data workers are forked, and may end later than the run they served."""
    with records.held(tmp_path, "net"):
        child = forked(signal.pause)
    try:
        assert len(set_aside(tmp_path, "net")) == 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def hold(folder, tell):
    with records.held(folder, "net"):
        os.write(tell, b"!")
        signal.pause()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_disk_without_locks_keeps_nobody_out(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, "planted")

    monkeypatch.setattr(records.fcntl, "flock", refuse)
    with records.held(tmp_path, "net"):
        write(tmp_path)
        assert len(set_aside(tmp_path, "net")) == 1


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
    with pytest.raises(OSError, match=r"the folder .*records/net cannot be made \(Not a directory\)\.") as caught:
        write(tmp_path)
    assert caught.value.errno == errno.ENOTDIR


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(OSError, match=r"the record .*batch-00000\.json cannot be written \(No such file"):
        records.write_batch(tmp_path, "net", RUN, batch(0), SKIPPED)
