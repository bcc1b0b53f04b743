#!/usr/bin/env python3
"""Training steps of several networks in one PyTorch process.

    bench/peers/steps.py --device cuda lenet:128:fp32:graph resnet18:512:tf32:eager

Each is NETWORK:BATCH:PRECISION:MODE, the modes being eager, graph (the whole step as one CUDA graph) and compile
(torch.compile of the model, reduce-overhead: with CUDA graphs). Under torchrun each GPU has a batch of that size, and
DistributedDataParallel adds up the gradients: torchrun --nproc-per-node 2 bench/peers/steps.py ... cuDNN tries its algorithms (torch.backends.cudnn.benchmark). Prints a JSON
object a line; what can't be had on this device has an "error" in place of its times.
"""

import argparse
import json

import torch

from models import depthwise, lenet5, mlp, resnet, vgg11
from step import join_ranks, timed

# name: (what it is, how it is made, the shape of an image)
NETWORKS = {
    "lenet": ("LeNet-5 training step", lenet5, (1, 28, 28)),
    "mlp": ("MLP 784-128-10 training step", mlp, (1, 28, 28)),
    "resnet18": ("ResNet-18 training step", lambda: resnet(18), (3, 32, 32)),
    "vgg11": ("VGG-11 training step", vgg11, (3, 32, 32)),
    "depthwise": ("depthwise training step", depthwise, (3, 32, 32)),
    "resnet50": ("ResNet-50 training step", lambda: resnet(50, "mnist"), (1, 28, 28)),
    "resnet50_224": ("ResNet-50 training step, 224x224", lambda: resnet(50, "imagenet"), (3, 224, 224)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="+", metavar="NETWORK:BATCH:PRECISION:MODE")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layout", choices=["packed", "channels_last"], default="packed")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--steps-timed", type=int, default=200)
    chosen = parser.parse_args()
    reports = join_ranks()
    for text in chosen.steps:
        network, batch, precision, mode = text.split(":")
        what, make, image = NETWORKS[network]
        options = argparse.Namespace(
            batch=int(batch),
            precision=precision,
            mode=mode,
            device=chosen.device,
            layout=chosen.layout,
            threads=chosen.threads,
            warmup=chosen.warmup,
            steps=chosen.steps_timed,
            learning_rate=0.01,
            momentum=0.9,
            autotune=True,
        )
        try:
            result = timed(what, make(), options, image)
        except (RuntimeError, AssertionError) as error:
            result = {"what": what, "error": str(error).splitlines()[0], "torch": torch.__version__}
        result["step"] = text
        if reports:
            print(json.dumps(result), flush=True)
        if chosen.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
