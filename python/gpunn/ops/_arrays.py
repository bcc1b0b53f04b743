"""Reads arrays of NumPy, PyTorch, CuPy, JAX and others for the core: (address, dtype, shape, strides)."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from gpunn import _core
from gpunn.errors import UsageError

DTYPES = ("f32", "bf16", "f16", "f64", "i32", "i64", "u8")
F32, BF16, F16, F64, I32, I64, U8 = range(7)
INTEGERS = (I32, I64, U8)

Described: TypeAlias = "tuple[int, int, tuple[int, ...], tuple[int, ...] | None]"

_KDL_CPU, _KDL_CUDA, _KDL_CUDA_HOST, _KDL_CUDA_MANAGED = 1, 2, 3, 13


class Place(NamedTuple):
    """The device of an array."""

    cuda: bool
    device: int

    def __str__(self) -> str:
        return f"cuda:{self.device}" if self.cuda else "in host memory"


HOST = Place(False, 0)


class Tensor:
    """A result in memory of a backend's pool, for libraries that gpunn does not know. It speaks DLPack."""

    def __init__(self, memory: _core.PoolTensor) -> None:
        self._memory = memory

    @property
    def shape(self) -> tuple[int, ...]:
        return self._memory.shape

    @property
    def ndim(self) -> int:
        return len(self._memory.shape)

    @property
    def dtype(self) -> str:
        """``f32``, ``bf16``, ..."""
        return DTYPES[self._memory.dtype]

    @property
    def place(self) -> Place:
        return HOST if self._memory.on_host else Place(True, self._memory.device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_KDL_CPU, 0) if self._memory.on_host else (_KDL_CUDA, self._memory.device)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        if copy:
            raise BufferError("a gpunn.ops.Tensor is handed over without a copy")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("a gpunn.ops.Tensor stays on its device")
        reader = None
        if not self._memory.on_host and stream != -1:
            reader = 0 if stream in (None, 1) else int(stream)
        return self._memory.share(reader)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The same memory as an array; host memory only."""
        if not self._memory.on_host:
            raise UsageError(f"the tensor is on {self.place}; hand it to a library of that device by DLPack")
        return np.from_dlpack(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy if copy is not None else dtype is not None)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"gpunn.ops.Tensor({self.dtype}{list(self.shape)}, {self.place})"


class Library:
    """The functions that gpunn needs of an array library."""

    name: ClassVar[str]

    def place(self, array: Any) -> Place:
        raise NotImplementedError

    def describe(self, array: Any, place: Place) -> tuple[Described, Any]:
        """The array, and an object that must live until the call is over: a packed copy if the array was not packed."""
        raise NotImplementedError

    def empty(self, dtype: int, shape: tuple[int, ...], place: Place, like: Described | None, engine: Any) -> Any:
        raise NotImplementedError

    def scalar(self, value: float, dtype: int, place: Place) -> Any:
        raise NotImplementedError

    def cast(self, array: Any, dtype: int) -> Any:
        """Converts integers to another size. A value that does not fit becomes the nearest number, which is no valid
        label either."""
        raise NotImplementedError

    def has_other_integers(self, array: Any) -> bool:
        """Whether it holds integers or truth values of a dtype that gpunn lacks, which ``cast`` converts."""
        return False

    def stream(self, place: Place) -> int:
        return 0

    def is_written(self, array: Any) -> bool:
        """Whether it may be written."""
        return True

    def is_recorded(self, array: Any) -> bool:
        """Whether the library expects that what is computed of it, or written to it, has a gradient."""
        return False

    def capturing(self) -> bool:
        return False

    def scratch(self, size: int, place: Place) -> tuple[int, Any]:
        """Temporary memory of the library, in the order of its stream: (address, owner). 0: gpunn uses its own."""
        return 0, None


class _NumPy(Library):
    name = "numpy"
    codes: ClassVar[dict[Any, int]] = {
        np.dtype(np.float32): F32,
        np.dtype(np.float16): F16,
        np.dtype(np.float64): F64,
        np.dtype(np.int32): I32,
        np.dtype(np.int64): I64,
        np.dtype(np.uint8): U8,
    }
    dtypes: ClassVar[dict[int, Any]] = {code: dtype for dtype, code in codes.items()}

    def place(self, array: Any) -> Place:
        return HOST

    def _code(self, dtype: Any) -> int:
        code = self.codes.get(dtype)
        if code is None and dtype.name == "bfloat16":  # of ml_dtypes
            self.codes[dtype], self.dtypes[BF16] = BF16, dtype
            code = BF16
        if code is None:
            raise UsageError(f"gpunn has no dtype '{dtype}'; it has float16, float32, float64, int32, int64 and uint8")
        return code

    def describe(self, array: Any, place: Place) -> tuple[Described, Any]:
        if type(array) is not np.ndarray and np.ma.is_masked(array):
            raise UsageError("the array has masked values; replace them, for instance by numpy.ma.filled")
        if isinstance(array, np.generic):  # a number, whose value lies in no memory that stays
            array = np.asarray(array)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        code = self._code(array.dtype)
        interface = array.__array_interface__
        if interface["strides"] is not None:
            packed = np.ascontiguousarray(array)
            if packed.ndim != array.ndim:  # a scalar array became one of a dimension
                packed = packed.reshape(array.shape)
            interface, array = packed.__array_interface__, packed
        return (interface["data"][0], code, array.shape, None), array

    def empty(self, dtype: int, shape: tuple[int, ...], place: Place, like: Described | None, engine: Any) -> Any:
        if dtype not in self.dtypes:
            raise UsageError("NumPy has no bf16 before the package ml_dtypes is imported")
        return np.empty(shape, self.dtypes[dtype])

    def scalar(self, value: float, dtype: int, place: Place) -> Any:
        return np.array(value, self.dtypes[dtype])

    def cast(self, array: Any, dtype: int) -> Any:
        wanted = np.iinfo(self.dtypes[dtype])
        if array.dtype.kind == "b":
            return array.astype(wanted.dtype)
        held = np.iinfo(array.dtype)
        return np.clip(array, max(wanted.min, held.min), min(wanted.max, held.max)).astype(wanted.dtype)

    def has_other_integers(self, array: Any) -> bool:
        return array.dtype.kind in "biu" and array.dtype not in self.codes

    def is_written(self, array: Any) -> bool:
        return bool(array.flags.writeable)


class _Torch(Library):
    name = "torch"

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.dtypes = (
            torch.float32,
            torch.bfloat16,
            torch.float16,
            torch.float64,
            torch.int32,
            torch.int64,
            torch.uint8,
        )
        self.codes = {dtype: code for code, dtype in enumerate(self.dtypes)}

    def place(self, array: Any) -> Place:
        device = array.device
        if device.type == "cpu":
            return HOST
        if device.type != "cuda":
            raise UsageError(f"gpunn works on tensors of 'cpu' and 'cuda', not of '{device}'")
        return Place(True, device.index or 0)

    def describe(self, array: Any, place: Place) -> tuple[Described, Any]:
        torch = self.torch
        code = self.codes.get(array.dtype)
        if code is None:
            raise UsageError(f"gpunn has no dtype '{array.dtype}'")
        if array.is_neg():  # its numbers lie in memory with the other sign
            array = array.resolve_neg()
        if array.is_contiguous():
            return (array.data_ptr(), code, array.shape, None), array
        if array.layout is not torch.strided:
            raise UsageError(f"a tensor must be strided, is {array.layout}")
        if array.dim() == 4 and array.is_contiguous(memory_format=torch.channels_last):
            return (array.data_ptr(), code, array.shape, array.stride()), array
        array = array.contiguous()
        return (array.data_ptr(), code, array.shape, None), array

    def empty(self, dtype: int, shape: tuple[int, ...], place: Place, like: Described | None, engine: Any) -> Any:
        torch = self.torch
        last = like is not None and like[3] is not None and len(shape) == 4
        return torch.empty(
            shape,
            dtype=self.dtypes[dtype],
            device=f"cuda:{place.device}" if place.cuda else "cpu",
            memory_format=torch.channels_last if last else torch.contiguous_format,
        )

    def scalar(self, value: float, dtype: int, place: Place) -> Any:
        device = f"cuda:{place.device}" if place.cuda else "cpu"
        return self.torch.full((), value, dtype=self.dtypes[dtype], device=device)

    def cast(self, array: Any, dtype: int) -> Any:
        array = array.to(self.torch.int64)  # of uint64, what does not fit becomes negative
        if dtype != I64:
            wanted = self.torch.iinfo(self.dtypes[dtype])
            array = array.clamp(wanted.min, wanted.max)
        return array.to(self.dtypes[dtype])

    def has_other_integers(self, array: Any) -> bool:
        kind = array.dtype
        return kind not in self.codes and not kind.is_floating_point and not kind.is_complex

    def is_recorded(self, array: Any) -> bool:
        if array.requires_grad and self.torch.is_grad_enabled():
            return True
        forward = self.torch.autograd.forward_ad
        return forward._current_level >= 0 and forward.unpack_dual(array).tangent is not None

    def stream(self, place: Place) -> int:
        return int(self.torch._C._cuda_getCurrentRawStream(place.device)) if place.cuda else 0

    def capturing(self) -> bool:
        return bool(self.torch.cuda.is_current_stream_capturing())

    def scratch(self, size: int, place: Place) -> tuple[int, Any]:
        if not place.cuda:
            return 0, None
        memory = self.torch.empty(size, dtype=self.torch.uint8, device=f"cuda:{place.device}")
        return memory.data_ptr(), memory


class _Dlpack(Library):
    """Any other library. Results are a gpunn Tensor, or what ``give_back`` makes of one."""

    name = "DLPack"

    def place(self, array: Any) -> Place:
        kind, device = (int(one) for one in array.__dlpack_device__())
        if kind in (_KDL_CPU, _KDL_CUDA_HOST):
            return HOST
        if kind not in (_KDL_CUDA, _KDL_CUDA_MANAGED):
            raise UsageError(f"gpunn works on arrays of the host and of CUDA devices, not of DLPack's device {kind}")
        return Place(True, device)

    def describe(self, array: Any, place: Place) -> tuple[Described, Any]:
        if place.cuda:
            array = array.__dlpack__(stream=self.stream(place) or 1)
        try:
            described, _, _, keep = _core.describe_array(array)
        except RuntimeError as error:  # which says nothing of the reason
            array.__dlpack__()
            raise UsageError(f"{type(array).__name__}: its __dlpack__() gives no array that gpunn can read") from error
        if described[1] < 0:
            raise UsageError("gpunn has no such dtype; it has " + ", ".join(DTYPES))
        return described, keep

    def empty(self, dtype: int, shape: tuple[int, ...], place: Place, like: Described | None, engine: Any) -> Any:
        return Tensor(engine.allocate(dtype, tuple(shape), self.stream(place), place.device))

    def give_back(self, tensor: Tensor) -> Any:
        return tensor

    def scalar(self, value: float, dtype: int, place: Place) -> Any:
        raise UsageError("a number must be an array of the library here")

    def cast(self, array: Any, dtype: int) -> Any:
        raise UsageError(f"integers must be {DTYPES[dtype]}")


class _CuPy(_Dlpack):
    name = "cupy"

    def stream(self, place: Place) -> int:
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)

    def scalar(self, value: float, dtype: int, place: Place) -> Any:
        import cupy

        return cupy.array(value, _NumPy.dtypes[dtype])

    def cast(self, array: Any, dtype: int) -> Any:
        wanted = np.iinfo(_NumPy.dtypes[dtype])
        if array.dtype.kind == "b":
            return array.astype(wanted.dtype)
        held = np.iinfo(array.dtype)
        return array.clip(max(wanted.min, held.min), min(wanted.max, held.max)).astype(wanted.dtype)

    def has_other_integers(self, array: Any) -> bool:
        return numpy_library().has_other_integers(array)

    def give_back(self, tensor: Tensor) -> Any:
        import cupy

        return cupy.from_dlpack(tensor)


class _Jax(_Dlpack):
    name = "jax"

    def scalar(self, value: float, dtype: int, place: Place) -> Any:
        import jax.numpy as jnp

        return jnp.array(value, _NumPy.dtypes[dtype])

    def cast(self, array: Any, dtype: int) -> Any:
        return array.astype(_NumPy.dtypes[dtype])

    def has_other_integers(self, array: Any) -> bool:
        return numpy_library().has_other_integers(array)

    def give_back(self, tensor: Tensor) -> Any:
        import jax

        return jax.dlpack.from_dlpack(tensor)


_libraries: dict[str, Library] = {}
_MAKERS: dict[str, type[Library]] = {"numpy": _NumPy, "torch": _Torch, "cupy": _CuPy, "jax": _Jax, "jaxlib": _Jax}
_by_type: dict[type, Library] = {}


def library_of(array: Any) -> Library:
    """The library of an array's type. Raises UsageError if it is not an array."""
    kind = type(array)
    found = _by_type.get(kind)
    if found is None:
        for base in kind.__mro__:
            root = base.__module__.partition(".")[0]
            if root in _MAKERS and root in sys.modules:
                found = _libraries.setdefault(root, _MAKERS[root]())
                break
        else:
            if not hasattr(array, "__dlpack__"):
                raise UsageError(
                    f"expected an array with __dlpack__ (NumPy, PyTorch, CuPy, JAX, ...), found {kind.__name__}"
                )
            found = _libraries.setdefault("dlpack", _Dlpack())
        _by_type[kind] = found
    return found


def numpy_library() -> Library:
    return _libraries.setdefault("numpy", _NumPy())
