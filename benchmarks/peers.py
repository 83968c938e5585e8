"""Compares signatures of networks from other projects with an independent recorder of the operators that ran in them.

    python benchmarks/peers.py --install peers                     # once: install their packages into a folder
    python benchmarks/peers.py --packages peers                    # all suites, about 350 networks, half an hour
    python benchmarks/peers.py --packages peers --suites timm transformers
    python benchmarks/peers.py --table                             # only print the measurements so far

Each network has random weights and a few small samples, and runs three times: alone, under the recorder, and under
``affscore.signature``. The recorder is a separate dispatch mode, which counts the activation operators of PyTorch by
the innermost module. The file of ``--out`` keeps one line for each measured network, and a run that was stopped
continues there. A network that cannot be built or fed, that takes too long or that is refused is a result as well.

The script prints a row for each suite. It has the number of networks tried and the number that ran; the operators that
the recorder saw; the calls scored and excluded; the networks whose output or state (weights, buffers, training modes,
numbers of hooks, random numbers) differs from that without the library; and the operators that no call covers
(``missing``), or that only a call of a module that does not contain them covers (``unclear``). An activation that
consists of several operators is one call, which covers all of them. Below the table are the networks with such
differences, the refusals, the failures without the library, and the functions of scored calls that are not operators of
the registry, each with an example.

timm, torchvision and transformers are requirements of this project. captum, diffusers, EfficientNet-PyTorch,
segmentation-models-pytorch and vit-pytorch come from the package index. The source distributions of torchlens,
torchinfo and fvcore do not contain their test networks, so these packages are left out.
"""

import argparse
import copy
import importlib
import inspect
import json
import os
import pkgutil
import re
import resource
import signal
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import affscore

#: The number of bytes that a network may take.
MEMORY = 12 * 2**30
PACKAGES = ["captum", "diffusers", "efficientnet-pytorch", "segmentation-models-pytorch", "vit-pytorch", "einops"]
#: The operators of PyTorch that count, without the suffix of their in-place and low-level variants.
OPERATORS = [
    "relu", "relu6", "hardtanh", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "hardswish",
    "hardsigmoid", "sigmoid", "tanh", "softplus", "log_sigmoid", "prelu", "rrelu", "threshold", "hardshrink",
    "softshrink",
]  # fmt: skip
VARIANTS = {"_prelu_kernel": "prelu", "log_sigmoid_forward": "log_sigmoid", "rrelu_with_noise": "rrelu"}
#: The operators of which networks compose a function; other functions cover the operator with the same name.
WRITTEN_IN = {
    "relu6": ["relu6", "hardtanh"], "selu": ["selu", "elu"], "celu": ["celu", "elu"], "logsigmoid": ["log_sigmoid"],
    "silu": ["silu", "sigmoid", "tanh"], "quick_gelu": ["sigmoid"], "gelu": ["gelu", "tanh"], "relu_squared": ["relu"],
    "mish": ["mish", "tanh", "softplus"], "hardswish": ["hardswish", "hardsigmoid", "hardtanh", "relu6"],
    "hardsigmoid": ["hardsigmoid", "hardtanh", "relu6"], "tanhshrink": ["tanh"], "leaky_relu": ["leaky_relu", "relu"],
}  # fmt: skip

Network = tuple[nn.Module, Any]  # a network and its input: a tensor, or tensors by the names of arguments
Suite = Iterator[tuple[str, Callable[[], Network]]]


def image(size: int = 64, n: int = 8) -> Tensor:
    return torch.randn(n, 3, size, size)


# ---------------------------------------------------------------------------------------------- the suites


def timm_suite() -> Suite:
    """The network of each module whose name suggests the smallest size."""
    import timm

    small = [
        "atto", "femto", "pico", "test", "nano", "zepto", "xxs", "xxt", "050", "tiny", "_t0", "_n0", "_b0", "lite0",
        "_s0", "xs", "18", "_s", "small", "mini",
    ]  # fmt: skip
    for module in timm.list_modules():
        names = timm.list_models(module=module)

        def build(names: list[str] = names) -> Network:
            ranks = {name: next((i for i, part in enumerate(small) if part in name), len(small)) for name in names}
            name = min(names, key=lambda each: (ranks[each], len(each), each))
            model: Any = timm.create_model(name, pretrained=False)
            size = model.pretrained_cfg["input_size"][-1]
            return model, image(size if model.pretrained_cfg.get("fixed_input_size") else min(size, 128), 6)

        if names:
            yield module, build


def torchvision_suite() -> Suite:
    import torchvision

    names = [
        "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet",
        "inception_v3", "maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "regnet_x_400mf",
        "regnet_y_400mf", "resnet18", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0", "swin_t", "swin_v2_t",
        "vgg11_bn", "vit_b_16", "wide_resnet50_2", "lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large",
        "fcn_resnet50", "r3d_18", "mc3_18", "s3d", "mvit_v1_b", "swin3d_t", "ssdlite320_mobilenet_v3_large",
        "fasterrcnn_mobilenet_v3_large_320_fpn", "retinanet_resnet50_fpn",
    ]  # fmt: skip
    sizes = {"inception_v3": 128, "maxvit_t": 224, "vit_b_16": 224, "mvit_v1_b": 224, "s3d": 128}
    for name in names:

        def build(name: str = name) -> Network:
            builder = torchvision.models.get_model_builder(name)
            weights = [each for each in inspect.signature(builder).parameters if each.startswith("weights")]
            x = image(sizes.get(name, 64), 6)
            video = name in ("r3d_18", "mc3_18", "s3d", "mvit_v1_b", "swin3d_t")
            model = builder(**dict.fromkeys(weights))
            return model, x[:4, :, None].repeat(1, 1, 16, 1, 1) if video else x

        yield name, build


def transformers_suite() -> Suite:
    """A tiny network of each type. A generic setting is used if the configuration of the type has it."""
    import transformers

    text = [
        "albert", "bert", "bloom", "codegen", "convbert", "ctrl", "dbrx", "deberta", "deberta-v2", "deepseek_v2",
        "deepseek_v3", "distilbert", "electra", "ernie4_5_moe", "esm", "falcon", "fnet", "funnel", "gemma", "gemma2",
        "gemma3_text", "glm4_moe", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "gptj", "granitemoe",
        "ibert", "jetmoe", "llama", "llama4_text", "longformer", "mamba", "mamba2", "mistral", "mixtral",
        "mobilebert", "modernbert", "mpt", "nystromformer", "olmo2", "olmoe", "openai-gpt", "opt", "persimmon", "phi",
        "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3_moe", "recurrent_gemma", "rembert", "roberta", "roformer",
        "rwkv", "squeezebert", "stablelm", "starcoder2", "xglm", "xlm", "xlnet", "xlstm", "zamba2",
    ]  # fmt: skip
    seq2seq = [
        "bart",
        "blenderbot",
        "fsmt",
        "led",
        "longt5",
        "m2m_100",
        "marian",
        "mt5",
        "nllb-moe",
        "pegasus",
        "switch_transformers",
        "t5",
        "umt5",
    ]  # fmt: skip
    vision = [
        "beit", "bit", "convnextv2", "cvt", "deit", "dinov2", "dinov3_vit", "efficientnet", "focalnet", "hiera",
        "ijepa", "levit", "mobilenet_v1", "mobilenet_v2", "mobilevit", "mobilevitv2", "poolformer", "pvt", "pvt_v2",
        "regnet", "resnet", "segformer", "siglip_vision_model", "swiftformer", "swin", "swinv2", "clip_vision_model",
        "vit", "vit_mae", "vit_msn", "yolos",
    ]  # fmt: skip
    audio = ["data2vec-audio", "hubert", "sew", "unispeech", "wav2vec2", "wavlm"]
    tiny: dict[str, Any] = dict.fromkeys(
        ["num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"], 2
    )
    tiny |= dict.fromkeys(["num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"], 4)
    tiny |= dict.fromkeys(["num_key_value_heads", "decoder_attention_heads", "num_local_experts", "num_experts"], 4)
    tiny |= dict.fromkeys(["n_routed_experts", "num_experts_per_tok", "moe_topk", "moe_k", "n_group", "topk_group"], 2)
    tiny |= dict.fromkeys(
        ["hidden_size", "d_model", "n_embd", "dim", "embedding_size", "word_embed_proj_dim", "emb_dim"], 64
    )
    tiny |= dict.fromkeys(["intermediate_size", "ffn_dim", "d_ff", "decoder_ffn_dim", "encoder_ffn_dim", "n_inner"], 96)
    tiny |= dict.fromkeys(["moe_intermediate_size", "shared_expert_intermediate_size", "hidden_dim", "d_inner"], 96)
    tiny |= {"vocab_size": 99, "head_dim": 16, "rotary_dim": 8, "d_kv": 16, "attn_layers": ["global", "local"]}
    tiny |= {"attention_types": [[["global", "local"], 1]], "pad_token_id": 0, "image_size": 64}
    for kind in [*text, *seq2seq, *vision, *audio]:

        def build(kind: str = kind) -> Network:
            known = type(transformers.AutoConfig.for_model(kind))
            default = known()
            settings: dict[str, Any] = {
                key: value for key, value in tiny.items()
                if hasattr(default, key) and (isinstance(getattr(default, key), type(value)) or kind not in vision)
            }  # fmt: skip
            model = transformers.AutoModel.from_config(known(**settings))
            tokens = torch.randint(3, 90, (8, 12))
            if kind in vision:
                size = settings.get("image_size", 64)
                return model, {"pixel_values": image(size)}
            if kind in audio:
                return model, {"input_values": torch.randn(6, 4000)}
            return model, {"input_ids": tokens} | ({"decoder_input_ids": tokens} if kind in seq2seq else {})

        yield kind, build


def captum_suite() -> Suite:
    """Every class of captum's helpers that needs no argument, with the first input that the class accepts."""
    models = importlib.import_module("captum.testing.helpers.basic_models")
    shapes = [(8, 3), (8, 2), (8, 1), (8, 10), (8, 4), (8, 1, 10, 10), (8, 1, 4, 4), (8, 10, 3), (8, 3, 16, 16)]
    for name, kind in inspect.getmembers(models, inspect.isclass):
        if not issubclass(kind, nn.Module) or kind.__module__ != models.__name__:
            continue

        def build(kind: Callable[[], nn.Module] = kind) -> Network:
            model = kind().eval()
            needed = [
                each.name for each in inspect.signature(model.forward).parameters.values()
                if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
            ]  # fmt: skip
            for whole in (False, True):
                for shape in shapes:
                    given = {each: torch.randint(5, shape) if whole else torch.randn(shape) for each in needed}
                    with torch.no_grad():
                        try:
                            model(**given)
                        except Exception:
                            continue
                    return kind(), given
            raise ValueError("the network accepts none of the inputs")

        yield name, build


def vit_pytorch_suite() -> Suite:
    """For each module the class with the module's name, with small settings for its arguments."""
    package = importlib.import_module("vit_pytorch")
    small: dict[str, Any] = {
        "image_size": 64, "patch_size": 16, "num_classes": 10, "dim": 64, "depth": 2, "heads": 4, "mlp_dim": 128,
        "mlp_mult": 2, "channels": 3, "seq_len": 64, "frames": 8, "frame_patch_size": 2, "image_patch_size": 16,
        "max_tokens_per_depth": (16, 16), "num_register_tokens": 2, "cls_depth": 1, "dim_head": 16, "window_size": 4,
        "num_memory_tokens": 2, "ndim": 2, "input_shape": (64, 64), "dims": (32, 64, 64), "k": 4, "s1_emb_dim": 32,
    }  # fmt: skip
    for module in pkgutil.iter_modules(package.__path__):

        def build(name: str = module.name) -> Network:
            inside = importlib.import_module(f"vit_pytorch.{name}")
            plain = name.replace("_", "")
            classes = [each for key, each in inspect.getmembers(inside, inspect.isclass) if issubclass(each, nn.Module)]
            named = [each for each in classes if each.__name__.lower() in (plain, "vit", "simplevit", plain + "net")]
            kind = max(named, key=lambda each: each.__name__.lower() == plain)
            parameters = inspect.signature(kind).parameters
            x = image()
            if "3d" in name or "frames" in parameters:
                x = torch.randn(6, 3, 8, 64, 64)
            elif "1d" in name or "seq_len" in parameters:
                x = torch.randn(8, 3, 64)
            return kind(**{key: value for key, value in small.items() if key in parameters}), x

        yield module.name, build


def other_suite() -> Suite:
    """Networks of segmentation-models-pytorch, EfficientNet-PyTorch and diffusers."""
    for name in [
        "unet", "unetplusplus", "manet", "linknet", "fpn", "pspnet", "deeplabv3", "deeplabv3plus", "pan", "upernet",
        "segformer", "dpt",
    ]:  # fmt: skip

        def segment(name: str = name) -> Network:
            smp = importlib.import_module("segmentation_models_pytorch")
            encoder = "tu-vit_tiny_patch16_224" if name == "dpt" else "resnet18"
            return smp.create_model(name, encoder_name=encoder, encoder_weights=None), image(
                224 if name == "dpt" else 64
            )

        yield f"smp {name}", segment

    def efficientnet() -> Network:
        return importlib.import_module("efficientnet_pytorch").EfficientNet.from_name("efficientnet-b0"), image()

    yield "efficientnet_pytorch b0", efficientnet
    step = {"timestep": torch.arange(8)}
    latents = {"sample": torch.randn(8, 4, 16, 16), **step}
    words = {"encoder_hidden_states": torch.randn(8, 5, 32)}
    blocks: dict[str, Any] = {"block_out_channels": (32, 64), "layers_per_block": 1, "norm_num_groups": 8}
    types: dict[str, Any] = {
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
    }
    unet = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    cross = {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "cross_attention_dim": 32}
    cross |= {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "attention_head_dim": 8}
    heads: dict[str, Any] = {"num_attention_heads": 2, "attention_head_dim": 16, "num_layers": 2, "sample_size": 16}
    settings: dict[str, tuple[dict[str, Any], dict[str, Tensor]]] = {
        "UNet2DModel": ({"in_channels": 4, "out_channels": 4, **blocks, **unet}, latents),
        "UNet2DConditionModel": ({**blocks, **cross}, latents | words),
        "AutoencoderKL": ({**blocks, **types}, {"sample": image(32)}),
        "VQModel": ({**blocks, **types, "num_vq_embeddings": 16}, {"sample": image(32)}),
        "DiTTransformer2DModel": (heads, {"hidden_states": latents["sample"], **step, "class_labels": torch.arange(8)}),
        "PixArtTransformer2DModel": (
            {**heads, "cross_attention_dim": 32, "caption_channels": 32, "out_channels": 8},
            {"hidden_states": latents["sample"], **step, **words},
        ),
    }
    for name, (options, inputs) in settings.items():

        def build(name: str = name, options: Any = options, inputs: Any = inputs) -> Network:
            return getattr(importlib.import_module("diffusers"), name)(**options), inputs

        yield f"diffusers {name}", build


SUITES: dict[str, Callable[[], Suite]] = {
    "timm": timm_suite, "torchvision": torchvision_suite, "transformers": transformers_suite, "captum": captum_suite,
    "vit-pytorch": vit_pytorch_suite, "others": other_suite,
}  # fmt: skip


# -------------------------------------------------------------------------------------------- the measurement


@contextmanager
def watched(model: nn.Module, outputs: list[Any]) -> Iterator[list[str]]:
    """Yield the path to the module that is running; ``outputs`` gets the outputs of the network."""
    names: dict[int, str] = {}
    for name, module in model.named_modules():
        names.setdefault(id(module), name)
    path = [""]

    def enter(module: nn.Module, _: Any) -> None:
        path.append(names.get(id(module), path[-1]))

    def leave(module: nn.Module, _: Any, out: Any) -> None:
        path.pop()
        if module is model:
            outputs.append([x.detach().clone() for x in tree_leaves(out) if isinstance(x, Tensor)])

    with register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True):
        yield path


class Recorder(TorchDispatchMode):
    """Counts the activation operators by the path of the module that runs."""

    def __init__(self, path: list[str]) -> None:
        super().__init__()
        self.path, self.seen = path, Counter[tuple[str, str]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        name = VARIANTS.get(name.rstrip("_"), name.rstrip("_"))
        if func.namespace == "aten" and name in OPERATORS:
            self.seen[self.path[-1], name] += 1
        return func(*args, **(kwargs or {}))


def equal(one: Any, other: Any) -> bool:
    """Whether two lists of tensors are equal, NaN included."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
        for a, b in zip(one, other, strict=True)
    )


def state(model: nn.Module) -> tuple[list[Any], list[Tensor]]:
    hooks = [[len(m._forward_hooks), len(m._forward_pre_hooks), "forward" in vars(m)] for m in model.modules()]
    return hooks, [*(x.detach().clone() for x in (*model.parameters(), *model.buffers())), torch.get_rng_state()]


def run(model: nn.Module, inputs: Any) -> None:
    torch.manual_seed(1)
    with torch.no_grad():
        if isinstance(inputs, dict):
            model(**{key: value.clone() for key, value in inputs.items()})
        else:
            model(inputs.clone())


def measure(build: Callable[[], Network]) -> dict[str, Any]:
    """The result of one network."""
    found: dict[str, Any] = {}
    try:
        torch.manual_seed(0)
        model, inputs = build()
        plain = copy.deepcopy(model).eval()
        outputs: list[Any] = []
        with watched(plain, outputs):
            run(plain, inputs)
        after = state(plain)
        with watched(plain, []) as path, Recorder(path) as recorder:
            run(plain, inputs)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    found["seen"] = [[*key, count] for key, count in recorder.seen.items()]
    flags = [module.training for module in model.modules()]
    torch.manual_seed(1)
    try:
        with watched(model, outputs):
            result = affscore.signature(model, [inputs])
    except Exception as error:
        kind = "failed" if isinstance(error.__cause__, TimeoutError) else "refused"
        return found | {kind: f"{type(error).__name__}: {str(error)[:400]}"}
    hooks, tensors = state(model)
    found["output_changed"] = not equal(*outputs)
    found["state_changed"] = [
        what
        for what, same in {
            "tensors": equal(tensors[:-1], after[1][:-1]),
            "random numbers": equal(tensors[-1:], after[1][-1:]),
            "hooks": hooks == after[0],
            "training modes": flags == [module.training for module in model.modules()],
        }.items()
        if not same
    ]  # fmt: skip
    scores = [round(float(score), 4) for score in result.scores[0]]
    shapes = [list(call.shape) for call in result.calls]
    found["scored"] = [[call.name, s, shape] for call, s, shape in zip(result.calls, scores, shapes, strict=True)]
    found["excluded"] = [[each.name, type(each).__name__, each.reason] for each in result.excluded]
    return found


# ----------------------------------------------------------------------------------------------- the table


def parts_of(name: str) -> tuple[str, str, list[str]]:
    """The module and the function of a call, and the names in the function."""
    module, function = re.sub(r"\[\d+\]$", "", name).rsplit(":", 1)
    inside = re.fullmatch(r"elementwise\[(.*)\]", function)
    return module, function, inside[1].split(", ") if inside else [function]


def uncovered(row: dict[str, Any]) -> dict[str, list[str]]:
    """The operators from the recorder that no call covers, or that only a call of a module without them covers."""
    room: list[tuple[str, Counter[str]]] = []
    for name, *_ in [*row["scored"], *row["excluded"]]:
        module, _, inside = parts_of(name)
        room.append((module, Counter(operator for each in inside for operator in WRITTEN_IN.get(each, [each]))))
    waiting = [(module, operator) for module, operator, count in row["seen"] for _ in range(count)]
    tests: list[Callable[[str, str], bool]] = [
        lambda module, caller: module == caller,
        lambda module, caller: not caller or module.startswith(caller + "."),
        lambda module, caller: True,
    ]  # fmt: skip
    left = [waiting]
    for fits in tests:
        still = []
        for module, operator in left[-1]:
            place = next((each for caller, each in room if each[operator] and fits(module, caller)), None)
            if place is None:
                still.append((module, operator))
            else:
                place[operator] -= 1
        left.append(still)
    missing = [f"{module}:{operator}" for module, operator in left[3]]
    return {
        "missing": missing,
        "unclear": [f"{module}:{operator}" for module, operator in left[2] if (module, operator) not in left[3]],
    }


def print_table(rows: list[dict[str, Any]]) -> None:
    columns = [
        "tried", "ran", "seen", "scored", "excluded", "output", "state", "missing", "unclear", "refused", "failed",
    ]  # fmt: skip
    print(f"{'':<15}" + "".join(f"{column:>9}" for column in columns))
    notes: dict[str, list[str]] = defaultdict(list)
    refusals: dict[str, list[str]] = defaultdict(list)
    failures: dict[str, list[str]] = defaultdict(list)
    functions: dict[str, list[str]] = defaultdict(list)
    total = Counter[str]()
    for suite in dict.fromkeys(row["suite"] for row in rows):
        count = Counter[str]()
        for row in (each for each in rows if each["suite"] == suite):
            where = f"{suite} {row['name']}"
            count["tried"] += 1
            for key, lists in (("refused", refusals), ("failed", failures)):
                if key in row:
                    count[key] += 1
                    lists[re.sub(r"\d+", "0", row[key])[:200]].append(where)
            if "scored" not in row:
                continue
            left = uncovered(row)
            count["ran"] += 1
            count["seen"] += sum(each[2] for each in row["seen"])
            count.update({key: len(row[key]) for key in ("scored", "excluded")})
            count.update({"output": row["output_changed"], "state": bool(row["state_changed"])})
            count.update({key: len(value) for key, value in left.items()})
            marks = {"output": ["changed"] * row["output_changed"], "state": row["state_changed"], **left}
            for key, value in marks.items():
                if value:
                    notes[key].append(f"{where}: {', '.join(value[:6])}")
            for name, score, shape in row["scored"]:
                function, inside = parts_of(name)[1:]
                if not {part for each in inside for part in WRITTEN_IN.get(each, [each])} & set(OPERATORS):
                    functions[function].append(f"{where}, {name}, {shape}, {score}")
        total.update(count)
        print(f"{suite:<15}" + "".join(f"{count[column]:>9}" for column in columns))
    print(f"{'all':<15}" + "".join(f"{total[column]:>9}" for column in columns))
    for key, lines in notes.items():
        print(f"\n{key}:", *lines, sep="\n  ")
    for title, groups in (("refused", refusals), ("failed without the library", failures)):
        print(f"\n{title}:", *(f"{len(names)} ({names[0]}): {text}" for text, names in groups.items()), sep="\n  ")
    print("\nscored functions outside the registry:")
    for function, places in sorted(functions.items(), key=lambda each: -len(each[1])):
        print(f"  {len(places):5d} {function:<30} {places[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Signatures of networks from other projects.")
    parser.add_argument("--install", metavar="FOLDER", help="only install the packages into this folder")
    parser.add_argument("--packages", metavar="FOLDER", help="the folder into which the packages were installed")
    parser.add_argument("--suites", nargs="+", default=list(SUITES), choices=list(SUITES))
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"))
    parser.add_argument("--seconds", type=int, default=60, help="time limit for each network")
    parser.add_argument("--table", action="store_true", help="only print the measurements in the file")
    options = parser.parse_args()
    if options.install:
        pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", options.install]
        subprocess.check_call([*pip, *PACKAGES])
        return
    if options.packages:
        sys.path.append(options.packages)  # after the packages of this project
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(row["suite"], row["name"]) for row in rows}

    def stop(*_: Any) -> None:
        raise TimeoutError(f"it took more than {options.seconds} s")

    signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # a network that is too large fails alone
    for suite in [] if options.table else options.suites:
        for name, build in SUITES[suite]():
            if (suite, name) in done:
                continue
            signal.alarm(options.seconds)
            try:
                row = {"suite": suite, "name": name, **measure(build)}
            finally:
                signal.alarm(0)
            rows.append(row)
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print_table(rows)


if __name__ == "__main__":
    main()
