#!/usr/bin/env python3
"""A training step of LeNet-5, layer for layer that of models/lenet5.yaml, in PyTorch."""

from torch import nn

from step import measure, options

if __name__ == "__main__":
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
    measure("LeNet-5 training step", model, options())
