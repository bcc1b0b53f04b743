"""The Open Inference Protocol: what a model answers, and what it refuses."""

import gzip
import json
import struct
import subprocess
import threading
import zlib

from served import GPUNN, LIMIT, Server, ServingTest, binary_request, digits, pair, points, png, FOLDER


class InferenceTest(ServingTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(f"digits={digits()}", f"points={points()}", f"pair={pair()}", "--max-batch", "16",
                            "--max-delay", "2000", "--warm-up", "300")
        cls.pixels = bytes(i * 7 % 251 for i in range(784))

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def infer(self, headers, body, model="digits"):
        status, said, content = self.server.ask("POST", f"/v2/models/{model}/infer", body, headers)
        length = said["Inference-Header-Content-Length"]
        head = content[:int(length)] if length else content
        return status, json.loads(head), content[len(head):]

    def probabilities(self, pixels):
        headers, body = binary_request(pixels, len(pixels) // 784, [
            {"name": "probabilities", "parameters": {"binary_data": True}}])
        status, _, values = self.infer(headers, body)
        self.assertEqual(status, 200)
        return struct.unpack(f"<{len(values) // 4}f", values)

    def test_json_and_binary_tensors_agree_with_predict(self):
        image = FOLDER / "digit.png"
        image.write_bytes(png(28))
        done = subprocess.run([GPUNN, "predict", digits(), image, "--json", "--top", "10"], capture_output=True,
                              text=True, timeout=LIMIT, check=True)
        expected = {one["class"]: one["probability"] for one in json.loads(done.stdout)[0]["top"]}
        pixels = bytes(255 if 8 < x < 20 else 0 for _ in range(28) for x in range(28))
        binary = self.probabilities(pixels)
        status, answer = self.server.post("/v2/models/digits/infer", {"id": "seven", "inputs": [
            {"name": "image", "shape": [1, 1, 28, 28], "datatype": "UINT8", "data": list(pixels)}]})
        self.assertEqual(status, 200)
        self.assertEqual((answer["id"], answer["model_name"], answer["model_version"]), ("seven", "digits", "1"))
        outputs = {one["name"]: one for one in answer["outputs"]}
        self.assertEqual(set(outputs), {"logits", "probabilities"})
        self.assertEqual(outputs["probabilities"]["shape"], [1, 10])
        for index in range(10):
            self.assertAlmostEqual(binary[index], expected[index], places=6)
            self.assertAlmostEqual(outputs["probabilities"]["data"][index], expected[index], places=6)

    def test_numbers_of_tables(self):
        status, answer = self.server.post("/v2/models/points/infer", {"inputs": [
            {"name": "features", "shape": [2, 2], "datatype": "FP32", "data": [[0.5, -1], [3, 4.25]]}]})
        self.assertEqual(status, 200, answer)
        body = struct.pack("<4f", 0.5, -1, 3, 4.25)
        status, _, content = self.server.ask("POST", "/v2/models/points/infer", body,
                                             {"Inference-Header-Content-Length": "0"})
        self.assertEqual(status, 200)
        self.assertEqual(len(content) > 8, True)
        nan = struct.pack("<2f", float("nan"), 1)
        document = {"inputs": [{"name": "features", "shape": [1, 2], "datatype": "FP32",
                                "parameters": {"binary_data_size": 8}}]}
        head = json.dumps(document).encode()
        status, answer, _ = self.infer({"Inference-Header-Content-Length": str(len(head))}, head + nan, "points")
        self.assertEqual(status, 200)
        self.assertEqual(set(answer["outputs"][0]["data"]), {None})

    def test_several_inputs(self):
        status, said = self.server.get("/v2/models/pair")
        self.assertEqual(status, 200)
        self.assertEqual([(one["name"], one["datatype"], one["shape"]) for one in said["inputs"]],
                         [("image", "UINT8", [-1, 1, 28, 28]), ("row", "FP32", [-1, 2])])

        def document(rows, **changes):
            pixels = [list(range(k, 784 + k)) for k in range(rows)]
            inputs = {"image": {"shape": [rows, 1, 28, 28], "datatype": "UINT8",
                                "data": [value % 251 for image in pixels for value in image]},
                      "row": {"shape": [rows, 2], "datatype": "FP32", "data": [8.0 * k for k in range(2 * rows)]}}
            inputs.update(changes)
            return {"inputs": [{"name": name, **one} for name, one in inputs.items() if one]}

        def answer(rows, **changes):
            status, said = self.server.post("/v2/models/pair/infer", document(rows, **changes))
            self.assertEqual(status, 200, said)
            outputs = {one["name"]: one for one in said["outputs"]}
            self.assertEqual(outputs["probabilities"]["shape"], [rows, 2])
            return outputs["probabilities"]["data"]
        three = answer(3)
        for found, expected in zip(answer(1), three):
            self.assertAlmostEqual(found, expected, places=6)
        other = {"shape": [1, 2], "datatype": "FP32", "data": [95.0, 0.0]}
        self.assertNotAlmostEqual(answer(1, row=other)[0], three[0], places=4)

        for changes, text in (({"row": None}, "expected 2 inputs"),
                              ({"row": {**other, "shape": [2, 2], "data": [0.0] * 4}}, "row"),
                              ({"row": None, "line": other}, "line")):
            status, said = self.server.post("/v2/models/pair/infer", document(1, **changes))
            self.assertEqual(status, 400, said)
            self.assertIn(text, said["error"])
        status, _, content = self.server.ask("POST", "/v1/classify?model=pair", png(28), {"Content-Type": "image/png"})
        self.assertEqual(status, 400)
        self.assertIn("takes 2 inputs", content.decode())

    def test_classification_with_labels(self):
        headers, body = binary_request(self.pixels * 2, 2, [
            {"name": "probabilities", "parameters": {"classification": 3}},
            {"name": "logits", "parameters": {"classification": 1, "binary_data": True}}])
        status, answer, binary = self.infer(headers, body)
        self.assertEqual(status, 200)
        first, second = answer["outputs"]
        self.assertEqual((first["datatype"], first["shape"], len(first["data"])), ("BYTES", [2, 3], 6))
        expected = self.probabilities(self.pixels)
        value, index, label = first["data"][0].split(":")
        self.assertAlmostEqual(float(value), max(expected), places=5)
        self.assertEqual(int(index), max(range(10), key=expected.__getitem__))
        self.assertEqual(label, index)  # digits are called by their figures
        self.assertEqual(second["parameters"]["binary_data_size"], len(binary))
        length = struct.unpack("<I", binary[:4])[0]
        self.assertRegex(binary[4:4 + length].decode(), rf"^-?\d+\.\d{{6}}:{index}:{index}$")

    def test_compressed_bodies(self):
        plain = self.probabilities(self.pixels)
        headers, body = binary_request(self.pixels, 1, [{"name": "probabilities", "parameters": {"binary_data": True}}])
        for name, pack, unpack in (("gzip", gzip.compress, gzip.decompress), ("deflate", zlib.compress, zlib.decompress)):
            status, said, content = self.server.ask("POST", "/v2/models/digits/infer", pack(body), {
                **headers, "Content-Encoding": name, "Accept-Encoding": name})
            self.assertEqual((status, said["Content-Encoding"]), (200, name))
            content = unpack(content)
            values = content[int(said["Inference-Header-Content-Length"]):]
            self.assertEqual(struct.unpack("<10f", values), plain)
        bomb = gzip.compress(bytes(200 << 20))
        status, _, _ = self.server.ask("POST", "/v2/models/digits/infer", bomb, {"Content-Encoding": "gzip"})
        self.assertEqual(status, 413)

    def test_requests_of_many_clients_share_batches_and_get_their_own_answers(self):
        images = [bytes((i * k + k) % 256 for i in range(784)) for k in range(1, 9)]
        alone = [self.probabilities(image) for image in images]
        before = self.server.metric("nv_inference_exec_count", model="digits")
        rows = self.server.metric("nv_inference_count", model="digits")
        wrong = []

        def client(k):
            for _ in range(20):
                if any(abs(a - b) > 1e-6 for a, b in zip(self.probabilities(images[k]), alone[k])):
                    wrong.append(k)
        threads = [threading.Thread(target=client, args=(k,)) for k in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.server.metric("nv_inference_count", model="digits") - rows, 160)
        self.assertLess(self.server.metric("nv_inference_exec_count", model="digits") - before, 120)

    def test_mistakes_are_told_apart(self):
        def refused(document, status, text, model="digits"):
            found, answer = self.server.post(f"/v2/models/{model}/infer", document)
            self.assertEqual(found, status, answer)
            self.assertIn(text, answer["error"])

        def image(**changes):
            return {"inputs": [{"name": "image", "shape": [1, 1, 28, 28], "datatype": "UINT8", "data": [0] * 784, **changes}]}
        refused(image(), 404, "'none' is not found", "none")
        refused(image(), 404, "version 7", "digits/versions/7")
        refused(image(), 400, "version string 'x'", "digits/versions/x")
        refused(image(name="picture"), 400, "unexpected inference input 'picture'")
        refused(image(datatype="FP32"), 400, "expects 'UINT8'")
        refused(image(shape=[1, 28, 28]), 400, "unexpected shape for input 'image'")
        refused(image(shape=[0, 1, 28, 28], data=[]), 400, "unexpected shape")
        refused(image(data=[0] * 783), 400, "expected 784 numbers")
        refused(image(data=[256] * 784), 400, "no UINT8")
        refused(image(shape=[17, 1, 28, 28], data=[0] * 784 * 17), 400, "batch-size must be <= 16")
        refused(image(shape=[2**62, 1, 28, 28]), 400, "batch-size must be <= 16")
        refused({"inputs": []}, 400, "expected 1 inputs but got 0")
        refused({**image(), "outputs": [{"name": "x"}]}, 400, "unexpected inference output 'x'")
        refused(image(parameters={"shared_memory_region": "r"}), 501, "shared memory")
        refused([], 400, "failed to parse")
        status, said, body = self.server.ask("POST", "/v2/models/digits/infer", b"{", {"Content-Type": "application/json"})
        self.assertEqual((status, said["Content-Type"]), (400, "application/json"))
        self.assertEqual(set(json.loads(body)), {"error"})
        for header in ("-1", "x", "99999"):
            status, _, _ = self.server.ask("POST", "/v2/models/digits/infer", b"{}", {
                "Inference-Header-Content-Length": header})
            self.assertEqual(status, 400)
        self.assertEqual(self.server.get("/v2/models/digits/infer")[0], 405)
        self.assertEqual(self.server.get("/v2/nothing")[0], 404)
        self.assertEqual(self.server.get("/v2/systemsharedmemory/status")[0], 501)
        self.assertGreater(self.server.metric("nv_inference_request_failure", model="digits", reason="OTHER"), 5)

    def test_statistics_add_up(self):
        self.probabilities(self.pixels * 3)
        stats = self.server.get("/v2/models/digits/stats")[1]["model_stats"][0]
        self.assertEqual(sum(one["batch_size"] * one["compute_infer"]["count"] for one in stats["batch_stats"]),
                         stats["inference_count"])
        self.assertEqual(sum(one["compute_infer"]["count"] for one in stats["batch_stats"]), stats["execution_count"])
        for part in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
            self.assertEqual(stats["inference_stats"][part]["count"], stats["inference_stats"]["success"]["count"])
        self.assertEqual(self.server.metric("nv_inference_request_success", model="digits"),
                         stats["inference_stats"]["success"]["count"])
        self.assertEqual(len(self.server.get("/v2/models/stats")[1]["model_stats"]), 3)
