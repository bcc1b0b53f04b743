"""Calls the core for a function of ``gpunn.ops``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpunn import _core
from gpunn.errors import UsageError
from gpunn.ops._arrays import DTYPES, HOST, I32, I64, INTEGERS, Library, Place, Tensor, library_of, numpy_library
from gpunn.ops._attributes import key_of, settled
from gpunn.ops._backend import Backend, engine_for

CATALOGUE: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in _core.op_catalogue()}


class OpInfo:
    """An op of the catalogue, with properties that calls need again and again."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.name: str = entry["name"]
        self.inputs: list[dict[str, Any]] = entry["inputs"]
        self.repeated = bool(self.inputs) and self.inputs[-1]["repeated"]
        self.fresh = [o for o in entry["outputs"] if o["in_place"] < 0]
        self.in_place = [o["in_place"] for o in entry["outputs"]]
        self.mutated = frozenset(i for i in self.in_place if i >= 0)
        self.attributes = entry["attributes"]
        self.axes = [a["name"] for a in self.attributes if a["kind"] in ("axes", "axis")]
        self.codes = [tuple(DTYPES.index(d) for d in one["dtypes"]) for one in self.inputs]
        self.differentiable: bool = entry["differentiable"]
        self.kept: dict[Any, _core.Op] = {}
        self.types: dict[Any, list[tuple[int, tuple[int, ...]]]] = {}

    def input(self, i: int) -> dict[str, Any]:
        return self.inputs[min(i, len(self.inputs) - 1)]

    def input_codes(self, i: int) -> tuple[int, ...]:
        return self.codes[min(i, len(self.codes) - 1)]

    def op(self, attributes: dict[str, Any]) -> _core.Op:
        """The op with these attributes."""
        try:
            key = key_of(attributes)
        except TypeError:  # lists, arrays, numbers of NumPy
            attributes = settled(self.name, self.attributes, attributes)
            key = key_of(attributes)
        found = self.kept.get(key)
        if found is None:
            if len(self.kept) > _MOST_KEPT:
                self.kept.clear()
            exact = settled(self.name, self.attributes, attributes)
            found = _core.Op(self.name, {name: value for name, value in exact.items() if value is not None})
            self.kept[key] = found
        return found

    def output_types(self, op: _core.Op, described: Sequence[Any]) -> list[tuple[int, tuple[int, ...]]]:
        key = (op, *((d[1], d[2]) for d in described))
        found = self.types.get(key)
        if found is None:
            if len(self.types) > _MOST_KEPT:
                self.types.clear()
            found = self.types[key] = op.output_types([(0, d[1], d[2], None) for d in described])
        return found


# Of attributes and of shapes that a function remembers. Random seeds and growing sequences make many.
_MOST_KEPT = 4096

_infos: dict[str, OpInfo] = {}


def info_of(name: str) -> OpInfo:
    found = _infos.get(name)
    if found is None:
        if name not in CATALOGUE:
            _core.Op(name, {})  # which says what is near
            raise UsageError(f"there is no op '{name}'")
        found = _infos[name] = OpInfo(CATALOGUE[name])
    return found


class Arguments:
    """The inputs of a call, of one library and on one device."""

    def __init__(self, info: OpInfo, inputs: Sequence[Any], backend: str | Backend | None) -> None:
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        self.library: Library | None = None
        self.place: Place = HOST
        for i, one in enumerate(given):
            if one is None or isinstance(one, (int, float)):
                continue
            library = library_of(one)
            place = library.place(one)
            if self.library is None:
                self.library, self.place = library, place
            elif library is not self.library or place != self.place:
                raise UsageError(
                    f"{info.name}: all arrays must be of one library on one device; {info.input(i)['name']} is of "
                    f"{library.name}, {place}, an earlier one of {self.library.name}, {self.place}"
                )
        if self.library is None:
            self.library = numpy_library()
        self._floating = 0
        numbers = any(isinstance(one, (int, float)) for one in given)
        for i, one in enumerate(given if numbers else ()):
            if one is not None and not isinstance(one, (int, float)) and info.input(i)["floating"]:
                self._floating = self.library.describe(one, self.place)[0][1]
                break
        self.arrays: list[Any] = []
        self.described: list[Any] = []
        self.keep: list[Any] = []
        for i, one in enumerate(given):
            self._add(info, i, one)
        self.engine = engine_for(backend, self.place.cuda, self.place.device)

    def _add(self, info: OpInfo, i: int, array: Any) -> None:
        library = self.library
        assert library is not None
        name = info.input(i)["name"]
        if array is None:
            raise UsageError(f"{info.name}: {name} is missing, though a later input is given")
        codes = info.input_codes(i)
        if isinstance(array, (int, float)):
            code = self._floating if info.input(i)["floating"] else codes[0] if codes else 0
            array = library.scalar(array, code, self.place)
        elif library.is_recorded(array):
            raise UsageError(
                f"{info.name}: {name} requires grad or has a tangent, and gpunn.ops records no gradients; use "
                f"torch.ops.gpunn.{info.name} of gpunn.torch, gpunn.ops.vjp, or hand over {name}.detach()"
            )
        given = array
        if codes and codes[0] in (I32, I64) and library.has_other_integers(array):
            array = library.cast(array, codes[0])
        described, keep = library.describe(array, self.place)
        if described[1] in INTEGERS and codes and described[1] not in codes and codes[0] in (I32, I64):
            array = library.cast(array, codes[0])
            described, keep = library.describe(array, self.place)
        if array is not given and i in info.mutated:
            raise UsageError(f"{info.name}: {name} changes in place, so it must be {DTYPES[codes[0]]}")
        if i in info.mutated:
            if library.name in ("numpy", "torch") and keep is not array:
                raise UsageError(f"{info.name}: {name} changes in place, so it must be contiguous")
            if not library.is_written(array):
                raise UsageError(f"{info.name}: {name} changes in place, and it is read-only")
        self.arrays.append(array)
        self.described.append(described)
        self.keep.append(keep)


def _with_axes(info: OpInfo, attributes: dict[str, Any], arguments: Arguments) -> dict[str, Any]:
    """Counts dimensions from the front; without dimensions, takes all."""
    result = settled(info.name, info.attributes, attributes)
    if not arguments.described:
        raise UsageError(f"{info.name}: {info.input(0)['name']} is missing")
    rank = len(arguments.described[0][2])
    for name in info.axes:
        given = result[name]
        axes = range(rank) if given is None else (given,) if isinstance(given, int) else given
        for axis in axes:
            if not -rank <= axis < rank:
                raise UsageError(f"{info.name}: {name} names dimension {axis} of a tensor of {rank} dimensions")
        front = tuple(axis % rank for axis in axes)
        kind = next(a["kind"] for a in info.attributes if a["name"] == name)
        result[name] = front if kind == "axes" else front[0]
    return result


def _outputs(info: OpInfo, arguments: Arguments, op: _core.Op, out: Any) -> tuple[list[Any], list[Any]]:
    """The arrays for the outputs that are not in place, and their layout."""
    library = arguments.library
    assert library is not None
    types = info.output_types(op, arguments.described)
    fresh = [t for t, in_place in zip(types, info.in_place, strict=False) if in_place < 0]
    if out is not None:
        arrays = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(arrays) != len(fresh):
            raise UsageError(f"{info.name}: out must be {len(fresh)} arrays, is {len(arrays)}")
    else:
        like = arguments.described[0] if arguments.described else None
        arrays = [library.empty(dtype, shape, arguments.place, like, arguments.engine) for dtype, shape in fresh]
    described: list[Any] = []
    for array in arrays:
        if isinstance(array, Tensor):
            memory = array._memory
            described.append((memory.address, memory.dtype, memory.shape, None))
            continue
        if library_of(array) is not library or library.place(array) != arguments.place:
            raise UsageError(f"{info.name}: out must be of the library and on the device of the inputs")
        how, keep = library.describe(array, arguments.place)
        if library.name in ("numpy", "torch") and keep is not array:
            raise UsageError(f"{info.name}: out must be contiguous")
        if not library.is_written(array):
            raise UsageError(f"{info.name}: out is read-only")
        if library.is_recorded(array):
            raise UsageError(f"{info.name}: out requires grad, and gpunn.ops records no gradients; give out.detach()")
        described.append(how)
    return arrays, described


def _handed_back(library: Library, arrays: list[Any]) -> list[Any]:
    give_back = getattr(library, "give_back", None)
    return [give_back(one) if give_back is not None and isinstance(one, Tensor) else one for one in arrays]


def run(info: OpInfo, arguments: Arguments, op: _core.Op, out: Any) -> list[Any]:
    library = arguments.library
    assert library is not None
    arrays, described = _outputs(info, arguments, op, out)
    _enqueue(_core.Call(arguments.engine, op, arguments.described, described), library, arguments.place)
    return arrays


def _enqueue(call: _core.Call, library: Library, place: Place) -> None:
    if not place.cuda:
        call.run()
        return
    address, size, owner, capturing = 0, 0, None, library.capturing()
    if library.name == "torch":
        size = call.scratch_bytes(capturing)
        if size:
            address, owner = library.scratch(size, place)
    call.run(library.stream(place), capturing, address, size)
    del owner


def call(name: str, inputs: Sequence[Any], attributes: dict[str, Any], out: Any, backend: str | Backend | None) -> Any:
    """Runs an op on arrays and returns its results, in the library of the arrays."""
    info = info_of(name)
    arguments = Arguments(info, inputs, backend)
    if info.axes:
        attributes = _with_axes(info, attributes, arguments)
    results = _handed_back(_library(arguments), run(info, arguments, info.op(attributes), out))
    if not results:
        results = [arguments.arrays[i] for i in info.in_place if 0 <= i < len(arguments.arrays)]
    return results[0] if len(results) == 1 else tuple(results)


def _library(arguments: Arguments) -> Library:
    assert arguments.library is not None
    return arguments.library


def _name_of(function: Callable[..., Any] | str) -> str:
    if isinstance(function, str):
        return function
    if getattr(function, "__module__", None) != "gpunn.ops._functions":
        raise UsageError(f"expected a function of gpunn.ops, or the name of an op, found {function!r}")
    return function.__name__


# --- Gradients by hand ---

_flows: dict[tuple[str, int], list[bool]] = {}


def flows_back(info: OpInfo, op: _core.Op, described: Sequence[Any]) -> list[bool]:
    """For each input, whether the op has a gradient for it."""
    key = (info.name, len(described))
    found = _flows.get(key)
    if found is None:
        found = []
        for i, one in enumerate(described):
            wanted = [j == i for j in range(len(described))]
            known = info.differentiable and i not in info.mutated and one[1] not in INTEGERS
            if known:
                try:
                    op.gradient_needs([(0, d[1], d[2], None) for d in described], wanted)
                except UsageError:
                    known = False
            found.append(known)
        _flows[key] = found
    return found


Pullback = Callable[..., Any]


def vjp(
    function: Callable[..., Any] | str,
    *inputs: Any,
    wanted: Sequence[bool] | None = None,
    backend: str | Backend | None = None,
    **attributes: Any,
) -> tuple[Any, Pullback]:
    """Runs an op and returns its results with a function that takes the cotangent of the first of them and returns the
    gradient of each input; None where nothing flows back, or ``wanted`` says that it is not asked for.

    >>> y, back = gpunn.ops.vjp(gpunn.ops.conv2d, x, w, stride=2)
    >>> dx, dw = back(dy)

    The inputs that the gradient reads must not change before. Raises UsageError for an op without a gradient.
    """
    name = _name_of(function)
    info = info_of(name)
    if not info.differentiable:
        raise UsageError(f"{name}: has no gradient")
    arguments = Arguments(info, inputs, backend)
    given = {
        a["name"]: attributes.pop(a["name"], None if a["name"] in info.axes else a["default"]) for a in info.attributes
    }
    if attributes:
        raise UsageError(f"{name}: has no attribute '{next(iter(attributes))}'")
    if info.axes:
        given = _with_axes(info, given, arguments)
    op = info.op(given)
    possible = flows_back(info, op, arguments.described)
    wants = [p and (wanted is None or bool(wanted[i])) for i, p in enumerate(possible)]
    types = info.output_types(op, arguments.described)
    results = run(info, arguments, op, None)
    library, place, engine = _library(arguments), arguments.place, arguments.engine

    # By output, in place or not.
    remaining = iter(results)
    outputs = [next(remaining) if i < 0 else arguments.arrays[i] for i in info.in_place[: len(types)]]

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        how, keep = library.describe(cotangent, place)
        described_out = [
            (o._memory.address, o._memory.dtype, o._memory.shape, None)
            if isinstance(o, Tensor)
            else library.describe(o, place)[0]
            for o in outputs
        ]
        gradients = [
            library.empty(d[1], d[2], place, d, engine)
            for d, want in zip(arguments.described, wants, strict=True)
            if want
        ]
        described_to = [
            (g._memory.address, g._memory.dtype, g._memory.shape, None)
            if isinstance(g, Tensor)
            else library.describe(g, place)[0]
            for g in gradients
        ]
        call = _core.Call.gradient(engine, op, how, arguments.described, described_out, wants, described_to)
        _enqueue(call, library, place)
        del keep
        handed = iter(_handed_back(library, gradients))
        return tuple(next(handed) if want else None for want in wants)

    handed = _handed_back(library, results)
    return (handed[0] if len(handed) == 1 else tuple(handed)), pullback


def explain(
    function: Callable[..., Any] | str, *inputs: Any, backend: str | Backend | None = None, **attributes: Any
) -> list[str]:
    """The kernels that a call uses, with the plugin of each."""
    name = _name_of(function)
    info = info_of(name)
    arguments = Arguments(info, inputs, backend)
    if info.axes:
        attributes = _with_axes(info, {**dict.fromkeys(info.axes), **attributes}, arguments)
    op = info.op(attributes)
    _, described = _outputs(info, arguments, op, None)
    return arguments.engine.explain(op, arguments.described, described)
