#!/usr/bin/env python3
"""A training step of LeNet-5 in PyTorch."""

from models import lenet5
from step import measure, options

if __name__ == "__main__":
    measure("LeNet-5 training step", lenet5(), options())
