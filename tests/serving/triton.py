"""tritonclient and perf_analyzer, as they are, against the service."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from served import LIMIT, Server, ServingTest, digits

PYTHON = os.environ.get("GPUNN_TRITON_PYTHON", sys.executable)


class TritonTest(ServingTest):
    def test_the_client_of_python(self):
        if subprocess.run([PYTHON, "-c", "import tritonclient.http"], capture_output=True, timeout=LIMIT).returncode:
            self.skipTest("no tritonclient: pip install 'tritonclient[http]==2.50.0', or name a Python that has it in "
                          "GPUNN_TRITON_PYTHON")
        with Server(f"digits={digits()}") as server:
            script = Path(__file__).with_name("triton_client.py")
            done = subprocess.run([PYTHON, "-B", script, f"127.0.0.1:{server.port}"], capture_output=True, text=True,
                                  timeout=LIMIT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_perf_analyzer(self):
        program = shutil.which("perf_analyzer") or str(Path(PYTHON).with_name("perf_analyzer"))
        try:
            found = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LIMIT)
        except OSError:
            self.skipTest("no perf_analyzer: it comes with tritonclient==2.50.0")
        if "error while loading shared libraries" in found.stderr:
            self.skipTest("perf_analyzer can't start: " + found.stderr.strip())
        with Server(f"digits={digits()}") as server:
            done = subprocess.run([program, "-m", "digits", "-u", f"127.0.0.1:{server.port}", "-i", "http",
                                   "--concurrency-range", "4", "-p", "300", "-r", "3", "-s", "999"],
                                  capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = re.search(r"throughput: ([\d.]+) infer/sec", done.stdout)
            self.assertGreater(float(found[1]), 100)
