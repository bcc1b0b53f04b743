"""Modules of ``torch.nn`` whose forward runs on gpunn. They are subclasses, so that a module can turn into one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from gpunn.ops import _backend as _backends
from gpunn.torch._direct import ModuleOp, call


def _backend(module: nn.Module) -> str:
    return str(module.__dict__.get("_gpunn_backend", ""))


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _is_faster_channels_last(input: torch.Tensor, backend: str) -> bool:
    """Whether gpunn's own kernels of the host run a convolution. They compute in channels-last order, in which the
    modules that follow leave the images. A plugin gets images as they are, since it may know no other order.
    """
    name = backend.partition("#")[0]  # options follow
    if input.device.type != "cpu" or name not in ("", "cpu"):
        return False
    # A compiled model resolves its backends later, and the compiler can't read a context variable.
    return name == "cpu" or torch.compiler.is_compiling() or _backends.chosen() is None


def _has_bias(module: Any) -> bool:
    # The module's own way to a parameter takes as long as a small kernel, and is needed for one that is computed.
    return module._parameters.get("bias") is not None or module.bias is not None


def _conv_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    pad = (0, 0) if module.padding == "valid" else module.padding
    return {"stride": module.stride, "pad": pad, "dilation": module.dilation, "groups": module.groups}


_OF_CONV = ("stride", "padding", "dilation", "groups")
_CONV = ModuleOp("conv2d", _conv_attributes, ("weight",), settings=_OF_CONV)
_CONV_BIAS = ModuleOp("conv2d_bias_activation", _conv_attributes, ("weight", "bias"), settings=_OF_CONV)


class Conv2d(nn.Conv2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        if not input.is_cuda and _is_faster_channels_last(input, _backend(self)):
            input = input.contiguous(memory_format=torch.channels_last)
        return call(self, _CONV_BIAS if _has_bias(self) else _CONV, input)


def _linear_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"transpose_b": True}


_LINEAR = ModuleOp("matmul", _linear_attributes, ("weight",))
_LINEAR_BIAS = ModuleOp("matmul_bias_activation", _linear_attributes, ("weight", "bias"))


class Linear(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        # A view, of the same shape too, is a node of autograd's graph, which costs as much as a small layer's product.
        rows = input if input.dim() == 2 else input.reshape(-1, self.in_features)
        y = call(self, _LINEAR_BIAS if _has_bias(self) else _LINEAR, rows)
        return y if rows is input else y.reshape(*input.shape[:-1], self.out_features)


def _norm_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"epsilon": module.eps}


def _batch_norm_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    module._check_input_dim(input)
    if input.numel() == input.size(1) and input.size(0) == 1:
        raise ValueError(f"expected more than one value per channel when training, found {tuple(input.shape)}")
    return {"epsilon": module.eps, "momentum": module.momentum}


def _inference_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    module._check_input_dim(input)
    return _norm_attributes(module, input)


_OF_NORM = (("weight", "bias"), ("running_mean", "running_var"), ("eps", "momentum"))
_BATCH_NORM = ModuleOp("batch_norm", _batch_norm_attributes, *_OF_NORM)
_BATCH_NORM_INFERENCE = ModuleOp("batch_norm_inference", _inference_attributes, *_OF_NORM)


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return call(self, _BATCH_NORM_INFERENCE, input)
        y = call(self, _BATCH_NORM, input)
        if (counter := self._buffers.get("num_batches_tracked")) is not None:
            counter.add_(1)
        return y


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    pass


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    pass


_LAYER_NORM = ModuleOp("layer_norm", _norm_attributes, ("weight", "bias"), settings=("eps",))


class LayerNorm(nn.LayerNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        rows = input if input.dim() == 2 else input.reshape(-1, self.normalized_shape[0])
        y = call(self, _LAYER_NORM, rows)
        return y if rows is input else y.reshape(input.shape)


def _no_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {}


_RELU = ModuleOp("relu", _no_attributes, settings=("inplace",))
_SILU = ModuleOp("silu", _no_attributes, settings=("inplace",))
_SIGMOID = ModuleOp("sigmoid", _no_attributes)
_TANH = ModuleOp("tanh", _no_attributes)


class ReLU(nn.ReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _RELU, input)


class SiLU(nn.SiLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _SILU, input)


class Sigmoid(nn.Sigmoid):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _SIGMOID, input)


class Tanh(nn.Tanh):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _TANH, input)


def _leaky_relu_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"slope": module.negative_slope}


_LEAKY_RELU = ModuleOp("leaky_relu", _leaky_relu_attributes, settings=("negative_slope", "inplace"))


class LeakyReLU(nn.LeakyReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _LEAKY_RELU, input)


def _gelu_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"tanh": module.approximate == "tanh"}


_GELU = ModuleOp("gelu", _gelu_attributes, settings=("approximate",))


class GELU(nn.GELU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _GELU, input)


def _pool_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {"window": _pair(module.kernel_size), "stride": _pair(module.stride), "pad": _pair(module.padding)}


def _average_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    return {**_pool_attributes(module, input), "count_padding": module.count_include_pad}


def _whole_attributes(module: Any, input: torch.Tensor) -> dict[str, Any]:
    window = tuple(input.shape[2:])
    return {"window": window, "stride": window}


_OF_POOL = ("kernel_size", "stride", "padding")
_MAX_POOL = ModuleOp("max_pool2d", _pool_attributes, settings=_OF_POOL)
_AVERAGE_POOL = ModuleOp("avg_pool2d", _average_attributes, settings=(*_OF_POOL, "count_include_pad"))
_MEAN = ModuleOp("avg_pool2d", _whole_attributes)


class MaxPool2d(nn.MaxPool2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)  # type: ignore[no-any-return]
        return call(self, _MAX_POOL, input)


class AvgPool2d(nn.AvgPool2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _AVERAGE_POOL, input) if input.dim() == 4 else super().forward(input)


class AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    """To one pixel: the mean of each image."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, _MEAN, input) if input.dim() == 4 else super().forward(input)


def seen_whole(forward: Callable[[Any, torch.Tensor], torch.Tensor]) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    """torch.fx records a call of the module, as it does of PyTorch's own, and doesn't look into its ``forward``."""

    @functools.wraps(forward)
    def run(self: Any, input: torch.Tensor) -> torch.Tensor:
        if isinstance(input, fx.Proxy):
            tracer: Any = input.tracer
            return tracer.create_proxy("call_module", tracer.path_of_module(self), (input,), {})  # type: ignore[no-any-return]
        return forward(self, input)

    return run


# Why a module can't turn into its counterpart; None: it can.
Refusal = Callable[[Any], "str | None"]


def _first(*reasons: tuple[bool, str]) -> str | None:
    return next((reason for holds, reason in reasons if holds), None)


def _refuses_conv(module: nn.Conv2d) -> str | None:
    return _first(
        (module.padding_mode != "zeros", f"padding_mode '{module.padding_mode}'"),
        (module.padding == "same", "padding 'same'"),
        (module.weight.dtype not in _FLOATING, f"weights of {module.weight.dtype}"),
    )


def _refuses_batch_norm(module: nn.modules.batchnorm._BatchNorm) -> str | None:
    return _first(
        (not module.affine, "affine=False"),
        (not module.track_running_stats or module.running_mean is None, "track_running_stats=False"),
        (module.momentum is None, "momentum=None"),
        (module.affine and module.weight.dtype is not torch.float32, "parameters that are not float32"),
    )


def _refuses_pool(module: Any) -> str | None:
    pad, window = _pair(module.padding), _pair(module.kernel_size)
    return _first(
        (module.ceil_mode, "ceil_mode=True"),
        (getattr(module, "return_indices", False), "return_indices=True"),
        (_pair(getattr(module, "dilation", 1)) != (1, 1), "dilation"),
        (getattr(module, "divisor_override", None) is not None, "divisor_override"),
        (any(2 * p > w for p, w in zip(pad, window, strict=True)), "padding over half the window"),
    )


def _refuses_layer_norm(module: nn.LayerNorm) -> str | None:
    return _first(
        (len(module.normalized_shape) != 1, "more than one normalised dimension"),
        (module.weight is None or module.bias is None, "no weight or no bias"),
    )


def _refuses_adaptive(module: nn.AdaptiveAvgPool2d) -> str | None:
    size = module.output_size
    return None if size in (1, (1, 1), [1, 1]) else f"output_size {size}"


def _refuses_linear(module: nn.Linear) -> str | None:
    return None if module.weight.dtype in _FLOATING else f"weights of {module.weight.dtype}"


def _refuses_nothing(module: nn.Module) -> str | None:
    return None


_FLOATING = (torch.float32, torch.bfloat16, torch.float16)

COUNTERPARTS: dict[type[nn.Module], tuple[type[nn.Module], Refusal]] = {
    nn.Conv2d: (Conv2d, _refuses_conv),
    nn.Linear: (Linear, _refuses_linear),
    nn.BatchNorm1d: (BatchNorm1d, _refuses_batch_norm),
    nn.BatchNorm2d: (BatchNorm2d, _refuses_batch_norm),
    nn.LayerNorm: (LayerNorm, _refuses_layer_norm),
    nn.ReLU: (ReLU, _refuses_nothing),
    nn.LeakyReLU: (LeakyReLU, _refuses_nothing),
    nn.Sigmoid: (Sigmoid, _refuses_nothing),
    nn.Tanh: (Tanh, _refuses_nothing),
    nn.GELU: (GELU, _refuses_nothing),
    nn.SiLU: (SiLU, _refuses_nothing),
    nn.MaxPool2d: (MaxPool2d, _refuses_pool),
    nn.AvgPool2d: (AvgPool2d, _refuses_pool),
    nn.AdaptiveAvgPool2d: (AdaptiveAvgPool2d, _refuses_adaptive),
}
