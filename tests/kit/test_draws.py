"""Seeds and generators give the same draws, and rotations have no preferred direction."""

import torch

from affscore_book.kit.draws import as_generator, random_rotation


def test_random_rotations_are_orthogonal_and_not_biased():
    q = torch.stack([random_rotation(3, k) for k in range(400)])
    torch.testing.assert_close(q @ q.mT, torch.eye(3, dtype=torch.float64).expand_as(q), rtol=0, atol=1e-12)
    assert q.mean(0).abs().max() < 0.15


def test_a_seed_and_its_generator_draw_the_same():
    generator = torch.Generator().manual_seed(5)
    assert as_generator(generator) is generator and as_generator(None) is torch.default_generator
    assert torch.equal(random_rotation(3, generator), random_rotation(3, 5))
