"""The ops of the catalogue as ``torch.ops.gpunn.*``: kernels, fake kernels, autograd and autocast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpunn.ops._arrays import F32
from gpunn.ops._backend import engine_for
from gpunn.ops._call import CATALOGUE, OpInfo, info_of
from gpunn.torch._direct import Differentiable, Recorded, flows_of, vjp_of
from gpunn.torch._precision import PRODUCTS, allowed
from gpunn.torch._prepared import (
    ARRAYS,
    Differentiation,
    Maker,
    Prepared,
    PreparedGradient,
    decode,
    fresh_kinds,
    kind_of,
    prepare,
    settled,
)

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


def _results(outputs: Sequence[torch.Tensor]) -> Any:
    if not outputs:
        return None
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _kernel(info: OpInfo) -> Callable[..., Any]:
    def run(*args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        return _results(prepare(info, tensors, attributes).run(tuple(tensors)))

    return run


def _fake(info: OpInfo) -> Callable[..., Any]:
    def run(*args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        op, _ = settled(info, attributes)
        kinds = [kind_of(info, i, tensor) for i, tensor in enumerate(tensors)]
        return _results([Maker(kind, tensors[0].device)() for kind in fresh_kinds(info, op, kinds)])

    return run


# --- Autograd ---


def _vjp_kernel(info: OpInfo) -> Callable[..., list[torch.Tensor]]:
    def run(
        cotangent: torch.Tensor, inputs: Any, outputs: Any, types: Any, wanted: Any, **attributes: Any
    ) -> list[torch.Tensor]:
        op, backend = settled(info, attributes)
        place = ARRAYS.place(cotangent)
        engine = engine_for(backend or None, place.cuda, place.device, allowed(info.name, place.cuda))
        needed = [one is not None for one in (*inputs, *outputs)]
        prepared = PreparedGradient(info, op, engine, cotangent, decode(types), wanted, needed)
        saved = tuple([one for one in (*inputs, *outputs) if one is not None])
        return [one for one in prepared.run(cotangent, saved) if one is not None]

    return run


def _vjp_fake(info: OpInfo) -> Callable[..., list[torch.Tensor]]:
    def run(
        cotangent: torch.Tensor, inputs: Any, outputs: Any, types: Any, wanted: Any, **attributes: Any
    ) -> list[torch.Tensor]:
        kinds = decode(types)
        return [Maker(kind, cotangent.device)() for kind, want in zip(kinds, wanted, strict=True) if want]

    return run


def _is_plain(keyset: Any) -> bool:
    """Whether only the kernel runs: no fake tensors, no tracing, no vmap."""
    return keyset.highestPriorityTypeId() in _KERNEL_KEYS


_KERNEL_KEYS = (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)


def _autograd(info: OpInfo, overload: Any) -> Callable[..., Any]:
    class Traced(torch.autograd.Function):
        """A call that a mode or a transformation looks at."""

        @staticmethod
        def forward(ctx: Any, call: Any, *tensors: Any) -> Any:
            keyset, differentiation, attributes = call
            with torch._C._AutoDispatchBelowAutograd():
                result = overload.redispatch(keyset, *((list(tensors),) if info.repeated else tensors), **attributes)
            results = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
            ctx.save_for_backward(*differentiation.saved(tensors, tuple(results)))
            ctx.call = (differentiation, attributes)
            if len(results) > 1:
                ctx.mark_non_differentiable(*results[1:])
            ctx.set_materialize_grads(False)
            return _results(results)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            differentiation, attributes = ctx.call
            dy = cotangents[0] if cotangents else None
            if dy is None:
                return (None,) * (1 + len(differentiation.kinds))
            found = vjp_of(info.name, attributes)(dy, ctx.saved_tensors, differentiation)
            return flows_of(differentiation, found)

    def run(keyset: Any, *args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        below = keyset & _AFTER_AUTOGRAD
        prepared: Prepared | None = prepare(info, tensors, attributes) if _is_plain(below) else None
        requires = tuple([tensor.requires_grad for tensor in tensors])
        if not info.differentiable or not torch.is_grad_enabled() or True not in requires:
            with torch._C._AutoDispatchBelowAutograd():
                if prepared is not None:
                    return _results(prepared.run(tuple(tensors)))
                return overload.redispatch(below, *args, **attributes)
        if prepared is not None:
            call = Recorded(prepared, prepared.differentiation(requires), vjp_of(info.name, attributes))
            return Differentiable.apply(call, *tensors)
        kinds = [kind_of(info, i, tensor) for i, tensor in enumerate(tensors)]
        differentiation = Differentiation(info, settled(info, attributes)[0], kinds, requires)
        return Traced.apply((below, differentiation, attributes), *tensors)

    return run


# --- Autocast ---


def _autocast(info: OpInfo, overload: Any, device: str) -> Callable[..., Any]:
    key = getattr(torch._C.DispatchKey, "AutocastCPU" if device == "cpu" else "AutocastCUDA")
    # Inputs of products become the autocast dtype. All others follow what they are given.
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
    if info.differentiable:
        _library.define(vjp_schema_of(info), tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            _library.impl(f"{name}_vjp", _vjp_kernel(info), key)
        torch.library.register_fake(f"gpunn::{name}_vjp", _vjp_fake(info), lib=_library)
    _library.impl(name, _autograd(info, overload), "Autograd", with_keyset=True)
    for device in ("cpu", "cuda"):
        _library.impl(name, _autocast(info, overload, device), "AutocastCPU" if device == "cpu" else "AutocastCUDA")


def registered() -> list[str]:
    """The ops under ``torch.ops.gpunn``. An op without a tensor among its inputs has no device to run on there."""
    return [name for name, entry in CATALOGUE.items() if entry["inputs"]]


for _name in registered():
    _register(info_of(_name))
