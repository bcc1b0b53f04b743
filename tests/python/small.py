"""Training runs that take a second."""

from __future__ import annotations

from typing import Any


def experiment(**changes: Any) -> dict[str, Any]:
    """LeNet-5 on digits that gpunn draws itself: 20 steps an epoch."""
    return {
        "model": "lenet5",
        "data": {"dataset": "digits", "batch_size": 20, "synthetic_train": 400, "synthetic_test": 100},
        "optimizer": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9},
        "training": {"epochs": 2, "seed": 3},
        "backend": "cpu",
        **changes,
    }


# Shapes on 40 by 52 pixels, of five classes.
SHAPES: dict[str, Any] = {
    "dataset": "drawn_shapes",
    "image_size": [40, 52],
    "batch_size": 8,
    "synthetic_train": 24,
    "synthetic_test": 8,
}


def shapes(model: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Three steps of a model that gives each pixel one of five classes."""
    return {
        "task": "segmentation",
        "model": model,
        "data": SHAPES,
        "optimizer": {"type": "adam", "learning_rate": 0.003},
        "training": {"epochs": 1, "seed": 3},
        "backend": "cpu",
        **changes,
    }
