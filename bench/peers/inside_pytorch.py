#!/usr/bin/env python3
"""A training step of torchvision's ResNet-18 with Adam in PyTorch, untouched and with gpunn's kernels inside.

    PYTHONPATH=build/release/python python3 bench/peers/inside_pytorch.py --device cuda --size 224 --batch 64

Prints a line of JSON for each backend, mode and precision: `none` is PyTorch alone. In the modes `graph` (the whole step
is one CUDA graph) and `callable` (torch.cuda.make_graphed_callables) the host's part of a step is small.
"""

import argparse
import json
import statistics
import time

import torch
import torchvision
from step import allow, captured

import gpunn.torch


def step_of(backend, mode, chosen):
    torch.manual_seed(0)
    device = torch.device(chosen.device)
    model = torchvision.models.resnet18().to(device)
    if backend != "none":
        gpunn.torch.replace(model, backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=mode == "graph")
    x = torch.randn(chosen.batch, 3, chosen.size, chosen.size, device=device)
    target = torch.randint(0, 1000, (chosen.batch,), device=device)
    run = model
    if mode == "compile":
        torch._dynamo.reset()
        run = torch.compile(model, mode="reduce-overhead", dynamic=False)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), target)
        loss.backward()
        optimizer.step()

    if mode == "callable":
        for _ in range(3):  # kernels are chosen
            step()
        run = torch.cuda.make_graphed_callables(model, (x,))
    return captured(step, 5) if mode == "graph" else step


def measured(step, chosen):
    """Medians in milliseconds: of a step that is waited for, of its part on the host, and of steps in a row."""
    wait = torch.cuda.synchronize if chosen.device == "cuda" else lambda: None
    for _ in range(5):
        step()
    hosts, wholes, rows = [], [], []
    for _ in range(chosen.steps):
        wait()
        start = time.perf_counter()
        step()
        hosts.append(time.perf_counter() - start)
        wait()
        wholes.append(time.perf_counter() - start)
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(max(chosen.steps // 5, 1)):
            step()
        wait()
        rows.append((time.perf_counter() - start) / max(chosen.steps // 5, 1))
    names = {"step_ms": wholes, "host_ms": hosts, "in_a_row_ms": rows}
    return {name: round(1e3 * statistics.median(times), 3) for name, times in names.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--backends", nargs="+", default=["none", "cuda_tiled"])
    parser.add_argument("--modes", nargs="+", default=["eager", "graph"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "tf32"])
    chosen = parser.parse_args()
    for precision in chosen.precisions:
        allow(precision, autotune=False)
        for mode in chosen.modes:
            for backend in chosen.backends:
                row = {"size": chosen.size, "batch": chosen.batch, "precision": precision, "mode": mode}
                row["backend"] = backend
                if chosen.device == "cuda":
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
                row |= measured(step_of(backend, mode, chosen), chosen)
                if chosen.device == "cuda":
                    row["peak_mb"] = round(torch.cuda.max_memory_allocated() / 1e6)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
