"""torch.ops.gpunn: every registered op under opcheck, gradients against differences and against PyTorch's own."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from op_samples import SAMPLES

torch = pytest.importorskip("torch")

import gpunn  # noqa: E402
import gpunn.torch  # noqa: E402
from gpunn.ops import CATALOGUE  # noqa: E402
from gpunn.ops._call import flows_back, info_of  # noqa: E402
from gpunn.torch._precision import allowed  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


def sample(name: str, requires_grad: bool = True) -> tuple[tuple[Any, ...], dict[str, Any], list[Any]]:
    """Arguments of the registered op, its attributes, and the tensors that a gradient flows to."""
    inputs, attributes = SAMPLES[name]()
    tensors = [torch.from_numpy(copy.deepcopy(one)) for one in inputs]
    info = info_of(name)
    trained = []
    if requires_grad and info.differentiable:
        described = [(0, info_code(t), tuple(t.shape), None) for t in tensors]
        for tensor, flows in zip(tensors, flows_back(info, info.op(dict(attributes)), described), strict=True):
            if flows:
                trained.append(tensor.requires_grad_())
    return ((tensors,) if info.repeated else tuple(tensors)), attributes, trained


def info_code(tensor: Any) -> int:
    return ["float32", "bfloat16", "float16", "float64", "int32", "int64", "uint8"].index(str(tensor.dtype)[6:])


def op_of(name: str) -> Any:
    return getattr(torch.ops.gpunn, name).default


def test_every_op_has_a_sample() -> None:
    assert set(SAMPLES) == set(gpunn.torch.registered())
    assert set(CATALOGUE) - set(SAMPLES) == {"fill", "grid_points"}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_opcheck(name: str) -> None:
    arguments, attributes, _ = sample(name)
    torch.library.opcheck(op_of(name), arguments, attributes)


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if CATALOGUE[n]["differentiable"]))
def test_gradients_are_those_of_differences(name: str) -> None:
    """gradcheck wants float64, which the ops do not have: the step and the tolerance are those of float32."""
    arguments, attributes, trained = sample(name)
    assert trained

    def first(*given: Any) -> Any:
        values = iter(given)
        if info_of(name).repeated:
            result = op_of(name)([*given], **attributes)
        else:
            moved = [next(values) if any(t is u for u in trained) else t.clone() for t in arguments]
            result = op_of(name)(*moved, **attributes)
        return result[0] if isinstance(result, (tuple, list)) else result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of inputs that are not float64
        assert torch.autograd.gradcheck(first, trained, eps=1e-2, atol=1e-2, rtol=1e-2, nondet_tol=0.0)


F = torch.nn.functional
REFERENCES: dict[str, Callable[..., Any]] = {
    "conv2d": lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 0)),
    "conv2d_bias_activation": F.conv2d,
    "matmul": lambda a, b: a @ b.T,
    "matmul_bias_activation": lambda a, b, c: a @ b + c,
    "relu": F.relu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=0.5
    ).transpose(1, 2),
    "batch_norm": lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b, training=True, momentum=0.25),
    "batch_norm_inference": lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b),
    "layer_norm": lambda x, g, b: F.layer_norm(x, (4,), g, b),
    "softmax_cross_entropy": lambda x, t: F.cross_entropy(x, t.long(), reduction="none"),
    "cross_entropy": lambda x, t, w: F.cross_entropy(
        x, t.long(), w, reduction="none", ignore_index=255, label_smoothing=0.1
    ),
    "mse_loss": lambda x, t: F.mse_loss(x, t, reduction="none").mean(1),
    "upsample2d": lambda x: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"),
    "reflect_pad2d": lambda x: F.pad(x, (2, 1, 1, 0), mode="reflect"),
}


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_gradients_are_those_of_pytorch_in_float64(name: str) -> None:
    arguments, attributes, trained = sample(name)
    result = op_of(name)(*arguments, **attributes)
    result = result[0] if isinstance(result, (tuple, list)) else result
    wide, _, _ = sample(name, requires_grad=False)
    wide = tuple(t.double() if t.is_floating_point() else t for t in wide)
    targets = [w.requires_grad_() for w, t in zip(wide, arguments, strict=True) if t.requires_grad]
    expected = REFERENCES[name](*wide)
    torch.testing.assert_close(result.detach().double(), expected.detach(), rtol=1e-5, atol=1e-5)
    cotangent = torch.linspace(-1, 1, expected.numel(), dtype=torch.float64).reshape(expected.shape)
    found = torch.autograd.grad(result, trained, cotangent.float())
    reference = torch.autograd.grad(expected, targets, cotangent)
    for one, other in zip(found, reference, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)
    if name == "batch_norm":
        torch.testing.assert_close(arguments[3].double(), wide[3], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(arguments[4].double(), wide[4], rtol=1e-5, atol=1e-6)


def test_gradients_are_formed_only_where_they_are_asked_for() -> None:
    x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3, requires_grad=True)
    y = torch.ops.gpunn.conv2d(x, w)
    (dw,) = torch.autograd.grad(y.sum(), [w])
    assert dw.shape == w.shape
    assert not torch.ops.gpunn.conv2d(x, x[:, :, :3, :3].clone()).requires_grad
    with torch.no_grad():
        assert not torch.ops.gpunn.conv2d(x, w).requires_grad
    target = torch.rand(2, 3, requires_grad=True)
    with pytest.raises(gpunn.UsageError, match="no gradient for target"):
        torch.ops.gpunn.soft_cross_entropy(torch.randn(2, 3, requires_grad=True), target)


def test_what_was_saved_may_not_change() -> None:
    x = torch.randn(4, requires_grad=True)
    w = (x * 2).detach().requires_grad_()
    y = torch.ops.gpunn.mul(x, w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_autocast() -> None:
    x, w, b = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3, requires_grad=True), torch.randn(4)
    with torch.autocast("cpu", torch.bfloat16):
        y = torch.ops.gpunn.conv2d_bias_activation(x, w, b)
        assert y.dtype == torch.bfloat16
        assert torch.ops.gpunn.relu(y).dtype == torch.bfloat16
        assert torch.ops.gpunn.softmax(y.flatten(1)).dtype == torch.float32
        assert torch.ops.gpunn.add(y, torch.ones(8, 1)[:1, :1]).dtype == torch.float32
    y.float().sum().backward()
    assert w.grad is not None
    assert w.grad.dtype == torch.float32
    reference = F.conv2d(x, w.detach(), b)
    torch.testing.assert_close(y.detach().float(), reference, rtol=5e-2, atol=5e-2)


def test_compile() -> None:
    x, w = torch.randn(4, 6), torch.randn(3, 6, requires_grad=True)

    def function(x: Any, w: Any) -> Any:
        y = torch.ops.gpunn.matmul(x, w, transpose_b=True)
        return torch.ops.gpunn.silu(y * 2).sum()

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(function(x, w), [w])
    found = torch.autograd.grad(compiled(x, w), [w])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(compiled(torch.ones(5, 6), w), function(torch.ones(5, 6), w))


def test_channels_last_stays() -> None:
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
    w = torch.randn(4, 3, 3, 3)
    y = torch.ops.gpunn.conv2d(x, w)
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y, F.conv2d(x, w), rtol=1e-5, atol=1e-5)
    (dx,) = torch.autograd.grad(y.square().sum(), [x])
    assert dx.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(dx, torch.autograd.grad(F.conv2d(x, w).square().sum(), [x])[0], rtol=1e-4, atol=1e-4)


def test_wrong_arguments() -> None:
    x = torch.randn(2, 3)
    with pytest.raises(gpunn.UsageError, match="x must be f32 or bf16 or f16"):
        torch.ops.gpunn.relu(x.double())
    with pytest.raises(gpunn.UsageError, match="inner dimensions"):
        torch.ops.gpunn.matmul(x, x)
    with pytest.raises(gpunn.MissingError, match="'nowhere' was not found"):
        torch.ops.gpunn.relu(x, backend="nowhere")
    with pytest.raises(gpunn.UsageError, match="must be contiguous"):
        torch.ops.gpunn.sgd_update(torch.zeros(4, 2)[:, 0], torch.zeros(4), torch.tensor(0.1))
    assert torch.equal(torch.ops.gpunn.relu(x.T), F.relu(x.T))


def test_products_on_a_gpu_may_round_as_pytorch_allows() -> None:
    def precisions() -> list[str]:
        return [allowed(name, True) for name in ("conv2d", "matmul", "attention", "relu")]

    convolutions, products = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = True, False
        assert precisions() == ["tf32", "fp32", "fp32", "fp32"]
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = False, True
        assert precisions() == ["fp32", "tf32", "tf32", "fp32"]
        assert allowed("matmul", False) == "fp32"
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = convolutions, products


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if CATALOGUE[n]["differentiable"]))
def test_a_second_derivative_is_refused_or_none(name: str) -> None:
    """An op whose gradient depends on its input must raise, since the value would be 0 without a word."""
    arguments, attributes, trained = sample(name)
    result = op_of(name)(*arguments, **attributes)
    y = (result[0] if isinstance(result, (tuple, list)) else result).sin()
    (dx,) = torch.autograd.grad(y.sum(), trained[:1], create_graph=True)
    assert dx.requires_grad
    with pytest.raises(gpunn.UsageError, match=f"the gradient of gpunn's {name} has no gradient"):
        torch.autograd.grad(dx.square().sum(), trained[:1], allow_unused=True)


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if CATALOGUE[n]["differentiable"]))
def test_forward_mode_and_transformations_are_refused(name: str) -> None:
    arguments, attributes, trained = sample(name)
    given = [one.detach() for one in (arguments[0] if info_of(name).repeated else arguments)]
    i = next(i for i, one in enumerate(arguments[0] if info_of(name).repeated else arguments) if one is trained[0])

    def function(x: Any) -> Any:
        moved = [x if j == i else one for j, one in enumerate(given)]
        result = op_of(name)(*((moved,) if info_of(name).repeated else moved), **attributes)
        return result[0] if isinstance(result, (tuple, list)) else result

    with pytest.raises(gpunn.UsageError, match="no derivative in forward mode"):
        torch.func.jvp(function, (given[i],), (given[i],))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(given[i], given[i])
        with pytest.raises(gpunn.UsageError, match="no derivative in forward mode"):
            function(dual)
        with pytest.raises(gpunn.UsageError, match="has a tangent"):
            gpunn.ops.relu(dual)
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda x: function(x).sum())(given[i])
    with pytest.raises(gpunn.UsageError, match="has no gradient"):
        torch.autograd.functional.jvp(function, given[i], given[i])


def test_ops_without_a_gradient_do_not_lose_one() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    y = x.sum() + torch.ops.gpunn.relu_backward(x, x).sum()
    with pytest.raises(gpunn.UsageError, match="relu_backward has no gradient"):
        y.backward()
    (torch.ops.gpunn.less(x, x + 1) * x).sum().backward()
    assert torch.equal(x.grad, torch.ones(3, 4))
    with pytest.raises(gpunn.UsageError, match="changes in place and can't require grad"):
        torch.ops.gpunn.sgd_update(torch.zeros(4, requires_grad=True), torch.zeros(4), torch.tensor(0.1))
