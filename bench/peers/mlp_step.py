#!/usr/bin/env python3
"""A training step of the perceptron of models/mlp.yaml, 784-128-10, in PyTorch."""

from torch import nn

from step import measure, options

if __name__ == "__main__":
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    measure("MLP 784-128-10 training step", model, options())
