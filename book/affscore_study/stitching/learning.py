"""The training of stitches on the task, and their accuracy.

*   :func:`learn` trains a stitch and nothing else. :func:`reestimate` measures the batch-norm statistics of the second
    network anew.
*   :func:`accuracy_of` returns the accuracy of a stitched network. Penalties, their averages over pairs of networks and
    their intervals are in :mod:`affscore_book.stitching.study`.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendix D.2.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor
from torch.nn import functional

from affscore.forward import evaluating
from affscore_book.kit.batch_norm import set_batch_norm
from affscore_study.stitching.stitched import State, Stitched

__all__ = ["accuracy_of", "learn", "reestimate"]


def learn(
    stitched: Stitched,
    states: State,
    labels: Tensor,
    *,
    epochs: int,
    seed: int,
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    batch_size: int = 50,
) -> list[float]:
    """Train the stitch in place by gradient descent on the task's cross-entropy; everything else is frozen.

    The paper uses 20 epochs of 50,000 images, batches of 32 and learning rate 0.001, and states both momentum 0.9 and
    none; we use 0.9. Images are not augmented here, because the first network's features are computed only once.

    Parameters
    ----------
    stitched
        The stitched network. Its ``stitch`` changes.
    states, labels
        The result of ``stitched.states(images)``, and int64 of shape (n,).
    epochs, learning_rate, momentum, batch_size
        The settings of stochastic gradient descent.
    seed
        The seed of the order of the images.

    Returns
    -------
    The mean loss of each epoch, without the stitch's own term.

    Raises
    ------
    ValueError
        If there is nothing to learn, the numbers of images differ, or the loss is not finite.
    """
    if stitched.stitch is None or not list(stitched.stitch.parameters()):
        raise ValueError(f"the stitch {stitched.stitch!r} has nothing to learn.")
    n = len(labels)
    if len(states.value) != n:
        raise ValueError(f"states holds {len(states.value)} images and labels {n}; they should be the same.")
    stitch = stitched.stitch.train()
    optimizer = torch.optim.SGD(stitch.parameters(), lr=learning_rate, momentum=momentum)
    generator = torch.Generator().manual_seed(seed)
    starts = range(0, n, batch_size)
    history = []
    for epoch in range(epochs):
        order, total = torch.randperm(n, generator=generator), 0.0
        for step, start in enumerate(starts):
            stitch.schedule((epoch + step / len(starts)) / epochs)
            index = order[start : start + batch_size].to(labels.device)
            loss = functional.cross_entropy(stitched.after(states.take(index)), labels[index])
            optimizer.zero_grad()
            (loss + stitch.penalty()).backward()
            optimizer.step()
            stitch.project(learning_rate / (1 - momentum))  # momentum makes steps longer
            total += loss.item() * len(index)
        if not math.isfinite(total):
            raise ValueError(f"the loss of epoch {epoch + 1} is not finite; try a smaller learning_rate.")
        history.append(total / n)
    return history


@torch.no_grad()
def reestimate(stitched: Stitched, states: State) -> Stitched:
    """A copy whose second part has new batch-norm statistics, measured in one pass over training images.

    The statistics are the plain means over batches of 100. If the second part has no batch norm, the copy is the same.
    The paper does this after rounding a stitch to a permutation (appendix D.2.1).
    """
    result = copy.deepcopy(stitched)
    parts = (states.take(slice(start, start + 100)) for start in range(0, len(states.value), 100))
    set_batch_norm(result.top, parts, result.after)
    return result


@torch.no_grad()
def accuracy_of(stitched: Stitched, states: State, labels: Tensor) -> float:
    """The share of the images whose largest output is at their label, from 0 to 1.

    The images are given as the result of :meth:`Stitched.states`. Raises ValueError if there are not as many labels.
    """
    if len(states.value) != len(labels) or not len(labels):
        raise ValueError(f"states holds {len(states.value)} images and labels {len(labels)}; they should be the same.")
    right = 0
    with evaluating(stitched):
        for start in range(0, len(labels), 100):
            part = slice(start, start + 100)
            right += int((stitched.after(states.take(part)).argmax(1) == labels[part]).sum())
    return right / len(labels)
