"""Times a closed-form G_ReLU stitch at each layer of two Myrtle CNNs, over 10,000 images.

    python benchmarks/stitching.py             # or --images 1000

The networks are trained networks of the book. The time includes the features of both networks, the assignment, the new
batch-norm statistics and the accuracy, all over the same number of images, on two threads.
"""

import argparse
import os
import resource
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

import torch

from affscore_book.kit.networks import load_network
from affscore_book.kit.training import image_data
from affscore_study.stitching.learning import accuracy_of, reestimate
from affscore_study.stitching.maps import stitch_layer
from affscore_study.stitching.stitched import Stitched, layer_moments

NETWORKS = Path(__file__).parents[1] / "book" / "data" / "networks"


def main() -> None:
    parser = argparse.ArgumentParser(description="A closed-form stitch at each layer of two Myrtle CNNs.")
    parser.add_argument("--images", type=int, default=10_000, help="images for moments and accuracy (default 10,000)")
    images = parser.parse_args().images
    one, other = (load_network(NETWORKS / f"myrtle_{seed}.safetensors")[0] for seed in (0, 1))
    one, other = (network.to(memory_format=torch.channels_last) for network in (one, other))
    data = image_data("fashion-mnist")
    x, labels = data.standardise(data.test.images[:images]), data.test.labels[:images]
    print(f"{images} images, {torch.get_num_threads()} threads")
    for layer in ("relu1", "relu2", "relu3", "relu4"):
        start, used = time.perf_counter(), time.process_time()
        stitched = Stitched(one, other, layer)
        moments = layer_moments(one, other, x, [layer])[layer]
        stitched.stitch = stitch_layer("g_relu", moments).rounded()
        states = stitched.states(x)
        right = accuracy_of(reestimate(stitched, states), states, labels)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{layer}: {time.perf_counter() - start:5.1f} s ({time.process_time() - used:.1f} s of processor time), "
            f"accuracy {right:.3f}, peak memory so far {memory:.1f} GiB"
        )


if __name__ == "__main__":
    main()
