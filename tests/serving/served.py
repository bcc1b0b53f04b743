"""What the tests of the service share: trained models, the program that serves them, and a client on the standard library."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

GPUNN = os.environ["GPUNN_PROGRAM"]
SOURCE = Path(os.environ["GPUNN_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests" / "fuzz"))
import make_corpus  # noqa: E402

LIMIT = 60  # seconds that nothing here comes near

FOLDER = Path(tempfile.mkdtemp(prefix="gpunn-serving-"))


def train(name, experiment, *settings):
    """A run of an experiment of the project, trained for a few steps; its folder."""
    runs = FOLDER / name
    subprocess.run([GPUNN, "run", SOURCE / "experiments" / experiment, "--backend", "cpu", "--quiet", "--runs", runs,
                    *settings], check=True, capture_output=True, timeout=LIMIT, cwd=FOLDER)
    return next(next(runs.iterdir()).glob("*Z"))


def digits():
    """A LeNet on 28 by 28 digits, u8."""
    if not hasattr(digits, "run"):
        digits.run = train("digits", "lenet_digits.yaml", "--steps", "8", "--set", "data.synthetic_train=512", "--set",
                           "data.synthetic_test=128")
    return digits.run


def boxes():
    """A detector of digits on 64 by 64 pixels, u8."""
    if not hasattr(boxes, "run"):
        boxes.run = train("boxes", "fcos_digits.yaml", "--steps", "6", "--set", "data.image_size=64", "--set",
                          "data.synthetic_train=96", "--set", "data.synthetic_test=16")
    return boxes.run


def shapes():
    """A class for each of 64 by 64 pixels in colours, u8."""
    if not hasattr(shapes, "run"):
        experiment = FOLDER / "shapes.yaml"
        experiment.write_text(
            "task: segmentation\n"
            "model: {layers: [conv2d: {filters: 8, kernel: 3, padding: 1}, relu, conv2d: {filters: 5, kernel: 1}]}\n"
            "data: {dataset: drawn_shapes, batch_size: 8, synthetic_train: 24, synthetic_test: 8}\n"
            "optimizer: {type: adam, learning_rate: 0.003}\n")
        shapes.run = train("shapes", experiment, "--steps", "3")
    return shapes.run


def pair():
    """A model of two inputs: an image, u8, and a row of two numbers, f32."""
    if not hasattr(pair, "run"):
        pair.run = train("pair", "digit_and_limit.yaml", "--steps", "4", "--set", "data.synthetic_train=256", "--set",
                         "data.synthetic_test=64")
    return pair.run


def points():
    """A perceptron on two numbers, f32."""
    if not hasattr(points, "run"):
        points.run = train("points", "perceptron_points.yaml", "--steps", "4")
    return points.run


def enlarger():
    """An ONNX file that makes [1, 256, 256] of [1, 8, 8], f32: 256 KiB of 256 bytes."""
    if not hasattr(enlarger, "file"):
        onnx = make_corpus.Onnx
        nodes = [onnx.node("Resize", ["x", "", "k"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric",
                           nearest_mode="floor")]
        enlarger.file = FOLDER / "enlarger.onnx"
        enlarger.file.write_bytes(onnx.model((1, 8, 8), nodes, [onnx.tensor("k", (4,), [1.0, 1.0, 32.0, 32.0])]))
    return enlarger.file


def certificate():
    """A certificate for 127.0.0.1 that signs itself, and its key; `openssl` makes them."""
    if not hasattr(certificate, "files"):
        certificate.files = FOLDER / "certificate.pem", FOLDER / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", certificate.files[1],
                        "-out", certificate.files[0], "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, timeout=LIMIT)
    return certificate.files


def png(side):
    """A grey PNG of side by side pixels: a light bar on black."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = (b"\0" + bytes(9) + b"\xff" * 11 + bytes(side - 20)) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def png_header(width, height):
    """The first bytes of a PNG that says it has so many pixels, and holds none."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)) + bytes(12)


class Server:
    """`gpunn serve` with some models and options, at a free port."""

    def __init__(self, *arguments, environment=None):
        # Under a sanitizer it would take all the time that it may.
        warm_up = [] if "--warm-up" in arguments else ["--warm-up", "0"]
        self.process = subprocess.Popen(
            [GPUNN, "serve", "--port", "0", *map(str, arguments), *warm_up], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=FOLDER, env={**os.environ, **(environment or {})})
        line = self.process.stdout.readline()
        found = re.search(r"at (https?)://[^:]+:(\d+)$", line.strip())
        if not found:
            raise AssertionError(f"no service: {line} {self.process.communicate(timeout=LIMIT)[1]}")
        self.port = int(found[2])
        self.line = line
        self.grpc = self.process.stdout.readline().split()[-1] if "--grpc-port" in arguments else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def ended(self):
        """The exit code, and what was said on the standard error."""
        _, said = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, said

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body of an answer."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask("GET", path)
        return status, json.loads(body) if body else None

    def post(self, path, document, headers=None):
        status, _, body = self.ask("POST", path, json.dumps(document), headers)
        return status, json.loads(body) if body else None

    def metric(self, name, **labels):
        """The sum of the samples of a metric with these labels."""
        _, _, body = self.ask("GET", "/metrics")
        total = 0
        for line in body.decode().splitlines():
            if re.match(rf"{name}[{{ ]", line) and all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.02)
        return False


def binary_request(pixels, rows=1, outputs=None, **more):
    """Headers and body of an inference request on digits, with the pixels behind the JSON."""
    document = {"inputs": [{"name": "image", "shape": [rows, 1, 28, 28], "datatype": "UINT8",
                            "parameters": {"binary_data_size": len(pixels)}}], **more}
    if outputs is not None:
        document["outputs"] = outputs
    head = json.dumps(document).encode()
    return {"Inference-Header-Content-Length": str(len(head))}, head + pixels


def raw_request(body, headers, path="/v2/models/digits/infer"):
    """The bytes of a whole request."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


def read_answer(stream):
    """Status, headers and body of the next answer on a buffered stream; None at its end."""
    first = stream.readline()
    if not first:
        return None
    headers = http.client.parse_headers(stream)
    return int(first.split()[1]), headers, stream.read(int(headers["Content-Length"]))


class ServingTest(unittest.TestCase):
    maxDiff = None


def clean_up():
    shutil.rmtree(FOLDER, ignore_errors=True)
