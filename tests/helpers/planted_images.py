"""Random networks and the group's action on them: planted truth."""

import math

import torch
from torch import nn

from affscore_book.kit.networks import BasicBlock, myrtle, resnet20
from affscore_book.symmetries.action import act, sample_action

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


def acted_on(network, seed, ties=False):
    """The network with every hidden layer permuted and scaled; residual streams only with ``ties``.

    Returns the new network and its elements of the group by activation, (channels, channels).
    """
    residual = any(isinstance(module, BasicBlock) and module.residual for module in network)
    elements = {
        name: matrix
        for name, matrix in sample_action(network, seed, spread=0.3).items()
        if ties or not residual or name.endswith("relu1")
    }
    return act(network, elements), elements


def difference(one, other, x):
    """Largest difference of logits relative to their size."""
    with torch.no_grad():
        a, b = one(x), other(x)
    return float((a - b).abs().max() / a.abs().max())
