"""What two processes do together, for tests/test_runs.py: ``torchrun --nproc-per-node 2 small_ranks.py FOLDER``.

Each rank writes what it saw to FOLDER/log.RANK.json. The test prepares some folders and judges the results.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import torch
from small_run import data, network, run

from affscore.cli import main as cli
from affscore.settings import Settings
from affscore.suite import runs
from affscore.suite.ranks import Ranks, joined_ranks

SUITE = ["suite", "--models", "squeezenet1_1", "--weights", "random", "--dataset", "random", "--quiet"]
SUITE += ["--batch-size", "4", "--batches", "2", "--companions", "norm", "--out"]


def attempt(folder: Path, ranks: Ranks, **options: object) -> str:
    """A run's error as text, or its scores."""
    try:
        return str(run(folder, ranks=ranks, **options).scores.tolist())
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def spoiled(folder: Path, ranks: Ranks) -> str:
    """Batch 3, which is rank 1's, holds a NaN."""
    batches = data()
    batches[3][0, 0] = torch.nan
    try:
        runs.run(network(), batches, folder, "small", ranks=ranks)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def main(folder: Path) -> None:
    log: dict[str, object] = {}
    ranks = joined_ranks()
    log["ranks"] = [ranks.rank, ranks.world, ranks.local]
    log["fresh"] = attempt(folder / "fresh", ranks)
    log["resumed"] = attempt(folder / "resumed", ranks)
    log["apart"] = attempt(folder / f"machine{ranks.rank}", ranks)
    log["unlike"] = attempt(folder / "unlike", ranks, settings=Settings(precision=("full", "bf16")[ranks.rank]))
    log["damaged"] = attempt(folder / f"damaged{ranks.rank}", ranks)
    log["spoiled"] = spoiled(folder / "spoiled", ranks)
    log["restarted"] = attempt(folder / "spoiled", ranks, restart=True)
    turns = folder / "turns"
    found = ranks.one_first(lambda: turns.exists() or turns.touch() or False)  # one makes it, the other finds it
    log["first"] = ranks.gather(found)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        log["suite"] = cli.main([*SUITE, str(folder / "suite")])
    log["printed"] = printed.getvalue()
    (folder / f"log.{ranks.rank}.json").write_text(json.dumps(log))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
