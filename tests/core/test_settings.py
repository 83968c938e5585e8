"""How a network is measured is checked once, and cannot change afterwards."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from grids import each

from affscore.companions import MEASURES
from affscore.settings import Settings


@each(
    ("companions", "names"),
    [(True, MEASURES), (False, ()), (["r2", "cka"], ("cka", "r2")), ({"norm"}, ("norm",)), ((), ())],
)
def test_companions_are_names_in_their_order(companions, names):
    settings = Settings(companions=companions)
    assert settings.companions == settings.measures == names
    assert settings == Settings(companions=names) and hash(settings) == hash(Settings(companions=names))
    assert settings.sparsity == ("sparsity_before" in names)


def test_settings_are_frozen_and_take_numpys_whole_numbers():
    assert Settings(micro_batch=np.int64(7)).micro_batch == 7
    with pytest.raises(FrozenInstanceError):
        Settings().pool = "trailing"


@each(
    ("options", "words"),
    [
        ({"pool": "max"}, "pool is 'max'; it should be one of 'spatial', 'trailing'"),
        ({"covariance": "oas"}, "covariance is 'oas'"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"micro_batch": 0}, "micro_batch is 0; it should be a whole number of at least 1"),
        ({"companions": "cka"}, "companions is 'cka'; it should be True, False or a list of names"),
        *(({"calls": value}, r"calls is .*; it should be a pattern of names") for value in ("", 3, ["4*"])),
        ({"companions": ["hsic"]}, "companions names 'hsic'; the measures are 'cka'"),
        ({"pool": "trailing", "channel_axis": {"1:relu[0]": 1}}, "channel_axis does not go with the pool 'trailing'"),
    ],
)
def test_bad_settings_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Settings(**options)
