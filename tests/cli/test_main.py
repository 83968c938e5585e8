"""The command line: results on standard output, one sentence for every error that can be expected."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from commands import NET, NOISE, one_sentence, refused
from grids import each
from image_files import noise_images
from small_hub import SENTENCES, text_folder

import affscore
from affscore.cli import main as cli
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model


@pytest.fixture
def images(tmp_path):
    return noise_images(tmp_path / "images", [f"{i}.png" for i in range(10)], 40, 40)


def test_signature_is_printed_and_written_with_its_provenance(tmp_path, capsys):
    path = tmp_path / "signature.json"
    assert cli.main([*NOISE, "--batches", "2", "--seed", "3", "--output", str(path)]) == 0
    out, err = capsys.readouterr()
    stored = json.loads(path.read_text())
    result = affscore.Signature.load(path)
    assert result.scores.shape == (2, len(result.calls)) and np.isfinite(result.scores).all()
    assert all(call.name in out for call in result.calls)
    assert all(f"{score:.3f}" in out for score in result.mean)
    assert "2/2" in err and str(path) in err  # the progress bar and where the result went
    facts = stored["provenance"]
    assert facts["model"] == "squeezenet1_1"
    assert facts["weights"]["weights"] == "random initialisation, seed 3"
    assert facts["data"]["dataset"] == "random" and facts["data"]["seed"] == 3
    assert (facts["data"]["batches"], facts["data"]["batch_size"]) == (2, 8)


def test_command_gives_what_the_package_gives(tmp_path, capsys):
    """Oracle: the three calls written out."""
    path = tmp_path / "a.json"
    options = ["--pool", "trailing", "--covariance", "empirical", "--micro-batch", "3", "--device", "cpu", "--quiet"]
    assert cli.main([*NOISE, *options, "--output", str(path)]) == 0
    net = load_model("squeezenet1_1", weights="random")
    batches = load_dataset("random", preprocess=net.preprocess, batch_size=8)
    expected = affscore.signature(net.model, batches, pool="trailing", covariance="empirical", micro_batch=3)
    result = affscore.Signature.load(path)
    assert (result.pool, result.covariance) == ("trailing", "empirical")
    assert np.array_equal(result.scores, expected.scores)
    assert capsys.readouterr().err == f"Written to {path}.\n"


def test_a_picture_shows_signature_and_twins_and_says_what_it_is(tmp_path):
    picture, output = tmp_path / "a.svg", tmp_path / "a.json"
    arguments = ["--device", "cpu", "--quiet", "--picture", str(picture), "--output", str(output)]
    assert cli.main([*NOISE, *arguments]) == 0
    found = affscore.Signature.load(output)
    assert list(found.companions) == ["twin"]
    text = picture.read_text()
    assert repr(found) in text and "linear twins" in text and "squeezenet1_1" in text


def test_version_names_the_package_and_what_decides_its_numbers(capsys):
    with pytest.raises(SystemExit) as leaving:
        cli.main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"affscore {affscore.__version__}, torch {torch.__version__}\n"


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as where it is not installed
    for name in ("affscore.plots", "affscore.suite.figures", "affscore.suite.report"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    text = refused(["report", str(tmp_path), "--out", str(tmp_path / "out")], capsys)
    assert "matplotlib is needed here" in text and 'pip install "affscore[pretrained] @ git+https://' in text


def test_skipped_images_are_reported_and_stored(images, tmp_path, capsys):
    (images / "4.png").write_bytes(b"broken")
    path = tmp_path / "a.json"
    arguments = [*NET, "--dataset", str(images), "--batch-size", "10", "--quiet", "--output", str(path)]
    assert cli.main(arguments) == 0
    out, err = capsys.readouterr()
    assert "Skipped: 4.png" in out
    assert "affscore: warning: batch 0: 1 of 10 images cannot be read" in err
    result = affscore.Signature.load(path)
    assert [entry["file"] for entry in result.provenance["data"]["skipped"]] == ["4.png"]
    assert result.batch_sizes == [9]


def test_the_installed_command_starts():
    command = os.path.join(os.path.dirname(sys.executable), "affscore")
    run = subprocess.run([command, "signature", "resnet0"], capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == ""
    one_sentence(run.stderr)


@each(("arguments", "parts"), [
    ([], ["command"]),
    (["signatur", "resnet18"], ["signatur"]),
    (["signature"], ["model"]),
    ([*NET, "--pool", "max"], ["--pool", "spatial", "trailing"]),
    ([*NET, "--batch-size", "many"], ["--batch-size", "many"]),
    (["signature", "resnet_18"], ["resnet_18", "resnet18"]),
    (["signature", "resnet18", "--weights", "BEST"], ["BEST", "IMAGENET1K_V1"]),
    (["signature", "resnet18", "--weights", "no/file.pth"], ["no/file.pth"]),
    ([*NET, "--dataset", "photos"], ["photos", "photographs"]),
    ([*NET, "--dataset", "imagenet", "--root", "no/such/root"], ["no/such/root", "image-net.org"]),
    ([*NOISE, "--batch-size", "1"], ["batch_size", "1"]),
    ([*NOISE, "--batches", "0"], ["batches", "0"]),
    ([*NOISE, "--seed", "-1"], ["seed", "-1"]),
    ([*NOISE, "--micro-batch", "0"], ["micro_batch", "0"]),
    ([*NOISE, "--device", "abacus"], ["device", "abacus"]),
    ([*NOISE, "--output", "no/such/folder/a.json"], ["output", "no/such/folder"]),
    ([*NOISE, "--picture", "no/such/folder/a.png"], ["picture", "no/such/folder"]),
    ([*NOISE, "--picture", "a.gifpng"], ["picture", "a.gifpng", ".png", ".svg"]),
    ([*NOISE, "--output", "."], ["output", "is a folder"]),
    ([*NOISE, "--output", ""], ["output", "''"]),
    ([*NET, "--dataset", ""], ["dataset", "''"]),
    ([*NET, "--dataset", "imagenet", "--root", ""], ["root", "''"]),
    *(([*NET, f"--{name}", "~nouser/x"], [name, "~nouser/x"]) for name in ("dataset", "weights", "output")),
    ([*NET, "--dataset", "imagenet", "--root", "~nouser/x"], ["root", "~nouser/x"]),
    ([*NET, "--dataset", "imagenet", "--root", __file__], ["root", "is a file"]),
    ([*NOISE, "--seed", str(2**64)], ["seed", str(2**64)]),
    ([*NOISE, "--workers", "1000000"], ["workers", "1000000"]),
    ([*NOISE, "--workers", "-1"], ["workers", "-1"]),
])  # fmt: skip
def test_expected_errors_are_one_sentence(capsys, arguments, parts):
    text = refused([*arguments, "--quiet"] if arguments[1:] else arguments, capsys)
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
    monkeypatch.setattr(cli, "load_model", work)
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

    monkeypatch.setattr(cli.tempfile, "TemporaryFile", refuse)
    assert "cannot write" in refused([*NOISE, "--output", str(tmp_path / "a.json")], capsys)


def test_result_is_printed_even_where_it_cannot_be_written_in_the_end(monkeypatch, tmp_path, capsys):
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


def test_a_name_that_cannot_be_printed_loses_nothing(monkeypatch, images, tmp_path):
    (images / os.fsdecode(b"\xff.png")).write_bytes(b"broken")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed := io.BytesIO(), encoding="utf-8", write_through=True))
    arguments = ["--dataset", str(images), "--batch-size", "11", "--quiet", "--output", str(tmp_path / "a.json")]
    assert cli.main([*NET, *arguments]) == 0
    assert b"Skipped: \\udcff.png" in printed.getvalue()
    skipped = affscore.Signature.load(tmp_path / "a.json").provenance["data"]["skipped"]
    assert [entry["file"] for entry in skipped] == ["\udcff.png"]


def test_finished_batches_are_kept_when_a_later_one_fails(monkeypatch, tmp_path, capsys):
    real = load_dataset

    def spoiled(*args, **options):
        batches = list(real(*args, **options))
        batches[1][0] = torch.nan

        class Spoiled(list):
            provenance, skipped = {"dataset": "spoiled"}, ()

        return Spoiled(batches)

    monkeypatch.setattr(cli, "load_dataset", spoiled)
    assert cli.main([*NOISE, "--batches", "2", "--quiet", "--output", str(tmp_path / "a.json")]) == 2
    text = one_sentence(capsys.readouterr().err)
    assert "NaN" in text and "a.partial.json" in text
    assert not (tmp_path / "a.json").exists()
    assert len(affscore.Signature.load(tmp_path / "a.partial.json").scores) == 1


@each(("error", "status", "part"), [
    (torch.OutOfMemoryError("CUDA out of memory.\nmore"), 2, "--micro-batch"),
    (KeyboardInterrupt(), 130, "interrupted"),
])  # fmt: skip
def test_out_of_memory_and_interruption(monkeypatch, capsys, error, status, part):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(cli, "signature", fail)
    assert cli.main(NOISE) == status
    err = capsys.readouterr().err
    assert part in err and len(err.splitlines()) == 1


def test_a_bug_is_not_dressed_up_as_an_expected_error(monkeypatch):
    def bug(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "signature", bug)
    with pytest.raises(ZeroDivisionError):
        cli.main(NOISE)


def test_finished_batches_are_kept_when_the_keyboard_interrupts(monkeypatch, tmp_path, capsys):
    def interrupted(model, batches, **options):
        options.pop("progress")
        stop = KeyboardInterrupt()
        stop.finished = affscore.signature(model, [batches[0]], **options)
        raise stop

    monkeypatch.setattr(cli, "signature", interrupted)
    assert cli.main([*NOISE, "--quiet", "--output", str(tmp_path / "a.json")]) == 130
    assert "The batches before it are in" in capsys.readouterr().err
    assert len(affscore.Signature.load(tmp_path / "a.partial.json").scores) == 1


@pytest.mark.gpu
def test_gpu_is_used_and_agrees_with_the_cpu(tmp_path):
    for device in ("cpu", "cuda"):
        assert cli.main([*NOISE, "--device", device, "--quiet", "--output", str(tmp_path / f"{device}.json")]) == 0
    cpu, gpu = (affscore.Signature.load(tmp_path / f"{device}.json") for device in ("cpu", "cuda"))
    np.testing.assert_allclose(cpu.scores, gpu.scores, atol=5e-3)


def test_text_is_measured_by_its_tokens(tmp_path, monkeypatch, capsys):
    """Oracle: the three calls written out, on a small network and six lines, of two batches."""
    monkeypatch.chdir(tmp_path)
    text_folder(tmp_path / "nets" / "tiny")
    (tmp_path / "lines.txt").write_text(SENTENCES)
    options = ["--dataset", "text:lines.txt", "--batch-size", "3", "--device", "cpu", "--quiet", "--micro-batch", "2"]
    assert cli.main(["signature", "hf:nets/tiny", *options, "--pool", "last", "--output", "a.json"]) == 0
    out = capsys.readouterr().out
    assert "Signature of hf:tiny: 3 activation calls, 2 batches" in out
    assert "Data: Batches('lines.txt', 2 of 3 texts)" in out
    net = load_model("hf:nets/tiny")
    batches = load_dataset("text:lines.txt", preprocess=net.preprocess, batch_size=3)
    expected = affscore.signature(net.model, batches, pool="last", micro_batch=2)
    found = affscore.Signature.load("a.json")
    assert found.pool == "last" and [call.masked for call in found.calls] == [True, True, False]
    assert found.provenance["data"]["texts"] == 6 and found.batch_sizes == [3, 3]
    assert np.array_equal(found.scores, expected.scores)
