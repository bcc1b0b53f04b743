"""Tokens, TLS, pages of other sites, and mistakes in the options."""

import json
import shutil
import ssl
import subprocess
import unittest

from served import FOLDER, GPUNN, LIMIT, Server, ServingTest, certificate, digits


class SecurityTest(ServingTest):
    def test_a_token_is_wanted(self):
        file = FOLDER / "token"
        file.write_text("secret\n")
        for server in (Server(f"digits={digits()}", "--token-file", file),
                       Server(f"digits={digits()}", environment={"GPUNN_SERVE_TOKEN": "secret"})):
            with server:
                def status(path, **headers):
                    return server.ask("GET", path, None, headers)[0]
                self.assertEqual(status("/v2"), 401)
                self.assertEqual(status("/metrics"), 401)
                for wrong in ("Bearer secre", "Bearer secrets", "Bearer ", "secret", "Basic secret"):
                    self.assertEqual(status("/v2", Authorization=wrong), 401)
                self.assertEqual(status("/v2", Authorization="Bearer secret"), 200)
                self.assertEqual(status("/v2", Authorization="bearer secret"), 200)
                self.assertEqual(status("/v2/health/live"), 200)  # for those who watch it
                self.assertEqual(status("/"), 200)

    def test_pages_of_other_sites_are_refused(self):
        with Server(f"digits={digits()}") as server:
            def status(origin):
                return server.ask("POST", "/v2/repository/index", b"", {"Origin": origin})[0]
            self.assertEqual(status("https://example.org"), 403)
            self.assertEqual(status("null"), 403)
            self.assertEqual(status(f"http://127.0.0.1:{server.port}"), 200)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
    def test_tls(self):
        chain, key = certificate()
        try:
            server = Server(f"digits={digits()}", "--tls-certificate", chain, "--tls-key", key)
        except AssertionError as failure:
            if "built without OpenSSL" in str(failure):
                self.skipTest("built without OpenSSL")
            raise
        with server:
            self.assertIn("https://", server.line)
            context = ssl.create_default_context(cafile=chain)
            with context.wrap_socket(server.socket(), server_hostname="127.0.0.1") as stream:
                for _ in range(2):  # kept alive
                    stream.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
                    answer = b""
                    while b"extensions" not in answer:
                        answer += stream.recv(4096)
                    self.assertTrue(answer.startswith(b"HTTP/1.1 200"))
                stream.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                answer = b""
                while part := stream.recv(4096):
                    answer += part
                self.assertIn(b"Connection: close", answer)
            with server.socket() as plain:  # which speaks no TLS
                plain.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertFalse(plain.recv(4096).startswith(b"HTTP"))
            with context.wrap_socket(server.socket(), server_hostname="127.0.0.1") as stream:
                stream.sendall(b"GET /v2 HTTP/1.1\r\n")
                server.terminate()
                self.assertEqual(server.ended()[0], 0)

    def test_mistakes_in_the_options(self):
        run = f"digits={digits()}"
        for arguments, code, text in (
                ([run, "--tls-key", "x"], 2, ""), ([run, "--port", "70000"], 2, "port"),
                (["digits=/nowhere"], 3, "/nowhere"), ([run, run], 2, "two models are called 'digits'"),
                (["a/b=" + str(digits())], 2, "letters, digits"), ([f"digits:0={digits()}"], 2, "whole number from 1"),
                ([run, "--address", "256.1.1.1"], 2, "no address"), ([run, "--token-file", "/nowhere"], 3, "/nowhere"),
                ([run, "--access-log", "/nowhere/log"], 3, "/nowhere/log"), ([], 2, "")):
            done = subprocess.run([GPUNN, "serve", *arguments], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
        with Server(run) as server:
            done = subprocess.run([GPUNN, "serve", run, "--port", str(server.port)], capture_output=True, text=True,
                                  timeout=LIMIT)
            self.assertEqual(done.returncode, 3)
            self.assertIn("can't listen", done.stderr)

    def test_the_access_log_has_a_line_an_answer(self):
        log = FOLDER / "access.log"
        with Server(f"digits={digits()}", "--access-log", log) as server:
            server.get("/v2")
            with server.socket() as stream:
                stream.sendall(b"GET /a%22b\"\x1b HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = stream.recv(4096)
            server.post("/v2/models/none/infer", {})
            self.assertTrue(server.wait_for(lambda: len(log.read_text().splitlines()) >= 2))
            server.terminate()
            self.assertEqual(server.ended()[0], 0)
        lines = log.read_text().splitlines()
        self.assertRegex(lines[0], r'^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:[\d:]{8} \+0000\] "GET /v2 HTTP/1\.1" 200 \d+ 0\.\d{6}$')
        self.assertIn('"POST /v2/models/none/infer HTTP/1.1" 404', lines[-1])
        self.assertTrue(answer.startswith(b"HTTP/1.1 4"))
        self.assertEqual(json.dumps(lines).count("\\u001b"), 0)
