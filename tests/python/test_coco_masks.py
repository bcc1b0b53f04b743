"""Label maps from COCO's annotations, against the masks of pycocotools, which defines them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

images: Any = pytest.importorskip("PIL.Image", reason="Pillow writes the pictures")
masks: Any = pytest.importorskip("pycocotools.mask", reason="pycocotools defines COCO's masks")

HEIGHT, WIDTH, IMAGES = 37, 53, 60
CATEGORIES = {7: "cat", 90: "dog", 3: "bee"}  # gaps, and not sorted
CLASSES = {key: place + 1 for place, key in enumerate(sorted(CATEGORIES))}


def polygon(draw: random.Random) -> list[float]:
    """Any shape: thin or large, across itself, on whole pixels, partly or wholly outside."""
    beyond, digits = draw.choice([(0, 2), (-12, 1), (40, 2), (3, 0)])
    corners = draw.choice([3, 3, 4, 8, 20])
    points = [round(draw.uniform(-beyond, side + beyond), digits) for _ in range(corners) for side in (WIDTH, HEIGHT)]
    if draw.random() < 0.2:  # thin
        points[2:4] = [points[0] + 0.3, points[1]]
    return points


def run_lengths(draw: random.Random) -> dict[str, Any]:
    share = draw.random()
    mask = np.array([[draw.random() < share for _ in range(WIDTH)] for _ in range(HEIGHT)], np.uint8)
    compressed = masks.encode(np.asfortranarray(mask))
    if draw.random() < 0.5:
        return {"size": [HEIGHT, WIDTH], "counts": compressed["counts"].decode()}
    pixels = mask.flatten(order="F")
    starts = np.flatnonzero(np.diff(pixels, prepend=0)).tolist()
    return {"size": [HEIGHT, WIDTH], "counts": np.diff([0, *starts, pixels.size]).tolist()}


def annotation(draw: random.Random, image: int) -> dict[str, Any]:
    polygons = [polygon(draw) for _ in range(draw.randint(1, 3))]
    return {
        "image_id": image,
        "category_id": draw.choice(list(CATEGORIES)),
        "iscrowd": int(draw.random() < 0.1),
        "segmentation": polygons if draw.random() < 0.8 else run_lengths(draw),
    }


def mask_of(segmentation: Any) -> Any:
    """As COCO.annToMask() does."""
    if isinstance(segmentation, list):
        return masks.decode(masks.merge(masks.frPyObjects(segmentation, HEIGHT, WIDTH)))
    if isinstance(segmentation["counts"], list):
        segmentation = masks.frPyObjects(segmentation, HEIGHT, WIDTH)
    return masks.decode(segmentation)


def map_of(objects: list[dict[str, Any]]) -> Any:
    """As torchvision's reference for segmentation does, with crowds ignored."""
    if not objects:
        return np.zeros((HEIGHT, WIDTH), np.uint8)
    stack = np.stack([mask_of(one["segmentation"]) for one in objects])
    ids = np.array([255 if one["iscrowd"] else CLASSES[one["category_id"]] for one in objects], np.uint8)
    result = (stack * ids[:, None, None]).max(0)
    result[stack.sum(0) > 1] = 255
    return result


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")  # pycocotools
def test_random_annotations_become_the_maps_of_pycocotools(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    objects = {image: [annotation(draw, image) for _ in range(draw.randint(0, 4))] for image in range(IMAGES)}
    for image in objects:
        images.fromarray(np.full((HEIGHT, WIDTH), image, np.uint8)).save(tmp_path / f"{image:03}.png")
    content = {
        "images": [{"id": image, "file_name": f"{image:03}.png"} for image in objects],
        "categories": [{"id": key, "name": name} for key, name in CATEGORIES.items()],
        "annotations": [one for some in objects.values() for one in some],
    }
    (tmp_path / "instances.json").write_text(json.dumps(content))
    data = gpunn.load_dataset(
        "segmentation_folder", task="segmentation", path=str(tmp_path), instances=str(tmp_path / "instances.json")
    )
    assert data.class_names == ["background", "bee", "cat", "dog"]
    assert data.x_train[:, 0, 0, 0].tolist() == list(range(IMAGES))
    for image, some in objects.items():
        np.testing.assert_array_equal(data.y_train[image], map_of(some), err_msg=f"image {image}")
