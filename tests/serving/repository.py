"""Several models and versions, loaded and unloaded while requests come."""

import os
import shutil
import threading
import unittest
from pathlib import Path

from served import FOLDER, Server, ServingTest, binary_request, digits, points


class RepositoryTest(ServingTest):
    def infer(self, server, model):
        headers, body = binary_request(bytes(784))
        return server.ask("POST", f"/v2/models/{model}/infer", body, headers)[0]

    def test_versions(self):
        folder = FOLDER / "versions" / "net"
        for number in ("1", "3", "x"):
            shutil.copytree(digits(), folder / number)
        with Server(folder, f"points:7={points()}") as server:
            index = server.post("/v2/repository/index", {})[1]
            self.assertEqual([(one["name"], one["version"], one["state"]) for one in index],
                             [("net", "1", "READY"), ("net", "3", "READY"), ("points", "7", "READY")])
            self.assertEqual(server.get("/v2/models/net")[1]["versions"], ["1", "3"])
            self.assertEqual(server.get("/v2/models/net/versions/1/stats")[1]["model_stats"][0]["version"], "1")
            self.assertEqual(self.infer(server, "net/versions/1"), 200)
            self.assertEqual(self.infer(server, "net"), 200)  # the highest
            counts = [server.metric("nv_inference_count", model="net", version=one) for one in ("1", "3")]
            self.assertEqual(counts, [1, 1])
            self.assertEqual(server.get("/v2/models/net/versions/2")[0], 404)
            self.assertEqual(server.get("/v2/models/net/versions/3/ready")[0], 200)
            config = server.get("/v2/models/net/config")[1]
            self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (64, [1, 28, 28]))

    def test_a_model_comes_and_goes_while_it_is_asked(self):
        with Server(f"digits={digits()}") as server:
            statuses, stop = set(), threading.Event()

            def client():
                while not stop.is_set():
                    statuses.add(self.infer(server, "digits"))
            threads = [threading.Thread(target=client) for _ in range(3)]
            for one in threads:
                one.start()
            for _ in range(3):
                self.assertEqual(server.post("/v2/repository/models/digits/load", {})[0], 200)
            self.assertEqual(server.post("/v2/repository/models/digits/unload", {})[0], 200)
            self.assertEqual(self.infer(server, "digits"), 404)
            self.assertEqual(server.post("/v2/repository/index", {"ready": True})[1], [])
            self.assertEqual(server.post("/v2/repository/index", {})[1][0]["state"], "UNAVAILABLE")
            self.assertEqual(server.get("/v2/health/ready")[0], 200)
            self.assertEqual(server.post("/v2/repository/models/digits/load", {})[0], 200)
            self.assertEqual(self.infer(server, "digits"), 200)
            stop.set()
            for one in threads:
                one.join()
            self.assertLessEqual(statuses, {200, 404})
            self.assertEqual(server.post("/v2/repository/models/none/load", {})[0], 404)
            self.assertEqual(server.post("/v2/repository/models/none/unload", {})[0], 404)
            document = {"parameters": {"config": "{}"}}
            self.assertEqual(server.post("/v2/repository/models/digits/load", document)[0], 501)

    @unittest.skipUnless(os.environ.get("GPUNN_TRAINING_SAMPLE_DIR"), "the sample plugins are not named")
    def test_a_lost_device_is_told_and_its_requests_are_refused(self):
        plugin = Path(os.environ["GPUNN_TRAINING_SAMPLE_DIR"], "libgpunn_backend_losing.so")
        if not plugin.exists():
            self.skipTest("the sample plugins are not built")
        intact = FOLDER / "intact"  # while it is there
        intact.touch()
        with Server(f"digits={digits()}", "--backend", "losing", "--plugin", plugin, "--instances", "2",
                    environment={"GPUNN_TEST_LOSE": "predict:0", "GPUNN_TEST_LOSE_ONCE": str(intact)}) as server:
            self.assertEqual(self.infer(server, "digits"), 200)
            self.assertEqual(server.get("/v2/health/live")[0], 200)
            intact.unlink()
            self.assertEqual([self.infer(server, "digits") for _ in range(5)], [503] * 5)
            for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/digits/ready"):
                self.assertEqual(server.get(path)[0], 400)
            state = server.post("/v2/repository/index", {})[1][0]
            self.assertEqual((state["state"], state["reason"]), ("UNAVAILABLE", "its device is lost"))
            self.assertEqual(server.metric("nv_inference_request_failure", reason="BACKEND"), 1)
            server.terminate()
            self.assertEqual(server.ended()[0], 0)

    def test_a_file_that_went_bad_leaves_the_old_model_serving(self):
        run = FOLDER / "spoilt"
        shutil.copytree(digits(), run)
        with Server(f"digits={run}") as server:
            for file in run.glob("*.h5"):
                file.write_bytes(b"no checkpoint")
            status, answer = server.post("/v2/repository/models/digits/load", {})
            self.assertEqual(status, 400)
            self.assertIn("failed to load 'digits'", answer["error"])
            self.assertEqual(self.infer(server, "digits"), 200)
