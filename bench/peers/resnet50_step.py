#!/usr/bin/env python3
"""A training step of ResNet-50 on 28x28 grey images in PyTorch."""

from models import resnet
from step import measure, options

if __name__ == "__main__":
    measure("ResNet-50 training step", resnet(50, "mnist"), options())
