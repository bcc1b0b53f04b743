"""Modules of ``torch.nn`` whose forward runs on gpunn. They are subclasses, so that a module can turn into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gpunn.ops import _backend as _backends
from gpunn.torch._direct import call


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


def _own(module: nn.Module, *names: str) -> tuple[torch.Tensor, ...]:
    """Parameters and buffers of a module. The module's own way to them takes as long as a small kernel."""
    if torch.compiler.is_compiling():
        return tuple([getattr(module, name) for name in names])
    of = module.__dict__
    found = []
    for name in names:
        one = of["_parameters"].get(name)
        if one is None:
            one = of["_buffers"].get(name)
        found.append(getattr(module, name) if one is None else one)
    return tuple(found)


def _conv_attributes(stride: Any, padding: Any, dilation: Any, groups: int, backend: str) -> dict[str, Any]:
    pad = (0, 0) if padding == "valid" else padding
    return {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups, "backend": backend}


class Conv2d(nn.Conv2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        backend = _backend(self)
        if _is_faster_channels_last(input, backend):
            input = input.contiguous(memory_format=torch.channels_last)
        settings = (self.stride, self.padding, self.dilation, self.groups, backend)
        if self._parameters["bias"] is None:
            return call(self, "conv2d", (input, *_own(self, "weight")), settings, _conv_attributes)  # type: ignore[no-any-return]
        tensors = (input, *_own(self, "weight", "bias"))
        return call(self, "conv2d_bias_activation", tensors, settings, _conv_attributes)  # type: ignore[no-any-return]


def _linear_attributes(backend: str) -> dict[str, Any]:
    return {"transpose_b": True, "backend": backend}


class Linear(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        # A view, of the same shape too, is a node of autograd's graph, which costs as much as a small layer's product.
        rows = input if input.dim() == 2 else input.reshape(-1, self.in_features)
        settings = (_backend(self),)
        if self._parameters["bias"] is None:
            y = call(self, "matmul", (rows, *_own(self, "weight")), settings, _linear_attributes)
        else:
            tensors = (rows, *_own(self, "weight", "bias"))
            y = call(self, "matmul_bias_activation", tensors, settings, _linear_attributes)
        return y if rows is input else y.reshape(*input.shape[:-1], self.out_features)  # type: ignore[no-any-return]


def _norm_attributes(epsilon: float, backend: str) -> dict[str, Any]:
    return {"epsilon": epsilon, "backend": backend}


def _batch_norm_attributes(epsilon: float, momentum: float, backend: str) -> dict[str, Any]:
    return {"epsilon": epsilon, "momentum": momentum, "backend": backend}


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        backend = _backend(self)
        tensors = (input, *_own(self, "weight", "bias", "running_mean", "running_var"))
        if not self.training:
            return call(self, "batch_norm_inference", tensors, (self.eps, backend), _norm_attributes)  # type: ignore[no-any-return]
        if input.numel() == input.size(1) and input.size(0) == 1:
            raise ValueError(f"expected more than one value per channel when training, found {tuple(input.shape)}")
        if (counter := self._buffers.get("num_batches_tracked")) is not None:
            counter.add_(1)
        return call(self, "batch_norm", tensors, (self.eps, self.momentum, backend), _batch_norm_attributes)[0]  # type: ignore[no-any-return]


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    pass


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    pass


class LayerNorm(nn.LayerNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        rows = input if input.dim() == 2 else input.reshape(-1, self.normalized_shape[0])
        tensors = (rows, *_own(self, "weight", "bias"))
        y = call(self, "layer_norm", tensors, (self.eps, _backend(self)), _norm_attributes)[0]
        return y if rows is input else y.reshape(input.shape)  # type: ignore[no-any-return]


def _no_attributes(backend: str) -> dict[str, Any]:
    return {"backend": backend}


class ReLU(nn.ReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, "relu", (input,), (_backend(self),), _no_attributes, self.inplace)  # type: ignore[no-any-return]


class LeakyReLU(nn.LeakyReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        settings = (self.negative_slope, _backend(self))
        return call(self, "leaky_relu", (input,), settings, _slope_attributes, self.inplace)  # type: ignore[no-any-return]


def _slope_attributes(slope: float, backend: str) -> dict[str, Any]:
    return {"slope": slope, "backend": backend}


class Sigmoid(nn.Sigmoid):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, "sigmoid", (input,), (_backend(self),), _no_attributes)  # type: ignore[no-any-return]


class Tanh(nn.Tanh):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, "tanh", (input,), (_backend(self),), _no_attributes)  # type: ignore[no-any-return]


class GELU(nn.GELU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, "gelu", (input,), (self.approximate, _backend(self)), _gelu_attributes)  # type: ignore[no-any-return]


def _gelu_attributes(approximate: str, backend: str) -> dict[str, Any]:
    return {"tanh": approximate == "tanh", "backend": backend}


class SiLU(nn.SiLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return call(self, "silu", (input,), (_backend(self),), _no_attributes, self.inplace)  # type: ignore[no-any-return]


def _pool_attributes(window: Any, stride: Any, pad: Any, backend: str) -> dict[str, Any]:
    return {"window": _pair(window), "stride": _pair(stride), "pad": _pair(pad), "backend": backend}


def _average_attributes(window: Any, stride: Any, pad: Any, count_padding: bool, backend: str) -> dict[str, Any]:
    return {**_pool_attributes(window, stride, pad, backend), "count_padding": count_padding}


class MaxPool2d(nn.MaxPool2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)  # type: ignore[no-any-return]
        settings = (self.kernel_size, self.stride, self.padding, _backend(self))
        return call(self, "max_pool2d", (input,), settings, _pool_attributes)  # type: ignore[no-any-return]


class AvgPool2d(nn.AvgPool2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        settings = (self.kernel_size, self.stride, self.padding, self.count_include_pad, _backend(self))
        return call(self, "avg_pool2d", (input,), settings, _average_attributes)  # type: ignore[no-any-return]


class AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    """To one pixel: the mean of each image."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        window = tuple(input.shape[2:])
        return call(self, "avg_pool2d", (input,), (window, window, 0, True, _backend(self)), _average_attributes)  # type: ignore[no-any-return]


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
