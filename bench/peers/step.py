"""What the PyTorch peers share: data, the timed training step, the report."""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")
    parser.add_argument("--warmup", type=int, default=20, help="steps")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--mode",
        choices=["eager", "graph", "compile"],
        default="eager",
        help="graph: the step as one CUDA graph; compile: torch.compile(mode='reduce-overhead') of the model",
    )
    parser.add_argument("--autotune", action="store_true", help="torch.backends.cudnn.benchmark")
    parser.add_argument("--layout", choices=["packed", "channels_last"], default="packed", help="of images and filters")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32", help="bf16: autocast")
    return parser.parse_args()


def captured(step, warmup):
    """The step as a CUDA graph, replayed by a call: what PyTorch's documentation calls whole-network capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(max(warmup, 3)):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def join_ranks():
    """Under torchrun: a process a GPU, which is the current one from here on. True in the one that reports."""
    if "WORLD_SIZE" not in os.environ:
        return True
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # Its thread asks for events, which a capture forbids.
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    return torch.distributed.get_rank() == 0


def allow(precision, autotune):
    """What products may be rounded to, said outright: PyTorch's own choice differs between matmul and cuDNN."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = autotune


def measure(what, model, chosen, image=(1, 28, 28)):
    print(json.dumps(timed(what, model, chosen, image)))


def timed(what, model, chosen, image=(1, 28, 28)):
    """Times whole training steps on images of that shape: forward, loss, backward, SGD with Nesterov momentum.

    The batch is already on the device and in its final form, so that the peer does less than gpunn's own step, which
    also picks the batch out of the data set, normalises it and keeps the metrics.
    """
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.manual_seed(1)
    device = torch.device(chosen.device)
    if device.type == "cuda":
        allow(chosen.precision, chosen.autotune)
        torch.cuda.reset_peak_memory_stats()
    layout = torch.channels_last if chosen.layout == "channels_last" else torch.contiguous_format
    model = model.to(device, memory_format=layout)
    run = model
    if torch.distributed.is_initialized():
        with torch.cuda.stream(torch.cuda.Stream()):  # A captured step is not on the stream that waits for all others.
            run = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    if chosen.mode == "compile":
        torch._dynamo.reset()  # Each network is compiled for its own shapes, whatever was compiled before it.
        # With CUDA graphs; max-autotune also tries its products for a minute for each network.
        run = torch.compile(model, mode="reduce-overhead", dynamic=False)
    images = torch.rand(chosen.batch, *image, device=device).to(memory_format=layout)
    labels = torch.randint(0, 10, (chosen.batch,), device=device)
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=chosen.learning_rate, momentum=chosen.momentum, nesterov=True, fused=device.type == "cuda"
    )

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=chosen.precision == "bf16"):
            loss = loss_of(run(images), labels)
        loss.backward()
        optimizer.step()

    if chosen.mode == "graph":
        step = captured(step, chosen.warmup)
    return times_of(what, step, chosen)


def times_of(what, step, chosen):
    """Times a step, and what is reported of it."""
    on_gpu = torch.device(chosen.device).type == "cuda"

    def synchronize():
        if on_gpu:
            torch.cuda.synchronize()

    for _ in range(chosen.warmup):
        step()
    # Several steps between two waits, as in a training. Ten of gpunn's samples are taken in the same way.
    steps_per_sample = 10
    seconds = []
    for _ in range(max(chosen.steps // steps_per_sample, 5)):
        synchronize()
        start = time.perf_counter()
        for _ in range(steps_per_sample):
            step()
        synchronize()
        seconds.append((time.perf_counter() - start) / steps_per_sample)
    median = statistics.median(seconds)
    return {
        "what": what,
        "batch": chosen.batch,
        "median_seconds": median,
        "min_seconds": min(seconds),
        "samples_per_second": chosen.batch / median,
        "torch": torch.__version__,
        "device": chosen.device,
        "mode": chosen.mode,
        "precision": chosen.precision,
        "layout": chosen.layout,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else 0,
        "reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else 0,
        "threads": torch.get_num_threads(),
    }
