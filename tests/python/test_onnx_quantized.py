"""Random small graphs of quantised operators give gpunn what they give ONNX Runtime, with its optimisations off.

``GPUNN_QUANTIZED_CASES`` is how many graphs are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quantized_graphs import EIGHT_BITS, RANGES, Graph, check

pytest.importorskip("onnx", reason="needs the package onnx")

from onnx import TensorProto

CASES = int(os.environ.get("GPUNN_QUANTIZED_CASES", "150"))


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
        if g.pick(0, 1):
            x = g.add("QuantizeLinear", ["x", scale, zero])
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


@pytest.mark.parametrize("part", range(4))
def test_a_quantised_graph_gives_what_onnx_defines(part: int, tmp_path: Path) -> None:
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
