"""The program gpunn as a user meets it: `program_test.py GPUNN SOURCE_FOLDER [-k PATTERN]`. Standard library only."""

import os
import sys
import unittest
from pathlib import Path

if __name__ == "__main__":
    os.environ["GPUNN_PROGRAM"] = os.path.abspath(sys.argv[1])
    os.environ["GPUNN_SOURCE"] = str(Path(sys.argv[2]).resolve())
    tests = str(Path(__file__).resolve().parent / "program")
    unittest.main(module=None, argv=[sys.argv[0], "discover", "-v", "-s", tests, "-p", "*_test.py", *sys.argv[3:]])
