"""`race`."""

import json
import re
import signal
import subprocess
import xml.etree.ElementTree
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest, SOURCE


class Race(ProgramTest):
    def race(self, *more, code=0):
        return self.gpunn("race", SOURCE / "experiments" / "perceptron_points.yaml", "--runs", "race", *more, code=code)

    def test_a_table_a_chart_and_the_runs(self):
        done = self.race("--backend", "cpu", "--epochs", "2")
        self.assertRegex(done.stdout, r"(?m)^BACKEND +STEP +SAMPLES/s +SPEED-UP .*\n^cpu .* 1\.00x .* done$")
        chart = re.search(r"(?m)^chart +(.+)$", done.stdout).group(1)
        root = xml.etree.ElementTree.parse(self.folder / chart).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        runs = Path(re.search(r"(?m)^runs +(.+)$", done.stdout).group(1))
        self.assertIn("accuracy", self.gpunn("eval", runs / "cpu").stdout)

    def test_markdown_and_json(self):
        done = self.race("--backend", "cpu", "--steps", "3", "--format", "markdown", "--chart", "c.svg", "--quiet")
        self.assertTrue(done.stdout.startswith("| BACKEND |"))
        self.assertTrue((self.folder / "c.svg").exists())
        report = json.loads(self.race("--backend", "cpu", "--steps", "3", "--json", "--quiet").stdout)
        self.assertTrue(report["ok"])
        self.assertEqual([len(one["losses"]) for one in report["entries"]], [3])
        self.assertEqual(report["entries"][0]["speed_up"], 1)

    def test_a_failure_is_a_row_and_exit_code_1(self):
        done = self.race("--backend", "absent", "--backend", "cpu", "--epochs", "1", code=1)
        self.assertRegex(done.stdout, r"(?m)^absent .* failed$")
        self.assertRegex(done.stdout, r"(?m)^cpu .* done$")
        self.assertIn("absent failed: ", done.stdout)

    def test_an_interrupt_leaves_the_table(self):
        process = subprocess.Popen(
            [GPUNN, "race", str(SOURCE / "experiments" / "lenet_digits.yaml"), "--backend", "cpu", "--epochs", "100000",
             "--set", "data.synthetic_train=512", "--set", "data.synthetic_test=128", "--runs", "stopped"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
            stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        while "epoch" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, err)
        self.assertRegex(out, r"(?m)^cpu .* interrupted$")
