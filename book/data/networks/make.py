"""Train the small networks of the chapters on symmetries and stitching; write networks/*.safetensors beside this file.

    OMP_NUM_THREADS=1 python book/data/networks/make.py              # everything that is not there yet
    python book/data/networks/make.py --device cuda --myrtle-width 32 --resnet-width 16 --epochs 20
    python book/data/networks/make.py --smoke --out FOLDER           # seconds: one tiny network of each kind

Weights are stored as float16; ``accuracy`` in a file's header is the test accuracy *after* they are loaded again. A run
that was stopped resumes after the last finished epoch and ends with the same weights. A network's seed is the seed of
its initialisation and of its training. Fashion-MNIST: Zalando SE, MIT licence.

Four seeds of a kind left rows of the ledger undecided. Three kinds therefore get twelve more seeds, 4 to 15 (experiment
P3), by these rules, which are older than the first of these trainings. The rules of the rows stay as they were, and are
applied to all sixteen seeds. For stitches the twelve form a cycle of their own, beside that of the first four. A
network is neither left out nor trained again, whatever its accuracy. A row that is undecided with sixteen stays so.
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

import torch

from affscore_book.kit.networks import myrtle, resnet20
from affscore_book.kit.training import ImageData, accuracy, image_data, load_weights
from affscore_study.kit.training import fit, save_weights

FOLDER = Path(__file__).parent
LICENCES = {"fashion-mnist": "MIT (Zalando SE)", "cifar10": "no licence given (Krizhevsky 2009)"}
SLOPES = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9, 1.0)  # Table 3 of the paper

#: The kinds by name: the architecture, its options, and the seeds. The first kinds are needed first.
KINDS: dict[str, tuple[str, dict[str, object], range]] = {
    "myrtle": ("myrtle", {}, range(16)),
    "resnet20": ("resnet20", {}, range(16)),
    "plain20": ("resnet20", {"residual": False}, range(4)),
    "myrtle_without_norm": ("myrtle", {"norm": False}, range(16)),
    "myrtle_constant_width": ("myrtle", {"width": 32, "constant": True}, range(4)),
    "myrtle_double_width": ("myrtle", {"width": 32}, range(4)),
    "resnet20_without_last_relu": ("resnet20", {"last_relu": False}, range(4)),
    **{f"resnet20_slope{slope:g}": ("resnet20", {"slope": slope}, range(2)) for slope in SLOPES},
}


def train(kind: str, seed: int, data: ImageData, arguments: argparse.Namespace) -> None:
    """Train one network and store it, unless it is stored already."""
    path = arguments.out / f"{kind}_{seed}.safetensors"
    if path.exists():
        return
    architecture, own, _ = KINDS[kind]
    residual = architecture == "resnet20"
    build, width = (resnet20, arguments.resnet_width) if residual else (myrtle, arguments.myrtle_width)
    options = {"width": width, "channels": data.train.images.shape[1], **own}
    torch.manual_seed(seed)
    network = build(**options).to(arguments.device)
    if arguments.device == "cpu":
        network.to(memory_format=torch.channels_last)
    start = time.perf_counter()
    # A network with batch norm can be trained with a higher learning rate than one without.
    rate = 0.01 if own.get("norm", True) else 0.002
    history = fit(
        network, data, epochs=arguments.epochs, seed=seed, learning_rate=rate,
        checkpoint=path.with_suffix(".checkpoint"), progress=arguments.progress,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    about = {
        "architecture": architecture,
        "options": options,
        "seed": seed,
        "epochs": arguments.epochs,
        "learning_rate": rate,
        "train_images": len(data.train.labels),
        "history": history,
        "data": data.name,
        "licence": LICENCES[data.name],
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else f"CPU ({platform.machine()})",
        "torch": torch.__version__,
        "seconds": round(seconds),
    }
    exact = accuracy(network, data, data.test)
    save_weights(network, path, about)
    load_weights(network, path)
    about["accuracy"] = accuracy(network, data, data.test)
    save_weights(network, path, about)
    if abs(about["accuracy"] - exact) > 0.005:
        raise RuntimeError(f"{path.name}: float16 weights change the accuracy from {exact} to {about['accuracy']}.")
    losses = " ".join(f"{epoch['loss']:.3f}" for epoch in history)
    print(f"{path.name}: loss {losses}, test accuracy {about['accuracy']:.4f}, {seconds:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the weights")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind; may be given several times")
    parser.add_argument("--dataset", default="fashion-mnist", choices=LICENCES)
    parser.add_argument("--root", type=Path, help="folder of the data set")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--myrtle-width", type=int, default=16)
    parser.add_argument("--resnet-width", type=int, default=8)
    parser.add_argument("--train-images", type=int, help="by default all but the 5,000 of the validation set")
    parser.add_argument("--progress", action="store_true", help="show a bar for every epoch")
    parser.add_argument("--smoke", action="store_true", help="tiny networks, few images, one seed")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.myrtle_width, arguments.resnet_width = 4, 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    data = image_data(arguments.dataset, root=arguments.root, train=arguments.train_images)
    if arguments.smoke:
        data = data.first(640)
    for kind in arguments.kind or KINDS:
        for seed in KINDS[kind][2][:1] if arguments.smoke else KINDS[kind][2]:
            train(kind, seed, data, arguments)


if __name__ == "__main__":
    main()
