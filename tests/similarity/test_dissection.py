"""Network dissection: planted concepts are found, rotations are what they claim to be, chance is chance."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import fractional_matrix_power
from torch.nn import functional

from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.dissection import dissect
from affscore_study.similarity.drawn_concepts import generated_concepts
from affscore_study.similarity.rotated_units import Rotation, rotation_curve


@pytest.mark.parametrize("d", [1, 2, 3, 33])
def test_powers_of_a_rotation(d):
    rotation = Rotation.random(d, 0)
    np.testing.assert_allclose(rotation.power(1.0), rotation.q, atol=1e-12)
    assert np.linalg.det(rotation.q) == pytest.approx(1, abs=1e-10)
    for alpha in (0.0, 0.3, -0.7):
        np.testing.assert_allclose(rotation.power(alpha) @ rotation.power(1 - alpha), rotation.q, atol=1e-12)
    np.testing.assert_allclose(rotation.power(0.3), np.real(fractional_matrix_power(rotation.q, 0.3)), atol=1e-9)


@pytest.mark.parametrize("angles", [(0.4, 2.5), (math.pi, 0.0), (math.pi, math.pi), (3.14159, -3.0), (1.0, 1.0)])
def test_powers_of_planted_angles(angles):
    """Half turns, equal planes and fixed directions, hidden by a change of basis."""
    d = 2 * len(angles) + 1
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]

    def turned(alpha):
        inner = np.eye(d)
        for k, angle in enumerate(angles):
            c, s = math.cos(alpha * angle), math.sin(alpha * angle)
            inner[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[c, -s], [s, c]]
        return basis @ inner @ basis.T

    rotation = Rotation(turned(1.0))
    half = rotation.power(0.5)
    np.testing.assert_allclose(half @ half, rotation.q, atol=1e-10)
    # As short as can be: the angles of Q^alpha are alpha times those of Q. (A half turn has two shortest ways.)
    found = np.sort(np.abs(np.angle(np.linalg.eigvals(rotation.power(0.3)))))
    np.testing.assert_allclose(found, np.sort([0.0, *np.repeat(np.abs(angles), 2)]) * 0.3, atol=1e-7)
    if max(np.abs(angles)) < math.pi:
        np.testing.assert_allclose(rotation.power(0.3), turned(0.3), atol=1e-9)


@pytest.mark.parametrize(
    ("q", "text"),
    [
        (np.diag([1.0, -1.0]), "reflection"),
        (2 * np.eye(3), "not orthogonal"),
        (np.ones((2, 3)), r"shape \(2, 3\)"),
        (np.full((2, 2), np.nan), "finite"),
    ],
)
def test_what_has_no_real_power_is_refused(q, text):
    with pytest.raises(ValueError, match=text):
        Rotation(q)


def naive_iou(features, concepts, quantile, top_of="map"):
    """Pixel by pixel, with numpy's sort and PIL-free interpolation by torch."""
    maps = functional.interpolate(features, size=concepts.masks.shape[-2:], mode="bilinear")
    result = np.zeros((features.shape[1], concepts.masks.shape[1]))
    for unit in range(features.shape[1]):
        values = np.sort((features if top_of == "map" else maps)[:, unit].numpy().ravel())
        active = maps[:, unit].numpy() > values[len(values) - 1 - int(quantile * len(values))]
        for k in range(concepts.masks.shape[1]):
            mask = concepts.masks[:, k].numpy()
            result[unit, k] = (active & mask).sum() / max(1, (active | mask).sum())
    return result


@pytest.mark.parametrize("size", [32, 8, 5])
@pytest.mark.parametrize("quantile", [0.005, 0.1])
@pytest.mark.parametrize("top_of", ["map", "pixels"])
def test_iou_against_pixel_by_pixel(size, quantile, top_of):
    concepts = generated_concepts(110)  # more than one batch
    features = torch.randn(110, 4, size, size, generator=torch.Generator().manual_seed(0))
    features[:, 3] = torch.relu(features[:, 3])
    found = dissect(features, concepts, quantile=quantile, top_of=top_of)
    np.testing.assert_allclose(found.iou, naive_iou(features, concepts, quantile, top_of), atol=1e-12)


def test_units_that_know_a_concept_are_named_and_others_are_not():
    concepts = generated_concepts(200)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(200, 3, 32, 32, generator=generator)
    features = torch.cat([concepts.masks[:, [2, 9, 14]].float() + 0.1 * noise, noise, torch.ones(200, 1, 32, 32)], 1)
    found = dissect(features, concepts)
    assert found.labels == [concepts.names[2], concepts.names[9], concepts.names[14], None, None, None, None]
    assert found.dead == (6,)
    assert found.fraction == 3 / 7
    assert repr(found) == "Dissection(3 of 7 units interpretable, 1 dead)"


def test_no_unit_can_pass_for_a_concept_that_is_too_large():
    """IoU <= quantile / share (the text's exercise)."""
    generator = torch.Generator().manual_seed(0)
    masks = torch.rand(50, 1, 20, 20, generator=generator) < 0.3
    concepts = Concepts(torch.zeros(50, 1, 20, 20, dtype=torch.uint8), masks, ("large",), ("any",))
    # All values differ: of values that are equal at the cut, none counts as active.
    ranks = torch.randperm(masks.numel(), generator=generator).reshape(masks.shape) / (2 * masks.numel())
    best = dissect(masks.float() + ranks, concepts).best[0]
    assert best == pytest.approx(0.005 / float(masks.double().mean()), rel=1e-6)


def test_ties_at_zero_are_not_active():
    """A unit that fires at fewer positions than the quantile is active where it fires, not at all its zeros."""
    concepts = generated_concepts(50)
    features = torch.zeros(50, 1, 32, 32)
    features[0, 0, 3, 4] = 1.0
    inside = concepts.masks[0, :, 3, 4].double().numpy()
    expected = inside / np.maximum(concepts.masks.sum((0, 2, 3)).numpy() + 1 - inside, 1)
    np.testing.assert_allclose(dissect(features, concepts).iou[0], expected, atol=1e-15)


def test_rotations_take_planted_units_apart():
    """Units that are concepts lose their names under a full rotation, and shuffled masks give none to begin with."""
    concepts = generated_concepts(80)
    generator = torch.Generator().manual_seed(0)
    # Every unit knows one concept out of its own 32; a random mixture of many knows none well.
    features = 0.3 * torch.rand(80, 32, 32, 32, generator=generator)
    features[:, :18] += concepts.masks.float()
    curve = rotation_curve(features, concepts, (0.0, 1.0), draws=2)
    assert curve.shape == (2, 2)
    assert (curve[:, 0] == 18 / 32).all()
    assert curve[0, 0] == dissect(features, concepts).fraction
    assert rotation_curve(features, concepts, (0.0,), draws=1, shuffled=True)[0, 0] < 0.1


@pytest.mark.gpu
def test_features_on_a_gpu():
    concepts = generated_concepts(20)
    features = torch.randn(20, 5, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for draws in (1, 2):
        here, there = (rotation_curve(f, concepts, (0.0, 0.5), draws=draws) for f in (features, features.cuda()))
        np.testing.assert_allclose(there, here, atol=1 / 5)


GOOD = generated_concepts(4)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: dissect(torch.zeros(3, 2, 4, 4), GOOD), r"should be \(4, units, height, width\)"),
        (lambda: dissect(torch.zeros(4, 2), GOOD), r"shape \(4, 2\)"),
        (lambda: dissect(torch.full((4, 2, 4, 4), torch.nan), GOOD), "NaN or infinite"),
        (lambda: dissect(torch.zeros(4, 2, 4, 4), GOOD, quantile=0.0), "quantile is 0.0"),
        (lambda: dissect(torch.zeros(4, 2, 4, 4), GOOD, threshold=1.5), "threshold is 1.5"),
    ],
)
def test_bad_arguments_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
