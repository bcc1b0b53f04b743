"""The weights of a run as arrays."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpunn import _core
from gpunn.errors import Error, MissingError

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


class _State(OrderedDict[str, Any]):
    """Keeps ``_metadata`` in copies, which an OrderedDict loses. A pickle has an OrderedDict, so that programs without
    gpunn can read it."""

    _metadata: dict[str, Any]

    def copy(self) -> _State:
        return state_of(self, preparation_of(self))

    def __or__(self, other: Any) -> Any:
        return state_of(super().__or__(other), preparation_of(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, (), self.__dict__, None, iter(self.items())


def state_of(tensors: Mapping[str, npt.NDArray[Any]], preparation: str | None) -> _State:
    """A state dictionary whose attribute ``_metadata`` has the preparation of samples, in the form of PyTorch's: what
    is said of the module "", which is the whole."""
    state = _State(tensors)
    if preparation is not None:
        state._metadata = {"": {"gpunn": preparation}}
    return state


def preparation_of(state: Mapping[str, Any]) -> str | None:
    """What :func:`state_of` was given; None for the state of another program."""
    metadata = getattr(state, "_metadata", None)
    whole = metadata.get("") if isinstance(metadata, Mapping) else None
    text = whole.get("gpunn") if isinstance(whole, Mapping) else None
    return text if isinstance(text, str) else None


def load_weights(path: str | os.PathLike[str]) -> OrderedDict[str, npt.NDArray[Any]]:
    """The weights of a run folder (its best checkpoint, else the last), a checkpoint or a ``.safetensors`` file, by
    their names in the model: float32, of the shapes that PyTorch has for them. ``Network.load_state_dict`` takes them,
    with the normalisation that they were learnt with."""
    if Path(path).suffix == ".safetensors":
        return _of_file(Path(path))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "weights.safetensors"
        _core.export_weights(Path(path), file, "", [])
        return _read(file.read_bytes())


def _of_file(file: Path) -> OrderedDict[str, npt.NDArray[Any]]:
    try:
        return _read(file.read_bytes())
    except OSError as error:
        raise MissingError(f"can't read {file}: {error.strerror}") from error
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(
            f"{file}: expected a .safetensors file with tensors of {', '.join(_TYPES)}, found another content "
            f"({type(error).__name__}: {error})"
        ) from error


def _read(content: bytes) -> OrderedDict[str, npt.NDArray[Any]]:
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    body = memoryview(content)[8 + length :]
    tensors = {
        name: np.frombuffer(body[slice(*tensor["data_offsets"])], _TYPES[tensor["dtype"]])
        .reshape(tensor["shape"])
        .astype("<f4" if tensor["dtype"][0] == "F" else _TYPES[tensor["dtype"]])
        for name, tensor in header.items()
        if name != "__metadata__"
    }
    return state_of(tensors, header.get("__metadata__", {}).get("model"))
