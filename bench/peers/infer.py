#!/usr/bin/env python3
"""Times calls of a model by gpunn, ONNX Runtime and PyTorch, in turns: a line of JSON a batch size and program.

    python3 bench/peers/infer.py resnet50.onnx --torch resnet50 --batch 1,8 --threads 2
    python3 bench/peers/infer.py resnet50.onnx --torch resnet50 --batch 1,64,256 --device cuda --precision bf16
    python3 bench/peers/infer.py runs/espcn_x2/TIME --torch espcn_x2 --batch 1 --size 480x320

gpunn and ONNX Runtime run the ONNX file; of a run folder, gpunn alone. PyTorch reads none: --torch names the network of models.py that it runs, with
weights of its own. A package that is not there is left out, and said so.

With --device cuda gpunn runs on cuda_tiled, or the --backend that is named, and PyTorch as a CUDA graph on
channels-last images. device_ms is the time of the network alone, launched back to back with one wait at the end; p50_ms
and p99_ms are of calls from host memory and back, for PyTorch out of pinned memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

NETWORKS: dict[str, tuple[str, dict[str, object], tuple[int, ...]]] = {
    "lenet5": ("lenet5", {}, (1, 28, 28)),
    "resnet18_cifar": ("resnet", {"depth": 18}, (3, 32, 32)),
    "espcn_x2": ("espcn", {"scale": 2}, (1, 1080, 1920)),
    "resnet50": ("resnet", {"depth": 50, "stem": "imagenet", "classes": 1000}, (3, 224, 224)),
}


class Times(NamedTuple):
    """Of a call, in seconds."""

    p50: float
    p99: float
    device: float | None = None  # of the network alone


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an ONNX file, or a run folder")
    parser.add_argument("--batch", default="1,8,64")
    parser.add_argument("--size", help="WIDTHxHEIGHT of an image, of a model that takes any size")
    parser.add_argument("--threads", type=int, default=0, help="0: each program's choice")
    parser.add_argument("--rounds", type=int, default=2, help="turns, of which the best counts")
    parser.add_argument("--seconds", type=float, default=2, help="of calls in a turn")
    parser.add_argument("--gpunn", default="gpunn", help="the program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32", help="of gpunn and PyTorch")
    parser.add_argument("--backend", help="of gpunn; by default cpu, or cuda_tiled with --device cuda")
    parser.add_argument("--torch", choices=sorted(NETWORKS), help="the network that PyTorch runs")
    chosen = parser.parse_args()
    chosen.backend = chosen.backend or ("cuda_tiled" if chosen.device == "cuda" else "cpu")
    return chosen


def timed(call: Callable[[], object], seconds: float) -> Times:
    """Median and 99th percentile of calls."""
    for _ in range(5):
        call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 30 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    times.sort()
    return Times(times[len(times) // 2], times[len(times) * 99 // 100])


def gpunn_call(chosen: argparse.Namespace, rows: int) -> Times:
    command = [chosen.gpunn, "bench", "infer", chosen.model, "--batch", str(rows), "--json"]
    command += ["--backend", chosen.backend, "--precision", chosen.precision]
    if chosen.threads:
        command += ["--threads", str(chosen.threads)]
    if chosen.size:
        command += ["--size", chosen.size]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    row = report["rows"][0]
    return Times(row["p50_seconds"], row["p99_seconds"], row["device_seconds"])


def onnxruntime_call(chosen: argparse.Namespace, rows: int) -> Times:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = chosen.threads
    session = onnxruntime.InferenceSession(chosen.model, settings, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    kind = np.uint8 if given.type == "tensor(uint8)" else np.float32
    samples = np.random.default_rng(1).uniform(0, 2, (rows, *given.shape[1:])).astype(kind)
    return timed(lambda: session.run(None, {given.name: samples}), chosen.seconds)


def torch_call(chosen: argparse.Namespace, rows: int) -> Times:
    import models
    import torch

    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    name, arguments, shape = NETWORKS[chosen.torch]
    if chosen.size:
        width, height = map(int, chosen.size.split("x"))
        shape = (shape[0], height, width)
    model = getattr(models, name)(**arguments).eval().to(memory_format=torch.channels_last)
    samples = torch.rand(rows, *shape).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        if chosen.device == "cuda":
            return torch_graph_call(chosen, model, samples)
        frozen = torch.jit.optimize_for_inference(torch.jit.trace(model, samples))  # batch norms are folded
        return timed(lambda: frozen(samples), chosen.seconds)


def torch_graph_call(chosen: argparse.Namespace, model: torch.nn.Module, samples: torch.Tensor) -> Times:
    """The network as one CUDA graph, with its batch norms folded."""
    import step
    import torch

    step.allow(chosen.precision, autotune=True)
    kind = torch.bfloat16 if chosen.precision == "bf16" else torch.float32
    given = samples.to("cuda")
    folded = torch.jit.freeze(torch.jit.trace(model.to("cuda", kind), given.to(kind), check_trace=False))
    pinned = samples.pin_memory()
    answers: list[torch.Tensor] = []

    def network() -> None:
        answers[:] = [folded(given.to(kind)).float()]

    replay = step.captured(network, 10)
    result = answers[0].to("cpu").pin_memory()

    def call() -> None:
        given.copy_(pinned, non_blocking=True)
        replay()
        result.copy_(answers[0], non_blocking=True)
        torch.cuda.synchronize()

    times = timed(call, chosen.seconds)
    repeats = max(10, int(chosen.seconds / 4 / times.p50))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        replay()
    torch.cuda.synchronize()
    return times._replace(device=(time.perf_counter() - begin) / repeats)


def main() -> None:
    chosen = options()
    programs: dict[str, Callable[[argparse.Namespace, int], Times]] = {"gpunn": gpunn_call}
    if chosen.device == "cpu" and chosen.model.endswith(".onnx"):
        programs["ONNX Runtime"] = onnxruntime_call
    if chosen.torch:
        programs["PyTorch"] = torch_call
    for rows in (int(size) for size in chosen.batch.split(",")):
        best: dict[str, Times] = {}
        for _ in range(chosen.rounds):
            for name, call in list(programs.items()):
                try:
                    times = call(chosen, rows)
                except ImportError as missing:
                    print(f"{name} is left out: {missing}", file=sys.stderr)
                    del programs[name]
                    continue
                best[name] = min(best.get(name, times), times)
        for name, times in best.items():
            report = {"program": name, "model": chosen.model, "rows": rows, "precision": chosen.precision}
            report |= {"p50_ms": round(1000 * times.p50, 4), "p99_ms": round(1000 * times.p99, 4)}
            if times.device is not None:
                report["device_ms"] = round(1000 * times.device, 4)
            print(json.dumps(report | {"rows_per_s": round(rows / times.p50, 1)}), flush=True)


if __name__ == "__main__":
    main()
