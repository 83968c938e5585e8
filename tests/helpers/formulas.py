"""The catalogue of activation functions written out once more, in multiple precision.

Straight from the formulas, without regard for cancellation.
"""

import mpmath as mp


def s(x):
    return 1 / (1 + mp.exp(-x))


def clip(x, low, high):
    return min(max(x, low), high)


def softplus(x):
    return mp.log1p(mp.exp(x))


ORACLE = {
    "identity": lambda x: x,
    "heaviside": lambda x: mp.mpf(x > 0),
    "sign": mp.sign,
    "sigmoid": s,
    "tanh": mp.tanh,
    "lecun_tanh": lambda x: mp.mpf("1.7159") * mp.tanh(2 * x / 3),
    "penalized_tanh": lambda x: mp.tanh(x) * (1 if x > 0 else mp.mpf(1) / 4),
    "hardtanh": lambda x: clip(x, -1, 1),
    "hardsigmoid": lambda x: clip(x + 3, 0, 6) / mp.mpf(6),
    "softsign": lambda x: x / (1 + abs(x)),
    "arctan": mp.atan,
    "erf": mp.erf,
    "isru": lambda x: x / mp.sqrt(1 + x * x),
    "sqnl": lambda x: clip(x, -2, 2) - clip(x, -2, 2) * abs(clip(x, -2, 2)) / 4,
    "symlog": lambda x: mp.sign(x) * mp.log(1 + abs(x)),
    "cloglog": lambda x: 1 - mp.exp(-mp.exp(x)),
    "logsigmoid": lambda x: mp.log(s(x)),
    "tanhshrink": lambda x: x - mp.tanh(x),
    "hardshrink": lambda x: x if abs(x) > 0.5 else 0,
    "softshrink": lambda x: mp.sign(x) * max(abs(x) - mp.mpf(1) / 2, 0),
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: clip(x, 0, 6),
    "brelu": lambda x: clip(x, 0, 1),
    "shifted_relu": lambda x: max(x, -1),
    "threshold": lambda x: x if x > 1 else 0,
    "leaky_relu": lambda x: max(x, x * mp.mpf("0.01")),
    "prelu": lambda x: max(x, x / 4),
    "rrelu": lambda x: max(x, x * mp.mpf(11) / 48),
    "nlrelu": lambda x: mp.log(1 + max(x, 0)),
    "relu_squared": lambda x: max(x, 0) ** 2,
    "plu": lambda x: max((x + 1) / 10 - 1, min((x - 1) / 10 + 1, x)),
    "elu": lambda x: x if x > 0 else mp.expm1(x),
    "selu": lambda x: mp.mpf("1.0507009873554805") * (x if x > 0 else mp.mpf("1.6732632423543772") * mp.expm1(x)),
    "isrlu": lambda x: x / mp.sqrt(1 + min(x, 0) ** 2),
    "reu": lambda x: x if x > 0 else x * mp.exp(x),
    "elish": lambda x: (x if x > 0 else mp.expm1(x)) * s(x),
    "hard_elish": lambda x: clip((x + 1) / 2, 0, 1) * (x if x > 0 else mp.expm1(x)),
    "exponential": mp.exp,
    "softplus": softplus,
    "squareplus": lambda x: (x + mp.sqrt(x * x + 4)) / 2,
    "gelu": lambda x: x * mp.ncdf(x),
    "quick_gelu": lambda x: x * s(mp.mpf("1.702") * x),
    "gelu_tanh": lambda x: x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))),
    "silu": lambda x: x * s(x),
    "dsilu": lambda x: s(x) * (1 + x * (1 - s(x))),
    "hardswish": lambda x: x * clip(x + 3, 0, 6) / 6,
    "fts": lambda x: max(x, 0) * s(x) - mp.mpf(1) / 5,
    "mish": lambda x: x * mp.tanh(softplus(x)),
    "tanhexp": lambda x: x * mp.tanh(mp.exp(x)),
    "serf": lambda x: x * mp.erf(softplus(x)),
    "logish": lambda x: x * mp.log(1 + s(x)),
    "smish": lambda x: x * mp.tanh(mp.log(1 + s(x))),
    "phish": lambda x: x * mp.tanh(x * mp.ncdf(x)),
    "lisht": lambda x: x * mp.tanh(x),
    "gaussian": lambda x: mp.exp(-x * x),
    "ricker": lambda x: (1 - x * x) * mp.exp(-x * x / 2),
    "sq_rbf": lambda x: 1 - x * x / 2 if abs(x) < 1 else max(2 - abs(x), 0) ** 2 / 2,
    "sine": mp.sin,
    "cosine": mp.cos,
    "snake": lambda x: x + mp.sin(x) ** 2,
    "gcu": lambda x: x * mp.cos(x),
    "abs": abs,
    "square": lambda x: x * x,
    "cube": lambda x: x**3,
}  # fmt: skip
