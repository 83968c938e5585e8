"""Small networks and their images, for tests of what is measured on networks."""

import torch
from torch import nn

from affscore.tracing import trace


def traced(model, *inputs, mode=torch.no_grad, **options):
    """What :func:`trace` finds while a network runs; the batch is as long as its first input."""
    with mode(), trace(model, len(inputs[0]), **options) as found:
        model(*inputs)
    return found


def names(found):
    """The names of the calls that were seen and are scored."""
    return [observation.call.name for observation in found.observations]


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.ReLU(inplace=True), nn.Conv2d(12, 6, 3), nn.SiLU(),
        nn.Flatten(), nn.Linear(6 * 16, 20), nn.Sigmoid(), nn.Linear(20, 5),
    )  # fmt: skip


def images(count=2, n=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, 3, 8, 8, generator=generator) for _ in range(count)]


class Dead(nn.Module):
    """Its second activation is dead in batches whose mean is negative, its third always."""

    def forward(self, x):
        y = torch.tanh(x)
        y = torch.relu(y + 2 * torch.sign(x.mean()))
        return torch.relu(-y - 1)


class Made(nn.Module):
    """A module of a function, and of the layers that it takes after its inputs."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, *inputs, **named):
        return self.function(*inputs, *self.layers, **named)


class Free(nn.Module):
    """Activations without weights, so that no product of matrices rounds with the number of threads."""

    def forward(self, x):
        return torch.tanh(torch.relu(x.flatten(1)) - 0.3)
