"""gpunn's kernels inside PyTorch.

Importing this module registers the ops of the catalogue as ``torch.ops.gpunn.*``, with fake kernels, autograd and
autocast: they work under ``torch.compile``, and within CUDA graphs after a warm-up of each shape. ``backend=`` is the
name of the plugin that runs an op, or the path of a plugin's file.

    import gpunn.torch
    report = gpunn.torch.replace(model, backend="cuda_tiled")

``replace`` has the convolutions, linear layers, norms, activations and pooling of a model run on gpunn, in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import nn

from gpunn.ops._backend import Backend
from gpunn.torch._direct import forget, lacks_dtype
from gpunn.torch._modules import COUNTERPARTS
from gpunn.torch._register import registered

__all__ = ["Backend", "Report", "registered", "replace", "restore"]


@dataclass
class Report:
    """The modules that ``replace`` changed and left, by name."""

    backend: str
    replaced: dict[str, str] = field(default_factory=dict)
    """The type of each module that runs on gpunn now."""
    left: dict[str, str] = field(default_factory=dict)
    """Modules of types that gpunn has, and why it can't run them."""

    def __str__(self) -> str:
        kinds: dict[str, int] = {}
        for kind in self.replaced.values():
            kinds[kind] = kinds.get(kind, 0) + 1
        lines = [f"{count} {kind} on {self.backend or 'gpunn'}" for kind, count in sorted(kinds.items())]
        lines += [f"{name} left as it is: {reason}" for name, reason in self.left.items()]
        return "\n".join(lines) or "nothing to replace"


def replace(model: nn.Module, backend: str | Backend = "", *, only: Sequence[type[nn.Module]] | None = None) -> Report:
    """Has the modules of a model run on gpunn, in place, and tells which.

    A module turns into a subclass of its class, so parameters, buffers, hooks, ``state_dict``, ``train`` and ``eval``
    stay as they are. Modules of other classes, subclasses among them, and configurations that gpunn lacks are left
    alone. ``backend`` is a plugin's name, the path of its ``.so`` file or a ``gpunn.ops.Backend``; by default ``cpu``,
    and the best CUDA backend for tensors there. ``only`` limits it to some classes, as ``[nn.Conv2d]``.
    """
    chosen = backend if isinstance(backend, Backend) else Backend.of(backend)
    report = Report(chosen.text)
    for path, module in model.named_modules():
        kind = type(module)
        twin = COUNTERPARTS.get(kind, kind).__dict__.get("_gpunn_twin")
        if twin is None:
            continue
        if only is not None and not issubclass(kind, tuple(only)):
            continue
        reason = twin.refuses(module) or lacks_dtype(module)
        if reason is not None:
            report.left[path] = f"{kind.__name__} with {reason}"
            continue
        if kind in COUNTERPARTS:
            module.__class__ = COUNTERPARTS[kind]
            # torch.fx asks a module, not its class, whether it is PyTorch's and a node of the graph.
            module.__dict__["__module__"] = kind.__module__
        module.__dict__["_gpunn_backend"] = chosen.text
        report.replaced[path] = kind.__name__
    return report


def restore(model: nn.Module) -> None:
    """Undoes ``replace``."""
    for module in model.modules():
        if module.__dict__.pop("_gpunn_backend", None) is not None:
            forget(module)
        # A class that PyTorch derived for parametrizations stays, and runs PyTorch's code without a backend.
        twin = type(module).__dict__.get("_gpunn_twin")
        if twin is not None:
            module.__class__ = twin.original
            module.__dict__.pop("__module__", None)
