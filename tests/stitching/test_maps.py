"""Stitches as modules: what they keep to, what they round to, what is refused."""

import math

import pytest
import torch
from planted_images import images, random_network

from affscore_book.stitching.moments import Moments
from affscore_study.stitching.learning import learn
from affscore_study.stitching.maps import (
    STITCHES,
    Birkhoff,
    Full,
    Lasso,
    SoftSort,
    sinkhorn,
    soft_sort,
    stitch_layer,
)
from affscore_study.stitching.stitched import Stitched


def test_sinkhorn_goes_to_a_doubly_stochastic_matrix():
    """Of the form D A E: in the limit all 2 x 2 cross ratios are those of the start."""
    matrix = torch.rand(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.01
    matrix[4, 4] = -0.1
    even = sinkhorn(matrix, 500)
    assert torch.allclose(even.sum(0), torch.ones(5).double()) and torch.allclose(even.sum(1), torch.ones(5).double())
    assert bool((even >= 0).all()) and even[4, 4] < 1e-12
    ratios = [m[0, 0] * m[1, 1] / (m[0, 1] * m[1, 0]) for m in (matrix, even)]
    assert ratios[0].item() == pytest.approx(ratios[1].item())


def test_soft_sort_needs_the_absolute_value():
    """SoftSort needs the absolute value that the paper leaves out."""
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5])
    ordered = sorted(scores.tolist(), reverse=True)
    tau = 0.25
    logits = [[-abs(a - b) / tau for b in scores.tolist()] for a in ordered]
    expected = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in logits]
    assert torch.allclose(soft_sort(scores, tau), torch.tensor(expected))
    printed = torch.softmax(-(scores.sort(descending=True).values[:, None] - scores) / tau, dim=1)
    assert torch.allclose(printed, printed[:1].expand(4, 4))
    found = SoftSort(scores, torch.zeros(4)).rounded()
    assert found.permutation.tolist() == [2, 3, 0, 1]
    assert torch.allclose(soft_sort(scores, 1e-3), found.matrix())
    for more, temperature in (({}, 1 / 8), ({"temperature": 10.0}, 1.25)):
        stitch = stitch_layer("soft_sort", (8, 8), **more)
        assert torch.allclose(stitch.matrix(), soft_sort(stitch.scores, temperature))


@pytest.mark.parametrize("kind", ["g_relu", "soft_sort"])
def test_a_rounded_stitch_is_in_the_group(kind):
    stitched = Stitched(random_network("myrtle", 0), random_network("myrtle", 1), "relu2", stitch_layer(kind, (8, 8)))
    states = stitched.states(images(60))
    learn(stitched, states, torch.arange(60) % 10, epochs=3, seed=0, learning_rate=0.1, batch_size=10)
    found = stitched.stitch.rounded()
    matrix = found.matrix()
    assert bool((matrix >= 0).all()) and bool(((matrix > 0).sum(0) == 1).all() and ((matrix > 0).sum(1) == 1).all())
    assert found.sparsity() >= 1 - 1 / 8
    x = torch.randn(2, 8, 3, 3)  # it intertwines ReLU with itself
    assert torch.allclose(torch.relu(found(x)), found(torch.relu(x)))


def test_birkhoff_stays_doubly_stochastic_and_its_scale_waits():
    stitched = Stitched(
        random_network("myrtle", 0), random_network("myrtle", 1), "relu1", stitch_layer("g_relu", (4, 4))
    )
    states, labels = stitched.states(images(40)), torch.arange(40) % 10
    seen = []
    project = stitched.stitch.project

    def watch(step):
        project(step)
        seen.append((stitched.stitch.transport.detach().clone(), stitched.stitch.scale.detach().clone()))

    stitched.stitch.project = watch
    learn(stitched, states, labels, epochs=4, seed=0, learning_rate=1e-3, batch_size=10)
    for transport, scale in seen:
        assert bool((transport >= 0).all() and (scale >= 0).all())
        assert torch.allclose(transport.sum(1), torch.ones(4), atol=1e-5)
        assert torch.allclose(transport.sum(0), torch.ones(4), atol=0.05)
    ones = [bool((scale == 1).all()) for _, scale in seen]
    assert ones == [True] * 8 + [False] * 8


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_the_norm_term_only_shrinks_the_learning_rate(alpha):
    """Its gradient is along P itself, and Sinkhorn iterations forget a factor of the whole matrix."""
    start = torch.rand(6, 6, generator=torch.Generator().manual_seed(0))
    slope = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    rate, results = 0.05, []
    norm = sinkhorn(start, 100).norm()
    for a, r in ((alpha, rate), (0.0, rate / (1 + rate * alpha / norm))):
        stitch = Birkhoff(start, torch.ones(6), alpha=a)
        ((stitch.transport * slope).sum() + stitch.penalty()).backward()
        with torch.no_grad():
            stitch.transport -= r * stitch.transport.grad
        stitch.project(r)
        results.append(stitch.transport.detach())
    assert torch.allclose(*results, atol=1e-6)
    assert not torch.allclose(results[0], sinkhorn(start, 100), atol=1e-3)


def test_a_step_of_the_lasso_is_soft_thresholding():
    weight = torch.tensor([[0.5, -0.02, 0.03], [0.0, -0.7, 0.04]])
    stitch = Lasso(weight, strength=0.5)
    stitch.project(0.1)
    expected = weight.sign() * (weight.abs() - 0.05).clamp(min=0)
    assert torch.allclose(stitch.matrix(), expected) and stitch.sparsity() == pytest.approx(4 / 6)


@pytest.mark.parametrize("kind", [*STITCHES, "rank 3"])
def test_a_stitch_acts_on_channels_alike_at_every_pixel(kind):
    stitch = stitch_layer(kind, (5, 5))
    x = torch.randn(3, 5, 2, 4, generator=torch.Generator().manual_seed(0))
    expected = torch.einsum("oi,nihw->nohw", stitch.matrix(), x)
    assert torch.allclose(stitch(x), expected, atol=1e-5)
    assert "bias" not in dict(stitch.named_parameters())
    if kind.startswith("rank"):
        assert int(torch.linalg.matrix_rank(stitch.matrix())) == int(kind[5:])


def test_stitches_that_do_not_fit_are_refused():
    x, eye = torch.ones(2, 3, 4, 4), torch.eye(3)
    cases = [
        (lambda: stitch_layer("g_relu", (4, 8)), "square.*4 and 8 channels"),
        (lambda: stitch_layer("soft_sort", (4, 8)), "square.*4 and 8 channels"),
        (lambda: stitch_layer("g_relu", Moments.of(x, x[:, :2])), "square.*3 and 2 channels"),
        (lambda: Birkhoff(torch.ones(2, 3), torch.ones(2)), r"transport has shape \(2, 3\)"),
        (lambda: stitch_layer("ful", (3, 3)), "kind is 'ful'.*'full'"),
        (lambda: stitch_layer("rank 0", (3, 3)), "rank should be between 1 and 3"),
        (lambda: stitch_layer("rank 4", (3, 3)), "rank should be between 1 and 3"),
        (lambda: Full(eye)(torch.ones(1, 4, 2, 2)), r"x has shape \(1, 4, 2, 2\).*\(n, 3, H, W\)"),
        (lambda: Full(eye)(torch.ones(1, 3)), r"x has shape \(1, 3\)"),
        (lambda: Full(eye * math.nan), "weight has shape .* finite"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_full_stitch_keeps_the_precision_of_its_matrix():
    matrix = torch.rand(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.ones(1, 3, 1, 1, dtype=torch.float64)
    torch.testing.assert_close(Full(matrix)(x).flatten(), matrix.sum(1), rtol=1e-15, atol=0)
