"""Operators that compute with neighbours, rows and whole tensors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from constant_graphs.graph import (
    FLOATS,
    SMALL,
    WIDE,
    Draw,
    Graph,
    InvalidError,
    given_axes,
)


def top_k(g: Graph) -> None:
    x = g.finite([np.float32, np.float64, np.int32, np.int64], 1)
    axis = g.axis(g.values[x].ndim)
    k = int(g.rng.integers(0, g.values[x].shape[axis] + 1))
    if g.opset < 10:
        return g.node("TopK", [x], 2, axis=axis, k=k)
    return g.node("TopK", [x, g.integers([k])], 2, axis=axis, largest=int(g.chance(0.5)))


def best(op: str) -> Draw:
    def draw(g: Graph) -> None:
        x = g.finite([np.float32, np.float64, np.float16, np.int32, np.int8, np.uint8, np.int64], 1)
        last = int(g.chance(0.5)) if g.opset >= 12 else None
        g.node(op, [x], axis=g.axis(g.values[x].ndim), keepdims=int(g.chance(0.5)), select_last_index=last)

    return draw


def unique(g: Graph) -> None:
    x = g.finite([np.float32, np.float64, np.int64, np.int8], 1, 3)
    axis = g.axis(g.values[x].ndim) if g.chance(0.5) else None
    g.node("Unique", [x], 4, axis=axis, sorted=int(g.chance(0.6)))


def cum_sum(g: Graph) -> None:
    x = g.operand([np.float32, np.float64, np.int32, np.int64], 1)
    axis = g.add(g.axis(g.values[x].ndim), np.int32)
    g.node("CumSum", [x, axis], exclusive=int(g.chance(0.4)), reverse=int(g.chance(0.4)))


def reduce(op: str) -> Draw:
    def draw(g: Graph) -> None:
        # The reference adds up in bfloat16 itself.
        kinds = FLOATS[:4] if op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp") else [*FLOATS[:4], *WIDE]
        if op == "ReduceLogSum":
            x = g.fresh(g.choice(kinds), g.shape(), low=0.1)
        elif op == "ReduceMean":  # the sum of integers can wrap before it is divided
            x = g.fresh(g.choice([*FLOATS[:4], np.int32]), g.shape(), low=-5)
        else:
            x = g.finite([*kinds, np.int8, np.uint8, np.bool_] if op in ("ReduceMax", "ReduceMin") else kinds)
        if g.values[x].dtype.kind in "iu":  # ONNX Runtime saturates sums that ONNX's reference wraps
            x = g.fresh(g.values[x].dtype, g.shape(0, 4), low=-2, high=2)
        rank = g.values[x].ndim
        since = 13 if op == "ReduceSum" else 18
        noop = int(g.chance(0.3)) if g.opset >= since else None
        given_axes(
            g,
            op,
            x,
            g.axes(rank),
            since,
            rank == 0 or g.chance(0.3),
            keepdims=int(g.chance(0.5)),
            noop_with_empty_axes=noop,
        )

    return draw


def shares(op: str) -> Draw:
    def draw(g: Graph) -> None:
        x = g.finite(FLOATS, 1)
        g.node(op, [x], axis=g.axis(g.values[x].ndim) if g.chance(0.8) else None)

    return draw


def mat_mul(g: Graph) -> None:
    kind = g.choice([*FLOATS, *WIDE]) if g.opset >= 9 else g.choice(FLOATS)
    inner = int(g.rng.integers(1, 5))
    batch = g.shape(0, 2)
    a = () if g.chance(0.2) else (*batch[int(g.rng.integers(len(batch) + 1)) :], int(g.rng.integers(1, 4)))
    b = () if g.chance(0.2) else (*(batch if a else ()), inner, int(g.rng.integers(1, 4)))
    g.node("MatMul", [g.fresh(kind, (*a, inner)), g.fresh(kind, b or (inner,))])


def mat_mul_integer(g: Graph) -> None:
    a = g.fresh(np.uint8, (2, 3, 4))
    b = g.fresh(g.choice([np.uint8, np.int8]), (4, 5))
    zeros = [g.fresh(np.uint8, ()), g.fresh(g.values[b].dtype, g.choice([(), (5,)]))] if g.chance(0.7) else []
    g.node("MatMulInteger", [a, b, *zeros])


def gemm(g: Graph) -> None:
    kind = g.choice([np.float32, np.float64, np.float16])
    m, k, n = (int(one) for one in g.rng.integers(1, 5, 3))
    turned = [int(g.chance(0.4)) for _ in range(2)]
    a = g.fresh(kind, (k, m) if turned[0] else (m, k))
    b = g.fresh(kind, (n, k) if turned[1] else (k, n))
    c = [g.fresh(kind, g.choice([(), (1,), (n,), (m, 1), (m, n), (1, n)]))] if g.chance(0.7) or g.opset < 11 else []
    g.node(
        "Gemm", [a, b, *c], transA=turned[0], transB=turned[1], alpha=g.choice([1.0, 0.5]), beta=g.choice([1.0, -2.0])
    )


def einsum(g: Graph) -> None:
    shapes = {"i": 2, "j": 3, "k": 4}
    equation = g.choice(
        [
            "ij,jk->ik",
            "ij,jk",
            "ij->ji",
            "ij->",
            "ii->i",
            "ii",
            "...i,...i->...",
            "i,j->ij",
            "ijk,jk->ki",
            "ij,kj,ik->j",
        ]
    )
    kind = g.choice([np.float32, np.float64, np.int64, np.int32])
    inputs = [
        g.fresh(kind, low=-3, shape=tuple(shapes[one] for one in term.replace("...", "jk" if "..." in term else "")))
        for term in equation.split("->")[0].split(",")
    ]
    g.node("Einsum", inputs, equation=equation)


def determinant(g: Graph) -> None:
    size = int(g.rng.integers(1, 5))
    g.node("Det", [g.fresh(g.choice([np.float32, np.float64]), (*g.shape(0, 2), size, size))])


def window(g: Graph, rank: int, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"strides": g.rng.integers(1, 3, rank).tolist() if g.chance(0.6) else None, **more}
    how = g.rng.random()
    if how < 0.4:
        result["pads"] = g.rng.integers(0, 2, 2 * rank).tolist()
    elif how < 0.7:
        result["auto_pad"] = g.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return result


def convolution(g: Graph) -> None:
    rank, groups = int(g.rng.integers(1, 4)), int(g.rng.integers(1, 3))
    kind = g.choice([np.float32, np.float32, np.float64, np.float16])
    kernel = tuple(int(one) for one in g.rng.integers(1, 4, rank))
    x = g.fresh(kind, (2, 2 * groups, *(int(one) for one in g.rng.integers(4, 7, rank))))
    settings = window(g, rank, group=groups, dilations=g.rng.integers(1, 3, rank).tolist() if g.chance(0.3) else None)
    if settings.get("auto_pad", "VALID") != "VALID":
        settings["dilations"] = None
    gaps = settings.get("dilations") or [1] * rank
    if any((size - 1) * gap >= most for size, gap, most in zip(kernel, gaps, g.values[x].shape[2:], strict=True)):
        raise InvalidError
    bias = [g.fresh(kind, (2 * groups,))] if g.chance(0.5) else []
    if g.chance(0.5):
        return g.node("Conv", [x, g.fresh(kind, (2 * groups, 2, *kernel)), *bias], **settings)
    reach = list(zip(kernel, settings["strides"] or [1] * rank, strict=True))
    if "auto_pad" in settings and any(size < step for size, step in reach):
        raise InvalidError  # the text gives as many outputs as inputs times the stride, ONNX Runtime fewer
    more = [int(g.rng.integers(0, one)) for one in settings["strides"] or [1] * rank]
    return g.node(
        "ConvTranspose",
        [x, g.fresh(kind, (2 * groups, 2, *kernel)), *bias],
        output_padding=more if g.chance(0.3) else None,
        **settings,
    )


def conv_integer(g: Graph) -> None:
    x, w = g.fresh(np.uint8, (1, 2, 5, 5)), g.fresh(g.choice([np.uint8, np.int8]), (3, 2, 2, 2))
    zeros = [g.fresh(np.uint8, ()), g.fresh(g.values[w].dtype, ())] if g.chance(0.7) else []
    g.node("ConvInteger", [x, w, *zeros], **window(g, 2))


def pooling(g: Graph) -> None:
    rank = int(g.rng.integers(1, 4))
    op = g.choice(["AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    x = g.fresh(
        g.choice([np.float32, np.float32, np.float64, np.float16]),
        (1, 2, *(int(one) for one in g.rng.integers(4, 8, rank))),
    )
    if op.startswith("Global"):
        return g.node(op, [x], p=g.choice([1, 2, 3]))
    settings = window(g, rank, kernel_shape=g.rng.integers(2, 4, rank).tolist())
    if g.opset >= 10 and op != "LpPool" and "auto_pad" not in settings:
        settings["ceil_mode"] = int(g.chance(0.4))
        if op == "MaxPool" or g.opset >= 19:
            settings["dilations"] = g.rng.integers(1, 3, rank).tolist() if g.chance(0.3) else None
    reach = [
        (k - 1) * d + 1 for k, d in zip(settings["kernel_shape"], settings.get("dilations") or [1] * rank, strict=True)
    ]
    if any(size > most for size, most in zip(reach, g.values[x].shape[2:], strict=True)):
        raise InvalidError
    if op == "MaxPool":
        return g.node(
            op,
            [x],
            2 if g.opset >= 8 and g.chance(0.5) else 1,
            storage_order=int(g.chance(0.3)) if g.opset >= 8 else None,
            **settings,
        )
    return g.node(op, [x], count_include_pad=int(g.chance(0.5)), p=g.choice([1, 2, 3]), **settings)


def positive(g: Graph, kind: Any, shape: tuple[int, ...]) -> str:
    return g.fresh(kind, shape, low=0.5, high=2)


def normalization(g: Graph) -> None:
    kind = g.choice([np.float32, np.float32, np.float64, np.float16])
    shape = (2, 4, *(max(one, 1) for one in g.shape(1, 3)))  # ONNX Runtime ends the process for empty ones
    x = g.fresh(kind, shape)
    op = g.choice(
        [
            "BatchNormalization",
            "LayerNormalization",
            "InstanceNormalization",
            "GroupNormalization",
            "RMSNormalization",
            "LpNormalization",
            "LRN",
        ]
    )
    epsilon = g.choice([1e-5, 1e-2])
    if op == "BatchNormalization":
        trains = g.opset >= 14 and g.chance(0.3)
        four = [g.fresh(kind, (4,)), g.fresh(kind, (4,)), g.fresh(kind, (4,)), positive(g, kind, (4,))]
        return g.node(op, [x, *four], 3 if trains else 1, epsilon=epsilon, training_mode=int(trains))
    if op in ("LayerNormalization", "RMSNormalization"):
        axis = g.axis(len(shape))
        part = shape[axis:]
        bias = [g.fresh(kind, part)] if op == "LayerNormalization" and g.chance(0.6) else []
        return g.node(
            op,
            [x, g.fresh(kind, part), *bias],
            3 if op == "LayerNormalization" and g.chance(0.3) else 1,
            axis=axis,
            epsilon=epsilon,
        )
    if op == "LpNormalization":
        return g.node(op, [x], axis=g.axis(len(shape)), p=g.choice([1, 2]))
    if op == "LRN":
        return g.node(
            op,
            [g.fresh(np.float32, (2, 4, 3, 2))],
            size=g.choice([1, 3, 5]),
            alpha=0.5,
            beta=g.choice([0.75, 0.5]),
            bias=g.choice([1.0, 2.0]),
        )
    groups = 2 if op == "GroupNormalization" else None
    count = 2 if groups and g.opset < 21 else 4
    return g.node(op, [x, g.fresh(kind, (count,)), g.fresh(kind, (count,))], num_groups=groups, epsilon=epsilon)


def quantization(g: Graph) -> None:
    kinds: list[Any] = [np.uint8, np.int8]
    if g.opset >= 21:
        kinds += [np.uint16, np.int16, ml_dtypes.int4, ml_dtypes.uint4]
    if g.opset >= 19:
        kinds += SMALL[:4]
    target = g.choice(kinds)
    real = g.choice([np.float32, np.float32, np.float16]) if g.opset >= 19 else np.float32
    x = g.fresh(real, g.shape(1, 4), low=-10, high=10)
    shape, axis, block = g.values[x].shape, None, None
    of_scales: tuple[int, ...] = ()
    if g.opset >= 13 and g.chance(0.6):
        axis = g.axis(len(shape))
        of_scales = (shape[axis],)
        if g.opset >= 21 and g.chance(0.5):
            block = 2
            whole = list(shape)
            whole[axis] = -(-shape[axis] // block)
            of_scales = tuple(whole)
    # The quotient has the type of the scale: float16 where ONNX Runtime divides in float.
    scale = g.add(g.choice([0.25, 0.3, 0.05, 1.0] if real is np.float32 else [0.25, 1.0]) * np.ones(of_scales), real)
    is_float = target in SMALL[:4]
    zero = g.add(np.zeros(of_scales), target) if is_float else g.fresh(target, of_scales, low=0, high=5)
    has_zero = g.chance(0.8) or target is not np.uint8
    settings: dict[str, Any] = {"axis": axis, "block_size": block}
    more = {"saturate": int(g.chance(0.5))} if is_float else {}
    g.node("QuantizeLinear", [x, scale, *([zero] if has_zero else [])], **settings, **more)
    if g.chance(0.7):
        g.node("DequantizeLinear", [f"v{len(g.nodes) - 1}_0", scale, *([zero] if has_zero else [])], **settings)


def dequantize_wide(g: Graph) -> None:
    g.node("DequantizeLinear", [g.fresh(np.int32, g.shape(0, 3)), g.add(0.5, np.float32)])


def dynamic_quantization(g: Graph) -> None:
    g.node("DynamicQuantizeLinear", [g.fresh(np.float32, g.shape(1, 3), low=-3, high=g.choice([-1, 5]))], 3)


def resize(g: Graph) -> None:
    x = g.fresh(g.choice([np.float32, np.float32, np.float64]), (1, 2, 4, 6))
    scales = g.add([1, 1, g.choice([0.5, 2, 3, 1.5]), g.choice([0.5, 2, 1])], np.float32)
    mode = g.choice(["nearest", "linear"])
    if g.opset < 9:
        return g.node("Upsample", [g.fresh(np.float32, (1, 2, 3, 3))], mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
    if g.opset == 9:
        return g.node("Upsample", [x, g.add([1, 1, 2, 3], np.float32)], mode=mode)
    if g.opset == 10:
        return g.node("Resize", [x, scales], mode=mode)
    places = g.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    rounding = g.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    mode = g.choice(["nearest", "linear", "cubic"])
    roi = "" if g.opset >= 13 else g.add([], np.float32)
    settings = {
        "mode": mode,
        "coordinate_transformation_mode": places,
        "nearest_mode": rounding if mode == "nearest" else None,
    }
    if g.chance(0.4):
        empty = "" if g.opset >= 13 else g.add([], np.float32)
        return g.node(
            "Resize",
            [x, roi, empty, g.integers([1, 2, int(g.rng.integers(1, 9)), int(g.rng.integers(1, 9))])],
            **settings,
        )
    return g.node("Resize", [x, roi, scales], **settings)


SUMS = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")
OPERATORS: dict[str, Draw] = {
    **{op: reduce(op) for op in (*SUMS, "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")},
    **{op: best(op) for op in ("ArgMax", "ArgMin")},
    **{op: shares(op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    "BatchNormalization": normalization,
    "Conv": convolution,
    "ConvInteger": conv_integer,
    "CumSum": cum_sum,
    "DequantizeLinear": dequantize_wide,
    "Det": determinant,
    "DynamicQuantizeLinear": dynamic_quantization,
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": mat_mul,
    "MatMulInteger": mat_mul_integer,
    "QuantizeLinear": quantization,
    "Resize": resize,
    "TopK": top_k,
    "Unique": unique,
    "pooling": pooling,
}
