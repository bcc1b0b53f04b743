"""Calls on PyTorch's tensors, prepared once for their types: a repeated call only passes addresses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import increment_version

from gpunn import _core
from gpunn.errors import UsageError
from gpunn.ops import _backend
from gpunn.ops._arrays import HOST, INTEGERS, Library, library_of
from gpunn.ops._backend import engine_for
from gpunn.ops._call import OpInfo, flows_back
from gpunn.torch._precision import allowed

ARRAYS: Library = library_of(torch.empty(0))


class Kind(NamedTuple):
    """A tensor's properties apart from its numbers."""

    code: int
    channels_last: bool
    shape: tuple[int, ...]
    """As the kernel sees it."""
    sizes: tuple[int, ...] | None = None
    """As PyTorch sees it; None: its sizes are those of ``shape``."""

    @property
    def dtype(self) -> torch.dtype:
        return ARRAYS.dtypes[self.code]  # type: ignore[attr-defined,no-any-return]

    def described(self, address: int = 0) -> Any:
        return (address, self.code, self.shape, _last_strides(self.shape) if self.channels_last else None)


def _last_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    _, c, h, w = shape
    return (h * w * c, 1, w * c, c)


def code_of(tensor: torch.Tensor) -> int:
    code: int | None = ARRAYS.codes.get(tensor.dtype)  # type: ignore[attr-defined]
    if code is None:
        raise UsageError(f"gpunn has no dtype '{tensor.dtype}'")
    return code


def is_channels_last(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def kind_of(info: OpInfo, i: int, tensor: torch.Tensor) -> Kind:
    """The kind in which the op takes input ``i``: integers are converted."""
    code, codes = code_of(tensor), info.input_codes(i)
    if code in INTEGERS and codes and code not in codes and codes[0] in INTEGERS:
        code = codes[0]
    return Kind(code, is_channels_last(tensor), tuple(int(size) for size in tensor.shape))


class Form(NamedTuple):
    """How a module hands its tensors to an op."""

    channels_last: bool
    """The layout of images in the kernel."""
    shapes: tuple[tuple[int, ...], ...] | None
    """The shapes of the inputs in the kernel; None: their own."""
    sizes: tuple[int, ...]
    """Those of the first output."""
    strides: tuple[int, ...]
    """Those that PyTorch gives the first output."""

    def kinds(self, kinds: Sequence[Kind]) -> list[Kind]:
        if self.shapes is None:
            return [kinds[0]._replace(channels_last=self.channels_last), *kinds[1:]]
        shaped = zip(kinds, self.shapes, strict=True)
        return [Kind(kind.code, False, shape, kind.shape if kind.shape != shape else None) for kind, shape in shaped]


def settled(info: OpInfo, attributes: dict[str, Any]) -> tuple[_core.Op, str]:
    """The op with its attributes, and the backend's name. The dispatcher leaves out what is as the schema says."""
    given = {a["name"]: attributes.get(a["name"], None if a["same_as"] else a["default"]) for a in info.attributes}
    return info.op(given), attributes.get("backend", "")


class Maker:
    """Makes new tensors of a kind."""

    def __init__(self, kind: Kind, device: torch.device) -> None:
        self.shape = kind.sizes or kind.shape
        self.options: dict[str, Any] = {"dtype": kind.dtype, "device": device}
        if kind.channels_last:
            self.options["memory_format"] = torch.channels_last

    def __call__(self) -> torch.Tensor:
        return torch.empty(self.shape, **self.options)


def output_kinds(info: OpInfo, op: _core.Op, inputs: Sequence[Kind]) -> list[Kind]:
    """Kinds of all outputs, in place or not. Images have the layout of the first input."""
    last = bool(inputs) and inputs[0].channels_last
    types = info.output_types(op, [(0, kind.code, kind.shape, None) for kind in inputs])
    return [Kind(code, last and len(shape) == 4, tuple(shape)) for code, shape in types]


def fresh_kinds(info: OpInfo, op: _core.Op, inputs: Sequence[Kind]) -> list[Kind]:
    """Kinds of the outputs that are not in place."""
    outputs = output_kinds(info, op, inputs)
    return [kind for kind, in_place in zip(outputs, info.in_place, strict=False) if in_place < 0]


class Differentiation:
    """The values that the gradient of a call computes and reads."""

    def __init__(self, info: OpInfo, op: _core.Op, kinds: list[Kind], requires: Sequence[bool]) -> None:
        for i in info.mutated:
            if i < len(requires) and requires[i]:
                raise UsageError(f"{info.name}: {info.input(i)['name']} changes in place and can't require grad")
        described = [(0, kind.code, kind.shape, None) for kind in kinds]
        possible = flows_back(info, op, described)
        for i, (flows, wants) in enumerate(zip(possible, requires, strict=True)):
            if wants and not flows:
                raise UsageError(f"{info.name}: there is no gradient for {info.input(i)['name']}; detach it")
        self.kinds = kinds
        self.wanted = [flows and wants for flows, wants in zip(possible, requires, strict=True)]
        self.inputs, self.outputs = op.gradient_needs(described, self.wanted)
        # Where each output that there is lies among the inputs and the fresh outputs.
        fresh = iter(range(len(kinds), len(kinds) + len(info.in_place)))
        places = [*range(len(kinds)), *(i if i >= 0 else next(fresh) for i in info.in_place if i < len(kinds))]
        self.needed = [*self.inputs, *self.outputs]
        self._kept = [place for place, needed in zip(places, self.needed, strict=True) if needed]

    def saved(self, given: tuple[torch.Tensor, ...], fresh: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        """Those of the inputs, then of the outputs, that the gradient reads."""
        tensors = given + fresh
        return [tensors[i] for i in self._kept]

    def spread(self, saved: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor | None], list[torch.Tensor | None]]:
        """What was saved, by input and by output."""
        found = iter(saved)
        tensors = [next(found) if needed else None for needed in self.needed]
        return tensors[: len(self.kinds)], tensors[len(self.kinds) :]


def _tensor_call(
    call: _core.Call,
    device: torch.device,
    places: Sequence[int],
    fresh: Sequence[tuple[tuple[int, ...], tuple[int, ...], torch.dtype]],
    results: Sequence[int],
) -> _core.TensorCall:
    """The call on tensors of the device. ``places`` are those of its arrays among the tensors that are given, -1 where
    an array has no address. It makes the tensors ``fresh`` (sizes, strides, dtype); ``results`` are places among them,
    or -1 for None.
    """
    cuda = device.type == "cuda"
    index = (device.index or 0) if cuda else -1
    empty = _empty_on(device)
    return _core.TensorCall(
        call,
        device=index,
        places=list(places),
        fresh=list(fresh),
        results=list(results),
        empty=empty,
        scratch=lambda size: empty((size,), (1,), torch.uint8),
        stream=torch._C._cuda_getCurrentRawStream if cuda else None,
        capturing=torch._C._cuda_isCurrentStreamCapturing if cuda else None,
    )


def _tensor_of(kind: Kind) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
    """Sizes, strides and dtype of a new tensor of the kind."""
    made = Maker(kind, torch.device("meta"))()
    return tuple(made.shape), made.stride(), kind.dtype


def _empty_on(device: torch.device) -> Callable[..., torch.Tensor]:
    """``empty(sizes, strides, dtype)``. What the code of PyTorch's compiler calls takes a third of the time, and makes
    the tensors on the current device."""
    guards = getattr(torch._C._dynamo, "guards", None)
    name = "_empty_strided_cuda" if device.type == "cuda" else "_empty_strided_cpu"
    quick: Callable[..., torch.Tensor] | None = getattr(guards, name, None)
    if quick is not None and (device.type == "cpu" or torch.cuda.device_count() == 1):
        return quick
    return lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device=device)


class _Repair:
    """Converts input ``i`` to the form that kernels take: other integers, elements without gaps. None: it has that
    form."""

    def __init__(self, info: OpInfo, i: int, tensor: torch.Tensor, kind: Kind) -> None:
        self.i = i
        self.code = kind.code if kind.code != code_of(tensor) else None
        self.format = torch.channels_last if kind.channels_last else torch.contiguous_format
        self.packs = not tensor.is_contiguous(memory_format=self.format)
        if (self.packs or self.code is not None) and i in info.mutated:
            name = info.input(i)["name"]
            raise UsageError(f"{info.name}: {name} changes in place, so it must be contiguous, and of its dtype")

    @property
    def needed(self) -> bool:
        return self.packs or self.code is not None

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.code is not None:
            tensor = ARRAYS.cast(tensor, self.code)
        return tensor.contiguous(memory_format=self.format) if self.packs else tensor


class Prepared:
    """An op for inputs of these types, on their device."""

    def __init__(
        self,
        info: OpInfo,
        tensors: Sequence[torch.Tensor],
        attributes: dict[str, Any],
        precision: str,
        form: Form | None,
    ) -> None:
        self.info = info
        self.op, backend = settled(info, attributes)
        self.place = ARRAYS.place(tensors[0]) if tensors else HOST
        device = tensors[0].device if tensors else torch.device("cpu")
        self.engine = engine_for(backend or None, self.place.cuda, self.place.device, precision)
        for i, tensor in enumerate(tensors):
            if ARRAYS.place(tensor) != self.place:
                raise UsageError(f"{info.name}: {info.input(i)['name']} is {ARRAYS.place(tensor)}, x is {self.place}")
        self.kinds = [kind_of(info, i, tensor) for i, tensor in enumerate(tensors)]
        if form is not None:
            self.kinds = form.kinds(self.kinds)
        repairs = [_Repair(info, i, t, k) for i, (t, k) in enumerate(zip(tensors, self.kinds, strict=True))]
        self.repairs = [one for one in repairs if one.needed]
        self.mutated = [i for i in info.mutated if i < len(tensors)]
        fresh = fresh_kinds(info, self.op, self.kinds)
        inputs = [kind.described() for kind in self.kinds]
        self._core_call = _core.Call(self.engine, self.op, inputs, [kind.described() for kind in fresh])
        self._device = device
        made = [_tensor_of(kind) for kind in fresh]
        self._copies: Form | None = None
        if form is not None:
            if math.prod(form.sizes) != math.prod(fresh[0].shape):
                raise UsageError(f"{info.name}: the result has sizes {fresh[0].shape}, not {form.sizes}")
            expected = torch.empty_strided(form.sizes, form.strides, device="meta")
            layout = torch.channels_last if fresh[0].channels_last else torch.contiguous_format
            if expected.is_contiguous(memory_format=layout):
                made[0] = (form.sizes, form.strides, fresh[0].dtype)
            else:
                self._copies = form
        self._call = _tensor_call(self._core_call, device, range(len(inputs)), made, range(len(fresh)))
        self.dtype = fresh[0].dtype if fresh else None
        self.is_direct = not self.repairs and self._copies is None
        self._over: _core.TensorCall | None = None
        self._differentiations: dict[tuple[bool, ...], Differentiation] = {}
        self._gradients: dict[Any, PreparedGradient] = {}

    def run(self, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """The outputs that are not in place."""
        tensors = given
        if self.repairs:
            repaired = list(given)
            for repair in self.repairs:
                repaired[repair.i] = repair(repaired[repair.i])
            tensors = tuple(repaired)
        fresh = self._call.run(tensors, None)
        for i in self.mutated:
            increment_version(given[i])
        if self._copies is not None:
            y, form = fresh[0], self._copies
            moved = torch.empty_strided(form.sizes, form.strides, dtype=y.dtype, device=y.device)
            return (moved.copy_(y.view(form.sizes)), *fresh[1:])
        return fresh

    def run_over(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Writes the only output over the only input, and returns it."""
        if self._over is None:
            self._over = _tensor_call(self._core_call, self._device, [0, 0], [], [])
        self._over.run((tensor,), None)
        increment_version(tensor)
        return (tensor,)

    def differentiation(self, requires: tuple[bool, ...]) -> Differentiation:
        found = self._differentiations.get(requires)
        if found is None:
            found = self._differentiations[requires] = Differentiation(self.info, self.op, self.kinds, requires)
        return found

    def gradient(self, differentiation: Differentiation, cotangent: torch.Tensor) -> PreparedGradient:
        """The gradient for such a cotangent."""
        key = (differentiation, cotangent.dtype, cotangent.stride())
        found = self._gradients.get(key)
        if found is None:
            of = differentiation
            made = PreparedGradient(self.info, self.op, self.engine, cotangent, self.kinds, of.wanted, of.needed)
            found = self._gradients[key] = made
        return found


class PreparedGradient:
    """The gradient of an op for inputs of these types, on their device, and for a cotangent of this layout."""

    def __init__(
        self,
        info: OpInfo,
        op: _core.Op,
        engine: _core.Engine,
        cotangent: torch.Tensor,
        kinds: Sequence[Kind],
        wanted: Sequence[bool],
        needed: Sequence[bool],
    ) -> None:
        outputs = output_kinds(info, op, kinds)
        self._last = len(outputs[0].shape) == 4 and is_channels_last(cotangent)
        self._packs = not (self._last or cotangent.is_contiguous())
        code = outputs[0].code
        self._cast = code if code_of(cotangent) != code else None
        dy = Kind(code, self._last, outputs[0].shape)
        self._kinds = [kind for kind, need in zip([*kinds, *outputs], needed, strict=True) if need]
        gradients = [kind for kind, want in zip(kinds, wanted, strict=True) if want]
        call = _core.Call.gradient(
            engine,
            op,
            dy.described(),
            [kind.described() for kind in kinds],
            [kind.described() for kind in outputs],
            list(wanted),
            [kind.described() for kind in gradients],
        )
        made, saved = iter(range(len(gradients))), iter(range(len(needed)))
        results = [-1, *(next(made) if want else -1 for want in wanted)]
        places = [next(saved) if need else -1 for need in needed]
        self._call = _tensor_call(call, cotangent.device, places, [_tensor_of(one) for one in gradients], results)

    def run(
        self, cotangent: torch.Tensor, saved: tuple[torch.Tensor, ...], repairs: bool = True
    ) -> tuple[torch.Tensor | None, ...]:
        """A None, then the gradient of each input. ``saved`` are the inputs and outputs that it needs; with ``repairs``
        they may lie otherwise than their kinds."""
        if self._cast is not None:
            cotangent = ARRAYS.cast(cotangent, self._cast)
        if self._packs:
            cotangent = cotangent.contiguous()
        if repairs:
            saved = tuple([_repaired(t, k) for t, k in zip(saved, self._kinds, strict=True)])
        return self._call.run(saved, cotangent)


def _repaired(tensor: torch.Tensor, kind: Kind) -> torch.Tensor:
    if tensor.dtype is not kind.dtype:
        tensor = ARRAYS.cast(tensor, kind.code)
    return tensor.contiguous(memory_format=torch.channels_last if kind.channels_last else torch.contiguous_format)


def prepare(
    info: OpInfo, tensors: Sequence[torch.Tensor], attributes: dict[str, Any], form: Form | None = None
) -> Prepared:
    """Prepares the call for such tensors and attributes. Raises UsageError if the op does not accept them."""
    precision = allowed(info.name, bool(tensors) and tensors[0].is_cuda)
    parts: list[Any] = [info.name, _backend.chosen(), precision, form]
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise UsageError(f"{info.name}: a tensor must be strided, is {tensor.layout}")
        parts += (tensor.dtype, tensor.shape, tensor.stride(), tensor.get_device())
    for name, value in attributes.items():
        parts += (name, tuple(value) if type(value) is list else value)
    key = tuple(parts)
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        found = _kept[key] = Prepared(info, tensors, attributes, precision, form)
    return found


_kept: dict[Any, Prepared] = {}
_MOST_KEPT = 4096


def encode(kinds: Sequence[Kind]) -> list[int]:
    """Kinds as a schema of PyTorch can have them."""
    numbers: list[int] = []
    for kind in kinds:
        numbers += [kind.code, int(kind.channels_last), len(kind.shape), *kind.shape]
    return numbers


def decode(numbers: Sequence[int]) -> list[Kind]:
    kinds, at = [], 0
    while at < len(numbers):
        rank = numbers[at + 2]
        kinds.append(Kind(numbers[at], bool(numbers[at + 1]), tuple(numbers[at + 3 : at + 3 + rank])))
        at += 3 + rank
    return kinds
