"""Random networks and the group's action on them, written again here without the book's own: planted truth."""

import copy
import math

import torch
from torch import nn

from affscore_book.kit.networks import BasicBlock, myrtle, resnet20

ARCHITECTURES = {
    "myrtle": lambda: myrtle(width=4, channels=1),
    "myrtle without norm": lambda: myrtle(width=4, channels=1, norm=False),
    "resnet20": lambda: resnet20(width=4, channels=1),
    "plain20": lambda: resnet20(width=4, channels=1, residual=False),
    "resnet20 without last relu": lambda: resnet20(width=4, channels=1, last_relu=False),
    "resnet20 with slope": lambda: resnet20(width=4, channels=1, slope=0.1),
}


def random_network(name, seed=0):
    """A network whose weights, gains, biases and running statistics are all random, so that nothing is 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    network = ARCHITECTURES[name]().eval()
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            scale = math.sqrt(2 / module.weight[0].numel())
            module.weight.data = scale * torch.randn(module.weight.shape, generator=generator)
            if module.bias is not None:
                module.bias.data = 0.1 * torch.randn(module.bias.shape, generator=generator)
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in ((module.weight.data, 0.5, 1.5), (module.bias.data, -0.3, 0.3),
                                      (module.running_mean, -0.1, 0.1), (module.running_var, 0.5, 1.5)):  # fmt: skip
                tensor.uniform_(low, high, generator=generator)
    return network


def images(n=24, seed=0):
    return torch.randn(n, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


def monomial(n, generator):
    """(permutation, scale): new channel i is scale[i] times old channel permutation[i]."""
    return torch.randperm(n, generator=generator), torch.rand(n, generator=generator) * 1.5 + 0.5


def acted_on(network, seed, ties=False):
    """The network with every hidden layer permuted and scaled; residual streams only with ``ties``.

    Returns the new network and {activation or shortcut: (permutation, scale)}.
    """
    generator = torch.Generator().manual_seed(seed)
    network = copy.deepcopy(network)
    elements = {}

    def outputs(convolution, norm, permutation, scale):
        convolution.weight.data = convolution.weight.data[permutation]
        if norm is None:
            convolution.weight.data *= scale[:, None, None, None]
            convolution.bias.data = convolution.bias.data[permutation] * scale
        else:
            for tensor in (norm.weight.data, norm.bias.data, norm.running_mean, norm.running_var):
                tensor.copy_(tensor[permutation])
            norm.weight.data *= scale
            norm.bias.data *= scale

    def inputs(layer, permutation, scale):
        shape = (1, -1) + (1,) * (layer.weight.ndim - 2)
        layer.weight.data = layer.weight.data[:, permutation] / scale.reshape(shape)

    def identity(n):
        return torch.arange(n), torch.ones(n)

    children = dict(network.named_children())
    blocks = [child for child in children.values() if isinstance(child, BasicBlock)]
    if not blocks:
        for i in range(1, 5):
            convolution, norm = children[f"conv{i}"], children.get(f"norm{i}")
            elements[f"relu{i}"] = monomial(convolution.out_channels, generator)
            outputs(convolution, norm, *elements[f"relu{i}"])
            inputs(children[f"conv{i + 1}"] if i < 4 else children["linear"], *elements[f"relu{i}"])
        return network, elements

    stream = monomial(children["conv"].out_channels, generator)
    if not ties and blocks[0].residual:
        stream = identity(children["conv"].out_channels)
    outputs(children["conv"], children["norm"], *stream)
    elements["relu"] = stream
    for i, block in enumerate(blocks, start=1):
        inner = monomial(block.a[0].out_channels, generator)
        inputs(block.a[0], *stream)
        outputs(block.a[0], block.a[1], *inner)
        inputs(block.b[0], *inner)
        n, new = block.b[0].out_channels, block.new_channels
        if not block.residual:
            stream = monomial(n, generator)
        elif new:  # the old channels stand in the middle, the new ones before and behind are free
            before = new // 2
            permutation, scale = identity(n)
            permutation[before : before + n - new] = before + stream[0]
            scale[before : before + n - new] = stream[1]
            if ties:
                free = torch.cat([torch.arange(before), torch.arange(before + n - new, n)])
                permutation[free] = free[torch.randperm(new, generator=generator)]
                scale[free] = torch.rand(new, generator=generator) + 0.5
            stream = permutation, scale
        outputs(block.b[0], block.b[1], *stream)
        elements |= {f"block{i}.relu1": inner, f"block{i}.relu2": stream, f"block{i}.shortcut": stream}
    inputs(children["linear"], *stream)
    return network, elements


def difference(one, other, x):
    """Largest difference of logits relative to their size."""
    with torch.no_grad():
        a, b = one(x), other(x)
    return float((a - b).abs().max() / a.abs().max())
