"""The forms in which an experiment can be given, and the experiments and models of the package."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from gpunn import _core
from gpunn._core import Experiment
from gpunn.errors import UsageError

PathLike: TypeAlias = "str | os.PathLike[str]"
ExperimentLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Experiment"
Settings: TypeAlias = "Mapping[str, Any]"

_SHARE = Path(__file__).parent / "share"


def shipped_experiments() -> dict[str, Path]:
    """The experiments that come with gpunn, by name: ``gpunn.run("lenet_digits")`` trains one."""
    return {file.stem: file for file in sorted((_SHARE / "experiments").glob("*.yaml"))}


def shipped_models() -> dict[str, Path]:
    """The models that come with gpunn, by name: ``{"model": "lenet5", ...}`` takes one."""
    return {
        file.stem: file for file in sorted((_SHARE / "models").glob("*.yaml")) if not file.name.endswith(".names.yaml")
    }


def load_experiment(
    experiment: ExperimentLike,
    *,
    backend: str | None = None,
    set: Settings | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    runs: PathLike | None = None,
    plugins: Sequence[PathLike] = (),
    kernels: Sequence[str] = (),
) -> Experiment:
    """Reads an experiment and checks every key of it.

    ``experiment`` is the path of a YAML file, the name of a shipped experiment, YAML as text, or a dictionary of the
    same keys. ``set`` changes keys, as in ``{"optimizer.learning_rate": 0.1}``; strings are read as YAML. The other
    arguments are what the command line calls so. Raises :class:`ConfigError` with all mistakes at once.
    """
    settings = settings_of(set, backend=backend, epochs=epochs, steps=steps, seed=seed, threads=threads)
    result = _read(experiment, settings)
    if runs is not None:
        result.runs = Path(runs)
    if kernels:
        result.kernels = list(kernels)
    if plugins:
        result.plugins = [*paths_of(plugins), *result.plugins]
    return result


def settings_of(
    set: Settings | None = None,
    *,
    backend: str | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    input_shape: Sequence[int] | None = None,
) -> list[tuple[str, str]]:
    """Keys and their values in YAML; those with an argument of their own come last."""
    own = {
        "backend": backend,
        "training.epochs": epochs,
        "training.max_steps": steps,
        "model.input_shape": None if input_shape is None else ",".join(str(int(size)) for size in input_shape),
        "training.seed": seed,
        "training.threads": threads,
    }
    given = [*(set or {}).items(), *((key, value) for key, value in own.items() if value is not None)]
    return [(key, value if isinstance(value, str) else _yaml(value)) for key, value in given]


def model_settings(
    data: PathLike | None, set: Settings | None = None, backend: str | None = None
) -> list[tuple[str, str]]:
    """Settings of a trained model, which may be called with other data than it was trained on."""
    own = _core.data_settings(os.fspath(data)) if data is not None else []
    return [*own, *settings_of(set, backend=backend)]


def paths_of(paths: PathLike | Sequence[PathLike]) -> list[Path]:
    """Absolute paths."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [Path(os.path.abspath(path)) for path in several]


def _read(experiment: ExperimentLike, settings: list[tuple[str, str]]) -> Experiment:
    if isinstance(experiment, Experiment):
        copy = _core.parse_experiment(experiment.yaml(), experiment.name, settings)
        copy.runs, copy.plugins, copy.kernels = experiment.runs, experiment.plugins, experiment.kernels
        return copy
    if isinstance(experiment, Mapping):
        return _core.parse_experiment(_yaml(_with_shipped_model(experiment)), "experiment", settings)
    if isinstance(experiment, str):
        if "\n" in experiment or ": " in experiment or experiment.lstrip().startswith("{"):
            return _core.parse_experiment(experiment, "experiment", settings)
        if not os.path.exists(experiment):
            found = _shipped(experiment, shipped_experiments(), "experiment")
            return _core.load_experiment(found or Path(experiment), settings)
    elif not isinstance(experiment, os.PathLike):
        raise UsageError(
            "an experiment is the path of a YAML file, the name of a shipped one, YAML as text or a dictionary, "
            f"found {type(experiment).__name__}"
        )
    return _core.load_experiment(Path(experiment), settings)


def _shipped(name: str, known: Mapping[str, Path], kind: str) -> Path | None:
    """The file that comes with gpunn under a name; None if the name is the path of a file."""
    if name in known or os.path.basename(name) != name or os.path.splitext(name)[1]:
        return known.get(name)
    near = difflib.get_close_matches(name, known, 3)
    raise UsageError(
        f"there is no file {name!r}, and no {kind} of that name comes with gpunn; "
        + (f"did you mean {', '.join(map(repr, near))}?" if near else f"those that do: {', '.join(known)}")
    )


def _with_shipped_model(experiment: Mapping[str, Any]) -> Mapping[str, Any]:
    model = experiment.get("model")
    file = model.get("file") if isinstance(model, Mapping) else model
    if not isinstance(file, str) or os.path.exists(file):
        return experiment
    path = str(_shipped(file, shipped_models(), "model") or file)
    return {**experiment, "model": {**model, "file": path} if isinstance(model, Mapping) else path}


def _yaml(value: Any) -> str:
    """JSON, which is YAML."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return value.tolist()
    raise UsageError(f"a value of an experiment is a number, text, list or dictionary, found {type(value).__name__}")
