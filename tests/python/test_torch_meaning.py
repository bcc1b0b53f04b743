"""A module that ``gpunn.torch.replace`` changed means what it meant before: PyTorch's own module computes each expected
value."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import gpunn.torch  # noqa: E402
from gpunn.torch._prepared import Prepared  # noqa: E402

nn = torch.nn
F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")


def pair(module: Any) -> tuple[Any, Any]:
    """The module on gpunn, and its untouched copy."""
    torch.manual_seed(0)
    theirs = copy.deepcopy(module)
    gpunn.torch.replace(module)
    assert type(module) is not type(theirs)
    return module, theirs


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(found, expected, strict=True) if isinstance(found, (tuple, list)) else [(found, expected)]:
        assert one is None or one.stride() == other.stride()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops that gpunn has run."""
    seen: list[str] = []
    run = Prepared.run

    def counted(self: Prepared, given: Any) -> Any:
        seen.append(self.info.name)
        return run(self, given)

    monkeypatch.setattr(Prepared, "run", counted)
    return seen


# --- Derivatives of derivatives, and forward mode ---

SMOOTH = [
    (nn.Linear(3, 3), (2, 3)),
    (nn.Linear(3, 3, bias=False), (2, 2, 3)),
    (nn.Conv2d(2, 2, 2), (1, 2, 3, 3)),
    (nn.BatchNorm2d(2), (2, 2, 2, 2)),
    (nn.BatchNorm1d(2).eval(), (3, 2)),
    (nn.LayerNorm(3), (2, 3)),
    (nn.Sigmoid(), (2, 3)),
    (nn.Tanh(), (2, 3)),
    (nn.SiLU(), (2, 3)),
    (nn.GELU(), (2, 3)),
    (nn.ReLU(), (2, 3)),
    (nn.LeakyReLU(0.2), (2, 3)),
    (nn.MaxPool2d(2), (1, 2, 4, 4)),
    (nn.AvgPool2d(2), (1, 2, 4, 4)),
    (nn.AdaptiveAvgPool2d(1), (1, 2, 2, 2)),
]


def penalty(module: Any, x: Any) -> list[Any]:
    """What a gradient penalty gives: the gradient's norm, and its gradients."""
    x = x.clone().requires_grad_()
    (dx,) = torch.autograd.grad(module(x).sin().sum(), [x], create_graph=True)
    norm = dx.square().sum()
    wanted = [x, *module.parameters()]
    return [norm, *torch.autograd.grad(norm + x.sum(), wanted, allow_unused=True)]


@pytest.mark.parametrize(("module", "shape"), SMOOTH, ids=[str(one) for one, _ in SMOOTH])
def test_second_derivatives_and_forward_mode_are_pytorchs(module: Any, shape: Any, runs: list[str]) -> None:
    ours, theirs = pair(copy.deepcopy(module))
    x = torch.randn(shape)
    close(penalty(ours, x), penalty(theirs, x))
    assert runs, "the first derivative is of a call that gpunn ran"

    def of(function: Callable[..., Any]) -> list[Any]:
        return [function(one) for one in (ours, theirs)]

    def scalar(one: Any) -> Any:
        return lambda y: one(y).sin().sum()

    close(*of(lambda one: torch.autograd.functional.hessian(scalar(one), x)))
    close(*of(lambda one: torch.autograd.functional.jacobian(one, x, vectorize=True)))
    close(*of(lambda one: torch.autograd.functional.jvp(one, x, x)))
    if not module._buffers:
        close(*of(lambda one: torch.func.hessian(scalar(one))(x)))
        close(*of(lambda one: torch.func.jacfwd(one)(x)))
        close(*of(lambda one: torch.func.vmap(one)(torch.stack([x, x]))))
        close(*of(lambda one: torch.func.jvp(one, (x,), (x,))))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x + 1)
        close(*of(lambda one: tuple(torch.autograd.forward_ad.unpack_dual(one(dual)))))


def test_a_gradient_penalty_of_a_discriminator_trains_it_as_it_did() -> None:
    layers = [nn.Conv2d(2, 4, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(4, 4, 3), nn.SiLU(), nn.Flatten()]
    ours, theirs = pair_of_net(nn.Sequential(*layers, nn.Linear(16, 1)))
    losses: list[list[float]] = []
    for model in (ours, theirs):
        torch.manual_seed(1)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        losses.append([])
        for _ in range(4):
            x = torch.randn(3, 2, 4, 4, requires_grad=True)
            y = model(x)
            (dx,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
            loss = y.mean() + 10 * (dx.flatten(1).norm(dim=1) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def pair_of_net(model: Any) -> tuple[Any, Any]:
    theirs = copy.deepcopy(model)
    gpunn.torch.replace(model)
    return model, theirs


def test_float64_passes_gradcheck() -> None:
    for module, shape in [(nn.Conv2d(2, 2, 2), (1, 2, 3, 3)), (nn.BatchNorm2d(2), (2, 2, 2, 2)), (nn.SiLU(), (3,))]:
        gpunn.torch.replace(module)
        x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(module.double(), (x,))
        assert torch.autograd.gradgradcheck(module, (x,))


def test_transformations_and_modes_see_pytorchs_functions() -> None:
    ours, theirs = pair(nn.Linear(3, 2))
    x = torch.randn(4, 3)
    ours(x)
    named = {name: one.detach() + 1 for name, one in theirs.named_parameters()}
    close(*(torch.func.functional_call(module, named, (x,)) for module in (ours, theirs)))

    def per_sample(module: Any) -> Any:
        loss: Any = torch.func.grad(lambda p, row: torch.func.functional_call(module, p, (row,)).square().sum())
        return tuple(torch.func.vmap(loss, in_dims=(None, 0))(named, x).values())

    close(per_sample(ours), per_sample(theirs))
    from torch.utils.flop_counter import FlopCounterMode

    counts = []
    for module in (ours, theirs):
        with FlopCounterMode(display=False) as counter:
            module(x)
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


# --- Settings, parameters and buffers that change ---


def bias_later(module: Any) -> None:
    module.bias = nn.Parameter(torch.full((module.weight.shape[0],), 2.0))


def own_method(module: Any) -> None:
    module._conv_forward = lambda x, w, b: x * 3


def as_buffers(module: Any) -> None:
    for name, one in list(module.named_parameters()):
        delattr(module, name)
        module.register_buffer(name, one.detach() * 2 + 1)


CHANGES: list[tuple[Any, tuple[int, ...], Callable[[Any], Any]]] = [
    (nn.BatchNorm2d(2), (3, 2, 4, 4), lambda m: setattr(m, "momentum", None)),
    (nn.BatchNorm2d(2), (3, 2, 4, 4), lambda m: setattr(m, "track_running_stats", False)),
    (nn.BatchNorm1d(2), (3, 2), lambda m: setattr(m, "running_mean", None)),
    (nn.BatchNorm1d(2), (3, 2), lambda m: m.register_parameter("bias", None)),
    (nn.MaxPool2d(2), (1, 2, 5, 5), lambda m: setattr(m, "ceil_mode", True)),
    (nn.MaxPool2d([2, 2]), (1, 2, 4, 4), lambda m: m.kernel_size.__setitem__(0, 1)),
    (nn.AvgPool2d(2), (1, 2, 4, 4), lambda m: setattr(m, "divisor_override", 3)),
    (nn.AvgPool2d(2), (1, 2, 4, 4), lambda m: setattr(m, "stride", None)),
    (nn.AdaptiveAvgPool2d(1), (1, 2, 4, 4), lambda m: setattr(m, "output_size", 2)),
    (nn.Conv2d(2, 2, 3, padding=1), (1, 2, 4, 4), lambda m: setattr(m, "padding", "same")),
    (nn.Conv2d(2, 2, 3), (1, 2, 4, 4), lambda m: setattr(m, "groups", 2)),
    (nn.Conv2d(2, 2, 3), (1, 2, 4, 4), own_method),
    (nn.Conv2d(2, 2, 3, bias=False), (1, 2, 4, 4), bias_later),
    (nn.Linear(3, 2, bias=False), (4, 3), bias_later),
    (nn.Linear(3, 2), (4, 3), lambda m: m.register_parameter("bias", None)),
    (nn.Conv2d(2, 2, 3), (1, 2, 4, 4), as_buffers),
    (nn.Linear(3, 2), (4, 3), as_buffers),
    (nn.Linear(3, 2), (4, 3), lambda m: delattr(m, "bias")),
    (nn.Linear(3, 2), (4, 3), nn.utils.parametrizations.weight_norm),
    (nn.Linear(3, 2), (4, 3), lambda m: m.register_forward_hook(lambda m, i, y: y * 2)),
    (nn.LayerNorm(3), (2, 3), lambda m: setattr(m, "normalized_shape", (2, 3))),
    (nn.LayerNorm(3), (2, 3), lambda m: setattr(m, "eps", 1)),
    (nn.GELU(), (3,), lambda m: setattr(m, "approximate", "tanh")),
    (nn.GELU(), (3,), lambda m: setattr(m, "approximate", "cube")),
    (nn.LeakyReLU(), (3,), lambda m: setattr(m, "negative_slope", 0.5)),
    (nn.Sigmoid(), (3,), lambda m: setattr(m, "forward", lambda x: x)),
]


def outcome(module: Any, x: Any) -> Any:
    try:
        y = module(x)
    except Exception as error:
        return type(error), str(error)
    return [y.detach(), *(one.clone() for one in module.buffers())]


@pytest.mark.parametrize(("module", "shape", "change"), CHANGES, ids=[f"{i} {m[0]}" for i, m in enumerate(CHANGES)])
@pytest.mark.parametrize("training", [True, False])
def test_a_change_after_a_call_holds(module: Any, shape: Any, change: Any, training: bool) -> None:
    ours, theirs = pair(copy.deepcopy(module).train(training))
    x = torch.randn(shape)
    for _ in range(2):
        close(outcome(ours, x), outcome(theirs, x))
    change(ours)
    change(theirs)
    for _ in range(2):
        found, expected = outcome(ours, x), outcome(theirs, x)
        if isinstance(expected, tuple):
            assert found == expected
        else:
            close(found, expected)


def test_update_bn_averages_over_all_batches() -> None:
    batches = [torch.randn(8, 3, 4, 4) * (i + 1) + i for i in range(3)]
    ours, theirs = pair_of_net(nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)))
    for model in (ours, theirs):
        torch.optim.swa_utils.update_bn(batches, model)
    close(list(ours.buffers()), list(theirs.buffers()))


def test_a_note_on_a_module_leaves_it_on_gpunn(runs: list[str]) -> None:
    ours, _ = pair(nn.Linear(3, 2))
    x = torch.randn(4, 3)
    for i in range(3):
        ours.name = f"layer {i}"
        ours(x)
    assert len(runs) == 3


def test_a_function_of_pytorch_that_was_replaced_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, _ = pair(nn.Linear(3, 2))
    x = torch.randn(4, 3)
    ours(x)
    monkeypatch.setattr(F, "linear", lambda x, w, b: x)
    assert ours(x) is x
    monkeypatch.undo()
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x + 1)
    assert torch.equal(ours(x), x + 1)


# --- What PyTorch refuses ---


REFUSED = [
    (nn.LayerNorm(4), torch.randn(2, 8)),
    (nn.LayerNorm((2, 4)), torch.randn(4, 2)),
    (nn.Linear(3, 2), torch.randn(2, 4)),
    (nn.Linear(3, 2), torch.randn(2, 3).double()),
    (nn.Linear(3, 2), torch.ones(2, 3, dtype=torch.int64)),
    (nn.Conv2d(2, 3, 3), torch.randn(1, 3, 4, 4)),
    (nn.Conv2d(2, 3, 3), torch.randn(1, 2, 2, 2)),
    (nn.BatchNorm2d(2), torch.randn(2, 2)),
    (nn.BatchNorm2d(2), torch.randn(1, 2, 1, 1)),
    (nn.BatchNorm1d(2), torch.randn(2, 3)),
    (nn.MaxPool2d(3), torch.randn(1, 1, 2, 2)),
    (nn.ReLU(), [1.0]),
    (nn.ReLU(), None),
    (nn.ReLU(inplace=True), torch.randn(1, 3).expand(2, 3)),
    (nn.ReLU(inplace=True), torch.randn(3, requires_grad=True)),
]


@pytest.mark.parametrize(("module", "x"), REFUSED, ids=[f"{i} {one}" for i, (one, _) in enumerate(REFUSED)])
def test_what_pytorch_refuses_raises_its_error(module: Any, x: Any) -> None:
    ours, theirs = pair(copy.deepcopy(module))
    before = copy.deepcopy(x)
    found, expected = outcome(ours, x), outcome(theirs, x)
    assert isinstance(expected, tuple)
    assert found == expected
    assert torch.equal(x, before) if isinstance(x, torch.Tensor) else x == before


def test_what_pytorch_refuses_after_a_call_raises_its_error() -> None:
    for wrong in (None, [1.0], 3):
        found = []
        for module in pair(nn.Tanh()):
            module(torch.ones(3))
            found.append(outcome(module, wrong))
        assert found[0] == found[1]
        assert isinstance(found[1], tuple)


@pytest.mark.parametrize("module", [nn.ReLU(), nn.Linear(3, 2), nn.LayerNorm(3)], ids=str)
def test_a_nested_tensor_after_a_call_is_pytorchs(module: Any) -> None:
    torch.manual_seed(0)
    nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])
    found = []
    for one in pair(module):
        one(torch.randn(5, 3))
        found.append([part.detach() for part in one(nested).unbind()])
    close(*found)


# --- In place ---


@pytest.mark.parametrize("kind", [nn.ReLU, nn.LeakyReLU, nn.SiLU])
@pytest.mark.parametrize("part", ["all", "columns", "rows", "transposed", "flipped"])
@pytest.mark.parametrize("recorded", [False, True])
def test_in_place_writes_where_pytorch_writes(kind: Any, part: str, recorded: bool) -> None:
    found = []
    for module in pair(kind(inplace=True)):
        w = torch.linspace(-1, 1, 24).requires_grad_(recorded)
        base = (w * 2).view(4, 6)
        parts = {"all": base, "columns": base[:, 1:3], "rows": base[1:3], "transposed": base.T, "flipped": base[:, ::2]}
        x = parts[part]
        y = module(x)
        assert y is x
        found.append([base.detach(), y.detach()])
        if recorded:
            base.square().sum().backward()
            found[-1].append(w.grad)
    close(*found)


# --- Layouts and dtypes ---


LAYERS = [
    nn.Conv2d(4, 4, 3, padding=1),
    nn.Conv2d(4, 4, 3, padding=1).to(memory_format=torch.channels_last),
    nn.BatchNorm2d(4),
    nn.BatchNorm2d(4).eval(),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.AvgPool2d(2),
    nn.AdaptiveAvgPool2d(1),
    nn.LayerNorm(6),
    nn.Linear(6, 6),
]


@pytest.mark.parametrize("module", LAYERS, ids=str)
def test_the_result_lies_as_pytorchs(module: Any) -> None:
    ours, theirs = pair(copy.deepcopy(module))
    last = torch.channels_last
    for shape in ((2, 4, 6, 6), (1, 4, 6, 6), (2, 4, 6, 1) if isinstance(module, nn.BatchNorm2d) else (3, 4, 6, 6)):
        x = torch.randn(shape)
        for one in (x, x.contiguous(memory_format=last), x.transpose(2, 3).contiguous().transpose(2, 3), x[:, :, ::1]):
            close(ours(one), theirs(one))
    y = ours(torch.randn(2, 4, 6, 6))
    if not any(one.is_contiguous(memory_format=last) and one.dim() == 4 for one in ours.parameters()):
        assert y.view(2, -1).shape[0] == 2


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "double"])
def test_models_of_other_dtypes_run(dtype: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.extend([nn.LayerNorm(4), nn.Linear(4, 2)])
    before, _ = pair_of_net(copy.deepcopy(model))
    after, _ = pair_of_net(getattr(copy.deepcopy(model), dtype)())
    expected = getattr(model, dtype)()
    getattr(before, dtype)()
    x = torch.randn(2, 3, 5, 5).to(next(model.parameters()))
    for ours in (before, after):
        theirs = copy.deepcopy(expected)
        y, z = ours(x), theirs(x)
        assert y.dtype == z.dtype
        torch.testing.assert_close(y, z, rtol=2e-2, atol=2e-2)
        y.sum().backward()
        z.sum().backward()
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert one.grad.dtype == other.grad.dtype


def test_an_empty_batch() -> None:
    ours, theirs = pair_of_net(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4).eval(), nn.ReLU(), nn.Flatten()))
    for model in (ours, theirs):
        y = model(torch.empty(0, 3, 5, 5))
        assert y.shape == (0, 36)
        y.sum().backward()


def test_autocast_gives_pytorchs_dtypes(runs: list[str]) -> None:
    ours, theirs = pair_of_net(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)))
    for dtype in (torch.bfloat16, torch.float16):
        results = []
        for model in (ours, theirs):
            x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
            with torch.autocast("cpu", dtype):
                y = model(x)
            (dx,) = torch.autograd.grad(y.float().sum(), [x], create_graph=True)
            (dw,) = torch.autograd.grad(dx.square().sum(), [model[0].weight])
            results.append([y, dx, dw])
        for one, other in zip(*results, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=5e-2, atol=5e-2)
    assert runs.count("matmul_bias_activation") == 4


def test_modes_in_which_gpunn_steps_back(runs: list[str]) -> None:
    ours, _ = pair(nn.Linear(3, 2))
    x = torch.randn(4, 3)
    torch.use_deterministic_algorithms(True)
    try:
        ours(x)
    finally:
        torch.use_deterministic_algorithms(False)
    assert not runs
    with torch.device("cpu"):
        ours(x)
    with torch.inference_mode():
        assert ours(x).is_inference()
    assert len(runs) == 2


def test_a_forked_process_runs_pytorchs_code() -> None:
    text = (
        "import os, torch, gpunn.torch\n"
        "torch.set_num_threads(1)\n"
        "m = torch.nn.Linear(3, 2); x = torch.randn(4, 3); y = m(x)\n"
        "gpunn.torch.replace(m, gpunn.torch.Backend('cpu', threads=1)); m(x)\n"
        "if (child := os.fork()) == 0: os._exit(0 if torch.allclose(m(x), y) else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", text], timeout=120, check=False).returncode == 0


# --- Saved modules ---


def test_a_saved_module_names_its_backend_by_content(tmp_path: Path) -> None:
    """Another process, in which other backends were named before, reads the same backend and precision."""
    module = nn.Linear(64, 64)
    for precision in ("bf16", "fp32"):
        gpunn.torch.replace(module, gpunn.torch.Backend("cpu", threads=1, precision=precision))
    x = torch.randn(8, 64)
    expected = module(x)
    torch.save([module, x, expected], tmp_path / "module.pt")
    (tmp_path / "module.pickle").write_bytes(pickle.dumps([module, x, expected]))
    text = (
        "import pickle, sys, torch, gpunn.torch\n"
        "other = torch.nn.Linear(2, 2)\n"
        "for precision in ('fp32', 'bf16', 'bf16'):\n"
        "    gpunn.torch.replace(other, gpunn.torch.Backend('cpu', threads=2, precision=precision))\n"
        "for read in (lambda: torch.load(sys.argv[1] + '.pt', weights_only=False),\n"
        "             lambda: pickle.load(open(sys.argv[1] + '.pickle', 'rb'))):\n"
        "    module, x, expected = read()\n"
        "    assert torch.equal(module(x), expected), (module(x) - expected).abs().max()\n"
        "    named = gpunn.torch.Backend.of(module._gpunn_backend)\n"
        "    assert named == gpunn.torch.Backend('cpu', threads=1, precision='fp32'), named\n"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "module")]
    assert subprocess.run(command, env=dict(os.environ), timeout=120, check=False).returncode == 0


def test_a_backend_and_its_text() -> None:
    for backend in (
        gpunn.torch.Backend("cpu"),
        gpunn.torch.Backend("cpu", precision="bf16", deterministic=True, kernels=("gemm:3",), plugins=("/a b",)),
    ):
        assert gpunn.torch.Backend.of(backend.text) == backend
    with pytest.raises(gpunn.UsageError, match="as JSON, found"):
        gpunn.torch.Backend.of("{cpu}")


def test_copies_and_restored_modules_are_pytorchs() -> None:
    ours, theirs = pair(nn.Linear(3, 2))
    x = torch.randn(4, 3)
    expected = theirs(x)
    ours(x)
    for one in (copy.deepcopy(ours), copy.copy(ours), pickle.loads(pickle.dumps(ours))):
        close(one(x), expected)
    nn.utils.parametrizations.weight_norm(ours)
    close(ours(x), expected)
    gpunn.torch.restore(ours)
    close(ours(x), expected)
    nn.utils.parametrize.remove_parametrizations(ours, "weight")
    close(ours(x), expected)
    gpunn.torch.restore(ours)
    assert type(ours) is nn.Linear


# --- The compiler ---


@pytest.mark.parametrize("change", ["ceil_mode", "inplace", "wrong size", "momentum", "own method"])
def test_a_compiled_module_means_what_it_did(change: str) -> None:
    torch._dynamo.reset()
    made: dict[str, tuple[Any, Any, Any]] = {
        "ceil_mode": (nn.MaxPool2d(2), torch.randn(1, 2, 5, 5), lambda m: setattr(m, "ceil_mode", True)),
        "inplace": (nn.ReLU(), torch.randn(3, 4), lambda m: setattr(m, "inplace", True)),
        "wrong size": (nn.LayerNorm(4), torch.randn(2, 4), lambda m: setattr(m, "normalized_shape", (2, 4))),
        "own method": (nn.Conv2d(2, 2, 1), torch.randn(1, 2, 3, 3), own_method),
        "momentum": (nn.BatchNorm1d(3), torch.randn(5, 3), lambda m: setattr(m, "momentum", None)),
    }
    module, x, apply = made[change]
    found = []
    for one in pair(module):
        run: Any = torch.compile(one, backend="aot_eager")
        first = run(x.clone())
        apply(one)
        given = x.clone()
        try:
            found.append([first, run(given), given, *(b.clone() for b in one.buffers())])
        except Exception as error:
            found.append([first, type(error)])
    if isinstance(found[1][1], torch.Tensor):
        close(*found)
    else:
        assert found[0][1] is found[1][1]


# --- Programs made from a model ---


def test_traced_scripted_and_exported_models_are_pytorchs() -> None:
    ours, theirs = pair_of_net(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()).eval())
    x = torch.randn(2, 3, 5, 5)
    expected = theirs(x)
    close(torch.jit.trace(ours, (x,))(x), expected)
    close(torch.jit.script(ours)(x), expected)
    program = torch.export.export(ours, (x,))
    close(program.module()(x), expected)
    assert "gpunn" not in str(program.graph)


def test_an_output_may_be_overwritten_where_pytorch_allows_it() -> None:
    layers = [nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), nn.ReLU(inplace=True), nn.Conv2d(3, 2, 1), nn.LeakyReLU(0.1, True)]
    found = []
    for model in pair_of_net(nn.Sequential(*layers)):
        x = torch.linspace(-1, 1, 128).view(1, 2, 8, 8).requires_grad_()
        model(x).square().sum().backward()
        found.append([x.grad, *(one.grad for one in model.parameters())])
    close(*found)


@pytest.mark.parametrize("module", [nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Conv2d(2, 2, 1), nn.ReLU()], ids=str)
def test_a_second_backward_pass_raises_where_pytorchs_does(module: Any) -> None:
    raised = []
    for one in pair(module):
        y = one(torch.ones(1, 2, 4, 4, requires_grad=True)).sum()
        y.backward()
        try:
            y.backward()
            raised.append("")
        except RuntimeError as error:
            raised.append(str(error))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("changed", ["input", "weight"])
def test_a_backward_pass_after_a_change_raises_where_pytorchs_does(changed: str) -> None:
    for module in (nn.AvgPool2d(2), nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1, bias=False)):
        raised = []
        for one in pair(module):
            x = torch.ones(1, 2, 4, 4).requires_grad_(changed == "input")
            z = x * 1
            y = one(z).sum()
            with torch.no_grad():
                for tensor in (z,) if changed == "input" else one.parameters():
                    tensor.add_(1)
            raised.append(outcome(lambda _, y=y: y.backward() or y, x))
        assert type(raised[0]) is type(raised[1])


def test_the_second_derivative_of_a_pooling_is_zero_as_pytorchs() -> None:
    found = []
    for module in pair(nn.AvgPool2d(2)):
        x = torch.linspace(-1, 1, 32).view(1, 2, 4, 4).requires_grad_()
        (gradient,) = torch.autograd.grad(module(x).square().sum(), x, create_graph=True)
        found.append([*torch.autograd.grad(gradient.sum(), x)])
        (gradient,) = torch.autograd.grad(module(x).sum(), x, torch.ones((), requires_grad=True), create_graph=True)
        found[-1] += torch.autograd.grad(gradient.sum(), x)
    close(*found)


def test_torch_fx_takes_a_module_with_hooks_as_one_node() -> None:
    graphs, results = [], []
    x = torch.randn(3, 4)
    for model in pair_of_net(nn.Sequential(nn.Linear(4, 4), nn.Tanh())):
        model[0].register_forward_pre_hook(lambda module, given: (given[0] + 1,))
        model[1].register_forward_hook(lambda module, given, y: y * 3)
        traced = torch.fx.symbolic_trace(model)
        graphs.append(str(traced.graph))
        results.append(traced(x).detach())
    assert graphs[0] == graphs[1]
    close(*results)


def test_a_tracer_may_look_into_a_module() -> None:
    tracer = torch.fx.Tracer()
    tracer.is_leaf_module = lambda *_: False
    models = pair_of_net(nn.Sequential(nn.Linear(4, 4)))
    targets = [[node.target for node in tracer.trace(one).nodes] for one in models]
    assert targets[0] == targets[1]


def test_a_first_call_within_a_transformation_leaves_later_ones_on_gpunn() -> None:
    text = (
        "import torch, gpunn.torch\n"
        "m = torch.nn.Linear(3, 2); gpunn.torch.replace(m); x = torch.randn(4, 3)\n"
        "torch.func.jvp(m, (x,), (x,)); torch.func.vmap(m)(x)\n"
        "m(x)\n"
        "assert m._gpunn_known.last.reason is None\n"
    )
    assert subprocess.run([sys.executable, "-c", text], timeout=120, check=False).returncode == 0
