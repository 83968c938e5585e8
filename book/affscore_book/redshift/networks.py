"""Neural redshift: how complex is the function of a random network, and how non-linear are its activations?

A network takes the two coordinates of a pixel and gives its brightness, so its function can be looked at as an image.

*   :func:`random_network` draws the networks of the paper's Figure 4, :func:`layer_scores` measures them: the affinity
    score of every hidden activation over a grid of inputs.
*   ``draw="published"`` repeats the paper's draws number by number. In them, the network with large weights is
    another draw than the one with small weights. ``draw="paired"`` rescales one draw, so that only the scale differs.
*   :func:`fourier_frequency`, :func:`dct_frequency`, :func:`chebyshev_degree` and :func:`lempel_ziv` measure the
    complexity of the image.

Sources: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 4; Teney et al., "Neural
redshift: random networks are not random functions", CVPR 2024 (complexity by Fourier, polynomials and Lempel-Ziv).
The cosine transform in place of Fourier's is ours, and so is the statement on symmetry (:meth:`Network.rescaled`).
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.fft import dctn
from torch import Tensor, nn

from affscore.score import COVARIANCES, affinity_score
from affscore_book.activations.catalogue import ActivationFunction, Function, lookup

__all__ = [
    "DRAWS",
    "PANELS",
    "PUBLISHED_SEED",
    "SHIFT_MODES",
    "Network",
    "Study",
    "chebyshev_degree",
    "dct_frequency",
    "fourier_frequency",
    "grid_points",
    "image_of",
    "layer_scores",
    "lempel_ziv",
    "load_study",
    "random_network",
]

DRAWS = ("published", "paired")
SHIFT_MODES = ("bounds", "symmetric")

#: The seed of the paper's Figure 4.
PUBLISHED_SEED = 472907

#: The eight panels of the paper's Figure 4: (shift, scale, activation) -> (mean, std) of the scores it quotes.
PANELS = {
    (0.0, 1.0, "relu"): (0.90, 0.04),
    (0.0, 1.0, "tanh"): (0.96, 0.02),
    (0.0, 6.0, "relu"): (0.82, 0.07),
    (0.0, 6.0, "tanh"): (0.73, 0.05),
    (-0.05, 1.0, "relu"): (0.90, 0.05),
    (-0.05, 1.0, "tanh"): (0.96, 0.01),
    (-0.05, 6.0, "relu"): (0.65, 0.10),
    (-0.05, 6.0, "tanh"): (0.74, 0.05),
}


# --------------------------------------------------------------------------------------------- networks


def grid_points(n: int = 32, *, nodes: str = "even") -> Tensor:
    """The points of an n x n grid on [-1, 1]^2, float64, shape (n * n, 2), row by row.

    ``nodes="even"`` gives ``linspace(-1, 1, n)`` in both directions (the paper), ``nodes="chebyshev"`` the zeros of
    the Chebyshev polynomial of degree n, ``cos(pi (k + 1/2) / n)``, which :func:`chebyshev_degree` needs.

    Raises ValueError if n < 2 or ``nodes`` is unknown.

    >>> grid_points(2).tolist()
    [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    """
    _whole("grid", n, 2)
    if nodes == "even":
        line = torch.linspace(-1, 1, n, dtype=torch.float64)
    elif nodes == "chebyshev":
        line = torch.cos(math.pi * (torch.arange(n, dtype=torch.float64) + 0.5) / n)
    else:
        raise ValueError(f"nodes is {nodes!r}; it should be 'even' or 'chebyshev'.")
    return torch.cartesian_prod(line, line)


@dataclass(frozen=True, eq=False)
class Network:
    """A fully connected network without its activation, so that one draw can be tried with any activation.

    Attributes
    ----------
    weights
        One float64 matrix of shape (fan_out, fan_in) a layer, the output layer last.
    biases
        One float64 vector of shape (fan_out,) a layer.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    def __repr__(self) -> str:
        sizes = [self.weights[0].shape[1], *(len(bias) for bias in self.biases)]
        return f"Network({' -> '.join(map(str, sizes))})"

    def hidden(self, points: Tensor, activation: str | ActivationFunction | Function) -> list[tuple[Tensor, Tensor]]:
        """The inputs and outputs of every hidden activation: pairs of float64 tensors of shape (m, width).

        ``points`` has shape (m, fan_in).
        """
        sigma = lookup(activation)
        calls, value = [], points.to(torch.float64)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            before = value @ weight.T + bias
            value = sigma(before)
            calls.append((before, value))
        return calls

    def __call__(self, points: Tensor, activation: str | ActivationFunction | Function) -> Tensor:
        """The outputs for points of shape (m, fan_in): float64, shape (m,) if there is one output."""
        calls = self.hidden(points, activation)
        last = calls[-1][1] if calls else points.to(torch.float64)
        return (last @ self.weights[-1].T + self.biases[-1]).squeeze(-1)

    def rescaled(self, c: float, *, biases: bool) -> Network:
        """All weights times ``c`` > 0. With ``biases=True`` the biases of layer l = 1, ..., L are times ``c**l``.

        Then, for ReLU and every other positively homogeneous activation, the network's function is ``c**L`` times
        what it was, and no layer score changes.

        >>> net, x = random_network(seed=0), grid_points(4)
        >>> torch.allclose(net.rescaled(2.0, biases=True)(x, "relu"), 2**4 * net(x, "relu"), rtol=1e-12)
        True
        """
        _positive("c", c)
        powers = [c ** (layer + 1) if biases else 1.0 for layer in range(len(self.biases))]
        return Network(
            tuple(c * weight for weight in self.weights),
            tuple(power * bias for power, bias in zip(powers, self.biases, strict=True)),
        )


def random_network(
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    seed: int,
    draw: str = "published",
    shift_mode: str = "bounds",
    width: int = 40,
    depth: int = 3,
) -> Network:
    """A random network with two inputs and one output, as in the paper's Figure 4.

    With ``a = sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio 2010) and ``t = shift``, weights are uniform between
    ``scale * (-a + t)`` and ``scale * (a + t)``, biases between -1 and 1.

    Parameters
    ----------
    scale, shift
        Factor of the weights, > 0, and the shift t of their bounds.
    seed
        Seed of the draw. The global random state is left as it was.
    draw
        ``"published"``: float32 numbers from torch's generator in the order of the paper's experiment. There, any
        scale other than 1 is the *second* network drawn after seeding. ``"paired"``: one draw for all scales and
        shifts; at scale 1 it is the published one, up to the rounding of float32.
    shift_mode
        ``"bounds"`` moves both bounds, which gives the weights the mean ``scale * shift`` (what the paper ran);
        ``"symmetric"`` narrows them to ``scale * (-a - t), scale * (a + t)`` (what its caption says).
    width, depth
        Units of a hidden layer, and number of hidden layers, both at least 1.

    Raises
    ------
    ValueError
        If an argument is out of range or unknown.
    TypeError
        If ``seed``, ``width`` or ``depth`` is not a whole number.

    >>> random_network(seed=0)
    Network(2 -> 40 -> 40 -> 40 -> 1)
    """
    _positive("scale", scale)
    if not math.isfinite(shift):
        raise ValueError(f"shift is {shift}; it should be a finite number.")
    _whole("seed", seed, 0)
    _whole("width", width, 1)
    _whole("depth", depth, 1)
    _one_of("draw", draw, DRAWS)
    _one_of("shift_mode", shift_mode, SHIFT_MODES)
    sizes = [2, *[width] * depth, 1]
    bounds = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        a = math.sqrt(6 / (fan_in + fan_out))
        if shift_mode == "symmetric" and a + shift < 0:
            raise ValueError(f"shift is {shift}; with shift_mode 'symmetric' it should be at least {-a:.3f}.")
        low = -a + shift if shift_mode == "bounds" else -a - shift
        bounds.append((low, a + shift))

    second = draw == "published" and scale != 1
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if second:
            _uniform(sizes, bounds, 1.0)
        if draw == "published":
            return _uniform(sizes, bounds, scale)
        unit = _uniform(sizes, [(-1.0, 1.0)] * len(bounds), 1.0)
    middles = [(scale * (low + high) / 2, scale * (high - low) / 2) for low, high in bounds]
    weights = (middle + half * weight for (middle, half), weight in zip(middles, unit.weights, strict=True))
    return Network(tuple(weights), unit.biases)


def _uniform(sizes: list[int], bounds: list[tuple[float, float]], scale: float) -> Network:
    """A network drawn from torch's CPU generator, whose numbers are used in the order of the paper's experiment."""
    # The default initialisation of the layers comes first, for all of them, and uses up random numbers too.
    options: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}
    layers = [nn.Linear(n, m, **options) for n, m in itertools.pairwise(sizes)]
    with torch.no_grad():
        for layer, (low, high) in zip(layers, bounds, strict=True):
            layer.weight.uniform_(scale * low, scale * high)
            layer.bias.uniform_(-1.0, 1.0)
    weights = tuple(layer.weight.detach().to(torch.float64) for layer in layers)
    return Network(weights, tuple(layer.bias.detach().to(torch.float64) for layer in layers))


def layer_scores(
    activation: str | ActivationFunction | Function,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    seed: int,
    draw: str = "published",
    shift_mode: str = "bounds",
    covariance: str = "ledoit_wolf",
    width: int = 40,
    depth: int = 3,
    grid: int = 32,
) -> Tensor:
    """The affinity scores of the hidden activations of a random network over a grid of inputs, shape (depth,).

    Parameters
    ----------
    activation
        A name in :data:`affscore_book.activations.catalogue.CATALOGUE`, an ``ActivationFunction``, or a function of a
        tensor.
    scale, shift, seed, draw, shift_mode, width, depth
        As in :func:`random_network`.
    covariance
        As in :func:`affscore.affinity_score`. The first layer needs care: its inputs lie in a plane.
    grid
        Points in each direction, at least 2. The paper has 32, so n = 1024 samples.

    Returns
    -------
    Tensor
        float64; NaN for a layer whose output is constant.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or unknown.

    >>> [round(score, 2) for score in layer_scores("relu", seed=PUBLISHED_SEED, grid=8).tolist()]
    [0.86, 0.94, 0.9]
    """
    sigma = lookup(activation)
    _one_of("covariance", covariance, COVARIANCES)
    points = grid_points(grid)
    network = random_network(
        scale=scale, shift=shift, seed=seed, draw=draw, shift_mode=shift_mode, width=width, depth=depth
    )
    return torch.stack([affinity_score(x, y, covariance=covariance) for x, y in network.hidden(points, sigma)])


def image_of(
    network: Network, activation: str | ActivationFunction | Function, *, grid: int = 32, nodes: str = "even"
) -> Tensor:
    """The network's outputs over a grid as an image, float64, shape (grid, grid). See :func:`grid_points`.

    >>> image_of(random_network(seed=0), "tanh", grid=5).shape
    torch.Size([5, 5])
    """
    return network(grid_points(grid, nodes=nodes), activation).reshape(grid, grid)


# ------------------------------------------------------------------------------------------- complexity


def _image(image: Any) -> np.ndarray:
    """``image`` as a float64 array without its mean, of magnitude about 1, or an error that says what is wrong."""
    pixels = np.asarray(image, dtype=np.float64)
    if pixels.ndim != 2 or min(pixels.shape) < 2:
        raise ValueError(f"image has shape {pixels.shape}; it should be (rows, columns) with at least 2 of each.")
    if not np.isfinite(pixels).all():
        raise ValueError("image holds values that are NaN or infinite; all should be finite.")
    largest = np.abs(pixels).max()
    centred = pixels - pixels.mean()
    spread = np.abs(centred).max()
    if not spread > 1e-14 * largest:
        return np.zeros_like(pixels)
    return centred / spread


def _weighted(power: np.ndarray, frequency: np.ndarray) -> float:
    total = power.sum()
    return float((power * frequency).sum() / total) if total > 0 else math.nan


def fourier_frequency(image: Any) -> float:
    """Mean radial frequency of the Fourier spectrum, weighted by power, as a fraction of the Nyquist frequency.

    The mean of the image is removed. With the transform ``F`` and frequencies ``u, v`` in cycles a pixel this is
    ``sum |F|^2 sqrt(u^2 + v^2) / (1/2) / sum |F|^2``. The transform takes the image as one tile of a periodic
    pattern, so the jumps between tiles count as high frequencies: a slow ramp does not come near 0.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = np.arange(32) / 32
    >>> round(fourier_frequency(np.tile(np.cos(2 * np.pi * 4 * x), (32, 1))), 6)      # 4 of 16 periods
    0.25
    """
    pixels = _image(image)
    u, v = (np.fft.fftfreq(n) for n in pixels.shape)
    return _weighted(np.abs(np.fft.fft2(pixels)) ** 2, 2 * np.hypot(u[:, None], v[None, :]))


def dct_frequency(image: Any) -> float:
    """Mean radial frequency of the cosine transform, weighted by power, in half periods an image.

    With the coefficients ``c_ij`` of the orthonormal DCT-II, ``c_00`` dropped:
    ``sum c_ij^2 sqrt(i^2 + j^2) / sum c_ij^2``. The transform takes the image as mirrored at its edges, where
    nothing jumps, so a slow ramp is near 1, the lowest value there is.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = (np.arange(32) + 0.5) / 32
    >>> round(dct_frequency(np.outer(np.cos(np.pi * 3 * x), np.cos(np.pi * 4 * x))), 6)      # sqrt(9 + 16)
    5.0
    """
    return _weighted(_without_mean(dctn(_image(image), norm="ortho") ** 2), _radius(np.shape(image)))


def chebyshev_degree(image: Any) -> float:
    """Mean degree of the expansion in Chebyshev polynomials, weighted by power, of an image on Chebyshev nodes.

    The function is sampled on ``grid_points(n, nodes="chebyshev")``, there ``f = sum a_ij T_i(x) T_j(y)`` exactly,
    and the result is ``sum w_ij a_ij^2 sqrt(i^2 + j^2) / sum w_ij a_ij^2`` without the constant, ``w_ij`` the squared
    norm of ``T_i T_j`` on the nodes. Because ``T_k(cos t) = cos(k t)`` this is :func:`dct_frequency` on these nodes:
    a polynomial fit of any degree without an ill-conditioned matrix.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x, y = grid_points(16, nodes="chebyshev").T
    >>> round(chebyshev_degree(((4 * x**3 - 3 * x) * (8 * y**4 - 8 * y**2 + 1)).reshape(16, 16)), 6)     # T_3 T_4
    5.0
    """
    return dct_frequency(image)


def lempel_ziv(image: Any, *, levels: int = 10) -> float:
    """Lempel-Ziv complexity (1976) of the image in grey levels, divided by that of noise.

    Pixels are quantised to ``levels`` equal steps between the lowest and the highest, and read row by row and column by
    column, to and fro. Each of the two strings, of length N, is cut into its shortest phrases that have not occurred
    before, P of them; the result is the mean of ``P log(N) / (N log(levels))``, which tends to 1 for uniform noise
    when N is large.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes or levels < 2.

    >>> ramp = np.add.outer(np.arange(32), np.arange(32))
    >>> noise = np.random.default_rng(0).uniform(size=(32, 32))
    >>> lempel_ziv(ramp) < 0.3 < 0.9 < lempel_ziv(noise)
    True
    """
    _whole("levels", levels, 2)
    pixels = _image(image)
    if not pixels.any():
        return math.nan
    unit = (pixels - pixels.min()) / (pixels.max() - pixels.min())
    symbols = np.minimum((unit * levels).astype(int), levels - 1)
    n = symbols.size
    rate = math.log(n) / (n * math.log(levels))
    return rate * sum(_phrases(_to_and_fro(direction)) for direction in (symbols, symbols.T)) / 2


def _to_and_fro(symbols: np.ndarray) -> str:
    """The rows as one string, every second row backwards, so that neighbours stay neighbours."""
    turned = symbols.copy()
    turned[1::2] = turned[1::2, ::-1]
    return "".join(map(chr, turned.ravel() + 0x100))


def _phrases(text: str) -> int:
    """Number of phrases of Lempel and Ziv's exhaustive history.

    >>> _phrases("0001101001000101")           # 0 . 001 . 10 . 100 . 1000 . 101, their example
    6
    """
    start = count = 0
    while start < len(text):
        length = 1
        # A phrase may overlap its earlier copy, which must begin before it does.
        while start + length <= len(text) and text.find(text[start : start + length], 0, start + length - 1) >= 0:
            length += 1
        start += length
        count += 1
    return count


def _radius(shape: tuple[int, ...]) -> np.ndarray:
    return np.hypot(*np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"))


def _without_mean(power: np.ndarray) -> np.ndarray:
    power[0, 0] = 0.0
    return power


# ---------------------------------------------------------------------------------------- stored results


@dataclass(frozen=True, eq=False)
class Study:
    """What ``book/data/redshift/make.py`` computed, as float64 arrays; NaN where a score is undefined.

    Attributes
    ----------
    settings
        The settings of that script.
    scores
        Shape (draws, 8, 3): the scores of the layers in the panels of :data:`PANELS`, for paired draws with the
        seeds 0, 1, 2, ...
    fourier, dct
        Shape (draws, 8): :func:`fourier_frequency` and :func:`dct_frequency` of the images.
    maps
        For each activation ``"depth"``, shape (depths, scales, draws, 2), and ``"shift"``, shape (shifts, scales,
        draws, 2): the mean score of the layers and the mean frequency by cosine transform.
    """

    settings: dict[str, Any]
    scores: np.ndarray
    fourier: np.ndarray
    dct: np.ndarray
    maps: dict[str, dict[str, np.ndarray]]

    def __repr__(self) -> str:
        return f"Study({len(self.scores)} draws of {len(PANELS)} panels, maps of {len(self.maps)} activations)"

    def panel(self, shift: float, scale: float, activation: str) -> np.ndarray:
        """The mean score over the layers in one panel, shape (draws,)."""
        result: np.ndarray = self.scores[:, list(PANELS).index((shift, scale, activation))].mean(axis=1)
        return result


def load_study(path: str | Path) -> Study:
    """Read a file written by ``book/data/redshift/make.py``. Raises FileNotFoundError if it is missing."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    draws = np.array(raw["draws"], dtype=np.float64)
    maps = {
        name: {kind: np.array(values, dtype=np.float64) for kind, values in both.items()}
        for name, both in raw["maps"].items()
    }
    return Study(raw["settings"], draws[..., :3], draws[..., 3], draws[..., 4], maps)


# ------------------------------------------------------------------------------------------------ errors


def _positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}; it should be a finite number greater than 0.")


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {value!r}; it should be a whole number.")
    if value < least:
        raise ValueError(f"{name} is {value}; it should be at least {least}.")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it should be one of {', '.join(map(repr, known))}.")
