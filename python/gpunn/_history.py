"""The records of a network's trainings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpunn._numbers import metric_text


class History:
    """The records of a training: ``history`` has a list for each metric, ``epochs`` a dict for each epoch."""

    def __init__(self, epochs: Iterable[dict[str, Any]] = ()) -> None:
        self.epochs: list[dict[str, Any]] = list(epochs)

    @property
    def history(self) -> dict[str, list[Any]]:
        names = {name: None for epoch in self.epochs for name in epoch}
        return {name: [epoch.get(name) for epoch in self.epochs] for name in names}

    def frame(self) -> Any:
        """The same as a pandas.DataFrame, with a row for each epoch."""
        import pandas as pd

        return pd.DataFrame(self.epochs)

    def __getitem__(self, name: str) -> list[Any]:
        return self.history[name]

    def __len__(self) -> int:
        return len(self.epochs)

    def __repr__(self) -> str:
        if not self.epochs:
            return "History(no epoch)"
        last = {name: value for name, value in self.epochs[-1].items() if isinstance(value, float)}
        return f"History({len(self)} epochs, last: " + ", ".join(f"{k} {metric_text(v)}" for k, v in last.items()) + ")"
