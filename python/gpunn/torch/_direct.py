"""Calls of prepared ops that pass PyTorch's dispatcher by: the dispatcher costs more than a small kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from gpunn import _core
from gpunn.ops import _backend
from gpunn.ops._call import info_of
from gpunn.torch._precision import PRODUCTS, flag_of
from gpunn.torch._prepared import Differentiation, Prepared, encode, prepare

_MOST_KNOWN = 8


_PLAIN = (torch.Tensor, nn.Parameter)
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transformation = torch._C._functorch.peek_interpreter_stack
_gradients_are_on = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling


def _computes_only(tensor: torch.Tensor) -> bool:
    """Whether no mode and no transformation wants to see an op: no fake tensors, no tracing, no vmap. A tensor with a
    negative bit has other numbers than its memory."""
    plain = type(tensor) in _PLAIN and not tensor.is_neg()
    return plain and _dispatch_modes() == 0 and _transformation() is None


class Recorded(NamedTuple):
    """A call that autograd records."""

    prepared: Prepared
    differentiation: Differentiation
    vjp: Callable[..., list[torch.Tensor]]
    over: bool = False  # the output takes the place of the only input


class Differentiable(torch.autograd.Function):
    """A recorded call with all its outputs. The first has a gradient."""

    @staticmethod
    def forward(ctx: Any, call: Recorded, *tensors: torch.Tensor) -> Any:
        ctx.call = call
        results = call.prepared.run(tensors)
        ctx.save_for_backward(*call.differentiation.saved(tensors, results))
        ctx.set_materialize_grads(False)
        if len(results) == 1:
            return results[0]
        ctx.mark_non_differentiable(*results[1:])
        return results

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        call, dy = ctx.call, cotangents[0]
        if dy is None:
            return (None,) * (1 + len(call.differentiation.kinds))
        saved = ctx.saved_tensors
        # A gradient of gradients, which there is none of, is refused by the dispatcher.
        if not _gradients_are_on() and _computes_only(dy):
            return call.prepared.gradient(call.differentiation, dy, saved)
        return flows_of(call.differentiation, call.vjp(dy, saved, call.differentiation))


class First(Differentiable):
    """A recorded call with its first output alone."""

    @staticmethod
    def forward(ctx: Any, call: Recorded, *tensors: torch.Tensor) -> Any:
        ctx.call = call
        if call.over:
            ctx.mark_dirty(*tensors)
            results = call.prepared.run_over(*tensors)
        else:
            results = call.prepared.run(tensors)
        ctx.save_for_backward(*call.differentiation.saved(tensors, results))
        return results[0]


def flows_of(differentiation: Differentiation, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """A None, then the gradient of each input."""
    found = iter(gradients)
    return (None, *(next(found) if want else None for want in differentiation.wanted))


def vjp_of(name: str, attributes: dict[str, Any]) -> Callable[..., list[torch.Tensor]]:
    """The registered gradient of an op: the gradients that are wanted."""

    def run(dy: torch.Tensor, saved: Sequence[torch.Tensor], differentiation: Differentiation) -> list[torch.Tensor]:
        inputs, outputs = differentiation.spread(saved)
        types, wanted = encode(differentiation.kinds), differentiation.wanted
        overload = getattr(torch.ops.gpunn, f"{name}_vjp").default
        return overload(dy, inputs, outputs, types, wanted, **attributes)  # type: ignore[no-any-return]

    return run


# --- Modules ---

_Guard = Callable[..., bool]


def _guard_of(tensors: Sequence[torch.Tensor]) -> _Guard | None:
    """Tells whether tensors have the types of these: class, dtype, device, sizes, strides, whether they require a
    gradient, and what the dispatcher would do with them in this thread, as autocast. None: this PyTorch has no such
    function."""
    if _guards is None:
        return None
    sizes, strides = [list(one.shape) for one in tensors], [list(one.stride()) for one in tensors]
    check: _Guard = _guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return check if check(*tensors) else None


def _guards_that_hold() -> Any:
    """The class of guards of PyTorch's compiler, or None where it is not what it is taken for."""
    found: Any = getattr(getattr(torch._C._dynamo, "guards", None), "TensorGuards", None)
    x = torch.zeros(2, 2)
    try:
        check = found(x, dynamic_dims_sizes=[[2, 2]], dynamic_dims_strides=[[2, 1]]).check
        others = (x.double(), x.T, x[:1], x[0], torch.zeros(2, 2, requires_grad=True), x.to("meta"))
        return found if check(torch.ones(2, 2)) and not any(check(one) for one in others) else None
    except (TypeError, RuntimeError):
        return None


_guards = _guards_that_hold()


class ModuleOp(NamedTuple):
    """The op that a class of modules is."""

    op: str
    attributes: Callable[[Any, torch.Tensor], dict[str, Any]]
    """Of a module for an input."""
    parameters: tuple[str, ...] = ()
    """Its inputs after the first."""
    buffers: tuple[str, ...] = ()
    """Its inputs after these."""
    settings: tuple[str, ...] = ()
    """What the module has that the attributes are made of, besides the input's type."""


class _Direct:
    """A module's call, prepared for tensors of these types."""

    __slots__ = ("call", "over", "prepared", "quick")

    def __init__(self, guard: _Guard, module: nn.Module, of: ModuleOp, tensors: tuple[torch.Tensor, ...], given: Any):
        info = info_of(of.op)
        self.prepared = prepare(info, tensors, given)
        requires = tuple([one.requires_grad for one in tensors])
        gradients = torch.is_grad_enabled()
        self.call: Recorded | None = None
        self.over = bool(getattr(module, "inplace", False)) and not self.prepared.repairs
        if gradients and any(requires) and info.differentiable:
            differentiation = self.prepared.differentiation(requires)
            self.over = self.over and not any(differentiation.inputs)
            self.call = Recorded(self.prepared, differentiation, vjp_of(of.op, given), self.over)
        conditions: list[Any] = [(torch.is_grad_enabled, (), gradients), (torch._C._len_torch_function_stack, (), 0)]
        if not module.__dict__["_gpunn_backend"]:
            conditions.append((_backend._chosen.get, (), _backend.chosen()))
        if tensors[0].is_cuda and of.op in PRODUCTS:
            read, arguments = flag_of(of.op)
            conditions.append((read, arguments, read(*arguments)))
        settings = ["_gpunn_backend", "training", *of.settings]
        self.quick = _core.ModuleCall(
            guard,
            [*(("_parameters", one) for one in of.parameters), *(("_buffers", one) for one in of.buffers)],
            [(one, module.__dict__[one]) for one in settings],
            conditions,
        )

    def run(self, tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
        if self.call is not None:
            return First.apply(self.call, *tensors)  # type: ignore[no-any-return]
        return (self.prepared.run_over(*tensors) if self.over else self.prepared.run(tensors))[0]


class _Known:
    """The prepared calls of a module. A copy of the module has none."""

    def __init__(self) -> None:
        self.calls: list[_Direct] = []

    def __deepcopy__(self, memo: Any) -> _Known:
        return _Known()

    def __reduce__(self) -> Any:
        return (_Known, ())


def forget(module: nn.Module) -> None:
    module.__dict__.pop("_gpunn_known", None)


def call(module: nn.Module, of: ModuleOp, input: torch.Tensor) -> torch.Tensor:
    """The first output of a module's op."""
    known: _Known | None = None
    if not _is_compiling():
        known = module.__dict__.get("_gpunn_known")
        if known is None:
            known = module.__dict__["_gpunn_known"] = _Known()
        for one in known.calls:
            same = one.quick.match(module.__dict__, input)
            if same is not None:
                return one.run(same)
    tensors = (input, *(getattr(module, one) for one in of.parameters + of.buffers))
    given = {**of.attributes(module, input), "backend": str(module.__dict__["_gpunn_backend"])}
    guard = _guard_of(tensors) if known is not None and _may_be_direct(tensors) else None
    if known is not None and guard is not None:
        made = _Direct(guard, module, of, tensors, given)
        known.calls = [made, *known.calls[: _MOST_KNOWN - 1]]
        return made.run(tensors)
    results = getattr(torch.ops.gpunn, of.op)(*tensors, **given)
    return results[0] if isinstance(results, tuple) else results  # type: ignore[no-any-return]


def _may_be_direct(tensors: Sequence[torch.Tensor]) -> bool:
    device = tensors[0].device.type
    return (
        all(_computes_only(one) for one in tensors)
        and _function_modes() == 0
        and device in ("cpu", "cuda")
        and all(one.device == tensors[0].device and one.layout is torch.strided for one in tensors)
        and not torch.is_autocast_enabled(device)
        and torch._C._get_tracing_state() is None
    )
