"""A graph of constants under construction, with the values that ONNX Runtime gives them.

Each node is run as soon as it is drawn: a node that neither ONNX Runtime nor ONNX's reference implementation takes is
left out. So all that is in a graph is valid, and has an expected value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = NDArray[Any]

FLOATS: list[Any] = [np.float32, np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SIGNED: list[Any] = [np.int64, np.int32, np.int16, np.int8]
UNSIGNED: list[Any] = [np.uint8, np.uint16, np.uint32, np.uint64]
WIDE: list[Any] = [np.int64, np.int32, np.uint32, np.uint64]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
SMALL: list[Any] = [
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.int4,
    ml_dtypes.uint4,
]
TINY: list[Any] = [ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.int2, ml_dtypes.uint2]
NARROW_INTEGERS = {np.dtype(one): bits for one, bits in zip((*SMALL[4:], *TINY[2:]), (4, 4, 2, 2), strict=True)}
ANY = [*NUMBERS, np.bool_]
# numpy hands these over as floats or bytes, which hold them exactly.
EXOTIC = {np.dtype(one) for one in [ml_dtypes.bfloat16, *SMALL, *TINY]}


def onnx_type(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def carrier(dtype: Any) -> int:
    return int(TensorProto.INT32 if np.dtype(dtype) in NARROW_INTEGERS else TensorProto.FLOAT)


class InvalidError(Exception):
    """No implementation takes this node."""


def model_of(nodes: list[Any], values: dict[str, Array], outputs: list[tuple[str, int]], opset: int) -> Any:
    graph = helper.make_graph(
        nodes,
        "constants",
        [],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def by_runtime(model: Any) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {}))


def by_reference(model: Any) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.asarray(one) for one in ReferenceEvaluator(model).run(None, {})]


class Graph:
    """A graph under construction."""

    def __init__(self, rng: np.random.Generator, opset: int) -> None:
        self.rng, self.opset = rng, opset
        self.nodes: list[Any] = []
        self.values: dict[str, Array] = {}
        self.initializers: list[str] = []
        self.reference_only: list[str] = []

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def choice(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def shape(self, least: int = 0, most: int = 6) -> tuple[int, ...]:
        rank = int(self.rng.integers(least, most + 1))
        sizes = [1, 2, 3, 4] if rank < 4 else [1, 2, 3]
        shape = [int(self.choice(sizes)) for _ in range(rank)]
        if rank and self.chance(0.03):
            shape[int(self.rng.integers(rank))] = 0
        return tuple(shape)

    def numbers(self, dtype: Any, shape: tuple[int, ...], low: float = -4, high: float = 4) -> Array:
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return self.rng.random(shape) < 0.5
        if kind in {np.dtype(one) for one in INTEGERS}:
            limits = np.iinfo(kind)
            if low == -4 and self.chance(0.2):
                return self.rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
            least = max(int(low), limits.min)
            return self.rng.integers(
                least, max(int(high), least) + (6 if high == 4 else 0), shape, endpoint=True
            ).astype(kind)
        values = self.rng.uniform(low, high, shape)
        if self.chance(0.4):
            values = np.round(values * 2) / 2  # halves: ties, and zeros
        if kind in {np.dtype(ml_dtypes.float8_e8m0fnu)}:  # which has no sign
            values = np.abs(values)
        if kind in NARROW_INTEGERS:
            is_signed, bits = np.dtype(kind).name.startswith("int"), NARROW_INTEGERS[kind]
            least = -(2 ** (bits - 1)) if is_signed else 0
            return np.asarray(self.rng.integers(least, least + 2**bits, shape)).astype(kind)
        return np.asarray(values).astype(kind)

    def add(self, value: Any, dtype: Any = None) -> str:
        name = f"c{len(self.values)}"
        self.values[name] = np.asarray(value, dtype)
        self.initializers.append(name)
        return name

    def fresh(self, dtype: Any, shape: tuple[int, ...], **limits: float) -> str:
        return self.add(self.numbers(dtype, shape, **limits))

    def operand(self, types: list[Any], least: int = 0, most: int = 6) -> str:
        """An earlier value of one of these types and ranks, or a new one."""
        kinds = {np.dtype(one) for one in types}
        fits = [
            name
            for name in reversed(self.values)
            if self.values[name].dtype in kinds
            and least <= self.values[name].ndim <= most
            and self.values[name].size < 3000
        ]
        if fits and self.chance(0.75):
            return fits[0] if self.chance(0.7) else str(self.choice(fits))
        value = self.numbers(self.choice(types), self.shape(least, most))
        if (
            value.dtype.kind not in "iub"
            and value.dtype not in {np.dtype(one) for one in (*SMALL, *TINY)}
            and self.chance(0.1)
        ):
            special = np.asarray(self.choice([np.nan, np.inf, -np.inf, -0.0])).astype(value.dtype)
            value = np.where(self.rng.random(value.shape) < 0.2, special, value)
        return self.add(value)

    def finite(self, types: list[Any], least: int = 0, most: int = 6) -> str:
        """An operand of numbers, at least one: ONNX does not say what NaN is more than."""
        name = self.operand(types, least, most)
        with np.errstate(all="ignore"):
            if self.values[name].size == 0 or not np.isfinite(self.values[name].astype(np.float64)).all():
                raise InvalidError
        return name

    def partner(self, name: str) -> str:
        """A value of the same type that broadcasts with another one."""
        value = self.values[name]
        if self.chance(0.2):
            fits = [
                one
                for one in self.values
                if self.values[one].dtype == value.dtype and compatible(self.values[one], value)
            ]
            if fits:
                return str(self.choice(fits))
        shape = [1 if self.chance(0.3) else size for size in value.shape]
        return self.fresh(value.dtype, tuple(shape[int(self.rng.integers(len(shape) + 1)) :]))

    def axis(self, rank: int) -> int:
        """Of a dimension, from either end."""
        if rank == 0:
            raise InvalidError
        axis = int(self.rng.integers(rank))
        return axis - rank if self.opset >= 11 and self.chance(0.4) else axis

    def axes(self, rank: int) -> list[int]:
        count = int(self.rng.integers(1, rank + 1)) if rank else 0
        axes = self.rng.permutation(rank)[:count]
        return [int(one) - rank if self.opset >= 11 and self.chance(0.4) else int(one) for one in axes]

    def integers(self, values: Any) -> str:
        return self.add(np.asarray(values, np.int64))

    def node(self, op: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> None:
        schema = onnx.defs.get_schema(op, self.opset) if onnx.defs.has(op) else None
        known = schema.attributes if schema is not None else {}
        attributes = {key: value for key, value in attributes.items() if value is not None and key in known}
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", **attributes)
        values = self.run(node)
        self.nodes.append(node)
        for name, value in zip(names, values, strict=True):
            self.values[name] = value

    def run(self, node: Any) -> list[Array]:
        """What the node gives, with ONNX's types."""
        held = {name: self.values[name] for name in node.input if name}
        if not allows_types(node, held, self.opset):
            raise InvalidError
        model = model_of([node], held, [(name, 0) for name in node.output], self.opset)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
            kinds = [int(one.type.tensor_type.elem_type) for one in inferred.graph.output]
        except Exception as error:
            raise InvalidError from error
        if any(kind in (0, TensorProto.STRING) for kind in kinds):
            raise InvalidError
        # The reference takes the softmax of one dimension, whatever the opset is.
        has_reference = self.opset >= 13 or node.op_type not in ("Softmax", "LogSoftmax", "Hardmax")
        has_reference = has_reference and node.op_type not in ("GlobalMaxPool", "Resize")  # and has other faults
        for evaluate in (by_runtime, by_reference) if has_reference else (by_runtime,):
            wanted: list[tuple[str, int]] = []
            nodes = [node]
            types = [np.dtype(helper.tensor_dtype_to_np_dtype(kind)) for kind in kinds]
            for name, kind, dtype in zip(node.output, kinds, types, strict=True):
                is_exotic = dtype in EXOTIC and evaluate is by_runtime
                if is_exotic:
                    nodes.append(helper.make_node("Cast", [name], [name + "_seen"], to=carrier(dtype)))
                wanted.append((name + "_seen", carrier(dtype)) if is_exotic else (name, kind))
            try:
                found = evaluate(model_of(nodes, held, wanted, max(self.opset, 7)))
                result = [np.asarray(value).astype(dtype) for value, dtype in zip(found, types, strict=True)]
            except Exception as error:
                # Without a kernel for these types the reference is asked; what is not valid is not.
                if "NOT_IMPLEMENTED" in str(error) or "INVALID_GRAPH" in str(error):
                    continue
                raise InvalidError from error
            if any(one.size > 20000 for one in result):
                raise InvalidError
            if evaluate is by_reference:
                self.reference_only.append(str(node.name))
            return result
        raise InvalidError


def allows_types(node: Any, held: dict[str, Array], opset: int) -> bool:
    """Whether the operator takes inputs of these types: reference implementations take more."""
    schema = onnx.defs.get_schema(node.op_type, opset)
    for i, name in enumerate(node.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        kind = TensorProto.DataType.Name(onnx_type(held[name].dtype)).lower() if name else ""
        if name and f"tensor({kind})" not in formal.types:
            return False
    return True


def compatible(a: Array, b: Array) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape[::-1], b.shape[::-1], strict=False))


Draw = Callable[[Graph], None]


def unary(op: str, types: list[Any], **attributes: Any) -> Draw:
    def draw(g: Graph) -> None:
        values = {key: value(g) for key, value in attributes.items()}
        g.node(op, [g.operand(types)], **values)

    return draw


def given_axes(g: Graph, op: str, x: str, axes: list[int], since: int, leaves_out: bool, **attributes: Any) -> None:
    """Dimensions in an attribute or, later, in an input."""
    if leaves_out:
        return g.node(op, [x], **attributes)
    if g.opset >= since:
        return g.node(op, [x, g.integers(axes)], **attributes)
    return g.node(op, [x], axes=axes, **attributes)
