"""Files of a run: in their folders, and states that come back whole."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from affscore_study.kit.run_files import RunFiles, read_checkpoint, write_checkpoint


def test_everything_has_its_place(tmp_path):
    files = RunFiles(tmp_path, "gelu without norm", 2, kept=False)
    assert files.result == tmp_path / "results" / "gelu-without-norm-2.json"
    assert files.weights.parent == files.checkpoint.parent == files.snapshot(10).parent == tmp_path / "work"
    assert files.snapshot(10).name == "gelu-without-norm-2-step10.safetensors"
    assert RunFiles(tmp_path, "gelu", 0, kept=True).weights == tmp_path / "weights" / "gelu-0.safetensors"
    assert all((tmp_path / name).is_dir() for name in ("results", "signatures", "weights", "work"))
    one, other = (RunFiles(tmp_path, f"vgg11-{target}", 0, kept=False).checkpoint for target in ("0.6", "0.7"))
    assert one != other, "names that differ after a dot"


def trained(steps: int) -> dict[str, object]:
    torch.manual_seed(0)
    network = nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        network(torch.full((2, 3), float(step))).sum().backward()
        optimizer.step()
    return {"network": network, "optimizer": optimizer}


def test_a_run_goes_on_where_it_stopped(tmp_path):
    file, settings = tmp_path / "run.checkpoint", {"seed": 0}
    kept, fresh = trained(3), trained(0)
    assert read_checkpoint(file, fresh, settings) == [] == read_checkpoint(None, fresh, settings)
    write_checkpoint(None, kept, settings, [])
    write_checkpoint(file, kept, settings, [{"loss": 0.5}])
    assert read_checkpoint(file, fresh, settings) == [{"loss": 0.5}]
    for one, other in zip(kept["network"].parameters(), fresh["network"].parameters(), strict=True):
        assert torch.equal(one, other)
    assert fresh["optimizer"].state_dict()["state"][0]["step"] == 3
    with pytest.raises(ValueError, match=r"belongs to a run with \{'seed': 0\}; this one has \{'seed': 1\}"):
        read_checkpoint(file, fresh, {"seed": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.checkpoint"]
