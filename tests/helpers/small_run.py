"""A small run, for tests that interrupt it and go on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from affscore.settings import Settings
from affscore.signatures import TOTAL, Signature
from affscore_study.suite import runs

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


class Watched(list):
    """Batches; before batch ``k`` is had, ``do(k)`` is called."""

    def __init__(self, batches: list[torch.Tensor], do: Callable[[int], object]) -> None:
        super().__init__(batches)
        self.do = do

    def __getitem__(self, k):
        self.do(k)
        return super().__getitem__(k)
