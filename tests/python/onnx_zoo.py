"""Networks of torchvision and timm as PyTorch's two exporters write them: gpunn against ONNX Runtime.

python3 tests/python/onnx_zoo.py export FOLDER     writes the files that the folder lacks, a share of them quantised
python3 tests/python/onnx_zoo.py compare FOLDER    prints right, wrong or refused for each file, and the sums

By hand: exporting needs torch, torchvision, timm, onnxscript and onnxruntime; comparing needs onnxruntime and gpunn on
PYTHONPATH. Weights are random. Each file has a process of its own with a time limit, so one that hangs or crashes does
not end the others. ``--only TEXT`` keeps the files whose name contains it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# The rows and columns of images by network. 0 is the size that the network was designed for.
TORCHVISION = {
    "alexnet": 224, "vgg11_bn": 224, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64, "squeezenet1_1": 64,
    "densenet121": 64, "googlenet": 64, "inception_v3": 96, "mobilenet_v2": 64, "mobilenet_v3_small": 64,
    "mobilenet_v3_large": 64, "shufflenet_v2_x0_5": 64, "mnasnet0_5": 64, "efficientnet_b0": 64, "regnet_y_400mf": 64,
    "regnet_x_400mf": 64, "convnext_tiny": 64, "vit_b_32": 64, "swin_t": 64, "swin_v2_t": 64,
    "segmentation.lraspp_mobilenet_v3_large": 64, "segmentation.deeplabv3_mobilenet_v3_large": 64,
}  # fmt: skip
TIMM = {
    "lcnet_050": 64, "tinynet_e": 64, "mobilevit_xxs": 64, "mobilevitv2_050": 64, "edgenext_xx_small": 64,
    "efficientvit_b0": 64, "efficientformer_l1": 0, "levit_128s": 0, "convnextv2_atto": 64, "poolformerv2_s12": 64,
    "pvt_v2_b0": 64, "deit_tiny_patch16_224": 64, "xcit_nano_12_p16_224": 64, "crossvit_tiny_240": 0,
    "visformer_tiny": 64, "repvgg_a0": 64, "rexnet_100": 64, "resnest14d": 64, "hardcorenas_a": 64, "dla46_c": 64,
    "hgnetv2_b0": 64, "repghostnet_050": 64, "ghostnetv2_100": 64, "fasternet_t0": 64, "mobileone_s0": 64,
    "nf_regnet_b0": 64, "resmlp_12_224": 64, "fastvit_t8": 64, "starnet_s1": 64, "mambaout_femto": 64,
    "focalnet_tiny_srf": 64, "gcvit_xxtiny": 0, "eva02_tiny_patch14_224": 56, "twins_svt_small": 0, "mvitv2_tiny": 64,
    "lambda_resnet26t": 64, "pit_ti_224": 64, "cs3darknet_focus_s": 64, "skresnet18": 64,
    "dpn48b": 64, "mobilenetv4_conv_small": 64, "coat_lite_tiny": 64, "convit_tiny": 0, "res2net50_26w_4s": 64,
    "test_byobnet": 0, "test_coatnet": 0, "test_efficientnet_gn": 0, "test_maxvit": 0, "test_nfnet": 0, "test_vit2": 0,
    "test_vit_relpos": 0,
}  # fmt: skip

OPSETS = {"legacy": range(11, 21), "dynamo": range(18, 22)}
QUANTISATIONS = ("qdq", "qoperator", "dynamic")
BATCHES = (1, 3)
TOLERANCE = 1e-4  # of the largest value of an output


@dataclass(frozen=True)
class Config:
    """A file of the zoo. All choices follow from the name of the network, so one more network changes no other file."""

    library: str
    network: str
    size: int
    exporter: str
    opset: int
    free: bool  # the batch

    @property
    def name(self) -> str:
        return f"{self.network}-{self.exporter}-{self.opset}-{'n' if self.free else 1}"


def configs() -> list[Config]:
    """A configuration for each network; each third network has one from the other exporter, too."""
    found = []
    for library, networks in (("torchvision", TORCHVISION), ("timm", TIMM)):
        for network, size in networks.items():
            chance = zlib.crc32(network.encode())
            exporters = ("legacy", "dynamo") if chance & 1 else ("dynamo", "legacy")
            for exporter in exporters[: 2 if chance % 3 == 0 else 1]:
                opsets = OPSETS[exporter]
                opset = opsets[chance // 7 % len(opsets)]
                found.append(Config(library, network, size, exporter, opset, chance // 5 % 3 > 0))
    return found


def build(config: Config) -> tuple[Any, int]:
    """The network, whose parameters all differ from 0 and 1, and the size of its images."""
    import torch

    torch.manual_seed(20261129)
    size = config.size
    if config.library == "timm":
        import timm

        # The legacy exporter has fused attention from opset 14 on only.
        timm.layers.set_fused_attn(config.exporter == "dynamo")
        net = timm.create_model(config.network, pretrained=False)
        if size:
            # Networks with a table of positions must know the size; the others do not take it.
            with contextlib.suppress(TypeError):
                net = timm.create_model(config.network, pretrained=False, img_size=size)
        size = size or net.pretrained_cfg["input_size"][-1]
    else:
        import torchvision

        more: dict[str, Any] = {"googlenet": {"aux_logits": False, "init_weights": False}}.get(config.network, {})
        if config.network == "inception_v3":
            more = {"init_weights": False}
        if config.network.startswith("vit_"):
            more = {"image_size": size}
        if "." in config.network:
            more = {"weights_backbone": None}
        net = torchvision.models.get_model(config.network.split(".")[-1], weights=None, **more)
    net.eval()
    with torch.no_grad():
        for name, buffer in net.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
        for parameter in net.parameters():
            if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                if float(parameter.flatten()[0]) == 0:
                    parameter.normal_(0, 0.1)
                else:
                    parameter.uniform_(0.5, 1.5)
    return net, size


def export(config: Config, file: Path) -> None:
    import torch

    net, size = build(config)
    if "." in config.network:  # segmentation gives a dictionary

        class First(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.inner = net

            def forward(self, x: Any) -> Any:
                return self.inner(x)["out"]

        net = First().eval()
    x = torch.randn(2 if config.free else 1, 3, size, size)
    names: dict[str, Any] = {"input_names": ["x"], "output_names": ["y"], "opset_version": config.opset}
    part = file.with_suffix(".part")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if config.exporter == "legacy":
            axes = {"x": {0: "n"}, "y": {0: "n"}} if config.free else None
            torch.onnx.export(net, (x,), str(part), dynamo=False, dynamic_axes=axes, **names)
        else:
            shapes = ({0: torch.export.Dim("n", min=1, max=64)},) if config.free else None
            torch.onnx.export(
                net, (x,), str(part), dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **names
            )
    part.rename(file)


def quantise(source: Path, file: Path, how: str) -> None:
    from onnxruntime import InferenceSession
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationDataReader

    shape = [size if isinstance(size, int) else 2 for size in InferenceSession(str(source)).get_inputs()[0].shape]

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            rng = np.random.default_rng(1)
            self.left = [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(2)]

        def get_next(self) -> dict[str, Array] | None:
            return self.left.pop() if self.left else None

    chance = zlib.crc32(source.stem.encode()) // 11
    part = file.with_suffix(".part")
    if how == "dynamic":
        quantize_dynamic(source, part)
    else:
        quantize_static(
            source,
            part,
            Reader(),
            quant_format=QuantFormat.QDQ if how == "qdq" else QuantFormat.QOperator,
            per_channel=bool(chance & 1),
            activation_type=QuantType.QInt8 if chance & 2 else QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    part.rename(file)


def quantised(config: Config) -> str | None:
    """How the file is also quantised, if it is."""
    chance = zlib.crc32(config.name.encode())
    return QUANTISATIONS[chance // 3 % 3] if chance % 3 == 0 else None


def export_all(folder: Path, limit: float, only: str) -> int:
    """One process for each file. They are forked, since importing PyTorch takes seconds."""
    import onnxscript  # noqa: F401
    import timm  # noqa: F401
    import torch
    import torchvision  # noqa: F401

    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    fork = multiprocessing.get_context("fork")
    missing = 0
    for config in configs():
        file = folder / f"{config.name}.onnx"
        jobs: list[tuple[Path, Any, tuple[Any, ...]]] = [(file, export, (config, file))]
        how = quantised(config)
        if how:
            target = folder / f"{config.name}-{how}.onnx"
            jobs.append((target, quantise, (file, target, how)))
        for target, work, arguments in jobs:
            if only not in target.name or target.exists():
                continue
            start = time.monotonic()
            log = target.with_suffix(".log")
            process = fork.Process(target=_logged, args=(log, work, arguments))
            process.start()
            process.join(limit)
            if process.is_alive():
                process.kill()
                process.join()
            target.with_suffix(".part").unlink(missing_ok=True)
            done = target.exists()
            missing += not done
            why = (
                "" if done else log.read_text(errors="replace").strip().splitlines()[-1:] or f"exit {process.exitcode}"
            )
            print(f"{'wrote' if done else 'no'} {target.name} {time.monotonic() - start:.0f} s {why}", flush=True)
            if done:
                log.unlink(missing_ok=True)
    return missing


def _logged(log: Path, work: Any, arguments: tuple[Any, ...]) -> None:
    """Runs in a process of its own. PyTorch's C++ writes to the descriptors, not to Python's streams."""
    with log.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        try:
            work(*arguments)
        except BaseException as error:
            print(f"\n{type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            raise SystemExit(1) from error


def compare(file: Path) -> tuple[str, str]:
    """A verdict and its reason: the largest difference, or the text of the refusal."""
    import onnxruntime

    import gpunn
    import onnx_compare

    levels = onnxruntime.GraphOptimizationLevel

    def opened(level: Any) -> Any:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    try:
        session = opened(levels.ORT_DISABLE_ALL)
        other = opened(levels.ORT_ENABLE_ALL)
    except Exception as error:
        return "unusable", f"ONNX Runtime: {str(error).splitlines()[0]}"
    shape = session.get_inputs()[0].shape
    fixed = shape[0] if isinstance(shape[0], int) else None

    def expected(x: Array, by: Any = session) -> Array:
        parts = [x] if fixed is None else np.split(x, len(x) // fixed)
        return np.concatenate([by.run(None, {"x": part})[0] for part in parts])

    try:
        model = gpunn.load(file, backend="cpu", max_batch=max(BATCHES))
    except gpunn.Error as error:
        return "refused", onnx_compare.reason(error)
    rng = np.random.default_rng(7)
    worst = 0.0
    for rows in BATCHES:
        x = rng.standard_normal((rows, *shape[1:])).astype(np.float32)
        want, found = expected(x), model.run(x, "outputs")
        if want.shape != found.shape:
            return "wrong", f"batch {rows}: shape {list(found.shape)}, expected {list(want.shape)}"
        largest = float(np.abs(want).max())
        bound = TOLERANCE * largest
        # Rounding to eight bits turns a difference in the last place into one of a step, and some networks amplify it
        # from layer to layer. The measure is ONNX Runtime's own change, with other kernels and by such differences.
        last = 1e-5 if file.stem.endswith(QUANTISATIONS) else 1.2e-7
        near = [x * (1 + last * rng.choice([-1, 1], x.shape)).astype(np.float32) for _ in range(4)]
        others = [expected(x, other), *map(expected, near)]
        bound += 2 * max(float(np.abs(one - want).max()) for one in others)
        difference = float(np.abs(want.astype(np.float64) - found).max())
        if not difference <= bound:
            return "wrong", f"batch {rows}: differs by {difference:.3g} of {largest:.3g}, allowed is {bound:.3g}"
        worst = max(worst, difference / largest if largest else 0.0)
    return "right", f"{worst:.1e}"


def compare_all(folder: Path, limit: float, only: str) -> int:
    sums: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for file in sorted(folder.glob("*.onnx")):
        if only not in file.name:
            continue
        command = [sys.executable, __file__, "one", str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
            if done.returncode:
                verdict, why = "wrong", f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
            else:
                verdict, why = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            verdict, why = "wrong", f"took more than {limit:.0f} s"
        print(f"{verdict:8} {file.stem}: {why}", flush=True)
        sums[verdict] += 1
        if verdict != "right":
            reasons[f"{verdict}: {why}"] += 1
    for why, count in reasons.most_common():
        print(count, why)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(sums.items())))
    return sums["wrong"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["export", "compare", "one"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--limit", type=float, default=180, help="seconds for one file")
    parser.add_argument("--only", default="", help="part of the names of files")
    options = parser.parse_args()
    if options.what == "one":
        print(json.dumps(compare(options.path)))
        return 0
    work = export_all if options.what == "export" else compare_all
    return min(1, work(options.path, options.limit, options.only))


if __name__ == "__main__":
    sys.exit(main())
