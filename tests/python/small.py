"""A training that takes a second."""

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
