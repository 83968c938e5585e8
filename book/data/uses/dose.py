"""Train networks towards scores, with a placebo and with shifts alone (P1), and write one file per network and seed.

    OMP_NUM_THREADS=1 python book/data/uses/dose.py --rules COMMIT --pilots      # VGG11's pilots, for its low target
    OMP_NUM_THREADS=1 python book/data/uses/dose.py --rules COMMIT               # every run that is missing
    python book/data/uses/dose.py --list                                         # how many are there

The rules are in ``affscore_study.uses.dose`` and were committed before the first run; each file names that commit.
Seeds and networks take turns, and a run that was stopped resumes after its last epoch. All runs take about ten hours on
one thread of a processor. Fashion-MNIST: Zalando SE, MIT licence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms.functional import gaussian_blur

from affscore import signature
from affscore.measuring import versions
from affscore_book.decade.networks import build
from affscore_book.decade.training import ColourData
from affscore_book.kit.training import Images, accuracy
from affscore_study.decade.options import asked_data, training_options
from affscore_study.decade.training import fit_recipe, measure_norm
from affscore_study.kit.run_files import rounded, store_results
from affscore_study.uses.dose import (
    DOSE_SEEDS,
    DOSED,
    HIGH_TARGET,
    PILOT_SEED,
    PILOTS,
    arms_of,
    load_pilots,
    low_target,
)
from affscore_study.uses.outcomes import measured_mean, outcomes_of
from affscore_study.uses.penalty import TargetPenalty, watched_pairs
from affscore_study.uses.shares import ShareHolder, measured_shares, shifts_before_calls
from affscore_study.uses.target_claims import STRENGTH

FOLDER = Path(__file__).parent
PROBE = 512
#: For each network, the remaining contrast, and the blur's standard deviation in pixels. The decade's first seed keeps
#: between a half and three quarters of its accuracy.
CONTRAST, BLUR = {"resnet18": 0.85, "vgg11": 0.35}, {"resnet18": 1.5, "vgg11": 2.5}


def less_contrast(images: Tensor, left: float) -> Tensor:
    """uint8 images (n, 1, H, W) whose differences from the mean of each image are multiplied by ``left``."""
    mean = images.float().mean((1, 2, 3), keepdim=True)
    return (mean + left * (images.float() - mean)).round().clamp(0, 255).to(torch.uint8)


def blurred(images: Tensor, deviation: float) -> Tensor:
    """uint8 images (n, 1, H, W) smoothed by a normal kernel of nine pixels."""
    return gaussian_blur(images, [9, 9], [deviation, deviation])


class Run:
    """One training, with its target or the shares that it holds, and its checkpoint.

    Parameters
    ----------
    network, seed
        The name and the seed of the trained network.
    target
        The target of the mean score; None without a penalty.
    shares
        The shares of negative inputs by call, which shifts hold; None if they are free.
    checkpoint
        The file of the state after the last epoch.
    """

    def __init__(
        self, network: str, seed: int, target: float | None, shares: Sequence[float] | None, checkpoint: Path
    ) -> None:
        self.network, self.seed, self.target, self.shares = network, seed, target, shares
        self.checkpoint = checkpoint
        checkpoint.parent.mkdir(parents=True, exist_ok=True)

    def make(self, data: ColourData, epochs: int) -> dict[str, Any]:
        """Train the network, or resume its training, and return the record of its measurements."""
        clock, network = time.process_time(), build(self.network, self.seed)
        record: dict[str, Any] = {"target": self.target, "wanted": self.shares}
        with watched_pairs(network) as pairs:
            penalty = TargetPenalty(network, pairs, target=self.target, strength=STRENGTH["all"])
            hold: Callable[[int], None] | None = None
            if self.shares is not None:
                shifts = shifts_before_calls(network, data.standardise(data.train.images[:4]))
                hold = ShareHolder(pairs, shifts, self.shares).after_step
            try:
                record["history"] = fit_recipe(network, data, epochs=epochs, seed=self.seed, after_step=hold,
                                               checkpoint=self.checkpoint, backward=penalty.backward)  # fmt: skip
            except ValueError as error:
                if "not finite" not in str(error):
                    raise
                return record | {"failed": str(error), "seconds": time.process_time() - clock}
        measure_norm(network, data)
        record |= {"mean": measured_mean(network, data), "shares": measured_shares(network, data)}
        record |= outcomes_of(network, data)
        changed = {"contrast": less_contrast(data.test.images, CONTRAST[self.network])}
        changed["blur"] = blurred(data.test.images, BLUR[self.network])
        record["corrupted"] = {
            name: accuracy(network, data, Images(images, data.test.labels)) for name, images in changed.items()
        }
        record["scores"] = signature(network, [data.standardise(data.validation.images[:PROBE])]).scores[0].tolist()
        return record | {"seconds": time.process_time() - clock}


def stored(file: Path, network: str, seed: int, about: dict[str, Any]) -> dict[str, Any]:
    """The record of a network and seed with the stored arms, which may be none."""
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    return {"network": network, "seed": seed, "licence": "MIT (Zalando SE)"} | about | {"arms": {}}


def jobs(out: Path, networks: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[Path, str, int, str]]:
    """The file, network, seed and arm of every run. Networks take turns within a seed."""
    for seed in seeds:
        for arm in arms_of(seed):
            for network in networks:
                yield out / "dose" / "results" / f"{network}-{seed}.json", network, seed, arm


def aim(arm: str, network: str, arms: dict[str, Any], out: Path) -> tuple[float | None, list[float] | None] | None:
    """The target and the shares of an arm, from the arms before it; None if the arm that it needs has failed."""
    needed = {"placebo": "none", "shift": "low"}.get(arm)
    if needed is not None and "failed" in arms[needed]:
        return None
    if arm == "placebo":
        return arms["none"]["mean"], None
    if arm == "shift":
        return None, arms["low"]["shares"]
    if arm == "low":
        return low_target(network, load_pilots(out) if DOSED[network] is None else {}), None
    return (HIGH_TARGET if arm == "high" else None), None


def main(given: Sequence[str] | None = None) -> None:
    parser = training_options(__doc__, FOLDER, DOSED)
    parser.add_argument("--pilots", action="store_true", help="only VGG11's pilots")
    parser.add_argument("--rules", help="commit of the rules, before the first run")
    parser.add_argument("--seeds", type=int, nargs="+", default=DOSE_SEEDS, metavar="SEED", help="these seeds")
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    out = arguments.out
    todo = list(jobs(out, arguments.only or list(DOSED), arguments.seeds))
    if arguments.list:
        there = sum(arm in stored(file, network, seed, {})["arms"] for file, network, seed, arm in todo)
        print(f"{there} of {len(todo)} runs are there")
        return
    if not arguments.rules:
        raise SystemExit("--rules is missing; it should be the commit of the rules.")
    data = asked_data(arguments, 600)
    if arguments.pilots:
        file = out / "dose" / "pilots" / f"vgg11-{PILOT_SEED}.json"
        todo = [(file, "vgg11", PILOT_SEED, str(target)) for target in PILOTS]
    for file, network, seed, arm in todo:
        record = stored(file, network, seed, {"data": data.name, "rules": arguments.rules})
        if arm in record["arms"]:
            continue
        aimed = (float(arm), None) if arguments.pilots else aim(arm, network, record["arms"], out)
        checkpoint = out / "dose" / "work" / f"{network}-{seed}-{arm}.checkpoint"
        found = {"failed": "the arm that it needs has failed"}
        if aimed is not None:
            found = rounded(Run(network, seed, *aimed, checkpoint).make(data, arguments.epochs))
        file.parent.mkdir(parents=True, exist_ok=True)
        record["arms"][arm] = found
        store_results(file, record | {"made_with": versions()})
        checkpoint.unlink(missing_ok=True)
        print(network, seed, arm, flush=True)


if __name__ == "__main__":
    main()
