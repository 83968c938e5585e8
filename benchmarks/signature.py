"""What a signature costs beside the bare forward pass: EfficientNet-Lite0 on 256 photographs, interleaved.

    python benchmarks/signature.py                         # on the CPU
    python benchmarks/signature.py --device cuda
    python benchmarks/signature.py --model resnet18 --weights random

The named peer is the network itself: ``model(batch)`` under ``no_grad``. The two take turns, so that a machine whose
speed drifts treats both alike; medians of wall time and of processor time are printed with their ratios. Peak memory
is measured in two fresh processes, one for each.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import affscore
from affscore.datasets import load_dataset
from affscore.models import load_model


def timed(function: Callable[[], object], device: torch.device) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description="A signature against the bare forward pass.")
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--weights", help="as for affscore.models.load_model")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--micro-batch", type=int, help="for both sides; by default the whole batch at once")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", choices=["forward", "signature"], help=argparse.SUPPRESS)
    options = parser.parse_args()

    device = torch.device(options.device)
    net = load_model(options.model, weights=options.weights)
    model = net.model.to(device)
    batch = load_dataset("photographs", preprocess=net.preprocess, batch_size=options.batch_size)[0].to(device)
    pieces = 1 if options.micro_batch is None else -(-len(batch) // options.micro_batch)

    def forward() -> None:
        with torch.no_grad():
            for part in batch.tensor_split(pieces):
                model(part)

    def signature() -> None:
        affscore.signature(model, [batch], micro_batch=options.micro_batch)

    if options.memory:
        {"forward": forward, "signature": signature}[options.memory]()
        gpu = torch.cuda.max_memory_allocated(device) / 2**10 if device.type == "cuda" else None
        print(gpu or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{net.name}, {net.weights}, {len(batch)} photographs, {name}, torch {torch.__version__}")
    forward()
    signature()
    pairs = [(timed(forward, device), timed(signature, device)) for _ in range(options.repeats)]
    table = np.array(pairs)  # (repeats, forward or signature, wall or cpu)
    for place, clock in enumerate(("wall", "processor")):
        bare, ours = np.median(table[:, :, place], axis=0)
        ratio = np.median(table[:, 1, place] / table[:, 0, place])
        print(f"{clock:>10} time: forward {bare:7.3f} s, signature {ours:7.3f} s, ratio {ratio:.3f} (median of pairs)")
    peaks = [
        float(subprocess.check_output([sys.executable, __file__, *sys.argv[1:], "--memory", kind], env=os.environ))
        for kind in ("forward", "signature")
    ]
    bare, ours = (peak / 2**10 for peak in peaks)
    print(f" peak memory: forward {bare:.0f} MiB, signature {ours:.0f} MiB, ratio {ours / bare:.3f}")


if __name__ == "__main__":
    main()
