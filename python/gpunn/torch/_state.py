"""Whether PyTorch would only compute: no mode, no transformation and no tracer looks at what it does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad

_Keys = torch._C.DispatchKeySet
_AUTOCAST = ("cpu", "cuda")
_PLAIN = (torch.Tensor, nn.Parameter)

process = {"forked": False}
"""Backends do not survive a fork of their process."""
os.register_at_fork(after_in_child=lambda: process.update(forked=True))


def is_dual() -> bool:
    """Whether tensors may have tangents."""
    return bool(forward_ad._current_level >= 0)


def has_tangent(tensors: Sequence[Any]) -> bool:
    return is_dual() and any(
        forward_ad.unpack_dual(one).tangent is not None for one in tensors if isinstance(one, torch.Tensor)
    )


def computes_only() -> bool:
    """Whether PyTorch's dispatcher would call kernels and autograd only."""
    included = torch._C._dispatch_tls_local_include_set()
    for key in _EXPECTED:
        included = included.remove(key)
    return (
        included.raw_repr() == 0
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._get_tracing_state() is None
        and not is_dual()
    )


_EXPECTED = tuple(
    getattr(torch._C.DispatchKey, name)
    for name in ("BackendSelect", "ADInplaceOrView", "AutocastCPU", "AutocastCUDA")
    if hasattr(torch._C.DispatchKey, name)
)


def is_plain(tensor: Any) -> bool:
    """Whether a tensor is nothing but its numbers in memory of the host or of a CUDA device: no subclass, no fake, no
    wrapper of a transformation, no lazy negation or zero. Asked where PyTorch only computes."""
    if type(tensor) not in _PLAIN or tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "cuda"):
        return False
    keys = torch._C._dispatch_keys(tensor)
    return any(keys == one for one in _keys_of(tensor.device.type))


def _keys_of(device: str) -> list[Any]:
    """The keys of a new tensor, outside and inside of ``torch.inference_mode``."""
    found = _keys.get(device)
    if found is None:
        found = _keys[device] = []
        for inference in (False, True):
            with torch.inference_mode(inference):
                found.append(torch._C._dispatch_keys(torch.empty(0, device=device)))
    return found


_keys: dict[str, list[Any]] = {}
