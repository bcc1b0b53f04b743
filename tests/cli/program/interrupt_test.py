"""Ctrl-C."""

import json
import re
import signal
import subprocess
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest


class Interrupted(ProgramTest):
    def start(self, runs):
        process = subprocess.Popen([GPUNN, *map(str, self.digits("--runs", runs, "--epochs", "100000", "--json"))],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment, stdin=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        started = json.loads(process.stdout.readline())
        while json.loads(process.stdout.readline())["event"] != "step":
            pass
        return process, Path(self.folder, started["run"])

    def test_the_first_interrupt_checkpoints_and_stops(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            process, run = self.start(f"stop-{sent}")
            process.send_signal(sent)
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("press again to quit", err)
            self.assertEqual(err.count("stopping after this step"), 1, err)
            self.assertNotIn("interrupt", err)
            result = json.loads(out.splitlines()[-1])
            self.assertEqual((result["event"], result["interrupted"]), ("result", True))
            self.assertTrue((run / "last.h5").exists())
            self.assertIn("accuracy", self.gpunn("eval", run / "last.h5").stdout)

    def test_an_interrupt_is_told_of_once_and_says_how_to_go_on(self):
        process = subprocess.Popen([GPUNN, *map(str, self.digits("--runs", "once", "--epochs", "100000"))],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment, stdin=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        while "epoch" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(len(re.findall(r"(?i)stopping|stopped|interrupted", out + err)), 1, out + err)
        self.assertRegex(out, r"next:\n  gpunn resume once/lenet_digits/\S+\n$")

    def test_the_second_interrupt_quits_at_once(self):
        process, run = self.start("quit")
        # Stopped, it can't finish its step between the two; both signals are there when it goes on.
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertNotIn('"result"', out)
        left = [path for path in run.iterdir() if ".tmp-" not in path.name and path.suffix == ".h5"]
        for checkpoint in left:
            self.gpunn("eval", checkpoint)
