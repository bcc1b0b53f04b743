"""Graphs of quantised operators, and what they give by ONNX's definition.

Needs the package onnx.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

reference: Any = pytest.importorskip("onnx.reference")
ReferenceMaxPool: Any = pytest.importorskip("onnx.reference.ops.op_max_pool").MaxPool

Array = npt.NDArray[Any]

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


class MaxPool(ReferenceMaxPool):  # type: ignore[misc]
    """Of integers too, which the package pads by NaN."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        return (super()._run(x.astype(np.float32), **attributes)[0].astype(x.dtype),)


def expected(file: Path, x: Array) -> Array:
    """By ONNX's definition. ONNX Runtime's sums of u8 and s8 saturate on processors without VNNI."""
    return np.asarray(reference.ReferenceEvaluator(onnx.load(file), new_ops=[MaxPool]).run(None, {"x": x})[0])


def check(file: Path, x: Array, step: float, without: list[str], share: float = 0.02) -> None:
    want = expected(file, x)
    found = gpunn.load(file, backend="cpu", threads=1, calls=1, max_batch=len(x), without=without).run(x)
    assert found.shape == want.shape
    # Another order of sums may round a number at a tie to the next step. The rest is f32's own rounding.
    apart = np.abs(found.astype(np.float64) - want)
    close = 1e-5 * max(1.0, float(np.abs(want).max()))
    assert apart.max(initial=0) <= step * 1.001 + close
    assert (apart > close).sum() <= max(2, share * apart.size)
