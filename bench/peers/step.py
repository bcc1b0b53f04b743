"""What the PyTorch peers share: data, the timed training step, the report."""

import argparse
import json
import statistics
import time

import torch


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")
    parser.add_argument("--warmup", type=int, default=20, help="steps")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def measure(what, model, chosen):
    """Times whole training steps on 28x28 images: forward, loss, backward, SGD with Nesterov momentum.

    The batch is already on the device and in its final form, so that the peer does less than gpunn's own step, which
    also picks the batch out of the data set, normalises it and keeps the metrics.
    """
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.manual_seed(1)
    device = torch.device(chosen.device)
    model = model.to(device)
    images = torch.rand(chosen.batch, 1, 28, 28, device=device)
    labels = torch.randint(0, 10, (chosen.batch,), device=device)
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=chosen.learning_rate, momentum=chosen.momentum, nesterov=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images), labels).backward()
        optimizer.step()

    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(chosen.warmup):
        step()
    seconds = []
    for _ in range(chosen.steps):
        synchronize()
        start = time.perf_counter()
        step()
        synchronize()
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(
        json.dumps(
            {
                "what": what,
                "batch": chosen.batch,
                "median_seconds": median,
                "min_seconds": min(seconds),
                "images_per_second": chosen.batch / median,
                "torch": torch.__version__,
                "device": chosen.device,
                "threads": torch.get_num_threads(),
            }
        )
    )
