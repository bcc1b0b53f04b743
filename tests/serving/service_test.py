"""`gpunn serve` as clients meet it: `service_test.py GPUNN SOURCE_FOLDER [NAME...]`, with names as unittest takes them.

tritonclient and perf_analyzer are used where they are installed: in this Python, or in that of $GPUNN_TRITON_PYTHON.
"""

import os
import sys
import unittest

os.environ["GPUNN_PROGRAM"] = os.path.abspath(sys.argv[1])
os.environ["GPUNN_SOURCE"] = os.path.abspath(sys.argv[2])

import served  # noqa: E402
from connections import ConnectionsTest  # noqa: E402, F401
from drain import DrainTest  # noqa: E402, F401
from inference import InferenceTest  # noqa: E402, F401
from images import ImagesTest  # noqa: E402, F401
from large_answers import LargeAnswersTest  # noqa: E402, F401
from repository import RepositoryTest  # noqa: E402, F401
from security import SecurityTest  # noqa: E402, F401
from triton import TritonTest  # noqa: E402, F401

if __name__ == "__main__":
    try:
        unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
    finally:
        served.clean_up()
