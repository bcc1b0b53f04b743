#!/usr/bin/env python3
"""Matrix products and convolutions in PyTorch, at the shapes that `gpunn bench op` takes.

    bench/peers/ops.py --device cuda --precision fp32,tf32,bf16 "matmul 1024x1024x1024" \\
        "conv2d_backward_filter 128,64,32,32,64,3,3,pad=1"

fp32 is without TF32, said outright for cuBLAS and for cuDNN; tf32 allows it in both; bf16 has tensors of that type. cuDNN
tries its algorithms (torch.backends.cudnn.benchmark). Random data in [-1, 1). Times are of the device: small ops run many
times in one CUDA graph. Prints one JSON object; "error" of a row is the largest difference from float64 over the largest
value, of some of the elements.
"""

import argparse
import json
import math
import statistics
import time

import torch

from step import allow

SAMPLE_SECONDS = 2e-3
MOST_RUNS = 2000


def parsed(text):
    """"128,64,32,32,64,3,3,pad=1" as its sizes and its options."""
    sizes, options = [], {}
    for part in text.split(","):
        if "=" in part:
            name, value = part.split("=")
            options[name] = int(value)
        else:
            sizes += [int(size) for size in part.split("x")]
    return sizes, options


def random(shape, device, dtype):
    return (2 * torch.rand(shape, device=device) - 1).to(dtype)


def matmul(sizes, options, device, dtype):
    m, n, k = sizes
    a = random((k, m) if options.get("ta") else (m, k), device, dtype)
    b = random((n, k) if options.get("tb") else (k, n), device, dtype)
    left, right = a.t() if options.get("ta") else a, b.t() if options.get("tb") else b
    out = torch.empty((m, n), device=device, dtype=dtype)

    def deviation():
        rows = torch.linspace(0, m - 1, min(m, 16)).long().to(device)
        return out[rows].double(), left[rows].double() @ right.double()

    return lambda: torch.mm(left, right, out=out), deviation, 2 * m * n * k


def convolution(op, sizes, options, device, dtype):
    n, c, h, w, k, r, s = sizes
    stride, pad = [options.get("stride", 1)] * 2, [options.get("pad", 0)] * 2
    dilation, groups = [options.get("dilation", 1)] * 2, options.get("groups", 1)
    x = random((n, c, h, w), device, dtype)
    filters = random((k, c // groups, r, s), device, dtype)
    y = torch.nn.functional.conv2d(x, filters, None, stride, pad, dilation, groups)
    dy = random(y.shape, device, dtype)
    flops = 2 * y.numel() * c // groups * r * s
    result = {}
    if op == "conv2d":

        def run():
            result["y"] = torch.nn.functional.conv2d(x, filters, None, stride, pad, dilation, groups)

        def deviation():
            exact = torch.nn.functional.conv2d(x[:1].double(), filters.double(), None, stride, pad, dilation, groups)
            return result["y"][:1].double(), exact

        return run, deviation, flops
    mask = [op == "conv2d_backward_data", op == "conv2d_backward_filter", False]

    def gradient(dy, x, filters):
        grads = torch.ops.aten.convolution_backward(
            dy, x, filters, None, stride, pad, dilation, False, [0, 0], groups, mask
        )
        return grads[0] if mask[0] else grads[1]

    def run():
        result["y"] = gradient(dy, x, filters)

    def deviation():
        if mask[0]:
            return result["y"][:1].double(), gradient(dy[:1].double(), x[:1].double(), filters.double())
        return result["y"].double(), gradient(dy.double(), x.double(), filters.double())

    return run, deviation, flops


def error_of(deviation):
    found, exact = deviation()
    return ((found - exact).abs().max() / exact.abs().max()).item()


def device_timer(device):
    """A function that gives the seconds that its argument takes on the device."""
    if device == "cpu":

        def on_host(run):
            start = time.perf_counter()
            run()
            return time.perf_counter() - start

        return on_host
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def on_device(run):
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3

    return on_device


def times(run, device, repeats):
    timer = device_timer(device)
    for _ in range(5):  # tries algorithms, and makes what a capture must not make
        run()
    once = max(timer(run), 1e-7)
    runs = max(1, min(MOST_RUNS, math.ceil(SAMPLE_SECONDS / once)))

    def many():
        for _ in range(runs):
            run()

    sample = many
    if device != "cpu" and runs > 1:
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            many()
        sample = graph.replay
    for _ in range(3):
        sample()
    seconds, spent = [], 0.0
    while len(seconds) < repeats and (spent < 2 or len(seconds) < 5):
        taken = timer(sample)
        spent += taken
        seconds.append(taken / runs)
    return seconds, runs


def measured(text, precision, device, repeats):
    op, shape = text.split()
    sizes, options = parsed(shape)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    make = matmul if op == "matmul" else lambda *rest: convolution(op, *rest)
    run, deviation, flops = make(sizes, options, device, dtype)
    seconds, runs = times(run, device, repeats)
    run()
    median = statistics.median(seconds)
    return {
        "op": op,
        "shape": shape,
        "precision": precision,
        "repeats": len(seconds),
        "runs": runs,
        "median_seconds": median,
        "min_seconds": min(seconds),
        "teraflops": flops / median * 1e-12,
        "error": error_of(deviation),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="+", metavar="'OP SHAPE'")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="fp32", help="of fp32, tf32, bf16, with commas")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=30)
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.manual_seed(1)
    rows = []
    for text in chosen.ops:
        for precision in chosen.precision.split(","):
            allow(precision, True)
            try:
                rows.append(measured(text, precision, chosen.device, chosen.repeats))
            except RuntimeError as error:
                op, shape = text.split()
                failure = str(error).splitlines()[0]
                rows.append({"op": op, "shape": shape, "precision": precision, "failure": failure})
            if chosen.device == "cuda":
                torch.cuda.empty_cache()
    print(json.dumps({"torch": torch.__version__, "device": chosen.device, "rows": rows}))


if __name__ == "__main__":
    main()
