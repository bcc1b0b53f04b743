"""Operators that go element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from constant_graphs.graph import (
    ANY,
    FLOATS,
    INTEGERS,
    NARROW_INTEGERS,
    NUMBERS,
    SIGNED,
    SMALL,
    TINY,
    UNSIGNED,
    Draw,
    Graph,
    InvalidError,
    onnx_type,
    unary,
)


def near(low: float, high: float) -> Callable[[Graph], float]:
    return lambda g: float(np.float32(g.rng.uniform(low, high)))


def inside(op: str, low: float, high: float) -> Draw:
    """A function that not all numbers have."""
    return lambda g: g.node(op, [g.fresh(g.choice(FLOATS), g.shape(), low=low, high=high)])


def binary(op: str, types: list[Any]) -> Draw:
    def draw(g: Graph) -> None:
        a = g.operand(types)
        pair = [a, g.partner(a)]
        g.node(op, pair[::-1] if g.chance(0.3) else pair)

    return draw


def nonzero(g: Graph, dtype: Any, shape: tuple[int, ...]) -> str:
    value = g.numbers(dtype, shape)
    return g.add(np.where(value == 0, np.ones_like(value), value))


def divide(g: Graph) -> None:
    a = g.operand(NUMBERS)
    g.node("Div", [a, nonzero(g, g.values[a].dtype, g.values[g.partner(a)].shape)])


def modulo(g: Graph) -> None:
    a = g.operand(NUMBERS)
    kind = g.values[a].dtype
    is_float = kind not in {np.dtype(one) for one in INTEGERS}
    g.node("Mod", [a, nonzero(g, kind, g.values[g.partner(a)].shape)], fmod=1 if is_float or g.chance(0.4) else None)


def power(g: Graph) -> None:
    base = g.fresh(g.choice([*FLOATS, np.int32, np.int64]), g.shape(0, 4), low=0, high=3)
    kind = (
        g.values[base].dtype
        if g.opset < 12 or g.chance(0.4)
        else g.choice([np.float32, np.float64, np.int32, np.int64])
    )
    g.node("Pow", [base, g.fresh(kind, g.values[g.partner(base)].shape, low=0, high=3)])


def variadic(op: str, types: list[Any]) -> Draw:
    def draw(g: Graph) -> None:
        a = g.operand(types)
        g.node(op, [a, *(g.partner(a) for _ in range(int(g.rng.integers(3))))])

    return draw


def shift(g: Graph) -> None:
    a = g.operand(UNSIGNED)
    value = g.values[a]
    by = g.rng.integers(0, value.dtype.itemsize * 8, value.shape).astype(value.dtype)
    g.node("BitShift", [a, g.add(by)], direction=g.choice(["LEFT", "RIGHT"]))


def clip(g: Graph) -> None:
    x = g.operand(NUMBERS if g.opset >= 12 else FLOATS)
    kind = g.values[x].dtype
    if g.opset < 11:
        return g.node("Clip", [x], min=-1.5 if g.chance(0.7) else None, max=1.5 if g.chance(0.7) else None)
    bounds = sorted(g.numbers(kind, (2,)).tolist())
    names = [g.add(np.asarray(one, kind)) if g.chance(0.7) else "" for one in bounds]
    return g.node("Clip", [x, *names])


def prelu(g: Graph) -> None:
    x = g.operand([np.float32, np.float64, np.float16, np.int32, np.int64])
    shape = [1 if g.chance(0.5) else size for size in g.values[x].shape]
    g.node("PRelu", [x, g.fresh(g.values[x].dtype, tuple(shape[int(g.rng.integers(len(shape) + 1)) :]))])


def where(g: Graph) -> None:
    a = g.operand(ANY)
    condition = g.fresh(np.bool_, g.values[g.partner(a)].shape)
    g.node("Where", [condition, a, g.partner(a)])


def cast(g: Graph) -> None:
    stored = [*(SMALL if g.opset >= 21 else []), *(TINY[: g.opset - 21] if g.opset >= 23 else [])]
    to, x = np.dtype(g.choice([*ANY, *stored])), g.operand([*ANY, *stored])
    if g.chance(0.3) and stored:
        to = np.dtype(g.choice(stored))
    value = g.values[x]
    with np.errstate(all="ignore"):
        numbers = value.astype(np.float64)
    is_float = value.dtype.kind not in "iub" and value.dtype not in NARROW_INTEGERS
    # ONNX leaves open what becomes of numbers that a type has no place for.
    if is_float and (to in NARROW_INTEGERS or to in {np.dtype(one) for one in INTEGERS}):
        low, high = limits_of(to)
        if not np.all((numbers > low - 1) & (numbers < high)):
            raise InvalidError
        if to in NARROW_INTEGERS and np.any(numbers != np.trunc(numbers)):
            raise InvalidError  # which ONNX Runtime rounds to 4 bits, and cuts to more
    if (to == ml_dtypes.float8_e8m0fnu and np.any(numbers < 0)) or (
        to == ml_dtypes.float4_e2m1fn and np.any(np.isnan(numbers))
    ):
        raise InvalidError
    g.node(
        "Cast",
        [x],
        to=onnx_type(to),
        saturate=int(g.chance(0.5)) if g.opset >= 19 else None,
        round_mode=g.choice(["up", "down", "nearest"]) if to == ml_dtypes.float8_e8m0fnu else None,
    )


def limits_of(kind: Any) -> tuple[float, float]:
    if kind in NARROW_INTEGERS:
        bits = NARROW_INTEGERS[kind] - (1 if kind.name.startswith("int") else 0)
        return (-float(2**bits) if kind.name.startswith("int") else 0.0), float(2**bits)
    return float(np.iinfo(kind).min), float(np.iinfo(kind).max)


def cast_like(g: Graph) -> None:
    to = g.choice(FLOATS)
    g.node("CastLike", [g.operand(ANY), g.fresh(to, (1,))])


TRUTHS: list[Any] = [np.bool_]
OPERATORS: dict[str, Draw] = {
    **{op: binary(op, NUMBERS) for op in ("Add", "Sub", "Mul", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")},
    **{op: binary(op, TRUTHS) for op in ("And", "Or", "Xor")},
    **{op: binary(op, INTEGERS) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{op: unary(op, FLOATS) for op in ("Floor", "Ceil", "Round", "Reciprocal", "Exp", "Sin", "Cos", "Tan", "Atan")},
    **{op: unary(op, FLOATS) for op in ("Sinh", "Cosh", "Tanh", "Asinh", "Erf", "Sigmoid", "Softplus", "Softsign")},
    **{op: unary(op, FLOATS) for op in ("Dropout", "HardSwish", "Mish", "IsNaN", "IsInf", "Selu")},
    **{op: unary(op, [*FLOATS, *SIGNED]) for op in ("Neg", "Abs", "Relu")},
    **{op: unary(op, FLOATS, alpha=near(0.1, 2)) for op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")},
    **{op: inside(op, -0.9, 0.9) for op in ("Asin", "Acos", "Atanh")},
    **{op: variadic(op, NUMBERS) for op in ("Max", "Min")},
    **{op: variadic(op, FLOATS[:4]) for op in ("Sum", "Mean")},
    "Acosh": inside("Acosh", 1.1, 4),
    "BitShift": shift,
    "BitwiseNot": unary("BitwiseNot", INTEGERS),
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": clip,
    "Div": divide,
    "Equal": binary("Equal", ANY),
    "Gelu": unary("Gelu", FLOATS[:4], approximate=lambda g: g.choice(["none", "tanh"])),
    "HardSigmoid": unary("HardSigmoid", FLOATS, alpha=near(0.1, 1), beta=near(0, 1)),
    "Identity": unary("Identity", ANY),
    "Log": inside("Log", 0.1, 9),
    "Mod": modulo,
    "Not": unary("Not", TRUTHS),
    "PRelu": prelu,
    "Pow": power,
    "Shrink": unary("Shrink", [np.float32, np.float64], bias=near(0, 1), lambd=near(0, 1)),
    # ONNX Runtime gives NaN a sign in some types.
    "Sign": lambda g: g.node("Sign", [g.finite([*FLOATS, *SIGNED])]),
    "Sqrt": inside("Sqrt", 0, 9),
    "Where": where,
}
