#!/usr/bin/env python3
"""A training step of VGG-11 on 32x32 colour images in PyTorch."""

from models import vgg11
from step import measure, options

if __name__ == "__main__":
    measure("VGG-11 training step", vgg11(), options(), (3, 32, 32))
