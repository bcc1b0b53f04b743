"""Answers that are sent without a copy of their own: each client gets its values, whoever shares its batch."""

import gzip
import json
import struct
import threading
import unittest

from served import Server, ServingTest, enlarger

SIDE, SCALE = 8, 32


def request(first):
    """The header and body of a request whose 64 values rise from `first`."""
    text = json.dumps({"inputs": [{"name": "x", "shape": [1, 1, SIDE, SIDE], "datatype": "FP32",
                                   "parameters": {"binary_data_size": SIDE * SIDE * 4}}],
                       "parameters": {"binary_data_output": True}}).encode()
    values = struct.pack("<64f", *(first + i for i in range(SIDE * SIDE)))
    return {"Inference-Header-Content-Length": str(len(text))}, text + values


def expected(first):
    rows = [b"".join(struct.pack("<f", first + y * SIDE + x) * SCALE for x in range(SIDE)) * SCALE for y in range(SIDE)]
    return b"".join(rows)


class LargeAnswersTest(ServingTest):
    @classmethod
    def setUpClass(cls):
        try:
            cls.server = Server(f"big={enlarger()}", "--max-batch", "8", "--max-delay", "20000", "--backend", "cpu")
        except AssertionError as failure:
            if "built without protobuf" in str(failure):
                raise unittest.SkipTest("gpunn was built without protobuf") from failure
            raise

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, first, **more):
        headers, body = request(first)
        status, said, content = self.server.ask("POST", "/v2/models/big/infer", body, {**headers, **more})
        self.assertEqual(status, 200, content)
        if said["Content-Encoding"] == "gzip":
            content = gzip.decompress(content)
        return content[int(said["Inference-Header-Content-Length"]):]

    def test_clients_at_once_get_their_own(self):
        problems = []

        def client(number):
            for i in range(6):
                first = 1000 * number + i
                if self.ask(first) != expected(first):
                    problems.append(first)
        threads = [threading.Thread(target=client, args=(number,)) for number in range(1, 9)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(problems, [])
        statistics = self.server.get("/v2/models/big/stats")[1]["model_stats"][0]
        self.assertLess(statistics["execution_count"], statistics["inference_count"])  # some shared a batch

    def test_alone_and_compressed(self):
        self.assertEqual(self.ask(5), expected(5))
        self.assertEqual(self.ask(7, **{"Accept-Encoding": "gzip"}), expected(7))
