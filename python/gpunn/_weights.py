"""The weights of a run as arrays."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpunn import _core

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def load_weights(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """The weights of a run folder (its best checkpoint, else the last) or a checkpoint file, by their names in the
    model: float32, of the shapes that PyTorch has for them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "weights.safetensors"
        _core.export_weights(Path(path), file, "")
        return _read(file.read_bytes())


def _read(content: bytes) -> dict[str, npt.NDArray[Any]]:
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    body = memoryview(content)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*tensor["data_offsets"])], _TYPES[tensor["dtype"]])
        .reshape(tensor["shape"])
        .copy()
        for name, tensor in header.items()
        if name != "__metadata__"
    }
