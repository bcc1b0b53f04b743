"""The files of a loaded model, from which a pickle of it is made."""

from __future__ import annotations

import mmap
import os
import re
import weakref
from pathlib import Path

from gpunn.errors import Error

# An entry "location" of a tensor of ONNX whose numbers are in another file, up to the length of the file's name.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f]|[\x80-\xff][\x01-\x7f])")


class ModelFiles:
    """Holds the files open: they can be read when their names are gone or belong to other files, as after a training
    that wrote a new checkpoint."""

    def __init__(self, path: Path) -> None:
        """Opens what ``gpunn.load(path)`` reads. A file that can't be opened is left to its error; a process with too
        many open files can load a model, but not pickle it."""
        self._open: dict[str, tuple[int, os.stat_result]] = {}
        self._path = path
        try:
            self._add_all(path)
        except OSError:
            self._open.clear()

    def _add_all(self, path: Path) -> None:
        if path.is_dir():
            path = next((path / name for name in ("best.h5", "last.h5") if (path / name).is_file()), path)
        if path.is_file():
            self._add(path, path.name)
        if path.suffix.lower() == ".onnx" and path.is_file() and path.stat().st_size > 0:
            with mmap.mmap(self._open[path.name][0], 0, access=mmap.ACCESS_READ) as model:
                names = _external_files(model)
            for name in names:
                if (path.parent / name).is_file():
                    self._add(path.parent / name, name)

    def _add(self, file: Path, name: str) -> None:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, descriptor)
        self._open[name] = descriptor, os.fstat(descriptor)

    def contents(self) -> dict[str, bytes]:
        """The bytes of each file by its name, the model's own first. Raises Error if a file was overwritten."""
        if not self._open:
            raise Error(f"{self._path}: its files could not be held open, so that the model can't be pickled")
        for name, (descriptor, before) in self._open.items():
            now = os.fstat(descriptor)
            if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise Error(
                    f"{self._path}: {name} was overwritten after the model had been loaded, so that the model can't be "
                    "pickled; load it again"
                )
        return {name: self._read(name) for name in self._open}

    def _read(self, name: str) -> bytes:
        descriptor, status = self._open[name]
        parts: list[bytes] = []
        done = 0
        while done < status.st_size and (part := os.pread(descriptor, status.st_size - done, done)):
            parts.append(part)
            done += len(part)
        return b"".join(parts)


def write_files(contents: dict[str, bytes], folder: Path) -> Path:
    """Writes files again, and returns the model's own."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / next(iter(contents))


def _external_files(model: mmap.mmap) -> list[str]:
    """The files next to an ONNX file that have its weights, by the names in it."""
    names: dict[str, None] = {}
    for found in _LOCATION.finditer(model):
        digits = found.group(1)
        length = digits[0] if len(digits) == 1 else (digits[0] & 0x7F) | digits[1] << 7
        name = model[found.end() : found.end() + length].decode("utf-8", "replace")
        if not name.startswith("/") and ".." not in name.split("/"):
            names[name] = None
    return list(names)
