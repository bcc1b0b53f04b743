#!/usr/bin/env python3
"""A training step of FCOS on ResNet-18 at 512x512 in PyTorch: assignment, losses and AdamW within it.

With --infer, one image from host memory to its boxes: the network with decoding as a CUDA graph (--mode graph), then
torchvision's suppression, which no graph takes.
"""

import json
import sys

import torch
from fcos import Candidates, Fcos, found, loss_of, points_of
from step import allow, captured, options, times_of

SIZE, BOXES, CLASSES = 512, 32, 20


def training(chosen, device, layout):
    model = Fcos(CLASSES).to(device, memory_format=layout)
    images = torch.rand(chosen.batch, 3, SIZE, SIZE, device=device).to(memory_format=layout)
    points = points_of(SIZE, SIZE, device)
    corner = torch.rand(chosen.batch, BOXES, 2, device=device) * SIZE * 0.7
    boxes = torch.cat([corner, corner + 20 + torch.rand_like(corner) * SIZE * 0.25], -1)
    classes = torch.randint(0, CLASSES, (chosen.batch, BOXES), device=device)
    on_gpu = device.type == "cuda"
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=5e-4, weight_decay=0.05, fused=on_gpu, capturable=chosen.mode == "graph"
    )
    run = torch.compile(model, mode="reduce-overhead", dynamic=False) if chosen.mode == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=chosen.precision == "bf16"):
            output = run(images)
        loss_of(output, points, boxes, classes).backward()
        optimizer.step()

    return captured(step, chosen.warmup) if chosen.mode == "graph" else step


def inference(chosen, device, layout):
    kind = torch.bfloat16 if chosen.precision == "bf16" else torch.float32
    network = Fcos(CLASSES).eval().to(device, memory_format=layout)
    torch.nn.init.constant_(network.to_classes.bias, -3.2)  # some hundred candidates, as a trained detector has
    candidates = Candidates(network, SIZE, SIZE, device)
    given = torch.rand(1, 3, SIZE, SIZE, device=device).to(memory_format=layout)
    host = given.cpu().pin_memory() if device.type == "cuda" else given.clone()
    answers = []

    def forward():
        with torch.inference_mode(), torch.autocast(device.type, kind, enabled=kind != torch.float32):
            answers[:] = candidates(given)

    forward_all = captured(forward, chosen.warmup) if chosen.mode == "graph" else forward

    def call():
        with torch.inference_mode():
            given.copy_(host, non_blocking=True)
            forward_all()
            return [part.cpu() for part in found(*answers)]

    return call


def main():
    infer = "--infer" in sys.argv
    if infer:
        sys.argv.remove("--infer")
    chosen = options()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.manual_seed(1)
    device = torch.device(chosen.device)
    if device.type == "cuda":
        allow(chosen.precision, chosen.autotune)
        torch.cuda.reset_peak_memory_stats()
    layout = torch.channels_last if chosen.layout == "channels_last" else torch.contiguous_format
    if infer:
        chosen.batch = 1
    step = (inference if infer else training)(chosen, device, layout)
    what = "FCOS ResNet-18 512x512, one image with suppression" if infer else "FCOS ResNet-18 512x512 training step"
    print(json.dumps(times_of(what, step, chosen)))


if __name__ == "__main__":
    main()
