"""A small decoder on bytes: four blocks of causal attention and a two-layer network, each added to the stream.

The plan is that of today's GPTs: an embedding of bytes, pre-norm blocks, a linear head, and places told by turning
queries and keys. Two things can be chosen. The *activation* is the only non-linear function that acts entry by entry;
:data:`MLPS` has five ways to use one. *Layer norm* can be left out, and then attention and the activation are all that
is not affine.

What :func:`affscore.signature` sees of a block is one call in ``blocks.I.mlp``:

===========  =================  ==========================================================================
activation   the call's name    what the score compares
===========  =================  ==========================================================================
gelu         ``gelu``           x with GELU(x), 384 channels
relu         ``relu``           x with max(x, 0)
silu         ``silu``           x with x sigmoid(x)
relu2        ``relu_squared``   x with max(x, 0)^2: two operators, seen as one chain
swiglu       ``silu``           x with SiLU(x), 256 channels. The product with the second half is a bend too, of
                                two tensors and not of one: no score of one call holds it. ``gate`` is False, for
                                only sigmoids are marked as gates.
===========  =================  ==========================================================================

References: Radford et al., "Language models are unsupervised multitask learners", 2019 (the plan); Su et al.,
"RoFormer", 2021 (turned queries and keys: without them the same training stays near pairs of bytes); So et al.,
"Primer", NeurIPS 2021 (ReLU squared); Shazeer, "GLU variants improve transformer", 2020 (SwiGLU).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.arguments import check_choice

__all__ = ["CONTEXT", "GPTS", "MLPS", "ByteGPT", "build_gpt"]

#: Bytes that the network sees at most, channels of the stream, blocks, and heads of attention.
CONTEXT, WIDTH, BLOCKS, HEADS = 128, 96, 4, 4
BYTES = 256


class TwoLayers(nn.Module):
    """From ``width`` to four times that, the activation entry by entry, and back: (n, tokens, width) to the same."""

    def __init__(self, width: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.activation = activation
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class SwiGLU(nn.Module):
    """SiLU of one linear map times another one; 8/3 as many channels as ``width`` make as many weights as above."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = 8 * width // 3
        self.up, self.gate, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


#: By the name of the activation, what makes the two-layer network of a block, given its width.
MLPS: dict[str, Callable[[int], TwoLayers | SwiGLU]] = {
    "gelu": lambda width: TwoLayers(width, functional.gelu),
    "relu": lambda width: TwoLayers(width, functional.relu),
    "silu": lambda width: TwoLayers(width, functional.silu),
    "relu2": lambda width: TwoLayers(width, lambda x: functional.relu(x).square()),
    "swiglu": SwiGLU,
}


def turned(x: Tensor) -> Tensor:
    """Pairs of channels turned by angles that grow with the place: (..., tokens, channels) to the same.

    The product of a turned query with a turned key depends on how far apart they stand, and not on where.
    """
    tokens, half = x.shape[-2], x.shape[-1] // 2
    angles = torch.arange(tokens, device=x.device)[:, None] * CONTEXT ** (-torch.arange(half, device=x.device) / half)
    one, other = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1)


class Attention(nn.Module):
    """Every token takes a mean of the tokens up to itself, in four heads: (n, tokens, width) to the same."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        parts = self.into(x).view(n, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # (3, n, heads, tokens, width of a head)
        mixed = functional.scaled_dot_product_attention(turned(query), turned(key), value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(n, tokens, width))


class Block(nn.Module):
    """Attention and two layers, each added to the stream that it reads."""

    def __init__(self, width: int, heads: int, activation: str, norm: bool) -> None:
        super().__init__()
        self.attention, self.mlp = Attention(width, heads), MLPS[activation](width)
        self.norm1, self.norm2 = (nn.LayerNorm(width) if norm else nn.Identity() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ByteGPT(nn.Module):
    """Logits of the next byte after each byte of some windows: int64 (n, tokens) to float32 (n, tokens, 256).

    Parameters
    ----------
    activation
        A name of :data:`MLPS`.
    norm
        Whether there is layer norm before attention, before each two-layer network and before the head.

    Raises
    ------
    ValueError
        If there is no such activation, or (in a pass) a window is longer than :data:`CONTEXT`.

    >>> network = ByteGPT("relu2", norm=False)
    >>> network(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 256])
    """

    def __init__(self, activation: str = "gelu", norm: bool = True, width: int = WIDTH, blocks: int = BLOCKS) -> None:
        check_choice("activation", activation, MLPS)
        super().__init__()
        self.bytes = nn.Embedding(BYTES, width)
        made = [Block(width, HEADS, activation, norm) for _ in range(blocks)]
        self.blocks = nn.Sequential(*made)
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.head = nn.Linear(width, BYTES)
        with torch.no_grad():  # what is added to the stream shrinks with the number of additions, as in GPT-2
            for block in made:
                for last in (block.attention.out, block.mlp.down):
                    last.weight /= math.sqrt(2 * blocks)

    def forward(self, windows: Tensor) -> Tensor:
        if windows.shape[1] > CONTEXT:
            raise ValueError(f"windows has {windows.shape[1]} tokens a row; it should have at most {CONTEXT}.")
        return self.head(self.norm(self.blocks(self.bytes(windows))))


#: The networks of the chapter by name: their activation, and whether they have layer norm.
GPTS: dict[str, tuple[str, bool]] = {activation: (activation, True) for activation in MLPS}
GPTS |= {f"{activation} without norm": (activation, False) for activation in ("gelu", "relu")}


def build_gpt(name: str, seed: int = 0) -> ByteGPT:
    """One of :data:`GPTS` with start weights drawn from a seed; PyTorch's own generator stays as it was."""
    check_choice("name", name, GPTS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ByteGPT(*GPTS[name])
