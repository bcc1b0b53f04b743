"""Makes the pictures of docs/gallery.md from real runs: docs/pictures/gallery.py GPUNN FOLDER.

FOLDER keeps the runs; one that is there is not trained again. MNIST has to be there ($GPUNN_DATA_DIR). It needs Pillow.
Expect 6 minutes on two cores.
"""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

SOURCE = Path(__file__).resolve().parents[2]
HERE = SOURCE / "docs" / "pictures" / "gallery"


class Gallery:
    def __init__(self, gpunn: str, folder: Path) -> None:
        self.program, self.folder = gpunn, folder
        folder.mkdir(parents=True, exist_ok=True)
        HERE.mkdir(exist_ok=True)

    def gpunn(self, *words: str | Path) -> str:
        command = [self.program, *map(str, words)]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def run(self, experiment: str, *options: str) -> Path:
        """The run folder of an experiment, trained if it is not there yet; with its report."""
        found = sorted((self.folder / "runs" / experiment).glob("2*"))
        if not found:
            self.gpunn("run", SOURCE / "experiments" / f"{experiment}.yaml", "--quiet", "--report", *options)
            found = sorted((self.folder / "runs" / experiment).glob("2*"))
        return found[-1]

    def mnist(self, rows: range) -> list[Image.Image]:
        """Test images of MNIST, through the program: a sheet has the first of each class."""
        sheet = self.folder / "mnist.png"
        self.gpunn("data", "inspect", "mnist", "--sheet", sheet, "--columns", str(len(rows)))
        image = Image.open(sheet)
        scale = image.height // 10 // 28  # as the sheet enlarges small images
        size = 28 * scale
        places = [(image.width - size - 2, 2 + (size + 2) * row) for row in rows]  # 2 pixels between images
        return [
            image.crop((left, top, left + size, top + size)).resize((28, 28), Image.Resampling.BOX)
            for left, top in places
        ]

    def explained(self) -> None:
        run = self.run("lenet_mnist")
        digits = self.folder / "digits"
        digits.mkdir(exist_ok=True)
        for number, image in enumerate(self.mnist(range(8))):
            image.save(digits / f"{number}.png")
        self.gpunn("explain", run, digits, "--overlay", self.folder / "overlays")
        tiles = [
            Image.open(one).convert("RGB").resize((112, 112))
            for one in sorted((self.folder / "overlays").glob("*.png"))
        ]
        montage(tiles, 4).save(HERE / "explain.png", optimize=True)

    def detected(self) -> None:
        run = self.run("fcos_digits", "--set", "data.digit_source=mnist")
        page = Image.new("L", (128, 128))
        for image, (left, top, size) in zip(
            self.mnist(range(5)), [(4, 6, 36), (52, 2, 52), (12, 66, 56), (84, 58, 28), (80, 90, 36)]
        ):
            page.paste(image.resize((size, size)), (left, top))
        page.save(self.folder / "page.png")
        self.gpunn("predict", run, self.folder / "page.png", "--draw", self.folder / "found")
        drawn = Image.open(next((self.folder / "found").glob("*.png"))).convert("RGB")
        drawn.resize((384, 384), Image.Resampling.NEAREST).save(HERE / "detect.png", optimize=True)

    def sheets(self) -> None:
        for name, experiment, options in (
            ("shifts", "lenet_mnist_shifts", ["--augmented"]),
            ("two-digits", "lenet_two_digits", []),
        ):
            sheet = self.folder / f"{name}.png"
            self.gpunn(
                "data",
                "inspect",
                SOURCE / "experiments" / f"{experiment}.yaml",
                "--sheet",
                sheet,
                "--columns",
                "12",
                *options,
            )
            image = Image.open(sheet)
            image.crop((0, 0, image.width, image.height // 2)).save(HERE / f"{name}.png", optimize=True)

    def enlarged(self) -> None:
        run = self.run("espcn_x3", "--set", "data.dataset=drawn_photographs", "--epochs", "12")
        report = self.report(run)
        pictures = [base64.b64decode(one) for one in re.findall(r'src="data:image/png;base64,([^"]+)"', report)][:3]
        tiles = [
            Image.open(io.BytesIO(one)).convert("RGB").resize((220, 220), Image.Resampling.NEAREST) for one in pictures
        ]
        montage(tiles, 3).save(HERE / "upscale.png", optimize=True)

    def charts(self) -> None:
        schedule = self.folder / "schedule.svg"
        self.gpunn("plan", SOURCE / "experiments" / "resnet18_cifar10.yaml", "--schedule", schedule)
        for name, experiment, number in (("perceptron", "perceptron_points", 0), ("diabetes", "mlp_diabetes", -1)):
            page = self.report(self.run(experiment))
            drawings = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
            (HERE / f"{name}.svg").write_text(alone(drawings[number], page))
        (HERE / "schedule.svg").write_text(schedule.read_text())

    def report(self, run: Path) -> str:
        if not (run / "report.html").exists():
            self.gpunn("report", run)
        return (run / "report.html").read_text()


def alone(drawing: str, page: str) -> str:
    """A drawing of a report as a file of its own, with the report's colours, on its ground."""
    colours: dict[str, str] = {}
    for name, colour in re.findall(r"--([\w-]+): (#\w+)", page):
        colours.setdefault(name, colour)  # the light ones come first
    head, rest = drawing.split(">", 1)
    rest = re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name.group(1)], rest)
    return f'{head}><rect width="100%" height="100%" fill="{colours["ground"]}"/>{rest}\n'


def montage(tiles: list[Image.Image], columns: int) -> Image.Image:
    width, height = tiles[0].size
    rows = -(-len(tiles) // columns)
    result = Image.new("RGB", (columns * (width + 4) - 4, rows * (height + 4) - 4), "white")
    for i, tile in enumerate(tiles):
        result.paste(tile, (i % columns * (width + 4), i // columns * (height + 4)))
    return result


def main() -> None:
    gallery = Gallery(os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve())
    for make in (gallery.explained, gallery.detected, gallery.sheets, gallery.enlarged, gallery.charts):
        make()
    print(f"{sum(one.stat().st_size for one in HERE.iterdir())} bytes in {HERE}")


if __name__ == "__main__":
    main()
