"""The ways in which ``torch_campaign.py`` calls a module: forward, backward, derivatives, transformations, hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

Outcome = list[Any]


def _inputs_of(module: Any, x: Any) -> list[Any]:
    return [one for one in (x, *module.parameters()) if one.requires_grad and one.is_floating_point()]


def _cotangent(y: Any) -> Any:
    return torch.linspace(-1, 2, y.numel(), dtype=torch.float64).to(y).reshape(y.shape)


def _first(y: Any) -> Any:
    return y[0] if isinstance(y, tuple) else y


def forward(module: Any, x: Any) -> Outcome:
    return [module(x)]


def _backward(module: Any, x: Any) -> Outcome:
    leaf = x.requires_grad_() if x.is_floating_point() else x
    y = module(leaf)
    first = _first(y)
    first.backward(_cotangent(first))
    return [y, leaf.grad, *(one.grad for one in module.parameters())]


def _middle(module: Any, x: Any) -> Outcome:
    """Within a graph: the input is no leaf, and its gradient leaves the module."""
    leaf = x.requires_grad_()
    inner = leaf * 2
    y = _first(module(inner))
    (y * 1).sum().backward()
    return [y, inner, leaf.grad, *(one.grad for one in module.parameters())]


def _view(module: Any, x: Any) -> Outcome:
    base = x.requires_grad_() * 1
    part = base[1:] if base.dim() and base.shape[0] > 1 else base.view_as(base)
    y = _first(module(part))
    (base.sum() + y.sum()).backward()
    return [y, base, x.grad]


def _plain_view(module: Any, x: Any) -> Outcome:
    part = x[..., ::2] if x.dim() else x
    return [module(part), x]


def _retained(module: Any, x: Any) -> Outcome:
    y = _first(module(x.requires_grad_()))
    wanted = _inputs_of(module, x)
    one = torch.autograd.grad(y.sum(), wanted, retain_graph=True, allow_unused=True)
    other = torch.autograd.grad(y.square().sum(), wanted, allow_unused=True)
    return [*one, *other]


def _penalty(module: Any, x: Any) -> Outcome:
    y = _first(module(x.requires_grad_()))
    wanted = _inputs_of(module, x)
    found = torch.autograd.grad(y.sin().sum(), wanted, create_graph=True, allow_unused=True)
    total = sum((one.square().sum() for one in found if one is not None), y.sum())
    again = torch.autograd.grad(total, wanted, allow_unused=True, create_graph=True)
    third = sum((one.square().sum() for one in again if one is not None), y.sum())
    return [*found, *again, *torch.autograd.grad(third, wanted, allow_unused=True)]


def _scalar(module: Any) -> Callable[[Any], Any]:
    return lambda one: _first(module(one)).sin().sum()


def _overwritten(module: Any, x: Any) -> Outcome:
    """The output is overwritten before the backward pass, which is run twice."""
    y = _first(module(x.requires_grad_() * 1))
    with torch.autograd.detect_anomaly(check_nan=False):
        (y.add_(1) if y.requires_grad else y).sum().backward()
    found = [x.grad, *(None if one.grad is None else one.grad.clone() for one in module.parameters())]
    return [*found, y]


def _twice(module: Any, x: Any) -> Outcome:
    y = _first(module(x.requires_grad_())).sum()
    y.backward()
    y.backward()
    return [x.grad, *(one.grad for one in module.parameters())]


def _traced(module: Any, x: Any) -> Outcome:
    return [_first(torch.jit.trace(lambda one: _first(module(one)), (x,), check_trace=False)(x))]


def _jvp(module: Any, x: Any) -> Outcome:
    return list(torch.func.jvp(lambda one: _first(module(one)), (x,), (_cotangent(x),)))


def _dual(module: Any, x: Any) -> Outcome:
    with torch.autograd.forward_ad.dual_level():
        y = _first(module(torch.autograd.forward_ad.make_dual(x, _cotangent(x))))
        return list(torch.autograd.forward_ad.unpack_dual(y))


def _dual_parameter(module: Any, x: Any) -> Outcome:
    """Of a parameter, and in a level that was opened after calls outside."""
    module(x)
    weight = next(module.parameters())
    with torch.autograd.forward_ad.dual_level():
        names = dict(module.named_parameters())
        dual = torch.autograd.forward_ad.make_dual(weight.detach(), _cotangent(weight))
        named = {name: dual if one is weight else one.detach() for name, one in names.items()}
        return list(torch.autograd.forward_ad.unpack_dual(_first(torch.func.functional_call(module, named, (x,)))))


def _hessian(module: Any, x: Any) -> Outcome:
    if x.numel() > 20:
        return forward(module, x)
    return [torch.func.hessian(_scalar(module))(x), torch.autograd.functional.hessian(_scalar(module), x)]


def _jacobians(module: Any, x: Any) -> Outcome:
    def function(one: Any) -> Any:
        return _first(module(one))

    found = [torch.func.jacfwd(function)(x), torch.func.jacrev(function)(x)]
    return [*found, torch.autograd.functional.jacobian(function, x, vectorize=True)]


def _vmap(module: Any, x: Any) -> Outcome:
    return [torch.func.vmap(lambda one: _first(module(one)))(torch.stack([x, x + 1]))]


def _functional(module: Any, x: Any) -> Outcome:
    named = {name: one.detach() * 2 for name, one in module.named_parameters()}
    y = torch.func.functional_call(module, named, (x,))
    gradients = torch.func.grad(lambda some: _first(torch.func.functional_call(module, some, (x,))).sum())(named)
    return [y, *gradients.values()]


def _checkpointed(module: Any, x: Any) -> Outcome:
    leaf = x.requires_grad_()
    y = checkpoint(lambda one: _first(module(one * 1)), leaf, use_reentrant=False)
    y.sum().backward()
    return [y, leaf.grad, *(one.grad for one in module.parameters())]


def _batched(module: Any, x: Any) -> Outcome:
    y = _first(module(x.requires_grad_()))
    dy = torch.stack([torch.ones_like(y), _cotangent(y)])
    return list(torch.autograd.grad(y, _inputs_of(module, x), dy, is_grads_batched=True, allow_unused=True))


def _hooked(module: Any, x: Any) -> Outcome:
    seen: list[Any] = []
    handles = [
        module.register_full_backward_hook(lambda m, gi, go: seen.extend(one.clone() for one in go)),
        module.register_forward_hook(lambda m, i, y: _first(y) * 2),
    ]
    try:
        y = module(x.requires_grad_())
        y.sum().backward()
        return [y, x.grad, *seen]
    finally:
        for handle in handles:
            handle.remove()


def _offloaded(module: Any, x: Any) -> Outcome:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return _backward(module, x)


def _flops(module: Any, x: Any) -> Outcome:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        y = module(x)
    return [y, torch.tensor(counter.get_total_flops())]


def compiled(module: Any, x: Any) -> Outcome:
    torch._dynamo.reset()
    y = torch.compile(lambda one: _first(module(one)), backend="aot_eager")(x)
    return [y.contiguous()]


CALLS: list[tuple[int, str, Callable[[Any, Any], Outcome]]] = [
    (10, "forward", forward),
    (20, "backward", _backward),
    (8, "middle", _middle),
    (6, "view", _view),
    (4, "plain view", _plain_view),
    (3, "retained", _retained),
    (8, "penalty", _penalty),
    (6, "overwritten", _overwritten),
    (3, "twice", _twice),
    (1, "traced", _traced),
    (3, "jvp", _jvp),
    (3, "dual", _dual),
    (2, "dual parameter", _dual_parameter),
    (2, "hessian", _hessian),
    (2, "jacobians", _jacobians),
    (3, "vmap", _vmap),
    (3, "functional", _functional),
    (3, "checkpoint", _checkpointed),
    (2, "batched", _batched),
    (4, "hooked", _hooked),
    (2, "offloaded", _offloaded),
    (1, "flops", _flops),
]
