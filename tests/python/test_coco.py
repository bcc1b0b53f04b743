"""Detection on COCO's annotations: figures and results against pycocotools, which defines them."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

coco_tools = pytest.importorskip("pycocotools.coco", reason="pycocotools defines COCO's figures")
evaluator = pytest.importorskip("pycocotools.cocoeval")

PROGRAM = Path(gpunn.__file__).parent / "bin" / "gpunn"
CATEGORIES = {90: "zebra", 0: "ant", 17: "cat", 5: "bee"}  # gaps, an id of 0, neither sorted
IMAGES = 8
FIGURES = [
    "COCO, 0.5 to 0.95",
    "COCO at 0.5",
    "COCO at 0.75",
    "COCO, small objects",
    "COCO, medium objects",
    "COCO, large objects",
    "COCO, recall of 1 box",
    "COCO, recall of 10 boxes",
    "COCO, recall of 100 boxes",
    "COCO, recall of small objects",
    "COCO, recall of medium objects",
    "COCO, recall of large objects",
]
MODEL = """
model:
  layers:
    - conv2d: {name: conv1, filters: 8, kernel: 3, stride: 4, padding: 1}
    - relu
    - conv2d: {name: map1, filters: 8, kernel: 3, stride: 2, padding: 1}
    - conv2d: {name: map2, filters: 8, kernel: 3, stride: 2, padding: 1}
    - ssd_head: {name: boxes, from: [map1, map2], classes: 4, strides: [8, 16], sizes: [20, 50, 110], ratios: [2, 2],
                 least_score: 0.1, most: 60}
"""


def categories() -> list[dict[str, Any]]:
    return [{"id": key, "name": name} for key, name in CATEGORIES.items()]


def write(file: Path, images: list[dict[str, Any]], annotations: list[dict[str, Any]]) -> Path:
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories()}))
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of several sizes, the last of which is a copy of the first: scores are equal over images."""
    folder = tmp_path_factory.mktemp("coco")
    (folder / "images").mkdir()
    rng = np.random.default_rng(3)
    for i in range(IMAGES):
        height, width = [(96, 128), (300, 170), (120, 120)][i % 3]
        pixels = rng.integers(0, 256, (height // 4, width // 4 + 1, 3), dtype=np.uint8).repeat(4, 0).repeat(4, 1)
        pixels = pixels[:height, :width]
        (folder / "images" / f"{i}.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + pixels.tobytes())
    (folder / "images" / f"{IMAGES - 1}.ppm").write_bytes((folder / "images" / "0.ppm").read_bytes())
    return folder


def listed(ids: list[Any]) -> list[dict[str, Any]]:
    return [{"id": key, "file_name": f"{i}.ppm"} for i, key in enumerate(ids)]


@pytest.fixture(scope="module")
def run(folder: Path) -> gpunn.Run:
    """A detector that has learnt next to nothing, which finds boxes everywhere."""
    images = listed(list(range(IMAGES)))
    boxes = [
        {"id": i + 1, "image_id": i, "category_id": list(CATEGORIES)[i % 4], "bbox": [10, 10, 40, 30], "iscrowd": 0}
        for i in range(IMAGES)
    ]
    annotations = write(folder / "train.json", images, boxes)
    experiment = folder / "boxes.yaml"
    experiment.write_text(
        "name: boxes\ntask: detection\nloss: multibox"
        + MODEL
        + f"data: {{dataset: detection_folder, format: coco, path: {folder}, images: images, boxes: {annotations}, "
        f"test_boxes: {annotations}, image_size: 128, batch_size: 4, flip: 0}}\n"
        "optimizer: {type: sgd, learning_rate: 0.001}\ntraining: {epochs: 1, seed: 5}\nbackend: cpu\n"
    )
    return gpunn.run(experiment, runs=folder / "runs")


def predicted(model: Path, folder: Path, annotations: Path, images: list[Path] | None = None) -> Any:
    """The results that the program writes, and what it says of them."""
    files = images or sorted((folder / "images").iterdir())
    results = folder / "results.json"
    command: list[str | Path] = [PROGRAM, "predict", model, *files, "--coco", results, "--annotations", annotations]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(results.read_text()), done.stderr


def of_pycocotools(truth: Path, results: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """The twelve figures, and the average precision of each category in the order of the ids."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = coco_tools.COCO()
        coco.dataset = json.loads(truth.read_text())
        for one in coco.dataset["annotations"]:
            one.setdefault("area", one["bbox"][2] * one["bbox"][3])
        coco.createIndex()
        e = evaluator.COCOeval(coco, coco.loadRes(copy.deepcopy(results)), "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    precision = e.eval["precision"][:, :, :, 0, 2]
    by_class = [precision[:, :, k].mean() if precision[0, 0, k] > -1 else -1 for k in range(precision.shape[2])]
    return e.stats.tolist(), by_class


def require_same(evaluation: gpunn.Evaluation, truth: Path, results: list[dict[str, Any]]) -> None:
    figures, by_class = of_pycocotools(truth, results)
    # pycocotools writes -1 for an undefined figure.
    own = [-1 if np.isnan(evaluation.figures[name]) else evaluation.figures[name] for name in FIGURES]
    assert own == pytest.approx(figures, abs=1e-9)
    classes = {one.name: one.coco_ap for one in evaluation.detected_classes}
    ordered = [classes[CATEGORIES[key]] for key in sorted(CATEGORIES)]
    assert [-1 if np.isnan(ap) else ap for ap in ordered] == pytest.approx(by_class, abs=1e-9)


def random_truth(rng: np.random.Generator, results: list[dict[str, Any]], file: Path) -> tuple[Path, list[Any]]:
    """Objects near some of the boxes that were found, and others; crowds, areas, ids of every kind."""
    ids: list[Any] = [
        rng.permutation(1000)[:IMAGES].tolist(),
        [int(key) + 2**53 for key in rng.permutation(1000)[:IMAGES]],
        [f"image-{key}" for key in rng.permutation(30)[:IMAGES]],
        rng.permutation(IMAGES).tolist(),
    ][rng.integers(4)]
    used = rng.permutation(list(CATEGORIES))[: rng.integers(0, 5)].tolist()
    annotations: list[dict[str, Any]] = []

    def add(image: int, category: int, box: list[float]) -> None:
        one: dict[str, Any] = {"id": len(annotations) + int(first), "image_id": ids[image], "category_id": category}
        one |= {"bbox": box, "iscrowd": int(rng.random() < 0.2), "ignore": int(rng.random() < 0.1)}
        if one["iscrowd"]:
            one["segmentation"] = {"size": [10, 10], "counts": [3, 97]}
        if rng.random() < 0.8:
            one["area"] = float(rng.choice([0.3, 1.0, 4.0]) * box[2] * box[3])
        annotations.append(one)

    first = rng.random() < 0.8  # annotations count from 1, or from 0
    for one in results:
        if not used or rng.random() > 0.2:
            continue
        category = one["category_id"] if one["category_id"] in used and rng.random() < 0.9 else rng.choice(used)
        moved = np.asarray(one["bbox"]) + rng.normal(0, rng.choice([0.2, 3, 10]), 4)
        moved[2:] = np.maximum(moved[2:], 0)  # some are degenerate
        add(one["image_id"], int(category), moved.tolist())
    for _ in range(rng.integers(0, 6)):
        if used:
            box = [*rng.uniform(-10, 80, 2).tolist(), *rng.uniform(5, 90, 2).tolist()]
            add(int(rng.integers(IMAGES)), int(rng.choice(used)), box)
    if annotations and rng.random() < 0.3:
        annotations.append({**annotations[0], "id": len(annotations) + int(first)})  # twice
    images = listed(ids)
    rng.shuffle(images)
    return write(file, images, annotations), ids


def test_figures_are_those_of_pycocotools(folder: Path, run: gpunn.Run) -> None:
    found, _ = predicted(run.path, folder, folder / "train.json")
    assert len(found) > 100
    rng = np.random.default_rng(11)
    defined = 0
    for i in range(120):
        truth, ids = random_truth(rng, found, folder / f"truth{i}.json")
        evaluation = run.evaluate(set={"data.test_boxes": str(truth)}, mistakes=0)
        require_same(evaluation, truth, [{**one, "image_id": ids[one["image_id"]]} for one in found])
        defined += not np.isnan(evaluation.metrics["map_coco"])
    assert defined > 60


def test_results_have_the_ids_of_the_annotations(folder: Path, run: gpunn.Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    found, _ = predicted(run.path, folder, folder / "train.json")
    assert {one["category_id"] for one in found} <= set(CATEGORIES)
    assert len({one["category_id"] for one in found}) > 1
    # The names of classes and images lead to the ids of another file, for a run and for a model elsewhere.
    onnx = tmp_path / "detector.onnx"
    gpunn.export(run, onnx)
    truth, ids = random_truth(rng, found, tmp_path / "truth.json")
    for model in (run.path, onnx):
        results, said = predicted(model, folder, truth)
        assert [one["image_id"] for one in results] == [ids[one["image_id"]] for one in found]
        assert [one["category_id"] for one in results] == [one["category_id"] for one in found]
        assert said == ""
        assert gpunn.load(model).info.output_ids == sorted(CATEGORIES)
    evaluation = run.evaluate(set={"data.test_boxes": str(truth)}, mistakes=0)
    require_same(evaluation, truth, predicted(run.path, folder, truth)[0])


def test_images_that_annotations_lack(folder: Path, run: gpunn.Run, tmp_path: Path) -> None:
    some = write(tmp_path / "some.json", listed(["a", "b"]), [])
    results, said = predicted(run.path, folder, some)
    assert {one["image_id"] for one in results} == {"a", "b"}
    assert "images are not in" in said
    # Images that the run's own annotations do not list are called by their files.
    new = tmp_path / "000042.ppm"
    new.write_bytes((folder / "images" / "1.ppm").read_bytes())
    command: list[str | Path] = [PROGRAM, "predict", run.path, new, "--coco", tmp_path / "new.json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    results = json.loads((tmp_path / "new.json").read_text())
    assert {one["image_id"] for one in results} == {42}
    assert {one["category_id"] for one in results} <= set(CATEGORIES)
    assert "image_id is the number that a file is called by" in done.stderr


def test_rows_of_the_test_data_have_their_ids(folder: Path, run: gpunn.Run, tmp_path: Path) -> None:
    found, _ = predicted(run.path, folder, folder / "train.json", [folder / "images" / "1.ppm"])
    command: list[str | Path] = [PROGRAM, "predict", run.path, "--row", "1", "--coco", tmp_path / "row.json"]
    subprocess.run(command, check=True, capture_output=True)
    results = json.loads((tmp_path / "row.json").read_text())
    assert {one["image_id"] for one in results} == {1}
    assert [one["category_id"] for one in results] == [one["category_id"] for one in found]
    for one, other in zip(results, found, strict=True):
        assert one["bbox"] == pytest.approx(other["bbox"], abs=1e-4)


def test_no_object_at_all_is_undefined(folder: Path, run: gpunn.Run, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.json", listed(list(range(IMAGES))), [])
    evaluation = run.evaluate(set={"data.test_boxes": str(empty)}, mistakes=0)
    assert all(np.isnan(value) for value in evaluation.figures.values())
    assert "map_50 -" in repr(evaluation)
    command: list[str | Path] = [PROGRAM, "eval", run.path, "--set", f"data.test_boxes={empty}"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "mAP at 0.5  -" in shown
    document = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True).stdout)
    assert document["map_50"] is None
    assert document["figures"]["COCO at 0.5"] is None
    settings = {"data.test_boxes": str(empty), "early_stopping.patience": 1}
    trained = gpunn.run(
        folder / "boxes.yaml",
        runs=tmp_path,
        epochs=3,
        set=settings,
    )
    assert len(trained.epochs) == 3
    assert trained.result is not None
    assert trained.result.best_epoch == 0
    assert np.isnan(trained.result.best_metric)
