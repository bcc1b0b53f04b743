"""ONNX files that take pictures of any size give what gpunn's own verbs make of these pictures.

Needs the packages onnx, onnxruntime and Pillow.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn
import gpunn as gnn
import small

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
ort: Any = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
Image: Any = pytest.importorskip("PIL.Image", reason="needs the package Pillow")

Pixels = npt.NDArray[np.uint8]

# Larger and smaller than samples, wide, tall, a pixel wide and a pixel high, and of the samples' own size.
SIZES = [(24, 20), (60, 90), (90, 60), (7, 5), (1, 1), (1, 40), (50, 1), (200, 31), (19, 333), (240, 200), (25, 41)]


def drawn(height: int, width: int, channels: int, seed: int) -> Pixels:
    """Smooth shapes under noise: neighbouring pixels differ, and so do the parts of the picture."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for _ in range(channels):
        a, b, c = rng.uniform(0.02, 0.5, 3)
        planes.append(128 + 70 * np.sin(a * x + b * y) + 40 * np.cos(c * (x - y)) + rng.normal(0, 15, (height, width)))
    return np.stack(planes, -1).clip(0, 255).astype(np.uint8)


def save(pixels: Pixels, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file)
    return file


def photographs(folder: Path, **data: Any) -> gpunn.Run:
    """A run on a folder of pictures of two classes, which are not square."""
    for name, shift in (("one", 0), ("two", 60)):
        for i in range(8):
            pixels = drawn(30 + 3 * i, 50 - 2 * i, 3, i + shift)
            save((pixels // 2 + shift).astype(np.uint8), folder / "photos" / name / f"{i}.png")
    return gpunn.run(
        {
            "model": {"layers": [{"conv2d": {"filters": 6, "kernel": 3}}, "relu", "flatten", {"linear": {"units": 2}}]},
            "data": {
                "dataset": "image_folder",
                "path": str(folder / "photos"),
                "image_size": [24, 20],
                "test_fraction": 0.25,
                "batch_size": 4,
                **data,
            },
            "optimizer": {"type": "adam", "learning_rate": 0.001},
            "training": {"epochs": 1},
        },
        backend="cpu",
        runs=folder / "runs",
    )


def session_of(run: gpunn.Run, file: Path, opset: int = 18) -> Any:
    gpunn.export(run.path, file, with_preprocessing=True, opset=opset)
    model = onnx.load(str(file))
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    return ort.InferenceSession(str(file), providers=["CPUExecutionProvider"])


def probabilities(model: gpunn.Model, file: Path) -> list[float]:
    found = {one.index: one.probability for one in model.predict(file, top=100)[0].top}
    return [found[i] for i in sorted(found)]


def check_same(run: gpunn.Run, session: Any, pictures: Sequence[Pixels], folder: Path) -> None:
    model = gpunn.load(run.path, backend="cpu")
    for i, pixels in enumerate(pictures):
        expected = probabilities(model, save(pixels, folder / f"{i}.png"))
        found = session.run(["probabilities"], {session.get_inputs()[0].name: pixels})[0]
        assert found.shape == (1, len(expected)), pixels.shape
        assert found[0].argmax() == np.argmax(expected), pixels.shape
        np.testing.assert_allclose(found[0], expected, atol=1e-5, err_msg=str(pixels.shape))


@pytest.mark.parametrize("opset", range(13, 22))
def test_the_graph_prepares_a_picture_as_predict_does(opset: int, tmp_path: Path) -> None:
    run = photographs(tmp_path)
    session = session_of(run, tmp_path / "x.onnx", opset)
    assert session.get_inputs()[0].shape == ["height", "width", "channels"]
    pictures = [drawn(height, width, 3, height) for height, width in SIZES]
    pictures += [drawn(41, 77, channels, 5) for channels in (1, 2, 4)]
    check_same(run, session, pictures, tmp_path)


@pytest.mark.parametrize("changes", [{"shorter_side": 29}, {"channels": 1}, {"channels": 1, "shorter_side": 24}])
def test_grey_samples_and_a_smaller_part(changes: dict[str, Any], tmp_path: Path) -> None:
    run = photographs(tmp_path, **changes)
    pictures = [drawn(height, width, channels, width) for height, width in SIZES for channels in (1, 3)]
    pictures += [drawn(33, 52, channels, 5) for channels in (2, 4)]
    check_same(run, session_of(run, tmp_path / "x.onnx"), pictures, tmp_path)


def test_scans_on_white_paper(tmp_path: Path) -> None:
    """Samples are light on dark, and pictures are stretched to their size."""
    run = gpunn.run(small.experiment(), runs=tmp_path)
    session = session_of(run, tmp_path / "x.onnx")
    assert json.loads(session.get_modelmeta().custom_metadata_map["preparation"])["invert_light_background"] is True
    pictures = []
    for height, width in SIZES:
        ink = drawn(height, width, 3, height) // 2
        pictures += [ink, 255 - ink]
    check_same(run, session, pictures, tmp_path)


def test_boxes_are_in_pixels_of_the_picture(tmp_path: Path) -> None:
    halved = [{"conv2d": {"filters": 8, "kernel": 3, "stride": 2, "padding": 1}}, "relu"] * 3
    head = {"classes": 10, "strides": 8, "most": 40, "least_score": 0.02, "width": 16, "depth": 1}
    run = gpunn.run(
        {
            "model": {"layers": [*halved, {"fcos_head": head}]},
            "task": "detection",
            "loss": "focal",
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
            "training": {"epochs": 2},
        },
        backend="cpu",
        runs=tmp_path,
    )
    session = session_of(run, tmp_path / "x.onnx")
    model = gpunn.load(run.path, backend="cpu")
    for height, width in ((64, 64), (50, 90), (170, 33), (9, 12)):
        pixels = drawn(height, width, 3, width)
        boxes, scores, labels = session.run(["boxes", "scores", "labels"], {"image": pixels})
        expected = model.predict(save(pixels, tmp_path / "a.png"))[0].boxes
        assert expected
        kept = labels[0] >= 0
        assert kept.sum() == len(expected)
        np.testing.assert_allclose(scores[0][kept], [box.score for box in expected], atol=1e-4)
        np.testing.assert_allclose(
            boxes[0][kept], [[box.left, box.top, box.right, box.bottom] for box in expected], atol=1e-2
        )


def test_classes_are_of_the_samples_pixels(tmp_path: Path) -> None:
    layers = [{"conv2d": {"filters": 8, "kernel": 3, "padding": 1}}, "relu", {"conv2d": {"filters": 5, "kernel": 1}}]
    run = gpunn.run(small.shapes({"layers": layers}), backend="cpu", runs=tmp_path)
    session = session_of(run, tmp_path / "x.onnx")
    model = gpunn.load(run.path, backend="cpu")

    def nearest(size: int, of: int) -> npt.NDArray[np.int64]:
        return (2 * np.arange(size) + 1) * of // (2 * size)

    for height, width in ((40, 52), (90, 60), (9, 12)):
        pixels = drawn(height, width, 3, width)
        logits, classes = session.run(["logits", "classes"], {"image": pixels})
        assert logits.shape == (1, 5, 40, 52)
        np.testing.assert_array_equal(classes, logits.argmax(axis=1))
        found = model.predict(save(pixels, tmp_path / "a.png"))[0].map
        assert found is not None
        assert (classes[0][nearest(height, 40)][:, nearest(width, 52)] == found.classes).mean() > 0.999


def test_samples_that_are_no_pictures(tmp_path: Path) -> None:
    run = gpunn.run(
        {
            "model": {"layers": [{"linear": {"units": 2}}]},
            "data": {"dataset": "points", "batch_size": 20},
            "training": {"epochs": 1},
        },
        backend="cpu",
        runs=tmp_path,
    )
    with pytest.raises(gpunn.UsageError, match="can't prepare pictures: the model takes rows of"):
        gpunn.export(run.path, tmp_path / "x.onnx", with_preprocessing=True)
    assert not (tmp_path / "x.onnx").exists()


def snippets(source: Path) -> list[str]:
    page = (source / "docs" / "onnx-export.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("changes", [{}, {"shorter_side": 29}, {"channels": 1}])
def test_the_pages_snippets(
    number: int, changes: dict[str, Any], tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = photographs(tmp_path, **changes)
    gpunn.export(run.path, "photos.onnx", with_preprocessing=number == 0, raw_input=number == 1)
    model = gpunn.load(run.path, backend="cpu")
    script = tmp_path / "snippet.py"
    script.write_text(snippets(source)[number], encoding="utf-8")
    for height, width in ((60, 91), (91, 60), (7, 30)):
        expected = probabilities(model, save(drawn(height, width, 3, width), Path("another.png")))
        capsys.readouterr()
        runpy.run_path(str(script))
        printed = [float(number) for number in re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", capsys.readouterr().out)]
        np.testing.assert_allclose(printed, expected, atol=1e-4)


ENLARGERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("espcn", {"scale": 2}, {"scale": 2}),
    ("fsrcnn", {"scale": 3, "width": 8, "depth": 1}, {"scale": 3}),
    ("srcnn", {}, {"scale": 2, "input": "enlarged"}),
    ("edsr_small", {"scale": 2, "channels": 3, "width": 8, "depth": 2}, {"scale": 2, "colours": "rgb"}),
]


def enlarger(name: str, parameters: dict[str, Any], data: dict[str, Any], source: Path, folder: Path) -> gpunn.Run:
    return gpunn.run(
        {
            "task": "super_resolution",
            "model": {"file": str(source / "models" / f"{name}.yaml"), "parameters": parameters},
            "data": {
                "dataset": "drawn_photographs",
                "patch_size": 24,
                "patches": 32,
                "batch_size": 8,
                "synthetic_train": 2,
                "synthetic_test": 2,
                **data,
            },
            "optimizer": {"type": "adam", "learning_rate": 0.002},
            "training": {"epochs": 1},
        },
        backend="cpu",
        runs=folder,
    )


def of_size(run: gpunn.Run, file: Path, parameters: dict[str, Any], x: npt.NDArray[np.float32]) -> Any:
    """What the run's weights make of images of the size of x."""
    network = gnn.from_yaml(file, **parameters)
    network.forward(x[:1])
    network.load_state_dict(gnn.Network.load(run.path).state_dict())
    return network.forward(x)


def program() -> list[str]:
    return [sys.executable, "-m", "gpunn._program"]


def pixels_of(file: Path) -> Pixels:
    pixels: Pixels = np.asarray(Image.open(file), np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


@pytest.mark.parametrize(("name", "parameters", "data"), ENLARGERS, ids=[one[0] for one in ENLARGERS])
@pytest.mark.parametrize("opset", [13, 21])
def test_an_enlarger_takes_images_of_any_size(
    name: str, parameters: dict[str, Any], data: dict[str, Any], opset: int, tmp_path: Path, source: Path
) -> None:
    run = enlarger(name, parameters, data, source, tmp_path)
    gpunn.export(run.path, tmp_path / "x.onnx", opset=opset)
    onnx.checker.check_model(str(tmp_path / "x.onnx"), full_check=True)
    session = ort.InferenceSession(str(tmp_path / "x.onnx"), providers=["CPUExecutionProvider"])
    tensor = session.get_inputs()[0]
    assert tensor.shape[2:] == ["height", "width"]
    for height, width in ((16, 16), (31, 57), (80, 22)):
        x = np.random.default_rng(height).random((2, tensor.shape[1], height, width), np.float32)
        ours = of_size(run, source / "models" / f"{name}.yaml", parameters, x)
        theirs = session.run(None, {tensor.name: x})[0]
        assert theirs.shape == ours.shape
        assert np.abs(theirs - ours).max() <= 1e-5 * np.abs(ours).max()
    # gpunn reads the file again: what it makes of a picture, and its figures, are the run's.
    gpunn.export(run.path, tmp_path / "pictures.onnx", opset=opset, with_preprocessing=True)
    whole = ort.InferenceSession(str(tmp_path / "pictures.onnx"), providers=["CPUExecutionProvider"])
    for height, width, channels in ((20, 33, 3), (40, 17, 1), (5, 9, 3)):
        pixels = drawn(height, width, channels, width)
        picture = save(pixels, tmp_path / "small.png")
        results = []
        for model in (run.path, tmp_path / "x.onnx"):
            done = subprocess.run(
                [*program(), "upscale", str(model), str(picture), "--to", "larger.png", "--backend", "cpu"],
                capture_output=True,
                check=False,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            results.append(pixels_of(Path("larger.png")))
        np.testing.assert_array_equal(results[0], results[1])
        in_graph = whole.run(None, {"image": pixels})[0]
        assert in_graph.shape == results[0].shape
        assert np.abs(in_graph.astype(int) - results[0]).max() <= 1
    summary = subprocess.run(
        [*program(), "summary", str(tmp_path / "x.onnx")], capture_output=True, text=True, check=False
    )
    assert summary.returncode == 0, summary.stderr
    assert "the model gives images" in summary.stdout + summary.stderr
    ours = gpunn.evaluate(run.path, backend="cpu")
    given = {"data.synthetic_train": 2, "data.synthetic_test": 2}
    read = gpunn.evaluate(tmp_path / "x.onnx", data="drawn_photographs", set=given, backend="cpu")
    assert read.metrics == pytest.approx(ours.metrics, rel=1e-5, abs=1e-5)
    assert read.loss == pytest.approx(ours.loss, rel=1e-4)


def test_a_stylizer_takes_images_of_any_size(tmp_path: Path, source: Path) -> None:
    run = gpunn.run(
        {
            "task": "style_transfer",
            "model": {"file": str(source / "models" / "style_net.yaml"), "parameters": {"width": 4, "depth": 1}},
            "data": {
                "dataset": "drawn_photographs",
                "scale": 1,
                "colours": "rgb",
                "patch_size": 32,
                "patches": 8,
                "batch_size": 4,
                "synthetic_train": 2,
                "synthetic_test": 1,
            },
            "loss": {"type": "style", "features": "drawn"},
            "optimizer": {"type": "adam", "learning_rate": 0.001},
            "training": {"epochs": 1},
        },
        backend="cpu",
        runs=tmp_path,
    )
    gpunn.export(run.path, tmp_path / "x.onnx")
    with pytest.raises(gpunn.UsageError, match="gpunn stylize"):
        gpunn.predict(tmp_path / "x.onnx", tmp_path / "x.png", backend="cpu")
    session = ort.InferenceSession(str(tmp_path / "x.onnx"), providers=["CPUExecutionProvider"])
    for height, width in ((32, 32), (48, 80), (64, 40)):
        x = np.random.default_rng(height).random((1, 3, height, width), np.float32)
        ours = of_size(run, source / "models" / "style_net.yaml", {"width": 4, "depth": 1}, x)
        theirs = session.run(None, {session.get_inputs()[0].name: x})[0]
        assert np.abs(theirs - ours).max() <= 1e-4
    gpunn.export(run.path, tmp_path / "pictures.onnx", with_preprocessing=True)
    whole = ort.InferenceSession(str(tmp_path / "pictures.onnx"), providers=["CPUExecutionProvider"])
    for height, width, channels in ((40, 61, 3), (33, 24, 1)):
        pixels = drawn(height, width, channels, width)
        picture = save(pixels, tmp_path / "small.png")
        results = []
        for model in (run.path, tmp_path / "x.onnx"):
            gpunn.paint(model, picture, tmp_path / "painted.png", backend="cpu")
            results.append(pixels_of(tmp_path / "painted.png"))
        np.testing.assert_array_equal(results[0], results[1])
        assert np.abs(whole.run(None, {"image": pixels})[0].astype(int) - results[0]).max() <= 1


def test_a_network_of_several_styles_is_refused(tmp_path: Path, source: Path) -> None:
    network = gnn.from_yaml(source / "models" / "style_net.yaml", width=4, depth=1, styles=2)
    network.forward(np.zeros((2, 3, 32, 32), np.float32))
    network.save(tmp_path / "x.h5")
    with pytest.raises(gpunn.UsageError, match=r"'head\.norm' has 2 styles, one for each row of a batch"):
        gpunn.export(tmp_path / "x.h5", tmp_path / "x.onnx")
