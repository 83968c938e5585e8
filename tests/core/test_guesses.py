"""What cannot be known is not guessed: rows that need not be the samples, tables, what vmap runs, odd batches."""

from pathlib import Path

import pytest
import torch
from grids import each
from small_network import Made
from torch import nn

from affscore import SignatureError, signature
from affscore.calls import Undecided
from affscore.errors import AffscoreWarning

N, T, D = 12, 6, 8


class Rows(nn.Module):
    """A relu of what a function takes from the tokens of all samples, laid end to end."""

    def __init__(self, function):
        super().__init__()
        self.function, self.expert, self.kept = function, nn.Linear(D, 6), torch.randn(N, 6)

    def forward(self, x):
        return torch.relu(self.expert(self.function(x.reshape(-1, D)))).sum() + torch.tanh(self.kept).sum()


@pytest.mark.filterwarnings("ignore:.* comes from parameters")
@each(
    "function",
    [
        lambda rows: rows[rows[:, 0].topk(N).indices],  # an expert that takes as many tokens as there are samples
        lambda rows: rows[(torch.arange(N * T) < N)],
        lambda rows: rows[N : 2 * N],
    ],
)
def test_rows_that_need_not_be_the_samples_are_not_scored_and_named(function):
    with pytest.warns(AffscoreWarning, match=r":relu\[0\] is not scored: the rows of its input of shape \(12, 6\)"):
        result = signature(Rows(function), [torch.randn(N, T, D)])
    assert not result.calls and isinstance(result.excluded[0], Undecided)
    assert "comes from" in result.excluded[1].reason  # a table that is no buffer


@pytest.mark.filterwarnings("ignore:.*is not scored")
def test_an_expert_that_by_chance_takes_as_many_tokens_as_there_are_samples_ends_no_run():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList(nn.Linear(D, 6) for _ in range(T))
            self.last, self.taken = nn.Linear(D, D), []

        def forward(self, x):
            rows = x.reshape(-1, D)
            chosen = rows[:, :T].argmax(1)
            self.taken += chosen.bincount(minlength=T).tolist()
            parts = [torch.relu(expert(rows[chosen == i])).sum() for i, expert in enumerate(self.experts)]
            return torch.tanh(self.last(x)) + sum(parts)

    torch.manual_seed(0)
    model = Experts()
    result = signature(model, list(torch.randn(20, N, T, D)))
    assert 0 < model.taken.count(N) < len(model.taken)
    assert [call.name for call in result.calls] == [":tanh[0]"] and len(result.excluded) == T


@each("batch", [(4, N, N), (N, 4, N)])
def test_members_of_an_ensemble_are_followed_through_expand_and_a_product(batch):
    class Ensemble(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(4, D, 6)), nn.Parameter(torch.randn(4, 1, 6))

        def forward(self, x):
            return torch.relu(torch.baddbmm(self.bias, x.expand(4, -1, -1), self.weight).transpose(0, 1))

    with pytest.warns(AffscoreWarning, match=r"left the channels of its input of shape \(12, 4, 6\) on axes 1, 2"):
        result = signature(Ensemble(), [torch.randn(N, D)])
    assert isinstance(result.excluded[0], Undecided)
    assert signature(Ensemble(), [torch.randn(N, D)], channel_axis={":relu[0]": 2}).calls[0].shape == (4, 6)


def test_what_vmap_runs_is_not_scored_and_what_comes_after_it_is():
    def mapped(x, layer):
        return torch.tanh(layer(torch.vmap(lambda row: torch.relu(row) * row.clamp(min=0))(x)))

    with pytest.warns(AffscoreWarning, match=r":relu\[0\] is not scored: torch.vmap runs it"):
        result = signature(Made(mapped, nn.Linear(D, D)), [torch.randn(N, D)])
    assert [call.name for call in result.calls] == [":tanh[0]"] and len(result.excluded) == 1


@each(
    ("batch", "words"),
    [
        ((torch.randn(N, D), torch.randn(N, D), torch.zeros(N)), "batch 0 is a tuple of 3; it should be a tensor"),
        (list(torch.randn(5, 3, D)), "batch 0 is a list of 5"),
        ({0: torch.randn(N, D)}, "batch 0 is a dict; .* a mapping from argument names"),
        (torch.randn(N, D).to_sparse(), "batch 0 holds a sparse, nested or meta tensor"),
        (torch.randn(N, D, device="meta"), "batch 0 holds a sparse, nested or meta tensor"),
    ],
)  # fmt: skip
def test_batches_of_other_kinds_are_refused_in_a_sentence(batch, words):
    with pytest.raises(SignatureError, match=words):
        signature(nn.Sequential(nn.Linear(D, D), nn.ReLU()), [batch])


def test_arguments_are_checked_before_the_work():
    model, seen = nn.Sequential(nn.Linear(D, D), nn.ReLU()), []

    def batches():
        seen.append(1)
        yield torch.randn(N, D)

    for options, words in (
        *(({"provenance": {"x": x}}, "provenance cannot be stored as JSON") for x in (Path("x"), float("nan"))),
        *(({"device": x}, f"device is {x!r}; it should be") for x in ("gpu", "meta", "cuda:99", 3.5)),
        ({"provenance": "abc"}, "provenance is 'abc'; it should be a mapping"),
        *(({"provenance": {x: 1}}, f"provenance names {x!r}, which the run records") for x in ("device", "versions")),
        *(({"provenance": {x: 1}}, f"provenance names {x!r}, which") for x in ("calls", "seconds", "precision")),
        ({"pool": "max"}, "pool is 'max'; it should be one of 'spatial', 'trailing'"),
    ):
        with pytest.raises(ValueError, match=words):
            signature(model, batches(), **options)
    with pytest.raises(ValueError, match="on the meta device and has no weights"):
        signature(nn.Linear(D, D, device="meta"), batches())
    assert not seen and not any(parameter.is_meta for parameter in model.parameters())
