"""The cloud of the widgets in the plane. That JavaScript's scores are affscore's is tested in tests/theory."""

from pathlib import Path

import numpy as np
import pytest

from affscore_book import kit
from affscore_book.kit.affinity2d import POINTS, cloud
from affscore_book.kit.bundle import bundle


def test_both_languages_have_the_same_cloud(node):
    spiral = node(bundle(Path(kit.__file__).with_name("affinity2d.js")), "m => m.SPIRAL")
    np.testing.assert_allclose(spiral, cloud(), atol=1e-12)
    assert len(spiral) == POINTS


def test_width_angle_and_centre_make_the_covariance():
    for options, mean, covariance in (
        ({}, 0, np.eye(2)),
        ({"width": 0.5, "angle": 90.0, "centre": 3.0}, 3, np.diag([0.25, 1.0])),
    ):
        x = cloud(**options, n=2000)
        assert x.mean(axis=0) == pytest.approx([mean, mean], abs=0.02)
        assert np.cov(x.T) == pytest.approx(covariance, abs=0.02)
