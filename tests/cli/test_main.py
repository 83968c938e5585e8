"""The command line: results on standard output, one sentence for every error that can be expected."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from commands import NET, NOISE, one_sentence, refused
from image_files import noise_images

import affscore
from affscore.cli import main as cli
from affscore.cli import signature as command
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model


def test_command_prints_and_writes_what_the_package_gives(tmp_path, capsys):
    """Oracle: the three calls written out."""
    path = tmp_path / "a.json"
    options = ["--batches", "2", "--seed", "3", "--pool", "trailing", "--covariance", "empirical", "--micro-batch", "3"]
    assert cli.main([*NOISE, *options, "--device", "cpu", "--output", str(path)]) == 0
    out, err = capsys.readouterr()
    net = load_model("squeezenet1_1", weights="random", seed=3)
    batches = load_dataset("random", preprocess=net.preprocess, batch_size=8, batches=2, seed=3)
    expected = affscore.signature(net.model, batches, pool="trailing", covariance="empirical", micro_batch=3)
    result = affscore.Signature.load(path)
    assert (result.pool, result.covariance) == ("trailing", "empirical")
    assert np.array_equal(result.scores, expected.scores)
    assert all(call.name in out for call in result.calls) and all(f"{score:.3f}" in out for score in result.mean)
    assert "2/2" in err and err.endswith(f"Written to {path}.\n")  # the progress bar and where the result went
    facts = result.provenance
    assert facts["model"] == "squeezenet1_1" and facts["weights"]["weights"] == "random initialisation, seed 3"
    assert facts["data"] == batches.provenance


def test_a_picture_shows_signature_and_twins_and_says_what_it_is(tmp_path):
    picture, output = tmp_path / "a.svg", tmp_path / "a.json"
    arguments = ["--device", "cpu", "--quiet", "--picture", str(picture), "--output", str(output)]
    assert cli.main([*NOISE, *arguments]) == 0
    found = affscore.Signature.load(output)
    assert list(found.companions) == ["twin"]
    text = picture.read_text()
    assert repr(found) in text and "linear twins" in text and "squeezenet1_1" in text


def test_missing_package_is_named_with_its_command(monkeypatch, tmp_path, capsys):
    """A package that is missing is named, together with the command that installs it."""
    for name in ("matplotlib", "matplotlib.figure"):  # as where it is not installed
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "affscore.plots", raising=False)
    text = refused([*NOISE, "--device", "cpu", "--quiet", "--picture", str(tmp_path / "a.svg")], capsys)
    assert "matplotlib is needed here" in text and 'pip install "affscore[pretrained] @ git+https://' in text


def test_skipped_images_are_reported_and_stored(monkeypatch, tmp_path, capsys):
    """Skipped images are reported and stored, even if their names cannot be printed."""
    images = noise_images(tmp_path / "images", [f"{i}.png" for i in range(10)], 40, 40)
    for name in ("4.png", os.fsdecode(b"\xff.png")):
        (images / name).write_bytes(b"broken")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed := io.BytesIO(), encoding="utf-8", write_through=True))
    arguments = ["--dataset", str(images), "--batch-size", "11", "--quiet", "--output", str(tmp_path / "a.json")]
    assert cli.main([*NET, *arguments]) == 0
    assert b"Skipped: 4.png" in printed.getvalue() and b"Skipped: \\udcff.png" in printed.getvalue()
    assert "affscore: warning: batch 0: 2 of 11 images cannot be read" in capsys.readouterr().err
    result = affscore.Signature.load(tmp_path / "a.json")
    assert {entry["file"] for entry in result.provenance["data"]["skipped"]} == {"4.png", "\udcff.png"}
    assert result.batch_sizes == [9]


@pytest.mark.weekly  # test_the_file_that_standard_output_goes_to_is_not_replaced starts it as a module
def test_the_installed_command_starts():
    command = os.path.join(os.path.dirname(sys.executable), "affscore")
    run = subprocess.run([command, "signature", "resnet0"], capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == ""
    one_sentence(run.stderr)


@pytest.mark.parametrize(("arguments", "parts"), [
    (["signatur"], ["signatur"]),
    (["signature", "resnet_18"], ["resnet_18", "resnet18"]),
    (["signature", "resnet18", "--weights", "BEST"], ["BEST", "IMAGENET1K_V1"]),
    (["signature", "resnet18", "--weights", "no/file.pth"], ["no/file.pth"]),
    ([*NET, "--dataset", "photos"], ["photos", "photographs"]),
    ([*NOISE, "--batches", "0"], ["batches", "0"]),
    ([*NOISE, "--micro-batch", "0"], ["micro_batch", "0"]),
    ([*NOISE, "--device", "abacus"], ["device", "abacus"]),
    ([*NOISE, "--output", "no/such/folder/a.json"], ["output", "no/such/folder"]),
    ([*NOISE, "--picture", "no/such/folder/a.png"], ["picture", "no/such/folder"]),
    ([*NOISE, "--picture", "a.gifpng"], ["picture", "a.gifpng", ".png", ".svg"]),
    ([*NOISE, "--output", "."], ["output", "is a folder"]),
    ([*NOISE, "--output", ""], ["output", "''"]),
    *(([*NET, f"--{name}", "~nouser/x"], [name, "~nouser/x"]) for name in ("dataset", "weights", "output")),
    ([*NOISE, "--workers", "-1"], ["workers", "-1"]),
])  # fmt: skip
def test_expected_errors_are_one_sentence(capsys, arguments, parts):
    text = refused(arguments, capsys)
    assert all(part in text for part in parts)


def test_bad_output_is_refused_before_any_work(monkeypatch, tmp_path):
    def work(*_, **__):
        raise AssertionError("the work began")

    os.mkfifo(tmp_path / "fifo")
    links = {"null": "/dev/null", "stdout": "/proc/self/fd/1", "nowhere": "no/folder/a.json"}
    for name, target in links.items():
        (tmp_path / f"to {name}").symlink_to(target)
    (tmp_path / "circle").symlink_to("circle")
    before = set(tmp_path.iterdir())
    monkeypatch.setattr(command, "load_model", work)
    for output in ("missing/a.json", ".", "fifo", "to null", "to stdout", "circle", "to nowhere", "n" * 300, "p" * 250):
        assert cli.main([*NOISE, "--output", str(tmp_path / output)]) == 2
    with pytest.raises(AssertionError, match="the work began"):  # with a good one it does begin
        cli.main([*NOISE, "--output", str(tmp_path / "a.json")])
    assert set(tmp_path.iterdir()) == before and all(path.is_symlink() for path in before - {tmp_path / "fifo"})


def test_the_file_that_standard_output_goes_to_is_not_replaced(tmp_path):
    with (tmp_path / "out.txt").open("w") as out:
        run = subprocess.run(
            [sys.executable, "-m", "affscore", *NOISE, "--output", "out.txt"],
            stdout=out, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        )  # fmt: skip
    assert run.returncode == 2 and "standard output" in one_sentence(run.stderr)
    assert (tmp_path / "out.txt").read_text() == ""


def test_folder_that_cannot_be_written_is_refused(monkeypatch, tmp_path, capsys):
    """Root may write anywhere, so the refusal of the operating system is planted."""

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(command.tempfile, "TemporaryFile", refuse)
    assert "cannot write" in refused([*NOISE, "--output", str(tmp_path / "a.json")], capsys)


def test_result_is_printed_if_it_cannot_be_written(monkeypatch, tmp_path, capsys):
    """The result is printed, even if it cannot be written in the end."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(affscore.Signature, "save", full)
    assert cli.main([*NOISE, "--quiet", "--output", str(tmp_path / "a.json")]) == 2
    out, err = capsys.readouterr()
    assert "relu" in out and "No space left" in one_sentence(err)


def test_result_is_written_even_where_nobody_reads_it(monkeypatch, tmp_path, capsys):
    class Left(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Left())
    assert cli.main([*NOISE, "--quiet", "--output", str(tmp_path / "a.json")]) == 2
    assert "Broken pipe" in capsys.readouterr().err
    assert len(affscore.Signature.load(tmp_path / "a.json").scores) == 1


@pytest.mark.parametrize(("error", "status", "part"), [
    (torch.OutOfMemoryError("CUDA out of memory.\nmore"), 2, "--micro-batch"),
    (affscore.SignatureError("batch 0 is a str."), 2, "batch 0 is a str."),
    (KeyboardInterrupt(), 130, "interrupted"),
])  # fmt: skip
@pytest.mark.parametrize("kept", [True, False])
def test_stopped_run_is_a_sentence_and_keeps_batches(monkeypatch, tmp_path, capsys, error, status, part, kept):
    """A run that stops ends with one sentence and keeps the finished batches in a partial file."""
    partial = tmp_path / "a.partial.json"

    def fail(*_, **__):
        error.finished = affscore.Signature([], [[]], batch_sizes=[8]) if kept else None
        raise error

    monkeypatch.setattr(command, "signature", fail)
    assert cli.main([*NOISE, "--output", str(tmp_path / "a.json")]) == status
    kept = kept and not isinstance(error, torch.OutOfMemoryError)
    (line,) = capsys.readouterr().err.splitlines()
    assert part in line and (f"The batches before it are in {partial}." in line) == partial.exists() == kept
    partial.unlink(missing_ok=True)
    assert not list(tmp_path.iterdir())


def test_a_package_missing_inside_the_run_is_a_sentence(monkeypatch, capsys):
    def fail(*_, **__):
        raise ModuleNotFoundError("No module named 'lacking'", name="lacking.part")

    monkeypatch.setattr(command, "signature", fail)
    assert "lacking is needed here: install it with" in refused([*NOISE, "--quiet"], capsys)


def test_another_error_of_torch_is_not_called_lack_of_memory(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("two shapes differ")

    monkeypatch.setattr(command, "signature", fail)
    with pytest.raises(RuntimeError, match="two shapes differ"):
        cli.main([*NOISE, "--quiet"])


def test_a_bug_is_not_dressed_up_as_an_expected_error(monkeypatch):
    monkeypatch.setattr(command, "signature", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(NOISE)


@pytest.mark.gpu
def test_gpu_is_used_and_agrees_with_the_cpu(tmp_path):
    for device in ("cpu", "cuda"):
        assert cli.main([*NOISE, "--device", device, "--quiet", "--output", str(tmp_path / f"{device}.json")]) == 0
    cpu, gpu = (affscore.Signature.load(tmp_path / f"{device}.json") for device in ("cpu", "cuda"))
    np.testing.assert_allclose(cpu.scores, gpu.scores, atol=5e-3)


def test_the_network_is_not_taken_for_a_companion_measure(capsys):
    text = refused(["signature", "--companions", "efficientnet_lite0"], capsys)
    assert "--companions" in text and "names 'efficientnet_lite0'; the measures are 'cka'" in text
