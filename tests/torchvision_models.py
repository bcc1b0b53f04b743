#!/usr/bin/env python3
"""torchvision's networks and ours of the same name, on the same weights: `torchvision_models.py GPUNN [NAME...]`.

Draws weights for a network of torchvision, has GPUNN take them by the table beside the model, and compares the logits
of random images with those that PyTorch computes in float64. Prints a line for each network and size of images. Ends
with 0 where all agree, with 1 where one does not, and with 77, skipped, where this Python has no torchvision. Needs
torch, torchvision, safetensors and Pillow, 6 GB of memory and a few minutes. --backend NAME computes elsewhere than on
the cpu, and --tolerance says what relative error is allowed: 1e-4 unless given.
"""

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import torchvision
    from PIL import Image
    from safetensors.torch import save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent
CLASSES = 1000
IMAGES = 2
MEAN, STDDEV = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

# Name of torchvision's, our model and its parameters, the table of names, rows and columns of the images.
NETWORKS = [
    ("alexnet", "alexnet", "{}", "alexnet", [224, 256, 300, 64]),
    ("vgg16", "vgg16", "{}", "vgg16", [224, 256, 64]),
    ("vgg16_bn", "vgg16", "{batch_norm: true}", "vgg16_bn", [96]),
    ("resnet18", "resnet18", "{}", "resnet", [224]),
    ("mobilenet_v2", "mobilenet_v2", "{}", "mobilenet_v2", [224, 160]),
    ("squeezenet1_1", "squeezenet1_1", "{}", "squeezenet1_1", [224, 131]),
    ("vit_b_16", "vit", "{}", "vit", [224]),
    ("vit_b_32", "vit", "{patch: 32}", "vit", [224]),
]


def network(name, size):
    """The network with weights that leave no tensor at 0 or 1, so that each of them shows in the output."""
    torch.manual_seed(20261123)
    arguments = {"image_size": size} if name.startswith("vit") else {}
    model = getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **arguments)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1 or not parameter.any():
                parameter += 0.1 * torch.randn(parameter.shape)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
    return model.eval()


class Array(ctypes.Structure):  # gpunn_array
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64),
                ("dtype", ctypes.c_int32), ("reserved", ctypes.c_int32)]


F32, U8 = 0, 6  # gpunn_dtype


def logits_of(library, checkpoint, images):
    """What a trained model makes of images, by gpunn.h."""
    library.gpunn_last_error.restype = ctypes.c_char_p

    def call(function, *arguments):
        if function(*arguments) != 0:
            raise RuntimeError(library.gpunn_last_error().decode())

    model = ctypes.c_void_p()
    call(library.gpunn_model_load, str(checkpoint).encode(), None, ctypes.byref(model))
    logits = torch.empty(len(images), CLASSES)
    pixels = Array(None, images.data_ptr(), images.numel(), U8, 0)
    answer = Array(b"logits", logits.data_ptr(), logits.numel() * 4, F32, 0)
    call(library.gpunn_model_run, model, ctypes.c_int64(len(images)), ctypes.byref(pixels), 1, ctypes.byref(answer), 1)
    call(library.gpunn_model_destroy, model)
    return logits.double()


def take_weights(gpunn, folder, model, parameters, table, weights, size, norms, backend):
    """A checkpoint with the weights: of one step of training that moves none of them."""
    frozen = "freeze: ['*bn*'], freeze_statistics: true" if norms else ""
    names = ROOT / "models" / f"{table}.names.yaml"
    experiment = folder / "experiment.yaml"
    experiment.write_text(f"""
model: {{file: {ROOT}/models/{model}.yaml, parameters: {parameters}}}
init_from: {{file: {weights}, names: {names}}}
data: {{dataset: image_folder, path: {folder}/images, test_path: {folder}/images, image_size: {size}, channels: 3,
       batch_size: 1, train_limit: 1, test_limit: 1, mean: {MEAN}, stddev: {STDDEV}}}
optimizer: {{type: sgd, learning_rate: 1e-30}}
training: {{epochs: 1, {frozen}}}
backend: {backend}
runs: {folder}/runs
""")
    done = subprocess.run([gpunn, "run", experiment, "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    [checkpoint] = (folder / "runs").glob("*/*/last.h5")
    return checkpoint


def compare(gpunn, library, folder, row, size, backend):
    name, model, parameters, table, _ = row
    theirs = network(name, size)
    weights = folder / "weights.safetensors"
    save_file({key: value.contiguous() for key, value in theirs.state_dict().items()}, weights)
    norms = any(isinstance(module, torch.nn.BatchNorm2d) for module in theirs.modules())
    checkpoint = take_weights(gpunn, folder, model, parameters, table, weights, size, norms, backend)
    images = torch.randint(0, 256, (IMAGES, 3, size, size), dtype=torch.uint8)
    found = logits_of(library, checkpoint, images)
    shutil.rmtree(folder / "runs")
    mean, stddev = (torch.tensor(v, dtype=torch.float64)[:, None, None] for v in (MEAN, STDDEV))
    with torch.no_grad():
        expected = theirs.double()((images / 255.0 - mean) / stddev)
    if expected.std() < 1e-3 * expected.abs().max():
        raise RuntimeError("the logits are all alike, so that they show nothing")
    return ((found - expected).abs().max() / expected.abs().max()).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gpunn", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    gpunn = options.gpunn.resolve()
    library = ctypes.CDLL(str(gpunn.parent.parent / "lib" / "libgpunn.so"))
    rows = [row for row in NETWORKS if not options.names or row[0] in options.names]
    if not rows:
        sys.exit(f"no such network; there are {', '.join(row[0] for row in NETWORKS)}")
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label in range(CLASSES):
            path = folder / "images" / f"{label:04}" / "x.png"
            path.parent.mkdir(parents=True)
            Image.new("RGB", (2, 2)).save(path)
        for row in rows:
            for size in row[4]:
                try:
                    error = compare(gpunn, library, folder, row, size, options.backend)
                    good = error <= options.tolerance
                    print(f"{'ok' if good else 'FAILED'} {row[0]} at {size}: relative error {error:.1e}", flush=True)
                except RuntimeError as reason:
                    good = False
                    print(f"FAILED {row[0]} at {size}: {reason}", flush=True)
                failed += not good
    library.gpunn_shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
