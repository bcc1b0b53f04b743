"""Pictures that are painted from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(3)
    files = (tmp_path / "content.ppm", tmp_path / "style.ppm")
    for file in files:
        blocks = rng.integers(0, 256, (10, 15, 3), np.uint8)
        file.write_bytes(b"P6 60 40 255\n" + blocks.repeat(4, 0).repeat(4, 1).tobytes())
    return files


def paint(pictures: tuple[Path, Path], to: Path, **options: Any) -> gpunn._core.StylizedImage:
    return gpunn.stylize(*pictures, to, features="drawn", size=48, backend="cpu", **options)


def test_a_picture_is_painted(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    told: list[int] = []
    image = paint(pictures, tmp_path / "painted.png", steps=6, report=lambda report: told.append(report.step))
    assert (image.to, image.height, image.width, image.steps) == (tmp_path / "painted.png", 32, 48, 6)
    assert image.to.read_bytes().startswith(b"\x89PNG")
    assert image.last.total < image.first.total
    assert len(image.history) == 6
    assert told[-1] == 6


def test_an_exception_of_the_callback_ends_it(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    def fail(report: Any) -> None:
        raise ValueError(f"at step {report.step}")

    with pytest.raises(ValueError, match="at step 1"):
        paint(pictures, tmp_path / "painted.png", steps=100000, optimizer="adam", report=fail)


def test_what_can_not_be_painted(pictures: tuple[Path, Path], trained: gpunn.Run, tmp_path: Path) -> None:
    with pytest.raises(gpunn.UsageError, match=r"\.png"):
        paint(pictures, tmp_path / "painted.jpg")
    with pytest.raises(gpunn.UsageError, match="centred"):
        paint(pictures, tmp_path / "painted.png", colours="grey")
    with pytest.raises(gpunn.MissingError):
        gpunn.stylize(tmp_path / "none.png", pictures[1], tmp_path / "painted.png", features="drawn")
    with pytest.raises(gpunn.UsageError, match="style_transfer"):
        gpunn.paint(trained, pictures[0], tmp_path / "painted.png", backend="cpu")


def test_a_network_paints_in_one_pass(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    run = gpunn.run(
        {
            "task": "style_transfer",
            "model": {"layers": [{"pad": {"padding": 1, "mode": "reflect"}}, {"conv2d": {"filters": 3, "kernel": 3}}]},
            "data": {
                "dataset": "drawn_photographs",
                "scale": 1,
                "colours": "rgb",
                "patch_size": 32,
                "patches": 8,
                "batch_size": 4,
                "synthetic_train": 4,
                "synthetic_test": 2,
            },
            "loss": {"type": "style", "features": "drawn", "styles": [str(pictures[1])]},
            "optimizer": {"type": "adam", "learning_rate": 0.01},
            "training": {"epochs": 1},
            "backend": "cpu",
        },
        progress=False,
    )
    (image,) = gpunn.paint(run, pictures[0], tmp_path / "painted.png")
    assert (image.source, image.to, image.style) == (pictures[0], tmp_path / "painted.png", 0)
    assert image.to.read_bytes().startswith(b"\x89PNG")
