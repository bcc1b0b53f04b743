"""Plans, races, measurements and checks: the other verbs of the program."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gpunn import _core
from gpunn._core import (
    BenchReport,
    CheckCase,
    CheckReport,
    Dataset,
    DatasetInfo,
    OpBenchReport,
    PlanReport,
    PluginReport,
    RaceReport,
    ScheduleReport,
    SummaryReport,
)
from gpunn._experiment import ExperimentLike, PathLike, load_experiment, paths_of
from gpunn._listener import Listener
from gpunn._progress import TrainingBar, is_shown
from gpunn.callbacks import Callback
from gpunn.errors import UsageError


def plugins(extra: Sequence[PathLike] = ()) -> list[PluginReport]:
    """Every backend that is found, and whether it can be used here: ``status`` is ``"OK"``, ``"NO_DEVICE"``, ..."""
    return _core.list_plugins(paths_of(extra))


def datasets() -> list[DatasetInfo]:
    """The data sets that experiments may name; ``found`` says which are on this machine."""
    return _core.list_datasets()


def download(name: str) -> Path:
    """Fetches a data set into the user's cache folder, checks its digests, and returns the folder."""
    return _core.download_dataset(name)


def load_dataset(name: str, *, task: str = "classification", **settings: Any) -> Dataset:
    """A data set as arrays: ``x_train``, ``y_train``, ``x_test``, ``y_test``.

    name: one of ``gpunn.datasets()``. task: what its targets are read for, as in an experiment.
    settings: other keys of the section ``data`` of an experiment, such as ``train_limit=1000`` or ``path="photos"``.
    """
    experiment = {
        "task": task,
        "model": {"layers": ["flatten", {"linear": {"units": 1}}]},
        "data": {"dataset": name, "batch_size": 1, **settings},
        "optimizer": {"type": "sgd"},
    }
    return _core.load_dataset(load_experiment(experiment))


def plan(experiment: ExperimentLike, **options: Any) -> PlanReport:
    """A training step as it would run, op by op, with its memory. ``options`` are those of ``load_experiment``."""
    return _core.plan(load_experiment(experiment, **options))


def schedule(experiment: ExperimentLike, **options: Any) -> ScheduleReport:
    """The learning rates that a training will have. ``options`` are those of ``load_experiment``."""
    return _core.plan_schedule(load_experiment(experiment, **options))


def summary(experiment: ExperimentLike, *, input_shape: Sequence[int] = (), **options: Any) -> SummaryReport:
    """What a model is made of, and what training it takes. No device is touched.

    experiment: an experiment, or the file of a model by itself, which needs ``input_shape``, that of one sample.
    """
    if input_shape:
        if not isinstance(experiment, (str, Path)) or options:
            raise UsageError("input_shape goes with the file of a model, and with no other option")
        return _core.summary(Path(experiment), [], list(input_shape))
    with tempfile.TemporaryDirectory() as folder:
        read = load_experiment(experiment, **options)
        file = Path(folder) / f"{read.name}.yaml"
        file.write_text(read.yaml(), encoding="utf-8")
        return _core.summary(file, [], [])


def race(
    experiment: ExperimentLike,
    backends: Sequence[str] = (),
    *,
    chart: PathLike | None = None,
    callbacks: Sequence[Callback | Any] = (),
    progress: bool | None = None,
    **options: Any,
) -> RaceReport:
    """Trains an experiment on one backend after another, by default on all that work here.

    chart: the SVG file of the learning curves; None: ``race.svg`` in the folder of the race. ``options`` are those of
    ``load_experiment``. A backend that fails is an entry with the reason.
    """
    read = load_experiment(experiment, **options)
    with ExitStack() as stack:
        bar = stack.enter_context(TrainingBar()) if is_shown(progress) else None
        listener = Listener(callbacks, bar)
        return _core.race(read, list(backends), Path(chart) if chart is not None else "", listener)


def bench(experiment: ExperimentLike, *, repeats: int = 30, warmup: int = 3, **options: Any) -> BenchReport:
    """Times the training step of an experiment. ``options`` are those of ``load_experiment``."""
    return _core.bench_experiment(load_experiment(experiment, **options), repeats, warmup)


def bench_ops(
    what: Sequence[tuple[str, str]] | str,
    *,
    backends: Sequence[str] = ("auto",),
    plugins: Sequence[PathLike] = (),
    kernels: Sequence[str] = (),
    precisions: Sequence[str] = ("fp32",),
    dtype: str = "f32",
    layout: str = "packed",
    repeats: int = 30,
    warmup: int = 3,
    threads: int = 0,
    cold: bool = False,
    ceilings: bool = True,
    seed: int = 1,
    chart: PathLike | None = None,
) -> OpBenchReport:
    """Times ops: ``[("matmul", "1024x1024x1024"), ("conv2d", "128,64,32,32,64,3,3,pad=1")]``, or the name of a preset.

    A range ``"512..8192"`` goes through powers of two. kernels: a row each, ``"all"`` for every one that there is.
    dtype: ``"f32"``, ``"bf16"`` or ``"f16"``; layout: ``"packed"`` or ``"channels-last"``. chart: an SVG file of the
    rows in the roofline.
    """
    shapes = _core.bench_preset(what) if isinstance(what, str) else list(what)
    return _core.bench_ops(
        shapes,
        list(backends),
        paths_of(plugins),
        list(kernels),
        list(precisions),
        dtype,
        layout,
        repeats,
        warmup,
        threads,
        cold,
        ceilings,
        seed,
        Path(chart) if chart is not None else "",
    )


def check(
    backend: str,
    *,
    suites: Sequence[str] = (),
    ops: Sequence[str] = (),
    cases: Sequence[str] = (),
    without: Sequence[str] = (),
    kernels: Sequence[str] = (),
    plugins: Sequence[PathLike] = (),
    profile: str = "",
    precision: str = "fp32",
    reference: str = "cpu",
    seed: int = 1,
    threads: int = 0,
    strict: bool = False,
    limit_seconds: int = 120,
    on_case: Callable[[CheckCase], None] | None = None,
) -> CheckReport:
    """Whether the kernels of a backend are right: its name, or the file of a plugin.

    suites, ops, cases, without, kernels: what is run; empty: all but the suite ``perf``. profile: what must not be
    missing. on_case: called with each case as it ends. The backend is opened in child processes: a kernel that crashes
    is a failed case.
    """
    return _core.check(
        backend,
        paths_of(plugins),
        list(suites),
        list(ops),
        list(cases),
        list(without),
        list(kernels),
        profile,
        precision,
        reference,
        seed,
        threads,
        strict,
        limit_seconds,
        on_case,
    )
