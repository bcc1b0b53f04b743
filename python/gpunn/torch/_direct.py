"""Calls of modules. A call that gpunn has seen before, with everything equal that changes its answer, passes PyTorch's
dispatcher by, which costs more than a small kernel. Whatever gpunn does not know runs PyTorch's own code."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad

from gpunn import _core
from gpunn.errors import UsageError
from gpunn.ops import _backend
from gpunn.ops._arrays import F32
from gpunn.ops._call import OpInfo, info_of
from gpunn.torch._precision import PRODUCTS, allowed, flag_of
from gpunn.torch._prepared import Form, Prepared, is_channels_last, prepare
from gpunn.torch._state import computes_only, is_plain, process
from gpunn.torch._twin import ModuleOp, Pytorch, Twin

# Of calls for inputs of the same sizes, and of sizes.
_MOST_KNOWN = 8
_MOST_SIZES = 64
_gradients_are_on = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling


# --- What a call looks like ---

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
        others = (x.double(), x.T, x[:1], x[0], torch.zeros(2, 2, requires_grad=True), x.to("meta"), torch._neg_view(x))
        with torch.autocast("cpu", torch.bfloat16):
            holds = not check(x)
        return found if holds and check(torch.ones(2, 2)) and not any(check(one) for one in others) else None
    except (TypeError, RuntimeError):
        return None


_guards = _guards_that_hold()


def _copied(value: Any) -> Any:
    """A setting that can be compared later. Raises TypeError if it may change without a trace."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (tuple, list, torch.Size):
        return type(value)(_copied(one) for one in value)
    raise TypeError(f"is of type {type(value).__name__}")


class _Look:
    """The attributes of a module, and which of them change its answer: those that the code of its class can read."""

    def __init__(self, module: nn.Module, twin: Twin) -> None:
        self.reason: str | None = None
        self.settings: dict[str, Any] = {}
        self.attributes: list[tuple[str, Any, bool]] = []
        for name, value in module.__dict__.items():
            if name not in twin.reads and name not in ("training", "_gpunn_backend"):
                self.attributes.append((name, None, False))
                continue
            try:
                kept = self.settings[name] = _copied(value)
            except TypeError as error:
                self.reason, kept = f"attribute '{name}', which {error}", None
            if hasattr(twin.original, name) and name not in twin.knows and name != "training":
                self.reason = f"a '{name}' of its own"
            self.attributes.append((name, kept, self.reason is None))
        missing = twin.knows - self.settings.keys()
        if missing and self.reason is None:
            self.reason = f"no attribute '{min(missing)}'"


def _conditions(module: nn.Module, op: str, tensors: Sequence[torch.Tensor]) -> list[tuple[Any, tuple[Any, ...], Any]]:
    """(function, arguments, answer) of what is set outside of the module and of its tensors."""
    count = torch._C._len_torch_function_stack()
    found: list[tuple[Any, tuple[Any, ...], Any]] = [
        (torch.is_grad_enabled, (), torch.is_grad_enabled()),
        (torch._C._len_torch_dispatch_stack, (), 0),
        (torch._C._get_deterministic_algorithms, (), False),
        (torch._C._len_torch_function_stack, (), count),
        *((torch._C._get_function_stack_at, (i,), torch._C._get_function_stack_at(i)) for i in range(count)),
    ]
    if not module.__dict__["_gpunn_backend"]:
        found.append((_backend._chosen.get, (), _backend.chosen()))
    device = tensors[0].device.type
    if torch.is_autocast_enabled(device):
        found.append((torch.get_autocast_dtype, (device,), torch.get_autocast_dtype(device)))
    if device == "cuda" and op in PRODUCTS:
        read, arguments = flag_of(op)
        found.append((read, arguments, read(*arguments)))
    return found


def _nothing_looks(twin: Twin) -> bool:
    """Whether PyTorch would only compute, by the functions that gpunn knows. A default device changes the functions
    that make tensors, and no other."""
    modes = [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]
    return (
        computes_only()
        and not process["forked"]
        and not torch._C._get_deterministic_algorithms()
        and all(type(mode) is torch.utils._device.DeviceContext for mode in modes)
        and all(functions.get(name) is function for functions, name, function in twin.functions)
        and all(read(*arguments) is method for read, arguments, method in twin.methods)
    )


# --- Autograd ---


class Recorded:
    """A call that autograd records."""

    __slots__ = ("differentiation", "gradients", "others", "over", "place", "prepared", "pytorch", "saves")

    def __init__(self, prepared: Prepared, requires: tuple[bool, ...], pytorch: Pytorch, over: bool) -> None:
        self.prepared, self.pytorch, self.over = prepared, pytorch, over
        self.differentiation = prepared.differentiation(requires)
        of = self.differentiation
        self.others = [i for i in pytorch.of.saves if not of.inputs[i]]
        self.saves = any(of.needed) or bool(self.others)
        # PyTorch does not save the output, which may then be overwritten: it is computed again.
        again = of.outputs[0] and pytorch.of.from_output is None
        self.place = sum(of.inputs) if again else None
        """Where the output belongs among the tensors that the gradient reads."""
        self.gradients: list[tuple[_Guard, Any]] = []

    def saved(self, tensors: tuple[torch.Tensor, ...], results: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        found = self.differentiation.saved(tensors, results)
        if self.place is not None:
            del found[self.place]
        return found + [tensors[i] for i in self.others]

    def gradient(self, dy: torch.Tensor, saved: tuple[Any, ...]) -> tuple[torch.Tensor | None, ...]:
        count = len(saved) - len(self.others)
        saved, others = saved[:count], saved[count:]
        if self.place is not None:
            with torch.no_grad():
                y = self.prepared.run(saved[: self.place])[0]
            saved = (*saved[: self.place], y, *saved[self.place :])
        if not _gradients_are_on() and torch._C._len_torch_dispatch_stack() == 0 and forward_ad._current_level < 0:
            for is_like, known in self.gradients:
                if is_like(dy):
                    return known.run(dy, saved, not self.prepared.is_direct)  # type: ignore[no-any-return]
            if computes_only() and is_plain(dy):
                made = self.prepared.gradient(self.differentiation, dy)
                guard = _guard_of((dy,))
                if guard is not None:
                    self.gradients = [(guard, made), *self.gradients[: _MOST_KNOWN - 1]]
                return made.run(dy, saved, not self.prepared.is_direct)
        return self.pytorch.gradient(self.differentiation, dy, saved, zip(self.others, others, strict=True))


class First(torch.autograd.Function):
    """A recorded call with its first output."""

    @staticmethod
    def forward(ctx: Any, call: Recorded, *tensors: torch.Tensor) -> Any:
        ctx.call = call
        if call.over:
            ctx.mark_dirty(*tensors)
            results = call.prepared.run_over(*tensors)
        else:
            results = call.prepared.run(tensors)
        ctx.save_for_backward(*call.saved(tensors, results))
        return results[0]

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        call = ctx.call
        return call.gradient(dy, ctx.saved_tensors if call.saves else ())


# --- Modules ---


class _Direct:
    """A module's call, prepared for tensors of these types."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        """Why the call runs PyTorch's own code."""
        self.match: Callable[[dict[str, Any], Any], tuple[torch.Tensor, ...] | None] | None = None
        self.prepared: Any = None
        self.call: Recorded | None = None
        self.casts: tuple[torch.dtype, ...] | None = None
        self.over = self.counts = False
        self.count = 0  # of the tensors that the op takes

    def prepare(self, pytorch: Pytorch, tensors: tuple[torch.Tensor, ...]) -> str | None:
        """Prepares the op for such tensors. Returns the reason if gpunn would not do what PyTorch does."""
        of, settings, input = pytorch.of, pytorch.settings, tensors[0]
        self.count = len(tensors)
        requires = tuple([one.requires_grad for one in tensors])
        inference = torch.is_inference_mode_enabled()
        records = _gradients_are_on() and any(requires) and not inference
        self.over = bool(pytorch.in_place)
        device, precision = max(0, input.get_device()), allowed(of.op, input.is_cuda)
        if not _backend.works_on(settings["_gpunn_backend"] or None, input.is_cuda, device, precision):
            return f"a backend that does not work on '{input.device}'"
        if any(one.numel() == 0 for one in tensors):
            return "an empty input"
        if any(one.device != input.device for one in tensors):
            return "tensors of several devices"
        if (records or self.over) and not inference and any(one.is_inference() for one in tensors):
            return "a tensor of inference mode"
        try:
            expected = pytorch.tried(tensors)
            given = {**of.attributes(types.SimpleNamespace(**settings), input), "backend": settings["_gpunn_backend"]}
        except Exception as error:  # PyTorch's own code raises it again
            return str(error)
        lows = (None, expected.dtype) if torch.is_autocast_enabled(input.device.type) else (None,)
        for low in lows:
            dtypes = tuple([_dtype_for(info_of(of.op), i, one, low) for i, one in enumerate(tensors)])
            self.casts = dtypes if any(d != one.dtype for d, one in zip(dtypes, tensors, strict=True)) else None
            taken = tuple([one.detach().to(dtype) for one, dtype in zip(tensors, dtypes, strict=True)])
            self.prepared = _prepared(of, given, taken, expected)
            if self.prepared is not None:
                pytorch.dtypes = tuple([low or one.dtype for one in tensors])
                break
        else:
            found = sorted({str(one.dtype) for one in tensors})
            return f"{', '.join(found)}, which the op does not take as PyTorch does"
        if self.over and not (self.prepared.is_direct and self.casts is None):
            return "in place on a tensor with gaps"
        if records:
            self.call = Recorded(self.prepared, requires, pytorch, self.over)
            if self.over and any(self.call.differentiation.inputs):
                return "in place, though the gradient reads the input"
        self.counts = of.op == "batch_norm"
        return None

    def run(self, module: Any, tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
        if self.reason is not None or (self.over and not _may_be_overwritten(tensors[0])):
            return type(module)._gpunn_twin.original.forward(module, tensors[0])  # type: ignore[no-any-return]
        if self.counts and (counter := module._buffers["num_batches_tracked"]) is not None:
            counter.add_(1)
        if len(tensors) != self.count:
            tensors = tensors[: self.count]
        if self.casts is not None:
            tensors = tuple([one.to(dtype) for one, dtype in zip(tensors, self.casts, strict=True)])
        if self.call is not None:
            return First.apply(self.call, *tensors)  # type: ignore[no-any-return]
        return (self.prepared.run_over(*tensors) if self.over else self.prepared.run(tensors))[0]  # type: ignore[no-any-return]


def _dtype_for(info: OpInfo, i: int, tensor: torch.Tensor, low: torch.dtype | None) -> torch.dtype:
    """The dtype in which an op takes a tensor: ``low`` of autocast, or f32 for halves where it takes no other."""
    if i in info.mutated or tensor.dtype not in _FLOATING:
        return tensor.dtype
    if info.input(i)["floating"]:
        return low or tensor.dtype
    return torch.float32 if info.input_codes(i) == (F32,) else tensor.dtype


def _prepared(
    of: ModuleOp, given: dict[str, Any], tensors: tuple[torch.Tensor, ...], expected: torch.Tensor
) -> Prepared | None:
    """The op, with a result of PyTorch's sizes, strides and dtype. None: it gives another."""
    input = tensors[0]
    # Of images that lie in both orders, the input decides.
    last = expected.dim() == 4 and expected.is_contiguous(memory_format=torch.channels_last)
    last = last and (not expected.is_contiguous() or is_channels_last(input))
    shapes = None if of.shapes is None else of.shapes(tensors)
    form = Form(last and input.dim() == 4, shapes, tuple(expected.shape), expected.stride())
    try:
        found = prepare(info_of(of.op), tensors, given, form)
    except UsageError:
        return None
    return found if found.dtype == expected.dtype else None


def _may_be_overwritten(tensor: torch.Tensor) -> bool:
    """Views and leaves have rules of their own, which PyTorch's code knows."""
    return not (tensor._is_view() or (tensor.is_leaf and tensor.requires_grad and _gradients_are_on()))


def lacks_dtype(module: nn.Module) -> str | None:
    """The dtype of a parameter that no op takes."""
    found = (one.dtype for one in module._parameters.values() if one is not None)
    return next((f"weights of {dtype}" for dtype in found if dtype not in _FLOATING), None)


_FLOATING = (torch.float32, torch.bfloat16, torch.float16)


class _Known:
    """The prepared calls of a module. A copy of the module has none."""

    def __init__(self) -> None:
        self.last: _Direct | None = None
        self.by_sizes: dict[torch.Size, list[_Direct]] = {}

    def like(self, input: torch.Tensor) -> Sequence[_Direct]:
        return self.by_sizes.get(input.shape, ())

    def add(self, made: _Direct, input: torch.Tensor) -> None:
        if len(self.by_sizes) >= _MOST_SIZES:
            self.by_sizes.clear()
        self.by_sizes[input.shape] = [made, *self.like(input)[: _MOST_KNOWN - 1]]
        self.last = made

    def __deepcopy__(self, memo: Any) -> _Known:
        return _Known()

    def __reduce__(self) -> Any:
        return (_Known, ())


def forget(module: nn.Module) -> None:
    module.__dict__.pop("_gpunn_known", None)


def call(module: Any, input: Any) -> Any:
    """The forward of a module that was replaced."""
    if _is_compiling():
        # An exported program is PyTorch's.
        if torch.compiler.is_exporting():
            return type(module)._gpunn_twin.original.forward(module, input)
        return _compiled(module, input)
    dictionary = module.__dict__
    known = dictionary.get("_gpunn_known")
    if known is not None and (last := known.last) is not None:
        same = last.match(dictionary, input)
        if same is not None:
            return last.run(module, same)
        has_sizes = type(input) in (torch.Tensor, nn.Parameter) and not input.is_nested
        for one in known.like(input) if has_sizes else ():
            same = one.match(dictionary, input)
            if same is not None:
                known.last = one
                return one.run(module, same)
    return _unknown(module, input)


def _unknown(module: Any, input: Any) -> Any:
    kind = type(module)
    twin: Twin = kind._gpunn_twin
    is_replaced = "_gpunn_backend" in module.__dict__ and "_gpunn_twin" in kind.__dict__
    if is_replaced and _nothing_looks(twin) and is_plain(input):
        # Before the look at the attributes, among which it is.
        if "_gpunn_known" not in module.__dict__:
            module.__dict__["_gpunn_known"] = _Known()
        made = _study(module, twin, input)
        if made is not None:
            return made[0].run(module, made[1])
    return twin.original.forward(module, input)


def _study(module: Any, twin: Twin, input: torch.Tensor) -> tuple[_Direct, tuple[torch.Tensor, ...]] | None:
    """The call, which the module remembers, and its tensors. None: a tensor is of a kind that gpunn does not know."""
    look = _Look(module, twin)
    made = _Direct(look.reason or twin.refuses(module))
    of = twin.op(module) if made.reason is None else None
    stored = {name: one for name, one in (*module._parameters.items(), *module._buffers.items()) if one is not None}
    names = [*of.parameters, *of.buffers] if of is not None else []
    missing = set(names) - stored.keys()
    if missing:
        of, names, made.reason = None, [], f"no {min(missing)}"
    count = 1 + len(names)
    names += [name for name in stored if name not in names]
    tensors = (input, *(stored[name] for name in names))
    if not all(is_plain(one) for one in tensors):
        return None
    if of is not None:
        made.reason = made.prepare(Pytorch(twin, of, look.settings), tensors[:count])
    guard = _guard_of(tensors)
    if guard is not None:
        parameters, buffers = (
            [(name, one is not None, -1 if one is None else names.index(name) + 1) for name, one in part.items()]
            for part in (module._parameters, module._buffers)
        )
        watched = [(forward_ad.__dict__, "_current_level", -1), (process, "forked", False), *twin.functions]
        conditions = [*_conditions(module, of.op if of is not None else "", tensors), *twin.methods]
        seen = _core.ModuleCall(guard, len(tensors), look.attributes, parameters, buffers, watched, conditions)
        made.match = seen.match
        module.__dict__["_gpunn_known"].add(made, input)
    return made, tensors


def _compiled(module: Any, input: torch.Tensor) -> torch.Tensor:
    """The forward while PyTorch's compiler looks, which guards what is read here: a registered op, if it fits."""
    twin: Twin = type(module)._gpunn_twin
    # The attributes themselves, which the compiler guards, unlike the names in the module's dictionary.
    has_own = any(getattr(getattr(module, name), "__func__", None) is not found for name, found in twin.helpers)
    is_transformed = torch._C._functorch.peek_interpreter_stack() is not None
    # Each look at a parametrized weight computes it, and changes the state of a spectral norm.
    is_replaced = "_gpunn_backend" in module.__dict__ and not hasattr(module, "parametrizations")
    is_replaced = is_replaced and not has_own and not is_transformed
    if is_replaced and twin.refuses(module) is None and not getattr(module, "inplace", False):
        of = twin.op(module)
        tensors = [input, *(getattr(module, name) for name in of.parameters + of.buffers)]
        if _fits_compiled(of, module, tensors):
            if of.shapes is not None:
                tensors = [one.reshape(shape) for one, shape in zip(tensors, of.shapes(tensors), strict=True)]
            counter = getattr(module, "num_batches_tracked", None)
            if of.op == "batch_norm" and counter is not None:
                counter.add_(1)
            given = {**of.attributes(module, input), "backend": str(module.__dict__["_gpunn_backend"])}
            results = getattr(torch.ops.gpunn, of.op)(*tensors, **given)
            y = results[0] if isinstance(results, tuple) else results
            return y if of.shapes is None else y.reshape((*input.shape[:-1], -1))
    return twin.original.forward(module, input)  # type: ignore[no-any-return]


def _fits_compiled(of: ModuleOp, module: Any, tensors: Sequence[torch.Tensor]) -> bool:
    input = tensors[0]
    if any(one is None for one in tensors) or input.device.type not in ("cpu", "cuda") or input.numel() == 0:
        return False
    if torch.is_autocast_enabled(input.device.type) and of.op not in PRODUCTS:
        return False
    codes = {one.dtype for one in tensors[1:]}
    takes = codes <= ({input.dtype} if of.op in PRODUCTS else {torch.float32})
    return takes and input.dtype in _FLOATING and of.fits(module, input)
