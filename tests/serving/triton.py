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
    def need_client(self, face):
        if subprocess.run([PYTHON, "-c", f"import tritonclient.{face}"], capture_output=True, timeout=LIMIT).returncode:
            self.skipTest(f"no tritonclient: pip install 'tritonclient[{face}]==2.50.0', or name a Python that has it in "
                          "GPUNN_TRITON_PYTHON")

    def grpc_server(self, **environment):
        try:
            return Server(f"digits={digits()}", "--grpc-port", "0", environment=environment)
        except AssertionError as failure:
            if "gRPC can't be served" in str(failure):
                self.skipTest("gpunn was built without gRPC")
            raise

    def run_client(self, *arguments):
        done = subprocess.run([PYTHON, "-B", *arguments], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_client_of_python(self):
        self.need_client("http")
        with Server(f"digits={digits()}") as server:
            self.run_client(Path(__file__).with_name("triton_client.py"), f"127.0.0.1:{server.port}")

    def test_the_client_of_python_over_grpc(self):
        self.need_client("grpc")
        with self.grpc_server() as server:
            self.run_client(Path(__file__).with_name("triton_grpc_client.py"), server.grpc)
            server.terminate()
            self.assertEqual(server.ended()[0], 0)

    def test_grpc_wants_the_token(self):
        self.need_client("grpc")
        with self.grpc_server(GPUNN_SERVE_TOKEN="secret") as server:
            self.run_client("-c", f"""
import tritonclient.grpc as triton
client = triton.InferenceServerClient("{server.grpc}")
assert client.is_server_live()
assert client.get_server_metadata(headers={{"authorization": "Bearer secret"}}).name == "gpunn"
for headers in ({{}}, {{"authorization": "Bearer wrong"}}):
    try:
        client.get_server_metadata(headers=headers)
    except triton.InferenceServerException as error:
        assert error.status() == "StatusCode.UNAUTHENTICATED", error
    else:
        raise AssertionError("no error")
""")

    def test_perf_analyzer(self):
        program = shutil.which("perf_analyzer") or str(Path(PYTHON).with_name("perf_analyzer"))
        try:
            found = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LIMIT)
        except OSError:
            self.skipTest("no perf_analyzer: it comes with tritonclient==2.50.0")
        if "error while loading shared libraries" in found.stderr:
            self.skipTest("perf_analyzer can't start: " + found.stderr.strip())
        with Server(f"digits={digits()}") as server:
            self.analyze(program, f"127.0.0.1:{server.port}", "http")
        with self.grpc_server() as server:
            self.analyze(program, server.grpc, "grpc")

    def analyze(self, program, address, face):
        done = subprocess.run([program, "-m", "digits", "-u", address, "-i", face, "--concurrency-range", "4", "-p", "300",
                               "-r", "3", "-s", "999"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"throughput: ([\d.]+) infer/sec", done.stdout)
        self.assertGreater(float(found[1]), 100)
