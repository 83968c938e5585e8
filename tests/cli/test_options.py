"""The options of measurement mean what the package means by them."""

import argparse
import dataclasses
import subprocess
import sys

import pytest
import torch

from affscore.cli.options import add_measuring, device_of, settings_of
from affscore.settings import Settings

#: Without options: as the package has it, but for the twins and for memory.
TWIN = Settings(companions=["twin"], micro_batch=32)


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_measuring(parser, dataset="photographs", batch_size=7)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(("arguments", "settings"), [
    ([], TWIN),
    (["--companions", "none"], Settings(micro_batch=32)),
    (["--companions"], Settings(micro_batch=32, companions=True)),
    (["--companions", "r2,cka"], Settings(micro_batch=32, companions=["cka", "r2"])),
    (["--pool", "trailing", "--covariance", "empirical", "--precision", "bf16", "--channels-last"],
     Settings("trailing", "empirical", ["twin"], 32, "bf16", True)),
    (["--calls", "layer3.*", "--micro-batch", "4"], dataclasses.replace(TWIN, calls="layer3.*", micro_batch=4)),
])  # fmt: skip
def test_options_are_settings(arguments, settings):
    assert settings_of(parsed(*arguments)) == settings


def test_devices_are_checked(monkeypatch):
    assert device_of(parsed("--device", "cpu")) == torch.device("cpu")
    with pytest.raises(ValueError, match="device is 'warp'; it should be"):
        device_of(parsed("--device", "warp"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(parsed()) == torch.device("cpu")


def test_the_parser_needs_no_torch():
    """The help of a command should not take the seconds that torch takes to be imported."""
    code = "import sys; from affscore.cli.main import parser; parser().format_help(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
