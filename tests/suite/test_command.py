"""The commands for many networks: results on standard output, one sentence for every expected error."""

import re
import shlex
from pathlib import Path

import pytest
import torch
from commands import refused

import affscore
from affscore_study.suite import command, runs, suites

NOBODY = "~nobody_of_this_name/runs"
SMALL = ["--weights", "random", "--dataset", "random", "--batch-size", "4", "--batches", "2", "--device", "cpu"]


def test_suite_command(tmp_path, monkeypatch, capsys):
    """One network cannot be had: nothing listens where the proxy should be, and no weights install with it."""
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    out = tmp_path / "out"
    arguments = ["suite", "--models", "squeezenet1_1,efficientnet_lite0", "--dataset", "photographs"]
    arguments += ["--batch-size", "4", "--workers", "1", "--device", "cpu", "--out", str(out)]
    assert command.main(arguments) == 1
    printed, err = capsys.readouterr()
    lines = printed.splitlines()
    assert lines[0] == f"1 of 2 signatures are in {out}." and len(lines) == 2
    assert lines[1].startswith("Failed: squeezenet1_1: weights: ") and "download.pytorch.org" in lines[1]
    assert "efficientnet_lite0 (2 of 2)" in err and "Traceback" not in err
    signature = affscore.Signature.load(out / "efficientnet_lite0.json")
    assert signature.scores.shape == (1, 33) and signature.batch_sizes == [4]
    assert command.main(["report", str(out), "--out", str(tmp_path / "report")]) == 0
    assert "Report on 1 signature" in capsys.readouterr().out and (tmp_path / "report" / "index.html").exists()


def test_an_interrupted_suite_says_what_is_kept_and_goes_on(monkeypatch, tmp_path, capsys):
    arguments = ["suite", "--models", "squeezenet1_1", *SMALL, "--quiet", "--out", str(tmp_path)]
    real = runs.batch_results

    def one(*given, **options):
        yield next(real(*given, **options))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "batch_results", one)
        assert command.main(arguments) == 130
    err = capsys.readouterr().err
    assert err.startswith("affscore-study: interrupted. 1 of 2 batches are kept in ") and len(err.splitlines()) == 1
    assert command.main(["status", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "squeezenet1_1  1 of 2 batches\n"
    assert command.main(arguments) == 0
    # Other settings are refused, and begun anew on request.
    assert command.main([*arguments, "--pool", "trailing"]) == 1
    out = capsys.readouterr().out
    assert "Failed: squeezenet1_1: " in out and "pool is 'spatial' there and 'trailing' here" in out
    assert command.main([*arguments, "--pool", "trailing", "--restart"]) == 0
    assert (tmp_path / "squeezenet1_1.json.old1").exists()


def test_processes_share_the_list(monkeypatch, tmp_path, capsys):
    """The second one is to do what the first one leaves."""
    monkeypatch.setattr(suites, "run_suite", lambda models, *_, **__: asked.append(models) or [])
    monkeypatch.setenv("WORLD_SIZE", "2")
    asked = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        assert command.main(["suite", "--models", "alexnet, vgg11,vgg13", *SMALL, "--out", str(tmp_path)]) == 0
    assert asked == [["alexnet", "vgg13"], ["vgg11"]]
    assert [line.partition(" sig")[0] for line in capsys.readouterr().out.splitlines()] == ["2 of 2", "1 of 1"]


@pytest.mark.parametrize(("arguments", "parts"), [
    (["suite", "paper"], ["--out"]),
    (["suite", "--models", "resnet_18", "--dataset", "random", "--out", "no"], ["resnet_18", "available_models"]),
    (["suite", "paper", "--dataset", "image-net", "--out", "no"], ["image-net"]),
    (["suite", "lites", "--root", "no/such/root", "--out", "no"], ["no/such/root", "image-net.org"]),
    (["suite", "lites", "--dataset", "random", "--out", ""], ["out is ''"]),
    (["suite", "lites", "--dataset", "random", "--out", NOBODY], ["out is", NOBODY, "home folder"]),
    (["status", NOBODY], ["folder is", NOBODY, "home folder"]),
    (["report", ".", "--out", NOBODY], ["out is", NOBODY, "home folder"]),
    (["status", "no/such/folder"], ["no/such/folder"]),
    (["report", "no/such/folder", "--out", "x"], ["no/such/folder"]),
])  # fmt: skip
def test_expected_errors_of_runs_are_one_sentence(monkeypatch, tmp_path, capsys, arguments, parts):
    monkeypatch.chdir(tmp_path)
    text = refused(arguments, capsys, command.main)
    assert all(part in text for part in parts)
    assert not list(tmp_path.iterdir())


def test_commands_on_the_page_on_full_scale_runs_exist():
    text = (Path(__file__).parents[2] / "book" / "full_scale.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    ours = [line[line.index("affscore-study ") :] for line in lines if "affscore-study " in line]
    found = [shlex.split(line.rstrip("&"))[1:] for line in ours]
    assert {arguments[0] for arguments in found} == {"suite", "report", "status"} and len(found) >= 5
    for arguments in found:
        command.parser().parse_args(arguments)  # leaves with an error where an option does not exist


def test_the_commands_are_those_of_the_command_line(capsys):
    top = command.parser()
    assert top.parse_args(["status", "runs"]).folder == "runs"
    with pytest.raises(SystemExit):
        top.parse_args(["suite", "--out", "runs"])  # neither a list of networks by name nor their names
    assert "one of the arguments name --models is required" in capsys.readouterr().err
