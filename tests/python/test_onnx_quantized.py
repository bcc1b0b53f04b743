"""Random small graphs of quantised operators give gpunn what they give ONNX Runtime, with its optimisations off.

Needs the packages onnx and onnxruntime. ``GPUNN_QUANTIZED_CASES`` is how many graphs are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
runtime: Any = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnxruntime.quantization import (  # noqa: E402
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

Array = npt.NDArray[Any]

CASES = int(os.environ.get("GPUNN_QUANTIZED_CASES", "150"))
OPSET, IR = 21, 10
RANGES: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT4: (-8, 7),
}
EIGHT_BITS = [TensorProto.UINT8, TensorProto.INT8]


class Graph:
    """A graph under construction: x[N, ...] in, y out."""

    def __init__(self, seed: int, row: tuple[int, ...]) -> None:
        self.random = np.random.default_rng(seed)
        self.row = row
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.count = 0
        self.step = 0.0  # of the last tensor that was rounded

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def floats(self, values: Any) -> str:
        name = self.name("float")
        self.initializers.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def integers(self, values: Any, kind: int) -> str:
        name = self.name("integer")
        values = np.asarray(values, np.int64)
        self.initializers.append(helper.make_tensor(name, kind, values.shape, values.reshape(-1).tolist()))
        return name

    def drawn(self, kind: int, shape: tuple[int, ...]) -> str:
        low, high = RANGES[kind]
        return self.integers(self.random.integers(low, high + 1, shape), kind)

    def zero_point(self, kind: int, shape: tuple[int, ...] = ()) -> str:
        low, high = RANGES[kind]
        middle = (low + high + 1) // 2
        near = max(1, (high - low) // 6)
        return self.integers(self.random.integers(middle - near, middle + near + 1, shape), kind)

    def add(self, op: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> str:
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, names[0] + "_node", **attributes))
        return names[0]

    def scale(self, kind: int, reach: float, shape: tuple[int, ...] = ()) -> str:
        low, high = RANGES[kind]
        values = reach * self.random.uniform(0.6, 1.4, shape) * 2 / (high - low)
        self.step = float(np.max(values))
        return self.floats(values)

    def rounded(self, x: str, reach: float = 3, kind: int | None = None) -> str:
        """A pair of one scale and zero point."""
        kind = self.pick(*EIGHT_BITS) if kind is None else kind
        grid = [self.scale(kind, reach), self.zero_point(kind)]
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [x, *grid]), *grid])

    def weights(self, shape: tuple[int, ...], axis: int) -> str:
        """Floats, or integers on one of many grids."""
        how = self.pick("float", "tensor", "tensor", "axis", "axis", "quantized", "asymmetric", "four", "blocks")
        count = (shape[axis],)
        if how == "float":
            return self.floats(self.random.normal(0, 0.5, shape))
        if how == "quantized":
            grid = [self.scale(TensorProto.INT8, 1.5, count), self.integers(np.zeros(count), TensorProto.INT8)]
            q = self.add("QuantizeLinear", [self.floats(self.random.normal(0, 0.5, shape)), *grid], axis=axis)
            return self.add("DequantizeLinear", [q, *grid], axis=axis)
        if how == "tensor":
            kind = self.pick(*EIGHT_BITS, TensorProto.INT16)
            zero = [] if kind == TensorProto.INT8 else [self.zero_point(kind)]
            return self.add("DequantizeLinear", [self.drawn(kind, shape), self.scale(kind, 1), *zero])
        if how in ("asymmetric", "four"):
            kind = TensorProto.UINT8 if how == "asymmetric" else self.pick(TensorProto.UINT4, TensorProto.INT4)
            q, grid = self.drawn(kind, shape), [self.scale(kind, 1, count), self.zero_point(kind, count)]
            return self.add("DequantizeLinear", [q, *grid], axis=axis)
        if how == "blocks":
            block, along = int(self.random.integers(1, 4)), 1 - axis
            blocks = list(shape)
            blocks[along] = -(-shape[along] // block)
            q, scale = self.drawn(TensorProto.INT8, shape), self.scale(TensorProto.INT8, 1, tuple(blocks))
            return self.add("DequantizeLinear", [q, scale], axis=along, block_size=block)
        q = self.drawn(TensorProto.INT8, shape)
        grid = [self.scale(TensorProto.INT8, 1, count), self.integers(np.zeros(count), TensorProto.INT8)]
        return self.add("DequantizeLinear", [q, *grid], axis=axis - len(shape) if self.pick(0, 1) else axis)

    def save(self, file: Path, y: str) -> None:
        self.nodes.append(helper.make_node("Identity", [y], ["y"], "last"))
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *self.row])
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "random", [x], [out], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        onnx.save(model, file)


def expected(file: Path, x: Array) -> Array:
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def pair(g: Graph) -> str:
    """Two nodes that need not have the same scale, zero point or dimension."""
    kind = g.pick(*RANGES)
    low, high = RANGES[kind]
    how = g.pick("equal", "scale", "zero", "axis", "blocks", "no zero", "dtype", "integers between")
    rank = len(g.row) + 1
    axis = int(g.random.integers(1, rank))
    shape: tuple[int, ...] = (g.row[axis - 1],) if how == "axis" else ()
    keys: dict[str, int] = {"axis": axis if g.pick(0, 1) else axis - rank} if how == "axis" else {}
    scale, zero = g.scale(kind, 3, shape), g.zero_point(kind, shape)
    if how in ("no zero", "dtype"):
        q = g.add("QuantizeLinear", ["x", scale], output_dtype=kind)
        return g.add("DequantizeLinear", [q, scale] if how == "dtype" else [q, g.scale(kind, 2)])
    q = g.add("QuantizeLinear", ["x", scale, zero], **keys)
    if how == "integers between" and kind in EIGHT_BITS:
        q = between(g, q)
    if how == "scale":
        scale = g.scale(kind, 2)
    if how == "zero":
        zero = g.integers(g.random.integers(low, high + 1), kind)
    y = g.add("DequantizeLinear", [q, scale, zero], **keys)
    if g.pick(0, 0, 1):  # another node reads the integers
        other = g.add("DequantizeLinear", [q, scale if how == "axis" else g.scale(kind, 1), zero], **keys)
        return g.add("Add", [y, other])
    return y


def between(g: Graph, q: str) -> str:
    """An operator that takes integers."""
    rank = len(g.row) + 1
    if rank == 4 and g.pick(0, 1):
        return g.add("MaxPool", [q], kernel_shape=[2, 2], strides=[1, 1])
    return g.add("Transpose", [q], perm=[0, *range(rank - 1, 0, -1)]) if g.pick(0, 1) else g.add("Flatten", [q], axis=1)


def convolution(g: Graph) -> str:
    channels, filters = g.row[0], int(g.random.integers(1, 9))
    x = g.rounded("x")
    inputs = [x, g.weights((filters, channels, 3, 3), 0) if g.pick(0, 1) else g.weights((filters, channels, 1, 1), 0)]
    if g.pick(0, 1):
        inputs.append(g.floats(g.random.normal(0, 0.5, filters)))
    y = g.add("Conv", inputs, pads=[1, 1, 1, 1], strides=[g.pick(1, 2)] * 2)
    if g.pick(0, 1):
        y = g.add("Relu", [y])
    y = g.rounded(y, 8)
    if g.pick(0, 1):
        y = g.add(g.pick("MaxPool", "AveragePool"), [y], kernel_shape=[2, 2])
        y = g.rounded(y, 8)
    return y


def residual(g: Graph) -> str:
    channels = g.row[0]
    x = g.rounded("x")
    bias = g.floats(g.random.normal(0, 0.5, channels))
    y = g.add("Conv", [x, g.weights((channels, channels, 3, 3), 0), bias], pads=[1, 1, 1, 1])
    return g.rounded(g.add("Relu", [g.add("Add", [y, x])]), 8)


def dense(g: Graph) -> str:
    features, units = g.row[-1], int(g.random.integers(1, 9))
    x = g.rounded("x", 3, g.pick(*EIGHT_BITS, TensorProto.UINT16))
    if g.pick(0, 1) or len(g.row) > 1:
        y = g.add("MatMul", [x, g.weights((features, units), 1)])
        if g.pick(0, 1):
            y = g.add("Add", [y, g.floats(g.random.normal(0, 0.5, units))])
    elif g.pick(0, 1):
        y = g.add("Gemm", [x, g.weights((units, features), 0), g.floats(g.random.normal(0, 0.5, units))], transB=1)
    else:
        turned = g.add("Transpose", [g.weights((units, features), 0)], perm=[1, 0])
        y = g.add("Gemm", [x, turned])
    return g.rounded(y, 8) if g.pick(0, 1) else y


def quantised_input(g: Graph, *kinds: int) -> tuple[str, list[str], int, int]:
    """The input's integers, their scale and zero point, their type, and a type of weights that fits it."""
    kind = g.pick(*(kinds or EIGHT_BITS))
    grid = [g.scale(kind, 3), g.zero_point(kind)]
    weights = TensorProto.INT8 if kind == TensorProto.INT8 else g.pick(*EIGHT_BITS)
    return g.add("QuantizeLinear", ["x", *grid]), grid, kind, weights


def linear_convolution(g: Graph) -> str:
    channels, filters = g.row[0], int(g.random.integers(1, 9))
    x, grid, kind, of_weights = quantised_input(g)
    y, shape, out = x, (filters, channels, 3, 3), grid
    stride = g.pick(1, 2)
    for _ in range(int(g.pick(1, 2))):
        count = (filters,) if of_weights == TensorProto.INT8 and g.pick(0, 1) else ()
        zero = g.integers(np.zeros(count), of_weights) if count else g.zero_point(of_weights)
        inputs = [y, *out, g.drawn(of_weights, shape), g.scale(of_weights, 0.5, count), zero]
        out = [g.scale(kind, 6), g.zero_point(kind)]
        inputs += out
        if g.pick(0, 1):
            inputs.append(g.integers(g.random.integers(-3000, 3000, filters), TensorProto.INT32))
        y = g.add("QLinearConv", inputs, pads=[1, 1, 1, 1], strides=[stride] * 2)
        shape = (filters, filters, 3, 3)
        if stride == 1 and min(g.row[1:]) > 3 and g.pick(0, 1):
            y = g.add("MaxPool", [y], kernel_shape=[2, 2], strides=[1, 1])
    return g.add("DequantizeLinear", [y, *out])


def linear_product(g: Graph) -> str:
    features, units = g.row[-1], int(g.random.integers(1, 9))
    x, grid, kind, of_weights = quantised_input(g)
    count = (units,) if g.pick(0, 1) else ()
    b = [g.drawn(of_weights, (features, units)), g.scale(of_weights, 1, count), g.zero_point(of_weights, count)]
    out = [g.scale(kind, 8), g.zero_point(kind)]
    return g.add("DequantizeLinear", [g.add("QLinearMatMul", [x, *grid, *b, *out]), *out])


def integer_product(g: Graph) -> str:
    features, units = g.row[-1], int(g.random.integers(1, 9))
    x, grid, _, kind = quantised_input(g)
    inputs = [x, g.drawn(kind, (features, units))]
    if g.pick(0, 1):
        inputs += [grid[1], g.zero_point(kind, (units,) if g.pick(0, 1) else ())]
    g.step = 0
    return g.add("Cast", [g.add("MatMulInteger", inputs)], to=TensorProto.FLOAT)


def integer_convolution(g: Graph) -> str:
    channels, filters = g.row[0], int(g.random.integers(1, 9))
    x, grid, *_ = quantised_input(g, TensorProto.UINT8)
    inputs = [x, g.drawn(TensorProto.UINT8, (filters, channels, 3, 3))]
    if g.pick(0, 1):
        inputs += [grid[1], g.zero_point(TensorProto.UINT8)]
    elif g.pick(0, 1):
        inputs += [grid[1]]
    g.step = 0
    return g.add("Cast", [g.add("ConvInteger", inputs, pads=[1, 0, 1, 0])], to=TensorProto.FLOAT)


def dynamic(g: Graph) -> str:
    features, units = g.row[-1], int(g.random.integers(1, 9))
    g.add("DynamicQuantizeLinear", ["x"], 3)
    x, scale, zero = g.nodes[-1].output
    if g.pick(0, 1):
        return g.add("DequantizeLinear", [x, scale, zero])
    kind = g.pick(*EIGHT_BITS)
    weights, weight_zero = g.drawn(kind, (features, units)), g.zero_point(kind)
    sums = g.add("Cast", [g.add("MatMulInteger", [x, weights, zero, weight_zero])], to=TensorProto.FLOAT)
    factor = g.add("Mul", [scale, g.scale(kind, 1, (units,) if g.pick(0, 1) else ())])
    g.step = 0
    return g.add("Mul", [sums, factor])


IMAGES: list[Callable[[Graph], str]] = [convolution, convolution, residual, linear_convolution, integer_convolution]
ROWS: list[Callable[[Graph], str]] = [pair, pair, dense, dense, linear_product, integer_product, dynamic]


def drawn(seed: int) -> tuple[Graph, str]:
    random = np.random.default_rng(seed)
    of_images = bool(random.integers(2))
    size = random.integers(2, 8, 3)
    row = (int(size[0]), int(size[1]) + 1, int(size[2]) + 1) if of_images else (int(random.integers(1, 40)),)
    if not of_images and random.integers(3) == 0:
        row = (int(size[0]), *row)
    g = Graph(seed, row)
    kinds = [*IMAGES, pair] if of_images else ROWS
    return g, kinds[int(random.integers(len(kinds)))](g)


def check(file: Path, x: Array, step: float, without: list[str], share: float = 0.02) -> None:
    want = expected(file, x)
    found = gpunn.load(file, backend="cpu", threads=1, calls=1, max_batch=len(x), without=without).run(x)
    assert found.shape == want.shape
    # Another order of sums may round a number at a tie to the next step. The rest is f32's own rounding.
    apart = np.abs(found.astype(np.float64) - want)
    close = 1e-5 * max(1.0, float(np.abs(want).max()))
    assert apart.max(initial=0) <= step * 1.001 + close
    assert (apart > close).sum() <= max(2, share * apart.size)


class Samples(CalibrationDataReader):  # type: ignore[misc]
    """What a network is calibrated with."""

    def __init__(self, row: tuple[int, ...]) -> None:
        random = np.random.default_rng(1)
        self.batches = iter([{"x": random.normal(0, 1, (4, *row)).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self.batches, None)


def image_network(file: Path) -> tuple[int, ...]:
    """Convolutions, one of them depthwise in a residual block, pooling and dense layers; gives the shape of a row."""
    g = Graph(1, (3, 16, 16))

    def weight(*shape: int) -> str:
        return g.floats(g.random.normal(0, 1.5 / np.sqrt(np.prod(shape[1:])), shape))

    def biased(filters: int, *shape: int) -> list[str]:
        return [weight(filters, *shape), g.floats(g.random.normal(0, 0.3, filters))]

    pads: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    stem = g.add("Relu", [g.add("Conv", ["x", *biased(8, 3, 3, 3)], **pads)])
    stem = g.add("MaxPool", [stem], kernel_shape=[2, 2], strides=[2, 2])
    y = g.add("Relu", [g.add("Conv", [stem, *biased(8, 8, 3, 3)], **pads)])
    y = g.add("Add", [g.add("Conv", [y, *biased(8, 1, 3, 3)], group=8, **pads), stem])
    y = g.add("Clip", [g.add("Conv", [y, *biased(16, 8, 1, 1)], strides=[2, 2]), g.floats(0), g.floats(6)])
    y = g.add("Flatten", [g.add("GlobalAveragePool", [y])])
    y = g.add("Relu", [g.add("Gemm", [y, *biased(10, 16)], transB=1)])
    g.save(file, g.add("MatMul", [y, weight(10, 10)]))
    return g.row


def token_network(file: Path) -> tuple[int, ...]:
    """Dense layers of tokens; gives the shape of a row."""
    g = Graph(2, (7, 48))
    y = g.add("MatMul", ["x", g.floats(g.random.normal(0, 0.2, (48, 64)))])
    y = g.add("Sigmoid", [g.add("Add", [y, g.floats(g.random.normal(0, 0.3, 64))])])
    g.save(file, g.add("MatMul", [y, g.floats(g.random.normal(0, 0.2, (64, 5)))]))
    return g.row


@pytest.mark.parametrize("network", [image_network, token_network])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("kinds", ["u8u8", "u8s8", "s8s8", "dynamic u8", "dynamic s8"])
@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_a_network_that_onnx_runtime_quantised(
    network: Callable[[Path], tuple[int, ...]], by_channel: bool, kinds: str, form: Any, tmp_path: Path
) -> None:
    plain, file = tmp_path / "plain.onnx", tmp_path / "quantised.onnx"
    row = network(plain)
    # Other operators would be of ONNX Runtime's own.
    ops = ["MatMul"] if "dynamic" in kinds else ["Conv", "MatMul", "MaxPool"] if form == QuantFormat.QOperator else None
    types = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}
    given = {"op_types_to_quantize": ops, "per_channel": by_channel, "weight_type": types[kinds[-2:]]}
    if "dynamic" in kinds:
        if form == QuantFormat.QDQ:
            pytest.skip("there is one form of it")
        quantize_dynamic(plain, file, **given)
    else:
        quantize_static(plain, file, Samples(row), quant_format=form, activation_type=types[kinds[:2]], **given)
    x = np.random.default_rng(3).normal(0, 1, (3, *row)).astype(np.float32)
    # A tie further up may be a step in many answers.
    steps = 0.02 * float(np.abs(expected(file, x)).max())
    for without in ([], ["eight_bits"]):
        check(file, x, steps, without, 0.25)


@pytest.mark.parametrize("part", range(4))
def test_a_quantised_graph_gives_what_onnx_runtime_gives(part: int, tmp_path: Path) -> None:
    for seed in range(part, CASES, 4):
        g, y = drawn(seed)
        file = tmp_path / f"{seed}.onnx"
        g.save(file, y)
        x = np.random.default_rng(seed).normal(0, 1.5, (int(g.random.integers(1, 5)), *g.row)).astype(np.float32)
        try:
            check(file, x, g.step, [])
            check(file, x, g.step, ["eight_bits"])
        except Exception as failure:
            raise AssertionError(f"seed {seed}: {[node.op_type for node in g.nodes]}: {failure}") from failure
        file.unlink()
