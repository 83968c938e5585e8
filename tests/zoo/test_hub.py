"""Networks of timm and transformers: built as their libraries build them, no code but theirs, no weights made up."""

import hashlib
import json
import shutil
import sys
from functools import partial

import pytest
import timm
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from small_hub import image_folder, text_folder
from torch import nn

from affscore.zoo.datasets import photographs
from affscore.zoo.hub import HUBS, HuggingFace
from affscore.zoo.models import load_model, weights_fingerprint

SMALL = "test_vit"  # 0.4 million parameters, images of 160 pixels
HUB = "huggingface_hub.snapshot_download"


def same(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


# ------------------------------------------------------------------------------------------------- timm


@pytest.mark.parametrize("name", [SMALL, "test_resnet", "test_convnext", "test_efficientnet_ln"])
def test_timms_own_network_and_preprocessing(name):
    """Oracle: the calls that timm's documentation gives."""
    net = load_model(f"timm:{name}", weights="random", seed=3)
    torch.manual_seed(3)
    model = timm.create_model(name)
    assert same(net.model, model) and not any(part.training for part in net.model.modules())
    config = timm.data.resolve_model_data_config(model)
    image = photographs()["chelsea"]
    assert torch.equal(net.preprocess(image), timm.data.create_transform(**config, is_training=False)(image))
    assert net.preprocess(image).shape == config["input_size"] == (3, net.image_size, net.image_size)
    assert net.name == f"timm:{name}" and net.provenance["code"] == f"timm {timm.__version__}"


@pytest.fixture(params=[SMALL])
def served(tmp_path, monkeypatch, request):
    """What the hub would give: a folder with the weights of a network of timm, and what it was asked for."""
    torch.manual_seed(7)
    model, asked = timm.create_model(request.param), []
    path = tmp_path / "model.safetensors"
    save_file(model.state_dict(), path)

    def snapshot(repository, allow_patterns):
        asked.append((repository, tuple(allow_patterns)))
        return str(tmp_path)

    monkeypatch.setattr(HUB, snapshot)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(path) if asked else None)
    return model, path, asked


@pytest.mark.parametrize("name", [SMALL, f"{SMALL}.r160_in1k"])
def test_timms_weights_come_from_the_hub(served, name):
    model, path, asked = served
    fingerprint = weights_fingerprint(f"timm:{name}")
    assert "sha256" not in fingerprint and not asked
    net = load_model(f"timm:{name}")
    assert same(net.model, model)
    assert asked == [("timm/test_vit.r160_in1k", ("model*.safetensors",))]
    assert net.weights == "pretrained, timm/test_vit.r160_in1k"
    assert net.provenance["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert net.provenance["source"].endswith("timm/test_vit.r160_in1k") and net.provenance["licence"] == "apache-2.0"
    assert weights_fingerprint(f"timm:{name}") | fingerprint == weights_fingerprint(f"timm:{name}")


MANY = "vit_tiny_patch16_224.augreg_in21k"  # with 21,843 classes


@pytest.mark.parametrize("served", [MANY], indirect=True)
def test_weights_may_have_a_head_of_their_own(served):
    for net in (load_model(f"timm:{MANY}"), load_model("timm:vit_tiny_patch16_224", weights=MANY.partition(".")[2])):
        assert same(net.model, served[0]) and net.model.num_classes == 21843
    assert load_model(f"timm:{MANY}", weights="random").model.num_classes == 21843
    assert load_model("timm:vit_tiny_patch16_224", weights="random").model.num_classes == 1000


@pytest.mark.parametrize(("name", "weights", "words"), [
    ("timm:test_vitt", None, "timm has no model 'test_vitt'. Did you mean test_vit"),
    (f"timm:{SMALL}.mine", None, "test_vit has no weights 'mine'; timm has r160_in1k"),
    (f"timm:{SMALL}.mine", "random", "test_vit has no weights 'mine'; timm has r160_in1k"),
    (f"timm:{SMALL}", "mine", "timm:test_vit has no weights 'mine'; it has r160_in1k, 'random', or the path"),
    ("timm:gcvit_base", None, "only at https://github.com/.*not as safetensors"),
    ("timm:", None, "there is no model 'timm:'"),
    ("thym:test_vit", None, "there is no model 'thym:test_vit'"),
])  # fmt: skip
def test_unknown_names_and_weights_are_sentences(name, weights, words):
    with pytest.raises(ValueError, match=words):
        load_model(name, weights=weights)


@pytest.mark.parametrize("name", [f"timm:{SMALL}", "hf:FOLDER"])
def test_a_state_dict_file(tmp_path, name):
    name = name.replace("FOLDER", str(text_folder(tmp_path / "net")))
    source = load_model(name, weights="random", seed=5)
    torch.save(source.model.state_dict(), tmp_path / "w.pth")
    assert same(load_model(name, weights=tmp_path / "w.pth").model, source.model)
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"from w\.pth does not fit (timm|hf):"):
        load_model(name, weights=tmp_path / "w.pth")


# ----------------------------------------------------------------------------------------- transformers


@pytest.mark.parametrize("kind", ["BertModel", "GPT2Model", "BertForMaskedLM"])
def test_a_folder_of_a_network_of_text(tmp_path, kind):
    """Oracle: the network that was stored. Heads are not part of it, and a pooler that is not stored is not made up."""
    folder = text_folder(tmp_path / kind / "tiny", kind, seed=4)
    net = load_model(f"hf:{folder}")
    stored = getattr(transformers, kind).from_pretrained(folder).base_model
    assert same(net.model, stored)
    assert (getattr(net.model, "pooler", None) is None) == (kind != "BertModel")
    assert net.name == "hf:tiny" and net.weights == "from tiny" and net.image_size is None
    assert net.provenance["sha256"] == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert str(tmp_path) not in json.dumps(net.provenance)
    batch = net.preprocess(["the cat sat", "a dog ran on"])
    with torch.no_grad():
        assert torch.equal(net.model(**batch).last_hidden_state, stored.eval()(**batch).last_hidden_state)


@pytest.mark.parametrize("kind", ["ViTModel", "ViTForImageClassification"])
def test_a_folder_of_a_network_of_images(tmp_path, kind):
    folder = image_folder(tmp_path / kind, kind, seed=4)
    net = load_model(f"hf:{folder}")
    assert same(net.model, getattr(transformers, kind).from_pretrained(folder).base_model)
    image = photographs()["chelsea"]
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    assert torch.equal(net.preprocess(image), processor(image, return_tensors="pt")["pixel_values"][0])
    assert net.preprocess(Image.new("RGB", (30, 50))).shape == (3, 16, 16) and net.image_size == 16
    assert net.preprocess(image).dtype == torch.float32


def test_random_weights_are_transformers_own(tmp_path):
    """Random weights are those that transformers draws from the seed, and the caller's generator is unchanged."""
    folder, seed = text_folder(tmp_path / "tiny"), 3
    (folder / "model.safetensors").unlink()  # not needed
    before = torch.get_rng_state()
    net = load_model(f"hf:{folder}", weights="random", seed=seed)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(seed)
    config = transformers.AutoConfig.from_pretrained(folder)
    assert same(net.model, transformers.AutoModel.from_config(config)) and net.model.pooler is not None
    assert net.provenance["seed"] == seed and "random" in net.weights


def test_sharded_weights_of_any_precision_become_float32(tmp_path):
    """Weights of any precision, in several files, are loaded as float32 and fingerprinted file by file."""
    folder = text_folder(tmp_path / "tiny")
    stored = transformers.AutoModel.from_pretrained(folder).to(torch.bfloat16)
    (folder / "model.safetensors").unlink()
    stored.save_pretrained(folder, max_shard_size="20KB")
    files = sorted(folder.glob("model-*.safetensors"))
    assert len(files) > 1
    net = load_model(f"hf:{folder}")
    assert {value.dtype for value in net.model.parameters()} == {torch.float32} and same(net.model, stored.float())
    assert net.provenance["sha256"] == ",".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)


def test_a_repository_of_the_hub(tmp_path, monkeypatch):
    folder, asked = text_folder(tmp_path / "snapshot"), []

    def snapshot(repository, allow_patterns):
        asked.extend(allow_patterns)
        return str(folder)

    monkeypatch.setattr(HUB, snapshot)
    net = load_model("hf:someone/tiny")
    assert same(net.model, load_model(f"hf:{folder}").model)
    assert net.name == "hf:someone/tiny" and net.weights == "pretrained, someone/tiny"
    assert net.provenance["source"] == "https://huggingface.co/someone/tiny" and net.provenance["sha256"]
    assert not any(pattern.endswith((".bin", ".pt", ".pth", ".py", "*")) for pattern in asked)


@pytest.mark.parametrize("name", [f"timm:{SMALL}", "hf:someone/tiny"])
def test_without_a_network_the_error_is_a_sentence(monkeypatch, name):
    def fail(*_, **__):
        raise RuntimeError("no network\nat all")

    monkeypatch.setattr(HUB, fail)
    with pytest.raises(OSError, match=r"cannot be downloaded from huggingface\.co \(no network\)\.$"):
        load_model(name)


def write(name, content):
    """A function that replaces a file of a folder; None removes it."""
    return lambda folder: (folder / name).unlink() if content is None else (folder / name).write_text(content)


def as_pickle(folder):
    torch.save(transformers.AutoModel.from_pretrained(folder).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def without_a_bias(folder):
    state = transformers.AutoModel.from_pretrained(folder).state_dict()
    del state["encoder.layer.1.output.dense.bias"]
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def configured(folder, **entries):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | entries))


def without_tokenizer(folder):
    for file in folder.glob("tokenizer*.json"):
        file.unlink()


def own_code(folder):
    configured(folder, model_type="mine", auto_map={"AutoConfig": "mine.Config", "AutoModel": "mine.Model"})
    (folder / "mine.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")


@pytest.mark.parametrize(("spoil", "error", "words"), [
    (write("config.json", None), ValueError, "hf:tiny is not a network that transformers can load: AutoConfig"),
    (write("config.json", "{"), ValueError, "AutoConfig cannot read it"),
    (own_code, ValueError, "AutoConfig cannot read it"),
    (without_tokenizer, ValueError, "hf:tiny has no tokenizer;"),
    (write("tokenizer.json", "{"), ValueError, "AutoTokenizer cannot read it"),
    (as_pickle, FileNotFoundError, r"no model\*\.safetensors in .*tiny; other formats may hold code"),
    (write("model.safetensors", "no weights"), ValueError, "AutoModel cannot read it"),
    (without_a_bias, ValueError,
     r"hf:tiny lacks 1 tensors, first encoder\.layer\.1\.output\.dense\.bias"),
    (partial(configured, num_hidden_layers=1), ValueError,
     r"hf:tiny has 16 tensors for which its config\.json has no layer, first encoder\.layer\.1\."),
    (partial(configured, _attn_implementation="somebody/attention"), ValueError,
     "asks for the kernels 'somebody/attention', which are code from a repository"),
])  # fmt: skip
def test_damaged_folders_and_foreign_code_are_refused(tmp_path, spoil, error, words):
    """A damaged folder or one with code of its own is refused in one sentence, and no code is run."""
    shutil.rmtree(tmp_path / "tiny", ignore_errors=True)
    folder = text_folder(tmp_path / "tiny")
    spoil(folder)
    with pytest.raises(error, match=words) as caught:
        load_model(f"hf:{folder}")
    assert "\n" not in str(caught.value)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(("config", "words"), [
    (transformers.T5Config(), "takes two texts as its input, not images or one text"),
    (transformers.WavLMConfig(), "takes input_values as its input, not images or one text"),
])  # fmt: skip
def test_networks_that_take_something_else_are_refused(tmp_path, config, words):
    config.save_pretrained(tmp_path / "tiny")
    with pytest.raises(ValueError, match=words):
        load_model(f"hf:{tmp_path / 'tiny'}", weights="random")


def test_transformers_speaks_as_before_afterwards(tmp_path, capfd):
    folder, log = text_folder(tmp_path / "tiny", "BertForMaskedLM"), transformers.utils.logging
    capfd.readouterr()
    level = log.get_verbosity()
    log.set_verbosity_warning()
    log.enable_progress_bar()
    try:
        load_model(f"hf:{folder}")
        assert capfd.readouterr() == ("", "")  # also of the head of a task that is left over
        assert (log.get_verbosity(), log.is_progress_bar_enabled()) == (log.WARNING, True)
    finally:
        log.set_verbosity(level)
    assert HUBS["hf"] is HuggingFace


@pytest.mark.parametrize(("name", "module", "extra"), [("timm:x", "timm", "timm"), ("hf:x", "transformers", "text")])
def test_a_missing_extra_is_a_sentence(monkeypatch, name, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{module} is needed here.*pip install "affscore\[{extra}\] @ git\+https'):
        load_model(name)
