"""Segmentation of drawn shapes: figures against numpy, label maps in files, ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

PROGRAM = Path(gpunn.__file__).parent / "bin" / "gpunn"
SIDE, CLASSES = 32, 5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> gpunn.Run:
    """A small U-Net, which no test changes."""
    experiment: dict[str, Any] = {
        "task": "segmentation",
        "model": {"file": "unet", "parameters": {"classes": CLASSES, "width": 8}},
        "data": {
            "dataset": "drawn_shapes",
            "image_size": [SIDE, SIDE],
            "synthetic_train": 800,
            "synthetic_test": 40,
            "batch_size": 8,
        },
        "loss": {"type": "sum", "cross_entropy": 1, "dice": 1},
        "augmentation": {"flip": 0.5},
        "optimizer": {"type": "adamw", "learning_rate": 0.005},
        "schedule": {"type": "one_cycle"},
        "training": {"epochs": 10, "seed": 3},
        "backend": "cpu",
    }
    return gpunn.run(experiment, runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grey files of two sizes with a bright disc."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, (height, width) in {"a": (SIDE, SIDE), "b": (50, 90)}.items():
        y, x = np.mgrid[:height, :width]
        disc = (y - height / 2) ** 2 + (x - width / 2) ** 2 < (min(height, width) / 4) ** 2
        header = f"P5 {width} {height} 255\n".encode()
        (folder / f"{name}.pgm").write_bytes(header + np.where(disc, 220, 40).astype(np.uint8).tobytes())
    return folder


def predicted(run: gpunn.Run, *arguments: str | Path) -> Any:
    call = [PROGRAM, "predict", run.path, *arguments, "--json", "--backend", "cpu"]
    return json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def pixels_of(counts: str, height: int, width: int) -> np.ndarray[Any, Any]:
    """COCO's compressed run lengths, by the definition of maskApi.c."""
    runs: list[int] = []
    at = 0
    while at < len(counts):
        value = shift = 0
        more = True
        while more:
            code = ord(counts[at]) - 48
            value |= (code & 0x1F) << shift
            more = bool(code & 0x20)
            at += 1
            shift += 5
            if not more and code & 0x10:
                value |= -1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    return np.asarray(np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T)


def test_learns_and_its_metrics_are_those_of_the_confusion_matrix(run: gpunn.Run) -> None:
    report = gpunn.evaluate(run.path, backend="cpu")
    matrix = report.confusion
    right, truth, found = np.diag(matrix), matrix.sum(1), matrix.sum(0)
    iou, dice = right / (truth + found - right), 2 * right / (truth + found)
    metrics = report.metrics
    assert metrics["miou"] == pytest.approx(iou.mean())
    assert metrics["dice"] == pytest.approx(dice.mean())
    assert metrics["pixel_accuracy"] == pytest.approx(right.sum() / matrix.sum())
    assert metrics["miou"] > 0.45
    assert metrics["pixel_accuracy"] > 0.8
    assert [one.name for one in report.outputs] == ["background", "circle", "square", "triangle", "ring"]
    for one, expected in zip(report.outputs, zip(iou, right / truth, dice, truth, strict=True), strict=True):
        figures = one.metrics
        assert (figures["iou"], figures["accuracy"], figures["dice"], one.rows) == pytest.approx(expected)
    assert run.best["test_miou"] == max(run.metrics["test_miou"])
    assert 0 < run.metrics["train_miou"][-1] < 1


def test_map_is_the_largest_logit_of_each_pixel(run: gpunn.Run) -> None:
    model = gpunn.load(run.path, backend="cpu")
    assert [(one.name, one.shape, one.dtype) for one in model.outputs] == [
        ("logits", (CLASSES, SIDE, SIDE), "f32"),
        ("classes", (SIDE, SIDE), "i32"),
    ]
    x = np.random.default_rng(1).integers(0, 256, (3, 3, SIDE, SIDE), dtype=np.uint8)
    both = model.run(x, ["logits", "classes"])
    assert np.array_equal(both["logits"].argmax(1), both["classes"])
    for one, classes in zip(model.predict(x, top=CLASSES), both["classes"], strict=True):
        assert one.map is not None
        assert np.array_equal(one.map.classes, classes)
        shares = {share.index: share.probability for share in one.top}
        assert shares == pytest.approx({int(c): float((classes == c).mean()) for c in np.unique(classes)})


def test_files_become_maps_of_their_size(run: gpunn.Run, pictures: Path, tmp_path: Path) -> None:
    answers = predicted(run, pictures, "--draw", tmp_path / "drawn", "--coco", tmp_path / "found.json")
    whole = gpunn.load(run.path, backend="cpu").predict([pictures / "a.pgm", pictures / "b.pgm"])
    results = json.loads((tmp_path / "found.json").read_text())
    for answer, own, (height, width) in zip(answers, whole, [(SIDE, SIDE), (50, 90)], strict=True):
        assert answer["map"]["size"] == [height, width]
        assert own.map is not None
        rebuilt = np.full((height, width), 255, np.uint8)
        for mask in answer["map"]["masks"]:
            rebuilt[pixels_of(mask["counts"], height, width)] = mask["class"]
        assert np.array_equal(rebuilt, own.map.classes)
        of_file = [one for one in results if one["image_id"] == Path(answer["source"]).stem]
        assert {one["category_id"] for one in of_file} == {int(c) + 1 for c in np.unique(rebuilt)}
        assert all(one["segmentation"]["size"] == [height, width] for one in of_file)
    assert {file.name for file in (tmp_path / "drawn").iterdir()} == {"a.png", "b.png"}
    text = subprocess.run(
        [PROGRAM, "predict", run.path, pictures / "a.pgm", "--backend", "cpu"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "%  0 background" in text


def test_report_shows_classes_and_the_worst_pictures(run: gpunn.Run, tmp_path: Path) -> None:
    page = gpunn.report(run.path, tmp_path / "report.html", backend="cpu").read_text()
    assert "Images with the largest loss" in page
    assert page.count("data:image/png;base64,") >= 3
    assert ">IoU</th>" in page
    assert ">pixels</th>" in page
    text = subprocess.run(
        [PROGRAM, "eval", run.path, "--confusion", "--backend", "cpu"], check=True, capture_output=True, text=True
    ).stdout
    assert "PIXELS" in text
    assert "mIoU" in text
    assert "Counts pixels." in text


def test_onnx_runtime_gives_the_same_maps(run: gpunn.Run, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
    file = tmp_path / "shapes.onnx"
    gpunn.export(run.path, file, raw_input=True)
    session = ort.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).integers(0, 256, (4, 3, SIDE, SIDE), dtype=np.uint8)
    model = gpunn.load(run.path, backend="cpu")
    ours = model.run(x, ["logits", "classes"])
    theirs = session.run(["logits", "classes"], {session.get_inputs()[0].name: x})
    assert np.abs(theirs[0] - ours["logits"]).max() < 1e-4 * np.abs(ours["logits"]).max()
    assert (theirs[1] == ours["classes"]).mean() > 0.999


def test_mistakes_say_what_to_set() -> None:
    base = {
        "task": "segmentation",
        "model": {"file": "unet", "parameters": {"classes": 3, "width": 4}},
        "data": {"dataset": "drawn_shapes", "synthetic_train": 32, "synthetic_test": 8, "batch_size": 8},
        "backend": "cpu",
    }
    with pytest.raises(gpunn.Error, match=r"one of the 5 classes .* set model.parameters.classes to 5"):
        gpunn.run(base)
    fitting = {**base, "model": {"file": "unet", "parameters": {"classes": CLASSES, "width": 4}}}
    with pytest.raises(gpunn.Error, match=r"loss.class_weights: expected 5 numbers, .* found 2"):
        gpunn.run({**fitting, "loss": {"class_weights": [1, 2]}})
    with pytest.raises(gpunn.Error, match=r"did you mean 'sum'"):
        gpunn.run({**fitting, "loss": {"type": "dice_ce"}})
    with pytest.raises(gpunn.Error, match=r"augmentation.mixup is for samples with a class"):
        gpunn.run({**fitting, "augmentation": {"mixup": 0.2}})
