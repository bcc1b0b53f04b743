"""What all tests of the package share. They run against the package in a build tree, or against an installed one:

PYTHONPATH=build/dev/python python3 -m pytest
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import gpunn
import small

SOURCE = Path(__file__).parents[2]

# A shell without job control has what it starts in the background ignore Ctrl-C, and so would the programs under test.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test writes its runs nowhere else, and downloads nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(gpunn.__file__).absolute().parents[1]))
    monkeypatch.setenv("GPUNN_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def source() -> Path:
    """The source tree."""
    return SOURCE


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> gpunn.Run:
    """A run that no test changes."""
    return gpunn.run(small.experiment(), runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets; the test is skipped without it."""
    folder = os.environ.get("GPUNN_DATA_DIR")
    if not folder:
        pytest.skip("set GPUNN_DATA_DIR to the folder of data sets")
    return Path(folder)
