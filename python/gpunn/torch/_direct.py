"""Calls of prepared ops that pass PyTorch's dispatcher by: the dispatcher costs more than a small kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from gpunn.ops import _backend
from gpunn.ops._call import info_of
from gpunn.torch._precision import PRODUCTS, allowed
from gpunn.torch._prepared import Differentiation, Prepared, encode, prepare

_MOST_KNOWN = 8


_PLAIN = (torch.Tensor, nn.Parameter)
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transformation = torch._C._functorch.peek_interpreter_stack
_gradients_are_on = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling


def _computes_only(tensor: torch.Tensor) -> bool:
    """Whether no mode and no transformation wants to see an op: no fake tensors, no tracing, no vmap."""
    return type(tensor) in _PLAIN and _dispatch_modes() == 0 and _transformation() is None


class Differentiable(torch.autograd.Function):
    """A call that is recorded for autograd. The first output has a gradient."""

    @staticmethod
    def forward(ctx: Any, call: tuple[Prepared, Differentiation, Any, bool], *tensors: torch.Tensor) -> Any:
        prepared, differentiation, _, over = call
        ctx.call = call
        ctx.set_materialize_grads(False)
        if over:
            (x,) = tensors
            ctx.mark_dirty(x)
            ctx.save_for_backward(*differentiation.saved(tensors, prepared.run_over(x)))
            return x
        results = prepared.run(tensors)
        ctx.save_for_backward(*differentiation.saved(tensors, results))
        if len(results) == 1:
            return results[0]
        ctx.mark_non_differentiable(*results[1:])
        return results

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        prepared, differentiation, vjp, _ = ctx.call
        dy = cotangents[0]
        if dy is None:
            return (None,) * (1 + len(differentiation.kinds))
        saved = ctx.saved_tensors
        # A gradient of gradients, which there is none of, is refused by the dispatcher.
        if not _gradients_are_on() and _computes_only(dy):
            return prepared.gradient(differentiation, dy, saved)
        return flows_of(differentiation, vjp(dy, saved, differentiation))


def flows_of(differentiation: Differentiation, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """A None, then the gradient of each input."""
    found = iter(gradients)
    return (None, *(next(found) if want else None for want in differentiation.wanted))


def vjp_of(name: str, attributes: dict[str, Any]) -> Callable[..., list[torch.Tensor]]:
    """The registered gradient of an op: the gradients that are wanted."""
    overload = getattr(torch.ops.gpunn, f"{name}_vjp").default

    def run(dy: torch.Tensor, saved: Sequence[Any], differentiation: Differentiation) -> list[torch.Tensor]:
        count = len(differentiation.kinds)
        inputs, outputs = list(saved[:count]), list(saved[count:])
        found: list[torch.Tensor] = overload(
            dy, inputs, outputs, encode(differentiation.kinds), differentiation.wanted, **attributes
        )
        return found

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


class _Direct:
    """A module's call, prepared for tensors of these types."""

    __slots__ = ("call", "chosen", "gradients", "guard", "precision", "records", "settings")

    def __init__(
        self, guard: _Guard, op: str, tensors: tuple[torch.Tensor, ...], settings: Any, attributes: Any, inplace: bool
    ):
        info = info_of(op)
        prepared = prepare(info, tensors, attributes)
        requires = tuple([one.requires_grad for one in tensors])
        self.guard = guard
        self.settings = settings
        self.chosen = _backend.chosen()
        self.precision = allowed(op, tensors[0].is_cuda)
        self.gradients = _gradients_are_on()
        self.records = self.gradients and any(requires) and info.differentiable
        differentiation = prepared.differentiation(requires) if self.records else None
        over = inplace and not prepared.repairs
        if over and differentiation is not None:
            over = not any(differentiation.inputs)
        self.call = (prepared, differentiation, vjp_of(op, attributes) if self.records else None, over)

    def run(self, tensors: tuple[torch.Tensor, ...]) -> Any:
        if self.records:
            return Differentiable.apply(self.call, *tensors)
        prepared, _, _, over = self.call
        results = prepared.run_over(*tensors) if over else prepared.run(tensors)
        return results[0] if len(results) == 1 else results


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


def call(
    module: nn.Module,
    op: str,
    tensors: tuple[torch.Tensor, ...],
    settings: tuple[Any, ...],
    attributes: Callable[..., dict[str, Any]],
    inplace: bool = False,
) -> Any:
    """Runs an op for a module. ``attributes(*settings)`` are those of the op; ``settings`` say whether they are others
    than in the last call. ``inplace``: the output may take the place of the only input."""
    if _is_compiling() or _function_modes() > 0:
        return getattr(torch.ops.gpunn, op)(*tensors, **attributes(*settings))
    known = module.__dict__.get("_gpunn_known")
    if known is None:
        known = module.__dict__["_gpunn_known"] = _Known()
    gradients = _gradients_are_on()
    for one in known.calls:
        if (
            one.gradients is gradients
            and one.settings == settings
            and one.guard(*tensors)
            and one.chosen is _backend.chosen()
            and (op not in PRODUCTS or one.precision == allowed(op, tensors[0].is_cuda))
        ):
            return one.run(tensors)
    given = attributes(*settings)
    guard = _guard_of(tensors) if _may_be_direct(tensors) else None
    if guard is not None:
        made = _Direct(guard, op, tensors, settings, given, inplace)
        known.calls = [made, *known.calls[: _MOST_KNOWN - 1]]
        return made.run(tensors)
    return getattr(torch.ops.gpunn, op)(*tensors, **given)


def _may_be_direct(tensors: Sequence[torch.Tensor]) -> bool:
    device = tensors[0].device.type
    return (
        all(_computes_only(one) for one in tensors)
        and device in ("cpu", "cuda")
        and all(one.device == tensors[0].device and one.layout is torch.strided for one in tensors)
        and not torch.is_autocast_enabled(device)
        and torch._C._get_tracing_state() is None
    )
