"""tritonclient and perf_analyzer, as they are, against the service."""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from served import FOLDER, LIMIT, Server, ServingTest, certificate, digits, enlarger

PYTHON = os.environ.get("GPUNN_TRITON_PYTHON", sys.executable)


class TritonTest(ServingTest):
    def need_client(self, face):
        if subprocess.run([PYTHON, "-c", f"import tritonclient.{face}"], capture_output=True, timeout=LIMIT).returncode:
            self.skipTest(f"no tritonclient: pip install 'tritonclient[{face}]==2.50.0', or name a Python that has it in "
                          "GPUNN_TRITON_PYTHON")

    def grpc_server(self, *arguments, **environment):
        try:
            return Server(f"digits={digits()}", "--grpc-port", "0", *arguments, environment=environment)
        except AssertionError as failure:
            for feature, words in (("gRPC", "gRPC can't be served"), ("OpenSSL", "built without OpenSSL"),
                                   ("protobuf", "built without protobuf")):
                if words in str(failure):
                    self.skipTest(f"gpunn was built without {feature}")
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

    def test_large_answers_over_grpc(self):
        """They are sent without a copy of their own: each client gets its values, whoever shares its batch."""
        self.need_client("grpc")
        with self.grpc_server(f"big={enlarger()}", "--max-batch", "8", "--max-delay", "20000") as server:
            self.run_client("-c", f"""
import threading
import numpy as np, tritonclient.grpc as triton
problems = []
def client(number):
    service = triton.InferenceServerClient("{server.grpc}")
    for i in range(6):
        x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8) + 1000 * number + i
        given = triton.InferInput("x", x.shape, "FP32").set_data_from_numpy(x)
        y = service.infer("big", [given]).as_numpy("outputs")
        if not np.array_equal(y, x.repeat(32, 2).repeat(32, 3)):
            problems.append((number, i))
threads = [threading.Thread(target=client, args=(number,)) for number in range(1, 9)]
for one in threads: one.start()
for one in threads: one.join()
assert not problems, problems
""")

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

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
    def test_grpc_over_tls(self):
        self.need_client("grpc")
        chain, key = certificate()
        with self.grpc_server("--tls-certificate", chain, "--tls-key", key) as server:
            self.run_client("-c", f"""
import grpc
import numpy as np
import tritonclient.grpc as triton
client = triton.InferenceServerClient("{server.grpc}", ssl=True, root_certificates="{chain}")
assert client.is_server_ready()
image = triton.InferInput("image", (1, 1, 28, 28), "UINT8").set_data_from_numpy(np.zeros((1, 1, 28, 28), np.uint8))
assert abs(client.infer("digits", [image]).as_numpy("probabilities").sum() - 1) < 1e-5
# A client that does not know the certificate, and one that speaks no TLS.
for stranger in (triton.InferenceServerClient("{server.grpc}", ssl=True), triton.InferenceServerClient("{server.grpc}")):
    try:
        stranger.is_server_live(client_timeout=20)
    except triton.InferenceServerException as error:
        assert error.status() == "StatusCode.UNAVAILABLE", error
    else:
        raise AssertionError("no error")
""")
            server.terminate()
            self.assertEqual(server.ended()[0], 0)

    def test_large_answers_over_grpc(self):
        self.need_client("grpc")
        with self.grpc_server(f"big={enlarger()}") as server:
            self.run_client("-c", f"""
import numpy as np
import tritonclient.grpc as triton
client = triton.InferenceServerClient("{server.grpc}")
for rows in (1, 3):
    image = np.arange(rows * 64, dtype=np.float32).reshape(rows, 1, 8, 8)
    tensor = triton.InferInput("x", image.shape, "FP32").set_data_from_numpy(image)
    large = client.infer("big", [tensor]).as_numpy("outputs")
    assert np.array_equal(large, image.repeat(32, 2).repeat(32, 3))
""")

    def test_grpc_loses_no_call_when_the_service_stops(self):
        self.need_client("grpc")
        log = FOLDER / "grpc.log"
        with self.grpc_server("--instances", "2", "--access-log", log) as server:
            clients = subprocess.Popen([PYTHON, "-B", Path(__file__).with_name("triton_load.py"), server.grpc],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(clients.stdout.readline().strip(), "busy")
            server.terminate()
            said, problems = clients.communicate(timeout=LIMIT)
            self.assertEqual(clients.returncode, 0, said + problems)
            self.assertEqual(server.ended()[0], 0)
        self.assertEqual(int(said.split()[0]), log.read_text().count('/v2/models/digits/infer HTTP/1.1" 200 '))

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
