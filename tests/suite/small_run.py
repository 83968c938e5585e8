"""A small run, for tests that start processes of their own: this file is imported by them and by the tests.

As a script it kills such a run again and again, and then lets several write at once: ``python small_run.py FOLDER
KILLS SEED`` prints what happened as JSON. The forked child that is to die within a write stops when only a part of the
new file is on the disk, and says so through a pipe; the others are killed after a random time.
"""

import json
import os
import random
import select
import signal
import sys
from pathlib import Path

import torch
from torch import nn

from affscore.settings import Settings
from affscore.signatures import Signature
from affscore.suite import records, runs

BATCHES = 10
SETTINGS = Settings(companions=True)


def network() -> nn.Module:
    torch.manual_seed(0)
    dead = nn.Sequential(nn.Linear(12, 5), nn.ReLU())  # its score is NaN
    nn.init.zeros_(dead[0].weight)
    nn.init.constant_(dead[0].bias, -1.0)
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.Tanh(), dead)


def data(batches: int = BATCHES) -> list[torch.Tensor]:
    return list(torch.randn(batches, 16, 6, generator=torch.Generator().manual_seed(1)))


def run(folder: Path, **options: object) -> Signature:
    return runs.run(network(), data(), folder, "small", **{"settings": SETTINGS, **options})  # type: ignore[arg-type]


def files(folder: Path) -> dict[str, bytes]:
    """The signature and the records, to compare."""
    paths = [*folder.glob("*.json"), *folder.glob("records/small/batch-*.json")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def _child(folder: Path, pipe: int, write: int | None, part: float) -> None:
    """Run; if ``write`` is a number, stop within the write of that number when ``part`` of its bytes are there."""
    sync_really, count = os.fsync, 0

    def sync_a_part(file: int) -> None:
        nonlocal count
        count += 1
        if count - 1 != write:
            sync_really(file)
            return
        os.ftruncate(file, int(part * os.fstat(file).st_size))
        os.write(pipe, b"!")
        signal.pause()
        raise AssertionError("a killed process went on")

    records.os.fsync = sync_a_part
    run(folder)


def forked(work) -> int:
    """Start a child that does ``work`` and ends with status 0, or 1 after an error."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    return child


def kill(folder: Path, pick: random.Random, inside: bool) -> str:
    """Start a run, kill it. Gives ``"inside"`` a write, ``"outside"``, or ``"finished"`` where it was faster."""
    hear, tell = os.pipe()
    write, part, delay = (pick.randrange(3) if inside else None), pick.choice([0, pick.random(), 1]), pick.random() / 5
    child = forked(lambda: _child(folder, tell, write, part))
    os.close(tell)
    ready, _, _ = select.select([hear], [], [], 60 if inside else delay)
    told = os.read(hear, 1) if ready else b""
    os.close(hear)
    if not ready or told:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        if os.WEXITSTATUS(status):
            raise RuntimeError("the run failed instead of being killed")
        return "finished"
    return "inside" if told else "outside"


def main(folder: Path, kills: int, seed: int) -> dict[str, object]:
    pick, log = random.Random(seed), {"inside": 0, "outside": 0, "finished": 0, "parts": 0}
    run(folder / "whole")
    whole, same, turn = files(folder / "whole"), [], 0
    while log["inside"] + log["outside"] < kills or turn == 0:
        place = folder / f"killed{turn}"
        # Every third at a random time, the others within a write.
        outcome = kill(place, pick, inside=(log["inside"] + log["outside"]) % 3 != 2)
        log[outcome] += 1
        if outcome == "finished" or log["inside"] + log["outside"] >= kills:
            log["parts"] += len(list(place.glob("records/small/.*.part")))
            run(place)
            same.append(files(place) == whole)
            turn += 1
    # Several at once that know nothing of each other.
    children = [forked(lambda: run(folder / "several")) for _ in range(3)]
    log["writers"] = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return log | {"same": same, "several": files(folder / "several") == whole}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
