"""Modules, changes, inputs and modes at random, compared with PyTorch's own modules (``torch_campaign.py``).

``GPUNN_TORCH_STEPS`` and ``GPUNN_TORCH_SEED`` make the run longer and another one.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch_campaign  # noqa: E402
from gpunn.torch._direct import First  # noqa: E402
from gpunn.torch._prepared import Prepared  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def test_no_step_differs_from_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, seed = int(os.environ.get("GPUNN_TORCH_STEPS", "400")), int(os.environ.get("GPUNN_TORCH_SEED", "1"))
    runs: list[str] = []

    def counted(function: Any) -> Any:
        def call(self: Prepared, given: Any) -> Any:
            runs.append(self.info.name)
            return function(self, given)

        return call

    monkeypatch.setattr(Prepared, "run", counted(Prepared.run))
    monkeypatch.setattr(Prepared, "run_over", counted(Prepared.run_over))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = torch_campaign.run(seed, steps, print)
    finally:
        torch.set_num_threads(threads)
    assert not found, f"{len(found)} differences, each from its own world:\n" + "\n".join(found[:5])
    assert len(runs) > steps / 6, "gpunn runs a good part of the calls"


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign sees a gradient that is off by a thousandth, and prints what led to it."""
    backward: Any = First.backward
    monkeypatch.setattr(
        First,
        "backward",
        staticmethod(lambda ctx, dy: tuple(one if one is None else one * 1.001 for one in backward(ctx, dy))),
    )
    found = torch_campaign.run(1, 100)
    assert found
    assert found[0].startswith("world ")
    assert "of seed 1" in found[0]
