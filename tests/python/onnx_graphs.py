"""Random graphs of ONNX, and ONNX Runtime's answers to them. Some have several inputs and outputs, of several types.

``draw(seed, number)`` makes the same graph each time. The makers of nodes are in onnx_makers.py. Every node is run in
ONNX Runtime while the graph grows: that gives the shapes and types for the next node, and nodes that ONNX Runtime
refuses are drawn again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import onnx_compare
from onnx_compare import Array

OPSETS = range(7, 22)
LARGEST = 6000  # numbers in a value
ROWS = 3  # of an input whose first dimension is free

# Operators whose results are exact, so that a step function behind them has one answer.
EXACT = frozenset({
    "Abs", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape",
    "DepthToSpace", "Dropout", "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
    "Greater", "GreaterOrEqual", "Hardmax", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool",
    "Min", "Neg", "Not", "OneHot", "Or", "Pad", "QuantizeLinear", "Range", "ReduceMax", "ReduceMin", "Relu",
    "Reshape", "Round", "ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice", "SpaceToDepth", "Split",
    "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
})  # fmt: skip


# Operators whose float16 results are those of exact numbers, rounded once.
ROUNDED = EXACT | {"Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal"}


class RefusedError(Exception):
    """ONNX Runtime does not take this node or graph."""


@dataclass
class Node:
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


@dataclass
class Graph:
    opset: int
    x: Array
    free: bool  # the first dimension of the input has no fixed size
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    output: str = "x"
    more: dict[str, Array] = field(default_factory=dict)  # inputs besides x
    rows: frozenset[str] = frozenset()  # those whose first dimension is that of x, where it has no fixed size
    also: list[str] = field(default_factory=list)  # outputs besides the first one

    @property
    def inputs(self) -> dict[str, Array]:
        return {"x": self.x, **self.more}

    @property
    def outputs(self) -> list[str]:
        return [self.output, *self.also]

    def copy(self) -> Graph:
        return copy.deepcopy(self)

    def prune(self) -> Graph:
        """Without the nodes, constants and inputs that the outputs do not need."""
        wanted, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if wanted & set(node.outputs):
                kept.append(node)
                wanted |= set(node.inputs)
        constants = {name: value for name, value in self.constants.items() if name in wanted}
        more = {name: value for name, value in self.more.items() if name in wanted}
        one = Graph(self.opset, self.x, self.free, kept[::-1], constants, self.output)
        one.more, one.rows, one.also = more, self.rows & set(more), list(self.also)
        return one

    def fewer(self) -> Graph:
        """For a row less in the batch."""
        one = self.copy()
        one.x = np.ascontiguousarray(self.x[:-1])
        for name in self.rows:
            one.more[name] = np.ascontiguousarray(self.more[name][:-1])
        return one

    def shape(self, name: str) -> list[int | str]:
        """The shape of an input as the file has it."""
        sizes: list[int | str] = list(self.inputs[name].shape)
        if self.free and (name == "x" or name in self.rows):
            sizes[0] = "n"
        return sizes

    def model(self, outputs: dict[str, Array]) -> onnx.ModelProto:
        """A file with these outputs, of the types and ranks of these values."""
        graph = helper.make_graph(
            [helper.make_node(node.op, node.inputs, node.outputs, **node.attributes) for node in self.nodes],
            "random",
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), self.shape(name))
                for name, value in self.inputs.items()
            ],
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(value.dtype), [f"d{i}" for i in range(value.ndim)]
                )
                for name, value in outputs.items()
            ],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        # IR 8 has initializers that are no inputs, whatever the opset.
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def __str__(self) -> str:
        lines = [f"opset {self.opset}"]
        lines += [f"{name}: {value.dtype}{self.shape(name)} = {_brief(value)}" for name, value in self.inputs.items()]
        for node in self.nodes:
            inputs = ", ".join(
                f"{name}:{_brief(self.constants[name])}" if name in self.constants else name or "-"
                for name in node.inputs
            )
            attributes = "".join(f" {key}={_brief(value)}" for key, value in node.attributes.items())
            lines.append(f"{', '.join(node.outputs)} = {node.op}({inputs}){attributes}")
        return "\n  ".join([*lines, f"output {', '.join(self.outputs)}"])


def _brief(value: Any) -> str:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if not isinstance(value, np.ndarray):
        return str(value)
    numbers = " ".join(f"{number:.9g}" if value.dtype.kind == "f" else str(number) for number in value.flatten()[:12])
    more = " ..." if value.size > 12 else ""
    return f"{value.dtype}{list(value.shape)}[{numbers}{more}]"


def _session(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _one_node(opset: int, node: Node, values: dict[str, Array]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(node.op, node.inputs, node.outputs, **node.attributes)],
        "node",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(values[name].dtype), list(values[name].shape)
            )
            for name in dict.fromkeys(node.inputs)
            if name
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run_node(opset: int, node: Node, values: dict[str, Array]) -> list[Array]:
    """The outputs of one node."""
    try:
        feeds = {name: values[name] for name in node.inputs if name}
        return [np.asarray(value) for value in _session(_one_node(opset, node, values)).run(None, feeds)]
    except Exception as error:  # each kind of mistake has another type
        raise RefusedError(f"{node.op}: {error}") from error


def answers(graph: Graph, names: list[str]) -> list[Array]:
    """ONNX Runtime's values of these names."""
    try:
        model = graph.model({})
        model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
        return [np.asarray(value) for value in _session(model).run(None, graph.inputs)]
    except Exception as error:
        raise RefusedError(str(error)) from error


def noisy_answers(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """The answers if operands and results of nodes that are not exact differ in their last places.

    Another order of a sum, or a formula in another form, changes them so. Results also differ by as much as ONNX
    Runtime's and ONNX's own reference do.
    """
    values = {**graph.inputs, **graph.constants}
    for node in graph.nodes:
        exact = node.op in EXACT
        taken = {name: values[name] for name in node.inputs if name}
        if not exact:  # scales of a Resize decide on its shape
            operands = node.inputs[:1] if node.op in ("Resize", "Upsample") else list(taken)
            taken |= {name: _noisy(rng, values[name], 1.2e-7, 0) for name in operands}
        results = run_node(graph.opset, node, taken)
        others = results if exact else _reference(graph.opset, node, taken, results)
        for name, value, other in zip(node.outputs, results, others, strict=True):
            if value.dtype == np.float16 and node.op not in ROUNDED:
                values[name] = (value * (1 + 5e-4 * rng.choice([-1.0, 1.0], value.shape))).astype(np.float16)
            else:
                values[name] = value if exact else _noisy(rng, value, 5e-7, 2e-7, other)
    return [values[name] for name in graph.outputs]


def _reference(opset: int, node: Node, values: dict[str, Array], results: list[Array]) -> list[Array]:
    """The results by onnx.reference, where it agrees about their shapes, else those given."""
    try:
        evaluator = ReferenceEvaluator(_one_node(opset, node, values))
        found = [np.asarray(value) for value in evaluator.run(None, {name: values[name] for name in values})]
    except Exception:  # it lacks forms of several operators
        return results
    if len(found) != len(results):
        return results
    return [
        other if other.shape == value.shape and other.dtype == value.dtype else value
        for other, value in zip(found, results, strict=True)
    ]


def _noisy(
    rng: np.random.Generator, value: Array, relative: float, of_largest: float, other: Array | None = None
) -> Array:
    finite = np.isfinite(value) if value.dtype == np.float32 else np.zeros(value.shape, bool)
    if not finite.any():
        return value
    largest = np.abs(value[finite]).max()
    noise = relative * np.abs(value) + of_largest * largest
    if other is not None:  # more than rounding is no noise
        distance = np.abs(value - other)
        noise = np.where(distance <= 1e-3 * largest, np.maximum(noise, distance), noise)
    noise = np.where(finite, noise, 0) * rng.choice([-1.0, 1.0], value.shape)
    return np.where(finite, value + noise, value).astype(np.float32)


class Draw:
    """A graph that grows, with the value of every name."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.mixes = self.chance(0.2)  # axes are chosen without regard to the batch
        self.special = self.chance(0.12)  # infinities and NaN in the input
        rank = int(rng.choice(7, p=[0.04, 0.08, 0.24, 0.22, 0.26, 0.09, 0.07]))
        free = rank > 0 and self.chance(0.6)
        shape = [int(rng.integers(1, 6)) for _ in range(rank)]
        if free:
            shape[0] = ROWS
        if rank == onnx_compare.IMAGES and len({*shape[1:]}) == 1:
            shape[1] += 1  # it shows whether the model takes the channels first
        self.graph = Graph(int(rng.choice(list(OPSETS))), self.numbers(tuple(shape), self.special), free)
        self._count = 0
        for name in ["a", "b"][: int(rng.choice(3, p=[0.65, 0.2, 0.15]))]:
            self._add_input(name)
        self.values: dict[str, Array] = dict(self.graph.inputs)
        self.data = list(self.graph.inputs)  # the names that depend on an input

    def _add_input(self, name: str) -> None:
        """An input that broadcasts with x, or has as many rows: of its own type."""
        graph, sizes = self.graph, list(self.graph.x.shape)
        way = self.whole(0, 3)
        if way == 0:
            sizes = sizes[self.whole(0, len(sizes)) :]
        elif way == 1:
            sizes = [1 if self.chance(0.5) else size for size in sizes]
        elif way == 2 and sizes:
            sizes = [sizes[0], *(self.whole(1, 4) for _ in range(self.whole(0, 2)))]
        graph.more[name] = self._typed(tuple(sizes))
        has_rows = len(sizes) > 0 and sizes[0] == ROWS and (way != 0 or len(sizes) == graph.x.ndim)
        if graph.free and has_rows and self.chance(0.8):
            graph.rows |= {name}

    def _typed(self, shape: tuple[int, ...]) -> Array:
        kind = self.choose([np.float32, np.float32, np.int64, np.int64, np.int32, np.bool_, np.uint8])
        if kind == np.float32:
            return self.numbers(shape)
        low, high = {np.bool_: (0, 2), np.uint8: (0, 9)}.get(kind, (-4, 6))
        return self.rng.integers(low, high, shape).astype(kind)

    @property
    def opset(self) -> int:
        return self.graph.opset

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def choose(self, values: Any) -> Any:
        """One of a sequence."""
        return values[int(self.rng.integers(len(values)))]

    def whole(self, low: int, high: int) -> int:
        """An integer from low up to high, which is one of them."""
        return int(self.rng.integers(low, high + 1))

    def numbers(self, shape: tuple[int, ...], special: bool = False) -> Array:
        """Floats of both signs, some of them 0, whole or half."""
        values = self.rng.normal(0, 2, shape)
        values = np.where(self.rng.random(shape) < 0.15, np.round(values * 2) / 2, values)
        values = np.where(self.rng.random(shape) < 0.05, 0.0, values)
        if special:
            odd = self.rng.choice([np.inf, -np.inf, np.nan, -0.0, 1e30, 1e-30], shape)
            values = np.where(self.rng.random(shape) < 0.15, odd, values)
        return np.asarray(values, np.float32)

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def low(self, rank: int) -> int:
        """The first axis that a node may treat as it likes: the batch is none unless the graph mixes it."""
        return 0 if self.mixes or rank == 0 or self.chance(0.03) else 1

    def axis(self, rank: int) -> int:
        """An axis, or its negative form."""
        low = self.low(rank)
        if low >= rank:
            raise RefusedError("no axis")
        axis = self.whole(low, rank - 1)
        return axis - rank if self.chance(0.4) and self.opset >= 11 else axis

    def axes(self, rank: int) -> list[int]:
        """One axis or several."""
        low = self.low(rank)
        if low >= rank:
            raise RefusedError("no axis")
        count = self.whole(1, rank - low)
        chosen = sorted(int(axis) for axis in self.rng.choice(np.arange(low, rank), count, replace=False))
        return [axis - rank if self.chance(0.3) and self.opset >= 11 else axis for axis in chosen]

    def initializer(self, value: Any, kind: npt.DTypeLike | None = None) -> str:
        name = f"c{len(self.graph.constants)}_{self._count}"
        self.values[name] = self.graph.constants[name] = np.array(value, dtype=kind, order="C")
        return name

    def constant(self, value: Any, kind: npt.DTypeLike | None = None) -> str:
        """A constant, which one time in four is the result of nodes without data."""
        array = np.asarray(value, dtype=kind)
        if not self.chance(0.25):
            return self.initializer(array)
        return self._folded(array)

    def _folded(self, array: Array) -> str:
        whole = array.dtype.kind in "fi" and bool(np.all(array == np.round(array))) and bool(np.all(abs(array) < 120))
        to = helper.np_dtype_to_tensor_dtype(array.dtype)
        way = self.whole(0, 7)
        if way == 0 and whole:
            kind = self.choose([np.int32, np.int64, np.float64, np.float16, np.int8])
            return self.node("Cast", [self.initializer(array, kind)], to=to)
        if way == 1 and array.dtype.kind in "fi" and array.dtype.itemsize >= 4:
            part = self.initializer(self.rng.integers(-3, 4, array.shape), array.dtype)
            return self.node("Add", [self.node("Sub", [self.initializer(array), part]), part])
        if way == 2 and array.ndim:
            order = [int(axis) for axis in self.rng.permutation(array.ndim)]
            back = self.initializer(np.transpose(array, np.argsort(order)))
            return self.node("Transpose", [back], perm=order)
        if way == 3:
            return self._constant_node(array)
        if way == 4 and array.ndim and array.shape[0] > 1:
            cut = self.whole(1, array.shape[0] - 1)
            return self.node("Concat", [self.initializer(array[:cut]), self.initializer(array[cut:])], axis=0)
        if way == 5 and array.size and bool(np.all(array == array.flat[0])) and self.opset >= 9:
            shape = self.initializer(np.array(array.shape, np.int64))
            return self.node("ConstantOfShape", [shape], value=numpy_helper.from_array(array.reshape(-1)[:1].copy()))
        if way == 6:
            shape = self.initializer(np.array(array.shape, np.int64))
            return self.node("Reshape", [self.initializer(array.reshape(-1)), shape])
        return self.node("Identity", [self.initializer(array)])

    def _constant_node(self, array: Array) -> str:
        short = {"f": "value_float", "i": "value_int"}.get(array.dtype.kind)
        if short and self.opset >= 12 and array.dtype in (np.float32, np.int64) and self.chance(0.5):
            if array.ndim == 0:
                return self.node("Constant", [], **{short: array.item()})
            if array.ndim == 1 and array.size:
                return self.node("Constant", [], **{f"{short}s": array.tolist()})
        return self.node("Constant", [], value=numpy_helper.from_array(np.array(array, order="C")))

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Adds a node with one output."""
        return self.nodes(op, inputs, 1, **attributes)[0]

    def nodes(self, op: str, inputs: list[str], outputs: int, **attributes: Any) -> list[str]:
        node = Node(op, inputs, [self.name() for _ in range(outputs)], attributes)
        found = run_node(self.opset, node, self.values)
        if any(value.size > LARGEST or value.size == 0 or value.ndim > 7 for value in found):
            raise RefusedError(f"{op}: a value is empty or too large")
        self.graph.nodes.append(node)
        self.values.update(zip(node.outputs, found, strict=True))
        if set(inputs) & set(self.data):
            self.data += node.outputs
        return node.outputs


def _joined(draw: Draw, now: str) -> str:
    """The value together with inputs that no node reads, as far as they broadcast with it."""
    for name in draw.graph.more:
        alone = not any(name in node.inputs for node in draw.graph.nodes)
        if not alone or draw.values[now].dtype != np.float32 or draw.chance(0.2):
            continue
        graph, values, data = draw.graph.copy(), dict(draw.values), list(draw.data)
        try:
            other = name
            if draw.values[name].dtype != np.float32:
                other = draw.node("Cast", [name], to=onnx.TensorProto.FLOAT)
            now = draw.node(draw.choose(["Add", "Sub", "Mul"]), [now, other])
        except RefusedError:
            draw.graph, draw.values, draw.data = graph, values, data
    return now


def _attempt(rng: np.random.Generator) -> Graph:
    import onnx_makers

    draw = Draw(rng)
    now, steps, tries = draw.choose(draw.data), draw.whole(1, 6 + len(draw.graph.more)), 0
    while steps and tries < 40:
        tries += 1
        graph, values, data = draw.graph.copy(), dict(draw.values), list(draw.data)
        try:
            after = onnx_makers.step(draw, now)
        except RefusedError:
            draw.graph, draw.values, draw.data = graph, values, data
            continue
        if after in draw.data and after != now:
            now, steps = after, steps - 1
    if draw.values[now].dtype != np.float32 and draw.chance(0.9):
        now = draw.node("Cast", [now], to=onnx.TensorProto.FLOAT)
    now = _joined(draw, now)
    draw.graph.output = now
    if draw.chance(0.7 if draw.graph.more else 0.1):
        others = [name for node in draw.graph.nodes for name in node.outputs if name in draw.data and name != now]
        draw.graph.also = sorted(map(str, draw.rng.permutation(others)[: draw.whole(1, 2)]))
    graph = draw.graph.prune()
    if not graph.nodes or len(graph.nodes) > 24:
        raise RefusedError("no node is left, or too many")
    for value in answers(graph, graph.outputs):
        if value.dtype.kind == "f" and not np.isfinite(value).any():
            raise RefusedError("no number of the answer is finite")
    return graph


def draw(seed: int, number: int) -> Graph:
    """The graph of this number. Attempts that ONNX Runtime refuses, or whose answer is all NaN, are drawn again."""
    rng = np.random.default_rng([seed, number])
    while True:
        try:
            with np.errstate(all="ignore"):  # constants may overflow to infinity, as data do
                return _attempt(rng)
        except RefusedError:
            continue
