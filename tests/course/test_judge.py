"""One answer can neither read nor change what another student said or was told, and ends nobody else's run."""

import pytest

from affscore_book.course import judge
from affscore_book.course.judge import run_apart

RIGHT = "my_share = 0.3034703884"
STEP = {
    "setup": "from affscore_book.relu_1d import exercises", "names": ["my_share"],
    "check": "exercises.check_half(my_share)",
}  # fmt: skip
EVERY_FILE = """
import os, stat
def every_file(flags):
    for fd in [f"/proc/{os.getppid()}/fd/{n}" for n in range(64)] + [f"/proc/self/fd/{n}" for n in range(64)]:
        try:
            if not stat.S_ISCHR(os.stat(fd).st_mode):
                yield os.open(fd, flags | os.O_NONBLOCK)
        except OSError:
            pass
"""
SLOW = "stops the process above"
ENDS = "ends the process above"  # as Bob does in test_verify.py, every time
ATTACKS = {
    "rewrites the files of the process above": EVERY_FILE
    + """
for fd in every_file(os.O_RDWR):
    try:
        os.pwrite(fd, os.pread(fd, 10**6, 0).replace(b'"right"', b'"wrong"'), 0)
    except OSError:
        pass
""",
    "writes verdicts on everybody into every pipe": EVERY_FILE
    + """
import json
lines = [[0, "a", "wrong", ""], [2, "b", "wrong", ""], ["", "wrong", ""], ["wrong", ""]] * 50
for fd in every_file(os.O_WRONLY):
    try:
        os.write(fd, b"".join(json.dumps(line).encode() + b"\\n" for line in lines) + b"half a line")
    except OSError:
        pass
""",
    ENDS: "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    SLOW: "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
    "removes the folder of the process above": "import os, shutil\nshutil.rmtree(f'/proc/{os.getppid()}/cwd/')",
}
OFTEN, WEEKLY = sorted(ATTACKS.keys() - {SLOW, ENDS}), [SLOW, ENDS]


@pytest.mark.parametrize("attack", [*OFTEN, *(pytest.param(name, marks=pytest.mark.weekly) for name in WEEKLY)])
def test_the_verdicts_on_the_others_stay_right(attack, monkeypatch):
    monkeypatch.setattr(judge, "MORE_SECONDS", 5)
    students = [("Ada", {"a": [RIGHT], "b": [RIGHT]}), ("Eve", {"a": [ATTACKS[attack]]}), ("Zoe", {"b": [RIGHT]})]
    found = run_apart({"seconds": 6, "steps": [STEP | {"label": "a"}, STEP | {"label": "b"}], "students": students})
    own = found.pop((1, "a"))
    assert {each: verdict for each, (verdict, _) in found.items()} == {
        (0, "a"): "right", (0, "b"): "right", (2, "b"): "right",
    }  # fmt: skip
    assert own[0] == "error"


def test_the_answers_of_the_others_cannot_be_read():
    """Neither from standard input nor from a pipe of the process above, nor among the objects of the own one."""
    answer = (
        EVERY_FILE
        + """
import gc, sys
try:
    os.lseek(0, 0, 0)
except OSError:
    pass
seen = [os.read(0, 10**6)]
for fd in every_file(os.O_RDONLY):
    try:
        seen.append(os.read(fd, 10**6))
    except OSError:
        pass
secret = "the answer of " + "Ada"
found = any(secret.encode() in data for data in seen)
for each in gc.get_objects():
    if type(each) in (list, dict, tuple):
        values = each.values() if type(each) is dict else each
        found |= any(type(value) is str and secret in value and value != secret for value in list(values))
my_share = 0.5 if found else 0.3034703884
"""
    )
    ada = {"a": [f"my_share = 0.5  # the answer of {'Ada'}"]}
    students = [("Ada", ada), ("Eve", {"a": [answer]}), ("Zoe", ada)]
    found = run_apart({"seconds": 20, "steps": [STEP | {"label": "a"}], "students": students})
    assert found[1, "a"][0] == "right"
    assert found[0, "a"][0] == found[2, "a"][0] == "wrong"


def test_a_pickle_in_the_reply_is_not_run(tmp_path):
    """It would be run by the process that judges all."""
    mark = tmp_path / "ran"
    answer = f"""
import multiprocessing.connection as connection, os, pickle, struct
class Evil:
    def __reduce__(self):
        return os.system, ("touch {mark}",)
data = pickle.dumps(Evil())
for fd in range(3, 64):
    try:
        os.write(fd, struct.pack("!i", len(data)) + data)
    except OSError:
        pass
{RIGHT}"""
    run_apart({"seconds": 10, "steps": [STEP | {"label": "a"}], "students": [("", {"a": [answer]})]})
    assert not mark.exists()


@pytest.mark.weekly
def test_a_process_that_holds_on_is_not_waited_for():
    answer = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(100)\nmy_share = 0.3034703884"
    found = run_apart({"seconds": 20, "steps": [STEP | {"label": "a"}], "students": [("", {"a": [answer]})]})
    assert found[0, "a"][0] == "right"
