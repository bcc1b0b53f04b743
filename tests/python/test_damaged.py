"""Damaged image files are read as Pillow reads them, or refused as Pillow refuses them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

images: Any = pytest.importorskip("PIL.Image", reason="needs Pillow, which defines the values")
files: Any = pytest.importorskip("PIL.ImageFile", reason="needs Pillow, which defines the values")

SIDE = 96


def picture(mode: str) -> Any:
    generator = np.random.default_rng(7)
    shape = (SIDE, SIDE) if mode == "L" else (SIDE, SIDE, 3)
    smooth = np.cumsum(generator.integers(-9, 10, shape), axis=0) + 128
    return images.fromarray(np.clip(smooth, 0, 255).astype(np.uint8), mode)


def encoded(mode: str, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def by_pillow(data: bytes, truncated: bool) -> Any:
    files.LOAD_TRUNCATED_IMAGES = truncated
    try:
        pixels = np.asarray(images.open(io.BytesIO(data)))
    finally:
        files.LOAD_TRUNCATED_IMAGES = False
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def by_gpunn(folder: Path, data: bytes, damaged: str) -> Any:
    for name in ("a", "b"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "a" / "1.img.jpg").write_bytes(data)
    (folder / "b" / "1.png").write_bytes(encoded("RGB" if by_pillow(data, True).shape[0] == 3 else "L", "PNG"))
    return gpunn.load_dataset("image_folder", path=str(folder), damaged=damaged).x_train[0]


KINDS = [
    ("L", "JPEG", {}),
    ("RGB", "JPEG", {"quality": 90}),
    ("RGB", "JPEG", {"progressive": True}),
    ("L", "PNG", {}),
    ("RGB", "PNG", {}),
]


@pytest.mark.parametrize(("mode", "kind", "options"), KINDS)
def test_a_file_without_its_end_is_sound(tmp_path: Path, mode: str, kind: str, options: dict[str, Any]) -> None:
    data = encoded(mode, kind, **options)
    less = data[: -2 if kind == "JPEG" else -12]
    np.testing.assert_array_equal(by_gpunn(tmp_path, less, "error"), by_pillow(data, False))
    # Pillow has the same pixels, but reads such a JPEG only if it is told to.
    np.testing.assert_array_equal(by_pillow(less, kind == "JPEG"), by_pillow(data, False))


@pytest.mark.parametrize(("mode", "kind", "options"), KINDS)
def test_a_file_that_is_cut_short_gives_the_pixels_that_pillow_reads(
    tmp_path: Path, mode: str, kind: str, options: dict[str, Any]
) -> None:
    data = encoded(mode, kind, **options)
    for share in (0.5, 0.8):
        less = data[: int(len(data) * share)]
        with pytest.raises(OSError, match="truncated"):
            by_pillow(less, False)
        with pytest.raises(gpunn.Error, match=r"1 of 2 images .* is damaged"):
            by_gpunn(tmp_path, less, "error")
        repaired, expected = by_gpunn(tmp_path, less, "repair").astype(int), by_pillow(less, True).astype(int)
        # Versions of libjpeg smooth the blocks of a progressive file without its last scans in different ways.
        np.testing.assert_allclose(repaired, expected, rtol=0, atol=3 if options.get("progressive") else 0)


def test_predictions_of_files_skip_or_repair_damaged_ones(tmp_path: Path) -> None:
    network = gpunn.Sequential([gpunn.Flatten(), gpunn.Linear(SIDE * SIDE, 2)]).compile("sgd", backend="cpu")
    x = np.zeros((8, 1, SIDE, SIDE), np.uint8)
    x[4:] = 255
    network.fit(x, np.repeat(np.arange(2, dtype=np.int32), 4), epochs=1, batch_size=4)
    network.save(tmp_path / "model.h5")
    data = encoded("L", "JPEG")
    photos = tmp_path / "photos"
    photos.mkdir()
    for name, some in (("1.jpg", data), ("2.jpg", data[:-20]), ("3.jpg", b"")):
        (photos / name).write_bytes(some)
    model = gpunn.load(tmp_path / "model.h5")
    with pytest.raises(gpunn.Error, match="2 of 3 images are damaged"):
        model.predict(photos)
    assert len(model.predict(photos, damaged="skip")) == 1
    assert len(model.predict(photos, damaged="repair")) == 2
    with pytest.raises(gpunn.UsageError, match="expected error, skip or repair"):
        model.predict(photos, damaged="ignore")


def test_one_class_alone_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    x = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)
    network = gpunn.Sequential([gpunn.Linear(4, 1)]).compile("sgd", "cross_entropy", backend="cpu")
    with pytest.raises(gpunn.UsageError, match="all 16 training rows have the class"):
        network.fit(x, np.zeros(16, np.int32), epochs=1, batch_size=4)
    # A share of what a network of several classes learns is no mistake.
    several = gpunn.Sequential([gpunn.Linear(4, 3)]).compile("sgd", backend="cpu")
    several.fit(x, np.full(16, 2, np.int32), epochs=1, batch_size=4)
    assert "all 16 training rows have the class '2'" in caplog.text
