"""Checks of the exercises of the chapter on neural redshift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from affscore_book.kit.answers import function, layers, numbers, one_number
from affscore_book.kit.checks import case, exercise, report
from affscore_book.redshift.complexity import dct_frequency, fourier_frequency, unexplained_variance

_LINE = np.linspace(-1, 1, 32)
_Layers = list[tuple[np.ndarray, np.ndarray]]


@exercise("redshift-build", frequency=function)
def check_build(frequency: Callable[[np.ndarray], float]) -> None:
    """Does ``frequency(image)`` give the mean frequency by cosine transform of images of shape (rows, columns)?"""
    images = {
        "a ramp": np.tile(_LINE, (32, 1)),
        "a wave that tanh has cut": np.tanh(4 * np.sin(np.add.outer(5 * _LINE, 9 * _LINE))),
        "noise of 8 x 12 pixels": np.random.default_rng(0).normal(1, 1, size=(8, 12)),
    }
    for name, image in images.items():
        with case(name):
            right, mine = dct_frequency(image), one_number(frequency(image))
            if not abs(mine - right) < 1e-6:
                hint = f"the mean frequency of {name} is {right:.3f}, yours {mine:.3f}."
                if abs(mine - fourier_frequency(image)) < 1e-6:
                    hint = "that is Fourier's frequency; take the cosine transform."
                return report("redshift-build", False, "", hint)
    report("redshift-build", True, "a transform and a weighted mean measure a picture.", "")


@exercise("redshift-symmetry", large=layers, mine=layers, net=layers)
def check_symmetry(large: _Layers, mine: _Layers, net: _Layers) -> None:
    """Has ``mine`` the weights of ``net``, and with ReLU a positive multiple of the function of ``large``?"""
    if [weights.shape for weights, _ in net] != [weights.shape for weights, _ in mine]:
        return report("redshift-symmetry", False, "", "both networks should have layers of the same shapes.")
    if not all(np.allclose(one, other) for (one, _), (other, _) in zip(net, mine, strict=True)):
        return report("redshift-symmetry", False, "", "the weights should be those of net; change the biases only.")
    one, other = _relu_outputs(large), _relu_outputs(mine)
    factor = (other @ one) / (one @ one)
    apart = np.abs(other - factor * one).max() / np.abs(other).max()
    if not (factor > 0 and apart < 1e-6):
        hint = (
            f"beside its best factor, {factor:.3g}, the image changes by {apart:.1%} of its largest value; "
            "what has to happen to the biases?"
        )
        return report("redshift-symmetry", False, "", hint)
    report("redshift-symmetry", True, "the image is the same up to one factor.", "")


def _relu_outputs(network: _Layers) -> np.ndarray:
    """What a ReLU network gives for 8 x 8 pixels."""
    values = np.stack(np.meshgrid(_LINE[::4], _LINE[::4]), axis=-1).reshape(-1, 2)
    for weights, biases in network[:-1]:
        values = np.maximum(values @ weights.T + biases, 0)
    weights, biases = network[-1]
    return (values @ weights.T + biases).ravel()


@exercise("redshift-slow", image=numbers)
def check_slow(image: Any) -> None:
    """Is ``image`` near the floor of the cosine transform, below 1.5, and more than 0.9 of it unexplained?"""
    if image.ndim != 2:
        return report("redshift-slow", False, "", f"it has shape {image.shape}, not (32, 32).")
    frequency, left = dct_frequency(image), unexplained_variance(image)
    hint = f"unexplained is {left:.2f}. A plane explains a slope; which slow image has none in any direction?"
    if not frequency < 1.5:
        hint = f"its mean frequency by cosine transform is {frequency:.2f}; it should be below 1.5."
    praise = f"mean frequency {frequency:.2f} and unexplained variance {left:.2f}."
    report("redshift-slow", bool(frequency < 1.5 and left > 0.9), praise, hint)


@exercise("redshift-null", null=numbers)
def check_null(null: Any, one: Any, other: Any) -> None:
    """Is ``null`` made of means of ``other - one``, both (draws,), in which every difference has a random sign?"""
    change = np.asarray(other) - np.asarray(one)
    spread = np.sqrt((change**2).sum()) / len(change)
    apart = np.sqrt(np.concatenate([one, other]).var() * 2 / len(change))
    if null.ndim != 1 or len(null) < 1000:
        hint = f"it has shape {null.shape}; it should be one row of at least 1,000 means."
    elif not abs(null.mean()) < 0.3 * spread:
        hint = "its mean is not 0: signs + and - should be equally likely, for each change anew."
    elif abs(null.std() / spread - 1) < 0.1:
        praise = f"95 % of the null lie within {np.quantile(np.abs(null), 0.95):.4f} of 0;"
        return report("redshift-null", True, f"{praise} the true mean is {change.mean():.4f}.", "")
    elif abs(null.std() / apart - 1) < 0.1:
        hint = "that is the null of networks drawn apart. Exchange raw and shifted within a draw, not across draws."
    else:
        hint = f"its standard deviation is {null.std():.2g}. Is each entry a mean of all {len(change)} changes?"
    report("redshift-null", False, "", hint)
