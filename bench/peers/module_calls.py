#!/usr/bin/env python3
"""Microseconds that a call of a module costs the host in PyTorch, untouched and with gpunn's kernels inside.

    PYTHONPATH=build/release/python python3 bench/peers/module_calls.py

Tensors have a few elements and a single thread computes on the CPU, so that the calls are what takes the time. Prints a
line of JSON for each module: [PyTorch, gpunn] forward, and forward with backward.
"""

import json
import time

import torch
from torch import nn

import gpunn.torch

CASES = {
    "Conv2d": (lambda: nn.Conv2d(1, 1, 1, bias=False), (1, 1, 1, 1)),
    "Conv2d with bias": (lambda: nn.Conv2d(1, 1, 1), (1, 1, 1, 1)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(2), (2, 2, 1, 1)),
    "ReLU": (nn.ReLU, (2, 2, 1, 1)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (1, 1, 2, 2)),
    "Linear": (lambda: nn.Linear(2, 2), (2, 2)),
    "Conv2d, BatchNorm2d, ReLU": (
        lambda: nn.Sequential(nn.Conv2d(2, 2, 1, bias=False), nn.BatchNorm2d(2), nn.ReLU(inplace=True)),
        (2, 2, 4, 4),
    ),
}


def least(call, calls=300, repeats=15):
    """The least of some means, in microseconds."""
    for _ in range(50):
        call()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - start) / calls)
    return round(1e6 * min(found), 1)


def main():
    torch.set_num_threads(1)
    for name, (make, shape) in CASES.items():
        row = {"module": name, "forward": [], "forward_and_backward": []}
        for inside in (False, True):
            module = make()
            if inside:
                gpunn.torch.replace(module, gpunn.torch.Backend("cpu", threads=1))
            x = torch.randn(shape, requires_grad=True)
            dy = torch.ones_like(module(x))
            row["forward"].append(least(lambda module=module, x=x: module(x)))
            row["forward_and_backward"].append(least(lambda module=module, x=x, dy=dy: module(x).backward(dy)))
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
