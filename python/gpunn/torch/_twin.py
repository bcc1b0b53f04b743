"""What gpunn knows of a class of ``torch.nn``, and PyTorch's own code of its modules."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from gpunn.torch._prepared import Differentiation

_gradients_are_on = torch.is_grad_enabled


class ModuleOp(NamedTuple):
    """The op that a module is."""

    op: str
    attributes: Callable[[Any, torch.Tensor], dict[str, Any]]
    """Of a module for an input."""
    fits: Callable[[Any, torch.Tensor], bool]
    """Whether the input has a shape that the module accepts and the op computes."""
    parameters: tuple[str, ...] = ()
    """Its inputs after the first."""
    buffers: tuple[str, ...] = ()
    """Its inputs after these."""
    shapes: Callable[[Sequence[torch.Tensor]], tuple[tuple[int, ...], ...]] | None = None
    """The shapes of the inputs in the kernel, if they are not those of the tensors."""
    from_output: Callable[[dict[str, Any], torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    """PyTorch's gradient of the input, of the module's settings, the output's gradient and the output."""
    saves: tuple[int, ...] = ()
    """The inputs that PyTorch saves even if the gradient does not read them. A second backward pass, or one after a
    change of these, then raises."""


class Twin(NamedTuple):
    """A class of ``torch.nn`` and what gpunn knows of it."""

    original: type[nn.Module]
    knows: frozenset[str]
    """The attributes of a module that its forward reads and that ``refuses`` and ``op`` respect."""
    refuses: Callable[[Any], str | None]
    """Why a module as it is set now must run PyTorch's own code; None: gpunn can run it."""
    op: Callable[[Any], ModuleOp]
    reads: frozenset[str]
    """All names that its forward can read of a module."""
    functions: tuple[tuple[Any, str, Any], ...]
    """(dictionary, name, value) of the functions of PyTorch in its forward."""
    methods: tuple[tuple[Any, tuple[Any, ...], Any], ...]
    """(getattr, (class, name), value) of its methods."""
    helpers: tuple[tuple[str, Any], ...]
    """(name, value) of its methods that its forward calls."""


_OWN = frozenset(nn.Module().__dict__)


def twin_of(example: nn.Module, knows: Sequence[str], refuses: Any, op: Any) -> Twin:
    original = type(example)
    names, methods = _code_of(original)
    settings = set(example.__dict__) - _OWN
    unknown = sorted(names & settings - set(knows))

    def reason(module: Any) -> str | None:
        if unknown:
            return f"attribute '{unknown[0]}', which this version of gpunn does not know"
        try:
            return refuses(module)  # type: ignore[no-any-return]
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            return f"settings that gpunn can't read: {error}"

    return Twin(
        original,
        frozenset(knows),
        reason,
        op,
        frozenset(settings | {*example._parameters, *example._buffers} | (names & set(dir(original)))),
        tuple(
            (vars(functional), name, vars(functional)[name])
            for name in sorted(names & vars(functional).keys())
            if callable(vars(functional)[name])
        ),
        tuple((getattr, (original, name), getattr(original, name)) for name in sorted(methods)),
        tuple((name, getattr(original, name)) for name in sorted(methods - {"forward"})),
    )


def _code_of(original: type[nn.Module]) -> tuple[set[str], set[str]]:
    """The names in the code of a class's forward and of the methods that it calls, and these methods."""
    names: set[str] = {"forward"}
    methods: set[str] = set()
    while found := {name for name in names - methods if isinstance(getattr(original, name, None), types.FunctionType)}:
        methods |= found
        for name in found:
            names |= set(getattr(original, name).__code__.co_names)
    return names, methods


# --- PyTorch's own code ---


class Pytorch:
    """The module as it was at a call, with tensors that the caller chooses."""

    def __init__(self, twin: Twin, of: ModuleOp, settings: dict[str, Any]) -> None:
        self.original, self.of = twin.original, of
        self.in_place = settings.get("inplace", False)
        self.dtypes: tuple[torch.dtype, ...] = ()
        """Those in which PyTorch computes, by which gpunn's results are made."""
        self.settings = {**settings, **({"inplace": False} if "inplace" in settings else {})}

    def recomputed(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self([one.to(dtype) for one, dtype in zip(tensors, self.dtypes, strict=True)])

    def __call__(self, tensors: Sequence[Any]) -> torch.Tensor:
        module: Any = object.__new__(self.original)
        module.__dict__.update(nn.Module().__dict__)
        module.__dict__.update(self.settings)
        given = iter(tensors[1:])
        unset = dict.fromkeys(("weight", "bias", "num_batches_tracked"))
        module.__dict__["_parameters"] = {**unset, **{name: next(given) for name in self.of.parameters}}
        module.__dict__["_buffers"] = {name: next(given) for name in self.of.buffers}
        return self.original.forward(module, tensors[0])  # type: ignore[no-any-return]

    def tried(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The result for these tensors, which stay as they are. Nothing is recorded."""
        benchmark = torch.backends.cudnn.benchmark
        try:
            torch.backends.cudnn.benchmark = False
            with torch.no_grad():
                counted = 1 + len(self.of.parameters)
                return self([one.detach() if i < counted else one.clone() for i, one in enumerate(tensors)])
        finally:
            torch.backends.cudnn.benchmark = benchmark

    def gradient(
        self,
        differentiation: Differentiation,
        dy: torch.Tensor,
        saved: Sequence[torch.Tensor],
        others: Iterable[tuple[int, torch.Tensor]],
    ) -> tuple[torch.Tensor | None, ...]:
        """A None, then the gradient of each input, which autograd records if it is to. ``others`` are inputs by place
        that were saved besides those that gpunn's gradient reads."""
        again = _gradients_are_on()
        inputs, outputs = differentiation.spread(saved)
        for place, tensor in others:
            inputs[place] = tensor
        with torch.enable_grad(), torch.autocast(dy.device.type, enabled=False):
            if self.of.from_output is not None and outputs[0] is not None:
                with torch.set_grad_enabled(again):
                    return (None, self.of.from_output(self.settings, dy, outputs[0]))
            tensors = []
            for one, kind, wanted in zip(inputs, differentiation.kinds, differentiation.wanted, strict=True):
                # The gradient does not depend on the numbers of a tensor that was not saved.
                sizes = kind.sizes or kind.shape
                if one is None:
                    given = torch.zeros(sizes, dtype=kind.dtype, device=dy.device)
                else:  # view_as can change strides of single images, of which PyTorch's batch norm makes something else
                    given = torch.ops.aten.alias(one)
                tensors.append(given.requires_grad_() if wanted and not given.requires_grad else given)
            targets = [one for one, wanted in zip(tensors, differentiation.wanted, strict=True) if wanted]
            if torch._C._functorch.peek_interpreter_stack() is None:
                found = iter(torch.autograd.grad(self.recomputed(*tensors), targets, dy, create_graph=again))
                return (None, *(next(found) if want else None for want in differentiation.wanted))
        # Several output gradients at once, as of is_grads_batched=True.
        _, pull = torch.func.vjp(self.recomputed, *tensors)
        with torch.set_grad_enabled(again):
            gradients = pull(dy)
        return (None, *(one if want else None for one, want in zip(gradients, differentiation.wanted, strict=True)))
