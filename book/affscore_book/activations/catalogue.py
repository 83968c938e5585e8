"""Forty years of activation functions in one table: formula, limits, kinks and source of each.

Source of most rows: Dubey et al., "Activation functions in deep learning: a comprehensive survey and benchmark", 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["CATALOGUE", "ActivationFunction", "AnyActivation", "Function", "lookup"]

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class ActivationFunction:
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
    reference
        Where and when it was proposed for networks, as far as we know.
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
    reference: str
    torch: str = ""
    kinks: tuple[float, ...] = ()
    tails: tuple[Function | None, Function | None] = (None, None)

    def __call__(self, x: Any) -> Tensor:
        """The activation of numbers, an array or a tensor of any shape; float64 of the same shape."""
        return self.function(torch.as_tensor(x, dtype=torch.float64))

    def __repr__(self) -> str:
        return f"ActivationFunction({self.name!r})"


#: What :func:`lookup` takes: a name in the catalogue, a row of it, or a function of a float64 tensor.
AnyActivation = str | ActivationFunction | Function


def _softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def _gelu(x: Tensor) -> Tensor:
    # Torch's own normal distribution function, by 1 + erf(x), cancels below -5 and is 0 below -8.3.
    return x * (0.5 * torch.erfc(x / -math.sqrt(2)))


def _positive(x: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """``above`` where x > 0 and ``below`` elsewhere."""
    return torch.where(x > 0, above, below)


_sigmoid, _inf, _nan = torch.sigmoid, math.inf, math.nan
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
_RRELU = (1 / 8 + 1 / 3) / 2  # the slope that torch uses in evaluation mode


def _dsilu(x: Tensor) -> Tensor:
    return _sigmoid(x) * (1 + x * _sigmoid(-x))


# One row each: name, title, family, formula, function, limits, monotone, reference, torch, kinks, tails.
_ROWS = (
    ActivationFunction("heaviside", "Heaviside", "squashing", r"1\ \text{if}\ x>0,\ \text{else}\ 0",
        lambda x: (x > 0).to(x.dtype), (0, 1), True, "McCulloch and Pitts 1943", "heaviside", (0,)),
    ActivationFunction("sign", "sign", "squashing", r"\operatorname{sign}(x)", torch.sign, (-1, 1), True,
        "Courbariaux et al. 2016, arXiv:1602.02830", "sign", (0,)),
    ActivationFunction("sigmoid", "sigmoid", "squashing", r"\frac{1}{1+e^{-x}}", _sigmoid, (0, 1), True,
        "Rumelhart et al. 1986, Nature", "Sigmoid", tails=(None, lambda x: -_sigmoid(-x))),
    ActivationFunction("tanh", "tanh", "squashing", r"\tanh x", torch.tanh, (-1, 1), True,
        "Kalman and Kwasny 1992, IJCNN", "Tanh",
        tails=(lambda x: 2 * _sigmoid(2 * x), lambda x: -2 * _sigmoid(-2 * x))),
    ActivationFunction("lecun_tanh", "LeCun's tanh", "squashing", r"1.7159\,\tanh(2x/3)",
        lambda x: 1.7159 * torch.tanh(2 * x / 3), (-1.7159, 1.7159), True, "LeCun et al. 1998, Efficient BackProp",
        tails=(lambda x: 3.4318 * _sigmoid(4 * x / 3), lambda x: -3.4318 * _sigmoid(-4 * x / 3))),
    ActivationFunction("penalized_tanh", "penalized tanh", "squashing",
        r"\tanh x\ \text{if}\ x>0,\ \text{else}\ \tfrac14\tanh x",
        lambda x: _positive(x, torch.tanh(x), 0.25 * torch.tanh(x)), (-0.25, 1), True,
        "Xu et al. 2016, arXiv:1602.05980", kinks=(0,),
        tails=(lambda x: _positive(x, torch.tanh(x) + 0.25, 0.5 * _sigmoid(2 * x)),
               lambda x: _positive(x, -2 * _sigmoid(-2 * x), 0.25 * torch.tanh(x) - 1))),
    ActivationFunction("hardtanh", "hardtanh", "squashing", r"\min(\max(x,-1),1)", lambda x: x.clamp(-1, 1), (-1, 1),
        True, "Collobert 2004, thesis", "Hardtanh", (-1, 1)),
    ActivationFunction("hardsigmoid", "hardsigmoid", "squashing", r"\min(\max(x+3,0),6)/6",
        lambda x: (x + 3).clamp(0, 6) / 6, (0, 1), True, "Howard et al. 2019, arXiv:1905.02244", "Hardsigmoid",
        (-3, 3)),
    ActivationFunction("softsign", "softsign", "squashing", r"\frac{x}{1+\lvert x\rvert}", lambda x: x / (1 + x.abs()),
        (-1, 1), True, "Elliott 1993, ISR report", "Softsign", (0,)),
    ActivationFunction("arctan", "arctan", "squashing", r"\arctan x", torch.atan, (-math.pi / 2, math.pi / 2), True,
        "Kamruzzaman and Aziz 2002, IJCNN", "atan"),
    ActivationFunction("erf", "erf", "squashing", r"\operatorname{erf}(x)", torch.erf, (-1, 1), True,
        "Williams 1997, NIPS 9", "erf", tails=(lambda x: torch.erfc(-x), lambda x: -torch.erfc(x))),
    ActivationFunction("isru", "ISRU", "squashing", r"\frac{x}{\sqrt{1+x^2}}", lambda x: x / (1 + x**2).sqrt(),
        (-1, 1), True, "Carlile et al. 2017, arXiv:1710.09967"),
    ActivationFunction("sqnl", "SQNL", "squashing", r"z-z\lvert z\rvert/4,\ z=\min(\max(x,-2),2)",
        lambda x: x.clamp(-2, 2) - x.clamp(-2, 2) * x.clamp(-2, 2).abs() / 4, (-1, 1), True,
        "Wuraola and Patel 2018, IJCNN", kinks=(-2, 0, 2)),
    ActivationFunction("symlog", "symlog", "squashing", r"\operatorname{sign}(x)\ln(1+\lvert x\rvert)",
        lambda x: x.sign() * x.abs().log1p(), (-_inf, _inf), True, "Hafner et al. 2023, arXiv:2301.04104", kinks=(0,)),
    ActivationFunction("cloglog", "cloglog", "squashing", r"1-e^{-e^{x}}", lambda x: -torch.expm1(-x.exp()), (0, 1),
        True, "Gomes and Ludermir 2008, HIS", tails=(None, lambda x: -torch.exp(-x.exp()))),
    ActivationFunction("logsigmoid", "log-sigmoid", "squashing", r"-\ln(1+e^{-x})", lambda x: -_softplus(-x),
        (-_inf, 0), True, "Collobert et al. 2011, Torch7", "LogSigmoid"),
    ActivationFunction("tanhshrink", "tanhshrink", "shrinkage", r"x-\tanh x", lambda x: x - torch.tanh(x),
        (-_inf, _inf), True, "Collobert et al. 2011, Torch7", "Tanhshrink"),
    ActivationFunction("hardshrink", "hardshrink", "shrinkage",
        r"x\ \text{if}\ \lvert x\rvert>\tfrac12,\ \text{else}\ 0", lambda x: torch.where(x.abs() > 0.5, x, 0.0),
        (-_inf, _inf), True, "Donoho and Johnstone 1994, Biometrika", "Hardshrink", (-0.5, 0.5)),
    ActivationFunction("softshrink", "softshrink", "shrinkage",
        r"\operatorname{sign}(x)\,\max(\lvert x\rvert-\tfrac12,0)", lambda x: x - x.clamp(-0.5, 0.5), (-_inf, _inf),
        True, "Donoho and Johnstone 1994, Biometrika", "Softshrink", (-0.5, 0.5)),
    ActivationFunction("relu", "ReLU", "rectifier", r"\max(0,x)", torch.relu, (0, _inf), True,
        "Nair and Hinton 2010, ICML", "ReLU", (0,)),
    ActivationFunction("relu6", "ReLU6", "rectifier", r"\min(\max(0,x),6)", lambda x: x.clamp(0, 6), (0, 6), True,
        "Krizhevsky 2010, report", "ReLU6", (0, 6)),
    ActivationFunction("brelu", "bounded ReLU", "rectifier", r"\min(\max(0,x),1)", lambda x: x.clamp(0, 1), (0, 1),
        True, "Cai et al. 2016, arXiv:1601.07661", kinks=(0, 1)),
    ActivationFunction("shifted_relu", "shifted ReLU", "rectifier", r"\max(-1,x)", lambda x: x.clamp(min=-1),
        (-1, _inf), True, "Clevert et al. 2015, arXiv:1511.07289", kinks=(-1,)),
    ActivationFunction("threshold", "thresholded ReLU", "rectifier", r"x\ \text{if}\ x>1,\ \text{else}\ 0",
        lambda x: torch.where(x > 1, x, 0.0), (0, _inf), True, "Konda et al. 2014, arXiv:1402.3337", "Threshold",
        (1,)),
    ActivationFunction("leaky_relu", "LeakyReLU", "rectifier", r"\max(0,x)+0.01\min(0,x)",
        lambda x: _positive(x, x, 0.01 * x), (-_inf, _inf), True, "Maas et al. 2013, ICML workshop", "LeakyReLU",
        (0,)),
    ActivationFunction("prelu", "PReLU", "rectifier", r"\max(0,x)+\tfrac14\min(0,x)",
        lambda x: _positive(x, x, 0.25 * x), (-_inf, _inf), True, "He et al. 2015, arXiv:1502.01852", "PReLU", (0,)),
    ActivationFunction("rrelu", "RReLU", "rectifier", r"\max(0,x)+\tfrac{11}{48}\min(0,x)",
        lambda x: _positive(x, x, _RRELU * x), (-_inf, _inf), True, "Xu et al. 2015, arXiv:1505.00853", "RReLU", (0,)),
    ActivationFunction("nlrelu", "NLReLU", "rectifier", r"\ln(1+\max(0,x))", lambda x: torch.relu(x).log1p(), (0, _inf),
        True, "Liu et al. 2019, arXiv:1908.03682", kinks=(0,)),
    ActivationFunction("relu_squared", "squared ReLU", "rectifier", r"\max(0,x)^2", lambda x: torch.relu(x) ** 2,
        (0, _inf), True, "So et al. 2021, arXiv:2109.08668", kinks=(0,)),
    ActivationFunction("plu", "PLU", "rectifier", r"\tfrac{1}{10}x+\tfrac{9}{10}\min(\max(x,-1),1)",
        lambda x: x.clamp(-1, 1) + 0.1 * (x - x.clamp(-1, 1)), (-_inf, _inf), True, "Nicolae 2018, arXiv:1809.09534",
        kinks=(-1, 1)),
    ActivationFunction("elu", "ELU", "exponential", r"x\ \text{if}\ x>0,\ \text{else}\ e^x-1",
        lambda x: _positive(x, x, torch.expm1(x)), (-1, _inf), True, "Clevert et al. 2015, arXiv:1511.07289", "ELU",
        (0,), (lambda x: _positive(x, x + 1, x.exp()), None)),
    ActivationFunction("selu", "SELU", "exponential", r"1.0507\,(x\ \text{if}\ x>0,\ \text{else}\ 1.6733\,(e^x-1))",
        lambda x: _SELU_SCALE * _positive(x, x, _SELU_ALPHA * torch.expm1(x)), (-_SELU_SCALE * _SELU_ALPHA, _inf),
        True, "Klambauer et al. 2017, arXiv:1706.02515", "SELU", (0,),
        (lambda x: _SELU_SCALE * _positive(x, x + _SELU_ALPHA, _SELU_ALPHA * x.exp()), None)),
    ActivationFunction("isrlu", "ISRLU", "exponential", r"x\ \text{if}\ x>0,\ \text{else}\ \frac{x}{\sqrt{1+x^2}}",
        lambda x: _positive(x, x, x / (1 + x**2).sqrt()), (-1, _inf), True, "Carlile et al. 2017, arXiv:1710.09967",
        kinks=(0,)),
    ActivationFunction("reu", "REU", "exponential", r"x\ \text{if}\ x>0,\ \text{else}\ x\,e^x",
        lambda x: x * x.clamp(max=0).exp(), (0, _inf), False, "Ying et al. 2019, IEEE Access", kinks=(0,)),
    ActivationFunction("elish", "ELiSH", "exponential", r"s(x)\,(x\ \text{if}\ x>0,\ \text{else}\ e^x-1)",
        lambda x: _sigmoid(x) * _positive(x, x, torch.expm1(x)), (0, _inf), False,
        "Basirat and Roth 2018, arXiv:1808.00783", kinks=(0,)),
    ActivationFunction("hard_elish", "HardELiSH", "exponential",
        r"\min(\max(\tfrac{x+1}{2},0),1)\,(x\ \text{if}\ x>0,\ \text{else}\ e^x-1)",
        lambda x: ((x + 1) / 2).clamp(0, 1) * _positive(x, x, torch.expm1(x)), (0, _inf), False,
        "Basirat and Roth 2018, arXiv:1808.00783", kinks=(-1, 0, 1)),
    ActivationFunction("exponential", "exponential", "exponential", r"e^x", torch.exp, (0, _inf), True,
        "Koo and Ploenzke 2021, Nat. Mach. Intell.", "exp"),
    ActivationFunction("softplus", "softplus", "smooth rectifier", r"\ln(1+e^x)", _softplus, (0, _inf), True,
        "Dugas et al. 2001, NIPS 13", "Softplus"),
    ActivationFunction("squareplus", "squareplus", "smooth rectifier", r"\tfrac12(x+\sqrt{x^2+4})",
        lambda x: 0.5 * (x + (x**2 + 4).sqrt()), (0, _inf), True, "Barron 2021, arXiv:2112.11687"),
    ActivationFunction("gelu", "GELU", "smooth rectifier", r"x\,\Phi(x)", _gelu, (0, _inf), False,
        "Hendrycks and Gimpel 2016, arXiv:1606.08415", "GELU"),
    ActivationFunction("quick_gelu", "quick GELU", "smooth rectifier", r"x\,s(1.702x)",
        lambda x: x * _sigmoid(1.702 * x), (0, _inf), False, "Hendrycks and Gimpel 2016, arXiv:1606.08415"),
    ActivationFunction("gelu_tanh", "GELU (tanh)", "smooth rectifier",
        r"x\,s\left(\sqrt{8/\pi}\,(x+0.044715x^3)\right)",
        lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)), (0, _inf), False,
        "Hendrycks and Gimpel 2016, arXiv:1606.08415", "GELU"),
    ActivationFunction("silu", "SiLU", "smooth rectifier", r"x\,s(x)", lambda x: x * _sigmoid(x), (0, _inf), False,
        "Elfwing et al. 2018, arXiv:1702.03118", "SiLU"),
    ActivationFunction("dsilu", "dSiLU", "smooth rectifier", r"s(x)\,(1+x\,s(-x))", _dsilu, (0, 1), False,
        "Elfwing et al. 2018, arXiv:1702.03118", tails=(None, lambda x: -_dsilu(-x))),
    ActivationFunction("hardswish", "hardswish", "smooth rectifier", r"x\,\min(\max(x+3,0),6)/6",
        lambda x: x * (x + 3).clamp(0, 6) / 6, (0, _inf), False, "Howard et al. 2019, arXiv:1905.02244", "Hardswish",
        (-3, 3)),
    ActivationFunction("fts", "FTSwish", "smooth rectifier", r"\max(0,x)\,s(x)-\tfrac15",
        lambda x: torch.relu(x) * _sigmoid(x) - 0.2, (-0.2, _inf), True, "Chieng et al. 2018, arXiv:1812.06247",
        kinks=(0,)),
    ActivationFunction("mish", "Mish", "smooth rectifier", r"x\tanh(\ln(1+e^x))",
        lambda x: x * torch.tanh(_softplus(x)), (0, _inf), False, "Misra 2019, arXiv:1908.08681", "Mish"),
    ActivationFunction("tanhexp", "TanhExp", "smooth rectifier", r"x\tanh(e^x)", lambda x: x * torch.tanh(x.exp()),
        (0, _inf), False, "Liu and Di 2020, arXiv:2003.09855"),
    ActivationFunction("serf", "Serf", "smooth rectifier", r"x\operatorname{erf}(\ln(1+e^x))",
        lambda x: x * torch.erf(_softplus(x)), (0, _inf), False, "Nag and Bhattacharyya 2021, arXiv:2108.09598"),
    ActivationFunction("logish", "Logish", "smooth rectifier", r"x\ln(1+s(x))", lambda x: x * _sigmoid(x).log1p(),
        (0, _inf), False, "Zhu et al. 2021, Neurocomputing"),
    ActivationFunction("smish", "Smish", "smooth rectifier", r"x\tanh(\ln(1+s(x)))",
        lambda x: x * torch.tanh(_sigmoid(x).log1p()), (0, _inf), False, "Wang et al. 2022, Electronics"),
    ActivationFunction("phish", "Phish", "smooth rectifier", r"x\tanh(x\,\Phi(x))", lambda x: x * torch.tanh(_gelu(x)),
        (0, _inf), False, "Naveen 2022, TechRxiv"),
    ActivationFunction("lisht", "LiSHT", "smooth rectifier", r"x\tanh x", lambda x: x * torch.tanh(x), (_inf, _inf),
        False, "Roy et al. 2019, arXiv:1901.05894"),
    ActivationFunction("gaussian", "Gaussian", "bump or wave", r"e^{-x^2}", lambda x: torch.exp(-(x**2)), (0, 0),
        False, "Broomhead and Lowe 1988, Complex Systems"),
    ActivationFunction("ricker", "Mexican hat", "bump or wave", r"(1-x^2)\,e^{-x^2/2}",
        lambda x: (1 - x**2) * torch.exp(-(x**2) / 2), (0, 0), False, "Zhang and Benveniste 1992, IEEE TNN"),
    ActivationFunction("sq_rbf", "SQ-RBF", "bump or wave",
        r"1-\tfrac12x^2\ \text{if}\ \lvert x\rvert<1,\ \text{else}\ \tfrac12\max(2-\lvert x\rvert,0)^2",
        lambda x: torch.where(x.abs() < 1, 1 - x**2 / 2, torch.relu(2 - x.abs()) ** 2 / 2), (0, 0), False,
        "Wuraola and Patel 2018, ICONIP", kinks=(-2, -1, 1, 2)),
    ActivationFunction("sine", "sine", "bump or wave", r"\sin x", torch.sin, (_nan, _nan), False,
        "Sitzmann et al. 2020, arXiv:2006.09661", "sin"),
    ActivationFunction("cosine", "cosine", "bump or wave", r"\cos x", torch.cos, (_nan, _nan), False,
        "Rahimi and Recht 2007, NIPS 20", "cos"),
    ActivationFunction("snake", "Snake", "bump or wave", r"x+\sin^2x", lambda x: x + torch.sin(x) ** 2, (-_inf, _inf),
        True, "Ziyin et al. 2020, arXiv:2006.08195"),
    ActivationFunction("gcu", "GCU", "bump or wave", r"x\cos x", lambda x: x * torch.cos(x), (_nan, _nan), False,
        "Noel et al. 2021, arXiv:2108.12943"),
    ActivationFunction("identity", "identity", "power", r"x", lambda x: x, (-_inf, _inf), True,
        "Widrow and Hoff 1960 (Adaline)", "Identity"),
    ActivationFunction("abs", "absolute value", "power", r"\lvert x\rvert", torch.abs, (_inf, _inf), False,
        "Jarrett et al. 2009, ICCV", "abs", (0,)),
    ActivationFunction("square", "square", "power", r"x^2", torch.square, (_inf, _inf), False,
        "Livni et al. 2014, arXiv:1410.1141", "square"),
    ActivationFunction("cube", "cube", "power", r"x^3", lambda x: x**3, (-_inf, _inf), True,
        "Chen and Manning 2014, EMNLP"),
)  # fmt: skip

#: The catalogue: :class:`ActivationFunction` by name.
CATALOGUE: dict[str, ActivationFunction] = {row.name: row for row in _ROWS}


def lookup(activation: AnyActivation) -> ActivationFunction:
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
    if isinstance(activation, ActivationFunction):
        return activation
    if isinstance(activation, str):
        if activation not in CATALOGUE:
            raise ValueError(f"activation is {activation!r}; it should be one of {', '.join(CATALOGUE)}.")
        return CATALOGUE[activation]
    if callable(activation):
        title = getattr(activation, "__name__", type(activation).__name__).replace("<lambda>", "custom")
        # On a copy: a function that works in place would change the input that its output is compared with.
        function = lambda x: activation(x.clone())  # noqa: E731
        return ActivationFunction("custom", title, "custom", "", function, (_nan, _nan), False, "")
    raise TypeError(
        f"activation is {activation!r}; it should be a name, an ActivationFunction or a function of a tensor."
    )
