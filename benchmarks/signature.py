"""Measures the time and the memory of a signature, compared with the bare forward pass.

    python benchmarks/signature.py                              # on the CPU: EfficientNet-Lites and resnet18
    python benchmarks/signature.py --device cuda                # the paper's networks, batches of 512
    python benchmarks/signature.py --models resnet18 --batch-size 64 --repeats 9
    python benchmarks/signature.py --models resnet50 --batch-size 64 --calls "layer4.*"    # also one stage

The peer is the network alone: ``model(batch)`` under ``no_grad`` for the same batches, already decoded. Three sides
take turns, so that a machine with a drifting speed treats them equally: the network, its signature with only scores,
and its signature with all companion measures. The script prints medians of wall time with images per second, and the
medians over the rounds of the ratios to the network, for wall time and for CPU time. CPU time is the better guide on a
machine that has other work. Weights are random except for the EfficientNet-Lites; the time hardly depends on them.

Peak memory is measured in new processes, each with a different number of batches.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

import affscore
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model

CPU = ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2", "resnet18"]
PAPER = ["resnet50", "vgg16", "densenet161", "vit_b_16", "swin_b"]
SIDES = ("forward", "scores", "all companions", "scores of a part")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Signatures against the bare forward pass.")
    parser.add_argument("--models", nargs="+", help="names as for affscore.zoo.models.load_model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, help="by default 256 on the CPU, 512 elsewhere")
    parser.add_argument("--micro-batch", type=int, help="for all sides; by default the whole batch at once")
    parser.add_argument("--batches", type=int, help="batches in one run; by default 1 on the CPU, 6 elsewhere")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--calls", help="also time the signature of only these calls, such as 'layer4.*'")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--memory-batches", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    options.models = options.models or (CPU if on_cpu else PAPER)
    options.batch_size = options.batch_size or (256 if on_cpu else 512)
    options.batches = options.batches or (1 if on_cpu else 6)
    return options


def load(name: str, options: argparse.Namespace) -> tuple[torch.nn.Module, torch.Tensor]:
    net = load_model(name, weights=None if name.startswith("efficientnet_lite") else "random")
    batch = load_dataset("photographs", preprocess=net.preprocess, batch_size=options.batch_size)[0]
    return net.model.to(options.device).eval(), batch.to(options.device)


def sides(model: torch.nn.Module, batch: torch.Tensor, options: argparse.Namespace) -> list[Callable[[], object]]:
    pieces = 1 if options.micro_batch is None else -(-len(batch) // options.micro_batch)

    def forward() -> None:
        with torch.no_grad():
            for _ in range(options.batches):
                for part in batch.tensor_split(pieces):
                    model(part)
        synchronise(batch.device)

    def signature(companions: bool, calls: str | None = None) -> Callable[[], object]:
        return lambda: affscore.signature(
            model,
            [batch] * options.batches,
            companions=companions,
            calls=calls,
            micro_batch=options.micro_batch,
            precision=options.precision,
            channels_last=options.channels_last,
        )

    part = [signature(False, options.calls)] if options.calls else []
    return [forward, signature(False), signature(True), *part]


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(function: Callable[[], object]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - processor


def measure_time(name: str, options: argparse.Namespace) -> None:
    model, batch = load(name, options)
    functions = sides(model, batch, options)
    for function in functions:
        function()  # warm up
    table = np.array([[timed(function) for function in functions] for _ in range(options.repeats)])
    images = options.batches * len(batch)
    walls, ratios = np.median(table, axis=0)[:, 0], np.median(table / table[:, :1], axis=0)
    for side, wall, ratio in zip(SIDES[: len(functions)], walls, ratios, strict=True):
        text = f"{name:<20} {side:<20} {wall:8.3f} s {images / wall:9.1f} images/s"
        print(text + ("" if side == "forward" else f"   ratio: wall {ratio[0]:.3f}, processor {ratio[1]:.3f}"))
    if batch.device.type == "cuda":
        for side, function in zip(SIDES[: len(functions)], functions, strict=True):
            torch.cuda.reset_peak_memory_stats()
            function()
            print(f"{name:<20} {side:<20} peak GPU memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    sys.stdout.flush()


def peak_memory(options: argparse.Namespace) -> float:
    """The peak memory of this process, in MiB, after a signature of ``count`` new batches of noise (0: nothing ran)."""
    count = int(options.memory)
    model = load_model(options.models[0], weights="random").model.to(options.device)

    def batches() -> Iterator[torch.Tensor]:
        for _ in range(count):
            yield torch.randn(options.batch_size, 3, 224, 224)

    if count:
        affscore.signature(model, batches(), companions=True, micro_batch=options.micro_batch, device=options.device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main() -> None:
    options = arguments()
    if options.memory is not None:
        print(peak_memory(options))
        return
    device = torch.device(options.device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{where}, torch {torch.__version__}, {options.batches} x {options.batch_size} photographs")
    for name in options.models:
        measure_time(name, options)
    for count in (0, *options.memory_batches) if options.memory_batches else ():
        command = [sys.executable, __file__, "--models", "resnet18", "--batch-size", "64", "--device", options.device]
        peak = float(subprocess.check_output([*command, "--memory", str(count)]))
        print(f"peak host memory, resnet18, {count:3d} batches of 64: {peak:6.0f} MiB")


if __name__ == "__main__":
    main()
