"""The records in a run folder: ``metrics.csv`` and ``metrics.jsonl``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from gpunn.errors import MissingError


def require_run(path: Path) -> None:
    """Raises MissingError if this is not a run folder."""
    if not (path / "resolved.yaml").is_file():
        raise MissingError(
            f"{path} is not a run folder: it has no resolved.yaml. gpunn.run() returns one, and 'runs' has "
            "those of earlier trainings"
        )


def epochs_of(run: Path) -> list[dict[str, float]]:
    """The record of each epoch."""
    file = run / "metrics.csv"
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(lines)]


def steps_of(run: Path) -> list[dict[str, float]]:
    """The records between epochs."""
    file = run / "metrics.jsonl"
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [
        {key: _value(value) for key, value in record.items() if key != "kind"}
        for record in records
        if record.get("kind") == "step"
    ]


def by_column(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}


def _number(text: str | None) -> float:
    if not text:
        return float("nan")
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _value(recorded: Any) -> Any:
    """JSON has null for an undefined metric, and "inf" for an infinite one."""
    return float("nan") if recorded is None else float(recorded) if isinstance(recorded, str) else recorded
