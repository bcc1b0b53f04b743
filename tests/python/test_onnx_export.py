"""Exported ONNX models are sound, and ONNX Runtime gets from them what gpunn gets.

The error of an output is its largest difference as a share of gpunn's largest value in that output. Needs the packages
onnx and onnxruntime.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn
import gpunn as gnn
import small
from gpunn._core import OnnxExportReport

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
ort: Any = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

OPSETS = (13, 18, 21)
IR = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
FIXTURE = Path(__file__).parents[1] / "fixtures" / "tensorrt_operators.txt"

# Each model of models/, with the smallest samples that it takes.
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "alexnet": ((3, 64, 64), {"classes": 10, "hidden": 64, "pool": 2}),
    "allconv": ((3, 32, 32), {}),
    "cnn_cifar": ((3, 32, 32), {}),
    "deeplabv3": (
        (3, 32, 32),
        {"classes": 4, "block": "basic", "width": 16, "rate": 2, **{f"blocks{i}": 1 for i in range(1, 5)}},
    ),
    "edsr_small": ((3, 12, 10), {"channels": 3}),
    "espcn": ((1, 12, 10), {}),
    "fcos": ((3, 64, 64), {"classes": 3}),
    "fsrcnn": ((1, 12, 10), {}),
    "image_and_row": ({"image": (1, 12, 9), "row": (3,)}, {}),
    "lenet5": ((1, 28, 28), {}),
    "mlp": ((1, 28, 28), {}),
    "mobilenet_v2": ((3, 64, 64), {"classes": 10}),
    "perceptron": ((2,), {}),
    "resnet18": ((3, 64, 64), {"classes": 10}),
    "resnet34": ((3, 64, 64), {"classes": 10}),
    "resnet50": ((3, 64, 64), {"classes": 10}),
    "resnet101": ((3, 64, 64), {"classes": 10}),
    "squeezenet1_1": ((3, 64, 64), {"classes": 10}),
    "srcnn": ((1, 12, 10), {}),
    "ssd300": ((3, 300, 300), {"classes": 3, "base": 8}),
    "style_net": ((3, 32, 32), {"width": 8}),
    "unet": ((3, 36, 28), {"classes": 4, "width": 4}),  # levels of odd sizes
    "vgg11": ((3, 32, 32), {"classes": 10, "hidden": 64, "pool": 2}),
    "vgg13": ((3, 32, 32), {"classes": 10, "hidden": 64, "pool": 2}),
    "vgg16": ((3, 32, 32), {"classes": 10, "batch_norm": True, "hidden": 64, "pool": 3}),
    "vgg19": ((3, 32, 32), {"classes": 10, "hidden": 64, "pool": 2}),
    "vit": ((3, 64, 64), {"classes": 10, "width": 48, "depth": 2, "heads": 3, "mlp": 64}),
}
DEPTHS = {"resnet34", "resnet101", "vgg13", "vgg19"}


def operators() -> set[str]:
    return {line.strip() for line in FIXTURE.read_text().splitlines() if line.strip() and not line.startswith("#")}


def drawn(shape: Any) -> npt.NDArray[Any]:
    """Samples of a shape; or integers, whose limit is in front: ("below", 9, 5)."""
    rng = np.random.default_rng(7)
    if shape and shape[0] == "below":
        return rng.integers(0, shape[1], (5, *shape[2:])).astype(np.int32)
    return rng.normal(size=(5, *shape)).astype(np.float32)


def compare(network: gnn.Network, shape: Any, tmp_path: Path, opset: int, **options: Any) -> Any:
    """Exports the network with other running statistics than 0 and 1; returns the ONNX model. ``shape``: of a sample,
    or of one of each input by its name."""
    rng = np.random.default_rng(7)
    samples = {name: drawn(one) for name, one in (shape if isinstance(shape, dict) else {"": shape}).items()}

    def first(rows: int) -> Any:
        parts = {name: one[:rows] for name, one in samples.items()}
        return parts if isinstance(shape, dict) else parts[""]

    network.forward(first(1))
    state = network.state_dict()
    for name, value in state.items():
        if name.endswith("running_mean"):
            state[name] = rng.normal(scale=0.1, size=value.shape).astype(np.float32)
        elif name.endswith("running_var"):
            state[name] = rng.uniform(0.5, 1.5, value.shape).astype(np.float32)
    network.load_state_dict(state)
    network.save(tmp_path / "network.h5")
    file = tmp_path / f"network_{opset}.onnx"
    report = gpunn.export(tmp_path / "network.h5", file, opset=opset, **options)
    assert isinstance(report, OnnxExportReport)
    assert (report.opset, report.ir_version) == (opset, IR[opset])
    onnx.checker.check_model(str(file), full_check=True)
    model = onnx.load(str(file))
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    assert {node.op_type for node in model.graph.node} <= operators()
    session = ort.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    runner = gpunn.load(tmp_path / "network.h5", backend="cpu")
    for rows in (1, 2, 5):
        x = first(rows)
        ours = runner.run(x, [one.name for one in runner.outputs])
        fed = x if isinstance(shape, dict) else {session.get_inputs()[0].name: x}
        theirs = session.run([o.name for o in session.get_outputs()], fed)
        for output, value in zip(session.get_outputs(), theirs, strict=True):
            expected = ours[output.name]
            assert value.shape == expected.shape
            assert np.abs(value - expected).max() <= 1e-5 * np.abs(expected).max(), (output.name, rows)
    return model


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", MODELS)
def test_every_model(name: str, opset: int, tmp_path: Path, source: Path) -> None:
    if name in DEPTHS and opset != 18 and not os.environ.get("GPUNN_LONG_TESTS"):
        pytest.skip("another depth of a model that is exported here; set GPUNN_LONG_TESTS to run it")
    shape, parameters = MODELS[name]
    compare(gnn.from_yaml(source / "models" / f"{name}.yaml", **parameters), shape, tmp_path, opset)


@pytest.mark.parametrize("opset", OPSETS)
def test_several_inputs_and_outputs(opset: int, tmp_path: Path) -> None:
    picture, row = gnn.Input((2, 9, 7), name="picture"), gnn.Input((4,), name="row")
    words = gnn.Input((5,), name="words", dtype="int32")
    seen = gnn.Flatten()(gnn.GlobalAvgPool2d()(gnn.Conv2d(2, 6, 3, activation="relu")(picture)))
    read = gnn.Flatten()(gnn.Embedding(9, 3)(words))
    both = gnn.Concat()(seen, gnn.Linear(4, 8, activation="relu")(row), read)
    network = gnn.Network(
        [picture, row, words],
        {"scores": gnn.Linear(None, 3)(both), "seen": seen, "read": read},
    )
    network.compile(loss="ce")
    shapes = {"picture": (2, 9, 7), "row": (4,), "words": ("below", 9, 5)}
    model = compare(network, shapes, tmp_path, opset)
    assert [one.name for one in model.graph.input] == ["picture", "row", "words"]
    assert [one.name for one in model.graph.output] == ["scores", "seen", "read", "probabilities"]
    types = [one.type.tensor_type.elem_type for one in model.graph.input]
    assert types == [onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT, onnx.TensorProto.INT32]

    again = gpunn.load(tmp_path / f"network_{opset}.onnx", backend="cpu")
    x = {name: drawn(shape) for name, shape in shapes.items()}
    theirs = gpunn.load(tmp_path / "network.h5", backend="cpu").run(x, ["scores", "read"])
    for name, value in again.run(x, ["scores", "read"]).items():
        np.testing.assert_allclose(value, theirs[name], rtol=1e-5, atol=1e-6)


def test_no_model_is_left_out(source: Path) -> None:
    files = {file.stem for file in (source / "models").glob("*.yaml") if not file.stem.endswith(".names")}
    assert files == set(MODELS)


def every_image_layer() -> gnn.Network:
    return gnn.Sequential(
        gnn.Conv2d(4, 8, (3, 2), 1, "same", 2, 2),
        gnn.BatchNorm2d(8),
        gnn.ReLU(),
        gnn.Conv2d(8, 8, 3, 2, 1, groups=8, bias=False),
        gnn.BatchNorm2d(8),
        gnn.ReLU6(),
        gnn.MaxPool2d(3, 2, 1, ceil_mode=True),
        gnn.ConvTranspose2d(8, 6, 3, 2, padding=1, output_padding=1, groups=2),
        gnn.LeakyReLU(0.2),
        gnn.Upsample(2, "bilinear"),
        gnn.GroupNorm(3, 6),
        gnn.SiLU(),
        gnn.Upsample(2),
        gnn.GroupNorm(6, 6),
        gnn.AvgPool2d(3, 2, 1, count_include_pad=False),
        gnn.AvgPool2d(3, 2, 1),
        gnn.InstanceNorm2d(6),
        gnn.Tanh(),
        gnn.LocalResponseNorm(4),
        gnn.LocalResponseNorm(5),
        gnn.ZeroPad2d((1, 2, 3, 4)),
        gnn.LayerNorm(),
        gnn.GELU(),
        gnn.Slice(1, 4, 0),
        gnn.PixelShuffle(2),
        gnn.Resize2d(7, 4),
        gnn.AdaptiveAvgPool2d((3, 5)),
        gnn.Sigmoid(),
        gnn.Flatten(),
        gnn.Linear(None, 7),
        gnn.LogSoftmax(),
    )


def merges_and_attention() -> gnn.Network:
    x = gnn.Input((4, 8, 8))
    a = gnn.Conv2d(4, 8, 3, padding=1)(x)
    b = gnn.Conv2d(4, 8, 1)(x)
    gate = gnn.Sigmoid()(gnn.GlobalAvgPool2d()(a))
    y = gnn.Concat()(gnn.Multiply()(a + b, gate), x)
    y = gnn.Permute((1, 0))(gnn.Reshape((12, 64))(y))
    y = gnn.PositionEmbedding()(gnn.ClassToken()(y))
    y = y + gnn.MultiheadAttention(12, 3)(gnn.LayerNorm(12)(y))
    y = gnn.GELU("tanh")(gnn.Linear(12, 16)(y))
    return gnn.Network(x, gnn.Softmax()(gnn.Linear(None, 5)(gnn.Flatten()(gnn.Dropout()(y)))))


def every_volume_layer() -> gnn.Network:
    return gnn.Sequential(
        gnn.Conv3d(2, 4, (3, 2, 3), (1, 2, 1), "same", (2, 1, 1), 2),
        gnn.BatchNorm2d(4),
        gnn.MaxPool3d((2, 3, 3), (1, 2, 2), (1, 1, 1), (2, 1, 2), ceil_mode=True),
        gnn.AvgPool3d(3, (1, 2, 1), 1, count_include_pad=False),
        gnn.ConvTranspose3d(4, 3, (3, 2, 1), (2, 1, 1), (1, 0, 0), (1, 0, 0)),
        gnn.AvgPool3d(2, 1, ceil_mode=True, dilation=(2, 1, 1)),
        gnn.ZeroPad2d(1),
        gnn.AdaptiveAvgPool3d((2, 3, 2)),
        gnn.GlobalMaxPool2d(),
    )


def every_sequence_layer() -> gnn.Network:
    x = gnn.Input((4, 18))
    y = gnn.ConvTranspose1d(6, 5, 3, 2)(gnn.MaxPool1d(3, 2, 1)(gnn.Conv1d(4, 6, 3, padding=(1, 0))(x)))
    y = gnn.Permute((1, 0))(gnn.AvgPool1d(2)(y))
    y = gnn.LSTM(5, 4, bidirectional=True, initial_state="trained", peepholes=True, output="sequence_and_cell")(y)
    y = gnn.GRU(8, 6, direction="reverse", linear_before_reset=False, gate_activation="hard_sigmoid", clip=2.0)(y)
    first = gnn.Reshape((1, 3))(gnn.Linear(6, 3)(gnn.GRU(6, 6, output="last")(y)))
    names = ["relu", "softsign", "softplus", "leaky_relu", "elu", "affine", "scaled_tanh", "thresholded_relu"]
    ends = [gnn.RNN(6, 3, activation=one, alpha=0.5, beta=0.5, output="last", clip=3.0)(y, first) for one in names]
    return gnn.Network(x, gnn.Concat()(*ends))


@pytest.mark.parametrize(
    ("build", "shape"),
    [(every_volume_layer, (2, 5, 7, 6)), (every_sequence_layer, (4, 18))],
    ids=["volumes", "sequences"],
)
def test_volumes_and_sequences_are_read_again(build: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    network = build()
    x = np.random.default_rng(5).normal(size=(3, *shape)).astype(np.float32)
    expected = network.forward(x)
    network.save(tmp_path / "network.h5")
    gpunn.export(tmp_path / "network.h5", tmp_path / "network.onnx")
    np.testing.assert_allclose(gnn.Network.load(tmp_path / "network.onnx").forward(x), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("opset", range(13, 22))
def test_every_layer(opset: int, fold: bool, tmp_path: Path) -> None:
    first = compare(every_image_layer(), (4, 17, 19), tmp_path, opset, fold_batch_norm=fold)
    assert ("BatchNormalization" in {node.op_type for node in first.graph.node}) != fold
    compare(merges_and_attention(), (4, 8, 8), tmp_path, opset, fold_batch_norm=fold)
    if opset in OPSETS:
        compare(every_volume_layer(), (2, 5, 7, 6), tmp_path, opset, fold_batch_norm=fold)
        compare(every_sequence_layer(), (4, 18), tmp_path, opset, fold_batch_norm=fold)


def test_raw_images_and_what_the_file_tells(trained: gpunn.Run, tmp_path: Path) -> None:
    file = tmp_path / "raw.onnx"
    report = gpunn.export(trained.path, file, raw_input=True, external_data=True)
    assert isinstance(report, OnnxExportReport)
    assert report.data == Path(f"{file}.data")
    onnx.checker.check_model(str(file), full_check=True)
    model = onnx.load(str(file))
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert told["task"] == "classification"
    assert json.loads(told["class_names"]) == [str(i) for i in range(10)]
    assert told["gpunn_version"] == gpunn.__version__
    assert {"conv1.weight", "conv1.bias"} <= {tensor.name for tensor in model.graph.initializer}
    assert {"conv1", "conv2", "pool1"} <= {node.name for node in model.graph.node}
    images = np.random.default_rng(1).integers(0, 256, (9, 1, 28, 28), dtype=np.uint8)
    session = ort.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    ours = gpunn.load(trained.path, backend="cpu").run(images, ["logits", "probabilities"])
    names = ["logits", "probabilities"]
    for name, value in zip(names, session.run(names, {"image": images}), strict=True):
        assert np.abs(value - ours[name]).max() <= 1e-5 * np.abs(ours[name]).max()


def test_mistakes(trained: gpunn.Run, tmp_path: Path) -> None:
    with pytest.raises(gpunn.UsageError, match="opset: expected 13 to 21, found 12"):
        gpunn.export(trained.path, tmp_path / "x.onnx", opset=12)
    with pytest.raises(gpunn.UsageError, match="there is no folder"):
        gpunn.export(trained.path, tmp_path / "nowhere" / "x.onnx")
    with pytest.raises(gpunn.UsageError, match="names"):
        gpunn.export(trained.path, tmp_path / "x.onnx", names=tmp_path / "names.yaml")
    assert not list(tmp_path.glob("*.onnx*"))


def test_unusual_windows(tmp_path: Path) -> None:
    text = """
name: windows
layers:
  - conv2d: {name: a, filters: 4, kernel: [2, 3], stride: [2, 1], padding: [0, 3, 2, 1], dilation: [1, 2]}
  - max_pool: {name: b, window: 4, stride: 1, padding: [3, 0, 1, 2]}
  - max_pool: {name: c, window: [3, 2], stride: [2, 3], padding: [1, 2, 0, 1], ceil_mode: true}
  - conv2d_transpose: {name: d, filters: 6, kernel: 3, stride: 2, padding: [0, 1, 2, 0], output_padding: 1, groups: 2}
  - avg_pool: {name: e, window: 3, stride: 1, padding: [2, 0, 1, 0], count_padding: false}
  - avg_pool: {name: f, window: 3, stride: 2, padding: [1, 0, 2, 1]}
  - avg_pool: {name: g, window: 3, stride: 1, padding: [2, 1, 0, 2], count_padding: false}
  - adaptive_avg_pool: {name: h, size: [4, 9]}
  - layer_norm: {name: i, dimensions: 2}
  - instance_norm: {name: j, affine: false}
  - group_norm: {name: k, groups: 2, affine: false}
  - layer_norm: {name: image}
  - global_max_pool: {name: logits}
  - batch_norm: {name: l}
  - linear: {name: m, units: 3, activation: silu}
"""
    for opset in OPSETS:
        compare(gnn.from_yaml(text), (3, 11, 13), tmp_path, opset)
        compare(gnn.from_yaml(text), (3, 11, 13), tmp_path, opset, fold_batch_norm=True)


@pytest.mark.parametrize("name", ["mlp_diabetes", "lenet_two_digits", "perceptron_points", "one_output"])
def test_tasks(name: str, tmp_path: Path, source: Path) -> None:
    if name == "one_output":
        experiment: Any = {
            "model": {"layers": ["flatten", {"linear": {"units": 1}}]},
            "data": {"dataset": "points", "batch_size": 20},
            "loss": "binary_cross_entropy",
            "backend": "cpu",
        }
    else:
        experiment = source / "experiments" / f"{name}.yaml"
    run = gpunn.run(experiment, set={"training.epochs": 1}, backend="cpu", runs=tmp_path)
    model = gpunn.load(run.path, backend="cpu")
    info = model.info.input
    rng = np.random.default_rng(2)
    shape = (7, *info.shape)
    x = rng.integers(0, 256, shape, dtype=np.uint8) if info.dtype == "u8" else rng.normal(size=shape).astype(np.float32)
    gpunn.export(run.path, tmp_path / "x.onnx", raw_input=True)
    onnx.checker.check_model(str(tmp_path / "x.onnx"), full_check=True)
    session = ort.InferenceSession(str(tmp_path / "x.onnx"), providers=["CPUExecutionProvider"])
    names = [one.name for one in model.outputs]
    assert [one.name for one in session.get_outputs()] == names
    ours = model.run(x, names)
    for output, value in zip(names, session.run(names, {info.name: x}), strict=True):
        assert np.abs(value - ours[output]).max() <= 1e-5 * np.abs(ours[output]).max()
    # gpunn reads the file again, and leaves the normalisation to its nodes.
    again = gpunn.load(tmp_path / "x.onnx", backend="cpu").run(x, names)
    for output in names:
        np.testing.assert_allclose(again[output], ours[output], rtol=1e-4, atol=1e-4 * np.abs(ours[output]).max())


@pytest.mark.parametrize("head", ["fcos_head", "ssd_head"])
def test_a_detector_has_suppression_inside(head: str, tmp_path: Path) -> None:
    """Boxes, scores and labels are those of the model's rows left, top, right, bottom, score, class."""
    halved = [{"conv2d": {"filters": 8, "kernel": 3, "stride": 2, "padding": 1}}, "relu"] * 3
    keys = {"classes": 10, "strides": 8, "most": 40, "least_score": 0.02}
    more = {"width": 16, "depth": 1} if head == "fcos_head" else {"sizes": [16, 28], "ratios": 2}
    experiment: Any = {
        "model": {"layers": [*halved, {head: {**keys, **more}}]},
        "task": "detection",
        "loss": "focal" if head == "fcos_head" else "multibox",
        "data": {
            "dataset": "drawn_digits",
            "image_size": 64,
            "channels": 1,
            "digits": 2,
            "batch_size": 16,
            "synthetic_train": 96,
            "synthetic_test": 8,
        },
        "optimizer": {"type": "adam", "learning_rate": 0.003},
    }
    run = gpunn.run(experiment, set={"training.epochs": 2}, backend="cpu", runs=tmp_path)
    model = gpunn.load(run.path, backend="cpu")
    x = np.random.default_rng(2).integers(0, 256, (3, 1, 64, 64), dtype=np.uint8)
    rows = model.run(x, ["boxes"])["boxes"].reshape(3, 40, 6)
    assert (rows[:, :, 5] >= 0).any()
    for opset in OPSETS:
        gpunn.export(run.path, tmp_path / "x.onnx", raw_input=True, opset=opset)
        file = onnx.load(str(tmp_path / "x.onnx"))
        onnx.checker.check_model(file, full_check=True)
        assert "NonMaxSuppression" in {node.op_type for node in file.graph.node}
        session = ort.InferenceSession(str(tmp_path / "x.onnx"), providers=["CPUExecutionProvider"])
        boxes, scores, labels = session.run(["boxes", "scores", "labels"], {session.get_inputs()[0].name: x})
        np.testing.assert_array_equal(labels, rows[:, :, 5].astype(np.int64))
        np.testing.assert_allclose(boxes, rows[:, :, :4], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(scores, rows[:, :, 4], rtol=1e-5, atol=1e-6)
        # It is read again, with its suppression as a layer, and is written again.
        gpunn.export(run.path, tmp_path / "read.onnx", opset=opset)
        for name in ("x.onnx", "read.onnx"):
            again = gpunn.load(tmp_path / name, backend="cpu")
            np.testing.assert_allclose(again.run(x, "boxes").reshape(rows.shape), rows, rtol=1e-5, atol=1e-5)
    found, expected = (one.predict(x[0])[0].boxes for one in (again, model))
    assert [(box.name, box.left) for box in found] == [(box.name, box.left) for box in expected]
    gpunn.export(tmp_path / "read.onnx", tmp_path / "again.onnx")
    session = ort.InferenceSession(str(tmp_path / "again.onnx"), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["boxes", "scores", "labels"]
    data = {f"data.{key}": value for key, value in experiment["data"].items() if key != "dataset"}
    ours = gpunn.evaluate(run.path, backend="cpu")
    read = gpunn.evaluate(tmp_path / "read.onnx", data="drawn_digits", set=data, backend="cpu")
    assert read.metrics["map_50"] == pytest.approx(ours.metrics["map_50"], abs=1e-6)


def test_classes_of_pixels(tmp_path: Path, source: Path) -> None:
    run = gpunn.run(
        small.shapes({"file": str(source / "models" / "unet.yaml"), "parameters": {"classes": 5, "width": 4}}),
        backend="cpu",
        runs=tmp_path,
    )
    model = gpunn.load(run.path, backend="cpu")
    x = np.random.default_rng(2).integers(0, 256, (3, 3, 40, 52), dtype=np.uint8)
    ours = model.run(x, ["logits", "classes"])
    for opset in OPSETS:
        gpunn.export(run.path, tmp_path / "raw.onnx", raw_input=True, opset=opset)
        onnx.checker.check_model(str(tmp_path / "raw.onnx"), full_check=True)
        session = ort.InferenceSession(str(tmp_path / "raw.onnx"), providers=["CPUExecutionProvider"])
        assert [(one.name, one.type, one.shape) for one in session.get_outputs()] == [
            ("logits", "tensor(float)", ["batch", 5, 40, 52]),
            ("classes", "tensor(int32)", ["batch", 40, 52]),
        ]
        logits, classes = session.run(["logits", "classes"], {session.get_inputs()[0].name: x})
        assert np.abs(logits - ours["logits"]).max() <= 1e-4 * np.abs(ours["logits"]).max()
        largest = np.sort(ours["logits"], axis=1)
        is_clear = largest[:, -1] - largest[:, -2] > 1e-3
        assert is_clear.mean() > 0.9
        np.testing.assert_array_equal(classes[is_clear], ours["classes"][is_clear])
        assert len(np.unique(classes)) > 1
        # It is read again, with ArgMax left to the task, and evaluates as the run does.
        gpunn.export(run.path, tmp_path / "read.onnx", opset=opset)
        again = gpunn.load(tmp_path / "read.onnx", backend="cpu")
        assert [one.name for one in again.outputs] == ["logits", "classes"]
        np.testing.assert_allclose(
            again.run(x, "logits"), ours["logits"], rtol=1e-4, atol=1e-4 * np.abs(ours["logits"]).max()
        )
    data = {f"data.{key}": value for key, value in small.SHAPES.items() if key != "dataset"}
    expected = gpunn.evaluate(run.path, backend="cpu")
    read = gpunn.evaluate(tmp_path / "read.onnx", data="drawn_shapes", set=data, backend="cpu")
    for name in ("miou", "pixel_accuracy", "dice"):
        assert read.metrics[name] == pytest.approx(expected.metrics[name], abs=1e-3)


def test_an_exported_file_is_a_network_that_is_trained_further(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(32, 3, 8, 8)).astype(np.float32)
    labels = np.arange(32) % 2
    network = gnn.Sequential(
        gnn.Conv2d(3, 4, 3), gnn.BatchNorm2d(4), gnn.Hardswish(), gnn.Flatten(), gnn.Linear(None, 2)
    )
    network.forward(x[:1])
    network.save(tmp_path / "network.h5")
    gpunn.export(tmp_path / "network.h5", tmp_path / "network.onnx")
    again = gnn.Network.load(tmp_path / "network.onnx")
    np.testing.assert_allclose(again.forward(x), network.forward(x), rtol=1e-4, atol=1e-5)
    before = again.evaluate(x, labels)["loss"]
    again.compile("adam", learning_rate=0.01)
    again.fit(x, labels, epochs=3, batch_size=8)
    assert again.evaluate(x, labels)["loss"] < before
