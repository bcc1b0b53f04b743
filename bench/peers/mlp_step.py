#!/usr/bin/env python3
"""A training step of the perceptron of models/mlp.yaml, 784-128-10, in PyTorch."""

from models import mlp
from step import measure, options

if __name__ == "__main__":
    measure("MLP 784-128-10 training step", mlp(), options())
