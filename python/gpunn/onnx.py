"""gpunn as a backend of ONNX's own interface, as its backend tests call it.

``Backend.prepare(model).run(inputs)`` computes what the model says. Needs the package onnx.

The weights of a network of gpunn are known when it is loaded, and so are shapes, axes and the like. So all inputs of a
model are inputs of the network if it can be imported so. Otherwise inputs of integers and truth values become constants
with the values that they have in a call, and in the end all but one. Outputs that can't be given together are networks
of their own. What is not possible raises ``BackendIsNotSupposedToImplementIt`` with the reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
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

_IMAGES = 4  # dimensions of a batch of images


def backend_of(device: str) -> str | None:
    """The backend for a device in ONNX's notation, "CPU" or "CUDA:0"; None: there is none."""
    if Device(device).type == DeviceType.CPU:
        return "cpu"
    usable = {plugin.name for plugin in plugins() if plugin.status == "OK"}
    return next((name for name in ("cudnn", "cuda_tiled", "cuda_naive") if name in usable), None)


class _RefusedError(Exception):
    """The reason why a file cannot be a network of gpunn."""


def answers(network: Model, inputs: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    """What an imported graph gives for the arrays that it takes, for its outputs of these names, in their order.

    An array is a batch if a sample of the network has one dimension less. Otherwise it is one sample, which is repeated
    where other arrays are batches. If none is, the dimension of one row is taken off the answers. Images whose channels
    the graph puts first are given with channels first.
    """
    only = len(network.inputs) == 1 and len(inputs) == 1
    given = {one.name: next(iter(inputs.values())) if only else inputs[one.name] for one in network.inputs}
    samples = {one.name: tuple(one.shape) for one in network.inputs}
    whole = {name: samples[name] == x.shape or x.ndim == 0 for name, x in given.items()}
    rows = next((len(x) for name, x in given.items() if not whole[name]), 1)
    for name, array in given.items():
        sample = samples[name]
        x = array
        if x.dtype.kind == "V":  # a type that numpy lacks
            x = x.astype(np.int32 if "int" in x.dtype.name else np.float32)
        if whole[name]:
            given[name] = np.repeat(x.reshape(1, *sample), rows, axis=0)
        elif sample == (1,) and x.ndim == 1:
            given[name] = x[:, np.newaxis]
        elif sample != x.shape[1:] and x.ndim == _IMAGES and sample == (x.shape[3], x.shape[1], x.shape[2]):
            given[name] = np.ascontiguousarray(np.moveaxis(x, 3, 1))
        else:
            given[name] = x
    found = network.run(given, [one.name for one in network.outputs][: len(names)])
    take_off = all(whole.values())
    return {
        name: np.asarray(y[0]) if take_off and y.shape[:1] == (1,) else np.asarray(y)
        for name, y in zip(names, found.values(), strict=True)
    }


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
            if not _are_in_float32(given[value.name]):
                raise BackendIsNotSupposedToImplementIt(f"the input {value.name} has numbers beyond those of float32")
        outputs = [value.name for value in self._model.graph.output]
        try:
            found = self._answers(outputs, given)
        except _RefusedError:
            try:
                found = {name: self._answers([name], given)[name] for name in outputs}
            except _RefusedError as refused:
                raise BackendIsNotSupposedToImplementIt(str(refused)) from refused
        return tuple(found[name] for name in outputs)

    def _answers(self, outputs: list[str], given: dict[str, Array]) -> dict[str, Array]:
        """As by the first choice of inputs that can be imported; the reason of the first one if none can."""
        reason: _RefusedError | None = None
        for names in choices_of_inputs(given):
            try:
                return self._computed(outputs, names, given)
            except _RefusedError as refused:
                reason = reason or refused
        raise reason or _RefusedError("the model has no inputs")

    def _computed(self, outputs: list[str], names: list[str], given: dict[str, Array]) -> dict[str, Array]:
        model = reduced(self._model, outputs, names, given)
        types = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            file.write_bytes(model.SerializeToString())
            inputs = {name: given[name] for name in names}
            most = max((len(x) for x in inputs.values() if x.ndim), default=1)
            try:
                network = load(file, backend=self.backend, max_batch=max(1, most))
            except Error as error:
                raise _RefusedError(str(error).removeprefix(f"{file}: ")) from error
            # gpunn gives integers, as of a QuantizeLinear, as float32.
            return {
                name: y.astype(helper.tensor_dtype_to_np_dtype(types[name]), copy=False)
                for name, y in answers(network, inputs, outputs).items()
            }


def _are_in_float32(x: Array) -> bool:
    with np.errstate(over="ignore"):
        return x.dtype != np.float64 or np.array_equal(np.isfinite(x.astype(np.float32)), np.isfinite(x))


def choices_of_inputs(given: Mapping[str, Array]) -> list[list[str]]:
    """Which inputs a network may have: all, those of floats, or a single one; each choice once."""
    floats = [name for name, value in given.items() if value.dtype.kind == "f"]
    choices = [list(given), floats, *([name] for name in [*floats, *given])]
    return [names for number, names in enumerate(choices) if names and names not in choices[:number]]


def reduced(
    model: onnx.ModelProto, outputs: Sequence[str], names: Sequence[str], given: Mapping[str, Array]
) -> onnx.ModelProto:
    """The model with some of its outputs and inputs; the other inputs are constants."""
    one = onnx.ModelProto()
    one.CopyFrom(model)
    kept = [value for value in one.graph.input if value.name in names]
    given_outputs = {value.name: value for value in model.graph.output}
    del one.graph.input[:], one.graph.output[:]
    one.graph.input.extend(kept)
    one.graph.output.extend(given_outputs[name] for name in outputs)
    for name, value in given.items():
        if name not in names:
            one.graph.initializer.append(numpy_helper.from_array(value, name))
    return one


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
