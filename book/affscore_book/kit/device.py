"""Where the heavy cells of a notebook compute."""

import torch

__all__ = ["best_device"]


def best_device() -> torch.device:
    """The GPU if there is one, such as on Colab, else the processor.

    >>> best_device().type in ("cuda", "cpu")
    True
    """
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
