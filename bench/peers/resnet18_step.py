#!/usr/bin/env python3
"""A training step of ResNet-18 on 32x32 colour images in PyTorch."""

from models import resnet
from step import measure, options

if __name__ == "__main__":
    measure("ResNet-18 training step", resnet(18), options(), (3, 32, 32))
