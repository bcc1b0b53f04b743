"""Makes the pages of docs/gallery/, one an experiment, from real runs: docs/pictures/gallery_pages.py GPUNN FOLDER
[NAME...].

FOLDER keeps the runs; one that is there is not trained again. Without names it makes the pages of all experiments that
need no files of yours; MNIST, Fashion-MNIST and CIFAR-10 have to be there ($GPUNN_DATA_DIR). It needs Pillow. Expect a
quarter of an hour on a GPU.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import re
import shlex
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from gallery import SOURCE, Gallery, alone, montage
from PIL import Image, ImageOps

PAGES = SOURCE / "docs" / "gallery"
PICTURES = SOURCE / "docs" / "pictures" / "gallery"
DRAWN = ("--set", "data.dataset=drawn_photographs")
SIZE = 112  # of a picture in a row


@dataclass
class Page:
    title: str
    text: str
    options: tuple[str, ...] = ()
    what: tuple[str, ...] = ("curves", "filters")


FILTERS = "Each filter of the first convolution is a small picture: grey is zero."
CURVES = ("curves",)
CROPS = ("crops", "curves")
FOUND = ("boxes", "curves", "filters")
PERCEPTUAL = ("--set", "loss.features=drawn", "--epochs", "5")
SSD = (
    *("--set", "data.dataset=drawn_digits", "--set", "data.image_size=[300,300]", "--set", "data.channels=3"),
    *("--set", "init_from=null", "--set", "model.parameters.base=16", "--set", "data.flip=0", "--set", "data.colour=0"),
    *("--set", "data.digits=5", "--set", "data.digit_source=mnist", "--set", "data.synthetic_train=4000"),
    *("--set", "data.synthetic_test=200", "--set", "optimizer.learning_rate=0.003", "--set", "optimizer.clip_norm=5"),
    *("--epochs", "15"),
)

EXPERIMENTS = {
    "perceptron_points": Page(
        "A line between two clouds",
        "The smallest experiment: one linear layer separates two clouds of points.",
        what=CURVES,
    ),
    "mlp_diabetes": Page(
        "A table of numbers",
        "Ten measurements of a patient, and how far diabetes progresses within a year: a regression.",
        what=("last", "curves"),
    ),
    "mlp_mnist": Page("One hidden layer", "128 neurons read handwritten digits.", what=("mistakes", "curves")),
    "lenet_mnist": Page("LeNet-5 on handwritten digits", FILTERS, what=("mistakes", "filters", "curves")),
    "lenet_mnist_shifts": Page(
        "Digits that move",
        "While training, each image moves by up to 2 pixels at random.",
        what=("mistakes", "filters", "curves"),
    ),
    "lenet_digits": Page(
        "LeNet-5 on drawn digits", "The program draws the digits.", what=("mistakes", "filters", "curves")
    ),
    "lenet_fashion": Page(
        "LeNet-5 on clothes", "Ten kinds of clothes, harder than digits.", what=("mistakes", "filters", "curves")
    ),
    "lenet_two_digits": Page(
        "Two digits at once",
        "Each image has two labels, and the network gives a probability for each of ten digits.",
        what=CURVES,
    ),
    "resnet50_mnist": Page("ResNet-50 on digits", "Far more network than digits need.", what=CURVES),
    "cnn_cifar10": Page("A small net on CIFAR-10", FILTERS),
    "allconv_cifar10": Page("A net of convolutions alone", FILTERS),
    "alexnet_cifar10": Page("AlexNet on small images", FILTERS),
    "vgg11_cifar10": Page("VGG-11", FILTERS),
    "resnet18_cifar10": Page("ResNet-18 on CIFAR-10", FILTERS, ("--set", "training.precision=bf16")),
    "vit_cifar10": Page(
        "A small vision transformer",
        "64 patches of 4x4 pixels attend to one another.",
        ("--set", "training.precision=bf16", "--epochs", "20"),
        CURVES,
    ),
    "fcos_digits": Page(
        "Digits with boxes, by FCOS",
        "The detector finds digits of MNIST in several sizes. Below are the test images with the largest loss.",
        ("--set", "data.digit_source=mnist"),
        FOUND,
    ),
    "ssd300_voc": Page(
        "Digits with boxes, by SSD",
        "SSD300 with a quarter of VGG-16's channels, from random weights, on digits in images of 300x300. Below are the"
        " test images with the largest loss.",
        SSD,
        FOUND,
    ),
    "espcn_x3": Page("Three times larger, by ESPCN", "", DRAWN, CROPS),
    "fsrcnn_x3": Page("Three times larger, by FSRCNN", "", (*DRAWN, "--epochs", "30"), CROPS),
    "srcnn_x3": Page("Three times larger, by SRCNN", "", (*DRAWN, "--epochs", "20"), CROPS),
    "edsr_x2": Page("Twice as large, by a small EDSR", "", (*DRAWN, "--epochs", "8"), CROPS),
    "edsr_x4": Page("Four times larger, by a small EDSR", "", (*DRAWN, "--epochs", "8"), CROPS),
    "edsr_x4_perceptual": Page(
        "Four times larger, by features",
        "The perceptual loss makes textures sharper, and the PSNR lower.",
        (*DRAWN, *PERCEPTUAL),
        CROPS,
    ),
    "style_transfer": Page(
        "A network that paints",
        "It learnt a style that the program draws. Each row has a photograph, drawn as well, and what the network"
        " paints of it in one pass.",
        (*DRAWN, "--set", "data.patches=1000", "--epochs", "3"),
        ("painted", "curves"),
    ),
}

METRICS = {
    "test_accuracy": ("test accuracy", 100, "%"),
    "test_map_50": ("mAP at an overlap of 0.5", 100, "%"),
    "test_map_coco": ("mAP of COCO", 100, "%"),
    "test_map": ("mean average precision", 100, "%"),
    "test_psnr": ("PSNR", 1, "dB"),
    "test_ssim": ("SSIM", 1, ""),
    "test_r2": ("R²", 1, ""),
    "test_total_loss": ("loss of whole photographs", 1, ""),
    "test_loss": ("test loss", 1, ""),
}


class Pages:
    def __init__(self, gallery: Gallery, backend: str) -> None:
        self.gallery, self.backend = gallery, backend
        PAGES.mkdir(exist_ok=True)
        PICTURES.mkdir(exist_ok=True)

    def make(self, name: str) -> None:
        page = EXPERIMENTS[name]
        options = [*page.options, *(("--backend", self.backend) if self.backend else ())]
        run = self.gallery.run(name, *options)
        report = self.gallery.report(run)
        command = f"gpunn run experiments/{name}.yaml"
        for first, second in zip(page.options[::2], page.options[1::2], strict=True):
            command += (
                f" {first} {shlex.quote(second)}"
                if len(command.splitlines()[-1]) + len(second) < 85
                else (f" \\\n      {first} {shlex.quote(second)}")
            )
        text = f"# {page.title}\n\n"
        if page.text:
            text += wrapped(page.text) + "\n\n"
        text += f"    {command}\n\n" + self.figures(run)
        for what in page.what:
            text += "\n" + getattr(self, what)(name, run, report)
        (PAGES / f"{name}.md").write_text(text.rstrip("\n") + "\n")

    def figures(self, run: Path) -> str:
        with (run / "metrics.csv").open() as file:
            rows = list(csv.DictReader(file))
        last = rows[-1]
        seconds = sum(float(row["train_seconds"]) for row in rows)
        lines = [f"| After {len(rows)} {'epochs' if len(rows) > 1 else 'epoch'} | |", "| --- | --- |"]
        for key, (title, factor, unit) in METRICS.items():
            if last.get(key):
                lines.append(f"| {title} | {float(last[key]) * factor:.4g} {unit}".rstrip() + " |")
        machine = re.search(r" on (.*?), \d+ steps", (run / "log.txt").read_text())
        time = f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"
        lines.append(f"| training | {time} s on {machine.group(1) if machine else 'an unknown machine'} |")
        return "\n".join(lines) + "\n"

    def curves(self, name: str, _run: Path, report: str) -> str:
        drawings = re.findall(r"<svg .*?</svg>", report.split('id="curves"', 1)[1], re.DOTALL)
        (PICTURES / f"{name}-loss.svg").write_text(alone(drawings[0], report))
        return picture("Training and test loss by epoch", f"{name}-loss.svg")

    def last(self, name: str, _run: Path, report: str) -> str:
        drawings = re.findall(r"<svg .*?</svg>", report, re.DOTALL)
        (PICTURES / f"{name}-last.svg").write_text(alone(drawings[-1], report))
        return picture("Predictions over targets: the nearer to the diagonal, the better", f"{name}-last.svg")

    def filters(self, name: str, _run: Path, report: str) -> str:
        found = pictures_behind(report, "filters")
        if not found:
            return ""
        save(found[0], f"{name}-filters.png")
        return picture("The filters of the first convolution", f"{name}-filters.png")

    def mistakes(self, name: str, _run: Path, report: str) -> str:
        found = pictures_behind(report, "worst")[:12]
        tiles = [one.resize((SIZE, SIZE), Image.Resampling.NEAREST) for one in found]
        save(montage(tiles, 6), f"{name}-mistakes.png")
        titles = re.findall(r'alt="test row \d+, an? ([^"]*)"', report.split('id="worst"', 1)[1])
        said = "; ".join(html.unescape(one) for one in titles[: len(found) // 2])
        return picture(
            "The worst mistakes: an image, and the parts of it that speak for the wrong class",
            f"{name}-mistakes.png",
        ) + (f"\n{wrapped('From the left: ' + said + '.')}\n" if said else "")

    def boxes(self, name: str, _run: Path, report: str) -> str:
        drawings = re.findall(r"<svg .*?</svg>", report.split('id="detection"', 1)[1], re.DOTALL)
        (PICTURES / f"{name}-precision.svg").write_text(alone(drawings[0], report))
        tiles = [one.resize((220, 220)) for one in pictures_behind(report, "worst-images")[:6]]
        save(montage(tiles, 3), f"{name}-boxes.png")
        return picture("Test images with the boxes that are there and those that are found", f"{name}-boxes.png") + (
            "\n" + picture("Precision over recall, a curve a class", f"{name}-precision.svg")
        )

    def crops(self, name: str, _run: Path, report: str) -> str:
        tiles = [one.resize((220, 220), Image.Resampling.NEAREST) for one in pictures_behind(report, "")[:6]]
        save(montage(tiles, 3), f"{name}-crops.png")
        return picture("Two details three times: bicubic, the network, the original", f"{name}-crops.png")

    def painted(self, name: str, _run: Path, report: str) -> str:
        found = pictures_behind(report, "crops")[:6]  # photographs, each with what the network painted of it
        save(montage([ImageOps.fit(one, (220, 220)) for one in found], 2), f"{name}-painted.png")
        return picture("Photographs, and what the network paints of them", f"{name}-painted.png")


def pictures_behind(report: str, place: str) -> list[Image.Image]:
    """The pictures of a report from a heading to the next one; without a place, all."""
    part = report
    if place:
        if f'id="{place}"' not in report:
            return []
        part = report.split(f'id="{place}"', 1)[1].split("<h2", 1)[0]
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', part)
    return [Image.open(io.BytesIO(base64.b64decode(one))).convert("RGB") for one in found]


def save(image: Image.Image, name: str) -> None:
    image.quantize(128).save(PICTURES / name, optimize=True)


def picture(title: str, name: str) -> str:
    return wrapped(f"![{title}](../pictures/gallery/{name})") + "\n"


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    words = [one for one in sys.argv[1:] if not one.startswith("--backend=")]
    backend = next((one.split("=", 1)[1] for one in sys.argv[1:] if one.startswith("--backend=")), "")
    pages = Pages(Gallery(str(Path(words[0]).resolve()), Path(words[1]).resolve()), backend)
    for name in words[2:] or EXPERIMENTS:
        pages.make(name)
        print(name, flush=True)


if __name__ == "__main__":
    main()
