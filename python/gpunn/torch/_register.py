"""The ops of the catalogue as ``torch.ops.gpunn.*``: kernels, fake kernels, autograd and autocast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from gpunn.errors import UsageError
from gpunn.ops._arrays import F32
from gpunn.ops._backend import engine_for
from gpunn.ops._call import CATALOGUE, OpInfo, info_of
from gpunn.torch._precision import PRODUCTS, allowed
from gpunn.torch._prepared import (
    ARRAYS,
    Differentiation,
    Maker,
    Prepared,
    PreparedGradient,
    decode,
    encode,
    fresh_kinds,
    kind_of,
    prepare,
    settled,
)
from gpunn.torch._state import computes_only, has_tangent, is_plain

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


class _Once(torch.autograd.Function):
    """Results that depend on other tensors in a way that can't be differentiated."""

    @staticmethod
    def forward(ctx: Any, what: str, count: int, *tensors: torch.Tensor) -> Any:
        ctx.what = what
        return tuple(one.view_as(one) for one in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise UsageError(f"{ctx.what} has no gradient; use PyTorch's functions, or detach what does not need one")


def once(what: str, results: Sequence[torch.Tensor], of: Sequence[Any]) -> list[torch.Tensor]:
    """The results. A gradient that flows back from them to the tensors that they were made of raises an error."""
    depends = [one for one in of if isinstance(one, torch.Tensor) and one.requires_grad]
    if not depends or not results or not torch.is_grad_enabled():
        return list(results)
    return list(_Once.apply(what, len(results), *(one.detach() for one in results), *depends))


class _Link(torch.autograd.Function):
    """An empty tensor that stands for its inputs in autograd's graph, and holds none of their memory."""

    @staticmethod
    def forward(ctx: Any, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.count = len(tensors)
        return tensors[0].new_empty(0)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None,) * ctx.count  # of a first gradient, which is not its


def _refuse_tangents(name: str, tensors: Sequence[Any]) -> None:
    if has_tangent(tensors):
        raise UsageError(f"{name}: has no derivative in forward mode; use PyTorch's functions, or reverse mode")


def _records(tensors: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in tensors)


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


def _vjp_autograd(info: OpInfo, overload: Any) -> Callable[..., list[torch.Tensor]]:
    def run(keyset: Any, cotangent: torch.Tensor, inputs: Any, outputs: Any, *args: Any, **attributes: Any) -> Any:
        given = [cotangent, *inputs, *outputs]
        _refuse_tangents(f"{info.name}_vjp", given)
        with torch._C._AutoDispatchBelowAutograd():
            found = overload.redispatch(keyset & _AFTER_AUTOGRAD, cotangent, inputs, outputs, *args, **attributes)
        return once(f"the gradient of gpunn's {info.name}", found, given)

    return run


class _Recorded(NamedTuple):
    """A call that autograd records."""

    name: str
    attributes: dict[str, Any]
    differentiation: Differentiation
    prepared: Prepared | None
    run: Callable[..., Any]


class _Differentiable(torch.autograd.Function):
    """A recorded call with all its outputs. The first has a gradient."""

    @staticmethod
    def forward(ctx: Any, call: _Recorded, link: torch.Tensor | None, *tensors: Any) -> Any:
        found = call.run(tensors)
        results = list(found) if isinstance(found, (tuple, list)) else [] if found is None else [found]
        ctx.save_for_backward(link, *call.differentiation.saved(tensors, tuple(results)))
        ctx.call = call
        if len(results) > 1:
            ctx.mark_non_differentiable(*results[1:])
        ctx.set_materialize_grads(False)
        return _results(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        call: _Recorded = ctx.call
        of, dy = call.differentiation, cotangents[0] if cotangents else None
        if dy is None:
            return (None,) * (2 + len(of.kinds))
        link, *saved = ctx.saved_tensors
        if call.prepared is not None and not torch.is_grad_enabled() and computes_only() and is_plain(dy):
            gradient = call.prepared.gradient(of, dy)
            return (None, *gradient.run(dy, tuple(saved), not call.prepared.is_direct))
        inputs, outputs = of.spread(saved)
        overload = getattr(torch.ops.gpunn, f"{call.name}_vjp").default
        with torch.no_grad():
            gradients = overload(dy, inputs, outputs, encode(of.kinds), of.wanted, **call.attributes)
        found = iter(once(f"the gradient of gpunn's {call.name}", gradients, [dy, link, *saved]))
        return (None, None, *(next(found) if want else None for want in of.wanted))


# Their results are constants wherever they have a derivative.
_CONSTANT = frozenset({"equal", "less", "less_equal", "top_mask", "assign_points", "assign_anchors"})


def _is_plain(keyset: Any) -> bool:
    """Whether only the kernel runs: no fake tensors, no tracing, no vmap."""
    return keyset.highestPriorityTypeId() in _KERNEL_KEYS


_KERNEL_KEYS = (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)


def _autograd(info: OpInfo, overload: Any) -> Callable[..., Any]:
    def run(keyset: Any, *args: Any, **attributes: Any) -> Any:
        tensors = _split(info, args)
        _refuse_tangents(info.name, tensors)
        below = keyset & _AFTER_AUTOGRAD
        prepared: Prepared | None = prepare(info, tensors, attributes) if _is_plain(below) else None

        def below_autograd(given: Sequence[Any]) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                if prepared is not None:
                    return _results(prepared.run(tuple(given)))
                return overload.redispatch(below, *((list(given),) if info.repeated else given), **attributes)

        if not _records(tensors):
            return below_autograd(tensors)
        for i in info.mutated:
            if i < len(tensors) and tensors[i].requires_grad:
                raise UsageError(f"{info.name}: {info.input(i)['name']} changes in place and can't require grad")
        if info.differentiable:
            requires = tuple([tensor.requires_grad for tensor in tensors])
            if prepared is not None:
                of = prepared.differentiation(requires)
            else:
                kinds = [kind_of(info, i, tensor) for i, tensor in enumerate(tensors)]
                of = Differentiation(info, settled(info, attributes)[0], kinds, requires)
            call = _Recorded(info.name, attributes, of, prepared, below_autograd)
            # The graph knows outputs after the first as constants, though the gradient may read them.
            hides = any(of.outputs[1:]) and any(
                want and not kept for want, kept in zip(of.wanted, of.inputs, strict=True)
            )
            link = _Link.apply(*(one for one, want in zip(tensors, of.wanted, strict=True) if want)) if hides else None
            return _Differentiable.apply(call, link, *tensors)
        found = below_autograd(tensors)
        results = list(found) if isinstance(found, tuple) else [] if found is None else [found]
        if info.name in _CONSTANT or not all(one.is_floating_point() for one in results):
            return found
        return _results(once(f"gpunn's {info.name}", results, tensors))

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
        vjp = getattr(torch.ops.gpunn, f"{name}_vjp").default
        _library.impl(f"{name}_vjp", _vjp_autograd(info, vjp), "Autograd", with_keyset=True)
    _library.impl(name, _autograd(info, overload), "Autograd", with_keyset=True)
    for device in ("cpu", "cuda"):
        _library.impl(name, _autocast(info, overload, device), "AutocastCPU" if device == "cpu" else "AutocastCUDA")


def registered() -> list[str]:
    """The ops under ``torch.ops.gpunn``. An op without a tensor among its inputs has no device to run on there."""
    return [name for name, entry in CATALOGUE.items() if entry["inputs"]]


for _name in registered():
    _register(info_of(_name))
