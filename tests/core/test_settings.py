"""How a network is measured is checked once, and cannot change afterwards."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from affscore.companions import MEASURES
from affscore.settings import Settings


def test_settings_are_frozen_and_order_the_companions():
    """Settings are frozen and hashable, and they list the companions in the order of the table."""
    for companions, names in ((True, MEASURES), (False, ()), (["r2", "cka"], ("cka", "r2")), ({"norm"}, ("norm",))):
        settings, other = Settings(companions=companions), Settings(companions=names)
        assert settings.companions == settings.measures == names and settings.sparsity == ("sparsity_before" in names)
        assert settings == other and hash(settings) == hash(other)
    assert Settings(micro_batch=np.int64(7)).micro_batch == 7
    with pytest.raises(FrozenInstanceError):
        Settings().pool = "trailing"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"covariance": "oas"}, "covariance is 'oas'; it should be one of 'ledoit_wolf', 'empirical'"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"micro_batch": 0}, "micro_batch is 0; it should be a whole number of at least 1"),
        ({"companions": "cka"}, "companions is 'cka'; it should be True, False or a list of names"),
        ({"companions": ["hsic"]}, "companions names 'hsic'; the measures are 'cka'"),
        *(({"calls": value}, r"calls is .*; it should be a pattern of names") for value in ("", 3, ["4*"])),
        *(({"channel_axis": x}, "it should map names of calls to axes") for x in ({"a": 1.0}, {"a": True}, {1: 1})),
        ({"pool": "trailing", "channel_axis": {"1:relu[0]": 1}}, "channel_axis does not go with the pool 'trailing'"),
    ],
)
def test_bad_settings_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Settings(**options)
