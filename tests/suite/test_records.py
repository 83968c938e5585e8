"""Records: whatever is cut off is noticed and done again, whatever else is changed is an error."""

import errno
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import warnings

import pytest

from affscore.suite import records
from affscore.suite.records import Record, RecordError, differences, read_record

HEADER = {"model": "net", "batches": 3, "settings": {"pool": "spatial", "seed": 0}}
LINES = [("calls", {"calls": ["a", "b"], "note": 'quote " and\nnewline é'})]
LINES += [("batch", {"index": k, "scores": [0.1 * k, None, 1e-300]}) for k in range(3)]


def write(path, lines=LINES, header=HEADER):
    with Record(path, header) as record:
        for line in lines:
            record.append(*line)
    return path


def go_on(path):
    """What a run does: append what is not there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with Record(path, HEADER) as record:
            done = list(record.lines)
            assert done == LINES[: len(done)]
            for line in LINES[len(done) :]:
                record.append(*line)
    return len(done)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sub" / "net.0.jsonl"


def test_a_record_is_what_the_description_says(path):
    """Oracle: the checksums computed again from the text, line by line."""
    before, found = "", []
    for text in write(path).read_bytes().decode("ascii").splitlines(keepends=True):
        assert text.endswith("\n")
        line = json.loads(text)
        checksum = line.pop("sha256")
        ((kind, content),) = line.items()
        body = text.removesuffix("\n").removesuffix(f',"sha256":"{checksum}"}}') + "}"
        assert json.loads(body) == line
        assert hashlib.sha256((before + body).encode()).hexdigest() == checksum
        before = checksum
        found.append((kind, content))
    assert found == [("header", {"schema": "affscore.record/1", **HEADER}), *LINES]
    content = read_record(path)
    assert (content.header, content.lines, content.torn, content.checksum) == (HEADER, LINES, False, before)
    assert content.length == path.stat().st_size


def test_cut_off_at_every_single_byte_it_goes_on_to_the_same_bytes(path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda _: None)  # slow, and nothing to do with it
    whole = write(path).read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        content = read_record(path)
        assert content.torn == (length not in [0, *ends]), length
        assert go_on(path) == max(sum(end <= length for end in ends) - 1, 0), length
        assert path.read_bytes() == whole, length


def test_what_is_cut_off_is_announced(path):
    write(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(UserWarning, match=r"the last line of .*net\.0\.jsonl was incomplete and is cut off"):
        Record(path, HEADER).close()


@pytest.mark.parametrize("garbage", [b"\0" * 300, b'{"batch"', b"\xff\xfe", b"\n", b"{}\n", b"\0\0\n"])
def test_rubbish_after_a_loss_of_power_is_cut_off(path, garbage):
    whole = write(path).read_bytes()
    path.write_bytes(whole + garbage)
    assert read_record(path).torn and go_on(path) == len(LINES) and path.read_bytes() == whole


@pytest.mark.parametrize("seed", range(4))
def test_every_changed_byte_is_found(path, seed):
    """In the last line it is as if the line were incomplete; in any other it is an error that names the line."""
    whole, pick = write(path).read_bytes(), random.Random(seed)
    last = whole.rindex(b"\n", 0, -1)
    for _ in range(60):
        place = pick.randrange(len(whole))
        changed = bytearray(whole)
        changed[place] ^= 1 << pick.randrange(8)
        path.write_bytes(changed)
        if place >= last:  # without the newline before it, the last line and its neighbour are one
            content = read_record(path)
            assert content.torn and content.lines == LINES[: -1 if place > last else -2]
        else:
            number = whole.count(b"\n", 0, place) + 1
            with pytest.raises(RecordError, match=rf"line ({number}|{number + 1}) of the record|is not a record"):
                read_record(path)
            with pytest.raises(RecordError):
                Record(path, HEADER)
        assert path.read_bytes() == changed


@pytest.mark.parametrize(("order", "line"), [
    ([0, 2, 3, 4], 2), ([0, 1, 3, 4], 3), ([0, 2, 1, 3, 4], 2), ([0, 1, 2, 2, 3, 4], 4), ([1, 2, 3, 4], None),
])  # fmt: skip
def test_lines_removed_repeated_or_moved(path, order, line):
    lines = write(path).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[k] for k in order))
    with pytest.raises(RecordError, match="is not a record" if line is None else f"line {line} of .* is damaged"):
        read_record(path)


@pytest.mark.parametrize("content", [b"notes", b"notes\n", b"\n", b'{"a": 1}\n', b"{", b'{"header":{"schema":"x'])
def test_another_file_is_never_touched(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    if content == b"{":  # the beginning of a header, as a killed run may leave it
        assert go_on(path) == 0
        return
    with pytest.raises(RecordError, match="is not a record: it should begin with"):
        Record(path, HEADER)
    assert path.read_bytes() == content


def test_other_schema(path, monkeypatch):
    monkeypatch.setattr(records, "SCHEMA", "affscore.record/2")
    write(path)
    monkeypatch.undo()
    with pytest.raises(RecordError, match=r"schema 'affscore.record/2'; it should be 'affscore.record/1'"):
        read_record(path)


def test_other_header_is_refused_by_name(path):
    before = write(path).read_bytes()
    other = {"model": "net", "batches": 4, "settings": {"pool": "trailing", "extra": True}}
    with pytest.raises(RecordError) as caught:
        Record(path, other)
    for part in ("batches is 3 there and 4 here", "settings.pool is 'spatial'", "settings.seed is 0 there and None",
                 "settings.extra is None there and True here"):  # fmt: skip
        assert part in str(caught.value)
    assert "model" not in str(caught.value)
    assert path.read_bytes() == before
    Record(path, HEADER).close()  # and the lock was given back


def test_differences_of_equal_values():
    assert differences(HEADER, json.loads(json.dumps(HEADER))) == []
    assert differences({"a": [1, 2]}, {"a": [1, 3]}) == ["a is [1, 2] there and [1, 3] here"]


def test_missing_file_is_empty(path):
    content = read_record(path)
    assert (content.header, content.lines, content.length, content.torn) == (None, [], 0, False)


def test_nan_is_refused_and_leaves_the_record_whole(path):
    with Record(path, HEADER) as record:
        before = path.read_bytes()
        with pytest.raises(ValueError):
            record.append("batch", float("nan"))
        assert path.read_bytes() == before
        record.append("batch", 1)
    assert read_record(path).lines == [("batch", 1)]


# ----------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("step", [1, 7])
def test_writes_that_stop_short_are_continued(path, tmp_path, monkeypatch, step):
    whole = write(tmp_path / "whole.jsonl").read_bytes()
    write_really = os.write
    monkeypatch.setattr(records.os, "write", lambda file, data: write_really(file, data[:step]))
    assert write(path).read_bytes() == whole


def test_each_line_is_on_the_disk_before_append_returns(path, monkeypatch):
    synced = []
    really = os.fsync
    monkeypatch.setattr(records.os, "fsync", lambda file: synced.append(os.fstat(file).st_size) or really(file))
    with Record(path, HEADER) as record:
        assert synced[0] == path.stat().st_size  # the file, then its folder
        assert len(synced) == 2
        record.append(*LINES[0])
        assert synced[2] == path.stat().st_size


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_failed_write_leaves_the_record_as_it_was(path, monkeypatch, error):
    write_really = os.write

    def half(file, data):
        if len(data) < 10:
            raise error
        return write_really(file, data[: len(data) // 2])

    whole = write(path).read_bytes()
    with Record(path, HEADER) as record:
        with monkeypatch.context() as patch:
            patch.setattr(records.os, "write", half)
            with pytest.raises(type(error), match="cannot be written .No space left" if error.args else None) as caught:
                record.append("batch", {"index": 3})
        if error.args:
            assert caught.value.errno == errno.ENOSPC and "Errno" not in str(caught.value)
        assert path.read_bytes() == whole
        record.append("batch", {"index": 3})
    assert read_record(path).lines == [*LINES, ("batch", {"index": 3})]


@pytest.mark.parametrize("room", [0, 1, 30])
def test_full_disk_of_the_system(path, room):
    """The system itself cuts the write short and then refuses."""
    whole = write(path).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Record(path, HEADER) as record:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + room, hard))
            with pytest.raises(OSError, match="cannot be written"):
                record.append("batch", {"index": 3, "scores": [0.5] * 50})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == whole


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"the record .*file/a.jsonl cannot be written"):
        Record(tmp_path / "file" / "a.jsonl", HEADER)


# -------------------------------------------------------------------------------------------------- locks


def test_one_writer_within_a_process(path):
    with Record(path, HEADER) as record:
        with pytest.raises(RecordError, match="written by this very process"):
            Record(path, HEADER)
        record.append(*LINES[0])
    Record(path, HEADER).close()


HOLD = """
    import fcntl, os, sys, time
    file = open(sys.argv[1], "a+")
    fcntl.lockf(file, fcntl.LOCK_EX)
    file.truncate(0); file.write(f"process {os.getpid()} on elsewhere\\n"); file.flush()
    if os.fork() == 0:      # like a data worker: lives on, and must not keep the lock
        time.sleep(60); os._exit(0)
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_writer_among_processes_until_it_is_killed(path):
    before = write(path).read_bytes()
    command = [sys.executable, "-c", textwrap.dedent(HOLD), str(path.with_suffix(".lock"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            message = rf"net\.0\.jsonl is being written by process {holder.pid} on elsewhere; wait for it"
            with pytest.raises(RecordError, match=message):
                Record(path, HEADER)
            assert path.read_bytes() == before
            holder.kill()
            holder.wait()
            Record(path, HEADER).close()  # though its child lives
        finally:
            os.killpg(holder.pid, signal.SIGKILL)


def test_file_system_without_locks(path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(records.fcntl, "lockf", none)
    with pytest.warns(UserWarning, match="has no locks"):
        write(path)
    assert read_record(path).lines == LINES


def test_record_knows_its_name(path):
    with Record(path, HEADER) as record:
        assert repr(record) == f"Record({str(path)!r}, 0 lines)"
