"""Clients as they come: pipelining, slow, half-closed, too many, gone."""

import socket
import threading
import time

from served import LIMIT, Server, ServingTest, binary_request, digits, raw_request, read_answer


class ConnectionsTest(ServingTest):
    def request(self, **more):
        headers, body = binary_request(bytes(784), **more)
        return raw_request(body, headers)

    def test_keep_alive_and_pipelining(self):
        with Server(f"digits={digits()}") as server, server.socket() as client:
            stream = client.makefile("rb")
            several = b"".join(self.request(id=str(i)) for i in range(50))
            for begin in range(0, len(several), 1000):  # cut anywhere
                client.sendall(several[begin:begin + 1000])
            for i in range(50):
                status, headers, body = read_answer(stream)
                self.assertEqual((status, headers["Connection"]), (200, "keep-alive"))
                self.assertIn(b'"id":"%d"' % i, body)
            client.sendall(b"HEAD /v2 HTTP/1.1\r\nHost: x\r\n\r\nGET /v2 HTTP/1.0\r\n\r\n")
            head = stream.readline(), stream.readline(), stream.readline(), stream.readline(), stream.readline()
            self.assertTrue(head[0].startswith(b"HTTP/1.1 200"))
            self.assertEqual(stream.readline(), b"\r\n")
            status, headers, _ = read_answer(stream)
            self.assertEqual((status, headers["Connection"]), (200, "close"))
            self.assertIsNone(read_answer(stream))

    def test_chunked_bodies_and_continue(self):
        with Server(f"digits={digits()}") as server, server.socket() as client:
            stream = client.makefile("rb")
            headers, body = binary_request(bytes(784))
            length = headers["Inference-Header-Content-Length"]
            client.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                           b"Expect: 100-continue\r\nInference-Header-Content-Length: " + length.encode() + b"\r\n\r\n")
            self.assertEqual((stream.readline(), stream.readline()), (b"HTTP/1.1 100 Continue\r\n", b"\r\n"))
            for part in (body[:10], body[10:]):
                client.sendall(b"%x\r\n" % len(part) + part + b"\r\n")
            client.sendall(b"0\r\n\r\n")
            self.assertEqual(read_answer(stream)[0], 200)

    def test_what_is_too_large_or_no_http_is_refused(self):
        with Server(f"digits={digits()}", "--max-body", "1") as server:
            def answer_to(*parts):
                with server.socket() as client:
                    stream = client.makefile("rb")
                    for part in parts:
                        client.sendall(part)
                    found = read_answer(stream)
                    self.assertIsNone(read_answer(stream))  # closed
                    return found[0]
            self.assertEqual(answer_to(b"nonsense\r\n\r\n"), 400)
            self.assertEqual(answer_to(b"\x16\x03\x01\x02\x00\r\n\r\n"), 400)
            self.assertEqual(answer_to(b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000), 431)
            self.assertEqual(answer_to(b"POST /v2 HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 1000), 413)
            self.assertEqual(answer_to(b"POST /v2 HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400)
            self.assertEqual(answer_to(b"POST /v2 HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400)
            self.assertEqual(answer_to(b"POST /v2 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"), 400)
            chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
            self.assertEqual(answer_to(b"POST /v2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", *[chunk] * 17), 413)
            self.assertEqual(server.get("/v2/health/live")[0], 200)

    def test_slow_clients_are_not_waited_for(self):
        with Server(f"digits={digits()}", "--transfer-timeout", "400", "--idle-timeout", "400") as server:
            begin = time.monotonic()
            idle, slow = server.socket(), server.socket()
            slow.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nContent-Length: 100\r\n")
            stream = slow.makefile("rb")
            self.assertEqual(read_answer(stream)[0], 408)
            self.assertIsNone(read_answer(stream))
            self.assertEqual(idle.recv(10), b"")
            self.assertLess(time.monotonic() - begin, 10)
            idle.close()
            slow.close()

    def test_half_closed_clients_get_their_answer_and_gone_ones_cost_nothing(self):
        with Server(f"digits={digits()}", "--max-delay", "700000") as server:
            with server.socket() as client:
                client.sendall(self.request())
                client.shutdown(socket.SHUT_WR)
                stream = client.makefile("rb")
                status = read_answer_or_interim(stream)
                self.assertEqual(status, 200)
                self.assertEqual(stream.read(), b"")
            before = server.metric("nv_inference_count", model="digits")
            for _ in range(5):
                client = server.socket()
                client.sendall(self.request())
                client.close()
            self.assertTrue(server.wait_for(
                lambda: server.metric("nv_inference_request_failure", model="digits", reason="CANCELED") == 5))
            self.assertEqual(server.metric("nv_inference_count", model="digits"), before)
            self.assertEqual(server.metric("nv_inference_pending_request_count"), 0)

    def test_the_queue_and_the_time_of_requests_are_bounded(self):
        with Server(f"digits={digits()}", "--max-delay", "1500000", "--max-queue", "4", "--timeout", "600") as server:
            statuses = []

            def client(**more):
                with server.socket() as connection:
                    connection.sendall(self.request(**more))
                    statuses.append(read_answer(connection.makefile("rb"))[0])
            threads = [threading.Thread(target=client) for _ in range(4)]
            for one in threads:
                one.start()
            self.assertTrue(server.wait_for(lambda: server.metric("nv_inference_pending_request_count") == 4))
            begin = time.monotonic()
            client()
            self.assertEqual(statuses, [503])  # the queue is full
            for one in threads:
                one.join()
            self.assertEqual(statuses, [503] * 5)  # none was answered within the time
            self.assertLess(time.monotonic() - begin, 1.4)
            self.assertEqual(server.metric("nv_inference_request_failure", model="digits", reason="REJECTED"), 1)
            self.assertTrue(server.wait_for(lambda: server.metric("nv_inference_pending_request_count") == 0))

    def test_a_request_may_bring_its_own_time(self):
        with Server(f"digits={digits()}", "--max-delay", "300000") as server, server.socket() as client:
            client.sendall(self.request(parameters={"timeout": 1000}))
            status, _, body = read_answer(client.makefile("rb"))
            self.assertEqual(status, 503)
            self.assertIn(b"Request timeout expired", body)

    def test_no_more_clients_than_allowed(self):
        with Server(f"digits={digits()}", "--max-connections", "3") as server:
            held = [server.socket() for _ in range(3)]
            for one in held:
                one.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(read_answer(one.makefile("rb"))[0], 200)
            with server.socket() as more:
                self.assertEqual(read_answer(more.makefile("rb"))[0], 503)
            held.pop().close()
            self.assertTrue(server.wait_for(lambda: answers(server), LIMIT))
            for one in held:
                one.close()


def answers(server):
    try:
        return server.get("/v2/health/live")[0] == 200
    except (OSError, ValueError):
        return False


def read_answer_or_interim(stream):
    """The status of the next answer; an interim one (100 Continue) may come before."""
    while True:
        first = stream.readline()
        if b" 100 " not in first:
            break
        stream.readline()
    length = 0
    while (line := stream.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    stream.read(length)
    return int(first.split()[1])
