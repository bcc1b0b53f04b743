#!/usr/bin/env python3
"""Fine-tunes torchvision's pretrained ResNet-18 on CIFAR-10, with gpunn's kernels inside PyTorch.

    GPUNN_DATA_DIR=../shared/data python3 examples/pytorch_resnet18_cifar10.py --backend cuda_tiled

``--backend`` is a plugin's name, or the path of a plugin's file: your own kernel trains the network then, and its base
runs the rest. ``--backend none`` leaves PyTorch's kernels, to compare with. The data folder holds
``weights/resnet18_imagenet.safetensors.xz`` and ``cifar10/cifar10-jpeg.tar.xz``.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image

import gpunn.torch

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, for which the weights were made
DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64}


def read_safetensors(file: Path) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors file that is compressed by xz."""
    content = lzma.decompress(file.read_bytes())
    length = int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(content[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        tensor = torch.from_numpy(values.copy())
        tensors[name] = tensor.float() if tensor.is_floating_point() else tensor
    return tensors


def read_images(file: Path, most: dict[str, int]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Images u8[N,3,32,32] and labels of both parts. The classes are mixed, by a fixed seed."""
    images: dict[str, list[np.ndarray]] = {part: [] for part in most}
    labels: dict[str, list[int]] = {part: [] for part in most}
    counts = {(part, name): 0 for part in most for name in CLASSES}
    with tarfile.open(file, "r:xz") as archive:
        for member in archive:
            parts = Path(member.name).parts
            if not member.isfile() or len(parts) < 3 or (parts[-3], parts[-2]) not in counts:
                continue
            part, name = parts[-3], parts[-2]
            if counts[part, name] >= -(-most[part] // len(CLASSES)):
                continue
            counts[part, name] += 1
            stream = archive.extractfile(member)
            assert stream is not None
            images[part].append(np.asarray(Image.open(io.BytesIO(stream.read())).convert("RGB")).transpose(2, 0, 1))
            labels[part].append(CLASSES.index(name))
            if all(count >= -(-most[part] // len(CLASSES)) for (part, _), count in counts.items()):
                break
    result = {}
    for part in most:
        order = np.random.default_rng(0).permutation(len(labels[part]))[: most[part]]
        result[part] = (
            torch.from_numpy(np.stack(images[part])[order]),
            torch.tensor(np.array(labels[part])[order]),
        )
    return result


def normalised(images: torch.Tensor) -> torch.Tensor:
    mean, deviation = (torch.tensor(v, device=images.device).view(1, 3, 1, 1) for v in (MEAN, DEVIATION))
    return (images.float() / 255 - mean) / deviation


def batches(data: tuple[torch.Tensor, torch.Tensor], size: int, shuffle: bool) -> Iterator[tuple[torch.Tensor, ...]]:
    images, labels = data
    rows = torch.randperm(len(labels)) if shuffle else torch.arange(len(labels))
    for some in rows.split(size):
        some = some.to(images.device)
        yield normalised(images[some]), labels[some]


def accuracy(model: torch.nn.Module, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    model.eval()
    with torch.no_grad():
        right = sum(int((model(x).argmax(1) == t).sum()) for x, t in batches(data, 100, shuffle=False))
    return right / len(data[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="", help="a plugin's name or file; 'none': PyTorch alone")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--images", type=int, default=50_000, help="of the training set, at most")
    parser.add_argument("--test-images", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    folder = Path(os.environ.get("GPUNN_DATA_DIR", "../shared/data"))
    torch.manual_seed(options.seed)

    model = torchvision.models.resnet18()
    model.load_state_dict(read_safetensors(folder / "weights" / "resnet18_imagenet.safetensors.xz"))
    model.fc = torch.nn.Linear(model.fc.in_features, len(CLASSES))
    model.to(options.device)
    if options.backend != "none":
        print(gpunn.torch.replace(model, options.backend))

    wanted = {"train": options.images, "test": options.test_images}
    data = {
        part: (images.to(options.device), labels.to(options.device))
        for part, (images, labels) in read_images(folder / "cifar10" / "cifar10-jpeg.tar.xz", wanted).items()
    }
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(options.epochs):
        model.train()
        begin, total, count = time.perf_counter(), 0.0, 0
        for x, t in batches(data["train"], 128, shuffle=True):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), t)
            loss.backward()
            optimizer.step()
            total, count = total + loss.item() * len(t), count + len(t)
        seconds = time.perf_counter() - begin
        print(
            f"epoch {epoch + 1}: loss {total / count:.4f}, test accuracy {accuracy(model, data['test']):.4f}, "
            f"{count / seconds:.0f} images/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
