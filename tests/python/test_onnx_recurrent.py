"""Recurrent networks, and windows over lines, images and volumes: gpunn computes what ONNX Runtime does.

Each case is a node with random attributes and shapes. GPUNN_ONNX_CASES is the number of cases of each of the two kinds.
Needs the packages onnx and onnxruntime.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
ort: Any = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
helper: Any = pytest.importorskip("onnx.helper")

Array = npt.NDArray[np.float32]
CASES = int(os.environ.get("GPUNN_ONNX_CASES", "60"))
OPSET = 21


class Graph:
    """A graph that is written node by node; each gives a value of a new name."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def constant(self, values: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def weights(self, *shape: int, scale: float = 0.6) -> str:
        return self.constant(self.rng.normal(scale=scale, size=shape).astype(np.float32))

    def add(self, op: str, inputs: list[str], outputs: int | list[str] = 1, **attributes: Any) -> list[str]:
        names = outputs if isinstance(outputs, list) else [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"node{len(self.nodes)}", **attributes))
        return names

    def model(self, x: tuple[int | str, ...], output: str, opset: int = OPSET) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x)],
            [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        return bytes(model.SerializeToString())


def expected(model: bytes, x: Array) -> Array:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    result: Array = session.run(None, {"x": x})[0]
    return result


def compare(model: bytes, x: Array, wanted: Array, tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(model)
    network = gpunn.load(tmp_path / "x.onnx", backend="cpu")
    found = network.run(x, network.outputs[0].name).reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * max(1.0, float(np.abs(wanted).max())))


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
# Those that are bounded, so that a sequence stays small, with the numbers that they take.
BOUNDED: dict[str, list[float]] = {"Tanh": [], "Sigmoid": [], "HardSigmoid": [0.3, 0.4], "Softsign": []}
OTHERS: dict[str, list[float]] = {
    "Relu": [],
    "LeakyRelu": [0.2],
    "Elu": [0.7],
    "ThresholdedRelu": [0.1],
    "Softplus": [],
    "ScaledTanh": [0.8, 1.2],
    "Affine": [0.4, 0.1],
}


def activations(g: Graph, op: str, directions: int) -> dict[str, Any]:
    names: list[str] = []
    alphas: list[float] = []
    betas: list[float] = []
    same = g.pick(True, False)
    for direction in range(directions):
        for place in range(FUNCTIONS[op]):
            if direction == 1 and same:
                names.append(names[place])
            else:
                names.append(g.pick(*(BOUNDED if place == 0 and op != "RNN" else {**BOUNDED, **OTHERS})))
            numbers = {**BOUNDED, **OTHERS}[names[-1]]
            alphas += numbers[:1]
            betas += numbers[1:]
    result: dict[str, Any] = {"activations": names}
    if alphas:
        result["activation_alpha"] = alphas
    if betas:
        result["activation_beta"] = betas
    return result


def first_state(g: Graph, kind: str, rows: int, features: int, directions: int, units: int, layout: int) -> str:
    if kind == "constant":
        values = g.rng.normal(size=(1, directions, units)).astype(np.float32).repeat(rows, 0)
        return g.constant(values if layout else values.transpose(1, 0, 2))
    (first,) = g.add("Gather", ["x", g.constant(np.int64(0))], axis=1)
    (flat,) = g.add("Gemm", [first, g.weights(features, directions * units)])
    (state,) = g.add("Reshape", [flat, g.constant(np.array([0, directions, units]))])
    return state if layout else g.add("Transpose", [state], perm=[1, 0, 2])[0]


def recurrent(seed: int, layout: int) -> tuple[bytes, Array]:
    """A model of [N, steps, features], whose output is all outputs of the node that are used, one after the other."""
    g = Graph(seed)
    op = g.pick("LSTM", "GRU", "RNN")
    rows, steps = int(g.rng.integers(1, 4)), int(g.rng.integers(1, 7))
    features, units = int(g.rng.integers(1, 6)), int(g.rng.integers(1, 6))
    direction = g.pick("forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    width = GATES[op] * units
    more: dict[str, Any] = {"hidden_size": units, "direction": direction}
    if layout:
        more["layout"] = 1
    if g.pick(True, False):
        more |= activations(g, op, directions)
    if g.pick(True, False):
        more["clip"] = float(g.rng.uniform(0.3, 1.5))
    if op == "GRU":
        more["linear_before_reset"] = g.pick(0, 1)
    if op == "LSTM":
        more["input_forget"] = g.pick(0, 0, 1)
    sequence = "x" if layout else g.add("Transpose", ["x"], perm=[1, 0, 2])[0]
    inputs = [sequence, g.weights(directions, width, features), g.weights(directions, width, units)]
    inputs.append(g.pick("", g.weights(directions, 2 * width)))
    inputs.append(g.pick("", g.constant(np.full(rows, steps, np.int32))))
    for _ in range(2 if op == "LSTM" else 1):
        kind = g.pick("", "constant", "data")
        inputs.append("" if kind == "" else first_state(g, kind, rows, features, directions, units, layout))
    if op == "LSTM":
        inputs.append(g.pick("", g.weights(directions, 3 * units)))
    while not inputs[-1]:
        inputs.pop()
    used = [bool(g.pick(True, False)) for _ in range(3 if op == "LSTM" else 2)]
    if not any(used):
        used[0] = True
    names = [f"out{i}" if one else "" for i, one in enumerate(used)]
    g.add(op, inputs, names, **more)
    parts = []
    for i, name in enumerate(names):
        if name:
            order = [0, 1, 2, 3] if layout else [2, 0, 1, 3]
            if i > 0:
                order = [0, 1, 2] if layout else [1, 0, 2]
            (turned,) = g.add("Transpose", [name], perm=order)
            parts += g.add("Reshape", [turned, g.constant(np.array([0, -1]))])
    g.add("Concat", parts, ["y"], axis=1)
    x = g.rng.normal(size=(rows, steps, features)).astype(np.float32)
    return g.model(x.shape, "y"), x


@pytest.mark.parametrize("seed", range(CASES))
def test_recurrent_nodes(seed: int, tmp_path: Path) -> None:
    model, x = recurrent(seed, layout=0)
    wanted = expected(model, x)
    compare(model, x, wanted, tmp_path)
    if seed % 4 == 0:  # ONNX Runtime has no layout 1, which is the same network with the batch in front
        compare(recurrent(seed, layout=1)[0], x, wanted, tmp_path)


def window(seed: int) -> tuple[bytes, Array]:
    g = Graph(seed)
    op = g.pick("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "GlobalLpPool", "GlobalAveragePool")
    n = int(g.rng.integers(1, 4))
    frames = int(g.rng.integers(2, 4)) if n < 3 and g.pick(True, False, False) else 1
    groups = int(g.pick(1, 1, 2, 3))
    channels = groups * int(g.rng.integers(1, 3))
    kernel = [int(k) for k in g.rng.integers(1, 4, n)]
    more: dict[str, Any] = {"kernel_shape": kernel}
    if g.pick(True, False):
        more["strides"] = [int(s) for s in g.rng.integers(1, 4, n)]
    dilated = g.pick(True, False)
    if dilated:
        more["dilations"] = [int(d) for d in g.rng.integers(1, 3, n)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, more.get("dilations", [1] * n), strict=True)]
    size = [r + int(s) for r, s in zip(reach, g.rng.integers(0, 8 if n < 3 else 5, n), strict=True)]
    mode = g.pick("pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "")
    # Runtimes differ in how wide an automatic padding is of windows with gaps in or between them.
    gaps = dilated or any(s > k for s, k in zip(more.get("strides", [1] * n), kernel, strict=True))
    if mode == "pads" or (gaps and mode.startswith("SAME") and op != "ConvTranspose"):
        more["pads"] = [int(g.rng.integers(0, k)) for k in kernel * 2]
    elif mode:
        more["auto_pad"] = mode
    inputs = ["x"]
    if op in ("Conv", "ConvTranspose"):
        filters = int(g.rng.integers(1, 4))
        shape = (groups * filters, channels // groups) if op == "Conv" else (channels, filters)
        inputs.append(g.weights(*shape, *kernel))
        if g.pick(True, False):
            inputs.append(g.weights(groups * filters))
        more["group"] = groups
        strides = more.get("strides", [1] * n)
        if op == "ConvTranspose" and g.pick(True, False):
            more["output_padding"] = [int(g.rng.integers(0, s)) for s in strides]
    elif op.startswith("Global"):
        more = {"p": g.pick(1, 2, 3)} if op == "GlobalLpPool" else {}
    else:
        more["ceil_mode"] = g.pick(0, 1)
        if op == "AveragePool":
            more["count_include_pad"] = g.pick(0, 1)
        if op == "LpPool":
            more["p"] = g.pick(1, 2, 3)
    if frames == 1:
        g.add(op, inputs, ["y"], **more)
        x = g.rng.normal(size=(2, channels, *size)).astype(np.float32)
        return g.model(("n", channels, *size), "y"), x
    # The frames of all samples together, as networks of videos have them.
    (inputs[0],) = g.add("Reshape", ["x", g.constant(np.array([-1, channels, *size]))])
    g.add(op, inputs, ["all"], **more)
    x = g.rng.normal(size=(2, frames, channels, *size)).astype(np.float32)
    shape = ("n", *x.shape[1:])
    given = expected(g.model(shape, "all"), x).shape
    g.add("Reshape", ["all", g.constant(np.array([-1, frames, *given[1:]]))], ["y"])
    return g.model(shape, "y"), x


@pytest.mark.parametrize("seed", range(CASES))
def test_windows(seed: int, tmp_path: Path) -> None:
    model, x = window(seed)
    compare(model, x, expected(model, x), tmp_path)
