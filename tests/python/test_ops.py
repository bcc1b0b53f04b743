"""gpunn.ops on arrays of NumPy, of PyTorch, and of a library that gpunn does not know."""

from __future__ import annotations

import gc
import resource
import threading
from typing import Any

import numpy as np
import pytest

import gpunn
from gpunn import ops
from op_samples import SAMPLES, floats


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_function_runs(name: str) -> None:
    inputs, attributes = SAMPLES[name]()
    result = getattr(ops, name)(*inputs, **attributes)
    for one in result if isinstance(result, tuple) else (result,):
        assert isinstance(one, np.ndarray)


def test_values() -> None:
    x, w = floats(2, 3, 8, 8), floats(4, 3, 3, 3, seed=1)
    y = ops.conv2d(x, w, stride=2, pad=1)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    expected = np.einsum("nchwrs,kcrs->nkhw", windows, w)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ops.reduce(x, kind="mean", axes=-1), x.mean(-1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ops.reduce(x), x.sum(), rtol=1e-4)
    np.testing.assert_array_equal(ops.concat(x, x, axis=-1), np.concatenate([x, x], -1))
    np.testing.assert_array_equal(ops.add(x, 2), x + 2)
    assert ops.fill(shape=[2, 3], value=4.0).tolist() == [[4.0] * 3] * 2


def test_nothing_is_copied() -> None:
    x, out = floats(1000), np.empty(1000, np.float32)
    assert ops.relu(x, out=out) is out
    np.testing.assert_array_equal(out, np.maximum(x, 0))
    before = ops.pool_statistics().requests
    for offset in range(4):  # any array of whole elements is used where it lies
        ops.relu(x[offset:], out=out[offset:])
    assert ops.pool_statistics().requests == before
    assert ops.relu(x, out=x) is x
    assert x.min() == 0


def test_arrays_with_gaps_are_made_contiguous() -> None:
    x = floats(6, 8)
    np.testing.assert_array_equal(ops.relu(x.T), np.maximum(x.T, 0))
    np.testing.assert_array_equal(ops.relu(x[::2, ::-1]), np.maximum(x[::2, ::-1], 0))
    with pytest.raises(gpunn.UsageError, match="out must be contiguous"):
        ops.relu(x[:, :4].copy(), out=x[:, :4])
    with pytest.raises(gpunn.UsageError, match="w changes in place, so it must be contiguous"):
        ops.sgd_update(x[:, 0], x[0, :6].copy(), 0.1)


def test_in_place() -> None:
    w, g = np.ones(4, np.float32), np.full(4, 2, np.float32)
    assert ops.sgd_update(w, g, 0.25) is w
    assert w.tolist() == [0.5] * 4
    w.flags.writeable = False
    with pytest.raises(gpunn.UsageError, match="read-only"):
        ops.sgd_update(w, g, 0.25)


def test_labels_of_any_integer_dtype() -> None:
    x = floats(4, 3)
    small = ops.softmax_cross_entropy(x, np.array([0, 2, 1, 1], np.int32))[0]
    np.testing.assert_array_equal(ops.softmax_cross_entropy(x, np.array([0, 2, 1, 1]))[0], small)
    wrong = ops.softmax_cross_entropy(x, np.array([0, -100, 2**32 + 1, 3]))[0]
    assert np.isnan(wrong).tolist() == [False, True, True, True]
    with pytest.raises(gpunn.UsageError, match="label must be i32"):
        ops.softmax_cross_entropy(x, np.full(4, np.nan, np.float32))


@pytest.mark.parametrize("dtype", [*"bBhHiIlLqQ?", ">i2", ">i4", ">u8"])
def test_labels_of_every_integer_type_and_order_of_bytes(dtype: str) -> None:
    x = floats(4, 2)
    labels = np.array([0, 1, 1, 0])
    expected = ops.softmax_cross_entropy(x, labels)[0]
    np.testing.assert_array_equal(ops.softmax_cross_entropy(x, labels.astype(dtype))[0], expected)
    np.testing.assert_array_equal(ops.softmax_cross_entropy(x.astype(">f4"), labels)[0], expected)
    if dtype != "?":
        limits = np.iinfo(dtype)
        wrong = np.array([limits.min or limits.max, 1, limits.max, 0], dtype)
        found = ops.softmax_cross_entropy(x, wrong)[0]
        assert np.isnan(found).tolist() == [True, False, True, False]


def test_labels_of_every_integer_type_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 2)
    labels = torch.tensor([0, 1, 1, 0])
    expected = torch.nn.functional.cross_entropy(x, labels, reduction="none")
    for name in ("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        found = ops.softmax_cross_entropy(x, labels.to(getattr(torch, name)))[0]
        assert torch.allclose(found, expected, atol=1e-6)
    huge = torch.tensor([2**63], dtype=torch.uint64).expand(4)
    assert ops.softmax_cross_entropy(x, huge)[0].isnan().all()


def test_masked_values_are_refused() -> None:
    x = floats(4, 2)
    with pytest.raises(gpunn.UsageError, match="masked values; replace them"):
        ops.relu(np.ma.masked_less(x, 0))
    np.testing.assert_array_equal(ops.relu(np.ma.masked_invalid(x)), np.maximum(x, 0))


def test_mistakes() -> None:
    x = floats(2, 3)
    with pytest.raises(gpunn.UsageError, match="is f64"):
        ops.relu(x.astype(np.float64))
    with pytest.raises(gpunn.UsageError, match="no dtype 'complex64'"):
        ops.relu(x.astype(np.complex64))
    with pytest.raises(gpunn.UsageError, match="inner dimensions"):
        ops.matmul(x, x)
    with pytest.raises(gpunn.UsageError, match="found list"):
        ops.relu([1.0, 2.0])
    with pytest.raises(gpunn.UsageError, match="out must be 1 arrays"):
        ops.relu(x, out=(x, x))
    with pytest.raises(gpunn.UsageError, match="must be f32"):
        ops.relu(x, out=np.empty((3, 2), np.float32))
    with pytest.raises(gpunn.UsageError, match="names dimension 2 of a tensor of 2"):
        ops.reduce(x, axes=2)
    with pytest.raises(gpunn.MissingError, match="'cup'"):
        ops.relu(x, backend="cup")
    with pytest.raises(gpunn.UsageError, match="did you mean 'conv2d'"):
        ops.vjp("conv2", x)
    with pytest.raises(gpunn.UsageError, match="has no gradient"):
        ops.vjp(ops.equal, x, x)
    with pytest.raises(gpunn.UsageError, match=r"expected a function of gpunn\.ops.*found <ufunc 'add'>"):
        ops.explain(np.add, x, x)


def test_arrays_without_elements() -> None:
    nothing = np.empty((0, 3), np.float32)
    assert ops.relu(nothing).shape == (0, 3)
    assert ops.matmul(nothing, floats(3, 2)).shape == (0, 2)
    assert ops.concat(nothing, floats(2, 3)).shape == (2, 3)


def test_vjp() -> None:
    x, w = floats(2, 3, 6, 6), floats(4, 3, 3, 3, seed=1)
    y, back = ops.vjp(ops.conv2d, x, w, pad=1)
    dy = floats(*y.shape, seed=2)
    dx, dw = back(dy)
    step = 1e-2
    to_x, to_w = floats(*x.shape, seed=3), floats(*w.shape, seed=4)
    for gradient, direction, moved in (
        (dx, to_x, ops.conv2d(x + step * to_x, w, pad=1)),
        (dw, to_w, ops.conv2d(x, w + step * to_w, pad=1)),
    ):
        difference = ((moved - y) / step * dy).sum()
        assert difference == pytest.approx((gradient * direction).sum(), rel=1e-2, abs=1e-2)
    _loss, back = ops.vjp(ops.softmax_cross_entropy, floats(4, 3), np.array([0, 1, 2, 0]))
    dx, nothing = back(np.ones(4, np.float32))
    assert nothing is None
    np.testing.assert_allclose(dx.sum(1), 0, atol=1e-6)
    only = ops.vjp(ops.conv2d, x, w, wanted=[False, True])[1](np.ones((2, 4, 4, 4), np.float32))
    assert only[0] is None


def test_backend_by_name_and_by_context() -> None:
    x = floats(3, 3)
    with ops.use("cpu", threads=1) as chosen:
        assert chosen.threads == 1
        ops.matmul(x, x)
    assert ops.explain(ops.matmul, x, x, backend="cpu")[0].startswith("cpu: MATMUL")
    ops.matmul(x, x, backend=ops.Backend("cpu", precision="fp32"))
    statistics = ops.pool_statistics()
    assert 0 <= statistics.hit_rate <= 1
    assert statistics.peak_bytes >= statistics.held_bytes


class Foreign:
    """An array of a library that gpunn does not know."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_any_dlpack_array() -> None:
    x = floats(3, 4)
    y: Any = ops.relu(Foreign(x))
    assert isinstance(y, ops.Tensor)
    assert (y.shape, y.dtype, y.ndim, len(y)) == ((3, 4), "f32", 2, 3)
    np.testing.assert_array_equal(y.numpy(), np.maximum(x, 0))
    assert y.numpy().ctypes.data == np.from_dlpack(y).ctypes.data == y._memory.address
    z = ops.relu(y)
    view = np.asarray(z)
    del y, z
    gc.collect()
    np.testing.assert_array_equal(view, np.maximum(x, 0))


def test_what_dlpack_does_not_give_is_told() -> None:
    class Broken(Foreign):
        def __dlpack__(self, **_: Any) -> Any:
            return "no capsule"

    class Refusing(Foreign):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("not now")

    with pytest.raises(gpunn.UsageError, match=r"Broken: its __dlpack__\(\) gives no array"):
        ops.relu(Broken(floats(2)))
    with pytest.raises(BufferError, match="not now"):
        ops.relu(Refusing(floats(2)))


def test_memory_of_results_goes_back_to_the_pool() -> None:
    x: Any = Foreign(floats(1000))
    ops.relu(x)
    gc.collect()
    used = ops.pool_statistics().used_bytes
    kept = [ops.relu(x) for _ in range(5)]
    assert ops.pool_statistics().used_bytes > used
    view = kept[0].numpy()
    del kept
    gc.collect()
    assert ops.pool_statistics().used_bytes > used
    del view
    gc.collect()
    assert ops.pool_statistics().used_bytes == used


def test_threads() -> None:
    wrong = []

    def work(n: int) -> None:
        x = np.full((n, n), n, np.float32)
        for _ in range(100):
            if not (ops.matmul(x, x) == n**3).all():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_ten_thousand_calls_leak_nothing() -> None:
    x, w = floats(4, 8), floats(8, 8, seed=1)
    foreign = Foreign(x)

    def rounds(count: int) -> int:
        for _ in range(count):
            ops.matmul(x, w)
            ops.relu(foreign)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = rounds(500)
    after = rounds(10_000)
    assert after - before < 2_000  # KiB; an array leaked by each call would be 2.5 MiB
    assert ops.pool_statistics().used_bytes == 0


def test_pytorch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(2, 3, 4, 4)
    y = ops.relu(x)
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, x.relu())
    out = torch.empty_like(x)
    assert ops.relu(x, out=out) is out
    half = ops.add(x.bfloat16(), 1.0)
    assert half.dtype == torch.bfloat16
    last = x.to(memory_format=torch.channels_last)
    assert ops.relu(last).is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(gpunn.UsageError, match="of one library"):
        ops.add(x, x.numpy())
    negative = torch.randn(4, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    assert torch.equal(ops.relu(torch._neg_view(x)), (-x).relu())
    assert torch.equal(ops.relu(negative), negative.relu())
    with pytest.raises(gpunn.UsageError, match="out requires grad"):
        ops.relu(x, out=out.requires_grad_())
    with pytest.raises(gpunn.UsageError, match=r"gpunn\.ops records no gradients"):
        ops.relu(x.requires_grad_())


untyped: Any = ops  # for values that its types rule out


def test_numbers_of_numpy_are_inputs_and_attributes() -> None:
    assert ops.sub(np.float32(3), np.float32(10)) == -7
    row = np.arange(5, dtype=np.float32)
    assert ops.add(row[1], row[4]) == 5
    x = np.ones((2, 3), np.float32)
    assert np.array_equal(ops.cumsum(x, axis=np.int64(1))[0], [1, 2, 3])
    assert np.array_equal(ops.scale(x, factor=np.float32(2)), 2 * x)
    assert untyped.fill(shape=np.array([2, 3]), value=1.0).shape == (2, 3)


def test_attributes_are_told_apart_by_type_and_sign() -> None:
    x = np.ones((2, 3), np.float32)
    assert not np.signbit(ops.fill(shape=[2], value=0.0)).any()
    assert np.signbit(ops.fill(shape=[2], value=-0.0)).all()
    ops.cumsum(x, axis=0, exclusive=True)
    with pytest.raises(gpunn.UsageError, match="exclusive must be true or false, is 1"):
        untyped.cumsum(x, axis=0, exclusive=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: untyped.cumsum(x, axis=None), "cumsum: axis is missing: the dimension"),
        (lambda x: untyped.cumsum(x, axis=[0, 1]), r"cumsum: axis must be an integer, is \[0, 1\]"),
        (lambda x: untyped.cumsum(x, axis=1.5), r"cumsum: axis must be an integer, is 1\.5"),
        (lambda x: ops.vjp(ops.cumsum, x), "cumsum: axis is missing"),
        (lambda x: untyped.fill(shape=["a"], value=1.0), "fill: shape must be a list of integers"),
        (lambda x: untyped.scale(x, factor="a"), "scale: factor must be a number, is 'a'"),
        (lambda x: ops.concat(), "concat: x is missing"),
    ],
)
def test_attributes_that_are_none(call: Any, message: str) -> None:
    with pytest.raises(gpunn.UsageError, match=message):
        call(np.ones((2, 3), np.float32))


class Changing:
    """A number that is another one later, as a tensor may be."""

    value = 2.0

    def __float__(self) -> float:
        return self.value


def test_attributes_that_change_are_read_anew() -> None:
    x = np.ones(3, np.float32)
    factor = Changing()
    assert np.array_equal(untyped.scale(x, factor=factor), 2 * x)
    factor.value = 3.0
    assert np.array_equal(untyped.scale(x, factor=factor), 3 * x)


def test_unknown_attributes_are_told() -> None:
    with pytest.raises(gpunn.UsageError, match="factr"):
        ops.explain(ops.scale, np.ones(3, np.float32), factor=2.0, factr=[1])
