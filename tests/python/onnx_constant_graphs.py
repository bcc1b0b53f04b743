"""Random graphs of constants, with the values that ONNX Runtime gives them; the test of folding draws from here.

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
ANY = [*NUMBERS, np.bool_]
# numpy hands these over as floats or bytes, which hold them exactly.
EXOTIC = {np.dtype(one) for one in [ml_dtypes.bfloat16, *SMALL]}


def onnx_type(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def carrier(dtype: Any) -> int:
    return TensorProto.INT32 if np.dtype(dtype) in {np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)} else TensorProto.FLOAT


class Skipped(Exception):
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
            return self.rng.integers(least, max(int(high), least) + (6 if high == 4 else 0), shape, endpoint=True).astype(kind)
        values = self.rng.uniform(low, high, shape)
        if self.chance(0.4):
            values = np.round(values * 2) / 2  # halves: ties, and zeros
        if kind in {np.dtype(ml_dtypes.uint4)}:
            values = np.abs(values)
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
            if self.values[name].dtype in kinds and least <= self.values[name].ndim <= most and self.values[name].size < 3000
        ]
        if fits and self.chance(0.75):
            return fits[0] if self.chance(0.7) else str(self.choice(fits))
        return self.fresh(self.choice(types), self.shape(least, most))

    def partner(self, name: str) -> str:
        """A value of the same type that broadcasts with another one."""
        value = self.values[name]
        if self.chance(0.2):
            fits = [one for one in self.values if self.values[one].dtype == value.dtype and compatible(self.values[one], value)]
            if fits:
                return str(self.choice(fits))
        shape = [1 if self.chance(0.3) else size for size in value.shape]
        return self.fresh(value.dtype, tuple(shape[int(self.rng.integers(len(shape) + 1)) :]))

    def axis(self, rank: int) -> int:
        """Of a dimension, from either end."""
        if rank == 0:
            raise Skipped
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
            raise Skipped
        model = model_of([node], held, [(name, 0) for name in node.output], self.opset)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
            kinds = [int(one.type.tensor_type.elem_type) for one in inferred.graph.output]
        except Exception as error:
            raise Skipped from error
        if any(kind in (0, TensorProto.STRING) for kind in kinds):
            raise Skipped
        # The reference takes the softmax of one dimension, whatever the opset is.
        has_reference = self.opset >= 13 or node.op_type not in ("Softmax", "LogSoftmax", "Hardmax")
        has_reference = has_reference and node.op_type != "GlobalMaxPool"  # whose result there has another shape
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
                raise Skipped from error
            if any(one.size > 20000 for one in result):
                raise Skipped
            if evaluate is by_reference:
                self.reference_only.append(str(node.name))
            return result
        raise Skipped


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


def near(low: float, high: float) -> Callable[[Graph], float]:
    return lambda g: float(np.float32(g.rng.uniform(low, high)))


def inside(op: str, low: float, high: float) -> Draw:
    """A function that not all numbers have."""
    return lambda g: g.node(op, [g.fresh(g.choice(FLOATS), g.shape(), low=low, high=high)])


def binary(op: str, types: list[Any]) -> Draw:
    def draw(g: Graph) -> None:
        a = g.operand(types)
        pair = [a, g.partner(a)]
        g.node(op, pair[::-1] if g.chance(0.3) else pair)

    return draw


def nonzero(g: Graph, dtype: Any, shape: tuple[int, ...]) -> str:
    value = g.numbers(dtype, shape)
    return g.add(np.where(value == 0, np.ones_like(value), value))


def divide(g: Graph) -> None:
    a = g.operand(NUMBERS)
    g.node("Div", [a, nonzero(g, g.values[a].dtype, g.values[g.partner(a)].shape)])


def modulo(g: Graph) -> None:
    a = g.operand(NUMBERS)
    kind = g.values[a].dtype
    is_float = kind not in {np.dtype(one) for one in INTEGERS}
    g.node("Mod", [a, nonzero(g, kind, g.values[g.partner(a)].shape)], fmod=1 if is_float or g.chance(0.4) else None)


def power(g: Graph) -> None:
    base = g.fresh(g.choice([*FLOATS, np.int32, np.int64]), g.shape(0, 4), low=0, high=3)
    kind = g.values[base].dtype if g.opset < 12 or g.chance(0.4) else g.choice([np.float32, np.float64, np.int32, np.int64])
    g.node("Pow", [base, g.fresh(kind, g.values[g.partner(base)].shape, low=0, high=3)])


def variadic(op: str, types: list[Any]) -> Draw:
    def draw(g: Graph) -> None:
        a = g.operand(types)
        g.node(op, [a, *(g.partner(a) for _ in range(int(g.rng.integers(3))))])

    return draw


def shift(g: Graph) -> None:
    a = g.operand(UNSIGNED)
    value = g.values[a]
    by = g.rng.integers(0, value.dtype.itemsize * 8, value.shape).astype(value.dtype)
    g.node("BitShift", [a, g.add(by)], direction=g.choice(["LEFT", "RIGHT"]))


def clip(g: Graph) -> None:
    x = g.operand(NUMBERS if g.opset >= 12 else FLOATS)
    kind = g.values[x].dtype
    if g.opset < 11:
        return g.node("Clip", [x], min=-1.5 if g.chance(0.7) else None, max=1.5 if g.chance(0.7) else None)
    bounds = sorted(g.numbers(kind, (2,)).tolist())
    names = [g.add(np.asarray(one, kind)) if g.chance(0.7) else "" for one in bounds]
    return g.node("Clip", [x, *names])


def prelu(g: Graph) -> None:
    x = g.operand([np.float32, np.float64, np.float16, np.int32, np.int64])
    shape = [1 if g.chance(0.5) else size for size in g.values[x].shape]
    g.node("PRelu", [x, g.fresh(g.values[x].dtype, tuple(shape[int(g.rng.integers(len(shape) + 1)) :]))])


def where(g: Graph) -> None:
    a = g.operand(ANY)
    condition = g.fresh(np.bool_, g.values[g.partner(a)].shape)
    g.node("Where", [condition, a, g.partner(a)])


def cast(g: Graph) -> None:
    to = g.choice([*ANY, *(SMALL if g.opset >= 21 else [])])
    kinds = [*ANY, *(SMALL if g.opset >= 21 else [])]
    x = g.operand(kinds)
    with np.errstate(all="ignore"):
        value = g.values[x].astype(np.float64)
    if np.dtype(to) in {np.dtype(one) for one in INTEGERS} and g.values[x].dtype.kind not in "iub":
        limits = np.iinfo(to)
        if not np.all((value > float(limits.min) - 1) & (value < float(limits.max))):
            raise Skipped  # ONNX leaves the result open
    g.node("Cast", [x], to=onnx_type(to), saturate=int(g.chance(0.5)) if g.opset >= 19 else None)


def cast_like(g: Graph) -> None:
    to = g.choice(FLOATS)
    g.node("CastLike", [g.operand(ANY), g.fresh(to, (1,))])


def constant(g: Graph) -> None:
    kind = int(g.rng.integers(5))
    if g.opset < 12:
        kind = 0
    value = g.numbers(g.choice(ANY), g.shape())
    forms: list[dict[str, Any]] = [
        {"value": numpy_helper.from_array(value)},
        {"value_float": 1.5},
        {"value_int": -7},
        {"value_floats": [0.5, -1.0]},
        {"value_ints": [3, -2, 9]},
    ]
    g.node("Constant", [], **forms[kind])


def constant_of_shape(g: Graph) -> None:
    value = numpy_helper.from_array(g.numbers(g.choice(ANY), (1,))) if g.chance(0.8) else None
    g.node("ConstantOfShape", [g.integers(g.shape())], value=value)


def give_shape(g: Graph) -> None:
    bounds = {"start": int(g.rng.integers(-3, 4)), "end": int(g.rng.integers(-3, 7))} if g.chance(0.5) else {}
    g.node("Shape", [g.operand(ANY)], **bounds)


def number_range(g: Graph) -> None:
    kind = g.choice([np.float32, np.float64, np.int16, np.int32, np.int64])
    step = g.choice([-2, -1, 1, 2, 3]) * (0.5 if np.dtype(kind).kind == "f" else 1)
    start = int(g.rng.integers(-5, 6))
    g.node("Range", [g.add(start, kind), g.add(start + int(g.rng.integers(-3, 12)) * np.sign(step), kind), g.add(step, kind)])


def eye_like(g: Graph) -> None:
    kind = onnx_type(g.choice([np.float32, np.float64, np.int32, np.int64, np.uint64])) if g.chance(0.7) else None
    g.node("EyeLike", [g.operand([np.float32, np.int64, np.int32], 2, 2)], k=int(g.rng.integers(-3, 4)), dtype=kind)


def one_hot(g: Graph) -> None:
    places = g.operand([np.int64, np.int32], 1, 4) if g.chance(0.5) else g.fresh(np.int64, g.shape(1, 4), low=-4, high=3)
    rank = g.values[places].ndim
    kind = g.choice([np.float32, np.int64, np.int32])
    axis = int(g.rng.integers(-rank - 1, rank + 1)) if g.chance(0.7) else None
    g.node("OneHot", [places, g.add(int(g.rng.integers(1, 6)), np.int64), g.fresh(kind, (2,))], axis=axis)


def reshape(g: Graph) -> None:
    x = g.operand(ANY)
    size, shape = g.values[x].size, []
    while size > 1 and len(shape) < 5:
        factor = g.choice([one for one in range(1, size + 1) if size % one == 0])
        shape.append(int(factor))
        size //= int(factor)
    shape.append(size)
    if size > 0 and g.chance(0.4):
        shape[int(g.rng.integers(len(shape)))] = -1
    elif g.chance(0.2):
        shape = [0 if g.chance(0.5) else one for one in g.values[x].shape]
    g.node("Reshape", [x, g.integers(shape)], allowzero=1 if g.opset >= 14 and g.chance(0.2) else None)


def squeeze(g: Graph) -> None:
    x = g.operand(ANY)
    ones = [i for i, size in enumerate(g.values[x].shape) if size == 1 and g.chance(0.7)]
    axes = [one - g.values[x].ndim if g.opset >= 11 and g.chance(0.4) else one for one in ones]
    given_axes(g, "Squeeze", x, axes, 13, g.chance(0.3) or not axes)


def given_axes(g: Graph, op: str, x: str, axes: list[int], since: int, leaves_out: bool, **attributes: Any) -> None:
    """Dimensions in an attribute or, later, in an input."""
    if leaves_out:
        return g.node(op, [x], **attributes)
    if g.opset >= since:
        return g.node(op, [x, g.integers(axes)], **attributes)
    return g.node(op, [x], axes=axes, **attributes)


def unsqueeze(g: Graph) -> None:
    x = g.operand(ANY, 0, 4)
    axes = g.axes(g.values[x].ndim + 2)
    rank = g.values[x].ndim + len(axes)
    given_axes(g, "Unsqueeze", x, sorted({one % rank for one in axes}), 13, False)


def transpose(g: Graph) -> None:
    x = g.operand(ANY)
    order = [int(one) for one in g.rng.permutation(g.values[x].ndim)]
    g.node("Transpose", [x], perm=order if g.chance(0.8) and order else None)


def expand(g: Graph) -> None:
    x = g.operand(ANY, 0, 4)
    shape = [int(g.rng.integers(1, 4)) if size == 1 else g.choice([1, size]) for size in g.values[x].shape]
    g.node("Expand", [x, g.integers([2] * int(g.rng.integers(2)) + shape)])


def tile(g: Graph) -> None:
    x = g.operand(ANY, 1, 4)
    g.node("Tile", [x, g.integers(g.rng.integers(0 if g.chance(0.1) else 1, 4, g.values[x].ndim))])


def concat(g: Graph) -> None:
    x = g.operand(ANY, 1)
    value = g.values[x]
    axis = g.axis(value.ndim)
    parts = [x]
    for _ in range(int(g.rng.integers(1, 4))):
        shape = list(value.shape)
        shape[axis] = int(g.rng.integers(0, 4))
        parts.insert(int(g.rng.integers(2)), g.fresh(value.dtype, tuple(shape)))
    g.node("Concat", parts, axis=axis)


def split(g: Graph) -> None:
    x = g.operand(ANY, 1)
    axis = g.axis(g.values[x].ndim)
    size = g.values[x].shape[axis]
    count = int(g.rng.integers(1, 4))
    if g.chance(0.5):
        parts = [size // count] * count if size % count == 0 else [1] * size
        if g.opset >= 18:
            return g.node("Split", [x], count, axis=axis, num_outputs=count)
        return g.node("Split", [x], len(parts), axis=axis)
    cuts = sorted(int(one) for one in g.rng.integers(0, size + 1, count - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    if g.opset >= 13:
        return g.node("Split", [x, g.integers(parts)], count, axis=axis)
    return g.node("Split", [x], count, axis=axis, split=parts)


def take_slice(g: Graph) -> None:
    x = g.operand(ANY, 1)
    axes = g.axes(g.values[x].ndim)
    starts, ends = (g.rng.integers(-5, 6, len(axes)).tolist() for _ in range(2))
    if g.chance(0.2):
        ends[0] = 2**62
    if g.opset < 10:
        return g.node("Slice", [x], starts=starts, ends=ends, axes=[one % g.values[x].ndim for one in axes])
    steps = [int(g.choice([-3, -2, -1, 1, 1, 2])) for _ in axes]
    return g.node("Slice", [x, *(g.integers(one) for one in (starts, ends, axes, steps))])


def pad(g: Graph) -> None:
    x = g.operand(NUMBERS if g.opset >= 13 else [np.float32, np.float64, np.float16], 1)
    value = g.values[x]
    mode = g.choice(["constant", "constant", "edge", "reflect", *(["wrap"] if g.opset >= 19 else [])])
    axes = g.axes(value.ndim) if g.opset >= 18 and g.chance(0.5) else list(range(value.ndim))
    most = [max(0, value.shape[one] - 1) if mode in ("reflect", "wrap") else 3 for one in axes]
    low = -1 if g.chance(0.2) else 0
    pads = [int(g.rng.integers(low, min(one, 3) + 1)) for one in most + most]
    if g.opset < 11:
        return g.node("Pad", [x], pads=pads, mode=mode, value=1.5)
    fill = g.fresh(value.dtype, ()) if mode == "constant" and g.chance(0.7) else ""
    named = [g.integers(axes)] if g.opset >= 18 and len(axes) != value.ndim else []
    if not named:
        order = np.argsort([one % value.ndim for one in axes])
        pads = [pads[i] for i in order] + [pads[len(axes) + i] for i in order]
    return g.node("Pad", [x, g.integers(pads), fill, *named], mode=mode)


def trilu(g: Graph) -> None:
    k = [g.add(int(g.rng.integers(-4, 5)), np.int64)] if g.chance(0.7) else []
    g.node("Trilu", [g.operand(ANY, 2), *k], upper=int(g.chance(0.5)))


def blocks(g: Graph) -> None:
    size = g.choice([1, 2, 3])
    kind = g.choice([np.float32, np.float64, np.int32, np.uint8])
    if g.chance(0.5):
        x = g.fresh(kind, (2, size * size * 2, 2, 3))
        return g.node("DepthToSpace", [x], blocksize=size, mode=g.choice(["DCR", "CRD", None]) if g.opset >= 11 else None)
    return g.node("SpaceToDepth", [g.fresh(kind, (1, 2, 2 * size, 3 * size))], blocksize=size)


def reverse_sequence(g: Graph) -> None:
    x = g.operand(ANY, 2)
    shape = g.values[x].shape
    time = int(g.rng.integers(2))
    lengths = g.integers(g.rng.integers(1, max(shape[time], 1) + 1, shape[1 - time]))
    g.node("ReverseSequence", [x, lengths], time_axis=time, batch_axis=1 - time)


def places(g: Graph, size: int, shape: tuple[int, ...]) -> str:
    if size == 0:
        raise Skipped
    kind = g.choice([np.int64, np.int32])
    return g.add(g.rng.integers(-size if g.opset >= 11 else 0, size, shape), kind)


def gather(g: Graph) -> None:
    x = g.operand(ANY, 1, 4)
    axis = g.axis(g.values[x].ndim)
    g.node("Gather", [x, places(g, g.values[x].shape[axis], g.shape(0, 3))], axis=axis)


def inner_shape(g: Graph, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    inner = [int(g.rng.integers(1, size + 1)) if size else 0 for size in shape]
    inner[axis] = int(g.rng.integers(1, 4))
    return tuple(inner)


def gather_elements(g: Graph) -> None:
    x = g.operand(ANY, 1, 5)
    value = g.values[x]
    axis = g.axis(value.ndim)
    g.node("GatherElements", [x, places(g, value.shape[axis], inner_shape(g, value.shape, axis))], axis=axis)


def tuples(g: Graph, shape: tuple[int, ...], lead: tuple[int, ...], depth: int) -> Array:
    if 0 in shape:
        raise Skipped
    return np.stack([g.rng.integers(-size, size, lead) for size in shape[:depth]], -1)


def gather_nd(g: Graph) -> None:
    x = g.operand(ANY, 1, 5)
    shape = g.values[x].shape
    shared = int(g.rng.integers(len(shape))) if g.opset >= 12 else 0
    depth = int(g.rng.integers(1, len(shape) - shared + 1))
    found = tuples(g, shape[shared:], (*shape[:shared], *g.shape(0, 2)), depth)
    g.node("GatherND", [x, g.integers(found)], batch_dims=shared or None)


def reduction(g: Graph) -> str | None:
    names = [None, "add", "mul", *(["max", "min"] if g.opset >= 18 else [])]
    return str(g.choice(names[1:])) if g.opset >= 16 and g.chance(0.6) else None


def scatter_elements(g: Graph) -> None:
    how = reduction(g)
    x = g.operand(NUMBERS if how else ANY, 1, 4)
    value = g.values[x]
    axis = g.axis(value.ndim)
    if value.shape[axis] == 0:
        raise Skipped
    shape = list(inner_shape(g, value.shape, axis))
    shape[axis] = min(shape[axis], value.shape[axis])
    # Without a reduction each place is written once.
    order = g.rng.permuted(np.broadcast_to(np.arange(value.shape[axis]), (*shape[:axis % value.ndim], *shape[axis % value.ndim + 1:], value.shape[axis])), axis=-1)
    at = np.moveaxis(order, -1, axis % value.ndim).take(range(shape[axis]), axis % value.ndim)
    op = "ScatterElements" if g.opset >= 11 else "Scatter"
    g.node(op, [x, g.integers(at), g.fresh(value.dtype, tuple(shape))], axis=axis, reduction=how)


def scatter_nd(g: Graph) -> None:
    how = reduction(g)
    x = g.operand(NUMBERS if how else ANY, 1, 4)
    shape = g.values[x].shape
    depth = int(g.rng.integers(1, len(shape) + 1))
    found = np.unique(tuples(g, shape, (3,), depth) % np.asarray(shape[:depth]), axis=0)
    g.node("ScatterND", [x, g.integers(found), g.fresh(g.values[x].dtype, (len(found), *shape[depth:]))], reduction=how)


def compress(g: Graph) -> None:
    x = g.operand(ANY, 1)
    value = g.values[x]
    axis = g.axis(value.ndim) if g.chance(0.7) else None
    size = value.size if axis is None else value.shape[axis]
    g.node("Compress", [x, g.fresh(np.bool_, (int(g.rng.integers(0, size + 1)),))], axis=axis)


def top_k(g: Graph) -> None:
    x = g.operand([np.float32, np.float64, np.int32, np.int64], 1)
    axis = g.axis(g.values[x].ndim)
    k = int(g.rng.integers(0, g.values[x].shape[axis] + 1))
    if g.opset < 10:
        return g.node("TopK", [x], 2, axis=axis, k=k)
    return g.node("TopK", [x, g.integers([k])], 2, axis=axis, largest=int(g.chance(0.5)))


def best(op: str) -> Draw:
    def draw(g: Graph) -> None:
        x = g.operand([np.float32, np.float64, np.float16, np.int32, np.int8, np.uint8, np.int64], 1)
        last = int(g.chance(0.5)) if g.opset >= 12 else None
        g.node(op, [x], axis=g.axis(g.values[x].ndim), keepdims=int(g.chance(0.5)), select_last_index=last)

    return draw


def unique(g: Graph) -> None:
    x = g.operand([np.float32, np.float64, np.int64, np.int8], 1, 3)
    axis = g.axis(g.values[x].ndim) if g.chance(0.5) else None
    g.node("Unique", [x], 4, axis=axis, sorted=int(g.chance(0.6)))


def cum_sum(g: Graph) -> None:
    x = g.operand([np.float32, np.float64, np.int32, np.int64], 1)
    axis = g.add(g.axis(g.values[x].ndim), np.int32)
    g.node("CumSum", [x, axis], exclusive=int(g.chance(0.4)), reverse=int(g.chance(0.4)))


def reduce(op: str) -> Draw:
    def draw(g: Graph) -> None:
        kinds = [*FLOATS, *WIDE] if op not in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp") else FLOATS
        if op == "ReduceLogSum":
            x = g.fresh(g.choice(kinds), g.shape(), low=0.1)
        elif op == "ReduceMean":  # the sum of integers can wrap before it is divided
            x = g.fresh(g.choice([*FLOATS, np.int32]), g.shape(), low=-5)
        else:
            x = g.operand([*kinds, np.int8, np.uint8, np.bool_] if op in ("ReduceMax", "ReduceMin") else kinds)
        if g.values[x].dtype.kind in "iu":  # ONNX Runtime saturates sums that ONNX's reference wraps
            x = g.fresh(g.values[x].dtype, g.shape(0, 4), low=-2, high=2)
        rank = g.values[x].ndim
        since = 13 if op == "ReduceSum" else 18
        noop = int(g.chance(0.3)) if g.opset >= since else None
        given_axes(
            g, op, x, g.axes(rank), since, rank == 0 or g.chance(0.3), keepdims=int(g.chance(0.5)), noop_with_empty_axes=noop
        )

    return draw


def shares(op: str) -> Draw:
    def draw(g: Graph) -> None:
        x = g.operand(FLOATS, 1)
        g.node(op, [x], axis=g.axis(g.values[x].ndim) if g.chance(0.8) else None)

    return draw


def mat_mul(g: Graph) -> None:
    kind = g.choice([*FLOATS, *WIDE]) if g.opset >= 9 else g.choice(FLOATS)
    inner = int(g.rng.integers(1, 5))
    batch = g.shape(0, 2)
    a = () if g.chance(0.2) else (*batch[int(g.rng.integers(len(batch) + 1)) :], int(g.rng.integers(1, 4)))
    b = () if g.chance(0.2) else (*(batch if a else ()), inner, int(g.rng.integers(1, 4)))
    g.node("MatMul", [g.fresh(kind, (*a, inner)), g.fresh(kind, b or (inner,))])


def mat_mul_integer(g: Graph) -> None:
    a = g.fresh(np.uint8, (2, 3, 4))
    b = g.fresh(g.choice([np.uint8, np.int8]), (4, 5))
    zeros = [g.fresh(np.uint8, ()), g.fresh(g.values[b].dtype, g.choice([(), (5,)]))] if g.chance(0.7) else []
    g.node("MatMulInteger", [a, b, *zeros])


def gemm(g: Graph) -> None:
    kind = g.choice([np.float32, np.float64, np.float16])
    m, k, n = (int(one) for one in g.rng.integers(1, 5, 3))
    turned = [int(g.chance(0.4)) for _ in range(2)]
    a = g.fresh(kind, (k, m) if turned[0] else (m, k))
    b = g.fresh(kind, (n, k) if turned[1] else (k, n))
    c = [g.fresh(kind, g.choice([(), (1,), (n,), (m, 1), (m, n), (1, n)]))] if g.chance(0.7) or g.opset < 11 else []
    g.node("Gemm", [a, b, *c], transA=turned[0], transB=turned[1], alpha=g.choice([1.0, 0.5]), beta=g.choice([1.0, -2.0]))


def einsum(g: Graph) -> None:
    shapes = {"i": 2, "j": 3, "k": 4}
    equation = g.choice(["ij,jk->ik", "ij,jk", "ij->ji", "ij->", "ii->i", "ii", "...i,...i->...", "i,j->ij", "ijk,jk->ki", "ij,kj,ik->j"])
    kind = g.choice([np.float32, np.float64, np.int64, np.int32])
    inputs = [
        g.fresh(kind, tuple(shapes[one] for one in term.replace("...", "jk" if "..." in term else "")))
        for term in equation.split("->")[0].split(",")
    ]
    g.node("Einsum", inputs, equation=equation)


def determinant(g: Graph) -> None:
    size = int(g.rng.integers(1, 5))
    g.node("Det", [g.fresh(g.choice([np.float32, np.float64]), (*g.shape(0, 2), size, size))])


def window(g: Graph, rank: int, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"strides": g.rng.integers(1, 3, rank).tolist() if g.chance(0.6) else None, **more}
    how = g.rng.random()
    if how < 0.4:
        result["pads"] = g.rng.integers(0, 2, 2 * rank).tolist()
    elif how < 0.7:
        result["auto_pad"] = g.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return result


def convolution(g: Graph) -> None:
    rank, groups = int(g.rng.integers(1, 4)), int(g.rng.integers(1, 3))
    kind = g.choice([np.float32, np.float32, np.float64, np.float16])
    kernel = tuple(int(one) for one in g.rng.integers(1, 4, rank))
    x = g.fresh(kind, (2, 2 * groups, *(int(one) for one in g.rng.integers(4, 7, rank))))
    settings = window(g, rank, group=groups, dilations=g.rng.integers(1, 3, rank).tolist() if g.chance(0.3) else None)
    if settings.get("auto_pad", "VALID") != "VALID":
        settings["dilations"] = None
    bias = [g.fresh(kind, (2 * groups,))] if g.chance(0.5) else []
    if g.chance(0.5):
        return g.node("Conv", [x, g.fresh(kind, (2 * groups, 2, *kernel)), *bias], **settings)
    more = [int(g.rng.integers(0, one)) for one in settings["strides"] or [1] * rank]
    return g.node("ConvTranspose", [x, g.fresh(kind, (2 * groups, 2, *kernel)), *bias], output_padding=more if g.chance(0.3) else None, **settings)


def conv_integer(g: Graph) -> None:
    x, w = g.fresh(np.uint8, (1, 2, 5, 5)), g.fresh(g.choice([np.uint8, np.int8]), (3, 2, 2, 2))
    zeros = [g.fresh(np.uint8, ()), g.fresh(g.values[w].dtype, ())] if g.chance(0.7) else []
    g.node("ConvInteger", [x, w, *zeros], **window(g, 2))


def pooling(g: Graph) -> None:
    rank = int(g.rng.integers(1, 4))
    op = g.choice(["AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    x = g.fresh(g.choice([np.float32, np.float32, np.float64, np.float16]), (1, 2, *(int(one) for one in g.rng.integers(4, 8, rank))))
    if op.startswith("Global"):
        return g.node(op, [x], p=g.choice([1, 2, 3]))
    settings = window(g, rank, kernel_shape=g.rng.integers(2, 4, rank).tolist())
    if g.opset >= 10 and op != "LpPool" and "auto_pad" not in settings:
        settings["ceil_mode"] = int(g.chance(0.4))
        if op == "MaxPool" or g.opset >= 19:
            settings["dilations"] = g.rng.integers(1, 3, rank).tolist() if g.chance(0.3) else None
    if op == "MaxPool":
        return g.node(op, [x], 2 if g.opset >= 8 and g.chance(0.5) else 1, storage_order=int(g.chance(0.3)) if g.opset >= 8 else None, **settings)
    return g.node(op, [x], count_include_pad=int(g.chance(0.5)), p=g.choice([1, 2, 3]), **settings)


def positive(g: Graph, kind: Any, shape: tuple[int, ...]) -> str:
    return g.fresh(kind, shape, low=0.5, high=2)


def normalization(g: Graph) -> None:
    kind = g.choice([np.float32, np.float32, np.float64, np.float16])
    shape = (2, 4, *(max(one, 1) for one in g.shape(1, 3)))  # ONNX Runtime ends the process for empty ones
    x = g.fresh(kind, shape)
    op = g.choice(["BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "LpNormalization", "LRN"])
    epsilon = g.choice([1e-5, 1e-2])
    if op == "BatchNormalization":
        trains = g.opset >= 14 and g.chance(0.3)
        four = [g.fresh(kind, (4,)), g.fresh(kind, (4,)), g.fresh(kind, (4,)), positive(g, kind, (4,))]
        return g.node(op, [x, *four], 3 if trains else 1, epsilon=epsilon, training_mode=int(trains))
    if op in ("LayerNormalization", "RMSNormalization"):
        axis = g.axis(len(shape))
        part = shape[axis:]
        bias = [g.fresh(kind, part)] if op == "LayerNormalization" and g.chance(0.6) else []
        return g.node(op, [x, g.fresh(kind, part), *bias], 3 if op == "LayerNormalization" and g.chance(0.3) else 1, axis=axis, epsilon=epsilon)
    if op == "LpNormalization":
        return g.node(op, [x], axis=g.axis(len(shape)), p=g.choice([1, 2]))
    if op == "LRN":
        return g.node(op, [g.fresh(np.float32, (2, 4, 3, 2))], size=g.choice([1, 3, 5]), alpha=0.5, beta=g.choice([0.75, 0.5]), bias=g.choice([1.0, 2.0]))
    groups = 2 if op == "GroupNormalization" else None
    count = 2 if groups and g.opset < 21 else 4
    return g.node(op, [x, g.fresh(kind, (count,)), g.fresh(kind, (count,))], num_groups=groups, epsilon=epsilon)


def quantization(g: Graph) -> None:
    kinds: list[Any] = [np.uint8, np.int8]
    if g.opset >= 21:
        kinds += [np.uint16, np.int16, ml_dtypes.int4, ml_dtypes.uint4]
    if g.opset >= 19:
        kinds += SMALL[:4]
    target = g.choice(kinds)
    real = g.choice([np.float32, np.float32, np.float16]) if g.opset >= 19 else np.float32
    x = g.fresh(real, g.shape(1, 4), low=-10, high=10)
    shape, axis, block = g.values[x].shape, None, None
    of_scales: tuple[int, ...] = ()
    if g.opset >= 13 and g.chance(0.6):
        axis = g.axis(len(shape))
        of_scales = (shape[axis],)
        if g.opset >= 21 and g.chance(0.5):
            block = 2
            whole = list(shape)
            whole[axis] = -(-shape[axis] // block)
            of_scales = tuple(whole)
    scale = g.add(g.choice([0.25, 0.3, 0.05, 1.0]) * np.ones(of_scales), real)
    is_float = target in SMALL[:4]
    zero = g.add(np.zeros(of_scales), target) if is_float else g.fresh(target, of_scales, low=0, high=5)
    has_zero = g.chance(0.8) or target is not np.uint8
    settings: dict[str, Any] = {"axis": axis, "block_size": block}
    more = {"saturate": int(g.chance(0.5))} if is_float else {}
    g.node("QuantizeLinear", [x, scale, *([zero] if has_zero else [])], **settings, **more)
    if g.chance(0.7):
        g.node("DequantizeLinear", [f"v{len(g.nodes) - 1}_0", scale, *([zero] if has_zero else [])], **settings)


def dequantize_wide(g: Graph) -> None:
    g.node("DequantizeLinear", [g.fresh(np.int32, g.shape(0, 3)), g.add(0.5, np.float32)])


def dynamic_quantization(g: Graph) -> None:
    g.node("DynamicQuantizeLinear", [g.fresh(np.float32, g.shape(1, 3), low=-3, high=g.choice([-1, 5]))], 3)


def resize(g: Graph) -> None:
    x = g.fresh(g.choice([np.float32, np.float32, np.float64]), (1, 2, 4, 6))
    scales = g.add([1, 1, g.choice([0.5, 2, 3, 1.5]), g.choice([0.5, 2, 1])], np.float32)
    mode = g.choice(["nearest", "linear"])
    if g.opset < 9:
        return g.node("Upsample", [g.fresh(np.float32, (1, 2, 3, 3))], mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
    if g.opset == 9:
        return g.node("Upsample", [x, g.add([1, 1, 2, 3], np.float32)], mode=mode)
    if g.opset == 10:
        return g.node("Resize", [x, scales], mode=mode)
    places = g.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    rounding = g.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    mode = g.choice(["nearest", "linear", "cubic"])
    roi = "" if g.opset >= 13 else g.add([], np.float32)
    settings = {"mode": mode, "coordinate_transformation_mode": places, "nearest_mode": rounding if mode == "nearest" else None}
    if g.chance(0.4):
        empty = "" if g.opset >= 13 else g.add([], np.float32)
        return g.node("Resize", [x, roi, empty, g.integers([1, 2, int(g.rng.integers(1, 9)), int(g.rng.integers(1, 9))])], **settings)
    return g.node("Resize", [x, roi, scales], **settings)


def non_zero(g: Graph) -> None:
    # The text of ONNX gives a single number no row of places, ONNX Runtime one.
    g.node("NonZero", [g.operand([np.float32, np.int64, np.int32, np.uint8, np.bool_], 1)])


def mean_of(op: str) -> Draw:
    return variadic(op, FLOATS[:4])


TRUTHS: list[Any] = [np.bool_]
OPERATORS: dict[str, Draw] = {
    **{op: binary(op, NUMBERS) for op in ("Add", "Sub", "Mul")},
    **{op: binary(op, NUMBERS) for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual")},
    **{op: binary(op, TRUTHS) for op in ("And", "Or", "Xor")},
    **{op: binary(op, INTEGERS) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{op: unary(op, FLOATS) for op in ("Floor", "Ceil", "Round", "Reciprocal", "Exp", "Sin", "Cos", "Tan", "Atan")},
    **{op: unary(op, FLOATS) for op in ("Sinh", "Cosh", "Tanh", "Asinh", "Erf", "Sigmoid", "Softplus", "Softsign")},
    **{op: unary(op, FLOATS) for op in ("HardSwish", "Mish", "IsNaN", "IsInf", "Selu")},
    **{op: unary(op, [*FLOATS, *SIGNED]) for op in ("Neg", "Abs", "Sign", "Relu")},
    **{op: unary(op, FLOATS, alpha=near(0.1, 2)) for op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")},
    **{op: inside(op, -0.9, 0.9) for op in ("Asin", "Acos", "Atanh")},
    **{op: variadic(op, NUMBERS) for op in ("Max", "Min")},
    **{op: mean_of(op) for op in ("Sum", "Mean")},
    **{op: best(op) for op in ("ArgMax", "ArgMin")},
    **{op: shares(op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    **{
        op: reduce(op)
        for op in (
            "ReduceSum",
            "ReduceMean",
            "ReduceProd",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSum",
            "ReduceLogSumExp",
        )
    },
    "Acosh": inside("Acosh", 1.1, 4),
    "BatchNormalization": normalization,
    "BitShift": shift,
    "BitwiseNot": unary("BitwiseNot", INTEGERS),
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": clip,
    "Compress": compress,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Conv": convolution,
    "ConvInteger": conv_integer,
    "CumSum": cum_sum,
    "DepthToSpace": blocks,
    "DequantizeLinear": dequantize_wide,
    "Det": determinant,
    "Div": divide,
    "Dropout": unary("Dropout", FLOATS),
    "DynamicQuantizeLinear": dynamic_quantization,
    "Einsum": einsum,
    "Equal": binary("Equal", ANY),
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": unary("Flatten", ANY, axis=lambda g: int(g.rng.integers(0, 2))),
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Gelu": unary("Gelu", FLOATS, approximate=lambda g: g.choice(["none", "tanh"])),
    "Gemm": gemm,
    "HardSigmoid": unary("HardSigmoid", FLOATS, alpha=near(0.1, 1), beta=near(0, 1)),
    "Identity": unary("Identity", ANY),
    "Log": inside("Log", 0.1, 9),
    "MatMul": mat_mul,
    "MatMulInteger": mat_mul_integer,
    "Mod": modulo,
    "NonZero": non_zero,
    "Not": unary("Not", TRUTHS),
    "OneHot": one_hot,
    "PRelu": prelu,
    "Pad": pad,
    "Pow": power,
    "QuantizeLinear": quantization,
    "Range": number_range,
    "Reshape": reshape,
    "Resize": resize,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Shape": give_shape,
    "Shrink": unary("Shrink", [np.float32, np.float64], bias=near(0, 1), lambd=near(0, 1)),
    "Size": unary("Size", ANY),
    "Slice": take_slice,
    "Split": split,
    "Sqrt": inside("Sqrt", 0, 9),
    "Squeeze": squeeze,
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
    "Where": where,
    "pooling": pooling,
}


def random_graph(seed: int, most: int = 8) -> Graph:
    """1 to `most` nodes, each with its values."""
    rng = np.random.default_rng(seed)
    g = Graph(rng, int(rng.integers(7, 24)))
    count = int(rng.integers(1, most + 1))
    for _ in range(4 * count):
        if len(g.nodes) >= count:
            break
        values, nodes = dict(g.values), list(g.nodes)
        initializers = list(g.initializers)
        try:
            g.choice(list(OPERATORS.values()))(g)
        except (Skipped, onnx.defs.SchemaError):
            g.values, g.nodes, g.initializers = values, nodes, initializers
    return g
