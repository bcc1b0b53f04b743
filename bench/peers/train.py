#!/usr/bin/env python3
"""Trains a recipe of experiments/*.yaml in PyTorch on the same files: the accuracy to be met.

    bench/peers/train.py lenet_mnist_shifts --data DIR --seeds 1,2,3 --device cuda

DIR holds MNIST's IDX files (DIR/mnist/*.gz) and CIFAR-10's binary batches (DIR/cifar-10-batches-bin/*.bin). Prints a JSON
object a seed: test accuracy after the last step and the seconds of training.
"""

import argparse
import gzip
import json
import math
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from models import lenet5, resnet


def mnist(folder):
    def read(name, header):
        return np.frombuffer(gzip.decompress((folder / "mnist" / f"{name}.gz").read_bytes()), np.uint8)[header:]

    def split(name):
        return read(f"{name}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28), read(f"{name}-labels-idx1-ubyte", 8)

    return split("train"), split("t10k")


def cifar10(folder):
    def split(names):
        rows = [np.fromfile(folder / "cifar-10-batches-bin" / name, np.uint8).reshape(-1, 3073) for name in names]
        rows = np.concatenate(rows)
        return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]

    return split([f"data_batch_{i}.bin" for i in range(1, 6)]), split(["test_batch.bin"])


def shifted(x, reach, flip):
    """Each image moved by up to `reach` whole pixels over black (of normalised images: `x` is raw), and half mirrored."""
    n, _, height, width = x.shape
    padded = functional.pad(x, (reach, reach, reach, reach))
    move = torch.randint(0, 2 * reach + 1, (n, 2), device=x.device)
    rows = (torch.arange(height, device=x.device) + move[:, :1])[:, None, :, None]
    columns = torch.arange(width, device=x.device)
    columns = columns.expand(n, width)
    if flip:
        mirror = torch.rand(n, 1, device=x.device) < 0.5
        columns = torch.where(mirror, width - 1 - columns, columns)
    columns = (columns + move[:, 1:])[:, None, None, :]
    image = torch.arange(n, device=x.device)[:, None, None, None]
    channel = torch.arange(x.shape[1], device=x.device)[None, :, None, None]
    return padded[image, channel, rows, columns]


RECIPES = {
    "lenet_mnist_shifts": {
        "data": mnist, "model": lenet5, "batch": 128, "epochs": 20, "shift": 2, "flip": False,
        "optimizer": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
        "schedule": "cosine",
    },
    "resnet50_mnist": {
        "data": mnist, "model": lambda: resnet(50, "mnist"), "batch": 32, "steps": 500, "shift": 0, "flip": False,
        "optimizer": lambda p: torch.optim.Adam(p, lr=0.001), "schedule": "one_cycle", "rate": 0.001,
    },
    "resnet18_cifar10": {
        "data": cifar10, "model": lambda: resnet(18), "batch": 128, "epochs": 30, "shift": 4, "flip": True,
        "optimizer": lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4),
        "schedule": "one_cycle", "rate": 0.2,
    },
}  # fmt: skip


def schedule_of(recipe, optimizer, steps, steps_per_epoch):
    if recipe["schedule"] == "one_cycle":
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe["rate"], steps, cycle_momentum=False)

    def cosine(step):
        warmup = steps_per_epoch
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, cosine)


def train(name, seed, folder, device):
    recipe = RECIPES[name]
    torch.manual_seed(seed)
    (images, labels), (test_images, test_labels) = recipe["data"](folder)
    mean, deviation = (
        torch.tensor(statistic((0, 2, 3)) / 255, dtype=torch.float32, device=device)[:, None, None]
        for statistic in (images.mean, images.std)
    )
    images, test_images = (torch.tensor(x, device=device) for x in (images, test_images))
    labels, test_labels = (torch.tensor(y, dtype=torch.int64, device=device) for y in (labels, test_labels))

    def prepared(x):
        return (x.float() / 255 - mean) / deviation

    model = recipe["model"]().to(device)
    optimizer = recipe["optimizer"](model.parameters())
    batch = recipe["batch"]
    steps_per_epoch = len(images) // batch
    steps = recipe.get("steps") or recipe["epochs"] * steps_per_epoch
    schedule = schedule_of(recipe, optimizer, steps, steps_per_epoch)
    loss_of = nn.CrossEntropyLoss()
    start = time.perf_counter()
    for step in range(steps):
        if step % steps_per_epoch == 0:
            order = torch.randperm(len(images), device=device)
        rows = order[step % steps_per_epoch * batch :][:batch]
        x = images[rows]
        if recipe["shift"]:
            x = shifted(x, recipe["shift"], recipe["flip"])
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(prepared(x)), labels[rows]).backward()
        optimizer.step()
        schedule.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    model.eval()
    correct = 0
    with torch.no_grad():
        for first in range(0, len(test_images), 1000):
            part = slice(first, first + 1000)
            correct += (model(prepared(test_images[part])).argmax(1) == test_labels[part]).sum().item()
    result = {"recipe": name, "seed": seed, "accuracy": correct / len(test_images), "train_seconds": seconds,
              "steps": steps, "torch": torch.__version__, "device": str(device)}  # fmt: skip
    print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", choices=list(RECIPES))
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tf32", action="store_true")
    chosen = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = chosen.tf32
    torch.backends.cudnn.benchmark = True
    for seed in chosen.seeds.split(","):
        train(chosen.recipe, int(seed), chosen.data, torch.device(chosen.device))


if __name__ == "__main__":
    main()
