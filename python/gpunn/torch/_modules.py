"""Modules of ``torch.nn`` whose forward runs on gpunn. They are subclasses, so that a module can turn into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gpunn.ops import _backend as _backends

_ops = torch.ops.gpunn


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


class Conv2d(nn.Conv2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        backend = _backend(self)
        if _is_faster_channels_last(input, backend):
            input = input.contiguous(memory_format=torch.channels_last)
        padding = (0, 0) if self.padding == "valid" else self.padding
        attributes: dict[str, Any] = {
            "stride": self.stride,
            "pad": padding,
            "dilation": self.dilation,
            "groups": self.groups,
            "backend": backend,
        }
        if self.bias is None:
            return _ops.conv2d(input, self.weight, **attributes)  # type: ignore[no-any-return]
        return _ops.conv2d_bias_activation(input, self.weight, self.bias, **attributes)  # type: ignore[no-any-return]


class Linear(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        # A view, of the same shape too, is a node of autograd's graph, which costs as much as a small layer's product.
        rows = input if input.dim() == 2 else input.reshape(-1, self.in_features)
        backend = _backend(self)
        if self.bias is None:
            y = _ops.matmul(rows, self.weight, transpose_b=True, backend=backend)
        else:
            y = _ops.matmul_bias_activation(rows, self.weight, self.bias, transpose_b=True, backend=backend)
        return y if rows is input else y.reshape(*input.shape[:-1], self.out_features)  # type: ignore[no-any-return]


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        backend = _backend(self)
        if not self.training:
            return _ops.batch_norm_inference(  # type: ignore[no-any-return]
                input, self.weight, self.bias, self.running_mean, self.running_var, epsilon=self.eps, backend=backend
            )
        if input.numel() == input.size(1) and input.size(0) == 1:
            raise ValueError(f"expected more than one value per channel when training, found {tuple(input.shape)}")
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        y, _, _ = _ops.batch_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            epsilon=self.eps,
            momentum=self.momentum,
            backend=backend,
        )
        return y  # type: ignore[no-any-return]


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    pass


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    pass


class LayerNorm(nn.LayerNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        rows = input if input.dim() == 2 else input.reshape(-1, self.normalized_shape[0])
        y, _, _ = _ops.layer_norm(rows, self.weight, self.bias, epsilon=self.eps, backend=_backend(self))
        return y if rows is input else y.reshape(input.shape)  # type: ignore[no-any-return]


class ReLU(nn.ReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _ops.relu(input, backend=_backend(self))  # type: ignore[no-any-return]


class LeakyReLU(nn.LeakyReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _ops.leaky_relu(input, slope=self.negative_slope, backend=_backend(self))  # type: ignore[no-any-return]


class Sigmoid(nn.Sigmoid):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _ops.sigmoid(input, backend=_backend(self))  # type: ignore[no-any-return]


class Tanh(nn.Tanh):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _ops.tanh(input, backend=_backend(self))  # type: ignore[no-any-return]


class GELU(nn.GELU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _ops.gelu(input, tanh=self.approximate == "tanh", backend=_backend(self))  # type: ignore[no-any-return]


class SiLU(nn.SiLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _ops.silu(input, backend=_backend(self))  # type: ignore[no-any-return]


class MaxPool2d(nn.MaxPool2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)  # type: ignore[no-any-return]
        return _ops.max_pool2d(  # type: ignore[no-any-return]
            input,
            window=_pair(self.kernel_size),
            stride=_pair(self.stride),
            pad=_pair(self.padding),
            backend=_backend(self),
        )


class AvgPool2d(nn.AvgPool2d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        return _ops.avg_pool2d(  # type: ignore[no-any-return]
            input,
            window=_pair(self.kernel_size),
            stride=_pair(self.stride),
            pad=_pair(self.padding),
            count_padding=self.count_include_pad,
            backend=_backend(self),
        )


class AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    """To one pixel: the mean of each image."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() != 4:
            return super().forward(input)
        window = tuple(input.shape[2:])
        return _ops.avg_pool2d(input, window=window, stride=window, backend=_backend(self))  # type: ignore[no-any-return]


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
