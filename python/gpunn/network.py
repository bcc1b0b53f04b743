"""Networks in code: built of layers, trained on arrays or batches, read and written as YAML.

A network is the same thing as a model in YAML: the same layers, and from the same seed the same weights, batches and
dropout masks. ``Sequential`` is for a chain of layers, ``Network`` for one with branches.
"""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpunn import _core
from gpunn._arrays import Array, as_array, count_of, infer_task, integers_of, samples_of, targets_of, weights_of
from gpunn._batches import Batches, gathered, is_batches
from gpunn._chain import Chain, chain_of, found_size, names_of, require_once, sources_of, values
from gpunn._ends import InputOf, by_input, inputs_of, inputs_text, named_nodes, outputs_text
from gpunn._history import History
from gpunn._listener import FitListener
from gpunn._weights import preparation_of, state_of
from gpunn._yaml import flow, section
from gpunn.errors import UsageError
from gpunn.layers import CLASS_OF, Layer, Node
from gpunn.losses import Outputs, outputs_of

_LOSSES = {
    "mse": "mean_squared_error",
    "bce": "binary_cross_entropy",
    "ce": "cross_entropy",
}
_DEFAULT_LOSS = {
    "classification": "cross_entropy",
    "regression": "mean_squared_error",
    "multi_label": "binary_cross_entropy",
}
_AT_A_TIME = 256  # rows of a call

Setting = str | Mapping[str, Any]


class Network:
    """A network of layers with branches: ``Network(x, z)`` from the input ``x`` to the output ``z``.

    >>> x = Input((3, 32, 32))                                        # doctest: +SKIP
    >>> y = Conv2d(3, 16, 3, padding=1)(x)                            # doctest: +SKIP
    >>> z = Linear(None, 10)(GlobalAvgPool2d()(Add()(y, ReLU()(y))))  # doctest: +SKIP
    >>> network = Network(x, z)                                       # doctest: +SKIP

    Both may be lists or maps of names. Of several inputs, arrays are a dict by the names: ``Input((8,), name="row")``.
    The first output is what is learnt.

    Weights are drawn from ``seed``, as a training from YAML with this ``training.seed`` draws them. They exist once the
    shape of a sample is known: from ``Input``, ``Sequential(input_shape=...)``, or the first array.
    """

    def __init__(
        self,
        inputs: Node | Sequence[Node] | Mapping[str, Node],
        outputs: Node | Sequence[Node] | Mapping[str, Node],
        *,
        name: str = "network",
        seed: int = 1,
    ) -> None:
        described, nodes = inputs_of(inputs)
        given = named_nodes(outputs, "output")
        chain = chain_of({one.name: node for one, node in zip(described, nodes, strict=True)}, list(given.values()))
        layers = {key: node.layer for key, node in given.items() if node.layer is not None}
        listed = not isinstance(outputs, Node | Mapping)
        self._begin(chain, described, name, seed, {} if "" in layers else layers, listed=listed)

    def _begin(
        self,
        chain: Chain,
        inputs: list[InputOf],
        name: str,
        seed: int,
        outputs: Mapping[str, Layer] | None = None,
        *,
        listed: bool = False,
        build: bool = True,
    ) -> None:
        """``listed``: outputs have the names of their layers."""
        if not chain:
            raise UsageError("a network has at least one layer")
        self.name = name
        self.seed = seed
        self.history = History()
        self._layers = [layer for layer, _ in chain]
        self._names = names_of(self._layers)
        self._from = sources_of(chain, self._names, inputs[0].name)
        self._inputs = inputs
        name_of = {id(layer): given for layer, given in zip(self._layers, self._names, strict=True)}
        given = {key: name_of[id(layer)] for key, layer in (outputs or {}).items()}
        self._outputs = {layer: layer for layer in given.values()} if listed else given
        self._settings: dict[str, Any] = {}
        self._compiled: dict[str, Any] = {}
        self._core: _core.Network | None = None
        self._answers: _core.Model | None = None
        self._training = False
        self._text = ""  # of the experiment, where it was read from a file
        self._learnt_task = ""  # of the weights that were loaded with their preparation
        if build and all(one.shape is not None for one in inputs):
            self._build()

    # ---- what it is made of

    @property
    def layers(self) -> list[Layer]:
        """The layers, in the order of the YAML."""
        return list(self._layers)

    def to_yaml(self, file: str | os.PathLike[str] | None = None) -> str:
        """The model as YAML, which ``gpunn run`` and :func:`from_yaml` read; written to ``file`` too, if given."""
        text = f"name: {flow(self.name)}\n" + inputs_text(self._inputs) + "layers:\n"
        for i, layer in enumerate(self._layers):
            keys: dict[str, Any] = {"name": self._names[i]}
            if self._from[i]:
                keys["from"] = self._from[i]
            text += f"  - {layer.type}: {flow(keys | layer.keys)}\n"
        text += outputs_text(self._outputs)
        if file is not None:
            Path(file).write_text(text, encoding="utf-8")
        return text

    def _experiment(self, task: str | None = None, loss: Setting | None = None) -> str:
        """The experiment as YAML, except for the arguments of a call of fit."""
        if self._text:
            return self._text
        settings = self._settings
        text = f"name: {flow(self.name)}\n"
        task = task or settings.get("task") or self._learnt_task or None
        text += section("task", task)
        text += "model:\n" + "".join(f"  {line}\n" for line in self.to_yaml().splitlines())
        data: dict[str, Any] = {"dataset": "arrays", "batch_size": 1}
        if task == "regression":
            data["scale_targets"] = settings.get("scale_targets", False)
        text += section("data", data)
        text += section("loss", loss if loss is not None else settings.get("loss"))
        for name in ("optimizer", "schedule", "augmentation", "early_stopping"):
            text += section(name, settings.get(name))
        training = {"seed": self.seed, "precision": settings.get("precision", "fp32"), "epochs": 1}
        training["threads"] = settings.get("threads", 0)
        text += section("training", training | dict(settings.get("training") or {}))
        text += section("backend", str(settings.get("backend", "auto")))
        text += section("device", settings.get("device", 0))
        if settings.get("plugins"):
            text += section("plugins", [str(one) for one in settings["plugins"]])
        return text

    def _build(self, arrays: Sequence[Array] = ()) -> _core.Network:
        """Builds the network with its first weights, if it has none; for these samples, where shapes are not known."""
        if self._core is None:
            inputs = self._inputs
            if arrays:
                inputs = [
                    InputOf(one.name, list(array.shape[1:]), one.dtype)
                    for one, array in zip(inputs, arrays, strict=True)
                ]
            alone = len(inputs) == 1
            dtypes = [_dtype_of(array) for array in arrays] or ["f32"] * len(inputs)
            described = [one.described(dtype, alone) for one, dtype in zip(inputs, dtypes, strict=True)]
            names = [one.name for one in inputs]
            self._core = _core.Network(self._experiment(), self.name, described, self._normalisations(names), [])
            try:
                self._require_expected(self._core)
            except UsageError:
                self._core = None
                raise
            if not alone:
                self._inputs = inputs
        return self._core

    def _normalisations(self, names: Sequence[str]) -> list[tuple[list[float], list[float]]]:
        """Mean and deviation of each input, as ``compile`` was given them; else empty."""
        normalize = self._settings.get("normalize")
        if normalize is None or isinstance(normalize, str):
            return [([], []) for _ in names]
        if not isinstance(normalize, Mapping):
            if len(names) > 1:
                raise UsageError(
                    f"normalize: the network takes the inputs {', '.join(names)}: give a dict of pairs (mean, stddev) "
                    "by these names"
                )
            normalize = {names[0]: normalize}
        pairs = [normalize.get(name, ((), ())) for name in names]
        return [
            (list(np.atleast_1d(mean).astype(float)), list(np.atleast_1d(stddev).astype(float)))
            for mean, stddev in pairs
        ]

    def _require_expected(self, core: _core.Network) -> None:
        """Checks the sizes that the layers' constructors were given."""
        shapes = {name: shape for name, _, shape, _, _ in core.tensors()}
        for layer, name in zip(self._layers, self._names, strict=True):
            for key, size in layer.expected.items():
                found = found_size(layer, key, name, shapes)
                if found is not None and found != size:
                    raise UsageError(
                        f"{type(layer).__name__} '{name}': {key} is {size}, and its input has {found}; "
                        f"give {key}={found}, or None to take what comes"
                    )

    def _needs_images(self) -> bool:
        return self._layers[0].type in ("conv2d", "conv2d_transpose", "max_pool", "avg_pool", "upsample", "pad")

    def _input_names(self) -> list[str]:
        """In the order in which the library takes their arrays."""
        if self._core is None or len(self._inputs) == 1:
            return [one.name for one in self._inputs]
        return [one["name"] for one in self._core.info()["inputs"]]

    def _samples(self, x: Any, what: str = "x") -> list[Array]:
        """The arrays of the inputs."""
        given = by_input(x, self._input_names(), what)
        if self._core is None:
            images = len(given) == 1 and self._needs_images()
            first = [
                integers_of(value, name, shape=one.shape)
                if one.is_integer
                else samples_of(value, name, shape=one.shape, images=images)
                for (value, name), one in zip(given, self._inputs, strict=True)
            ]
            self._build(first)
            return first
        inputs = self._core.info()["inputs"]
        fresh = self._core.steps == 0 and not self._text and not self._training
        arrays = [_array_of(one, name, info, fresh) for (one, name), info in zip(given, inputs, strict=True)]
        if len({len(array) for array in arrays}) > 1:
            rows = ", ".join(f"{name} {len(array)}" for array, (_, name) in zip(arrays, given, strict=True))
            raise UsageError(f"{what}: the inputs have different numbers of rows: {rows}")
        dtypes = [_dtype_of(array) for array in arrays]
        if dtypes != [info["dtype"] for info in inputs]:  # never trained: the weights are those of either type
            self._retype(dtypes)
        return arrays

    def _retype(self, dtypes: Sequence[str]) -> None:
        self._built().set_dtypes(dtypes)
        self._answers = None

    def _built(self) -> _core.Network:
        if self._core is None:
            first = self._layers[0]
            size = first.expected.get("in_features")
            if first.type == "linear" and size is not None:
                return self._build([np.empty((1, size), np.float32)])
            raise UsageError(
                "the network has no weights yet, since the shape of a sample is not known: give "
                "Sequential(..., input_shape=(channels, height, width)), or call it with an array first"
            )
        return self._core

    # ---- training

    def compile(
        self,
        optimizer: Setting | None = None,
        loss: Setting | None = None,
        *,
        learning_rate: float | None = None,
        schedule: Setting | None = None,
        backend: str | os.PathLike[str] = "auto",
        precision: str = "fp32",
        augmentation: Mapping[str, Any] | None = None,
        early_stopping: Mapping[str, Any] | None = None,
        task: str | None = None,
        normalize: str | tuple[Any, Any] | Mapping[str, tuple[Any, Any]] | None = None,
        scale_targets: bool = False,
        training: Mapping[str, Any] | None = None,
        device: int = 0,
        threads: int = 0,
        plugins: Sequence[str | os.PathLike[str]] = (),
    ) -> Network:
        """Says how the network is trained; nothing is computed yet. Weights stay, what an optimizer knew is forgotten.

        Args:
            optimizer: a name ("sgd", "adam", "adamw", ...) or a map with its keys, as ``optimizer`` in YAML.
            loss: a name or a map, as ``loss`` in YAML; "mse", "bce" and "ce" are short forms. None: by the targets:
                cross_entropy for a class a row, binary_cross_entropy for several labels, else mean_squared_error.
            learning_rate: of the optimizer, in place of its own key.
            schedule, augmentation, early_stopping: as the sections of these names in YAML.
            backend: a plugin's name or file. "auto": the fastest that works here.
            precision: "fp32", "tf32", "bf16" or "f16".
            task: "classification", "regression" or "multi_label". None: by loss and targets.
            normalize: None takes samples as they are (uint8 pixels divided by 255); "data" by the mean and standard
                deviation of the training samples, channel by channel; or a pair (mean, stddev), of several inputs a
                dict of pairs. Weights that are loaded bring their own normalisation, which only a pair replaces.
            scale_targets: of a regression, learn (target - mean) / stddev; ``predict`` answers in the targets' units.
            training: further keys of the section ``training`` in YAML: "ema", "freeze", "accumulate", ...
            device: counted from 0. threads: of the host, 0: the backend's choice.
            plugins: files and folders to find backends in, besides the usual places.

        Raises ConfigError with all mistakes at once. Returns the network.
        """
        chosen: dict[str, Any] = {}
        if optimizer is not None:
            if not isinstance(optimizer, str | Mapping):
                raise UsageError(f"optimizer: expected a name or a map of its keys, found {type(optimizer).__name__}")
            chosen = {"type": optimizer} if isinstance(optimizer, str) else dict(optimizer)
        if learning_rate is not None:
            chosen["learning_rate"] = learning_rate
        if isinstance(loss, str):
            loss = _LOSSES.get(loss, loss)
        if normalize is not None and isinstance(normalize, str) and normalize != "data":
            raise UsageError(f"normalize is None, 'data' or a pair (mean, stddev), found {normalize!r}")
        if isinstance(normalize, Mapping) and (unknown := set(normalize) - set(self._input_names())):
            raise UsageError(
                f"normalize: the network takes the inputs {', '.join(self._input_names())}, found "
                f"{', '.join(sorted(unknown))}"
            )
        settings = {
            "optimizer": chosen or None,
            "loss": loss,
            "schedule": {"type": schedule} if isinstance(schedule, str) else schedule,
            "backend": os.fspath(backend),
            "precision": precision,
            "augmentation": augmentation,
            "early_stopping": early_stopping,
            "task": task,
            "normalize": normalize,
            "scale_targets": scale_targets,
            "training": training,
            "device": device,
            "threads": threads,
            "plugins": [plugins] if isinstance(plugins, str | os.PathLike) else plugins,
        }
        before, text = self._settings, self._text
        self._settings, self._text = settings, ""
        try:
            _core.read_model(self._experiment(), self.name)
            if self._core is not None:
                self._apply(self._core)
                self._core.forget_training()
        except Exception:
            self._settings, self._text = before, text
            raise
        self._answers = None
        return self

    def _apply(
        self,
        core: _core.Network,
        task: str | None = None,
        loss: Setting | None = None,
        outputs: Sequence[str] | None = None,
        settings: Sequence[tuple[str, str]] = (),
    ) -> None:
        info = core.info()
        measured = self._settings.get("normalize") == "data" and core.steps == 0 and not self._learnt_task
        normalisations = self._normalisations(self._input_names())
        for i, one in enumerate(info["inputs"]):
            if not normalisations[i][0] and not measured and one["kind"] != "tokens":
                size = one["shape"][0]  # what the weights were learnt with, or nothing
                normalisations[i] = (one["mean"] or [0.0] * size, one["stddev"] or [1.0] * size)
        learnt = self._text or self._learnt_task
        names = list(outputs) if outputs is not None else (info["outputs"] if learnt else [])
        core.set(self._experiment(task, loss), self.name, list(settings), normalisations, names)

    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        epochs: int = 1,
        batch_size: int | None = None,
        sample_weight: Any = None,
        validation_data: Any = None,
        validation_split: float = 0.0,
        shuffle: bool = True,
        drop_last: bool = False,
        steps_per_epoch: int | None = None,
        callbacks: Sequence[Any] = (),
        verbose: bool = False,
        run_folder: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> History:
        """Trains for ``epochs`` epochs. A later call goes on where the last one ended: steps and epochs are counted,
        whatever rows and batches the calls have.

        Args:
            x: samples ``[rows, ...]``, of which there is no copy where they are contiguous and float32 or float64, or
                uint8 images; or batches: an iterable of pairs (samples, targets), an object with ``__getitem__`` that
                gives such pairs, or a function that makes one. ``fit`` iterates again in each epoch, so that
                augmentation can differ. It copies a batch before it requests the next one.
            y: targets of ``x``: classes ``[rows]`` from 0, numbers ``[rows, outputs]``, or a 0 or 1 for each label.
                Integers are classes unless ``compile`` was given ``loss="mse"``.
            batch_size: rows of a step, 32 for arrays; of batches the most that one has, the first one's where None.
            sample_weight: of arrays, ``[rows]``: a factor of at least 0 for the loss of each row. The loss of a step
                stays the mean over its rows.
            validation_data: a pair (x, y), or batches; evaluated after each epoch.
            validation_split: the share of the rows that is put aside for that instead.
            shuffle: draw a new order of the rows for each epoch, from the network's seed.
            drop_last: leave out the last batch of an epoch where it is not full. Otherwise a last batch of one row
                joins the batch before it, since a batch norm can't learn from one row.
            steps_per_epoch: of batches that have no end, or no length.
            callbacks: as those of ``gpunn.run``: see :class:`gpunn.Callback`. Functions are called as ``on_epoch``.
                What returns True or raises :class:`gpunn.StopTraining` ends the training. An exception ends it too;
                the weights are then those of the step at hand.
            verbose: print a line an epoch.
            run_folder: write a run folder, as ``gpunn run`` does; it must not exist.
            settings: keys of the experiment in YAML by their full names, as ``{"checkpoint.every_steps": 100}``.

        Returns what was recorded in this call. Ctrl-C keeps the weights of the step at hand and raises
        KeyboardInterrupt. Raises UsageError where an argument does not fit, DivergedError where a loss is NaN.
        """
        epochs = count_of(epochs, "epochs")
        history = History()
        listener = FitListener(callbacks, history, verbose, self._forget_answers)
        batches = None
        if is_batches(x, alone=y is None):
            if y is not None:
                raise UsageError("batches bring their targets with them: leave y out")
            batches = Batches(x, steps_per_epoch, epochs)
            x, y = batches.first
        elif steps_per_epoch is not None:
            raise UsageError("steps_per_epoch is for batches; arrays have as many steps as batch_size gives")
        if y is None:
            raise UsageError("y: a training needs targets")
        if batches is not None and sample_weight is not None:
            raise UsageError("sample_weight is for arrays; batches are pairs (samples, targets)")
        first = "" if batches is None else "batch 1, "
        samples = self._samples(x, f"{first}x")
        if batches is not None:
            samples = [_widest(array) for array in samples]
        core = self._built()
        all_rows = len(samples[0])
        task, targets = self._learn(core, y, all_rows, f"{first}y")
        weights = weights_of(sample_weight, all_rows)
        outputs = len(core.info()["outputs"])
        if validation_data is not None and validation_split != 0:
            raise UsageError("give validation_data or validation_split, not both")
        checked = gathered(validation_data, "validation_data") if validation_data is not None else None
        val_x = val_y = None
        if checked is not None:
            val_x = self._samples(checked[0], "validation x")
            val_y = targets_of(checked[1], task, outputs, len(val_x[0]), "validation y")
        usual = all_rows if batches is not None else 32
        most = usual if batch_size is None else count_of(batch_size, "batch_size")
        if batches is None:
            most = min(most, max(1, all_rows - round(validation_split * all_rows)))
        options = {
            "training.epochs": epochs,
            "data.batch_size": most,
            "data.shuffle": shuffle and batches is None,
            "data.drop_last": drop_last and batches is None,
            "data.validation_fraction": validation_split,
        } | dict(settings or {})
        self._apply(
            core, task, self._loss(task, core), core.info()["outputs"], [(k, flow(v)) for k, v in options.items()]
        )
        next_batch: Callable[[int], tuple[list[Array], Array]] | None = None
        if batches is not None:
            next_batch = batches.begin(self._converter(core, task, outputs, most))
        rows = batches.steps * most if batches is not None else all_rows
        self._forget_answers()
        self._training = True
        try:
            core.train(
                samples,
                targets if batches is None else None,
                weights,
                val_x,
                val_y,
                next_batch,
                rows,
                listener,
                "" if run_folder is None else os.fspath(run_folder),
                "f16" if getattr(x, "dtype", None) == np.float16 else "",
            )
        finally:
            self._training = False
            self._forget_answers()
            self.history.epochs.extend(history.epochs)
        listener.on_end(history)
        return history

    def _forget_answers(self) -> None:
        self._answers = None  # it has the weights of another moment

    def _loss(self, task: str, core: _core.Network) -> Setting:
        loss: Setting | None = self._settings.get("loss")
        if loss is not None:
            return loss
        columns = self._columns(core)
        return "binary_cross_entropy" if task == "classification" and columns == 1 else _DEFAULT_LOSS[task]

    def _columns(self, core: _core.Network) -> int:
        """Number of outputs of the last layer for each row."""
        shape = self._output_shape(core)
        if len(shape) != 1:
            raise UsageError(
                f"the network gives {list(shape)} for each sample; what is trained on arrays gives [outputs]: end with "
                "Flatten or Linear"
            )
        return int(shape[0])

    def _output_layer(self) -> int:
        """The number of the layer that gives the first output."""
        return self._names.index(next(iter(self._outputs.values()))) if self._outputs else len(self._layers) - 1

    def _sample_shape(self, core: _core.Network) -> list[int]:
        """Of the only input; empty where there are several, whose shapes the model has."""
        inputs = core.info()["inputs"]
        return list(inputs[0]["shape"]) if len(inputs) == 1 and inputs[0]["kind"] != "tokens" else []

    def _output_shape(self, core: _core.Network) -> list[int]:
        summary = _core.summarize(self._plain_experiment(), self.name, self._sample_shape(core))
        return list(summary.layers[self._output_layer()].output[1:])

    def _plain_experiment(self) -> str:
        text = "model:\n" + "".join(f"  {line}\n" for line in self.to_yaml().splitlines())
        return text + "data: {dataset: arrays, batch_size: 1}\ntask: regression\n"

    def _learn(self, core: _core.Network, y: Any, rows: int, what: str = "y") -> tuple[str, Array]:
        """Sets the network's task, and returns the targets in its form."""
        given = as_array(y, what)
        if self._text:
            task = str(core.info()["task"])
            return task, targets_of(given, task, len(core.info()["outputs"]), rows, what)
        columns = self._columns(core)
        loss = self._settings.get("loss")
        kind = loss if isinstance(loss, str) or loss is None else str(loss.get("type", "cross_entropy"))
        task = self._settings.get("task") or infer_task(given, kind, columns)
        if core.steps > 0 and core.info()["task"] != task:
            raise UsageError(
                f"the network has learnt {core.info()['task']}, and these targets are of {task}; compile it anew first"
            )
        self._apply(core, task, self._loss(task, core), settings=[])
        return task, targets_of(given, task, len(core.info()["outputs"]), rows, what)

    def _converter(
        self, core: _core.Network, task: str, outputs: int, most: int
    ) -> Callable[[Any, Any, str], tuple[list[Array], Array]]:
        inputs, names = core.info()["inputs"], self._input_names()

        def convert(x: Any, y: Any, what: str) -> tuple[list[Array], Array]:
            arrays: list[Array] = []
            for (one, name), info in zip(by_input(x, names, f"{what}, x"), inputs, strict=True):
                array = _widest(_array_of(one, name, info, fresh=False))
                if len(array) > most:
                    raise UsageError(
                        f"{what} has {len(array)} rows, more than the {most} of the first or of batch_size; give fit "
                        "the largest as batch_size"
                    )
                if len(array) != len(arrays[0] if arrays else array):
                    raise UsageError(f"{name}: expected {len(arrays[0])} rows, as of {names[0]}, found {len(array)}")
                if array.dtype == np.float64 and not (np.abs(array) <= np.finfo(np.float32).max).all():
                    raise UsageError(f"{name}: holds NaN or an infinity")
                arrays.append(array)
            return arrays, targets_of(y, task, outputs, len(arrays[0]), f"{what}, y")

        return convert

    def evaluate(self, x: Any, y: Any = None, *, batch_size: int = 256, sample_weight: Any = None) -> dict[str, float]:
        """Loss and metrics on samples and their targets, or on batches: a dict of "loss", "accuracy", ...

        sample_weight: as :meth:`fit` has it. Metrics count each row once.
        """
        if is_batches(x, alone=y is None):
            if y is not None:
                raise UsageError("batches bring their targets with them: leave y out")
            x, y = gathered(x, "x", alone=True)
        elif y is None:
            raise UsageError("y: an evaluation needs targets")
        samples = self._samples(x)
        core = self._built().copy()  # so that a callback of a training may evaluate
        task, targets = self._learn(core, y, len(samples[0]))
        size = [("data.eval_batch_size", str(batch_size))]
        self._apply(core, task, self._loss(task, core), core.info()["outputs"], size)
        report = dict(core.evaluate(samples, targets, weights_of(sample_weight, len(samples[0]))))
        if not math.isfinite(report["loss"]):
            warnings.warn(f"the loss is {report['loss']}: outputs are NaN or infinite", RuntimeWarning, stacklevel=2)
        return report

    # ---- answers

    def _run(self, x: Any, outputs: Sequence[int]) -> list[npt.NDArray[Any]]:
        """The outputs of these numbers; -1 is that of the predictions, where there are any."""
        samples = self._samples(x)
        core = self._built()
        wanted = min(len(samples[0]), _AT_A_TIME)
        if self._answers is None or self._answers.max_batch < wanted:
            unknown = any(not one["mean"] for one in core.info()["inputs"])
            if not self._training and not self._text and core.steps == 0 and unknown:
                self._apply(core)
            self._answers = core.model(wanted)
        answers = self._answers
        names = [one.name for one in answers.inputs]
        if len(names) > 1:  # in the order of the answers' inputs
            by_name = dict(zip(self._input_names(), samples, strict=True))
            samples = [by_name[name] for name in names]
        last = len(answers.outputs) - 1
        predictions = last if last >= max(len(self._outputs), 1) else 0
        return answers.run(samples, [predictions if one < 0 else one for one in outputs])

    def forward(self, x: Any) -> Any:
        """The last layer's output for samples ``[rows, ...]``: float32 ``[rows, ...]``. Its ``.kind`` is
        "probabilities" if the network ends in a softmax or sigmoid, else "logits" or "values". Of several outputs, a
        dict by their names."""
        kinds = {"softmax": "probabilities", "sigmoid": "probabilities", "log_softmax": "log_probabilities"}
        regression = self._core is not None and self._core.info()["task"] == "regression"
        other = "values" if regression else "logits"
        types = {name: layer.type for name, layer in zip(self._names, self._layers, strict=True)}
        if not self._outputs:
            return outputs_of(self._run(x, [0])[0], kinds.get(self._layers[-1].type, other))
        arrays = self._run(x, range(len(self._outputs)))
        named: dict[str, Outputs] = {
            name: outputs_of(array, kinds.get(types[layer], other))
            for (name, layer), array in zip(self._outputs.items(), arrays, strict=True)
        }
        return named if len(named) > 1 else next(iter(named.values()))

    __call__ = forward

    def predict(self, x: Any) -> npt.NDArray[Any]:
        """Probabilities ``[rows, classes]`` or ``[rows, labels]``; for a regression numbers in the targets' units:
        float64 if it was compiled with ``scale_targets``, else float32."""
        return self._run(x, [-1])[0]

    # ---- weights

    def state_dict(self) -> OrderedDict[str, npt.NDArray[np.float32]]:
        """Copies of the parameters and buffers, by name: "conv2d1.weight".

        The normalisation of samples and the scale of targets are in the attribute ``_metadata``, where PyTorch's state
        dictionaries keep what is not a tensor. Pickles and copies keep it; a new dictionary of the same items and
        ``.npz`` files do not.
        """
        core = self._built()
        tensors = {name: core.read(name) for name, *_ in core.tensors()}
        return state_of(tensors, core.preparation() if core.is_prepared else None)

    def parameters(self) -> dict[str, npt.NDArray[np.float32]]:
        """Copies of the parameters, in the order of the layers."""
        core = self._built()
        return {name: core.read(name) for name, _, _, buffer, _ in core.tensors() if not buffer}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Loads arrays by name, also PyTorch's. ``strict``: every tensor must be there, and no other. Arrays of
        another shape are refused before anything is changed.

        The state of a network of gpunn brings the normalisation of samples and the scale of targets. Of any other
        state the network keeps its own."""
        core = self._built()
        shapes = {name: tuple(shape) for name, _, shape, _, _ in core.tensors()}
        wrong = [f"missing: {name}" for name in shapes if name not in state and strict]
        taken: dict[str, Array] = {}
        for name, value in state.items():
            if name not in shapes:
                if strict and not name.endswith("num_batches_tracked"):
                    wrong.append(f"not of this network: {name}")
                continue
            array = as_array(value, name)
            if array.shape != shapes[name]:
                wrong.append(f"{name}: expected {list(shapes[name])}, found {list(array.shape)}")
            taken[name] = np.ascontiguousarray(array, dtype=np.float32)
        if wrong:
            raise UsageError("the state does not fit the network:\n  " + "\n  ".join(wrong))
        preparation = preparation_of(state)
        if preparation is not None:
            core.take_preparation(preparation)
        for name, array in taken.items():
            core.write(name, array)
        self._adopt_preparation()

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes a checkpoint (``.h5``), which :meth:`load`, ``gpunn.load`` and ``gpunn predict`` read; or the
        tensors, with the preparation of samples as metadata, if the name ends in ``.safetensors``."""
        if Path(file).suffix not in (".h5", ".hdf5", ".safetensors"):
            raise UsageError(
                f"{os.fspath(file)}: expected a name that ends in .h5, .hdf5 or .safetensors; gpunn.export() turns a "
                "checkpoint into an ONNX file or an engine"
            )
        core = self._built()
        if not self._text and core.steps == 0:
            self._apply(core, outputs=core.info()["outputs"])
        core.save(Path(file))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Network:
        """A network from a checkpoint, a run folder or an ONNX file, to be used or trained further."""
        core = _core.Network.load(Path(path))
        network = _network_of("network", core.ends(), core.layers(), build=False)
        if len(network._inputs) == 1:
            network._inputs[0].shape = list(core.info()["inputs"][0]["shape"])
        network._core = core
        network._text = core.resolved()
        network._learnt_task = str(core.info()["task"]) if core.is_prepared else ""
        return network

    def load_weights(
        self, file: str | os.PathLike[str], *, names: str | os.PathLike[str] | None = None, strict: bool = True
    ) -> str:
        """Loads weights from a checkpoint, run folder, ``.onnx`` or ``.safetensors`` file. ``names`` is a table of the
        file's names, as ``init_from.names`` in YAML. The normalisation of samples and the scale of targets come with
        the weights of a file that gpunn wrote; training keeps them. Returns sentences that say what was loaded."""
        report = self._built().read_file(Path(file), "" if names is None else Path(names), strict)
        own = self._adopt_preparation()
        return report + (f"\n  {own}" if own else "")

    def _adopt_preparation(self) -> str:
        """Fits the settings to the preparation that was taken with weights. Returns a sentence if a pair that was given
        as ``normalize`` replaces the weights' normalisation."""
        core = self._built()
        self._answers = None
        if not core.learnt_task:
            return ""
        if self._text:
            self._text = core.resolved()
            return ""
        info, task = core.info(), self._settings.get("task") or core.learnt_task
        given = self._normalisations(self._input_names())
        # Networks that make images, or parts of the learnt one, keep their own task.
        if task in _DEFAULT_LOSS and len(self._output_shape(core)) == 1:
            self._learnt_task = core.learnt_task
            self._apply(core, task, self._loss(task, core), info["outputs"])
        elif any(mean for mean, _ in given):
            self._apply(core)
        replaced = []
        for (mean, stddev), learnt in zip(given, info["inputs"], strict=True):
            if not mean or (np.allclose(mean, learnt["mean"]) and np.allclose(stddev, learnt["stddev"])):
                continue
            replaced.append(
                f"compile(normalize=...) replaces that: mean {mean}, deviation {stddev}. The weights were learnt with "
                f"mean {learnt['mean']}, deviation {learnt['stddev']}"
            )
        own = "\n  ".join(replaced)
        if own:
            warnings.warn(own, UserWarning, stacklevel=3)
        return own

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_answers"] = None
        state["history"] = History(self.history.epochs)  # a copy records its own epochs
        core = state.pop("_core")
        state["_saved"] = None
        if core is not None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "network.h5"
                core.save(file)
                state["_saved"] = file.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("_saved")
        self._learnt_task = ""  # which pickles of older versions do not have
        if "_input" in state:  # an older version's
            state["_inputs"], state["_outputs"] = [InputOf(shape=state.pop("_input"))], {}
        self.__dict__.update(state)
        self._core = None
        if saved is not None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "network.h5"
                file.write_bytes(saved)
                self._core = _core.Network.load(file)

    # ---- to be read

    def summary(self, input_shape: Sequence[int] | None = None) -> str:
        """A table of the layers, their outputs for a sample and their parameters. Returns the text."""
        shape = list(input_shape) if input_shape is not None else self._sample_shape(self._built())
        report = _core.summarize(self._plain_experiment(), self.name, shape)
        rows = [("layer", "type", "output", "parameters")]
        rows += [(one.name, one.type, str(tuple(one.output[1:])), f"{one.parameters:,}") for one in report.layers]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(
                cell.rjust(width) if i == 3 else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        lines.append(
            f"{report.parameters:,} parameters, {report.buffers:,} numbers in buffers, "
            f"{report.forward_flops / 1e6:,.2f} MFLOP for a sample"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        inner = "".join(f"  ({name}): {layer!r}\n" for name, layer in zip(self._names, self._layers, strict=True))
        return f"{type(self).__name__}(\n{inner})"


class Sequential(Network):
    """A chain of layers: ``Sequential([Conv2d(1, 6, 5), ReLU(), ...])``, or ``Sequential(Conv2d(1, 6, 5), ...)``.

    ``input_shape`` is the shape of one sample; without it the network has its weights from the first array on.
    """

    def __init__(
        self,
        *layers: Layer | Iterable[Layer],
        input_shape: Sequence[int] | None = None,
        name: str = "network",
        seed: int = 1,
    ) -> None:
        chain: list[Layer] = []
        for one in layers:
            parts = one.layers if isinstance(one, Network) else [one] if isinstance(one, Layer) else list(one)
            for part in parts:
                chain.extend(part.layers if isinstance(part, Network) else [part])
        for layer in chain:
            if not isinstance(layer, Layer):
                raise UsageError(f"Sequential takes layers of gpunn, found {type(layer).__name__}")
        seen: set[int] = set()
        for layer in chain:
            require_once(layer, seen)
        shape = None if input_shape is None else [int(size) for size in input_shape]
        self._begin([(layer, []) for layer in chain], [InputOf(shape=shape)], name, seed)

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, index: int) -> Layer:
        return self._layers[index]


def from_yaml(source: str | os.PathLike[str], *, seed: int = 1, **parameters: Any) -> Network:
    """A network of a model in YAML: a file, or the text itself. ``parameters`` are those that the model declares.

    Its blocks are taken apart and its parameters put in. ``Sequential`` where it is a chain, else ``Network``.
    """
    text = os.fspath(source)
    is_text = "\n" in text or ": " in text
    origin = "model.yaml" if is_text else text
    if is_text:
        model = "model:\n" + "".join(f"  {line}\n" for line in text.splitlines())
        if parameters:
            raise UsageError("parameters are for a model in a file; put them into the text")
    else:
        inner: dict[str, Any] = {"file": str(Path(text).absolute())}
        if parameters:
            inner["parameters"] = parameters
        model = section("model", inner)
    name, ends, layers = _core.read_model(model + "data: {dataset: arrays, batch_size: 1}\ntask: regression\n", origin)
    return _network_of(name, ends, layers, seed=seed)


def _array_of(value: Any, what: str, info: Mapping[str, Any], fresh: bool) -> Array:
    """The array of an input. ``fresh``: of a network whose samples may be of either type."""
    if info["kind"] == "tokens":
        return integers_of(value, what, shape=list(info["shape"]))
    return samples_of(value, what, shape=list(info["shape"]), dtype=None if fresh else info["dtype"])


def _dtype_of(array: Array) -> str:
    return {np.uint8: "u8", np.int32: "i32"}.get(array.dtype.type, "f32")


def _widest(array: Array) -> Array:
    """All batches have one type."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _network_of(
    name: str, ends: tuple[Sequence[Any], Sequence[Any]], layers: Sequence[Any], *, seed: int = 1, build: bool = True
) -> Network:
    made = [CLASS_OF[kind]._restored(given, values(kind, keys)) for kind, given, _, keys in layers]
    by_name = {layer.name: layer for layer in made}
    chain: Chain = [
        (layer, [by_name.get(source, source) for source in sources])
        for layer, (_, _, sources, _) in zip(made, layers, strict=True)
    ]
    # A sample without dimensions, one number, is of a stated type.
    inputs = [
        InputOf(given, list(shape) if shape or dtype else None, "" if dtype == "f32" else dtype)
        for given, shape, dtype in ends[0]
    ]
    outputs = {given: by_name[layer] for given, layer in ends[1]}
    is_chain = len(inputs) == 1 and not outputs and not any(sources for _, sources in chain)
    network: Network = Network.__new__(Sequential if is_chain else Network)
    network._begin(chain, inputs, name, seed, outputs, build=build)
    return network
