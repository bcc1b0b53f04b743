"""gpunn as a backend of ONNX's own interface, as its backend tests call it.

``Backend.prepare(model).run(inputs)`` computes what the model says. Needs the package onnx.

A network of gpunn has one input and one output, and its weights are known when it is loaded. So a model's first float32
input that can be the samples is that, or all such inputs of as many rows are parts of it. Its other inputs become
constants with the values that they have in a call, and each output is a network of its own. What is not possible raises
``BackendIsNotSupposedToImplementIt`` with the reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend as _Backend, BackendRep, Device, DeviceType
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from gpunn._model import Model, load
from gpunn._tools import plugins
from gpunn.errors import Error

Array = npt.NDArray[Any]

_SPLIT_HAS_INPUT = 13  # the opset from which on it does


def backend_of(device: str) -> str | None:
    """The backend for a device in ONNX's notation, "CPU" or "CUDA:0"; None: there is none."""
    if Device(device).type == DeviceType.CPU:
        return "cpu"
    usable = {plugin.name for plugin in plugins() if plugin.status == "OK"}
    return next((name for name in ("cudnn", "cuda_tiled", "cuda_naive") if name in usable), None)


def _is_samples(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    return bool(kind.elem_type == onnx.TensorProto.FLOAT)


class _RefusedError(Exception):
    """The reason why a file cannot be a network of gpunn."""


def _join(model: onnx.ModelProto, parts: dict[str, Array]) -> Array:
    """Gives the graph one input, which contains these as parts, and returns its value."""
    graph = model.graph
    rows = [value.reshape(len(value), -1) for value in parts.values()]
    joined = np.concatenate(rows, axis=1)
    graph.input.append(helper.make_tensor_value_info("gpunn.samples", onnx.TensorProto.FLOAT, ["n", joined.shape[1]]))
    sizes = [part.shape[1] for part in rows]
    outputs = [f"gpunn.part.{name}" for name in parts]
    if next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx")) < _SPLIT_HAS_INPUT:
        nodes = [helper.make_node("Split", ["gpunn.samples"], outputs, axis=1, split=sizes)]
    else:
        graph.initializer.append(numpy_helper.from_array(np.array(sizes, np.int64), "gpunn.sizes"))
        nodes = [helper.make_node("Split", ["gpunn.samples", "gpunn.sizes"], outputs, axis=1)]
    for name, value in parts.items():
        shape = np.array([-1, *value.shape[1:]], np.int64)
        graph.initializer.append(numpy_helper.from_array(shape, f"gpunn.shape.{name}"))
        nodes.append(helper.make_node("Reshape", [f"gpunn.part.{name}", f"gpunn.shape.{name}"], [name]))
    nodes.extend(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    return joined


def _answer(network: Model, x: Array) -> Array:
    """What the graph gives: a graph whose rows depend on each other takes all of its input as one sample."""
    sample = tuple(network.info.input.shape)
    is_sample = sample == (x.shape or (1,))
    y = network.run(x.reshape(1, *sample) if is_sample else x, "outputs")
    return np.asarray(y[0] if is_sample else y)


class Prepared(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: onnx.ModelProto, backend: str) -> None:
        self._model = model
        self.backend = backend
        known = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [value for value in model.graph.input if value.name not in known]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for these inputs, as a list in the model's order."""
        if kwargs:
            raise BackendIsNotSupposedToImplementIt(f"there are no options {', '.join(kwargs)}")
        given: dict[str, Array] = {}
        for value, one in zip(self._inputs, inputs, strict=False):
            if not isinstance(one, (np.ndarray, np.generic)):
                raise BackendIsNotSupposedToImplementIt(f"the input {value.name} is no tensor")
            given[value.name] = np.asarray(one)
        return tuple(self._output(value, given) for value in self._model.graph.output)

    def _output(self, output: onnx.ValueInfoProto, given: dict[str, Array]) -> Array:
        names = [value.name for value in self._inputs if value.name in given and _is_samples(value)]
        choices = [[name] for name in names]
        rows = {name: given[name].shape[0] for name in names if given[name].ndim >= 2}
        together = [name for name in rows if rows[name] == next(iter(rows.values()))]
        if len(together) > 1:
            choices.append(together)
        reason = "no input is float32[rows, ...]"
        for samples in choices:
            try:
                return self._computed(output, samples, given)
            except _RefusedError as refused:
                reason = str(refused)
        raise BackendIsNotSupposedToImplementIt(reason)

    def _computed(self, output: onnx.ValueInfoProto, samples: list[str], given: dict[str, Array]) -> Array:
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        graph = model.graph
        del graph.output[:]
        graph.output.append(output)
        kept = [value for value in graph.input if [value.name] == samples]
        del graph.input[:]
        graph.input.extend(kept)
        x = given[samples[0]] if kept else _join(model, {name: given[name] for name in samples})
        for name, value in given.items():
            if name not in samples:
                graph.initializer.append(numpy_helper.from_array(value, name))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            file.write_bytes(model.SerializeToString())
            try:
                network = load(file, backend=self.backend, max_batch=max(1, len(x)) if x.ndim else 1)
            except Error as error:
                raise _RefusedError(str(error).removeprefix(f"{file}: ")) from error
            # gpunn gives integers, as of a QuantizeLinear, as float32.
            kind = helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
            return _answer(network, x).astype(kind, copy=False)


class Backend(_Backend):
    """ONNX's interface, as ``onnx.backend.test.BackendTest(gpunn.onnx.Backend)`` takes it."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Checks and keeps a model. ``run`` of the result imports it, because that needs the values of the inputs."""
        backend = backend_of(device)
        if backend is None:
            raise BackendIsNotSupposedToImplementIt(f"no backend computes on {device}")
        super().prepare(model, device, **kwargs)
        return Prepared(model, backend)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of a single node for arrays in the order of its inputs."""
        opset = int(kwargs.pop("opset_version", onnx.defs.onnx_opset_version()))
        names = [name for name in node.input if name]
        values = dict(zip(names, map(np.asarray, inputs), strict=False))
        graph = helper.make_graph(
            [node],
            "node",
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                for n, v in values.items()
            ],
            [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in node.output if name],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return cls.prepare(model, device, **kwargs).run(list(values.values()))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a usable backend computes on the device."""
        return backend_of(device) is not None


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
