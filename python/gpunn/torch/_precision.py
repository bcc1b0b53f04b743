"""Reads PyTorch's flags for the precision of f32 products on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

CONVOLUTIONS = frozenset({"conv2d", "conv2d_bias_activation"})
PRODUCTS = CONVOLUTIONS | {"matmul", "batch_matmul", "matmul_bias_activation", "attention"}


def _reader(kind: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
    # Since PyTorch 2.9 there are two ways to set this, and the older one can't be read once both were used. The newer
    # one's property takes ten times as long as what it calls.
    get = getattr(torch._C, "_get_fp32_precision_getter", None)
    if get is not None:
        return get, ("cuda", kind)
    older = torch.backends.cudnn if kind == "conv" else torch.backends.cuda.matmul
    return lambda: bool(older.allow_tf32), ()


_CONVOLUTIONS = _reader("conv")
_PRODUCTS = _reader("matmul")


def flag_of(op: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """The function, with its arguments, that says what a product on a CUDA device may be rounded to."""
    return _CONVOLUTIONS if op in CONVOLUTIONS else _PRODUCTS


def allowed(op: str, cuda: bool) -> str:
    """``tf32`` for a product on a CUDA device where PyTorch's flags allow it, or ``fp32``."""
    if not cuda or op not in PRODUCTS:
        return "fp32"
    read, arguments = flag_of(op)
    return "tf32" if read(*arguments) in ("tf32", True) else "fp32"
