"""Constants of ONNX files have the values, types and shapes that ONNX Runtime gives them.

The graphs are random: all element types, ranks 0 to 6, opsets 7 to 23. GPUNN_ONNX_GRAPHS is their number (default 250),
GPUNN_ONNX_SEED the first one's seed. A graph that fails is made again by its seed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gpunn

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
for needed in ("onnxruntime", "ml_dtypes"):
    pytest.importorskip(needed, reason=f"needs the package {needed}")
graphs: Any = pytest.importorskip("constant_graphs")
helper, numpy_helper = onnx.helper, onnx.numpy_helper

GRAPHS = int(os.environ.get("GPUNN_ONNX_GRAPHS", "250"))
SEED = int(os.environ.get("GPUNN_ONNX_SEED", "20261129"))
Array = NDArray[Any]
# Results that ONNX leaves open, which the import refuses.
OPEN = re.compile(
    r"divides an integer by 0|makes \w+ of -?(nan|NaN|inf|[0-9.e+]+)|has no range|the mean of no elements|padding only"
)


def network_of(nodes: list[Any], held: dict[str, Array], seen: list[str], sizes: list[int], opset: int) -> Any:
    """A network that adds the values of constants, and their shapes, to its input."""
    nodes, held = list(nodes), dict(held)
    parts = []
    for name, size in zip(seen, sizes, strict=True):
        if size > 0:
            held[f"{name}_flat"] = np.asarray([size], np.int64)
            nodes += [
                helper.make_node("Cast", [name], [f"{name}_float"], to=onnx.TensorProto.FLOAT),
                helper.make_node("Reshape", [f"{name}_float", f"{name}_flat"], [f"{name}_row"]),
            ]
            parts.append(f"{name}_row")
        nodes += [
            helper.make_node("Shape", [name], [f"{name}_shape"]),
            helper.make_node("Cast", [f"{name}_shape"], [f"{name}_sizes"], to=onnx.TensorProto.FLOAT),
        ]
        parts.append(f"{name}_sizes")
    held["one"] = np.ones(1, np.float32)
    nodes += [
        helper.make_node("Concat", [*parts, "one"], ["all"], axis=0),
        helper.make_node("Add", ["x", "all"], ["y"]),
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "network",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", None])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", None])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10,
    )


def found_values(nodes: list[Any], held: dict[str, Array], wanted: dict[str, Array], opset: int, folder: Path) -> Array:
    sizes = [value.size for value in wanted.values()]
    count = sum(value.size + value.ndim for value in wanted.values()) + 1
    model = network_of(nodes, held, list(wanted), sizes, opset)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = count
    file = folder / "constants.onnx"
    onnx.save(model, str(file))
    found: Array = np.asarray(gpunn.load(str(file)).run(np.zeros((1, count), np.float32), "outputs"))
    return found.ravel()


def expected_values(wanted: dict[str, Array]) -> tuple[Array, Array]:
    """All values in a row, each with how far a result may be from it: some steps of its type."""
    values, bounds = [], []
    for value in wanted.values():
        with np.errstate(all="ignore"):
            single = value.astype(np.float32).ravel()
        exact = value.dtype.kind in "iub" or value.dtype in graphs.EXOTIC
        step = 0.0
        if value.dtype == np.float16 or (value.dtype in graphs.EXOTIC and value.dtype.itemsize == 2):
            step = 2.0**-9 if value.dtype == np.float16 else 2.0**-6
        elif not exact:
            step = 1e-4 if value.dtype == np.float32 else 2e-6
        largest = np.abs(single[np.isfinite(single)]).max(initial=0.1)
        values += [single, np.asarray(value.shape, np.float32)]
        bounds += [np.maximum(np.abs(single), largest * 0.5 if step else 0) * step, np.zeros(value.ndim)]
    values.append(np.ones(1, np.float32))
    bounds.append(np.zeros(1))
    return np.concatenate(values), np.concatenate(bounds)


def differences(nodes: list[Any], held: dict[str, Array], wanted: dict[str, Array], opset: int, folder: Path) -> str:
    expected, bounds = expected_values(wanted)
    try:
        found = found_values(nodes, held, wanted, opset, folder)
    except gpunn.Error as error:
        return "" if OPEN.search(str(error)) else str(error)
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (np.abs(found - expected) <= bounds)
    if same.all():
        return ""
    at = int(np.argmin(same))
    return f"value {at} is {found[at]}, expected {expected[at]} ({int((~same).sum())} of {same.size})"


def failures(g: Any, folder: Path) -> list[str]:
    """A node alone is the judge: behind others a difference of rounding can become any other difference."""
    held = {name: g.values[name] for name in g.initializers}
    made = {name: g.values[name] for node in g.nodes for name in node.output}
    if not differences(g.nodes, held, made, g.opset, folder):
        return []
    result = []
    for node in g.nodes:
        inputs = {name: g.values[name] for name in node.input if name}
        why = differences([node], inputs, {name: g.values[name] for name in node.output}, g.opset, folder)
        if why:
            judge = "onnx.reference" if node.name in g.reference_only else "ONNX Runtime"
            shown = {name: (str(value.dtype), value.shape) for name, value in inputs.items()}
            settings = {one.name: helper.get_attribute_value(one) for one in node.attribute if one.name != "value"}
            result.append(f"{node.op_type} (opset {g.opset}) {settings} of {shown}, by {judge}: {why}")
    return result


@pytest.mark.parametrize("part", range(10))
def test_constants_have_the_values_of_onnx_runtime(part: int, tmp_path: Path) -> None:
    found = {}
    for seed in range(SEED + part, SEED + GRAPHS, 10):
        if problems := failures(graphs.random_graph(seed), tmp_path):
            found[seed] = problems
    assert not found, "\n".join(f"seed {seed}: {why}" for seed, all_of_it in found.items() for why in all_of_it)
