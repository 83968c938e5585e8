"""Small networks of many architectures, and how far two of them are apart."""

import torch
from torch import nn

from affscore_book.kit.networks import myrtle, resnet20


def disturbed(network, seed=0):
    """Batch norms with statistics, gains and biases that are not those of the initialisation; float64, eval."""
    generator = torch.Generator().manual_seed(seed)
    network.double()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
                for value in (module.running_mean, module.weight, module.bias):
                    value.copy_(torch.randn(value.shape, generator=generator))
                module.running_var.copy_(0.2 + torch.rand(module.running_var.shape, generator=generator))
    return network.eval()


def mlp(activation, norm=False):
    layers = []
    for i, (inputs, outputs) in enumerate([(3, 5), (5, 7), (7, 2)]):
        layers.append(nn.Linear(inputs, outputs))
        if i < 2:
            layers += [nn.BatchNorm1d(outputs)] if norm else []
            layers.append(activation() if i else nn.Sequential(activation(), nn.Dropout()))
    return nn.Sequential(*layers)


ARCHITECTURES = {
    "MLP, ReLU": lambda: mlp(nn.ReLU),
    "MLP, tanh": lambda: mlp(nn.Tanh),
    "MLP, GELU": lambda: mlp(nn.GELU),
    "MLP, identity": lambda: mlp(nn.Identity),
    "MLP, batch norm": lambda: mlp(nn.ReLU, norm=True),
    "Myrtle": lambda: myrtle(4, channels=1),
    "Myrtle without norm": lambda: myrtle(4, channels=1, norm=False),
    "Myrtle, slope 0.1": lambda: myrtle(4, channels=1, slope=0.1),
    "Myrtle, slope 1": lambda: myrtle(4, channels=1, slope=1.0, norm=False),
    "ResNet20": lambda: resnet20(4, channels=1),
    "ResNet20, plain": lambda: resnet20(4, channels=1, residual=False),
    "ResNet20 without last ReLU": lambda: resnet20(4, channels=1, last_relu=False),
}


def inputs_for(network, seed=0, dtype=torch.float64):
    shape = (6, 3) if isinstance(network[0], nn.Linear) else (6, 1, 32, 32)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def change(one, other, x):
    """Largest difference of the outputs, relative to the largest output."""
    with torch.no_grad():
        a, b = one(x), other(x)
    return float((a - b).abs().max() / a.abs().max())
