"""Which dimension of an ONNX file is the batch, which sizes are free, and what is refused as the file does not say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
runtime: Any = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

import onnx_compare  # noqa: E402
from onnx_compare import Array  # noqa: E402


def program() -> list[str]:
    return [sys.executable, "-m", "gpunn._program"]


def saved(folder: Path, graph: str, domains: str = '"": 21', /, **constants: Array) -> Path:
    """A graph in ONNX's own text, and what its constants hold."""
    model = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{domains}]> {graph}")
    for name, value in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    file = folder / "graph.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def expected(file: Path, x: Array) -> Array:
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def samples(*shape: int) -> Array:
    return np.random.default_rng(20261129).standard_normal(shape).astype(np.float32)


def assert_equal(file: Path, x: Array, steps: float = 0) -> None:
    right = expected(file, x)
    assert not onnx_compare.difference(onnx_compare.run(file, x), right, 1e-6, 1e-6 + steps)


def test_rows_that_depend_on_each_other_are_one_sample(tmp_path: Path) -> None:
    file = saved(tmp_path, "g (float[3, 4] x) => (float[3, 4] y) { y = Softmax <axis = 0> (x) }")
    assert gpunn.load(file).inputs[0].shape == (3, 4)
    assert_equal(file, samples(3, 4))
    several = samples(5, 3, 4)
    found = gpunn.load(file).run(several, "outputs")
    assert np.allclose(found, [expected(file, x) for x in several], atol=1e-6)


@pytest.mark.parametrize("element", ["float", "uint8", "int32", "int64"])
def test_images_that_a_graph_turns_to_channels_first_keep_their_numbers(element: str, tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        f"""g ({element}[N, 4, 5, 3] x) => (float[N, 3, 1, 1] y) {{
            t = Transpose <perm = [0, 3, 1, 2]> (x)
            f = Cast <to = 1> (t)
            y = GlobalAveragePool (f)
        }}""",
    )
    dtype = np.dtype("float32" if element == "float" else element)
    x = np.random.default_rng(7).integers(0, 200, (2, 4, 5, 3)).astype(dtype)
    takes = gpunn.load(file).inputs[0].shape
    given = np.ascontiguousarray(np.moveaxis(x, 3, 1)) if takes == (3, 4, 5) else x
    assert np.allclose(onnx_compare.run(file, given), expected(file, x), rtol=1e-5)


def test_rows_of_a_free_batch_that_depend_on_each_other_are_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, "g (float[N, 4] x) => (float[N, 4] y) { y = Softmax <axis = 0> (x) }")
    with pytest.raises(gpunn.Error, match="Softmax 'y'"):
        gpunn.load(file)
    assert gpunn.load(file, input_shape=[3, 4]).inputs[0].shape == (3, 4)


def test_a_triangle_of_the_rows_of_a_batch_is_refused(tmp_path: Path) -> None:
    for k in (0, -2):
        file = saved(tmp_path, "g (float[N, 4] x) => (float[N, 4] y) { y = Trilu <upper = 0> (x, k) }", k=np.array(k))
        with pytest.raises(gpunn.Error, match="Trilu 'y'"):
            gpunn.load(file)
    file = saved(tmp_path, "g (float[N, 3, 4] x) => (float[N, 3, 4] y) { y = Trilu <upper = 0> (x) }")
    assert_equal(file, samples(2, 3, 4))


def test_bounds_that_are_not_given_are_those_of_the_type(tmp_path: Path) -> None:
    graph = "g (float[N, 3] x) => (float[N, 3] y) { h = Cast <to = 10> (x)  c = Clip (h)  y = Cast <to = 1> (c) }"
    file = saved(tmp_path, graph)
    assert_equal(file, np.array([[np.inf, -np.inf, 3]], np.float32))


def test_a_constant_of_more_dimensions_gives_the_result_as_many(tmp_path: Path) -> None:
    graph = "g (float[2, 3, 4] x) => (float[1, 2, 3, 4] y) { a = Add (x, c)  y = Softmax <axis = 1> (a) }"
    file = saved(tmp_path, graph, c=samples(1, 1, 3, 4))
    assert_equal(file, samples(2, 3, 4))


def test_an_output_with_a_dimension_in_front_of_the_batch_needs_all_sizes(tmp_path: Path) -> None:
    graph = "g (float[N, 4] x) => (float[1, N, 4] y) { y = Add (x, c) }"
    file = saved(tmp_path, graph, c=samples(1, 1, 4))
    with pytest.raises(gpunn.Error, match=r"the output 'y' is \[1, N, 4\].*--input-shape"):
        gpunn.load(file)
    x = samples(3, 4)
    found = gpunn.load(file, input_shape=[3, 4]).run(x[np.newaxis], "outputs")
    assert np.array_equal(found[0], expected(file, x))


def test_free_sizes_are_fixed_when_a_file_is_loaded(tmp_path: Path) -> None:
    graph = "g (float[N, 2, H, W] x) => (float[N, 2, 1, W] y) { y = ReduceMean <keepdims = 1> (x, axes) }"
    file = saved(tmp_path, graph, axes=np.array([2], np.int64))
    with pytest.raises(gpunn.Error, match=r"dimension 2 of the input 'x' is open.*--input-shape"):
        gpunn.load(file)
    x = samples(3, 2, 5, 6)
    model = gpunn.load(file, input_shape=[2, 5, 6])
    assert np.allclose(model.run(x, "outputs"), expected(file, x), atol=1e-6)
    with pytest.raises(gpunn.Error, match="dimension 1 of the input 'x' is 2 in the file"):
        gpunn.load(file, input_shape=[3, 5, 6])
    written = gpunn.export(file, tmp_path / "fixed.onnx", input_shape=[2, 5, 6])
    assert np.allclose(gpunn.load(written.file).run(x, "outputs"), expected(file, x), atol=1e-6)
    told = subprocess.run(
        [*program(), "summary", str(file), "--input-shape", "2,5,6"], capture_output=True, text=True, check=True
    )
    assert "2 x 5 x 6" in told.stdout or "[2, 5, 6]" in told.stdout


def test_a_turned_input_of_equal_sizes_is_refused(tmp_path: Path) -> None:
    graph = "g (float[N, {0}, {0}, 3] x) => (float[N, 3, {0}, {0}] y) {{ a = Transpose <perm = [0, 3, 1, 2]> (x)  "
    graph += "y = Relu (a) }}"
    with pytest.raises(gpunn.Error, match="turns from the last dimension to the first"):
        gpunn.load(saved(tmp_path, graph.format(3)))
    assert gpunn.load(saved(tmp_path, graph.format(4))).inputs[0].shape == (3, 4, 4)


def test_an_input_without_numbers_is_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, "g (float[2, 0, 4] x) => (float[2, 0, 4] y) { y = Relu (x) }")
    with pytest.raises(gpunn.Error, match="dimension 1 of the input 'x' is 0, so that it has no numbers"):
        gpunn.load(file)


def test_rounding_and_padding_keep_the_sign_of_zero(tmp_path: Path) -> None:
    graph = "g (float[N, 4] x) => (float[N, 6] y) { a = Ceil (x)  y = Pad (a, pads) }"
    file = saved(tmp_path, graph, pads=np.array([0, 1, 0, 1], np.int64))
    x = np.array([[-0.5, -0.0, 0.0, 0.5]], np.float32)
    assert np.array_equal(np.signbit(onnx_compare.run(file, x)), np.signbit(expected(file, x)))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_a_border_is_cut_on_one_side_and_added_on_the_other(mode: str, tmp_path: Path) -> None:
    graph = f'g (float[N, 5] x) => (float[N, 5] y) {{ y = Pad <mode = "{mode}"> (x, pads) }}'
    file = saved(tmp_path, graph, pads=np.array([0, -1, 0, 1], np.int64))
    assert_equal(file, samples(2, 5))


def quantised(node: str) -> str:
    return (
        "g (float[N, 2, 4, 4] x) => (float y) { q = QuantizeLinear (x, s, z)  "
        f"p = com.microsoft.{node}  y = DequantizeLinear (p, t, w) }}"
    )


@pytest.mark.parametrize(
    "node",
    [
        "QLinearAdd (q, s, z, q, s, z, t, w)",
        "QLinearMul (q, s, z, c, t, w, t, w)",
        "QLinearSigmoid (q, s, z, t, w)",
        "QLinearLeakyRelu <alpha = 0.3> (q, s, z, t, w)",
        "QLinearAveragePool <kernel_shape = [2, 2], strides = [2, 2]> (q, s, z, t, w)",
        "QLinearGlobalAveragePool (q, s, z, t, w)",
        "QLinearSoftmax <axis = 1, opset = 13> (q, s, z, t, w)",
        "QLinearConcat <axis = 1> (t, w, q, s, z, q, s, z)",
    ],
)
def test_quantised_operators_of_onnx_runtime_give_its_answers(node: str, tmp_path: Path) -> None:
    constants: dict[str, Array] = {
        "s": np.array(0.03, np.float32),
        "z": np.array(120, np.uint8),
        "t": np.array(0.02, np.float32),
        "w": np.array(100, np.uint8),
    }
    if "c," in node:
        constants["c"] = np.arange(8, dtype=np.uint8).reshape(2, 4, 1) * 30
    file = saved(tmp_path, quantised(node), '"": 17, "com.microsoft": 1', **constants)
    assert_equal(file, samples(3, 2, 4, 4), steps=0.02)


def test_numbers_become_rows_of_one_and_zeros(tmp_path: Path) -> None:
    graph = (
        "g (float[N, 3] x) => (float[N, 5, 3] y) "
        "{ f = Floor (x)  i = Cast <to = 7> (f)  y = OneHot <axis = 1> (i, depth, values) }"
    )
    constants: dict[str, Array] = {"depth": np.array(5, np.int64), "values": np.array([-1, 2], np.float32)}
    assert_equal(saved(tmp_path, graph, **constants), 3 * samples(4, 3))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [4, 8])
def test_features_are_turned_by_the_place_of_their_token(interleaved: int, turned: int, tmp_path: Path) -> None:
    graph = (
        "g (float[N, 2, 5, 8] x) => (float[N, 2, 5, 8] y) { y = RotaryEmbedding "
        f"<interleaved = {interleaved}, rotary_embedding_dim = {turned % 8}> (x, c, s) }}"
    )
    angles = samples(1, 5, turned // 2)
    file = saved(tmp_path, graph, '"": 23', c=np.cos(angles), s=np.sin(angles))
    x = samples(3, 2, 5, 8)
    half = turned // 2
    first = x[..., :turned:2] if interleaved else x[..., :half]
    second = x[..., 1:turned:2] if interleaved else x[..., half:turned]
    right = x.copy()
    right[..., slice(0, turned, 2) if interleaved else slice(0, half)] = (
        np.cos(angles) * first - np.sin(angles) * second
    )
    right[..., slice(1, turned, 2) if interleaved else slice(half, turned)] = (
        np.sin(angles) * first + np.cos(angles) * second
    )
    assert np.allclose(onnx_compare.run(file, x), right, atol=1e-6)
