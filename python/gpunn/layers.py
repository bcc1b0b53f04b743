"""Layers of a network, with the names and the order of arguments that they have in PyTorch.

Each class is a layer type of the YAML models; ``gpunn help layers`` and docs/experiments.md have their keys. Sizes that
PyTorch asks for and that follow from the input (``in_channels``, ``in_features``, ``num_features``) are compared with
it when the network meets its first samples; None is "whatever comes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from gpunn._core import layer_types as _layer_types
from gpunn.errors import UsageError

Size = int | Sequence[int]


def _size(value: Size) -> int | list[int]:
    return list(value) if isinstance(value, Iterable) else value


class Node:
    """What a layer gives, or an input of the network: what another layer is called with."""

    def __init__(
        self,
        layer: Layer | None,
        inputs: Sequence[Node],
        shape: Sequence[int] | None = None,
        name: str = "",
        dtype: str = "f32",
    ) -> None:
        self.layer = layer
        self.inputs = list(inputs)
        self.shape = None if shape is None else [int(size) for size in shape]
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        if self.layer is not None:
            return f"<output of {self.layer!r}>"
        return f"Input({tuple(self.shape or ())}" + (f", name={self.name!r})" if self.name else ")")

    def __add__(self, other: Node) -> Node:
        return Add()(self, other)

    def __sub__(self, other: Node) -> Node:
        return Subtract()(self, other)

    def __mul__(self, other: Node) -> Node:
        return Multiply()(self, other)

    def __truediv__(self, other: Node) -> Node:
        return Divide()(self, other)


def Input(shape: Sequence[int], *, name: str = "", dtype: str = "float32") -> Node:  # noqa: N802  # as a layer
    """An input of a network: the shape of one sample, ``(channels, height, width)`` or ``(features,)``.

    Arrays are given to a network of several inputs by their names. ``dtype`` is "float32", which uint8 pixels become
    too; or "int32", of numbers that a layer such as :class:`Embedding` takes as they are.
    """
    types = {"float32": "f32", "int32": "i32"}
    if dtype not in types:
        raise UsageError(f"Input: dtype is one of {', '.join(types)}, found {dtype!r}")
    return Node(None, [], shape, name, types[dtype])


class Layer:
    """The base of all layers: a type of the YAML models, and its keys as far as they are not the default.

    Called with what another layer gives (``y = layer(x)``, ``z = Add()(x, y)`` or ``Add()([x, y])``) it returns a
    :class:`Node`. A layer has one place in one network.
    """

    type: ClassVar[str] = ""

    def __init__(self, name: str | None = None, **keys: Any) -> None:
        self.name = name
        self.keys: dict[str, Any] = {
            key: value for key, value in keys.items() if not _is_default(self.type, key, value)
        }
        self.expected: dict[str, int] = {}  # what the caller says of the input: {"in_channels": 3}

    @classmethod
    def _restored(cls, name: str, keys: Mapping[str, Any]) -> Layer:
        layer = cls.__new__(cls)
        Layer.__init__(layer, name, **keys)
        return layer

    def _expect(self, **sizes: int | None) -> None:
        for key, size in sizes.items():
            if size is not None:
                self.expected[key] = int(size)

    def __call__(self, *inputs: Node | Sequence[Node]) -> Node:
        nodes: list[Node] = []
        for one in inputs:
            nodes.extend(one if isinstance(one, Iterable) else [one])
        least, most = _inputs_of(self.type)
        others = [type(node).__name__ for node in nodes if not isinstance(node, Node)]
        if not least <= len(nodes) <= most or others:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise UsageError(
                f"{type(self).__name__} is called with {wanted} of what gpunn.Input and other layers give, "
                f"found {others[0] if others else len(nodes)}; arrays go into a network"
            )
        return Node(self, nodes)

    def __repr__(self) -> str:
        parts = [f"{key}={value!r}" for key, value in (self.expected | self.keys).items()]
        if self.name is not None:
            parts.append(f"name={self.name!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


class Plain(Layer):
    """The base of layers without keys."""

    def __init__(self, *, name: str | None = None) -> None:
        super().__init__(name)


class Conv2d(Layer):
    """2-D convolution of ``[C, H, W]``. ``padding`` may be "same"."""

    type = "conv2d"

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        init: str = "default",
        activation: str = "none",
        int8_weight: bool = False,
        name: str | None = None,
    ) -> None:
        margins: int | str | list[int] = padding if isinstance(padding, str) else _size(padding)
        super().__init__(
            name,
            filters=out_channels,
            kernel=_size(kernel_size),
            stride=_size(stride),
            padding=0 if margins == "valid" else margins,
            dilation=_size(dilation),
            groups=groups,
            bias=bias,
            init=init,
            activation=activation,
            int8_weight=int8_weight,
        )
        self._expect(in_channels=in_channels)


class Conv1d(Conv2d):
    """1-D convolution of ``[C, L]``. ``padding`` may be "same"."""

    type = "conv1d"


class Conv3d(Conv2d):
    """3-D convolution of ``[C, D, H, W]``. ``padding`` may be "same"."""

    type = "conv3d"


class ConvTranspose2d(Layer):
    """Transposed 2-D convolution of ``[C, H, W]``, which makes images larger."""

    type = "conv2d_transpose"

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        *,
        init: str = "default",
        activation: str = "none",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            filters=out_channels,
            kernel=_size(kernel_size),
            stride=_size(stride),
            padding=_size(padding),
            output_padding=_size(output_padding),
            dilation=_size(dilation),
            groups=groups,
            bias=bias,
            init=init,
            activation=activation,
        )
        self._expect(in_channels=in_channels)


class ConvTranspose1d(ConvTranspose2d):
    """Transposed 1-D convolution of ``[C, L]``, which makes lines longer."""

    type = "conv1d_transpose"


class ConvTranspose3d(ConvTranspose2d):
    """Transposed 3-D convolution of ``[C, D, H, W]``, which makes volumes larger."""

    type = "conv3d_transpose"


class Linear(Layer):
    """Weighted sums of ``[features]``, or of each token of ``[tokens, features]``."""

    type = "linear"

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        bias: bool = True,
        *,
        init: str = "default",
        activation: str = "none",
        int8_weight: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, units=out_features, bias=bias, init=init, activation=activation, int8_weight=int8_weight)
        self._expect(in_features=in_features)


class ReLU(Plain):
    """``max(x, 0)``."""

    type = "relu"


class ReLU6(Plain):
    """``min(max(x, 0), 6)``."""

    type = "relu6"


class LeakyReLU(Layer):
    """``x`` where it is above 0, else ``negative_slope * x``."""

    type = "leaky_relu"

    def __init__(self, negative_slope: float = 0.01, *, name: str | None = None) -> None:
        super().__init__(name, slope=negative_slope)


class Sigmoid(Plain):
    """``1 / (1 + exp(-x))``. If it is the last layer, the loss ``binary_cross_entropy`` takes its input."""

    type = "sigmoid"


class Tanh(Plain):
    """The hyperbolic tangent."""

    type = "tanh"


class GELU(Layer):
    """``x`` times the share of a standard normal distribution below it; ``approximate`` is "none" or "tanh"."""

    type = "gelu"

    def __init__(self, approximate: str = "none", *, name: str | None = None) -> None:
        super().__init__(name, approximate=approximate)


class SiLU(Plain):
    """``x * sigmoid(x)``."""

    type = "silu"


class Embedding(Layer):
    """A row of a table for each integer of a sample: ``[tokens]`` becomes ``[tokens, embedding_dim]``."""

    type = "embedding"

    def __init__(self, num_embeddings: int, embedding_dim: int, *, name: str | None = None) -> None:
        super().__init__(name, count=num_embeddings, width=embedding_dim)


class Quantize(Layer):
    """``x`` rounded to what eight bits can stand for: ``(q - zero_point) * scale``, ``q`` from 0 to 255."""

    type = "quantize"

    def __init__(self, scale: float, zero_point: int = 0, *, name: str | None = None) -> None:
        super().__init__(name, scale=scale, zero_point=zero_point)


class QuantizeLinear(Layer):
    """The integers that stand for ``x``: ``round(x / scale) + zero_point``, cut to ``low`` to ``high``.

    Scale and zero point are buffers of ``shape``, which broadcasts.
    """

    type = "quantize_linear"

    def __init__(self, low: int = 0, high: int = 255, shape: Size = 1, *, name: str | None = None) -> None:
        super().__init__(name, low=low, high=high, shape=_size(shape))


class DequantizeLinear(Layer):
    """What integers stand for: ``(x - zero_point) * scale``, with buffers as in ``QuantizeLinear``."""

    type = "dequantize_linear"

    def __init__(self, shape: Size = 1, *, name: str | None = None) -> None:
        super().__init__(name, shape=_size(shape))


class DynamicQuantize(Layer):
    """``x`` in integers from 0 to 255 by the range of the whole batch: the integers, their scale or zero point."""

    type = "dynamic_quantize"

    def __init__(self, gives: str = "values", *, name: str | None = None) -> None:
        super().__init__(name, gives=gives)


def _require_last(dim: int | None) -> None:
    if dim not in (None, 1, -1):
        raise UsageError(f"a softmax is over the classes of [rows, classes]: dim is 1, -1 or None, found {dim}")


class Softmax(Layer):
    """Probabilities of ``[classes]``. The loss ``cross_entropy`` takes the input of a softmax at the end."""

    type = "softmax"

    def __init__(self, dim: int | None = None, *, over: str = "classes", name: str | None = None) -> None:
        _require_last(dim)
        super().__init__(name, over=over)


class LogSoftmax(Layer):
    """The logarithms of :class:`Softmax`."""

    type = "log_softmax"

    def __init__(self, dim: int | None = None, *, over: str = "classes", name: str | None = None) -> None:
        _require_last(dim)
        super().__init__(name, over=over)


class ELU(Layer):
    """x where it is above 0, else ``alpha * (exp(x) - 1)``."""

    type = "elu"

    def __init__(self, alpha: float = 1.0, *, name: str | None = None) -> None:
        super().__init__(name, alpha=alpha)


class SELU(Plain):
    """1.0507 times an ELU with an alpha of 1.6733."""

    type = "selu"


class CELU(Layer):
    """x where it is above 0, else ``alpha * (exp(x / alpha) - 1)``."""

    type = "celu"

    def __init__(self, alpha: float = 1.0, *, name: str | None = None) -> None:
        super().__init__(name, alpha=alpha)


class Softplus(Plain):
    """``log(1 + exp(x))``."""

    type = "softplus"


class Softsign(Plain):
    """``x / (1 + |x|)``."""

    type = "softsign"


class Mish(Plain):
    """``x * tanh(softplus(x))``."""

    type = "mish"


class Hardsigmoid(Layer):
    """``min(max(slope * x + offset, 0), 1)``; the defaults are PyTorch's."""

    type = "hard_sigmoid"

    def __init__(self, slope: float = 0.16666667, offset: float = 0.5, *, name: str | None = None) -> None:
        super().__init__(name, slope=slope, offset=offset)


class Hardswish(Plain):
    """``x * min(max(x / 6 + 0.5, 0), 1)``."""

    type = "hard_swish"


class PReLU(Layer):
    """x where it is above 0, else a trained slope times x: one for all, or with ``channels`` one for each."""

    type = "prelu"

    def __init__(self, channels: bool = False, *, name: str | None = None) -> None:
        super().__init__(name, channels=channels)


class Clamp(Layer):
    """``min(max(x, low), high)``."""

    type = "clamp"

    def __init__(self, low: float = 0.0, high: float = 1.0, *, name: str | None = None) -> None:
        super().__init__(name, low=low, high=high)


class Abs(Plain):
    """``|x|``."""

    type = "abs"


class Exp(Plain):
    """The exponential function."""

    type = "exp"


class Log(Plain):
    """The natural logarithm."""

    type = "log"


class Erf(Plain):
    """The error function."""

    type = "erf"


class Power(Layer):
    """x to a power: 0.5 is the square root, -1 the reciprocal."""

    type = "power"

    def __init__(self, exponent: float = 2.0, *, name: str | None = None) -> None:
        super().__init__(name, exponent=exponent)


class Affine(Layer):
    """x times a weight plus a bias of ``shape``, which broadcasts; None: a number for each channel of ``[C, ...]``.

    With ``trained`` off they are constants.
    """

    type = "affine"

    def __init__(
        self,
        shape: Size | None = None,
        *,
        weight: bool = True,
        bias: bool = True,
        trained: bool = True,
        name: str | None = None,
    ) -> None:
        keys: dict[str, Any] = {} if shape is None else {"shape": _size(shape)}
        super().__init__(name, **keys, weight=weight, bias=bias, trained=trained)


class Reduce(Layer):
    """The "mean", "sum", "max", "min" or "prod" over dimensions of a sample, counted from 0."""

    type = "reduce"

    def __init__(
        self, function: str = "mean", dimensions: Size = 0, keep: bool = False, *, name: str | None = None
    ) -> None:
        super().__init__(name, function=function, dimensions=_size(dimensions), keep=keep)


class Round(Layer):
    """``x`` as a whole number; ``mode`` is "nearest", with halves to the even number, "floor", "ceil" or "trunc"."""

    type = "round"

    def __init__(self, mode: str = "nearest", *, name: str | None = None) -> None:
        super().__init__(name, mode=mode)


class Sign(Plain):
    """-1, 0 or 1."""

    type = "sign"


class Sin(Plain):
    """The sine of ``x`` in radians."""

    type = "sin"


class Cos(Plain):
    """The cosine of ``x`` in radians."""

    type = "cos"


class Tan(Plain):
    """The tangent of ``x`` in radians."""

    type = "tan"


class Asin(Plain):
    """The inverse sine, in radians."""

    type = "asin"


class Acos(Plain):
    """The inverse cosine, in radians."""

    type = "acos"


class Atan(Plain):
    """The inverse tangent, in radians."""

    type = "atan"


class Sinh(Plain):
    """The hyperbolic sine."""

    type = "sinh"


class Cosh(Plain):
    """The hyperbolic cosine."""

    type = "cosh"


class Asinh(Plain):
    """The inverse hyperbolic sine."""

    type = "asinh"


class Acosh(Plain):
    """The inverse hyperbolic cosine."""

    type = "acosh"


class Atanh(Plain):
    """The inverse hyperbolic tangent."""

    type = "atanh"


class MaxPool2d(Layer):
    """The largest of each window of ``[C, L]``, ``[C, H, W]`` or ``[C, D, H, W]``; ``stride`` None: the window's."""

    type = "max_pool"

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        *,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        keys: dict[str, Any] = {} if stride is None else {"stride": _size(stride)}
        super().__init__(
            name,
            window=_size(kernel_size),
            **keys,
            padding=_size(padding),
            dilation=_size(dilation),
            ceil_mode=ceil_mode,
        )


MaxPool1d = MaxPool2d
MaxPool3d = MaxPool2d


class AvgPool2d(Layer):
    """The mean of each window of ``[C, L]``, ``[C, H, W]`` or ``[C, D, H, W]``; ``stride`` None: the window's."""

    type = "avg_pool"

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        dilation: Size = 1,
        name: str | None = None,
    ) -> None:
        keys: dict[str, Any] = {} if stride is None else {"stride": _size(stride)}
        super().__init__(
            name,
            window=_size(kernel_size),
            **keys,
            padding=_size(padding),
            dilation=_size(dilation),
            count_padding=count_include_pad,
            ceil_mode=ceil_mode,
        )


AvgPool1d = AvgPool2d
AvgPool3d = AvgPool2d


class AdaptiveAvgPool2d(Layer):
    """Means of windows that give as many values in each dimension of ``[C, ...]`` as the size says."""

    type = "adaptive_avg_pool"

    def __init__(self, output_size: Size, *, name: str | None = None) -> None:
        super().__init__(name, size=_size(output_size))


AdaptiveAvgPool1d = AdaptiveAvgPool2d
AdaptiveAvgPool3d = AdaptiveAvgPool2d


class GlobalAvgPool2d(Plain):
    """The mean of each channel: ``[C, L]``, ``[C, H, W]`` or ``[C, D, H, W]`` to ``[C]``."""

    type = "global_avg_pool"


class GlobalMaxPool2d(Plain):
    """The largest of each channel: ``[C, L]``, ``[C, H, W]`` or ``[C, D, H, W]`` to ``[C]``."""

    type = "global_max_pool"


class Upsample(Layer):
    """``[C, H, W]`` with rows and columns multiplied, or, called with two layers, as many as the second one has.

    ``mode`` is "nearest" or "bilinear".
    """

    type = "upsample"

    def __init__(self, scale_factor: Size = 0, mode: str = "nearest", *, name: str | None = None) -> None:
        super().__init__(name, factor=_size(scale_factor), mode=mode)


class Resize2d(Layer):
    """``[C, H, W]`` with other rows and columns, as means of neighbours; 0: as many as before."""

    type = "resize"

    def __init__(self, rows: int = 0, columns: int = 0, *, name: str | None = None) -> None:
        super().__init__(name, rows=rows, columns=columns)


class BatchNorm2d(Layer):
    """Each channel of ``[C, ...]`` to a mean of 0 and a variance of 1, then times a weight plus a bias."""

    type = "batch_norm"

    def __init__(
        self, num_features: int | None = None, eps: float = 1e-5, momentum: float = 0.1, *, name: str | None = None
    ) -> None:
        super().__init__(name, epsilon=eps, momentum=momentum)
        self._expect(num_features=num_features)


BatchNorm1d = BatchNorm2d


class LayerNorm(Layer):
    """Normalises the last dimensions of a sample together: as many as ``normalized_shape`` has; None: all."""

    type = "layer_norm"

    def __init__(self, normalized_shape: Size | None = None, eps: float = 1e-5, *, name: str | None = None) -> None:
        shape = [] if normalized_shape is None else [normalized_shape]
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = list(shape[0])
        super().__init__(name, epsilon=eps, dimensions=len(shape))
        numbers = 1
        for size in shape:
            numbers *= int(size)  # type: ignore[arg-type]  # a flat list by now
        self._expect(normalized_shape=numbers if shape else None)


class GroupNorm(Layer):
    """Normalises each of equal groups of the channels of ``[C, ...]``, with a weight and a bias for each channel."""

    type = "group_norm"

    def __init__(
        self,
        num_groups: int = 32,
        num_channels: int | None = None,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name, groups=num_groups, epsilon=eps, affine=affine)
        self._expect(num_channels=num_channels)


class InstanceNorm2d(Layer):
    """Each channel of each sample ``[C, ...]`` to a mean of 0 and a variance of 1."""

    type = "instance_norm"

    def __init__(
        self, num_features: int | None = None, eps: float = 1e-5, *, affine: bool = False, name: str | None = None
    ) -> None:
        super().__init__(name, epsilon=eps, affine=affine)
        self._expect(num_features=num_features)


class L2Norm2d(Layer):
    """The channels of each pixel to the length ``scale``, times a weight for each channel (Liu et al., 2015)."""

    type = "l2_norm"

    def __init__(self, num_features: int | None = None, scale: float = 1.0, *, name: str | None = None) -> None:
        super().__init__(name, scale=scale)
        self._expect(num_features=num_features)


class ConditionalInstanceNorm2d(Layer):
    """As ``InstanceNorm2d``, with a weight and a bias a channel for each of ``styles`` (Dumoulin et al., 2017).

    ``style`` is the one that is painted; -1: row r of a batch has style r modulo ``styles``.
    """

    type = "conditional_instance_norm"

    def __init__(
        self,
        num_features: int | None = None,
        styles: int = 1,
        eps: float = 1e-5,
        *,
        style: int = -1,
        name: str | None = None,
    ) -> None:
        super().__init__(name, styles=styles, style=style, epsilon=eps)
        self._expect(num_features=num_features)


class LocalResponseNorm(Layer):
    """``x / (k + alpha / size * s) ** beta``, s the sum of the squares of ``size`` neighbouring channels."""

    type = "local_response_norm"

    def __init__(
        self, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, name: str | None = None
    ) -> None:
        super().__init__(name, size=size, alpha=alpha, beta=beta, k=k)


class Flatten(Plain):
    """All dimensions of a sample as one."""

    type = "flatten"


class Reshape(Layer):
    """The same numbers as a sample of another shape; one size may be -1: the rest."""

    type = "reshape"

    def __init__(self, shape: Sequence[int], *, name: str | None = None) -> None:
        super().__init__(name, shape=[int(size) for size in shape])


class Permute(Layer):
    """A sample's dimensions in another order, each by its number in the input, from 0 (the rows don't count)."""

    type = "transpose"

    def __init__(self, dims: Sequence[int], *, name: str | None = None) -> None:
        super().__init__(name, permutation=[int(dim) for dim in dims])


class Expand(Layer):
    """Sizes of 1 of a sample, repeated; ``shape`` has the sizes of all its dimensions."""

    type = "expand"

    def __init__(self, shape: Size, *, name: str | None = None) -> None:
        super().__init__(name, shape=_size(shape))


class ZeroPad2d(Layer):
    """``[C, H, W]`` with a border: a number for all sides, or PyTorch's ``(left, right, top, bottom)``.

    It is of zeros; with ``mode="reflect"`` the image is mirrored at its outermost pixels.
    """

    type = "pad"

    def __init__(self, padding: Size, *, mode: str = "zeros", name: str | None = None) -> None:
        sides = _size(padding)
        if not isinstance(sides, int):
            if len(sides) != 4:
                raise UsageError(f"padding is a number or (left, right, top, bottom), found {len(sides)} numbers")
            sides = sides[2:] + sides[:2]
        super().__init__(name, padding=sides, mode=mode)


class Slice(Layer):
    """Neighbours in a dimension of a sample: ``x[..., start : start + size, ...]``."""

    type = "slice"

    def __init__(self, start: int = 0, size: int = 1, dimension: int = 0, *, name: str | None = None) -> None:
        super().__init__(name, dimension=dimension, start=start, size=size)


class PixelShuffle(Layer):
    """``[C * factor**2, H, W]`` as an image of ``[C, H * factor, W * factor]``."""

    type = "pixel_shuffle"

    def __init__(self, upscale_factor: int, *, name: str | None = None) -> None:
        super().__init__(name, factor=upscale_factor)


class Dropout(Layer):
    """In training each value becomes 0 with probability ``p``, the others grow to keep the mean."""

    type = "dropout"

    def __init__(self, p: float = 0.5, *, name: str | None = None) -> None:
        super().__init__(name, p=p)


class Add(Plain):
    """The sum of two layers of the same shape; sizes of 1 are repeated."""

    type = "add"


class Multiply(Plain):
    """The product of two layers as in :class:`Add`, or of ``[C, ...]`` and a number for each channel."""

    type = "multiply"


class Subtract(Plain):
    """The first of two layers minus the second, as in :class:`Add`."""

    type = "subtract"


class Divide(Plain):
    """The first of two layers over the second, as in :class:`Add`."""

    type = "divide"


class Maximum(Plain):
    """The larger value of two layers, as in :class:`Add`."""

    type = "maximum"


class Minimum(Plain):
    """The smaller value of two layers, as in :class:`Add`."""

    type = "minimum"


class Matmul(Plain):
    """The matrix product of two layers, for each of the dimensions in front of the last two."""

    type = "matmul"


class Concat(Layer):
    """The channels, or features, or another dimension of two to 16 layers, concatenated."""

    type = "concat"

    def __init__(self, dimension: int = 0, *, name: str | None = None) -> None:
        super().__init__(name, dimension=dimension)


class Where(Plain):
    """The second of three layers where the first is not 0, else the third: ``Where()(condition, a, b)``."""

    type = "where"


class Compare(Layer):
    """1 where two layers compare so, else 0: "equal", "not_equal", "less", "less_or_equal", "greater", ..."""

    type = "compare"

    def __init__(self, comparison: str = "equal", *, name: str | None = None) -> None:
        super().__init__(name, **{"is": comparison})


class Gather(Layer):
    """The entries of a dimension at constant places: ``Gather(1)(x, places)``; a negative place gives zeros."""

    type = "gather"

    def __init__(self, dimension: int = 0, *, name: str | None = None) -> None:
        super().__init__(name, dimension=dimension)


class CumSum(Layer):
    """The sum of all entries of a dimension of a sample up to each entry."""

    type = "cumsum"

    def __init__(
        self, dimension: int = 0, *, exclusive: bool = False, reverse: bool = False, name: str | None = None
    ) -> None:
        super().__init__(name, dimension=dimension, exclusive=exclusive, reverse=reverse)


class ArgMax(Layer):
    """The place of the largest entry of a dimension of a sample, which stays with a size of 1."""

    type = "arg_max"

    def __init__(self, dimension: int = 0, *, last: bool = False, name: str | None = None) -> None:
        super().__init__(name, dimension=dimension, last=last)


class TopK(Layer):
    """The ``k`` largest entries of a dimension of a sample, from the largest on, or their places."""

    type = "top_k"

    def __init__(self, k: int, dimension: int = 0, *, places: bool = False, name: str | None = None) -> None:
        super().__init__(name, count=k, dimension=dimension, places=places)


class Op(Layer):
    """Any op of the catalogue, with its attributes: ``Op("reduce", kind="max", axes=[1])(x)``.

    It sees whole tensors, whose dimension 0 is the batch. ``output`` says which of its outputs is given, ``dtype`` what
    "copy" gives.
    """

    type = "op"

    def __init__(
        self, op: str, *, output: int = 0, dtype: str = "f32", name: str | None = None, **attributes: Any
    ) -> None:
        super().__init__(name, op=op, output=output, dtype=dtype, **attributes)


class Constant(Layer):
    """A tensor that is the same for all samples: ``Add()(x, Constant((3, 1, 1))())``."""

    type = "constant"

    def __init__(self, shape: Size, init: str = "zeros", *, trained: bool = True, name: str | None = None) -> None:
        super().__init__(name, shape=_size(shape), init=init, trained=trained)


class FCOSHead(Layer):
    """Boxes, centerness and classes at each pixel of the maps of a pyramid."""

    type = "fcos_head"

    def __init__(
        self,
        num_classes: int,
        strides: Sequence[int],
        width: int = 128,
        depth: int = 2,
        groups: int = 16,
        radius: float = 1.5,
        overlap: float = 0.6,
        least_score: float = 0.05,
        most: int = 100,
        init: str = "default",
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            classes=num_classes,
            strides=list(strides),
            width=width,
            depth=depth,
            groups=groups,
            radius=radius,
            overlap=overlap,
            least_score=least_score,
            most=most,
            init=init,
        )


class NonMaximumSuppression(Layer):
    """Of boxes [P, 4] and scores [P, C] those that no better one of their class overlaps: [most, 6]."""

    type = "non_maximum_suppression"

    def __init__(
        self, overlap: float = 0.5, least_score: float = 0.05, most: int = 100, *, name: str | None = None
    ) -> None:
        super().__init__(name, overlap=overlap, least_score=least_score, most=most)


class SSDHead(Layer):
    """How boxes depart from anchors, and their classes, at each pixel of maps."""

    type = "ssd_head"

    def __init__(
        self,
        num_classes: int,
        strides: Sequence[int],
        sizes: Sequence[int],
        ratios: Sequence[int],
        positive: float = 0.5,
        negative: float = 0.5,
        overlap: float = 0.45,
        least_score: float = 0.01,
        most: int = 200,
        init: str = "default",
        *,
        background: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            classes=num_classes,
            strides=list(strides),
            sizes=list(sizes),
            ratios=list(ratios),
            background=background,
            positive=positive,
            negative=negative,
            overlap=overlap,
            least_score=least_score,
            most=most,
            init=init,
        )


class MultiheadAttention(Layer):
    """Self-attention of ``[tokens, features]``."""

    type = "multi_head_attention"

    def __init__(
        self,
        embed_dim: int | None,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name, heads=num_heads, dropout=dropout, bias=bias)
        self._expect(embed_dim=embed_dim)


class ClassToken(Plain):
    """``[tokens, features]`` behind a token that is trained."""

    type = "class_token"


class PositionEmbedding(Plain):
    """A sample plus a trained number for each of its values."""

    type = "position_embedding"


class LSTM(Layer):
    """Long short-term memory over ``[steps, features]``, as PyTorch's with ``batch_first`` and one layer.

    ``output`` is "sequence", the state of each step; "last", the state after the last; or "sequence_and_cell", which
    has the last cell state as one step more. It may be called with the first states, ``lstm(x, h)`` or
    ``lstm(x, h, c)``, of ``[directions, units]``.
    """

    type = "lstm"

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        bias: bool = True,
        bidirectional: bool = False,
        *,
        direction: str | None = None,
        output: str = "sequence",
        peepholes: bool = False,
        coupled_gates: bool = False,
        initial_state: str = "zeros",
        clip: float = 0.0,
        gate_activation: str = "sigmoid",
        gate_alpha: float = 1.0,
        gate_beta: float = 0.0,
        activation: str = "tanh",
        alpha: float = 1.0,
        beta: float = 0.0,
        output_activation: str = "tanh",
        output_alpha: float = 1.0,
        output_beta: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            units=hidden_size,
            direction=direction or ("bidirectional" if bidirectional else "forward"),
            output=output,
            bias=bias,
            peepholes=peepholes,
            coupled_gates=coupled_gates,
            initial_state=initial_state,
            clip=clip,
            gate_activation=gate_activation,
            gate_alpha=gate_alpha,
            gate_beta=gate_beta,
            activation=activation,
            alpha=alpha,
            beta=beta,
            output_activation=output_activation,
            output_alpha=output_alpha,
            output_beta=output_beta,
        )
        self._expect(input_size=input_size)


class GRU(Layer):
    """Gated recurrent units over ``[steps, features]``, as PyTorch's with ``batch_first`` and one layer.

    ``output`` is "sequence", the state of each step, or "last", the state after the last. It may be called with the
    first state, ``gru(x, h)``, of ``[directions, units]``.
    """

    type = "gru"

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        bias: bool = True,
        bidirectional: bool = False,
        *,
        direction: str | None = None,
        output: str = "sequence",
        linear_before_reset: bool = True,
        initial_state: str = "zeros",
        clip: float = 0.0,
        gate_activation: str = "sigmoid",
        gate_alpha: float = 1.0,
        gate_beta: float = 0.0,
        activation: str = "tanh",
        alpha: float = 1.0,
        beta: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            units=hidden_size,
            direction=direction or ("bidirectional" if bidirectional else "forward"),
            output=output,
            bias=bias,
            linear_before_reset=linear_before_reset,
            initial_state=initial_state,
            clip=clip,
            gate_activation=gate_activation,
            gate_alpha=gate_alpha,
            gate_beta=gate_beta,
            activation=activation,
            alpha=alpha,
            beta=beta,
        )
        self._expect(input_size=input_size)


class RNN(Layer):
    """A recurrent layer over ``[steps, features]``, as PyTorch's with ``batch_first`` and one layer.

    ``output`` is "sequence", the state of each step, or "last", the state after the last. It may be called with the
    first state, ``rnn(x, h)``, of ``[directions, units]``.
    """

    type = "rnn"

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        bias: bool = True,
        bidirectional: bool = False,
        *,
        direction: str | None = None,
        output: str = "sequence",
        initial_state: str = "zeros",
        clip: float = 0.0,
        activation: str = "tanh",
        alpha: float = 1.0,
        beta: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            units=hidden_size,
            direction=direction or ("bidirectional" if bidirectional else "forward"),
            output=output,
            bias=bias,
            initial_state=initial_state,
            clip=clip,
            activation=activation,
            alpha=alpha,
            beta=beta,
        )
        self._expect(input_size=input_size)


def _all_layers(base: type[Layer] = Layer) -> Iterator[type[Layer]]:
    for one in base.__subclasses__():
        yield one
        yield from _all_layers(one)


CLASS_OF: dict[str, type[Layer]] = {one.type: one for one in _all_layers() if one.type}
_TABLE: dict[str, dict[str, Any]] = {}  # of the C++ library, filled in when it is first asked for


def table() -> dict[str, dict[str, Any]]:
    """The layer types of the YAML models by their names: help, keys, number of inputs."""
    if not _TABLE:
        _TABLE.update({layer["name"]: layer for layer in _layer_types()})
    return _TABLE


def _inputs_of(layer_type: str) -> tuple[int, int]:
    row = table()[layer_type]
    return row["inputs"], row["most_inputs"]


def _is_default(layer_type: str, key: str, value: Any) -> bool:
    for row in table()[layer_type]["keys"]:
        if row["path"] == key:
            fallback = str(row["default"]).strip("`")
            if isinstance(value, bool):
                return fallback == str(value).lower()
            if isinstance(value, int | float):
                try:
                    return float(fallback) == value
                except ValueError:
                    return False
            return bool(fallback == value)
    return False
