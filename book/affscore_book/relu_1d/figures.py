"""The figures of the chapter "ReLU in one dimension". Each function takes data and returns one drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from affscore_book.kit.drawing import Drawing, curves, power_of_ten
from affscore_book.kit.picture import Array, Panel

__all__ = [
    "plot_figure_3", "plot_gaussian", "plot_limits", "plot_ranges", "plot_relatives", "plot_symmetry",
]  # fmt: skip


def plot_ranges(ranges: Sequence[tuple[Array, Array, Array]], notes: Sequence[str]) -> Drawing:
    """For each range its inputs (n,) in rising order, their outputs, the affine image and the gap, with a note."""
    every = np.concatenate([values for _, *outputs in ranges for values in outputs])
    least, most = min(x[0] for x, *_ in ranges) - 0.5, max(x[-1] for x, *_ in ranges) + 0.5
    low, high = float(every.min()) - 0.3, float(every.max()) + 0.3
    drawn = []
    for (x, y, image), note in zip(ranges, notes, strict=True):
        panel = Panel(
            label=f"Inputs from {x[0]:g} to {x[-1]:g}, their outputs, the affine image, and the gap between: {note}.",
            xlim=(least, most), ylim=(low, high), xlabel=f"{x[0]:g} to {x[-1]:g}: {note}",
            legend=[("input-curve", "output"), ("goal-curve", "affine image")], height=230,
        )  # fmt: skip
        few = np.linspace(0, len(x) - 1, 201).astype(int)
        panel.band("input-band", x[0], x[-1])
        panel.area("gap-area", x[few], y[few], image[few])
        panel.line("input-curve", x[few], y[few])
        panel.line("goal-curve", x[[0, -1]], image[[0, -1]])
        drawn.append(panel)
    return Drawing(*drawn)


def plot_figure_3(starts: Array, a: Array, parts: Mapping[str, tuple[Array, Array]]) -> Drawing:
    """A panel for each part: of samples at ``starts`` (k,) as dots, exact at ``a`` (n,) as a line."""
    drawn = []
    for name, (samples, exact) in parts.items():
        panel = curves(
            f"The {name} from {exact[0]:.2f} at a = 0 to {exact[-1]:.2f} at a = 5, at most {np.nanmax(exact):.2f}; "
            "samples lie near the curve.",
            a, {f"{name}, exact": exact}, xlabel="a, for inputs on [−a, −a + 5]",
        )  # fmt: skip
        panel.dots("ink-dot", np.stack([starts, samples], axis=1), radius=3)
        drawn.append(panel)
    return Drawing(*drawn)


def plot_symmetry(a: Array, parts: Mapping[str, Array]) -> Drawing:
    """A panel for each of the ``parts`` over ``a``, both of shape (n,), with its mirror image."""
    return Drawing(
        *(
            curves(
                f"{name} and its mirror image, which differ by at most {abs(y - y[::-1]).max():.2f}.",
                a, {name: y, "mirror image": y[::-1]}, xlabel="a, for inputs on [−a, −a + 5]",
            )
            for name, y in parts.items()
        )
    )  # fmt: skip


def plot_limits(share: Array, parts: Mapping[str, Mapping[str, Array]]) -> Drawing:
    """For each of the ``parts`` a curve and its power law over ``share``, all of shape (n,), on logarithmic axes."""
    return Drawing(
        *(
            curves(f"{' and '.join(lines)} against {xlabel}, one line over ten decades.", share, lines, xlabel=xlabel,
                   logarithmic=True)
            for xlabel, lines in parts.items()
        )
    )  # fmt: skip


def plot_gaussian(means: Array, near: Mapping[str, Array], far: Array, tail: Array) -> Drawing:
    """Scores against the mean of the input (n,), and far into the dead range (k,) with a logarithmic axis."""
    left = curves("Scores of a bell and of an even spread against the mean, both rising from 0 to 1.", means, near,
                  xlabel="mean of the input, std 1", ylim=(0, 1.05))  # fmt: skip
    exponents = np.log10(tail)
    right = Panel(
        label=f"The score of a bell far to the left, down to 1e{exponents.min():.0f}.",
        xlim=(far[0], far[-1]), ylim=(float(exponents.min()) * 1.03, 2.0), xlabel="mean of the input, std 1",
        legend=[("input-curve", "Gaussian, logarithmic")],
        yticks={-20.0 * k: power_of_ten(-20 * k) for k in range(6)},
    )  # fmt: skip
    right.line("input-curve", far, exponents)
    return Drawing(left, right)


def plot_relatives(middle: Array, families: Mapping[str, Mapping[str, Array]]) -> Drawing:
    """A panel for each family: scores of its members against the middle of the range, all of shape (n,)."""
    return Drawing(
        *(
            curves(f"Scores of {', '.join(lines)} ({name}) against the middle of the range.", middle, lines,
                   xlabel=f"middle of the range, {name}", ylim=(-0.03, 1.05))
            for name, lines in families.items()
        )
    )  # fmt: skip
