#!/usr/bin/env python3
"""A training step of the network of depthwise convolutions on 32x32 colour images in PyTorch."""

from models import depthwise
from step import measure, options

if __name__ == "__main__":
    measure("depthwise training step", depthwise(), options(), (3, 32, 32))
