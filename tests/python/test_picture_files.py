"""Colour profiles and 16 bits a channel go from a picture to the results of ``gpunn upscale`` and ``stylize``."""

from __future__ import annotations

import json
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn
import small

Array = npt.NDArray[Any]
PROFILE = bytes(16) + b"RGB " + bytes(range(256)) * 4
GREY_PROFILE = bytes(16) + b"GRAY" + bytes(range(200))
KINDS = {1: 0, 2: 4, 3: 2, 4: 6}  # the colour type of a PNG, by its channels


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(pixels: Array, *tags: tuple[bytes, bytes]) -> bytes:
    """A PNG of uint8 or uint16 ``[rows, columns, channels]``."""
    rows, columns, channels = pixels.shape
    depth = 8 * pixels.dtype.itemsize
    head = struct.pack(">IIBBBBB", columns, rows, depth, KINDS[channels], 0, 0, 0)
    data = b"".join(b"\0" + row.astype(pixels.dtype.newbyteorder(">")).tobytes() for row in pixels)
    middle = b"".join(chunk(name, content) for name, content in tags)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + middle + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    )


def profile_tag(profile: bytes) -> tuple[bytes, bytes]:
    return b"iCCP", b"mine\0\0" + zlib.compress(profile)


def tags_of(file: Path) -> list[tuple[bytes, bytes]]:
    """All chunks but those of the pixels."""
    content, at, found = file.read_bytes(), 8, []
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        name = content[at + 4 : at + 8]
        if name not in (b"IHDR", b"IDAT", b"IEND"):
            found.append((name, content[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def pixels_of(file: Path) -> Array:
    """What a PNG of gpunn holds, decoded by its specification."""
    content = file.read_bytes()
    columns, rows, depth, kind = struct.unpack_from(">IIBB", content, 16)
    channels = {number: channels for channels, number in KINDS.items()}[kind]
    data, at = b"", 8
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        if content[at + 4 : at + 8] == b"IDAT":
            data += content[at + 8 : at + 8 + length]
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(data), np.uint8).reshape(rows, -1)
    step = channels * depth // 8
    lines = np.zeros((rows + 1, raw.shape[1] - 1 + step), np.int32)
    for y in range(rows):
        above, line = lines[y], lines[y + 1]
        for x in range(raw.shape[1] - 1):
            a, b, c = int(line[x]), int(above[x + step]), int(above[x])
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x + step] = (int(raw[y, x + 1]) + (0, a, b, (a + b) // 2, nearest)[raw[y, 0]]) % 256
    values = lines[1:, step:].astype(np.uint8).tobytes()
    return np.frombuffer(values, ">u2" if depth == 16 else np.uint8).reshape(rows, columns, channels)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = small.experiment(
        task="super_resolution",
        model={
            "layers": [
                {"conv2d": {"filters": 12, "kernel": 3, "padding": 1}},
                {"pixel_shuffle": {"name": "details", "factor": 2}},
                {"upsample": {"name": "larger", "from": "input", "factor": 2, "mode": "bilinear"}},
                {"add": {"from": ["details", "larger"]}},
            ]
        },
        data={
            "dataset": "drawn_photographs",
            "scale": 2,
            "colours": "rgb",
            "patch_size": 16,
            "patches": 64,
            "batch_size": 8,
            "synthetic_train": 2,
            "synthetic_test": 1,
            "also_scaled": [],
        },
        loss="mean_squared_error",
        training={"epochs": 1, "seed": 3},
        runs=str(tmp_path_factory.mktemp("runs")),
    )
    return gpunn.run(settings).path


def ramp(channels: int, dtype: type) -> Array:
    most = np.iinfo(dtype).max
    y, x = np.mgrid[0:12, 0:40]
    planes = [(np.sin(0.05 * x + 0.03 * y + c) * 0.4 + 0.5) * most for c in range(channels)]
    return np.stack(planes, -1).astype(dtype)


def upscaled(model: Path, image: Path) -> tuple[Path, list[str]]:
    program = Path(gpunn.__file__).parent / "bin" / "gpunn"
    result = image.with_name(image.stem + ".larger.png")
    command: list[str | Path] = [program, "upscale", model, image, "--to", result, "--backend", "cpu", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return result, json.loads(done.stdout)[0]["notes"]


TAGS = {
    "nothing": [],
    "sRGB": [(b"sRGB", b"\1"), (b"gAMA", struct.pack(">I", 45455))],
    "profile": [profile_tag(PROFILE)],
    "gamma": [(b"gAMA", struct.pack(">I", 100000)), (b"cHRM", bytes(range(32)))],
    "cicp": [(b"cICP", bytes([9, 16, 0, 1])), (b"mDCV", bytes(24)), (b"cLLI", bytes(8))],
    "turned": [(b"eXIf", b"MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0")],
}


@pytest.mark.parametrize("name", list(TAGS))
def test_a_png_keeps_its_tags_and_gets_no_others(name: str, model: Path, tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(png(ramp(3, np.uint8), (b"tEXt", b"not\0colours"), *TAGS[name]))
    result, notes = upscaled(model, image)
    assert tags_of(result) == TAGS[name]
    assert notes == []


def test_a_grey_picture_keeps_a_grey_profile(model: Path, tmp_path: Path) -> None:
    image = tmp_path / "grey.png"
    image.write_bytes(png(ramp(1, np.uint16), profile_tag(GREY_PROFILE)))
    result, notes = upscaled(model, image)
    assert tags_of(result) == [profile_tag(GREY_PROFILE)]
    assert pixels_of(result).shape == (24, 80, 1)
    assert notes == []


def test_a_damaged_tag_is_left_out(model: Path, tmp_path: Path) -> None:
    content = png(ramp(3, np.uint8), (b"cICP", bytes([9, 16, 0, 1])))
    at = content.index(b"cICP")
    image = tmp_path / "a.png"
    image.write_bytes(content[: at + 4] + b"\7" + content[at + 5 :])
    assert tags_of(upscaled(model, image)[0]) == []


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_16_bits_stay_16_and_are_not_those_of_8(channels: int, model: Path, tmp_path: Path) -> None:
    fine = ramp(channels, np.uint16)
    coarse = (fine // 257).astype(np.uint8)
    files = {}
    for name, pixels in {"fine": fine, "coarse": coarse, "wide": coarse.astype(np.uint16) * 257}.items():
        (tmp_path / f"{name}.png").write_bytes(png(pixels))
        files[name] = pixels_of(upscaled(model, tmp_path / f"{name}.png")[0])
    assert files["coarse"].dtype == np.uint8
    assert files["fine"].dtype == files["wide"].dtype == np.dtype(">u2")
    assert files["fine"].shape == (24, 80, channels)
    # The same picture in 8 and in 16 bits: the same result, rounded more finely.
    assert np.abs(files["wide"].astype(np.float64) / 257 - files["coarse"]).max() <= 0.5 + 1e-3
    assert (files["fine"] % 257 != 0).mean() > 0.6  # others are cut at black or white
    assert len(np.unique(files["fine"])) > 400


def test_an_animation_gives_its_first_frame_with_a_note(model: Path, tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(png(ramp(3, np.uint8), (b"acTL", bytes(8))))
    result, notes = upscaled(model, image)
    assert tags_of(result) == []
    assert notes == ["it is an animation: the result is of its first frame"]


def test_a_portable_map_of_16_bits(model: Path, tmp_path: Path) -> None:
    fine = ramp(3, np.uint16)
    image, same = tmp_path / "a.ppm", tmp_path / "b.png"
    image.write_bytes(b"P6\n40 12\n65535\n" + fine.astype(">u2").tobytes())
    same.write_bytes(png(fine))
    assert np.array_equal(pixels_of(upscaled(model, image)[0]), pixels_of(upscaled(model, same)[0]))


def test_a_jpeg_keeps_its_profile_from_several_segments(model: Path, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    profile = bytes(16) + b"RGB " + np.random.default_rng(1).bytes(150_000)
    image = tmp_path / "a.jpg"
    pillow.fromarray(ramp(3, np.uint8)).save(image, icc_profile=profile, quality=95)
    result, notes = upscaled(model, image)
    with pillow.open(result) as found:
        assert found.info["icc_profile"] == profile
    assert notes == []
    pillow.fromarray(ramp(3, np.uint8)).save(image, quality=95)
    assert tags_of(upscaled(model, image)[0]) == []


@pytest.mark.parametrize(("mode", "profile"), [("CMYK", bytes(16) + b"CMYK" + bytes(200)), ("L", PROFILE)])
def test_a_profile_for_other_colours_is_left_out_with_a_note(
    mode: str, profile: bytes, model: Path, tmp_path: Path
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    image = tmp_path / "a.jpg"
    pillow.fromarray(ramp(3, np.uint8)).convert(mode).save(image, icc_profile=profile, quality=95)
    result, notes = upscaled(model, image)
    assert tags_of(result) == []
    assert len(notes) == 1
    assert "profile is for" in notes[0]


def test_a_style_keeps_the_profile_and_says_what_it_can_not_keep(tmp_path: Path) -> None:
    content, style = tmp_path / "content.png", tmp_path / "style.png"
    clear = ramp(4, np.uint16)
    clear[..., 3] = 40_000
    style.write_bytes(png(np.repeat(np.repeat(ramp(3, np.uint8), 3, 0), 2, 1)))

    def painted(pixels: Array, tags: list[tuple[bytes, bytes]], size: int) -> tuple[Path, str]:
        content.write_bytes(png(np.repeat(pixels, 3, 0), *tags))
        done = gpunn.stylize(content, style, tmp_path / "out.png", features="drawn", steps=1, size=size, backend="cpu")
        return tmp_path / "out.png", "\n".join(done.notes)

    result, notes = painted(ramp(3, np.uint16), [profile_tag(PROFILE)], 0)
    assert tags_of(result) == [profile_tag(PROFILE)]
    assert pixels_of(result).dtype == np.dtype(">u2")
    assert "bits" not in notes
    result, notes = painted(clear, [], 32)
    assert tags_of(result) == []
    assert pixels_of(result).dtype == np.uint8
    assert "scaled in 8 bits" in notes
    assert "transparent pixels lie on white" in notes
    result, notes = painted(ramp(1, np.uint8), [profile_tag(GREY_PROFILE)], 0)
    assert tags_of(result) == []
    assert "colour profile is for grey" in notes
