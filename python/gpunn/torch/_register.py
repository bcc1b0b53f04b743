"""The ops of the catalogue as ``torch.ops.gpunn.*``: kernels, fake kernels, autograd and autocast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpunn import _core
from gpunn.errors import UsageError
from gpunn.ops._arrays import F32, HOST, INTEGERS, Library, Place, library_of
from gpunn.ops._backend import engine_for
from gpunn.ops._call import CATALOGUE, OpInfo, flows_back, info_of

# Inputs of matrix products and convolutions become the autocast dtype. All others follow what they are given.
PRODUCTS = frozenset({"matmul", "batch_matmul", "matmul_bias_activation", "conv2d", "conv2d_bias_activation"})

_SCHEMA_TYPES = {
    "flag": "bool",
    "integer": "int",
    "number": "float",
    "pair": "int[2]",
    "numbers": "float[2]",
    "list": "int[]",
    "axes": "int[]",
    "axis": "int",
    "elements": "int",
    "dtype": "str",
    "choice": "str",
}

_library = torch.library.Library("gpunn", "DEF")
_arrays: Library = library_of(torch.empty(0))
# The key sets below autograd, as torch.library has them for its own custom ops.
_AFTER_AUTOGRAD = torch._C._after_autograd_keyset


def _attribute_schema(attribute: dict[str, Any]) -> str:
    kind = attribute["kind"]
    text = _SCHEMA_TYPES[kind]
    default = attribute["default"]
    if attribute["same_as"] or (isinstance(default, float) and math.isinf(default)):
        return f"{text}? {attribute['name']}=None"
    if attribute["required"]:
        return f"{text} {attribute['name']}"
    if isinstance(default, str):
        return f'{text} {attribute["name"]}="{default}"'
    if kind == "numbers":
        default = [default, default]
    return f"{text} {attribute['name']}={default}"


def _attribute_schemas(info: OpInfo) -> list[str]:
    required = [a for a in info.attributes if a["required"]]
    others = [a for a in info.attributes if not a["required"]]
    return [_attribute_schema(a) for a in required + others] + ['str backend=""']


def schema_of(info: OpInfo) -> str:
    inputs = []
    if info.repeated:
        inputs.append("Tensor[] tensors")
    else:
        for i, one in enumerate(info.inputs):
            mark = f"({chr(ord('a') + i)}!)" if i in info.mutated else ""
            inputs.append(f"Tensor{mark}" + (f"? {one['name']}=None" if one["optional"] else f" {one['name']}"))
    results = ", ".join(["Tensor"] * len(info.fresh))
    return f"{info.name}({', '.join([*inputs, '*', *_attribute_schemas(info)])}) -> " + (
        results if len(info.fresh) == 1 else f"({results})"
    )


def vjp_schema_of(info: OpInfo) -> str:
    head = "Tensor cotangent, Tensor?[] inputs, Tensor?[] outputs, int[] types, bool[] wanted"
    return f"{info.name}_vjp({', '.join([head, '*', *_attribute_schemas(info)])}) -> Tensor[]"


def _split(info: OpInfo, args: Sequence[Any]) -> list[Any]:
    """The tensors of a call."""
    tensors = list(args[0]) if info.repeated else list(args)
    while tensors and tensors[-1] is None:
        tensors.pop()
    return tensors


def _settled(info: OpInfo, attributes: dict[str, Any]) -> tuple[_core.Op, str]:
    """The op with its attributes, and the backend's name."""
    given = dict(attributes)
    backend = given.pop("backend", "")
    return info.op(given), backend


def _with_defaults(info: OpInfo, attributes: dict[str, Any]) -> dict[str, Any]:
    """The dispatcher leaves out what is as the schema says."""
    result = {}
    for one in info.attributes:
        default = None if one["same_as"] else one["default"]
        result[one["name"]] = attributes.get(one["name"], default)
    result["backend"] = attributes.get("backend", "")
    return result


def _describe(info: OpInfo, tensors: Sequence[torch.Tensor], place: Place) -> tuple[list[Any], list[Any]]:
    described, keep = [], []
    for i, tensor in enumerate(tensors):
        if _arrays.place(tensor) != place:
            raise UsageError(f"{info.name}: {info.input(i)['name']} is {_arrays.place(tensor)}, x is {place}")
        one, kept = _arrays.describe(tensor, place)
        codes = info.input_codes(i)
        if one[1] in INTEGERS and codes and one[1] not in codes and codes[0] in INTEGERS:
            one, kept = _arrays.describe(_arrays.cast(tensor, codes[0]), place)
        if i in info.mutated and kept is not tensor:
            raise UsageError(f"{info.name}: {info.input(i)['name']} changes in place, so it must be contiguous")
        described.append(one)
        keep.append(kept)
    return described, keep


def _fresh(info: OpInfo, op: _core.Op, described: list[Any], place: Place) -> list[torch.Tensor]:
    types = info.output_types(op, described)
    like = described[0] if described else None
    return [
        _arrays.empty(dtype, shape, place, like, None)
        for (dtype, shape), in_place in zip(types, info.in_place, strict=False)
        if in_place < 0
    ]


def _scratch(place: Place, size: int) -> tuple[int, Any]:
    return _arrays.scratch(size, place) if size else (0, None)


def _results(info: OpInfo, outputs: list[torch.Tensor]) -> Any:
    if not info.fresh:
        return None
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _kernel(info: OpInfo) -> Callable[..., Any]:
    def run(*args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        op, backend = _settled(info, _with_defaults(info, attributes))
        place = _arrays.place(tensors[0]) if tensors else HOST
        engine = engine_for(backend or None, place.cuda, place.device)
        described, keep = _describe(info, tensors, place)
        outputs = _fresh(info, op, described, place)
        to = [_arrays.describe(one, place)[0] for one in outputs]
        if place.cuda:
            capturing = _arrays.capturing()
            size = engine.scratch_bytes(op, described, to, capturing)
            address, owner = _scratch(place, size)
            engine.run(op, described, to, _arrays.stream(place), capturing, address, size)
            del owner
        else:
            engine.run(op, described, to)
        del keep
        for i in info.mutated:
            if i < len(tensors):
                torch.autograd.graph.increment_version(tensors[i])
        return _results(info, outputs)

    return run


def _fake(info: OpInfo) -> Callable[..., Any]:
    def run(*args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        op, _ = _settled(info, _with_defaults(info, attributes))
        described = []
        for i, tensor in enumerate(tensors):
            code = _code(tensor)
            codes = info.input_codes(i)
            if code in INTEGERS and codes and code not in codes and codes[0] in INTEGERS:
                code = codes[0]
            described.append((0, code, tuple(int(size) for size in tensor.shape), None))
        types = info.output_types(op, described)
        last = bool(tensors) and _is_channels_last(tensors[0])
        outputs = [
            _empty_like_kernel(tensors[0], dtype, shape, last)
            for (dtype, shape), in_place in zip(types, info.in_place, strict=False)
            if in_place < 0
        ]
        return _results(info, outputs)

    return run


def _code(tensor: torch.Tensor) -> int:
    code: int | None = _arrays.codes.get(tensor.dtype)  # type: ignore[attr-defined]
    if code is None:
        raise UsageError(f"gpunn has no dtype '{tensor.dtype}'")
    return code


def _is_channels_last(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def _empty_like_kernel(like: torch.Tensor, dtype: int, shape: Sequence[int], last: bool) -> torch.Tensor:
    return torch.empty(
        tuple(shape),
        dtype=_arrays.dtypes[dtype],  # type: ignore[attr-defined]
        device=like.device,
        memory_format=torch.channels_last if last and len(shape) == 4 else torch.contiguous_format,
    )


# --- Autograd ---


def _encode_types(tensors: Sequence[torch.Tensor]) -> list[int]:
    numbers = []
    for tensor in tensors:
        numbers += [_code(tensor), int(_is_channels_last(tensor)), tensor.dim(), *(int(s) for s in tensor.shape)]
    return numbers


def _decode_types(numbers: Sequence[int]) -> list[tuple[int, bool, tuple[int, ...]]]:
    types = []
    at = 0
    while at < len(numbers):
        rank = numbers[at + 2]
        types.append((numbers[at], bool(numbers[at + 1]), tuple(numbers[at + 3 : at + 3 + rank])))
        at += 3 + rank
    return types


def _last_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    _, c, h, w = shape
    return (h * w * c, 1, w * c, c)


def _absent(dtype: int, last: bool, shape: tuple[int, ...]) -> Any:
    """A tensor of which only the type is told."""
    return (0, dtype, shape, _last_strides(shape) if last else None)


def _vjp_kernel(info: OpInfo) -> Callable[..., list[torch.Tensor]]:
    def run(
        cotangent: torch.Tensor, inputs: Any, outputs: Any, types: Any, wanted: Any, **attributes: Any
    ) -> list[torch.Tensor]:
        op, backend = _settled(info, _with_defaults(info, attributes))
        place = _arrays.place(cotangent)
        engine = engine_for(backend or None, place.cuda, place.device)
        kinds = _decode_types(types)
        keep: list[Any] = []

        def described(tensor: torch.Tensor | None, kind: tuple[int, bool, tuple[int, ...]]) -> Any:
            if tensor is None:
                return _absent(*kind)
            if tensor.dtype is not _arrays.dtypes[kind[0]]:  # type: ignore[attr-defined]
                tensor = _arrays.cast(tensor, kind[0])
            one, kept = _arrays.describe(tensor, place)
            keep.append(kept)
            return one

        out_types = info.output_types(op, [(0, k[0], k[2], None) for k in kinds])
        dy = described(cotangent, (out_types[0][0], False, out_types[0][1]))
        ins = [described(tensor, kind) for tensor, kind in zip(inputs, kinds, strict=True)]
        outs = [described(t, (kind[0], False, kind[1])) for t, kind in zip(outputs, out_types, strict=True)]
        gradients = [
            _empty_like_kernel(cotangent, *_dtype_shape(kind), kind[1])
            for kind, want in zip(kinds, wanted, strict=True)
            if want
        ]
        to = [_arrays.describe(one, place)[0] for one in gradients]
        wants = list(wanted)
        if place.cuda:
            capturing = _arrays.capturing()
            size = engine.gradient_scratch_bytes(op, dy, ins, outs, wants, to, capturing)
            address, owner = _scratch(place, size)
            engine.run_gradient(op, dy, ins, outs, wants, to, _arrays.stream(place), capturing, address, size)
            del owner
        else:
            engine.run_gradient(op, dy, ins, outs, wants, to)
        return gradients

    return run


def _dtype_shape(kind: tuple[int, bool, tuple[int, ...]]) -> tuple[int, tuple[int, ...]]:
    return kind[0], kind[2]


def _vjp_fake(info: OpInfo) -> Callable[..., list[torch.Tensor]]:
    def run(
        cotangent: torch.Tensor, inputs: Any, outputs: Any, types: Any, wanted: Any, **attributes: Any
    ) -> list[torch.Tensor]:
        return [
            _empty_like_kernel(cotangent, kind[0], kind[2], kind[1])
            for kind, want in zip(_decode_types(types), wanted, strict=True)
            if want
        ]

    return run


def _needs(
    info: OpInfo, op: _core.Op, types: list[tuple[int, bool, tuple[int, ...]]], wanted: tuple[bool, ...]
) -> tuple[list[bool], list[bool]]:
    """Which inputs and outputs the gradient reads."""
    key = (op, tuple(types), wanted)
    found = _kept_needs.get(key)
    if found is None:
        if len(_kept_needs) > _MOST_NEEDS:
            _kept_needs.clear()
        found = _kept_needs[key] = op.gradient_needs([(0, k[0], k[2], None) for k in types], wanted)
    return found


_kept_needs: dict[Any, tuple[list[bool], list[bool]]] = {}
_MOST_NEEDS = 4096


def _autograd(info: OpInfo, overload: Any, vjp: Any) -> Callable[..., Any]:
    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, call: Any, *tensors: Any) -> Any:
            keyset, op, attributes, count, wanted = call
            given = tensors[:count]
            arguments = (list(given),) if info.repeated else tensors
            with torch._C._AutoDispatchBelowAutograd():
                result = overload.redispatch(keyset & _AFTER_AUTOGRAD, *arguments, **attributes)
            results = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
            fresh = iter(results)
            outputs = [given[i] if i >= 0 else next(fresh) for i in _present(info, count)]
            codes = _encode_types(given)
            for i, tensor in enumerate(given):  # integers are converted
                if not tensor.is_floating_point():
                    allowed = info.input_codes(i)
                    at = _type_offset(given, i)
                    if allowed and codes[at] not in allowed:
                        codes[at] = allowed[0]
            kinds = _decode_types(codes)
            need_inputs, need_outputs = _needs(info, op, kinds, wanted)
            saved = [t if n else None for t, n in zip(given, need_inputs, strict=True)]
            saved += [t if n else None for t, n in zip(outputs, need_outputs, strict=True)]
            ctx.save_for_backward(*saved)
            ctx.call = (codes, wanted, attributes, count, len(tensors))
            if len(results) > 1:
                ctx.mark_non_differentiable(*results[1:])
            ctx.set_materialize_grads(False)
            return result

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            codes, wanted, attributes, count, all_tensors = ctx.call
            nothing = (None,) * (1 + all_tensors)
            if not cotangents or cotangents[0] is None:
                return nothing
            saved = ctx.saved_tensors
            gradients = iter(
                vjp(cotangents[0], list(saved[:count]), list(saved[count:]), codes, list(wanted), **attributes)
            )
            flows = [next(gradients) if want else None for want in wanted]
            return (None, *flows, *[None] * (all_tensors - count))

    def run(keyset: Any, *args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        if not info.differentiable or not torch.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            with torch._C._AutoDispatchBelowAutograd():
                return overload.redispatch(keyset & _AFTER_AUTOGRAD, *args, **attributes)
        for i in info.mutated:
            if i < len(tensors) and tensors[i].requires_grad:
                raise UsageError(f"{info.name}: {info.input(i)['name']} changes in place and can't require grad")
        op, _ = _settled(info, _with_defaults(info, attributes))
        shown = [(0, _shown_code(info, i, t), tuple(t.shape), None) for i, t in enumerate(tensors)]
        possible = flows_back(info, op, shown)
        wanted = tuple(p and t.requires_grad for p, t in zip(possible, tensors, strict=True))
        for i, (tensor, want) in enumerate(zip(tensors, wanted, strict=True)):
            if tensor.requires_grad and not want:
                raise UsageError(f"{info.name}: there is no gradient for {info.input(i)['name']}; detach it")
        call = (keyset, op, attributes, len(tensors), wanted)
        return Differentiable.apply(call, *(tensors if info.repeated else args))

    return run


def _shown_code(info: OpInfo, i: int, tensor: torch.Tensor) -> int:
    code = _code(tensor)
    codes = info.input_codes(i)
    return codes[0] if code in INTEGERS and codes and code not in codes else code


def _type_offset(tensors: Sequence[torch.Tensor], i: int) -> int:
    return sum(3 + t.dim() for t in tensors[:i])


def _present(info: OpInfo, inputs: int) -> list[int]:
    """For each output that there is, the input that it is in place of, or -1."""
    return [i for i in info.in_place if i < inputs]


# --- Autocast ---


def _autocast(info: OpInfo, overload: Any, device: str) -> Callable[..., Any]:
    key = getattr(torch._C.DispatchKey, "AutocastCPU" if device == "cpu" else "AutocastCUDA")
    product = info.name in PRODUCTS

    def converted(tensors: Sequence[Any]) -> list[Any]:
        low = torch.get_autocast_dtype(device)
        floating = [
            t for i, t in enumerate(tensors) if t is not None and info.input(i)["floating"] and t.is_floating_point()
        ]
        wanted = low
        if not product:
            alike = {t.dtype for t in floating}
            wanted = next(iter(alike)) if len(alike) == 1 else torch.float32
        result = []
        for i, t in enumerate(tensors):
            if t is None or not t.is_floating_point() or t.dtype == torch.float64 or i in info.mutated:
                result.append(t)
            elif info.input(i)["floating"]:
                result.append(t.to(wanted))
            else:
                result.append(t.to(torch.float32) if info.input_codes(i) == (F32,) else t)
        return result

    def run(*args: Any, **attributes: Any) -> Any:
        given = (converted(args[0]),) if info.repeated else tuple(converted(args))
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return overload(*given, **attributes)

    return run


def _register(info: OpInfo) -> None:
    name = info.name
    _library.define(schema_of(info), tags=(torch.Tag.pt2_compliant_tag,))
    overload = getattr(torch.ops.gpunn, name).default
    for key in ("CPU", "CUDA"):
        _library.impl(name, _kernel(info), key)
    torch.library.register_fake(f"gpunn::{name}", _fake(info), lib=_library)
    vjp = None
    if info.differentiable:
        _library.define(vjp_schema_of(info), tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            _library.impl(f"{name}_vjp", _vjp_kernel(info), key)
        torch.library.register_fake(f"gpunn::{name}_vjp", _vjp_fake(info), lib=_library)
        vjp = getattr(torch.ops.gpunn, f"{name}_vjp").default
    _library.impl(name, _autograd(info, overload, vjp), "Autograd", with_keyset=True)
    for device in ("cpu", "cuda"):
        _library.impl(name, _autocast(info, overload, device), "AutocastCPU" if device == "cpu" else "AutocastCUDA")


def registered() -> list[str]:
    """The ops under ``torch.ops.gpunn``. An op without a tensor among its inputs has no device to run on there."""
    return [name for name, entry in CATALOGUE.items() if entry["inputs"]]


for _name in registered():
    _register(info_of(_name))
