"""SIGTERM while requests come: what was accepted is answered, the rest is refused, and the exit code is 0."""

import os
import random
import threading
import time

from served import Server, ServingTest, binary_request, digits, raw_request, read_answer


class DrainTest(ServingTest):
    def test_requests_in_flight_are_answered(self):
        with Server(f"digits={digits()}", "--max-delay", "500000") as server:
            headers, body = binary_request(bytes(784))
            clients = [server.socket() for _ in range(8)]
            for one in clients:
                one.sendall(raw_request(body, headers))
            self.assertTrue(server.wait_for(lambda: server.metric("nv_inference_pending_request_count") == 8))
            late = server.socket()
            late.sendall(raw_request(body, headers)[:20])
            server.terminate()
            self.assertTrue(server.wait_for(lambda: server.get("/v2/health/ready")[0] == 400))
            self.assertEqual(server.get("/v2/health/live")[0], 200)
            late.sendall(raw_request(body, headers)[20:])
            self.assertEqual(read_answer(late.makefile("rb"))[0], 503)
            late.close()
            for one in clients:
                status, said, _ = read_answer(one.makefile("rb"))
                self.assertEqual((status, said["Connection"]), (200, "close"))
                one.close()
            code, said = server.ended()
            self.assertEqual(code, 0, said)

    def test_a_second_signal_ends_at_once(self):
        with Server(f"digits={digits()}", "--max-delay", "50000000") as server:
            headers, body = binary_request(bytes(784))
            with server.socket() as client:
                client.sendall(raw_request(body, headers))
                self.assertTrue(server.wait_for(lambda: server.metric("nv_inference_pending_request_count") == 1))
                server.terminate()
                self.assertTrue(server.wait_for(lambda: server.get("/v2/health/ready")[0] == 400))
                server.terminate()
                self.assertEqual(server.ended()[0], 130)

    def test_what_hangs_does_not_hold_up_the_end(self):
        with Server(f"digits={digits()}", "--max-delay", "50000000", "--drain-timeout", "300") as server:
            headers, body = binary_request(bytes(784))
            with server.socket() as client:
                client.sendall(raw_request(body, headers))
                self.assertTrue(server.wait_for(lambda: server.metric("nv_inference_pending_request_count") == 1))
                server.terminate()
                code, said = server.ended()
                self.assertEqual((code, "--drain-timeout" in said), (1, True))

    def test_under_load_nothing_that_was_accepted_is_lost(self):
        # GPUNN_SERVING_REQUESTS says how many requests to send at least.
        wanted = int(os.environ.get("GPUNN_SERVING_REQUESTS", "3000"))
        answered = stops = 0
        while answered < wanted:
            answered += self.kill_under_load(random.uniform(0.05, 0.05 + wanted / 50_000))
            stops += 1
        print(f"{answered} requests answered, {stops} services stopped", end=" ", flush=True)

    def kill_under_load(self, seconds):
        headers, body = binary_request(bytes(784))
        request = raw_request(body, headers)
        counts = {"answered": 0, "refused": 0, "lost": 0}
        lock, begun = threading.Lock(), threading.Event()
        with Server(f"digits={digits()}", "--instances", "2", "--network-threads", "2") as server:
            def client():
                mine = {"answered": 0, "refused": 0, "lost": 0}
                with server.socket() as connection:
                    stream = connection.makefile("rb")
                    while True:
                        try:
                            connection.sendall(request)
                            answer = read_answer(stream)
                        except OSError:
                            answer = None
                        if answer is None:
                            mine["lost"] += 1
                            break
                        mine["answered" if answer[0] == 200 else "refused"] += 1
                        if mine["answered"] == 20:
                            begun.set()
                        if answer[1]["Connection"] == "close":
                            break
                with lock:
                    for name, value in mine.items():
                        counts[name] += value
            threads = [threading.Thread(target=client) for _ in range(12)]
            for one in threads:
                one.start()
            begun.wait(30)
            time.sleep(seconds)
            server.terminate()
            for one in threads:
                one.join()
            code, said = server.ended()
        self.assertEqual(code, 0, said)
        self.assertEqual(counts["lost"], 0, counts)
        self.assertGreaterEqual(counts["answered"], 20, counts)
        self.assertLessEqual(counts["refused"], 12, counts)
        return counts["answered"]
