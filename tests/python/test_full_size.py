"""Label maps of whole pictures, which the model gets in tiles: `gpunn predict` and `gpunn eval` with --full-size.

Needs the package Pillow.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn

Image: Any = pytest.importorskip("PIL.Image", reason="needs the package Pillow")

PROGRAM = Path(gpunn.__file__).parent / "bin" / "gpunn"
HEIGHT, WIDTH = 24, 32
PIXELWISE = {"conv2d": {"filters": 5, "kernel": 1}}

Pixels = npt.NDArray[np.uint8]


def picture(height: int, width: int) -> Pixels:
    """Waves of colour, of even sides so that pooling sees the same pairs of pixels in each tile."""
    y, x, c = np.mgrid[:height, :width, :3]
    return np.asarray(128 + 50 * (np.sin(0.37 * (x + 5 * c)) + np.cos(0.29 * y)) + (7 * x + 3 * y) % 13, np.uint8)


def save(pixels: Pixels, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)
    return file


def ask(verb: str, run: gpunn.Run, *arguments: Any) -> Any:
    call = [str(PROGRAM), verb, str(run.path), *map(str, arguments), "--full-size", "--json", "--backend", "cpu"]
    return json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def map_of(answer: Any) -> npt.NDArray[np.int64]:
    """From COCO's compressed run lengths, by the definition of maskApi.c."""
    height, width = answer["map"]["size"]
    found = np.full((height, width), -1)
    for mask in answer["map"]["masks"]:
        runs: list[int] = []
        value = shift = 0
        for code in (ord(character) - 48 for character in mask["counts"]):
            value |= (code & 31) << shift
            shift += 5
            if code & 32:
                continue
            if code & 16:
                value |= -1 << shift
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
        inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T
        assert (found[inside] == -1).all()
        found[inside] = mask["class"]
    return found


def trained(folder: Path, *layers: Any) -> gpunn.Run:
    experiment: dict[str, Any] = {
        "task": "segmentation",
        "model": {"layers": list(layers)},
        "data": {
            "dataset": "drawn_shapes",
            "image_size": [HEIGHT, WIDTH],
            "batch_size": 4,
            "synthetic_train": 8,
            "synthetic_test": 4,
        },
        "optimizer": {"type": "adam", "learning_rate": 0.01},
        "training": {"epochs": 1},
        "backend": "cpu",
    }
    return gpunn.run(experiment, runs=folder / "runs")


def pixel_by_pixel(model: gpunn.Model, pixels: Pixels) -> npt.NDArray[Any]:
    """The map of a model that sees a pixel at a time, from samples that have the pixels one after the other."""
    flat = pixels.reshape(-1, 3)
    count = -(-len(flat) // (HEIGHT * WIDTH))
    filled = np.zeros((count * HEIGHT * WIDTH, 3), np.uint8)
    filled[: len(flat)] = flat
    samples = filled.reshape(count, HEIGHT, WIDTH, 3).transpose(0, 3, 1, 2).copy()
    logits: npt.NDArray[np.float32] = model.run(samples, "logits")
    classes: npt.NDArray[np.int64] = logits.argmax(axis=1).reshape(-1)[: len(flat)]
    return classes.reshape(pixels.shape[:2])


def test_a_model_that_sees_a_pixel_at_a_time(tmp_path: Path) -> None:
    run = trained(tmp_path, PIXELWISE)
    model = gpunn.load(run.path, backend="cpu")
    sizes = [(57, 83), (HEIGHT, WIDTH), (25, 200), (10, 20), (100, 7), (1, 1)]
    pictures = [picture(*size) for size in sizes]
    files = [save(pixels, tmp_path / f"{i}.png") for i, pixels in enumerate(pictures)]
    for overlap in ([], ["--overlap", 0], ["--overlap", 11]):
        for answer, pixels in zip(ask("predict", run, *files, *overlap), pictures, strict=True):
            expected = pixel_by_pixel(model, pixels)
            np.testing.assert_array_equal(map_of(answer), expected)
            shares = {one["class"]: one["probability"] for one in answer["top"]}
            assert shares == pytest.approx({int(c): (expected == c).mean() for c in np.unique(expected)})
    refused = subprocess.run(
        [PROGRAM, "predict", run.path, files[0], "--full-size", "--overlap", "12"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2
    assert "expected less than half of a side of the model's images, 24 pixels, found 12" in refused.stderr


def test_tiles_that_overlap_by_what_a_model_sees(tmp_path: Path) -> None:
    """ONNX Runtime makes the map of the whole picture, since the graph of convolutions takes any size."""
    onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")
    ort: Any = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
    run = trained(
        tmp_path,
        {"conv2d": {"name": "top", "filters": 6, "kernel": 3, "padding": 1}},
        {"relu": {"name": "a"}},
        {"max_pool": {"window": 2}},
        {"conv2d": {"filters": 6, "kernel": 3, "padding": 1}},
        {"relu": {"name": "b"}},
        {"upsample": {"name": "up", "from": ["b", "a"]}},
        {"concat": {"from": ["up", "a"]}},
        PIXELWISE,
    )
    gpunn.export(run.path, tmp_path / "x.onnx", raw_input=True)
    graph = onnx.load(str(tmp_path / "x.onnx"))
    for value in [*graph.graph.input, *graph.graph.output]:
        for dimension in value.type.tensor_type.shape.dim[-2:]:
            dimension.dim_param = f"open_{id(dimension)}"
    pixels = picture(70, 90)
    session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    whole = session.run(["classes"], {session.get_inputs()[0].name: pixels.transpose(2, 0, 1)[None].copy()})[0][0]
    assert len(np.unique(whole)) > 1
    file = save(pixels, tmp_path / "a.png")
    assert (map_of(ask("predict", run, file, "--overlap", 8)[0]) == whole).mean() > 0.9999
    assert (map_of(ask("predict", run, file)[0]) == whole).mean() > 0.95


def test_an_evaluation_counts_the_pixels_of_the_files(tmp_path: Path) -> None:
    sizes = [(40, 50), (24, 32), (90, 33), (41, 200)]
    maps: dict[Path, Pixels] = {}
    for i, (height, width) in enumerate(sizes):
        part = tmp_path / "data" / ("train" if i == 0 else "test")
        pixels = picture(height, width)
        ids = np.where(pixels[:, :, 0] > 140, 7, 2).astype(np.uint8)
        ids[9::10] = 255  # pixels without a class
        file = save(pixels, part / "image" / f"{i}.png")
        save(ids, part / "label" / f"{i}.png")
        if i > 0:
            maps[file] = ids
    (tmp_path / "data" / "classes.txt").write_text("2 dark\n7 bright\n")
    data = {"dataset": "segmentation_folder", "path": str(tmp_path / "data"), "images": "image", "maps": "label"}
    run = gpunn.run(
        {
            "task": "segmentation",
            "model": {"layers": [{"conv2d": {"filters": 2, "kernel": 1}}]},
            "data": {**data, "image_size": [HEIGHT, WIDTH], "batch_size": 1},
            "optimizer": {"type": "adam", "learning_rate": 0.1},
            "training": {"epochs": 4},
            "backend": "cpu",
        },
        runs=tmp_path / "runs",
    )
    counts = np.zeros((2, 2), np.int64)
    for file, ids in maps.items():
        found = map_of(ask("predict", run, file)[0])
        assert found.shape == ids.shape
        for label, id_of_file in enumerate((2, 7)):
            counts[label] += np.bincount(found[ids == id_of_file], minlength=2)
    report = ask("eval", run, "--confusion")
    assert report["confusion"] == counts.tolist()
    assert report["rows"] == len(maps)
    assert report["loss"] is None
    assert report["pixel_accuracy"] == pytest.approx(np.trace(counts) / counts.sum())
    assert report["pixel_accuracy"] > 0.6
