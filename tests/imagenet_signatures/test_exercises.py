"""Right answers are accepted, wrong ones get a hint."""

from functools import partial

import numpy as np
import torch
from answers import accepted, refused
from scipy import stats
from torch import nn
from torch.overrides import TorchFunctionMode

from affscore import Signature
from affscore.calls import Call
from affscore_book.imagenet_signatures import exercises

MODULES = ["relu", "a.relu", "a.relu", "a.relu", "b.relu", "b.relu"]
SHARED = Signature(
    [Call(f"{m}:relu[{i}]", m, "relu", i, False, (4,), 1) for i, m in enumerate(MODULES)],
    np.full((1, 6), 0.5),
    batch_sizes=[9],
)
TOKENS = Signature([Call("mlp:gelu[0]", "mlp", "gelu", 0, False, (197, 3072), 2)], [[0.5]], batch_sizes=[9])
STARTS = np.random.default_rng(0).uniform(0.5, 1.0, (4, 9))
TRAINED = 0.3 * STARTS[[1, 2, 3, 0]] + np.random.default_rng(1).uniform(0.4, 0.7, (4, 9))
INSIDE = np.arange(9) % 2 == 1


def share(calls, *, own=False):
    """The mean squared correlation, by regression; pairs of one seed are left out unless ``own``."""
    pairs = [(x[calls], y[calls]) for i, x in enumerate(STARTS) for j, y in enumerate(TRAINED) if own or i != j]
    return np.mean([stats.linregress(x, y).rvalue ** 2 for x, y in pairs])


class Watch(TorchFunctionMode):
    """Keeps every ReLU and SiLU; with ``again`` it computes the output a second time, on what the first one left."""

    def __init__(self, copy, again):
        super().__init__()
        self.copy, self.again, self.seen = copy, again, []

    def __torch_function__(self, operation, types, args=(), kwargs=None):
        if operation.__name__ not in {"relu", "relu_", "silu"}:
            return operation(*args, **(kwargs or {}))
        before = self.copy(args[0])
        if self.again:
            operation(*args, **(kwargs or {}))
        output = operation(*args, **(kwargs or {}))
        self.seen.append((before, self.copy(output)))
        return output


def watch(network, x, *, copy=torch.clone, again=False):
    with torch.no_grad(), Watch(copy, again) as found:
        output = network(x)
    return output, found.seen


def hooks(network, x, *, remove=True):
    """Hooks before and after each activation module, which see no plain function."""
    seen, waiting, handles = [], {}, []

    def before(module, inputs):
        waiting[module] = inputs[0].clone()

    def after(module, inputs, output):
        seen.append((waiting.pop(module), output.clone()))

    for module in network.modules():
        if isinstance(module, nn.ReLU | nn.SiLU):
            handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
    with torch.no_grad():
        output = network(x)
    for handle in handles if remove else ():
        handle.remove()
    return output, seen


RIGHT = {
    "lists": lambda: exercises.check_lists(3, 2, SHARED),
    "lengths": lambda: exercises.check_lengths(3072, 577, TOKENS, 384, 16),
    "dropped": lambda: exercises.check_dropped(share(INSIDE), TRAINED, STARTS, INSIDE),
    "watch": lambda: exercises.check_watch(watch),
}
WRONG = {
    "calls": lambda: exercises.check_lists(6, 6, SHARED),
    "all mixed": lambda: exercises.check_lists(3, 3, SHARED),
    "swapped": lambda: exercises.check_lengths(577, 3072, TOKENS, 384, 16),
    "no class token": lambda: exercises.check_lengths(3072, 576, TOKENS, 384, 16),
    "all calls": lambda: exercises.check_dropped(share(np.full(9, True)), TRAINED, STARTS, INSIDE),
    "its own start": lambda: exercises.check_dropped(share(INSIDE, own=True), TRAINED, STARTS, INSIDE),
    "no root": lambda: exercises.check_dropped(share(INSIDE) ** 0.5, TRAINED, STARTS, INSIDE),
    "runs it again": lambda: exercises.check_watch(partial(watch, again=True)),
    "keeps no copy": lambda: exercises.check_watch(partial(watch, copy=lambda value: value)),
    "leaves hooks": lambda: exercises.check_watch(partial(hooks, remove=False)),
    "sees modules only": lambda: exercises.check_watch(hooks),
    "sees nothing": lambda: exercises.check_watch(lambda network, x: (network(x), [])),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
