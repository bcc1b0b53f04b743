"""What the tests of the program share. program_test.py says which program, before it imports any of them."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

GPUNN = os.environ["GPUNN_PROGRAM"]
SOURCE = Path(os.environ["GPUNN_SOURCE"])
LIMIT = 120  # seconds that no command here comes near

EPOCH_LINE = re.compile(r"epoch +(\d+)/(\d+)  train loss")


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="gpunn-cli-"))
        cls.environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        for name in ("NO_COLOR", "GPUNN_PLUGIN_PATH"):
            cls.environment.pop(name, None)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def gpunn(self, *arguments, code=0, **environment):
        done = subprocess.run([GPUNN, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, env={**self.environment, **environment}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"gpunn {arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def points(self, *more):
        return ["run", SOURCE / "experiments" / "perceptron_points.yaml", "--backend", "cpu", *more]

    def digits(self, *more):
        return ["run", SOURCE / "experiments" / "lenet_digits.yaml", "--backend", "cpu", "--set",
                "data.synthetic_train=512", "--set", "data.synthetic_test=128", *more]
