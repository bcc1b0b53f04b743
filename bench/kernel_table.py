"""`bench/compare kernels`: the kernels and training steps that a backend is judged by, each beside PyTorch's in the same call.

Matrix products and convolutions run in one process of gpunn and one of PyTorch, on random data; training steps in one
process each. Ratios are of medians: PyTorch's time over gpunn's.
"""

import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib
from typing import NamedTuple

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent

# Sizes of square products, with the wanted ratio by precision.
GEMM = {
    1024: {"fp32": 1.0, "tf32": 1.1, "bf16": 1.1},
    2048: {"fp32": 1.1, "tf32": 0.95, "bf16": 0.95},
    4096: {"fp32": 1.1, "tf32": 0.95, "bf16": 0.95},
    8192: {"fp32": 1.1, "tf32": 0.95, "bf16": 0.95},
}
CONV = ["conv2d", "conv2d_backward_data", "conv2d_backward_filter"]
CONV_3X3 = [
    "128,64,32,32,64,3,3,pad=1",
    "128,128,16,16,128,3,3,pad=1",
    "128,256,8,8,256,3,3,pad=1",
    "128,512,4,4,512,3,3,pad=1",
]
CONV_5X5 = ["512,6,12,12,16,5,5"]


class Step(NamedTuple):
    """A training step: what is wanted of it is a ratio, or milliseconds."""

    experiment: str
    network: str  # of peers/steps.py
    batch: int
    precision: str
    wanted: dict[str, float]
    images: str = ""  # a key of IMAGES, where the experiment's own will not do

    def key(self, mode):
        return f"{self.network}:{self.batch}:{self.precision}:{mode}"


# Side in pixels of random images, and what makes an experiment take them.
IMAGES = {
    "cifar": (32, []),
    "photos": (224, ["data.image_size=224", "data.channels=3", "model.parameters.stem=imagenet"]),
}
STEPS = [
    Step("experiments/lenet_mnist.yaml", "lenet", 128, "fp32", {"milliseconds": 0.030}),
    Step("experiments/lenet_mnist.yaml", "lenet", 512, "fp32", {"milliseconds": 0.070}),
    Step("experiments/lenet_mnist.yaml", "lenet", 2048, "fp32", {"milliseconds": 0.200}),
    Step("experiments/mlp_mnist.yaml", "mlp", 128, "fp32", {"milliseconds": 0.012}),
    Step("experiments/resnet18_cifar10.yaml", "resnet18", 512, "fp32", {"ratio": 1.3}, "cifar"),
    Step("experiments/resnet18_cifar10.yaml", "resnet18", 512, "tf32", {"ratio": 1.3}, "cifar"),
    Step("experiments/resnet18_cifar10.yaml", "resnet18", 512, "bf16", {"ratio": 1.3}, "cifar"),
    Step("experiments/resnet50_mnist.yaml", "resnet50", 32, "tf32", {"ratio": 1.25}),
    Step("experiments/resnet50_mnist.yaml", "resnet50_224", 64, "tf32", {"ratio": 1.42}, "photos"),
    Step("experiments/resnet50_mnist.yaml", "resnet50_224", 128, "bf16", {"ratio": 1.58}, "photos"),
    Step("experiments/vgg11_cifar10.yaml", "vgg11", 256, "bf16", {"ratio": 1.3}, "cifar"),
    Step("bench/depthwise_cifar10.yaml", "depthwise", 128, "fp32", {"ratio": 1.3}, "cifar"),
    Step("bench/depthwise_cifar10.yaml", "depthwise", 128, "tf32", {"ratio": 1.3}, "cifar"),
    Step("bench/depthwise_cifar10.yaml", "depthwise", 128, "bf16", {"ratio": 1.3}, "cifar"),
]
# The same with little work, to try the program where there is no GPU.
TINY = {
    "gemm": {64: {"fp32": 1.0, "tf32": 1.1, "bf16": 1.1}},
    "conv_3x3": ["2,8,8,8,8,3,3,pad=1"],
    "conv_5x5": ["4,6,12,12,16,5,5"],
    "steps": [
        Step("experiments/lenet_mnist.yaml", "lenet", 16, "fp32", {"milliseconds": 0.030}),
        Step("experiments/resnet18_cifar10.yaml", "resnet18", 2, "fp32", {"ratio": 1.3}, "cifar"),
        Step("experiments/resnet50_mnist.yaml", "resnet50_224", 2, "bf16", {"ratio": 1.3}, "photos"),
    ],
}


def run(command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=False)
    # Exit code 1: gpunn has measured and found something wrong, which its rows tell.
    if done.returncode not in (0, 1) or not done.stdout:
        print(f"compare: '{' '.join(map(str, command))}' failed ({done.returncode})", file=sys.stderr)
        sys.exit(2)
    return done.stdout.decode()


def png(pixels, side):
    """Colour pixels, row by row, as a PNG file."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + pixels[3 * side * i : 3 * side * (i + 1)] for i in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def make_images(folder, count, side):
    """Random colour images in ten classes: what a step takes does not hang on what is in the pictures."""
    source = random.Random(1)
    for part in ("train", "test"):
        for i in range(count):
            place = folder / part / f"class{i % 10}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i}.png").write_bytes(png(source.randbytes(3 * side * side), side))


class Table:
    def __init__(self, chosen, out):
        self.chosen = chosen
        self.out = out
        self.plan = TINY if chosen.tiny else {"gemm": GEMM, "conv_3x3": CONV_3X3, "conv_5x5": CONV_5X5, "steps": STEPS}
        self.rows = []

    def add(self, what, ours, theirs, wanted, **more):
        """Seconds of both sides; `wanted` a ratio, or milliseconds of gpunn's own; None: the row is only told."""
        ratio = theirs / ours if ours and theirs else None
        verdict = ""
        if wanted:
            met = ours and (ours * 1e3 <= wanted["milliseconds"] if "milliseconds" in wanted else ratio and ratio >= wanted["ratio"])
            verdict = "ok" if met and not more.get("wrong") else "short"
        row = {"what": what, "gpunn_seconds": ours, "torch_seconds": theirs, "ratio": ratio, "wanted": wanted}
        row |= {"verdict": verdict, **more}
        self.rows.append(row)
        self.out(row)

    def ops(self, ops, precision):
        """The rows of both sides by op and shape."""
        by_op = {}
        for op, shape in ops:
            by_op.setdefault(op, []).append(shape)
        ours = {}
        backends = self.chosen.backend + ("," + self.chosen.library if self.chosen.library else "")
        for op, shapes in by_op.items():
            command = [self.chosen.gpunn, "bench", "op", op, *shapes, "--backend", backends, "--precision", precision]
            command += ["--no-ceilings", "--json", "--threads", self.chosen.threads, "--repeats", self.chosen.repeats]
            for row in json.loads(run(command))["rows"]:
                ours.setdefault((op, row["shape"]), []).append(row)
        command = [self.chosen.python, BENCH / "peers/ops.py", "--device", self.chosen.device, "--precision", precision]
        command += ["--threads", self.chosen.threads, "--repeats", self.chosen.repeats]
        peers = json.loads(run(command + [f"{op} {shape}" for op, shape in ops]))
        theirs = {(row["op"], row["shape"]): row for row in peers["rows"]}
        return ours, theirs

    def op_row(self, what, ours, theirs, wanted):
        mine = ours[0]
        library = ours[1].get("median_seconds") if len(ours) > 1 else None
        self.add(
            what,
            mine["median_seconds"] or None,
            theirs.get("median_seconds"),
            wanted,
            gpunn_teraflops=mine["teraflops"],
            torch_teraflops=theirs.get("teraflops"),
            library_seconds=library,
            gpunn_error=mine["error"],
            torch_error=theirs.get("error"),
            served_by=mine["served_by"],
            wrong=mine["wrong"] or mine["failure"],
        )

    def gemm(self):
        for precision in ("fp32", "tf32", "bf16"):
            shapes = {f"{n}x{n}x{n}": wanted[precision] for n, wanted in self.plan["gemm"].items()}
            ours, theirs = self.ops([("matmul", shape) for shape in shapes], precision)
            for shape, wanted in shapes.items():
                key = ("matmul", shape)
                name = f"GEMM {precision} {shape.split('x')[0]}"
                self.op_row(name, ours[key], theirs[key], {"ratio": wanted})

    def convolutions(self, name, shapes, wanted):
        ops = [(op, shape) for shape in shapes for op in CONV]
        ours, theirs = self.ops(ops, "fp32")
        ratios = []
        for op, shape in ops:
            self.op_row(f"{op} {shape}", ours[op, shape], theirs[op, shape], None)
            ratios.append(self.rows[-1]["ratio"])
        wrong = "; ".join(row["wrong"] for row in self.rows[-len(ops) :] if row["wrong"])
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if all(ratios) else None
        row = {"what": f"{name}, geometric mean of {len(ops)}", "ratio": mean, "wanted": {"ratio": wanted}}
        row |= {"gpunn_seconds": None, "torch_seconds": None, "wrong": wrong}
        row["verdict"] = "ok" if mean and mean >= wanted and not wrong else "short"
        self.rows.append(row)
        self.out(row)

    def peers(self, steps):
        """PyTorch's rows by step: half precision in channels-last, as it is fastest there."""
        rows = {}
        for half in (False, True):
            keys = [step.key(mode) for step in steps for mode in self.modes if (step.precision == "bf16") == half]
            if not keys:
                continue
            command = [self.chosen.python, BENCH / "peers/steps.py", "--device", self.chosen.device, *keys]
            command += ["--threads", self.chosen.threads, "--steps-timed", self.chosen.steps]
            command += ["--layout", "channels_last"] if half else []
            command += ["--warmup", 2] if self.chosen.tiny else []
            rows |= {row["step"]: row for row in map(json.loads, run(command).splitlines())}
        return rows

    def steps(self):
        self.modes = self.chosen.modes.split(",")
        peers = self.peers(self.plan["steps"])
        with tempfile.TemporaryDirectory() as folder:
            for name in sorted({step.images for step in self.plan["steps"] if step.images}):
                make_images(pathlib.Path(folder, name), 64 if self.chosen.tiny else 2048, min(IMAGES[name][0], 64))
            for step in self.plan["steps"]:
                self.step(step, peers, folder)

    def step(self, step, peers, folder):
        command = [self.chosen.gpunn, "bench", ROOT / step.experiment, "--backend", self.chosen.backend]
        command += ["--repeats", max(self.chosen.steps // 10, 5), "--threads", self.chosen.threads, "--json"]
        command += ["--precision", step.precision]
        settings = [f"data.batch_size={step.batch}"]
        if step.images:
            settings += ["data.dataset=image_folder", f"data.path={folder}/{step.images}", *IMAGES[step.images][1]]
        mine = json.loads(run(command + [word for setting in settings for word in ("--set", setting)]))
        all_modes = {mode: peers[step.key(mode)] for mode in self.modes}
        seconds = {mode: row["median_seconds"] for mode, row in all_modes.items() if "median_seconds" in row}
        # The graph's time is the target; without one, the best time.
        theirs = seconds.get("graph", min(seconds.values(), default=None))
        self.add(
            f"{all_modes[self.modes[0]]['what']}, batch {step.batch}, {step.precision}",
            mine["median_seconds"],
            theirs,
            step.wanted,
            samples_per_second=step.batch / mine["median_seconds"],
            torch_modes=seconds,
            captured=mine["captured"],
        )

    def all(self):
        parts = {
            "gemm": self.gemm,
            "conv3x3": lambda: self.convolutions("conv fp32 3x3", self.plan["conv_3x3"], 1.2),
            "conv5x5": lambda: self.convolutions("conv fp32 5x5, few channels", self.plan["conv_5x5"], 4.0),
            "steps": self.steps,
        }
        for name in self.chosen.parts.split(",") if self.chosen.parts else parts:
            parts[name]()


def found(row):
    """What was found, for people."""
    if row.get("wrong"):
        return f"wrong or not run: {row['wrong']}"
    ratio = f"{row['ratio']:.2f} times" if row["ratio"] else "no peer"
    if row["gpunn_seconds"] is None:
        return ratio
    theirs = row["torch_seconds"]
    rates = ""
    if row.get("gpunn_teraflops"):
        rates = f", {row['gpunn_teraflops']:.1f} against {row.get('torch_teraflops') or 0:.1f} TFLOP/s"
        rates += f", error {row['gpunn_error']:.1e}" if row.get("gpunn_error") is not None else ""
    if row.get("samples_per_second"):
        rates = f", {row['samples_per_second']:,.0f} images/s"
    return f"{row['gpunn_seconds'] * 1e3:.4f} against {theirs * 1e3 if theirs else 0:.4f} ms: {ratio}{rates}"


def wanted_text(row):
    wanted = row["wanted"]
    if not wanted:
        return ""
    return f"{wanted['ratio']} times" if "ratio" in wanted else f"{wanted['milliseconds']:.3f} ms"


def main(chosen):
    def out(row):
        if chosen.json:
            print(json.dumps(row), flush=True)
        elif chosen.markdown:
            verdict = row["verdict"] if row["verdict"] != "short" else "**short**"
            print(f"| {row['what']} | {found(row)} | {wanted_text(row)} | {verdict} |", flush=True)
        else:
            print(f"{row['what']:48} {found(row):90} {wanted_text(row):12} {row['verdict']}", flush=True)

    table = Table(chosen, out)
    table.all()
    return 0 if all(row["verdict"] != "short" for row in table.rows) else 1
