"""A small run, for tests that start processes of their own: this file is imported by them and by the tests.

As a script it is killed twice inside one network and then left to end: ``python small_run.py FOLDER`` prints as JSON
what was kept and which batches were read each time. It is killed within a write, when only a part of the new file is on
the disk.
"""

import itertools
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from affscore.settings import Settings
from affscore.signatures import Signature
from affscore.suite import runs
from affscore.suite.requests import TOTAL

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


def run(folder: Path, batches: list[torch.Tensor] | None = None, **options: object) -> Signature:
    batches = data() if batches is None else batches
    return runs.run(network(), batches, folder, "small", **{"settings": SETTINGS, **options})  # type: ignore[arg-type]


def files(folder: Path) -> dict[str, bytes]:
    """All that is in the folder, to compare."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def unfinished(folder: Path, batches: int, name: str = "small") -> None:
    """As if a finished run, which skipped no image so far, had been stopped after so many batches."""
    path = folder / f"{name}.json"
    whole = Signature.load(path)
    facts = whole.provenance | {"data": whole.provenance["data"] | {"skipped": []}}
    part = replace(
        whole, scores=whole.scores[:batches], batch_sizes=whole.batch_sizes[:batches],
        companions={key: rows[:batches] for key, rows in whole.companions.items()},
        provenance=facts | {TOTAL: len(whole.batch_sizes)},
    )  # fmt: skip
    part.save(path.with_name(f"{path.name}.partial"))
    path.unlink()


class Noted(list):
    """Batches that note in a file which of them are read."""

    def __init__(self, batches: list[torch.Tensor], log: Path) -> None:
        super().__init__(batches)
        self.log = log

    def __getitem__(self, k):
        with self.log.open("a") as file:
            file.write(f"{k} ")
        return super().__getitem__(k)


def killed(folder: Path, log: Path, write: int, part: float) -> None:
    """A run in a process of its own, killed within the write of that number when ``part`` of its bytes are there."""
    child = os.fork()
    if child == 0:
        sync, count = os.fsync, itertools.count()

        def sync_a_part(file: int) -> None:
            if next(count) == write:
                os.ftruncate(file, int(part * os.fstat(file).st_size))
                os.kill(os.getpid(), signal.SIGKILL)
            sync(file)

        os.fsync = sync_a_part
        run(folder, Noted(data(), log))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise RuntimeError("the run ended instead of being killed")


def main(folder: Path) -> dict[str, object]:
    runs.PAUSE = 0
    place, kept, read = folder / "killed", [], []
    for turn, (write, part) in enumerate([(3, 0.5), (2, 0)]):
        killed(place, folder / f"{turn}", write, part)
        kept.append(runs.progress_of(place))
        read.append((folder / f"{turn}").read_text().split())
    run(place, Noted(data(), folder / "2"))
    return {"kept": kept, "read": [*read, (folder / "2").read_text().split()]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(Path(sys.argv[1]))))
