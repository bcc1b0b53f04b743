"""What gpunn makes of an ONNX file for one array of input, and how that differs from the right answer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

import gpunn
from gpunn.onnx import answers

Array = npt.NDArray[Any]

BACKEND = os.environ.get("GPUNN_ONNX_BACKEND", "cpu")


IMAGES = 4  # dimensions of a batch of images


class UnusableError(Exception):
    """A file was loaded, but the model does not take the input of the file's graph."""


def run_named(file: Path, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs for the inputs that the file's graph takes, by their names, as :func:`gpunn.onnx.answers` gives them.

    A refusal raises :class:`gpunn.Error`.
    """
    names = [value.name for value in onnx.load(file, load_external_data=False).graph.output]
    most = max((len(x) for x in inputs.values() if x.ndim), default=1)
    model = gpunn.load(file, backend=BACKEND, threads=1, max_batch=max(1, most))
    try:
        return answers(model, inputs, names)
    except gpunn.Error as error:
        raise UnusableError(str(error)) from error


def run(file: Path, x: Array) -> Array:
    """The first output for the only input."""
    return next(iter(run_named(file, {"x": x}).values()))


def reason(error: Exception) -> str:
    """A refusal without its file and node, names, shapes and fractions, so that equal reasons can be counted."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    # An error of several nodes has a line for each.
    text = next((line for line in lines if re.match(r"[\w.]+ '", line)), lines[-1])
    text = re.sub(r"^(?:\S+\.onnx: )?(?:[\w.]+ '[^']*' \(opset \d+\): )?", "", text)
    text = re.sub(r"'[^']*'", "'...'", text)
    text = re.sub(r"-?\d+\.\d[\d.e+-]*", "...", text)
    return re.sub(r"\[[^\]]*[\dN][^\]]*\]", "[...]", text)


def difference(found: Array, expected: Array, rtol: float, atol: float) -> str:
    """Why the answers are not equal; empty if they are. NaN equals NaN. The type of numbers does not count."""
    if found.shape != expected.shape:
        return f"shape {list(found.shape)}, expected {list(expected.shape)}"
    left, right = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        equal = (left == right) | (np.abs(left - right) <= atol + rtol * np.abs(right))
    equal |= np.isnan(left) & np.isnan(right)
    # An infinite number is within any tolerance of an infinite one.
    equal &= (np.isinf(left) == np.isinf(right)) & (np.sign(left) == np.sign(right)) | ~np.isinf(right) & ~np.isinf(
        left
    )
    if equal.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~equal)[0])
    return (
        f"{int((~equal).sum())} of {equal.size} numbers differ, at {list(at)}: {left[at]:.9g}, expected {right[at]:.9g}"
    )
