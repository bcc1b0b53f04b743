#!/usr/bin/env python3
"""A picture painted in the style of another by PyTorch, as `gpunn stylize` does it: VGG-19 up to conv3_1, L-BFGS.

    python3 bench/peers/style.py content.png style.png vgg19_conv3_1.safetensors --device cuda --steps 500
    python3 bench/peers/style.py content.png style.png vgg19_conv3_1.safetensors --compare "gpunn" --backend cuda_tiled

The losses, their weights, the start and the settings of L-BFGS are gpunn's (docs/style-transfer.md). Both pictures are
taken as they are. With --compare the program also runs gpunn and prints both.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

CONVOLUTIONS = {0: "1_1", 2: "1_2", 5: "2_1", 7: "2_2", 10: "3_1"}  # by their place in torchvision's `features`
CONTENT, STYLE = ("3_1",), ("1_1", "2_1", "3_1")
CONTENT_WEIGHT, STYLE_WEIGHT = 1.0, 1e5
MEAN = (123.68, 116.779, 103.939)


def tensors_of(path):
    """The tensors of a .safetensors file, by name."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, begin = json.loads(data[8 : 8 + length]), 8 + length
    kinds = {"F32": np.float32, "F16": np.float16}
    found = {}
    for name, one in header.items():
        if name != "__metadata__":
            first, last = one["data_offsets"]
            values = np.frombuffer(data[begin + first : begin + last], kinds[one["dtype"]]).reshape(one["shape"])
            found[name] = torch.from_numpy(values.astype(np.float32))
    return found


def picture(path, device):
    values = np.asarray(Image.open(path).convert("RGB"), np.float32) / 255
    return torch.from_numpy(values).permute(2, 0, 1)[None].contiguous().to(device)


class Features(torch.nn.Module):
    def __init__(self, path, layout):
        super().__init__()
        tensors = tensors_of(path)
        for place in CONVOLUTIONS:
            weight = tensors[f"features.{place}.weight"].contiguous(memory_format=layout)
            self.register_buffer(f"weight{place}", weight)
            self.register_buffer(f"bias{place}", tensors[f"features.{place}.bias"])
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.layout = layout

    def forward(self, image):
        x, seen = (255 * image - self.mean).contiguous(memory_format=self.layout), {}
        for place, name in CONVOLUTIONS.items():
            if place in (5, 10):
                x = functional.max_pool2d(x, 2)
            x = functional.conv2d(x, getattr(self, f"weight{place}"), getattr(self, f"bias{place}"), padding=1).relu()
            seen[name] = x.float()
        return seen


def gram(x):
    rows = x.flatten(2)
    return rows @ rows.transpose(1, 2) / rows[0].numel()


def painted(chosen):
    device = torch.device(chosen.device)
    on_gpu = device.type == "cuda"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = chosen.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    layout = torch.channels_last if chosen.layout == "channels_last" else torch.contiguous_format
    features = Features(chosen.weights, layout).to(device)
    content, style = picture(chosen.content, device), picture(chosen.style, device)

    def look_at(image):
        with torch.autocast(device.type, torch.bfloat16, enabled=chosen.precision == "bf16"):
            return features(image)

    with torch.no_grad():
        wanted = {name: x.clone() for name, x in look_at(content).items() if name in CONTENT}
        grams = {name: gram(x) for name, x in look_at(style).items() if name in STYLE}

    def loss_of(image):
        seen = look_at(image)
        loss = sum(functional.mse_loss(seen[name], wanted[name]) for name in CONTENT) * (CONTENT_WEIGHT / len(CONTENT))
        return loss + STYLE_WEIGHT * sum(functional.mse_loss(gram(seen[name]), grams[name]) for name in STYLE)

    def paint(steps):
        image = content.clone().requires_grad_()
        optimizer = torch.optim.LBFGS(
            [image],
            max_iter=steps,
            max_eval=10 * steps,
            history_size=chosen.history,
            tolerance_change=0,
            tolerance_grad=0,
        )
        history = []

        def closure():
            optimizer.zero_grad()
            loss = loss_of(image)
            loss.backward()
            history.append(loss.detach())
            return loss

        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.step(closure)
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - begin, [float(loss) for loss in history]

    paint(20)
    seconds, history = paint(chosen.steps)
    return {"program": f"PyTorch {torch.__version__}", "seconds": seconds, "history": history}


def by_gpunn(chosen):
    with tempfile.TemporaryDirectory() as folder:
        command = [chosen.compare, "stylize", "--content", chosen.content, "--style", chosen.style, "--size", "0"]
        command += ["--weights", chosen.weights, "--to", f"{folder}/painted.png", "--backend", chosen.backend, "--json"]
        command += ["--steps", str(chosen.steps), "--history", str(chosen.history), "--precision", chosen.precision]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"style: '{' '.join(command)}' failed ({done.returncode})")
        report = json.loads(done.stdout)
        return {"program": f"gpunn, {chosen.backend}", "seconds": report["seconds"], "history": report["history"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("content")
    parser.add_argument("style")
    parser.add_argument("weights")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--history", type=int, default=20, help="steps that L-BFGS remembers")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32", help="bf16: autocast")
    parser.add_argument("--layout", choices=["packed", "channels_last"], default="packed", help="PyTorch's, of images")
    parser.add_argument("--compare", metavar="GPUNN", help="the program, to run it, too")
    parser.add_argument("--backend", default="cpu", help="of gpunn")
    chosen = parser.parse_args()
    for one in [painted(chosen)] + ([by_gpunn(chosen)] if chosen.compare else []):
        history = one.pop("history")
        one |= {"precision": chosen.precision, "layout": chosen.layout, "steps": chosen.steps}
        one |= {f"loss_{step}": history[step] for step in (0, 10, 100, 300) if step < len(history)}
        print(json.dumps(one | {"loss_last": history[-1]}), flush=True)


if __name__ == "__main__":
    main()
