"""Train networks towards a mean score and measure the effects (E4); write one file per run to ``targets/results``.

    OMP_NUM_THREADS=1 python book/data/uses/targets.py --rules COMMIT                   # every run that is missing
    OMP_NUM_THREADS=1 python book/data/uses/targets.py --rules COMMIT --only vgg11      # those of one network
    python book/data/uses/targets.py --list                                             # how many are there

The rules are in ``affscore_study.uses.target_claims`` and were committed before the first run; each file names that
commit. A run that was stopped resumes after its last epoch. On one thread of a processor, a run of VGG11 takes four
minutes and a run of ResNet18 a quarter of an hour. Fashion-MNIST: Zalando SE, MIT licence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from affscore import signature
from affscore.measuring import versions
from affscore_book.decade.networks import build
from affscore_book.decade.training import ColourData
from affscore_book.uses.targets import TARGET_SEEDS, Aim, all_aims
from affscore_study.decade.options import asked_data, training_options
from affscore_study.decade.training import fit_recipe, measure_norm
from affscore_study.kit.run_files import RunFiles, rounded, store_results
from affscore_study.uses.outcomes import measured_mean, outcomes_of
from affscore_study.uses.penalty import TargetPenalty, slopes_for_relus, watched_pairs
from affscore_study.uses.target_claims import AIMED, LEAK, STRENGTH

FOLDER = Path(__file__).parent
PROBE = 512


def jobs(out: Path, networks: Sequence[str]) -> Iterator[tuple[str, Aim, RunFiles]]:
    """Every run in order, network by network: the penalty for all seeds, then the other ways; last the fixed slopes."""
    for network in networks:
        for way in ("all", "slopes", "shifts", "leak"):
            for seed in range(TARGET_SEEDS):
                for aim in all_aims():
                    if aim.way == way and (way != "leak" or network == AIMED[0]):
                        files = RunFiles(out / "targets", f"{network}-{aim.title}", seed, kept=False)
                        yield network, aim, files


def run(name: str, aim: Aim, files: RunFiles, data: ColourData, epochs: int, about: dict[str, Any]) -> None:
    """Train one network, or resume its training, and store its measurements."""
    record: dict[str, Any] = {"network": name, "target": aim.target, "way": aim.way, "seed": files.seed}
    record |= {"strength": STRENGTH.get(aim.way), "data": data.name, "licence": "MIT (Zalando SE)"} | about
    network = build(name, files.seed)
    if aim.way in ("slopes", "leak"):
        slopes_for_relus(network, LEAK if aim.way == "leak" else 0.0, learn=aim.way == "slopes")
    start, means = time.process_time(), []
    with watched_pairs(network) as pairs:
        strength, way = (0.0, "all") if aim.target is None else (STRENGTH[aim.way], aim.way)
        penalty = TargetPenalty(network, pairs, target=aim.target, strength=strength, way=way)
        try:
            history = fit_recipe(network, data, epochs=epochs, seed=files.seed, checkpoint=files.checkpoint,
                                 backward=penalty.backward,
                                 after_epoch=lambda _: means.append(measured_mean(network, data)))  # fmt: skip
        except ValueError as error:
            if "not finite" not in str(error):
                raise
            store_results(files.result, record | {"failed": str(error), "made_with": versions()})
            return
    measure_norm(network, data)
    record |= {"history": history, "means": means, "mean": measured_mean(network, data)} | outcomes_of(network, data)
    slopes = [module.weight.item() for module in network.modules() if isinstance(module, nn.PReLU)]
    scores = signature(network, [data.standardise(data.validation.images[:PROBE])]).scores[0].tolist()
    record |= {"scores": scores, "slopes": slopes, "seconds": time.process_time() - start}
    store_results(files.result, rounded(record) | {"made_with": versions()})
    files.checkpoint.unlink(missing_ok=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = training_options(__doc__, FOLDER, AIMED)
    parser.add_argument("--rules", help="commit of the rules, before the first run")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(TARGET_SEEDS), metavar="SEED", help="these seeds")
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    todo = [job for job in jobs(arguments.out, arguments.only or AIMED) if job[2].seed in arguments.seeds]
    if arguments.list:
        print(f"{sum(files.result.exists() for _, _, files in todo)} of {len(todo)} runs are there")
        return
    if not arguments.rules:
        raise SystemExit("--rules is missing; it should be the commit of the rules.")
    data = asked_data(arguments, 600)
    for network, aim, files in todo:
        if not files.result.exists():
            run(network, aim, files, data, arguments.epochs, {"rules": arguments.rules})
            print(network, aim.title, files.seed, flush=True)


if __name__ == "__main__":
    main()
