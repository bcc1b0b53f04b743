"""Random nodes of layers: windows, normalisations, resizing and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_compare import Array
from onnx_graphs import Draw, RefusedError
from onnx_makers import maker

EPSILONS = [0.0, 1e-12, 1e-5, 1e-5, 1e-3]


def _window(draw: Draw, sizes: tuple[int, ...], gaps: bool) -> dict[str, Any]:
    """kernel_shape, strides, dilations and padding of a window over these sizes."""
    count = len(sizes)
    kernel = [draw.whole(1, min(3, size)) for size in sizes]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if draw.chance(0.6):
        found["strides"] = [draw.choose([1, 1, 2, 3]) for _ in sizes]
    if gaps and draw.chance(0.25):
        found["dilations"] = [draw.choose([1, 2]) for _ in sizes]
    way = draw.whole(0, 9)
    if way < 4:
        found["pads"] = [draw.whole(0, size - 1) for size in kernel * 2]
    elif way < 6:
        found["auto_pad"] = draw.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if found["auto_pad"] != "VALID":
            found.pop("dilations", None)
    elif way == 6:
        found["pads"] = [0] * (2 * count)
    return found


@maker(3, "f", (3, 5), finite=True)
def convolution(draw: Draw, name: str) -> str:
    _, channels, *sizes = draw.values[name].shape
    attributes = _window(draw, tuple(sizes), gaps=True)
    group = draw.choose([size for size in range(1, channels + 1) if channels % size == 0])
    made = group * draw.whole(1, 2)
    weight = draw.constant(draw.numbers((made, channels // group, *attributes["kernel_shape"])))
    inputs = [name, weight, draw.constant(draw.numbers((made,)))] if draw.chance(0.5) else [name, weight]
    if draw.chance(0.2):
        del attributes["kernel_shape"]
    return draw.node("Conv", inputs, **attributes, group=group)


@maker(1, "f", (3, 5), finite=True)
def transposed_convolution(draw: Draw, name: str) -> str:
    _, channels, *sizes = draw.values[name].shape
    attributes = _window(draw, tuple(size + 2 for size in sizes), gaps=True)
    group = draw.choose([size for size in range(1, channels + 1) if channels % size == 0])
    if attributes.get("strides") and draw.chance(0.3):
        attributes["output_padding"] = [draw.whole(0, stride - 1) for stride in attributes["strides"]]
    weight = draw.constant(draw.numbers((channels, draw.whole(1, 2), *attributes["kernel_shape"])))
    return draw.node("ConvTranspose", [name, weight], **attributes, group=group)


@maker(3, "f", (3, 5), finite=True)
def pooling(draw: Draw, name: str) -> str:
    sizes = draw.values[name].shape[2:]
    op = draw.choose(["MaxPool", "AveragePool", "AveragePool", "LpPool"])
    gaps = draw.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    attributes = _window(draw, sizes, gaps)
    if draw.chance(0.3) and draw.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]:
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and draw.chance(0.5):
        attributes["count_include_pad"] = draw.whole(0, 1)
    if op == "LpPool":
        attributes["p"] = draw.choose([1, 2, 3])
    return draw.node(op, [name], **attributes)


@maker(1, "f", (3, 5), finite=True)
def global_pooling(draw: Draw, name: str) -> str:
    return draw.node(draw.choose(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]), [name])


@maker(2, "f", (2, 5), finite=True)
def batch_norm(draw: Draw, name: str) -> str:
    channels = draw.values[name].shape[1]
    variance = abs(draw.numbers((channels,))) + np.float32(0.01)
    values = [draw.numbers((channels,)), draw.numbers((channels,)), draw.numbers((channels,)), variance]
    return draw.node("BatchNormalization", [name, *map(draw.constant, values)], **_epsilon(draw))


def _epsilon(draw: Draw) -> dict[str, float]:
    return {"epsilon": draw.choose(EPSILONS)} if draw.chance(0.7) else {}


@maker(1, "f", (3, 5), finite=True)
def instance_norm(draw: Draw, name: str) -> str:
    channels = draw.values[name].shape[1]
    pair = [draw.constant(draw.numbers((channels,))) for _ in range(2)]
    return draw.node("InstanceNormalization", [name, *pair], **_epsilon(draw))


@maker(2, "f", (2, 5), since=17, finite=True)
def layer_norm(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    axis = draw.whole(draw.low(len(shape)), len(shape) - 1)
    full = shape[axis:]
    scale = full if draw.chance(0.8) else full[-1:]
    inputs = [name, draw.constant(draw.numbers(scale))]
    if draw.chance(0.7):
        inputs.append(draw.constant(draw.numbers(scale)))
    return draw.node(
        "LayerNormalization", inputs, axis=axis - len(shape) if draw.chance(0.5) else axis, **_epsilon(draw)
    )


@maker(1, "f", (3, 5), since=21, finite=True)
def group_norm(draw: Draw, name: str) -> str:
    channels = draw.values[name].shape[1]
    groups = draw.choose([size for size in range(1, channels + 1) if channels % size == 0])
    pair = [draw.constant(draw.numbers((channels,))) for _ in range(2)]
    return draw.node("GroupNormalization", [name, *pair], num_groups=groups, **_epsilon(draw))


@maker(1, "f", (2, 5), finite=True)
def norm_by_formula(draw: Draw, name: str) -> str:
    """Layer norm as exporters write it before opset 17."""
    rank = draw.values[name].ndim
    axes = [rank - 1]

    def mean(value: str) -> str:
        if draw.opset >= 18:
            return draw.node("ReduceMean", [value, draw.constant(axes, np.int64)])
        return draw.node("ReduceMean", [value], axes=axes)

    centred = draw.node("Sub", [name, mean(name)])
    variance = mean(draw.node("Pow", [centred, draw.constant(2, np.float32)]))
    epsilon = draw.constant(draw.choose(EPSILONS), np.float32)
    deviation = draw.node("Sqrt", [draw.node("Add", [variance, epsilon])])
    return draw.node("Div", [centred, deviation])


@maker(0.7, "f", (2, 5), finite=True)
def lp_norm(draw: Draw, name: str) -> str:
    return draw.node("LpNormalization", [name], axis=draw.axis(draw.values[name].ndim), p=draw.whole(1, 2))


@maker(0.7, "f", (4, 4), finite=True)
def response_norm(draw: Draw, name: str) -> str:
    size = draw.choose([1, 3, 5])
    more = {"alpha": 0.1, "beta": 0.5, "bias": 2.0} if draw.chance(0.6) else {}
    return draw.node("LRN", [name], size=size, **more)


@maker(0.4, "f", (4, 4), since=9, finite=True)
def mean_variance(draw: Draw, name: str) -> str:
    axes = [2, 3] if draw.chance(0.5) else [1, 2, 3]
    result = draw.node("MeanVarianceNormalization", [name], axes=axes)
    if not np.isfinite(draw.values[result]).all():
        raise RefusedError("ONNX Runtime leaves out the epsilon that ONNX adds to a deviation of 0")
    return result


@maker(2, "f", (2, 5), finite=True)
def resize(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    kept = 2 if len(shape) > 2 else 1
    # Floats that are exact, since the nearest place is else a question of rounding.
    scales = [1.0] * kept + [draw.choose([0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.0, 3.0]) for _ in shape[kept:]]
    mode = draw.choose(["nearest", "nearest", "linear"] + (["cubic"] if draw.opset >= 11 and len(shape) == 4 else []))
    if draw.opset < 9:
        scales = [max(1.0, scale) for scale in scales]
        return draw.node("Upsample", [name], mode=mode, scales=scales)
    as_constant = draw.constant(scales, np.float32)
    if draw.opset == 9:
        return draw.node(
            "Upsample", [name, draw.initializer([max(1.0, scale) for scale in scales], np.float32)], mode=mode
        )
    if draw.opset == 10:
        return draw.node("Resize", [name, as_constant], mode=mode)
    places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    more: dict[str, Any] = {"coordinate_transformation_mode": draw.choose(places)} if draw.chance(0.8) else {}
    if mode == "nearest" and draw.chance(0.6):
        more["nearest_mode"] = draw.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic" and draw.chance(0.5):
        more |= {"cubic_coeff_a": -0.5, "exclude_outside": draw.whole(0, 1)}
    if draw.opset >= 18 and mode != "nearest" and draw.chance(0.3):
        more["antialias"] = 1
    empty = draw.initializer([], np.float32)
    roi = "" if draw.opset >= 13 else empty
    if draw.chance(0.5):
        sizes = [max(1, int(size * scale)) for size, scale in zip(shape, scales, strict=True)]
        inputs = [name, roi, "" if draw.opset >= 13 else empty, draw.constant(sizes, np.int64)]
    else:
        inputs = [name, roi, as_constant]
    return draw.node("Resize", inputs, mode=mode, **more)


def _zero_point(draw: Draw, kind: Any, count: tuple[int, ...], symmetric: bool) -> Array:
    if symmetric:
        return np.zeros(count, kind)
    limits = np.iinfo(kind)
    return draw.rng.integers(limits.min // 2, limits.max // 2 + 1, count).astype(kind)


@maker(3, "f", (0, 5), since=10, finite=True)
def quantised_pair(draw: Draw, name: str) -> str:
    """QuantizeLinear and DequantizeLinear with equal or with other numbers, for all values or along an axis."""
    shape = draw.values[name].shape
    kind = draw.choose([np.int8, np.uint8])
    count: tuple[int, ...] = ()
    more: dict[str, Any] = {}
    if draw.opset >= 13 and len(shape) >= 2 and draw.chance(0.3):
        axis = draw.whole(1, len(shape) - 1)
        count, more = (shape[axis],), {"axis": axis}
    scale = (abs(draw.rng.normal(0.05, 0.03, count)) + 0.01).astype(np.float32)
    zero = _zero_point(draw, kind, count, draw.chance(0.3))
    numbers = [draw.constant(scale), draw.constant(zero)]
    if draw.chance(0.15) and kind is np.uint8 and not count:
        numbers = numbers[:1]  # uint8 and 0 are the default
    quantised = draw.node("QuantizeLinear", [name, *numbers], **more)
    if draw.mixes and not count and draw.chance(0.3):
        order = [int(at) for at in draw.rng.permutation(len(shape))]
        quantised = draw.node("Transpose", [quantised], perm=order)
    if draw.chance(0.3):
        other = _zero_point(draw, kind, count, draw.chance(0.3))
        numbers = [draw.constant((scale * draw.choose([1, 2])).astype(np.float32)), draw.constant(other)]
        if draw.chance(0.2):
            numbers = numbers[:1]
    return draw.node("DequantizeLinear", [quantised, *numbers], **more)


@maker(2.5, "f", (2, 4), since=13, finite=True)
def quantised_layer(draw: Draw, name: str) -> str:
    """A product or convolution of quantised or of float data, with a weight and a bias from DequantizeLinear."""
    shape = draw.values[name].shape
    kind = draw.choose([np.int8, np.uint8])
    limits = np.iinfo(kind)
    if len(shape) == 4:
        size: tuple[int, ...] = (2, shape[1], 1, draw.whole(1, min(2, shape[3])))
        op, per_axis = "Conv", 0
    else:
        size, op, per_axis = (shape[-1], 3), "MatMul", 1
    count = (size[per_axis],) if draw.chance(0.5) else ()
    scales = (abs(draw.rng.normal(0.05, 0.03, count)) + 0.005).astype(np.float32)
    numbers = [draw.constant(scales), draw.constant(_zero_point(draw, kind, count, draw.chance(0.6)))]
    more = {"axis": per_axis} if count else {}
    if draw.chance(0.3):
        weight = draw.node("QuantizeLinear", [draw.constant(draw.numbers(size)), *numbers], **more)
    else:
        weight = draw.initializer(draw.rng.integers(limits.min, limits.max + 1, size), kind)
    weight = draw.node("DequantizeLinear", [weight, *numbers], **more)
    scale = np.float32(0.04)
    if draw.chance(0.7):
        pair = [draw.constant(scale), draw.constant(_zero_point(draw, np.uint8, (), False))]
        name = draw.node("DequantizeLinear", [draw.node("QuantizeLinear", [name, *pair]), *pair])
    inputs = [name, weight]
    if op == "Conv" and draw.chance(0.5):
        whole = draw.initializer(draw.rng.integers(-2000, 2000, (2,)), np.int32)
        by = np.asarray(scales * scale, np.float32)
        inputs.append(draw.node("DequantizeLinear", [whole, draw.constant(by)], **({"axis": 0} if by.ndim else {})))
    result = draw.node(op, inputs)
    if draw.chance(0.4):
        pair = [draw.constant(0.1, np.float32), draw.constant(_zero_point(draw, np.uint8, (), False))]
        result = draw.node("DequantizeLinear", [draw.node("QuantizeLinear", [result, *pair]), *pair])
    return result


@maker(0.7, "f", (2, 4), since=21, finite=True)
def blocked_weights(draw: Draw, name: str) -> str:
    """A product whose weight has a scale for each block of two rows."""
    inner = draw.values[name].shape[-1]
    weight = draw.initializer(draw.rng.integers(-128, 128, (inner, 3)), np.int8)
    blocks = (-(-inner // 2), 3)
    scales = draw.constant((abs(draw.rng.normal(0.05, 0.03, blocks)) + 0.005).astype(np.float32))
    return draw.node("MatMul", [name, draw.node("DequantizeLinear", [weight, scales], axis=0, block_size=2)])


@maker(1, "f", (2, 4), since=10, finite=True)
def quantised_operator(draw: Draw, name: str) -> str:
    """QLinearMatMul and QLinearConv, as onnxruntime's QOperator format has them."""
    shape = draw.values[name].shape
    pairs = [
        [draw.constant(np.float32(scale)), draw.constant(_zero_point(draw, np.uint8, (), False))]
        for scale in (0.04, 0.2)
    ]
    value = draw.node("QuantizeLinear", [name, *pairs[0]])
    convolution = len(shape) == 4
    size = (2, shape[1], 1, 1) if convolution else (shape[-1], 3)
    weight = draw.initializer(draw.rng.integers(-128, 128, size), np.int8)
    weight_pair = [draw.constant(np.float32(0.02)), draw.initializer(0, np.int8)]
    inputs = [value, *pairs[0], weight, *weight_pair, *pairs[1]]
    if convolution and draw.chance(0.5):
        inputs.append(draw.initializer(draw.rng.integers(-2000, 2000, (2,)), np.int32))
    result = draw.node("QLinearConv" if convolution else "QLinearMatMul", inputs)
    return draw.node("DequantizeLinear", [result, *pairs[1]])


@maker(0.7, "f", (2, 4), since=11, finite=True)
def dynamically_quantised(draw: Draw, name: str) -> str:
    """As onnxruntime's dynamic quantisation writes a product."""
    shape = draw.values[name].shape
    if not draw.mixes and draw.chance(0.5):
        raise RefusedError("its scale is over the batch")
    value, scale, zero = draw.nodes("DynamicQuantizeLinear", [name], 3)
    weight = draw.initializer(draw.rng.integers(-127, 128, (shape[-1], 3)), np.int8)
    weight_zero = draw.initializer(0, np.int8)
    product = draw.node("MatMulInteger", [value, weight, zero, weight_zero])
    factor = draw.node("Mul", [scale, draw.constant(0.02, np.float32)])
    return draw.node("Mul", [draw.node("Cast", [product], to=1), factor])
