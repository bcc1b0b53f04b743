#!/usr/bin/env python3
"""Times calls of a model by gpunn, ONNX Runtime and PyTorch, in turns: a line of JSON a batch size and program.

    python3 bench/peers/infer.py resnet50.onnx --torch resnet50 --batch 1,8 --threads 2

gpunn and ONNX Runtime run the ONNX file. PyTorch reads none: --torch names the network of models.py that it runs, with
weights of its own. A package that is not there is left out, and said so.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

NETWORKS: dict[str, tuple[str, dict[str, object], tuple[int, ...]]] = {
    "lenet5": ("lenet5", {}, (1, 28, 28)),
    "resnet18_cifar": ("resnet", {"depth": 18}, (3, 32, 32)),
    "resnet50": ("resnet", {"depth": 50, "stem": "imagenet", "classes": 1000}, (3, 224, 224)),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--batch", default="1,8,64")
    parser.add_argument("--threads", type=int, default=0, help="0: each program's choice")
    parser.add_argument("--rounds", type=int, default=2, help="turns, of which the best counts")
    parser.add_argument("--seconds", type=float, default=2, help="of calls in a turn")
    parser.add_argument("--gpunn", default="gpunn", help="the program")
    parser.add_argument("--backend", default="cpu", help="of gpunn")
    parser.add_argument("--torch", choices=sorted(NETWORKS), help="the network that PyTorch runs")
    return parser.parse_args()


def timed(call: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Median and 99th percentile of calls, in seconds."""
    for _ in range(5):
        call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 30 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    times.sort()
    return times[len(times) // 2], times[len(times) * 99 // 100]


def gpunn_call(chosen: argparse.Namespace, rows: int) -> tuple[float, float]:
    command = [
        chosen.gpunn,
        "bench",
        "infer",
        chosen.model,
        "--batch",
        str(rows),
        "--backend",
        chosen.backend,
        "--json",
    ]
    if chosen.threads:
        command += ["--threads", str(chosen.threads)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report["rows"][0]["p50_seconds"], report["rows"][0]["p99_seconds"]


def onnxruntime_call(chosen: argparse.Namespace, rows: int) -> tuple[float, float]:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = chosen.threads
    session = onnxruntime.InferenceSession(chosen.model, settings, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    kind = np.uint8 if given.type == "tensor(uint8)" else np.float32
    samples = np.random.default_rng(1).uniform(0, 2, (rows, *given.shape[1:])).astype(kind)
    return timed(lambda: session.run(None, {given.name: samples}), chosen.seconds)


def torch_call(chosen: argparse.Namespace, rows: int) -> tuple[float, float]:
    import models
    import torch

    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    name, arguments, shape = NETWORKS[chosen.torch]
    model = getattr(models, name)(**arguments).eval().to(memory_format=torch.channels_last)
    samples = torch.rand(rows, *shape).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        frozen = torch.jit.optimize_for_inference(torch.jit.trace(model, samples))  # batch norms are folded
        return timed(lambda: frozen(samples), chosen.seconds)


def main() -> None:
    chosen = options()
    programs = {"gpunn": gpunn_call, "ONNX Runtime": onnxruntime_call}
    if chosen.torch:
        programs["PyTorch"] = torch_call
    for rows in (int(size) for size in chosen.batch.split(",")):
        best: dict[str, tuple[float, float]] = {}
        for _ in range(chosen.rounds):
            for name, call in list(programs.items()):
                try:
                    times = call(chosen, rows)
                except ImportError as missing:
                    print(f"{name} is left out: {missing}", file=sys.stderr)
                    del programs[name]
                    continue
                best[name] = min(best.get(name, times), times)
        for name, (p50, p99) in best.items():
            print(
                json.dumps(
                    {
                        "program": name,
                        "model": chosen.model,
                        "rows": rows,
                        "p50_ms": round(1000 * p50, 4),
                        "p99_ms": round(1000 * p99, 4),
                        "rows_per_s": round(rows / p50, 1),
                    }
                )
            )


if __name__ == "__main__":
    main()
