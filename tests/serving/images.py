"""Images as bodies, and what they must not do."""

import base64
import json
import struct
import subprocess

from served import FOLDER, GPUNN, Server, ServingTest, boxes, digits, png, png_header, points, shapes


class ImagesTest(ServingTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(f"digits={digits()}", "--max-pixels", "1", "--max-body", "1")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def classify(self, body, query="", **headers):
        status, _, answer = self.server.ask("POST", "/v1/classify" + query, body, headers)
        return status, json.loads(answer)

    def test_an_image_gets_its_classes(self):
        status, answer = self.classify(png(28), "?top=3")
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["model"], answer["version"], len(answer["classes"])), ("digits", "1", 3))
        shares = [one["probability"] for one in answer["classes"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertEqual(len(self.classify(png(28))[1]["classes"]), 5)
        self.assertAlmostEqual(sum(one["probability"] for one in self.classify(png(40), "?top=99")[1]["classes"]), 1, places=5)

    def test_a_form_as_browsers_send_it(self):
        form = (b'--X\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n--X\r\nContent-Disposition: '
                b'form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n' + png(28) + b"\r\n--X--\r\n")
        kind = {"Content-Type": "multipart/form-data; boundary=X"}
        status, answer = self.classify(form, **kind)
        self.assertEqual((status, answer), (200, self.classify(png(28))[1]))
        self.assertEqual(self.classify(form[:-9], **kind)[0], 400)
        self.assertIn("expected one", self.classify(b"--X--", **kind)[1]["error"])

    def test_what_is_no_image_is_refused(self):
        for body, text in ((b"", "no bytes"), (b"GIF89a", "it is a GIF"), (png(28)[:60], "damaged PNG"),
                           (png_header(20_000, 20_000), "PNG"), (png(1025), "at most 1048576 in all")):
            status, answer = self.classify(body)
            self.assertEqual(status, 400, answer)
            self.assertIn(text, answer["error"])
        self.assertEqual(self.classify(bytes(2 << 20))[0], 413)
        for query in ("?top=0", "?top=x", "?top=-1"):
            self.assertEqual(self.classify(png(28), query)[0], 400)
        self.assertEqual(self.classify(png(28), "?model=none")[0], 404)
        self.assertEqual(self.server.get("/v1/classify")[0], 405)

    def test_a_class_is_explained(self):
        status, _, body = self.server.ask("POST", "/v1/explain", png(40))
        answer = json.loads(body)
        self.assertEqual(status, 200, answer)
        best = self.classify(png(40))[1]["classes"][0]
        self.assertEqual((answer["model"], answer["version"], answer["class"], answer["name"]),
                         ("digits", "1", best["class"], best["name"]))
        self.assertAlmostEqual(answer["score"], best["probability"], places=5)
        overlay = base64.b64decode(answer["overlay"], validate=True)
        self.assertEqual(struct.unpack(">2I", overlay[16:24]), (224, 224))
        status, headers, picture = self.server.ask("POST", "/v1/explain", png(40), {"Accept": "image/png"})
        self.assertEqual((status, headers["Content-Type"], picture), (200, "image/png", overlay))
        status, _, body = self.server.ask("POST", "/v1/explain?class=3&layer=conv1&method=gradcam++", png(40))
        self.assertEqual((status, json.loads(body)["class"], json.loads(body)["layer"]), (200, 3, "conv1"))

    def test_what_can_not_be_explained(self):
        for query, text in (("class=ten", "no class 'ten'"), ("class=10", "no class 10"), ("layer=conv9", "did you mean"),
                            ("layer=output", "no rows and columns"), ("method=cam", "no method 'cam'")):
            status, _, body = self.server.ask("POST", "/v1/explain?" + query, png(28))
            self.assertEqual(status, 400, body)
            self.assertIn(text, json.loads(body)["error"])
        self.assertEqual(self.server.ask("POST", "/v1/explain", b"GIF89a")[0], 400)
        self.assertEqual(self.server.get("/v1/explain")[0], 405)
        self.assertEqual(self.server.ask("POST", "/v1/explain?model=none", png(28))[0], 404)

    def test_boxes_are_those_of_predict_in_pixels_of_the_image(self):
        picture = FOLDER / "large.png"
        picture.write_bytes(png(100))
        found = subprocess.run([GPUNN, "predict", boxes(), picture, "--json"], check=True, capture_output=True)
        expected = json.loads(found.stdout)[0]["boxes"]
        self.assertGreater(len(expected), 0)
        with Server(f"boxes={boxes()}") as server:
            status, _, body = server.ask("POST", "/v1/detect", png(100))
            answer = json.loads(body)
            self.assertEqual((status, answer["width"], answer["height"]), (200, 100, 100))
            self.assertEqual([one["class"] for one in answer["boxes"]], [one["class"] for one in expected])
            for one, other in zip(answer["boxes"], expected):
                self.assertAlmostEqual(one["score"], other["score"], places=5)
                for at, wanted in zip(one["box"], other["box"]):
                    self.assertAlmostEqual(at, wanted, places=3)
            body = server.ask("POST", "/v1/detect?least_score=100", png(100))[2]
            self.assertEqual(json.loads(body)["boxes"], [])
            for query, status in (("least_score=x", 400), ("least_score=101", 400), ("model=none", 404)):
                self.assertEqual(server.ask("POST", "/v1/detect?" + query, png(100))[0], status)
            self.assertEqual(server.ask("POST", "/v1/detect", b"GIF89a")[0], 400)
            self.assertEqual(server.get("/v1/detect")[0], 405)
            status, _, body = server.ask("POST", "/v1/classify", png(100))
            self.assertEqual((status, b"/v1/detect" in body), (400, True))
            # A row of the protocol's output `boxes` is padded: left, top, right, bottom, score and class, or -1.
            request = {"inputs": [{"name": "image", "shape": [1, 1, 64, 64], "datatype": "UINT8", "data": [0] * 4096}],
                       "outputs": [{"name": "boxes"}]}
            about = json.loads(server.ask("GET", "/v2/models/boxes")[2])
            request["inputs"][0]["name"] = about["inputs"][0]["name"]
            status, _, body = server.ask("POST", "/v2/models/boxes/infer", json.dumps(request).encode())
            self.assertEqual(status, 200, body)
            output = json.loads(body)["outputs"][0]
            self.assertEqual(output["shape"], [1, 600])
            labels = output["data"][5::6]
            self.assertEqual(labels, sorted(labels, key=lambda label: label < 0))
        status, _, body = self.server.ask("POST", "/v1/detect", png(28))
        self.assertEqual((status, b"answers with classes; call /v1/classify" in body), (400, True))
        status, _, body = self.server.ask("POST", "/v1/segment", png(28))
        self.assertEqual((status, b"answers with classes; call /v1/classify" in body), (400, True))

    def test_classes_of_pixels_are_those_of_predict(self):
        picture = FOLDER / "large.png"
        picture.write_bytes(png(100))
        found = subprocess.run([GPUNN, "predict", shapes(), picture, "--json"], check=True, capture_output=True)
        expected = json.loads(found.stdout)[0]
        with Server(f"shapes={shapes()}") as server:
            status, _, body = server.ask("POST", "/v1/segment", png(100))
            answer = json.loads(body)
            self.assertEqual((status, answer["model"], answer["width"], answer["height"]), (200, "shapes", 100, 100))
            self.assertGreater(len(answer["classes"]), 0)
            self.assertAlmostEqual(sum(one["share"] for one in answer["classes"]), 1, places=5)
            self.assertEqual(expected["map"]["size"], [100, 100])
            self.assertEqual(
                [(one["class"], one["name"], one["rle"]) for one in answer["classes"]],
                [(one["class"], one["name"], {"size": [100, 100], "counts": one["counts"]})
                 for one in expected["map"]["masks"]])
            status, headers, file = server.ask("POST", "/v1/segment", png(100), {"Accept": "image/png"})
            self.assertEqual((status, headers["Content-Type"]), (200, "image/png"))
            # Of eight bits and with a palette.
            self.assertEqual(struct.unpack(">IIBB", file[16:26]), (100, 100, 8, 3))
            for query, status in (("?model=none", 404), ("", 400)):
                self.assertEqual(server.ask("POST", "/v1/segment" + query, b"GIF89a")[0], status)
            self.assertEqual(server.get("/v1/segment")[0], 405)
            status, _, body = server.ask("POST", "/v1/classify", png(100))
            self.assertEqual((status, b"call /v1/segment" in body), (400, True))
            # The protocol names both outputs.
            about = json.loads(server.ask("GET", "/v2/models/shapes")[2])
            self.assertEqual(about["outputs"], [{"name": "logits", "datatype": "FP32", "shape": [-1, 5, 64, 64]},
                                                {"name": "classes", "datatype": "INT32", "shape": [-1, 64, 64]}])
            request = {"inputs": [{"name": about["inputs"][0]["name"], "shape": [1, 3, 64, 64], "datatype": "UINT8",
                                   "data": [7] * (3 * 64 * 64)}]}
            status, _, body = server.ask("POST", "/v2/models/shapes/infer", json.dumps(request).encode())
            self.assertEqual(status, 200, body)
            outputs = {one["name"]: one for one in json.loads(body)["outputs"]}
            logits, classes = outputs["logits"]["data"], outputs["classes"]["data"]
            self.assertEqual(len(classes), 64 * 64)
            for pixel in (0, 1000, 4095):
                scores = logits[pixel::64 * 64]
                self.assertEqual(scores[classes[pixel]], max(scores))

    def test_a_model_that_takes_no_images_says_so(self):
        with Server(f"digits={digits()}", f"points={points()}") as server:
            status, _, answer = server.ask("POST", "/v1/classify?model=points", png(28))
            self.assertEqual((status, "not images" in answer.decode()), (400, True))
            status, _, answer = server.ask("POST", "/v1/explain?model=points", png(28))
            self.assertEqual((status, "not images" in answer.decode()), (400, True))
            status, _, answer = server.ask("POST", "/v1/classify", png(28))
            self.assertEqual((status, "several models" in answer.decode()), (400, True))

    def test_the_page_needs_nothing_from_elsewhere(self):
        status, headers, page = self.server.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn(b"http://", page)
        self.assertNotIn(b"https://", page)
