"""Modules of ``torch.nn`` whose forward runs on gpunn. They are subclasses, so that a module can turn into one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from gpunn.torch._direct import call
from gpunn.torch._twin import ModuleOp, Twin, twin_of

aten = torch.ops.aten


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _first(*reasons: tuple[bool, str]) -> str | None:
    return next((reason for holds, reason in reasons if holds), None)


def _refuses_nothing(module: Any) -> str | None:
    return None


def _no_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {}


def _any(module: Any, input: torch.Tensor) -> bool:
    return True


def _has_images(module: Any, input: torch.Tensor) -> bool:
    return bool(input.dim() == 4)


# --- Products ---


def _conv_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    pad = (0, 0) if module.padding == "valid" else module.padding
    return {"stride": module.stride, "pad": pad, "dilation": module.dilation, "groups": module.groups}


_CONV = ModuleOp("conv2d", _conv_attributes, _has_images, ("weight",), saves=(0, 1))
_CONV_BIAS = ModuleOp("conv2d_bias_activation", _conv_attributes, _has_images, ("weight", "bias"), saves=(0, 1))


def _conv(module: Any) -> ModuleOp:
    return _CONV if module.bias is None else _CONV_BIAS


def _refuses_conv(module: nn.Conv2d) -> str | None:
    return _first(
        (module.weight is None, "no weight"),
        (module.padding_mode != "zeros", f"padding_mode '{module.padding_mode}'"),
        (module.padding == "same", "padding 'same'"),
    )


def _linear_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"transpose_b": True}


def _linear_shapes(tensors: Sequence[torch.Tensor]) -> tuple[tuple[int, ...], ...]:
    width = tensors[0].shape[-1]
    return ((tensors[0].numel() // width, width), *(tuple(one.shape) for one in tensors[1:]))


def _has_columns(module: Any, input: torch.Tensor) -> bool:
    return bool(input.dim() > 0 and input.shape[-1] == module.weight.shape[1])


_LINEAR = ModuleOp("matmul", _linear_attributes, _has_columns, ("weight",), shapes=_linear_shapes)
_LINEAR_BIAS = ModuleOp(
    "matmul_bias_activation", _linear_attributes, _has_columns, ("weight", "bias"), shapes=_linear_shapes
)


def _linear(module: Any) -> ModuleOp:
    return _LINEAR if module.bias is None else _LINEAR_BIAS


def _refuses_linear(module: Any) -> str | None:
    return _first((module.weight is None, "no weight"))


# --- Norms ---


def _norm_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"epsilon": module.eps}


def _batch_norm_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"epsilon": module.eps, "momentum": module.momentum}


def _has_channels(module: Any, input: torch.Tensor) -> bool:
    dims = (4,) if isinstance(module, nn.BatchNorm2d) else (2, 3)
    many = not module.training or input.numel() > input.shape[1]
    return bool(input.dim() in dims and input.shape[1] == module.weight.shape[0] and many)


_OF_BATCH_NORM: Any = (_has_channels, ("weight", "bias"), ("running_mean", "running_var"))
_BATCH_NORM = ModuleOp("batch_norm", _batch_norm_attributes, *_OF_BATCH_NORM)
_BATCH_NORM_INFERENCE = ModuleOp("batch_norm_inference", _norm_attributes, *_OF_BATCH_NORM)


def _batch_norm(module: Any) -> ModuleOp:
    return _BATCH_NORM if module.training else _BATCH_NORM_INFERENCE


def _refuses_batch_norm(module: Any) -> str | None:
    return _first(
        (module.weight is None, "affine=False"),
        (module.bias is None, "no bias"),
        (module.training and not module.track_running_stats, "track_running_stats=False"),
        (module.running_mean is None or module.running_var is None, "no running statistics"),
        (module.training and module.momentum is None, "momentum=None"),
    )


def _layer_norm_shapes(tensors: Sequence[torch.Tensor]) -> tuple[tuple[int, ...], ...]:
    width = tensors[1].numel()
    return ((tensors[0].numel() // width, width), *((width,) for _ in tensors[1:]))


def _has_rows(module: Any, input: torch.Tensor) -> bool:
    shape = tuple(module.normalized_shape)
    return tuple(input.shape[-len(shape) :]) == shape == tuple(module.weight.shape)


_LAYER_NORM = ModuleOp("layer_norm", _norm_attributes, _has_rows, ("weight", "bias"), shapes=_layer_norm_shapes)


def _refuses_layer_norm(module: Any) -> str | None:
    return _first((module.weight is None or module.bias is None, "no weight or no bias"))


# --- Activations ---


def _leaky_relu_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"slope": module.negative_slope}


def _gelu_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"tanh": module.approximate == "tanh"}


def _refuses_gelu(module: Any) -> str | None:
    return _first((module.approximate not in ("none", "tanh"), f"approximate={module.approximate!r}"))


_RELU = ModuleOp("relu", _no_attributes, _any, from_output=lambda _, dy, y: aten.threshold_backward(dy, y, 0))
_SIGMOID = ModuleOp("sigmoid", _no_attributes, _any, from_output=lambda _, dy, y: aten.sigmoid_backward(dy, y))
_TANH = ModuleOp("tanh", _no_attributes, _any, from_output=lambda _, dy, y: aten.tanh_backward(dy, y))
_SILU = ModuleOp("silu", _no_attributes, _any)
_LEAKY_RELU = ModuleOp("leaky_relu", _leaky_relu_attributes, _any)
_GELU = ModuleOp("gelu", _gelu_attributes, _any)

# --- Pooling ---


def _pool_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    stride = module.kernel_size if module.stride is None else module.stride
    return {"window": _pair(module.kernel_size), "stride": _pair(stride), "pad": _pair(module.padding)}


def _average_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {**_pool_attributes(module, input), "count_padding": module.count_include_pad}


def _whole_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    window = tuple(input.shape[2:])
    return {"window": window, "stride": window}


_MAX_POOL = ModuleOp("max_pool2d", _pool_attributes, _has_images)
_AVERAGE_POOL = ModuleOp("avg_pool2d", _average_attributes, _has_images, saves=(0,))
_MEAN = ModuleOp("avg_pool2d", _whole_attributes, _has_images)


def _refuses_pool(module: Any) -> str | None:
    pad, window = _pair(module.padding), _pair(module.kernel_size)
    return _first(
        (bool(module.ceil_mode), "ceil_mode=True"),
        (bool(getattr(module, "return_indices", False)), "return_indices=True"),
        (_pair(getattr(module, "dilation", 1)) != (1, 1), "dilation"),
        (getattr(module, "divisor_override", None) is not None, "divisor_override"),
        (any(2 * p > w for p, w in zip(pad, window, strict=True)), "padding over half the window"),
    )


def _refuses_adaptive(module: Any) -> str | None:
    size = module.output_size
    return None if size in (1, (1, 1), [1, 1]) else f"output_size {size}"


# --- Classes ---

_POOL = ("kernel_size", "stride", "padding", "ceil_mode")
_OF_CONV = ("stride", "padding", "dilation", "groups", "padding_mode", "_reversed_padding_repeated_twice")
_OF_NORM = ("eps", "momentum", "track_running_stats")

_TWINS = [
    twin_of(nn.Conv2d(1, 1, 1), _OF_CONV, _refuses_conv, _conv),
    twin_of(nn.Linear(1, 1), (), _refuses_linear, _linear),
    twin_of(nn.BatchNorm1d(1), _OF_NORM, _refuses_batch_norm, _batch_norm),
    twin_of(nn.BatchNorm2d(1), _OF_NORM, _refuses_batch_norm, _batch_norm),
    twin_of(nn.LayerNorm(1), ("normalized_shape", "eps"), _refuses_layer_norm, lambda _: _LAYER_NORM),
    twin_of(nn.ReLU(), ("inplace",), _refuses_nothing, lambda _: _RELU),
    twin_of(nn.LeakyReLU(), ("negative_slope", "inplace"), _refuses_nothing, lambda _: _LEAKY_RELU),
    twin_of(nn.Sigmoid(), (), _refuses_nothing, lambda _: _SIGMOID),
    twin_of(nn.Tanh(), (), _refuses_nothing, lambda _: _TANH),
    twin_of(nn.GELU(), ("approximate",), _refuses_gelu, lambda _: _GELU),
    twin_of(nn.SiLU(), ("inplace",), _refuses_nothing, lambda _: _SILU),
    twin_of(nn.MaxPool2d(1), (*_POOL, "dilation", "return_indices"), _refuses_pool, lambda _: _MAX_POOL),
    twin_of(nn.AvgPool2d(1), (*_POOL, "count_include_pad", "divisor_override"), _refuses_pool, lambda _: _AVERAGE_POOL),
    twin_of(nn.AdaptiveAvgPool2d(1), ("output_size",), _refuses_adaptive, lambda _: _MEAN),
]


def _counterpart(twin: Twin) -> type[nn.Module]:
    name = twin.original.__name__

    def forward(self: Any, input: torch.Tensor) -> Any:
        return call(self, input)

    def scriptable(self: Any) -> Any:
        """The module for torch.jit.script."""
        found = copy.copy(self)
        found.__class__ = twin.original
        return found

    forward.__qualname__ = f"{name}.forward"
    body = {"forward": forward, "__prepare_scriptable__": scriptable, "_gpunn_twin": twin}
    # Named as it can be found here, for pickle.
    return type(name, (twin.original,), {**body, "__module__": __name__, "__qualname__": name})


COUNTERPARTS: dict[type[nn.Module], type[nn.Module]] = {twin.original: _counterpart(twin) for twin in _TWINS}
globals().update({kind.__name__: kind for kind in COUNTERPARTS.values()})
