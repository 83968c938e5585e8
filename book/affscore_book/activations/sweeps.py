"""Forty years of activation functions: a catalogue, and the affinity score of each over its whole domain.

*   :data:`CATALOGUE` holds scalar activations, each with its formula, limits, year and source, in one table.
*   :func:`score_curve` gives the score of the *law* of the input, without any sample: in one dimension
    ``score = 1 - sqrt(1 - r)``, where ``r`` correlates the sorted input with the sorted output. For a
    non-decreasing activation the pairs ``(x, activation(x))`` are sorted already. The integrals are done by
    Gauss-Legendre quadrature between the kinks of the activation.
*   With ``coupling="paired"`` it takes the plain correlation of ``x`` and ``activation(x)`` instead. That is what the
    score of ``d`` independent coordinates tends to when ``d`` is large: two clouds in many dimensions are so sparse
    that the cheapest partner of ``T(x_i)`` is its own output ``y_i``. The two differ where the activation falls.
*   :func:`sample_score` is the protocol of the paper's Figure 8, with samples, through :func:`affinity_score`.

Sources: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figures 2, 8 and 9, Appendix B;
Dubey et al., "Activation functions in deep learning: a comprehensive survey and benchmark", 2022. That the two
couplings are the two ends of the paper's experiment is ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore.score import affinity_score, paired_affinity_score

__all__ = [
    "CATALOGUE",
    "FIGURE_8",
    "Activation",
    "Function",
    "Summary",
    "Sweep",
    "load_sweep",
    "lookup",
    "polynomial_score",
    "pooled_score",
    "sample_score",
    "score_curve",
    "summarise",
]

Function = Callable[[Tensor], Tensor]

#: The nine activations of the paper's Figure 8, in its order.
FIGURE_8 = ("sigmoid", "relu", "gelu", "relu6", "leaky_relu", "tanh", "hardtanh", "silu", "hardswish")


# ------------------------------------------------------------------------------------------ the catalogue


@dataclass(frozen=True)
class Activation:
    """One row of the catalogue: a function of one number, and what is known about it.

    Attributes
    ----------
    name, title
        The key in :data:`CATALOGUE` (torch's name where torch has it), and the name for figures.
    family
        One of ``"squashing"``, ``"shrinkage"``, ``"rectifier"``, ``"exponential"``, ``"smooth rectifier"``,
        ``"bump or wave"``, ``"power"``.
    formula
        LaTeX, as a function of x; s(x) stands for the sigmoid and Phi for the normal distribution function.
    function
        Maps a float64 tensor of any shape to one of the same shape.
    limits
        Limits at -infinity and +infinity; NaN where there is none.
    monotone
        True if the function never falls.
    year, reference
        Where it was proposed for networks, as far as we know.
    torch
        Name in ``torch.nn`` (or ``torch``) with the same default parameters, or "".
    kinks
        Points where the function or one of its derivatives jumps.
    tails
        ``function - limit`` at the left and at the right, for functions that come so close to a limit that the
        subtraction would cancel in float64; None elsewhere.
    """

    name: str
    title: str
    family: str
    formula: str
    function: Function
    limits: tuple[float, float]
    monotone: bool
    year: int
    reference: str
    torch: str = ""
    kinks: tuple[float, ...] = ()
    tails: tuple[Function | None, Function | None] = (None, None)

    def __call__(self, x: Any) -> Tensor:
        """The activation of numbers, an array or a tensor of any shape; float64 of the same shape."""
        return self.function(torch.as_tensor(x, dtype=torch.float64))

    def __repr__(self) -> str:
        return f"Activation({self.name!r}, {self.year})"


def _relu(x: Tensor) -> Tensor:
    return x.clamp(min=0)


def _softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def _ndtr(x: Tensor) -> Tensor:
    """The normal distribution function. Torch's own, by 1 + erf(x), cancels below -5 and is 0 below -8.3."""
    return 0.5 * torch.erfc(x / -math.sqrt(2))


def _gelu(x: Tensor) -> Tensor:
    return x * _ndtr(x)


def _step(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


def _clip01(x: Tensor) -> Tensor:
    return x.clamp(0, 1)


def _positive(x: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """``above`` where x > 0 and ``below`` elsewhere."""
    return torch.where(x > 0, above, below)


_sigmoid, _inf, _nan = torch.sigmoid, math.inf, math.nan
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
_RRELU = (1 / 8 + 1 / 3) / 2  # the slope that torch uses in evaluation mode


def _sqnl(x: Tensor) -> Tensor:
    inside = x.clamp(-2, 2)
    return inside - inside * inside.abs() / 4


def _sq_rbf(x: Tensor) -> Tensor:
    size = x.abs()
    return torch.where(size < 1, 1 - x**2 / 2, _relu(2 - size) ** 2 / 2)


def _plu(x: Tensor) -> Tensor:
    return x.clamp(-1, 1) + 0.1 * (x - x.clamp(-1, 1))


def _dsilu(x: Tensor) -> Tensor:
    return _sigmoid(x) * (1 + x * _sigmoid(-x))


def _penalized_tanh(x: Tensor) -> Tensor:
    return _positive(x, torch.tanh(x), 0.25 * torch.tanh(x))


# One row each: name, title, family, formula, function, limits, monotone, year, reference, torch, kinks, tails.
_ROWS = (
    # Steps and squashing functions.
    Activation("heaviside", "Heaviside", "squashing", r"1\ \text{if}\ x>0,\ \text{else}\ 0", _step, (0, 1), True,
               1943, "McCulloch and Pitts 1943", "heaviside", (0,)),
    Activation("sign", "sign", "squashing", r"\operatorname{sign}(x)", torch.sign, (-1, 1), True, 2016,
               "Courbariaux et al. 2016, arXiv:1602.02830", "sign", (0,)),
    Activation("sigmoid", "sigmoid", "squashing", r"\frac{1}{1+e^{-x}}", _sigmoid, (0, 1), True, 1986,
               "Rumelhart et al. 1986, Nature", "Sigmoid", tails=(None, lambda x: -_sigmoid(-x))),
    Activation("tanh", "tanh", "squashing", r"\tanh x", torch.tanh, (-1, 1), True, 1992,
               "Kalman and Kwasny 1992, IJCNN", "Tanh",
               tails=(lambda x: 2 * _sigmoid(2 * x), lambda x: -2 * _sigmoid(-2 * x))),
    Activation("lecun_tanh", "LeCun's tanh", "squashing", r"1.7159\,\tanh(2x/3)",
               lambda x: 1.7159 * torch.tanh(2 * x / 3), (-1.7159, 1.7159), True, 1998,
               "LeCun et al. 1998, Efficient BackProp",
               tails=(lambda x: 3.4318 * _sigmoid(4 * x / 3), lambda x: -3.4318 * _sigmoid(-4 * x / 3))),
    Activation("penalized_tanh", "penalized tanh", "squashing",
               r"\tanh x\ \text{if}\ x>0,\ \text{else}\ \tfrac14\tanh x", _penalized_tanh, (-0.25, 1), True, 2016,
               "Xu et al. 2016, arXiv:1602.05980", "", (0,),
               (lambda x: _positive(x, torch.tanh(x) + 0.25, 0.5 * _sigmoid(2 * x)),
                lambda x: _positive(x, -2 * _sigmoid(-2 * x), 0.25 * torch.tanh(x) - 1))),
    Activation("hardtanh", "hardtanh", "squashing", r"\min(\max(x,-1),1)", lambda x: x.clamp(-1, 1), (-1, 1), True,
               2004, "Collobert 2004, thesis", "Hardtanh", (-1, 1)),
    Activation("hardsigmoid", "hardsigmoid", "squashing", r"\min(\max(x+3,0),6)/6", lambda x: (x + 3).clamp(0, 6) / 6,
               (0, 1), True, 2019, "Howard et al. 2019, arXiv:1905.02244", "Hardsigmoid", (-3, 3)),
    Activation("softsign", "softsign", "squashing", r"\frac{x}{1+\lvert x\rvert}", lambda x: x / (1 + x.abs()),
               (-1, 1), True, 1993, "Elliott 1993, ISR report", "Softsign", (0,)),
    Activation("arctan", "arctan", "squashing", r"\arctan x", torch.atan, (-math.pi / 2, math.pi / 2), True, 2002,
               "Kamruzzaman and Aziz 2002, IJCNN", "atan"),
    Activation("erf", "erf", "squashing", r"\operatorname{erf}(x)", torch.erf, (-1, 1), True, 1997,
               "Williams 1997, NIPS 9", "erf", tails=(lambda x: torch.erfc(-x), lambda x: -torch.erfc(x))),
    Activation("isru", "ISRU", "squashing", r"\frac{x}{\sqrt{1+x^2}}", lambda x: x / (1 + x**2).sqrt(), (-1, 1), True,
               2017, "Carlile et al. 2017, arXiv:1710.09967"),
    Activation("sqnl", "SQNL", "squashing", r"z-z\lvert z\rvert/4,\ z=\min(\max(x,-2),2)", _sqnl, (-1, 1), True, 2018,
               "Wuraola and Patel 2018, IJCNN", "", (-2, 0, 2)),
    Activation("symlog", "symlog", "squashing", r"\operatorname{sign}(x)\ln(1+\lvert x\rvert)",
               lambda x: x.sign() * x.abs().log1p(), (-_inf, _inf), True, 2023,
               "Hafner et al. 2023, arXiv:2301.04104", "", (0,)),
    Activation("cloglog", "cloglog", "squashing", r"1-e^{-e^{x}}", lambda x: -torch.expm1(-x.exp()), (0, 1), True,
               2008, "Gomes and Ludermir 2008, HIS", tails=(None, lambda x: -torch.exp(-x.exp()))),
    Activation("logsigmoid", "log-sigmoid", "squashing", r"-\ln(1+e^{-x})", lambda x: -_softplus(-x), (-_inf, 0),
               True, 2011, "Collobert et al. 2011, Torch7", "LogSigmoid"),
    # Shrinkage functions.
    Activation("tanhshrink", "tanhshrink", "shrinkage", r"x-\tanh x", lambda x: x - torch.tanh(x), (-_inf, _inf),
               True, 2011, "Collobert et al. 2011, Torch7", "Tanhshrink"),
    Activation("hardshrink", "hardshrink", "shrinkage", r"x\ \text{if}\ \lvert x\rvert>\tfrac12,\ \text{else}\ 0",
               lambda x: torch.where(x.abs() > 0.5, x, 0.0), (-_inf, _inf), True, 1994,
               "Donoho and Johnstone 1994, Biometrika", "Hardshrink", (-0.5, 0.5)),
    Activation("softshrink", "softshrink", "shrinkage", r"\operatorname{sign}(x)\,\max(\lvert x\rvert-\tfrac12,0)",
               lambda x: x - x.clamp(-0.5, 0.5), (-_inf, _inf), True, 1994, "Donoho and Johnstone 1994, Biometrika",
               "Softshrink", (-0.5, 0.5)),
    # Rectifiers.
    Activation("relu", "ReLU", "rectifier", r"\max(0,x)", _relu, (0, _inf), True, 2010, "Nair and Hinton 2010, ICML",
               "ReLU", (0,)),
    Activation("relu6", "ReLU6", "rectifier", r"\min(\max(0,x),6)", lambda x: x.clamp(0, 6), (0, 6), True, 2010,
               "Krizhevsky 2010, report", "ReLU6", (0, 6)),
    Activation("brelu", "bounded ReLU", "rectifier", r"\min(\max(0,x),1)", _clip01, (0, 1), True, 2016,
               "Cai et al. 2016, arXiv:1601.07661", "", (0, 1)),
    Activation("shifted_relu", "shifted ReLU", "rectifier", r"\max(-1,x)", lambda x: x.clamp(min=-1), (-1, _inf),
               True, 2015, "Clevert et al. 2015, arXiv:1511.07289", "", (-1,)),
    Activation("threshold", "thresholded ReLU", "rectifier", r"x\ \text{if}\ x>1,\ \text{else}\ 0",
               lambda x: torch.where(x > 1, x, 0.0), (0, _inf), True, 2014, "Konda et al. 2014, arXiv:1402.3337",
               "Threshold", (1,)),
    Activation("leaky_relu", "LeakyReLU", "rectifier", r"\max(0,x)+0.01\min(0,x)",
               lambda x: _positive(x, x, 0.01 * x), (-_inf, _inf), True, 2013, "Maas et al. 2013, ICML workshop",
               "LeakyReLU", (0,)),
    Activation("prelu", "PReLU", "rectifier", r"\max(0,x)+\tfrac14\min(0,x)", lambda x: _positive(x, x, 0.25 * x),
               (-_inf, _inf), True, 2015, "He et al. 2015, arXiv:1502.01852", "PReLU", (0,)),
    Activation("rrelu", "RReLU", "rectifier", r"\max(0,x)+\tfrac{11}{48}\min(0,x)",
               lambda x: _positive(x, x, _RRELU * x), (-_inf, _inf), True, 2015, "Xu et al. 2015, arXiv:1505.00853",
               "RReLU", (0,)),
    Activation("nlrelu", "NLReLU", "rectifier", r"\ln(1+\max(0,x))", lambda x: _relu(x).log1p(), (0, _inf), True,
               2019, "Liu et al. 2019, arXiv:1908.03682", "", (0,)),
    Activation("relu_squared", "squared ReLU", "rectifier", r"\max(0,x)^2", lambda x: _relu(x) ** 2, (0, _inf), True,
               2021, "So et al. 2021, arXiv:2109.08668", "", (0,)),
    Activation("plu", "PLU", "rectifier", r"\tfrac{1}{10}x+\tfrac{9}{10}\min(\max(x,-1),1)", _plu, (-_inf, _inf),
               True, 2018, "Nicolae 2018, arXiv:1809.09534", "", (-1, 1)),
    # Exponential units.
    Activation("elu", "ELU", "exponential", r"x\ \text{if}\ x>0,\ \text{else}\ e^x-1",
               lambda x: _positive(x, x, torch.expm1(x)), (-1, _inf), True, 2015,
               "Clevert et al. 2015, arXiv:1511.07289", "ELU", (0,), (lambda x: _positive(x, x + 1, x.exp()), None)),
    Activation("selu", "SELU", "exponential", r"1.0507\,(x\ \text{if}\ x>0,\ \text{else}\ 1.6733\,(e^x-1))",
               lambda x: _SELU_SCALE * _positive(x, x, _SELU_ALPHA * torch.expm1(x)),
               (-_SELU_SCALE * _SELU_ALPHA, _inf), True, 2017, "Klambauer et al. 2017, arXiv:1706.02515", "SELU",
               (0,), (lambda x: _SELU_SCALE * _positive(x, x + _SELU_ALPHA, _SELU_ALPHA * x.exp()), None)),
    Activation("isrlu", "ISRLU", "exponential", r"x\ \text{if}\ x>0,\ \text{else}\ \frac{x}{\sqrt{1+x^2}}",
               lambda x: _positive(x, x, x / (1 + x**2).sqrt()), (-1, _inf), True, 2017,
               "Carlile et al. 2017, arXiv:1710.09967", "", (0,)),
    Activation("reu", "REU", "exponential", r"x\ \text{if}\ x>0,\ \text{else}\ x\,e^x",
               lambda x: x * x.clamp(max=0).exp(), (0, _inf), False, 2019, "Ying et al. 2019, IEEE Access", "", (0,)),
    Activation("elish", "ELiSH", "exponential", r"s(x)\,(x\ \text{if}\ x>0,\ \text{else}\ e^x-1)",
               lambda x: _sigmoid(x) * _positive(x, x, torch.expm1(x)), (0, _inf), False, 2018,
               "Basirat and Roth 2018, arXiv:1808.00783", "", (0,)),
    Activation("hard_elish", "HardELiSH", "exponential",
               r"\min(\max(\tfrac{x+1}{2},0),1)\,(x\ \text{if}\ x>0,\ \text{else}\ e^x-1)",
               lambda x: _clip01((x + 1) / 2) * _positive(x, x, torch.expm1(x)), (0, _inf), False, 2018,
               "Basirat and Roth 2018, arXiv:1808.00783", "", (-1, 0, 1)),
    Activation("exponential", "exponential", "exponential", r"e^x", torch.exp, (0, _inf), True, 2021,
               "Koo and Ploenzke 2021, Nat. Mach. Intell.", "exp"),
    # Smooth rectifiers.
    Activation("softplus", "softplus", "smooth rectifier", r"\ln(1+e^x)", _softplus, (0, _inf), True, 2001,
               "Dugas et al. 2001, NIPS 13", "Softplus"),
    Activation("squareplus", "squareplus", "smooth rectifier", r"\tfrac12(x+\sqrt{x^2+4})",
               lambda x: 0.5 * (x + (x**2 + 4).sqrt()), (0, _inf), True, 2021, "Barron 2021, arXiv:2112.11687"),
    Activation("gelu", "GELU", "smooth rectifier", r"x\,\Phi(x)", _gelu, (0, _inf), False, 2016,
               "Hendrycks and Gimpel 2016, arXiv:1606.08415", "GELU"),
    Activation("quick_gelu", "quick GELU", "smooth rectifier", r"x\,s(1.702x)", lambda x: x * _sigmoid(1.702 * x),
               (0, _inf), False, 2016, "Hendrycks and Gimpel 2016, arXiv:1606.08415"),
    Activation("gelu_tanh", "GELU (tanh)", "smooth rectifier", r"x\,s\left(\sqrt{8/\pi}\,(x+0.044715x^3)\right)",
               lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)), (0, _inf), False, 2016,
               "Hendrycks and Gimpel 2016, arXiv:1606.08415", "GELU"),
    Activation("silu", "SiLU", "smooth rectifier", r"x\,s(x)", lambda x: x * _sigmoid(x), (0, _inf), False, 2018,
               "Elfwing et al. 2018, arXiv:1702.03118", "SiLU"),
    Activation("dsilu", "dSiLU", "smooth rectifier", r"s(x)\,(1+x\,s(-x))", _dsilu, (0, 1), False, 2018,
               "Elfwing et al. 2018, arXiv:1702.03118", tails=(None, lambda x: -_dsilu(-x))),
    Activation("hardswish", "hardswish", "smooth rectifier", r"x\,\min(\max(x+3,0),6)/6",
               lambda x: x * (x + 3).clamp(0, 6) / 6, (0, _inf), False, 2019, "Howard et al. 2019, arXiv:1905.02244",
               "Hardswish", (-3, 3)),
    Activation("fts", "FTSwish", "smooth rectifier", r"\max(0,x)\,s(x)-\tfrac15",
               lambda x: _relu(x) * _sigmoid(x) - 0.2, (-0.2, _inf), True, 2018,
               "Chieng et al. 2018, arXiv:1812.06247", "", (0,)),
    Activation("mish", "Mish", "smooth rectifier", r"x\tanh(\ln(1+e^x))", lambda x: x * torch.tanh(_softplus(x)),
               (0, _inf), False, 2019, "Misra 2019, arXiv:1908.08681", "Mish"),
    Activation("tanhexp", "TanhExp", "smooth rectifier", r"x\tanh(e^x)", lambda x: x * torch.tanh(x.exp()), (0, _inf),
               False, 2020, "Liu and Di 2020, arXiv:2003.09855"),
    Activation("serf", "Serf", "smooth rectifier", r"x\operatorname{erf}(\ln(1+e^x))",
               lambda x: x * torch.erf(_softplus(x)), (0, _inf), False, 2021,
               "Nag and Bhattacharyya 2021, arXiv:2108.09598"),
    Activation("logish", "Logish", "smooth rectifier", r"x\ln(1+s(x))", lambda x: x * _sigmoid(x).log1p(), (0, _inf),
               False, 2021, "Zhu et al. 2021, Neurocomputing"),
    Activation("smish", "Smish", "smooth rectifier", r"x\tanh(\ln(1+s(x)))",
               lambda x: x * torch.tanh(_sigmoid(x).log1p()), (0, _inf), False, 2022,
               "Wang et al. 2022, Electronics"),
    Activation("phish", "Phish", "smooth rectifier", r"x\tanh(x\,\Phi(x))", lambda x: x * torch.tanh(_gelu(x)),
               (0, _inf), False, 2022, "Naveen 2022, TechRxiv"),
    Activation("lisht", "LiSHT", "smooth rectifier", r"x\tanh x", lambda x: x * torch.tanh(x), (_inf, _inf), False,
               2019, "Roy et al. 2019, arXiv:1901.05894"),
    # Bumps and waves.
    Activation("gaussian", "Gaussian", "bump or wave", r"e^{-x^2}", lambda x: torch.exp(-(x**2)), (0, 0), False, 1988,
               "Broomhead and Lowe 1988, Complex Systems"),
    Activation("ricker", "Mexican hat", "bump or wave", r"(1-x^2)\,e^{-x^2/2}",
               lambda x: (1 - x**2) * torch.exp(-(x**2) / 2), (0, 0), False, 1992,
               "Zhang and Benveniste 1992, IEEE TNN"),
    Activation("sq_rbf", "SQ-RBF", "bump or wave",
               r"1-\tfrac12x^2\ \text{if}\ \lvert x\rvert<1,\ \text{else}\ \tfrac12\max(2-\lvert x\rvert,0)^2",
               _sq_rbf, (0, 0), False, 2018, "Wuraola and Patel 2018, ICONIP", "", (-2, -1, 1, 2)),
    Activation("sine", "sine", "bump or wave", r"\sin x", torch.sin, (_nan, _nan), False, 2020,
               "Sitzmann et al. 2020, arXiv:2006.09661", "sin"),
    Activation("cosine", "cosine", "bump or wave", r"\cos x", torch.cos, (_nan, _nan), False, 2007,
               "Rahimi and Recht 2007, NIPS 20", "cos"),
    Activation("snake", "Snake", "bump or wave", r"x+\sin^2x", lambda x: x + torch.sin(x) ** 2, (-_inf, _inf), True,
               2020, "Ziyin et al. 2020, arXiv:2006.08195"),
    Activation("gcu", "GCU", "bump or wave", r"x\cos x", lambda x: x * torch.cos(x), (_nan, _nan), False, 2021,
               "Noel et al. 2021, arXiv:2108.12943"),
    # Powers.
    Activation("identity", "identity", "power", r"x", lambda x: x, (-_inf, _inf), True, 1960,
               "Widrow and Hoff 1960 (Adaline)", "Identity"),
    Activation("abs", "absolute value", "power", r"\lvert x\rvert", torch.abs, (_inf, _inf), False, 2009,
               "Jarrett et al. 2009, ICCV", "abs", (0,)),
    Activation("square", "square", "power", r"x^2", torch.square, (_inf, _inf), False, 2014,
               "Livni et al. 2014, arXiv:1410.1141", "square"),
    Activation("cube", "cube", "power", r"x^3", lambda x: x**3, (-_inf, _inf), True, 2014,
               "Chen and Manning 2014, EMNLP"),
)  # fmt: skip

#: The catalogue: :class:`Activation` by name.
CATALOGUE: dict[str, Activation] = {row.name: row for row in _ROWS}


def lookup(activation: str | Activation | Function) -> Activation:
    """The catalogue's activation of that name; a function of a tensor becomes an activation without known kinks.

    Raises
    ------
    ValueError
        If the name is not in the catalogue.
    TypeError
        If the argument is neither a name nor callable.

    >>> lookup("relu").formula, lookup(torch.nn.Softplus(beta=2)).monotone
    ('\\\\max(0,x)', False)
    """
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        if activation not in CATALOGUE:
            raise ValueError(f"activation is {activation!r}; it should be one of {', '.join(CATALOGUE)}.")
        return CATALOGUE[activation]
    if callable(activation):
        title = getattr(activation, "__name__", type(activation).__name__).replace("<lambda>", "custom")
        return Activation("custom", title, "custom", "", activation, (_nan, _nan), False, 0, "")
    raise TypeError(f"activation is {activation!r}; it should be a name, an Activation or a function of a tensor.")


# ------------------------------------------------------------------------------------ scores of a law

# Gauss-Legendre nodes for one panel, on [-1, 1].
_NODES, _WEIGHTS = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(16))
_REACH = 38.0  # beyond so many standard deviations the normal density is 0 in float64
_SORTED_REACH, _SORTED_STEP = 8.0, 1 / 256  # the grid for sorting, in standard deviations
_ROOT3 = math.sqrt(3)


def score_curve(
    activation: str | Activation | Function,
    means: Any,
    std: float = 1.0,
    *,
    distribution: str = "normal",
    coupling: str = "sorted",
) -> Tensor:
    """The affinity score of an activation for inputs of given means and standard deviation: the exact law, no sample.

    Parameters
    ----------
    activation
        A name in :data:`CATALOGUE`, an :class:`Activation`, or a function of a float64 tensor.
    means
        Means of the input, a number or an array or tensor of any shape, finite.
    std
        Standard deviation of the input, a positive number.
    distribution
        ``"normal"``, or ``"uniform"`` on ``mean +- sqrt(3) std``.
    coupling
        ``"sorted"``: the score in one dimension. ``"paired"``: with the correlation of x and activation(x), which is
        what the score of many independent coordinates tends to (it is the same for a monotone activation).

    Returns
    -------
    Tensor
        Float64, the shape of ``means``. NaN where the output is constant. For a monotone activation and for
        ``"paired"`` the error is below 1e-9; for monotone piecewise linear ones with a normal input it is relative,
        down to 1e-140 (scores below 1e-160 come out as 0). For a non-monotone activation with ``"sorted"`` the
        error is below 1e-5, from a fine grid that is sorted.

    Raises
    ------
    ValueError
        If a mean is not finite, ``std`` is not positive and finite, or a name is unknown.

    >>> score_curve("relu", [-30.0, 0.0, 30.0])                                  # (3,)
    tensor([2.3560e-98, 6.2109e-01, 1.0000e+00], dtype=torch.float64)
    >>> [round(score_curve("silu", -3.0, coupling=c).item(), 3) for c in ("sorted", "paired")]
    [0.852, -0.38]
    """
    row = lookup(activation)
    if distribution not in ("normal", "uniform"):
        raise ValueError(f"distribution is {distribution!r}; it should be 'normal' or 'uniform'.")
    if coupling not in ("sorted", "paired"):
        raise ValueError(f"coupling is {coupling!r}; it should be 'sorted' or 'paired'.")
    if not (0 < std < math.inf):
        raise ValueError(f"std is {std}; it should be positive and finite.")
    means = torch.as_tensor(means, dtype=torch.float64)
    if not bool(means.isfinite().all()):
        raise ValueError(f"means holds {means[~means.isfinite()][0].item()}; all should be finite.")
    law = _sorted_law if coupling == "sorted" and not row.monotone else _paired_law
    with torch.no_grad():
        parts = [law(row, part, float(std), distribution) for part in means.reshape(-1, 1).split(64)]
    return torch.cat(parts).reshape(means.shape) if parts else means.clone()


def _paired_law(row: Activation, means: Tensor, std: float, distribution: str, falls: bool = False) -> Tensor:
    """1 - sqrt(1 - r), r the correlation of x and activation(x), by quadrature between kinks; means (m, 1).

    ``falls`` takes the magnitude of r.
    """
    if not len(means):
        return means[:, 0]
    reach = _REACH if distribution == "normal" else _ROOT3
    # Panels half a standard deviation wide, but no wider than the activations' own scale, about 1.
    count = math.ceil(2 * reach / min(0.5, 1 / std))
    edges = torch.linspace(-reach, reach, count + 1, dtype=torch.float64).expand(len(means), -1)
    if row.kinks:
        kinks = (torch.tensor(row.kinks, dtype=torch.float64) - means) / std
        edges = torch.cat([edges, kinks.clamp(-reach, reach)], dim=1).sort(dim=1).values
    half = edges.diff(dim=1)[..., None] / 2
    z = ((edges[:, :-1, None] + half) + half * _NODES).flatten(1)
    weight = (half * _WEIGHTS).flatten(1)
    weight = weight * (torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) if reach == _REACH else 0.5 / _ROOT3)
    y = _unit(_values(row, means, std, z), _values(row, means, std, torch.zeros_like(means))[:, 0])
    y = y - (weight * y).sum(dim=1, keepdim=True)
    cov = (weight * z * y).sum(dim=1)
    var = (weight * y**2).sum(dim=1)
    rest = (weight * (y - cov[:, None] * z) ** 2).sum(dim=1)
    score = _score(cov.abs() if falls else cov, var, rest)
    if distribution == "normal" and row.kinks:
        # Mathematically an output with kinks is never constant on the whole line, so the score is just too small.
        score = score.masked_fill(var == 0, 0.0)
    return score


def _sorted_law(row: Activation, means: Tensor, std: float, distribution: str) -> Tensor:
    """1 - sqrt(1 - r), r the correlation of sorted x and sorted activation(x), on a fine grid; means (m, 1)."""
    z, weight = _grid(std, distribution)
    y = _values(row, means, std, z)
    # Where the activation never turns within reach, sorting keeps the pairs, or reverses all of them.
    change = y.diff(dim=1)
    turns = (change > 0).any(dim=1) & (change < 0).any(dim=1)
    score = torch.empty_like(y[:, 0])
    score[~turns] = _paired_law(row, means[~turns], std, distribution, falls=True)
    y, order = _unit(y[turns], y[turns, len(z) // 2]).sort(dim=1)
    mass = weight[order]
    y = y - (mass * y).sum(dim=1, keepdim=True)
    # The k-th smallest output takes the inputs between the quantiles ends[k - 1] and ends[k]. Both laws have the same
    # atoms in a different order, so the integral of the quantile function of x is linear between the ends of its own.
    ends, ends_x = mass.cumsum(dim=1), weight.cumsum(0)
    integral = (weight * z).cumsum(0)
    piece = torch.searchsorted(ends_x, ends.contiguous()).clamp(max=len(z) - 1)
    upto = integral[piece] + z[piece] * (ends - ends_x[piece])
    cov = (y * torch.diff(upto, dim=1, prepend=torch.zeros_like(upto[:, :1]))).sum(dim=1)
    var, var_z = (mass * y**2).sum(dim=1), (weight * z**2).sum()
    score[turns] = _score(cov / var_z.sqrt(), var, (var - cov**2 / var_z).clamp(min=0))
    return score


def _grid(std: float, distribution: str) -> tuple[Tensor, Tensor]:
    """Points of the standardised input and their masses, symmetric about 0, for the sorted coupling."""
    if distribution == "uniform":
        count = 2 * math.ceil(2048 * max(1.0, std)) + 1
        z = _ROOT3 * (2 * torch.arange(count, dtype=torch.float64) + 1 - count) / count
        return z, torch.full_like(z, 1 / count)
    step = _SORTED_STEP / max(1.0, std)
    half = math.ceil(_SORTED_REACH / step)
    z = torch.arange(-half, half + 1, dtype=torch.float64) * step
    weight = torch.exp(-(z**2) / 2)
    return z, weight / weight.sum()


def _unit(y: Tensor, centre: Tensor) -> Tensor:
    """y - centre in each row, over the power of two just above its largest magnitude.

    Where the output is flat but for a rare event, only differences from the flat value keep their digits.
    """
    y = y - centre[:, None]
    return torch.ldexp(y, -torch.frexp(y.abs().amax(dim=1, keepdim=True)).exponent)


def _values(row: Activation, means: Tensor, std: float, z: Tensor) -> Tensor:
    """activation(mean + std z) up to a constant: measured from the limit on the mean's side, where that is known."""
    x = means + std * z
    left, right = (tail or row.function for tail in row.tails)
    if left is right:
        return left(x)
    return torch.where(means < 0, left(x), right(x))


def _score(cov: Tensor, var: Tensor, rest: Tensor) -> Tensor:
    """1 - sqrt(1 - r) from Cov(z, y), Var y and the variance of y that a regression on z leaves; NaN if Var y = 0."""
    r = cov / var.sqrt()
    # 1 - r = (1 - r^2) / (1 + r) without cancellation near r = 1, and 1 - sqrt(1 - r) without it near r = 0.
    return torch.where(r < 0.5, r / (1 + (1 - r).sqrt()), 1 - (rest / var / (1 + r.clamp(min=0))).sqrt())


def polynomial_score(degree: int) -> float:
    """The affinity score of x^k for x uniform on (-1, 1): 1 - sqrt(1 - r) with r = sqrt(3 (2k + 1)) / (k + 2).

    The same formula holds for odd k, where x^k rises, and for even k, where only the sorted values count
    (the paper's Figure 2C).

    Raises
    ------
    ValueError
        If ``degree`` is not a whole number of at least 1.

    >>> [round(polynomial_score(k), 2) for k in (1, 3, 5, 7, 11, 41)]
    [1.0, 0.71, 0.58, 0.5, 0.4, 0.2]
    """
    if degree != int(degree) or degree < 1:
        raise ValueError(f"degree is {degree}; it should be a whole number of at least 1.")
    k = int(degree)
    # 1 - r^2 = (k - 1)^2 / (k + 2)^2 exactly.
    r = math.sqrt(3 * (2 * k + 1)) / (k + 2)
    return 1 - (k - 1) / (k + 2) / math.sqrt(1 + r)


# --------------------------------------------------------------------------------------- two statistics


@dataclass(frozen=True)
class Summary:
    """What is left of a score curve in two numbers (Appendix B of the paper), for one activation.

    Attributes
    ----------
    lowest, lowest_at
        Smallest score over the domain, and the mean nearest to 0 whose score is within 0.001 of it.
    width
        Total length of the means in the domain whose score is below the threshold.
    dead
        Total length of the means that are left out because the central 99.9 % of the input has one output only: a
        sample of 1000 points is then constant with a probability of about 0.4 or more.
    """

    lowest: float
    lowest_at: float
    width: float
    dead: float


def summarise(
    activation: str | Activation | Function,
    *,
    std: float = 1.0,
    threshold: float = 0.9,
    domain: tuple[float, float] = (-20.0, 20.0),
    points: int = 201,
    coupling: str = "sorted",
) -> Summary:
    """The lowest score over the domain and the width of the non-linear range, for normal inputs.

    Parameters
    ----------
    activation, std, coupling
        As in :func:`score_curve`.
    threshold
        Inputs with a score below it count as non-linear.
    domain, points
        The means: ``points`` of them, evenly spaced over the domain, ends included. Widths are multiples of the
        spacing.

    Raises
    ------
    ValueError
        As :func:`score_curve`, or if ``domain`` is not (low, high) with low < high, or ``points`` < 2.

    >>> summary = summarise("relu")
    >>> round(summary.lowest, 2), round(summary.width, 1), round(summary.dead, 1)
    (0.04, 4.8, 16.8)
    """
    low, high = domain
    if not low < high:
        raise ValueError(f"domain is {domain}; it should be (low, high) with low < high.")
    if points < 2:
        raise ValueError(f"points is {points}; it should be at least 2.")
    row = lookup(activation)
    means = torch.linspace(low, high, points, dtype=torch.float64)[:, None]
    scores = score_curve(row, means[:, 0], std, coupling=coupling)
    central = torch.linspace(-1, 1, 65, dtype=torch.float64) * 3.2905
    values = _values(row, means, std, central)
    dead = (values == values[:, :1]).all(dim=1)
    spacing = (high - low) / (points - 1)
    scores = torch.where(dead, math.inf, scores)
    scores = scores.nan_to_num(nan=math.inf, posinf=math.inf)
    lowest = scores.min()
    at = torch.where(scores <= lowest + 1e-3, means[:, 0].abs(), math.inf).argmin()
    return Summary(
        lowest=lowest.item(),
        lowest_at=means[at].item(),
        width=spacing * int((scores < threshold).sum()),
        dead=spacing * int(dead.sum()),
    )


# ------------------------------------------------------------------------------------------- samples


def sample_score(
    activation: str | Activation | Function,
    mean: float,
    std: float,
    *,
    n: int = 1000,
    d: int = 300,
    seed: int = 0,
    paired: bool = False,
    covariance: str = "ledoit_wolf",
) -> float:
    """The score of a sample of n points in d independent coordinates, each N(mean, std^2): one cell of Figure 8.

    The draw depends on ``seed``, ``mean``, ``std``, n and d only, so that all activations see the same inputs. NaN
    where the output is constant. ``paired`` takes :func:`paired_affinity_score` instead. Raises ValueError for bad
    sizes or an unknown name.

    >>> round(sample_score("relu", 0.0, 1.0, n=200, d=20), 2)
    0.62
    """
    x = _normal(mean, std, (n, d), seed)
    score = paired_affinity_score if paired else affinity_score
    return score(x, lookup(activation)(x), covariance=covariance).item()


def pooled_score(
    activation: str | Activation | Function,
    *,
    channels: int,
    positions: int,
    pool: int = 1,
    n: int = 1000,
    seed: int = 0,
    covariance: str = "ledoit_wolf",
) -> float:
    """The score of feature maps after averaging input and output over groups of ``pool`` positions (Figure 9, top).

    A feature map has ``channels`` x ``positions`` independent standard normal inputs. Each row of the sample is one
    map, with ``channels * positions / pool`` entries. ``pool = 1`` is the flattened map, ``pool = positions`` one
    number for each channel.

    Raises
    ------
    ValueError
        If ``pool`` does not divide ``positions``, or a size or name is wrong.

    >>> round(pooled_score("relu", channels=32, positions=4, pool=4, n=100), 1)
    0.6
    """
    if pool < 1 or positions % pool:
        raise ValueError(f"pool is {pool}; it should divide positions = {positions}.")
    x = _normal(0.0, 1.0, (n, channels * positions // pool, pool), seed)
    y = lookup(activation)(x)
    return affinity_score(x.mean(dim=2), y.mean(dim=2), covariance=covariance).item()


@dataclass(frozen=True)
class Sweep:
    """A stored sweep over means and standard deviations, with the settings that reproduce it.

    Attributes
    ----------
    means, stds
        Arrays of shape (m,) and (s,).
    scores
        For each activation an array of shape (m, s), NaN where the output was constant.
    settings, made_with
        ``n``, ``d``, ``seed`` and so on; versions and device.
    """

    means: np.ndarray
    stds: np.ndarray
    scores: dict[str, np.ndarray]
    settings: dict[str, Any]
    made_with: dict[str, str]

    def law(self, coupling: str = "sorted") -> Sweep:
        """The same sweep for the laws (:func:`score_curve`), with what is undefined in this one left undefined."""
        scores = {
            name: np.stack([score_curve(name, self.means, std, coupling=coupling).numpy() for std in self.stds], axis=1)
            + 0 * ours
            for name, ours in self.scores.items()
        }
        return Sweep(self.means, self.stds, scores, self.settings | {"n": "infinite", "d": 1}, self.made_with)

    def lowest(self, name: str) -> float:
        """The lowest score of an activation over all means and standard deviations."""
        return float(np.nanmin(self.scores[name]))

    def average(self, name: str) -> float:
        """The mean of the scores of an activation that are defined."""
        return float(np.nanmean(self.scores[name]))

    def non_linear_means(self, name: str, threshold: float = 0.9) -> int:
        """At how many means the middle of the box, the median over the standard deviations, is below the threshold."""
        boxes = [row[~np.isnan(row)] for row in self.scores[name]]
        return sum(bool(np.median(box) < threshold) for box in boxes if len(box))

    def __repr__(self) -> str:
        sizes = f"{len(self.scores)} activations, {len(self.means)} means, {len(self.stds)} standard deviations"
        return f"Sweep({sizes}, n={self.settings['n']}, d={self.settings['d']}, seed={self.settings['seed']})"


def load_sweep(path: str | Path) -> Sweep:
    """The sweep that ``book/data/activations/figure_8.py`` stored.

    Raises
    ------
    ValueError
        If the file is not there, or is not such a sweep.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        settings = data["settings"]
        means, stds = np.array(settings["means"]), np.array(settings["stds"])
        scores = {name: np.array(rows, dtype=np.float64) for name, rows in data["scores"].items()}
        if any(rows.shape != (len(means), len(stds)) for rows in scores.values()):
            raise KeyError("a score for every mean and standard deviation")
        return Sweep(means, stds, scores, settings, data["made_with"])
    except OSError as error:
        raise ValueError(f"path is {str(path)!r}, which cannot be read ({error.strerror}).") from error
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{str(path)!r} is not a stored sweep: {error}.") from error


def _normal(mean: float, std: float, shape: tuple[int, ...], seed: int) -> Tensor:
    if min(shape) < 1:
        raise ValueError(f"the sizes are {shape}; all should be at least 1.")
    if not (math.isfinite(mean) and 0 < std < math.inf):
        raise ValueError(f"mean is {mean} and std is {std}; both should be finite, and std positive.")
    # The bits of mean and std seed the draw too: no two cells of a sweep share their noise.
    bits = np.array([mean, std], dtype=np.float64).view(np.uint32).tolist()
    noise = np.random.default_rng([seed, *bits]).standard_normal(shape)
    return mean + std * torch.from_numpy(noise)
