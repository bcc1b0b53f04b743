"""Draws modules, changes of them, inputs and modes at random, and compares ``gpunn.torch`` with PyTorch's own module.

A world is a module that was replaced and an untouched copy of it. Each step changes both, or calls both and compares
values, gradients, buffers, layouts, dtypes, what was overwritten, and what was raised.
"""

from __future__ import annotations

import copy
import io
import pickle
import random
import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

import gpunn.torch
from torch_calls import CALLS, Outcome, compiled, forward

F = torch.nn.functional
Draw = random.Random


@dataclass
class World:
    """Two modules that must mean the same, and how they came to be."""

    ours: Any
    theirs: Any
    shape: tuple[int, ...]
    story: list[str] = field(default_factory=list)

    def change(self, text: str, apply: Callable[[Any], Any]) -> None:
        self.story.append(text)
        raised: list[type[Exception] | None] = []
        for one in (self.ours, self.theirs):
            try:
                apply(one)
                raised.append(None)
            except Exception as error:
                raised.append(type(error))
        if raised[0] is not raised[1]:
            raise DifferenceError(f"{text}: {raised[0]} in place of {raised[1]}")


class DifferenceError(AssertionError):
    """A step in which gpunn and PyTorch part."""


# --- Modules and what changes in them ---


def _images(draw: Draw, channels: int) -> tuple[int, ...]:
    return (draw.choice([1, 2, 3]), channels, draw.choice([1, 4, 5, 7]), draw.choice([1, 4, 5, 7]))


def _rows(draw: Draw, width: int) -> tuple[int, ...]:
    return (*(draw.choice([1, 2, 3]) for _ in range(draw.choice([0, 1, 1, 2, 3]))), width)


def made(draw: Draw) -> tuple[Any, tuple[int, ...]]:
    """A module and the shape of an input that it takes."""
    c, maybe = draw.choice([1, 2, 4]), draw.random() < 0.5
    kind = draw.choice(sorted(SETTINGS))
    if kind == "Conv2d":
        groups = draw.choice([1, 1, c])
        size, pad = draw.choice([1, 2, 3, (3, 1)]), draw.choice([0, 0, 1, "same", "valid"])
        step = 1 if pad == "same" else draw.choice([1, 2])
        return nn.Conv2d(c, 4, size, step, pad, draw.choice([1, 1, 2]), groups, maybe), _images(draw, c)
    if kind == "Linear":
        return nn.Linear(c, draw.choice([1, 3]), bias=maybe), _rows(draw, c)
    if kind == "BatchNorm2d":
        return nn.BatchNorm2d(c, momentum=draw.choice([0.1, 0.5, None]), affine=draw.random() < 0.8), _images(draw, c)
    if kind == "BatchNorm1d":
        return nn.BatchNorm1d(c), draw.choice([(3, c), (2, c, 5), (4, c)])
    if kind == "LayerNorm":
        shape = draw.choice([(2, 3, 4), (3, 4), (4,), (2, 1, 3, 4)])
        return nn.LayerNorm(shape[-draw.choice([1, 1, len(shape)]) :], elementwise_affine=draw.random() < 0.8), shape
    if kind in ("MaxPool2d", "AvgPool2d"):
        size = draw.choice([1, 2, 3, (2, 1), [2, 2]])
        return getattr(nn, kind)(size, draw.choice([None, 1, 2]), draw.choice([0, 0, 1])), _images(draw, c)
    if kind == "AdaptiveAvgPool2d":
        return nn.AdaptiveAvgPool2d(draw.choice([1, 1, (1, 1), 2])), _images(draw, c)
    shape = draw.choice([(), (3,), (2, 3), _images(draw, c), (2, 3, 1, 2, 2)])
    return (getattr(nn, kind)(inplace=True) if maybe and "inplace" in SETTINGS[kind] else getattr(nn, kind)()), shape


_POOL: dict[str, list[Any]] = {
    "kernel_size": [1, 2, 3, (2, 3)],
    "stride": [1, 2, None],
    "padding": [0, 1, (1, 0)],
    "ceil_mode": [True, False],
}
_NORM: dict[str, list[Any]] = {
    "eps": [1e-5, 1e-3, 0.5],
    "momentum": [0.1, 0.9, None, 0.0],
    "track_running_stats": [True, False],
}
SETTINGS: dict[str, dict[str, list[Any]]] = {
    "Conv2d": {
        "stride": [1, 2, (2, 1)],
        "padding": [0, 1, (1, 0), "same", "valid", "nonsense"],
        "dilation": [1, 2, (1, 2)],
        "padding_mode": ["zeros", "reflect", "circular", "zeros"],
        "groups": [1, 2, 1],
    },
    "Linear": {"in_features": [3]},
    "BatchNorm2d": _NORM,
    "BatchNorm1d": _NORM,
    "LayerNorm": {"eps": [1e-5, 1e-3, 0.5], "normalized_shape": [(4,), (3, 4), (2,)]},
    "ReLU": {"inplace": [True, False]},
    "LeakyReLU": {"inplace": [True, False], "negative_slope": [0.1, 0.5, 0.0, -0.5, 2]},
    "Sigmoid": {},
    "Tanh": {},
    "GELU": {"approximate": ["none", "tanh", "nonsense"]},
    "SiLU": {"inplace": [True, False]},
    # PyTorch writes out of bounds where padding and dilation leave a window without an element.
    "MaxPool2d": {**_POOL, "dilation": [1, (1, 1)], "return_indices": [True, False, False]},
    "AvgPool2d": {**_POOL, "count_include_pad": [True, False], "divisor_override": [None, 3, None]},
    "AdaptiveAvgPool2d": {"output_size": [1, 2, (1, 1), (1, None), [1, 1]]},
}


def _tensor(seed: int, shape: Any, like: Any) -> Any:
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(like)


def _with_gaps(tensor: Any) -> Any:
    return torch.stack([tensor, tensor], -1)[..., 0]


def _add_bias(module: Any, seed: int) -> None:
    weight = module._parameters["weight"]
    size = weight.shape if isinstance(module, nn.LayerNorm) else weight.shape[:1]
    module.bias = nn.Parameter(_tensor(seed, size, weight))


def _clear(module: Any, name: str) -> None:
    setattr(module, name, None)


def _own_forward(module: Any) -> None:
    method = type(module)._conv_forward
    module._conv_forward = lambda x, w, b: method(module, x, w, b) + 1


def _norm_of_weight(module: Any) -> None:
    if nn.utils.parametrize.is_parametrized(module):
        nn.utils.parametrize.remove_parametrizations(module, "weight")
    else:
        nn.utils.parametrizations.weight_norm(module)


def _saved(module: Any, how: str) -> Any:
    if how == "deepcopy":
        return copy.deepcopy(module)
    if how == "copy":
        return copy.copy(module)
    if how == "pickle":
        return pickle.loads(pickle.dumps(module))
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def changed(draw: Draw, world: World) -> None:
    """Changes both modules."""
    name, seed = type(world.theirs).__name__.removeprefix("Parametrized"), draw.randrange(1 << 30)
    settings, parameters = SETTINGS[name], list(world.theirs._parameters)
    kind = draw.choice(["setting"] * 4 + ["mode", "mode", "parameter", "parameter", "dtype", "copy", "odd", "buffer"])
    if kind == "setting" and settings:
        setting = draw.choice(sorted(settings))
        value = draw.choice(settings[setting])
        world.change(f"module.{setting} = {value!r}", lambda m: setattr(m, setting, copy.copy(value)))
    elif kind == "mode":
        training = draw.random() < 0.6
        world.change(f"module.train({training})", lambda m: m.train(training))
    elif kind == "parameter" and parameters:
        which, what = draw.choice(parameters), draw.choice(["freeze", "thaw", "gaps", "last", "none", "bias", "data"])
        actions: dict[str, Callable[[Any], Any]] = {
            "freeze": lambda m: m._parameters[which].requires_grad_(False),
            "thaw": lambda m: m.requires_grad_(True),
            "gaps": lambda m: setattr(m._parameters[which], "data", _with_gaps(m._parameters[which].data)),
            "last": lambda m: m.to(memory_format=torch.channels_last),
            "none": lambda m: _clear(m, "bias"),
            "bias": lambda m: _add_bias(m, seed),
            "data": lambda m: m._parameters[which].data.add_(0.25),
        }
        world.change(f"{what} {which} ({seed})", actions[what])
    elif kind == "dtype":
        method = draw.choice(["float", "float", "half", "bfloat16", "double"])
        world.change(f"module.{method}()", lambda m: getattr(m, method)())
    elif kind == "copy":
        how = draw.choice(["deepcopy", "copy", "pickle", "save"])
        world.story.append(f"module = {how} of module")
        if "_conv_forward" not in world.ours.__dict__ and not nn.utils.parametrize.is_parametrized(world.theirs):
            world.ours, world.theirs = _saved(world.ours, how), _saved(world.theirs, how)
    elif kind == "buffer" and world.theirs._buffers:
        what = draw.choice(["reset", "none", "counter", "gaps"])
        buffers: dict[str, Callable[[Any], Any]] = {
            "reset": lambda m: m.reset_running_stats(),
            "none": lambda m: _clear(m, "running_mean"),
            "counter": lambda m: _clear(m, "num_batches_tracked"),
            "gaps": lambda m: setattr(m, "running_var", _with_gaps(m.running_var)),
        }
        world.change(f"buffers: {what}", buffers[what])
    elif kind == "odd":
        what = draw.choice(["note", "note", "norm", "own", "delete"])
        odd: dict[str, Callable[[Any], Any]] = {
            "note": lambda m: setattr(m, "note", getattr(m, "note", 0) + 1),
            "norm": _norm_of_weight,
            "own": _own_forward,
            "delete": lambda m: delattr(m, "note"),
        }
        world.change(f"odd: {what}", odd[what])


# --- Inputs ---


def given(draw: Draw, world: World) -> tuple[str, Callable[[], Any]]:
    """A description of an input and what makes it, for each module afresh."""
    shape, seed = list(world.shape), draw.randrange(1 << 30)
    odd = draw.random()
    if odd < 0.04 and shape:
        shape[draw.randrange(len(shape))] += 1
    elif odd < 0.07 and shape:
        shape[draw.randrange(len(shape))] = 0
    elif odd < 0.09 and shape:
        shape = shape[1:]
    elif odd < 0.12 and shape:
        shape[0] = draw.choice([1, 2, 5])
    dtypes = [parameter.dtype for parameter in world.theirs._parameters.values() if parameter is not None][:1]
    dtype = draw.choice((dtypes or [torch.float32]) * 12 + [torch.float32, torch.bfloat16, torch.float64, torch.int64])
    layout = draw.choice(["", "", "", "last", "gaps", "permuted", "expanded", "negative", "sliced", "strange"])
    values = draw.choice([""] * 8 + ["ties", "ties", "large", "large", "nan"])

    def make() -> Any:
        x = _tensor(seed, shape, torch.empty(0, dtype=torch.float32))
        if values == "ties":
            x = x.round()
        elif values == "nan" and x.numel():
            x.view(-1)[seed % x.numel()] = [float("nan"), float("inf"), -float("inf")][seed % 3]
        elif values == "large":
            x = x * 1e3
        x = x.to(dtype)
        if layout == "last" and x.dim() == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        elif layout == "gaps":
            x = _with_gaps(x)
        elif (
            layout == "permuted"
            and x.dim() > 1
            and not (
                # Its bias gradient is not the sum of the output's where one row lies so.
                x.shape[0] == 1 and isinstance(world.theirs, nn.modules.batchnorm._BatchNorm)
            )
        ):
            x = x.transpose(0, -1).contiguous().transpose(0, -1)
        elif layout == "expanded" and x.dim() > 1:
            x = x[:1].expand_as(x)
        elif layout == "negative" and x.is_floating_point():
            x = torch._neg_view(x)
        elif layout == "sliced" and x.dim():
            x = torch.cat([x, x])[: x.shape[0]]
        elif layout == "strange" and x.dim() == 4:
            x = x.as_strided(x.shape, [1 if n == 1 else s for n, s in zip(x.shape, x.stride(), strict=True)])
        return x

    return f"x = {shape} {dtype} {layout} {values} ({seed})", make


# --- Calls ---


def _mode(draw: Draw) -> tuple[str, Callable[[ExitStack], None]]:
    kind = draw.choice([""] * 8 + ["no_grad", "inference", "autocast", "autocast", "device", "deterministic"])
    enters: dict[str, Callable[[ExitStack], None]] = {
        "": lambda stack: None,
        "no_grad": lambda stack: stack.enter_context(torch.no_grad()),
        "inference": lambda stack: stack.enter_context(torch.inference_mode()),
        "autocast": lambda stack: stack.enter_context(torch.autocast("cpu", torch.bfloat16)),
        "device": lambda stack: stack.enter_context(torch.device("cpu")),
        "deterministic": _deterministic,
    }
    return kind, enters[kind]


def _deterministic(stack: ExitStack) -> None:
    torch.use_deterministic_algorithms(True)
    stack.callback(torch.use_deterministic_algorithms, False)


def _run(module: Any, make: Callable[[], Any], enter: Callable[[ExitStack], None], call: Any) -> Any:
    """What a call gives and leaves: tensors, or what it raised."""
    for parameter in module.parameters():
        parameter.grad = None
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        enter(stack)
        with torch.autocast("cpu", enabled=False):
            x = make()
        before = x._version if not x.is_inference() else 0
        try:
            found = call(module, x)
        except Exception as error:
            found = error
        flat = found if isinstance(found, Exception) else _flat(found, x)
        changed = not x.is_inference() and x._version != before
    if isinstance(flat, Exception):
        return flat, [], changed
    return flat, [x.detach(), *(one.detach().clone() for one in module.buffers())], changed


def _flat(found: Outcome, x: Any) -> list[Any]:
    flat: list[Any] = []
    for one in found:
        for part in one if isinstance(one, tuple) else (one,):
            flat += [part, part is x] if isinstance(part, torch.Tensor) else [part]
    return flat


def _message(error: Exception) -> str:
    return re.sub(r"0x[0-9a-f]+|Backward\w*|First\w*|\w+Backward0?", "", str(error)).strip()[:60]


# Of these calls the first result is the module's output, and the others are gradients that PyTorch stores.
_LAID_OUT = frozenset(
    {"forward", "backward", "middle", "view", "plain view", "checkpoint", "hooked", "offloaded", "flops", "vmap"}
)


def _look(tensor: Any, first: bool, name: str) -> tuple[Any, ...]:
    """Of an output all strides count; of a stored gradient those of more than one element; of others none."""
    pairs = list(zip(tensor.shape, tensor.stride(), strict=True)) if name in _LAID_OUT and tensor.numel() else []
    strides = tuple(stride for size, stride in pairs if first or size > 1)
    return tuple(tensor.shape), strides, tensor.dtype, tensor.requires_grad, tensor.is_inference()


def _distance(a: Any, b: Any) -> float:
    """The largest difference; infinite where only one of them is not a number, or an infinity."""
    a, b = a.detach().double(), b.detach().double()
    same = (a == b) | (a.isnan() & b.isnan())
    if bool(same.all()):
        return 0.0
    apart = (a - b).abs()[~same]
    return float(apart.nan_to_num(nan=float("inf")).max())


def _scale(results: list[Any]) -> float:
    """The largest finite number among the results. Those that cancel out are as exact as their terms."""
    finite = [one.detach().double().abs() for one in results if isinstance(one, torch.Tensor)]
    return max([0.0, *(float(one[one.isfinite()].max()) for one in finite if bool(one.isfinite().any()))])


def _equal(ours: Any, theirs: Any, exact: Any, low: bool, scale: float) -> str | None:
    """What differs between two tensors, apart from their layout."""
    if ours.numel() == 0 or not theirs.is_floating_point():
        return None if torch.equal(ours, theirs) else "other numbers"
    between = _distance(ours, theirs)
    dtype = torch.bfloat16 if low else theirs.dtype
    allowed = 16 * torch.finfo(dtype).eps * (1 + scale)
    if between <= allowed:
        return None
    if exact is None or exact.shape != theirs.shape:
        return f"{between:.3g} apart, {allowed:.3g} is allowed"
    # Each against the same in float64: gpunn may be as far from it as PyTorch is, a few times.
    far, off = _distance(ours, exact), _distance(theirs, exact)
    return None if far <= 8 * off + allowed else f"{far:.3g} from float64, and PyTorch {off:.3g}"


def _in_double(world: World, make: Callable[[], Any], call: Any) -> Any:
    module = copy.deepcopy(world.theirs).double()
    x = make()
    return _run(module, lambda: make().double() if x.is_floating_point() else make(), lambda stack: None, call)[0]


def called(draw: Draw, world: World, compiles: bool) -> None:
    """Calls both modules and compares."""
    text, make = given(draw, world)
    mode, enter = _mode(draw)
    weights = [weight for weight, _, _ in CALLS]
    _, name, call = draw.choices(CALLS, weights)[0]
    if isinstance(world.theirs, nn.ReLU) and " nan " in text:
        name, call = "forward", forward  # the gradient at what is not a number is 0, and PyTorch's the output's
    if compiles:
        name, call = "compiled", compiled
    world.story.append(f"{name} in {mode or 'no mode'}, {text}")
    before = copy.deepcopy(world.theirs) if "_conv_forward" not in world.theirs.__dict__ else None
    ours, our_rest, our_change = _run(world.ours, make, enter, call)
    theirs, their_rest, their_change = _run(world.theirs, make, enter, call)
    # What was rounded otherwise is no difference later.
    for a, b in zip(world.ours.buffers(), world.theirs.buffers(), strict=True):
        a.data.copy_(b)
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if type(ours) is not type(theirs) or (not compiles and _message(ours) != _message(theirs)):
            raise DifferenceError(f"{ours!r} in place of {theirs!r}")
        return
    low = mode == "autocast" or any(
        one.dtype in (torch.bfloat16, torch.float16) for one in theirs if isinstance(one, torch.Tensor)
    )
    exact: Any = None
    scale = _scale([*theirs, *their_rest])
    for i, (a, b) in enumerate(zip([*ours, *our_rest], [*theirs, *their_rest], strict=True)):
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or a != b:
                raise DifferenceError(f"result {i}: {a!r} in place of {b!r}")
            continue
        look, expected = (_look(one, i == 0, name) for one in (a, b))
        if look != expected:
            raise DifferenceError(f"result {i}: {look} in place of {expected}")
        different = _equal(a, b, None, low, scale)
        if different and before is not None and i < len(theirs):
            if exact is None:
                exact = _in_double(World(None, before, world.shape), make, call)
            if not isinstance(exact, Exception):
                different = _equal(a, b, exact[i], low, scale)
        if different:
            raise DifferenceError(f"result {i}: {different}: {a} in place of {b}")
    if our_change != their_change:
        raise DifferenceError(f"the input {'changed' if our_change else 'did not change'}")


def run(seed: int, steps: int, log: Callable[[str], None] | None = None) -> list[str]:
    """Goes ``steps`` steps through worlds that follow from the seed. Returns each difference with its story."""
    found, done, number = [], 0, 0
    while done < steps:
        number += 1
        draw = random.Random(f"{seed} {number}")
        torch.manual_seed(number)
        module, shape = made(draw)
        theirs = copy.deepcopy(module)
        gpunn.torch.replace(module)
        world = World(module, theirs, shape, [f"world {number} of seed {seed}: {theirs}"])
        for _ in range(draw.randrange(4, 16)):
            done += 1
            try:
                if draw.random() < 0.35:
                    changed(draw, world)
                else:
                    called(draw, world, compiles=draw.random() < 0.002)
            except DifferenceError as error:
                found.append("\n  ".join([*world.story, str(error)[:2000]]))
                if log is not None:
                    log(found[-1])
                break
    return found
