"""Kernels by their names, and ops that are measured beside each other, through the program."""

import json
import unittest
from pathlib import Path

from base import GPUNN, SOURCE, ProgramTest

# An overlay on cpu with MATMUL as "gemm:1", right, "gemm:2" and "gemm:3", wrong, and its own choice, right.
LADDER = Path(GPUNN).parent.parent / "tests" / "conformance" / "plugins" / "libgpunn_backend_ladder.so"


@unittest.skipUnless(LADDER.exists(), "the sample plugin is not built")
class Kernels(ProgramTest):
    def perceptron(self, verb, *more, code=0):
        experiment = SOURCE / "experiments" / "perceptron_points.yaml"
        return self.gpunn(verb, experiment, "--plugin", LADDER, *more, code=code)

    def test_plan_shows_who_runs_with_which_kernel(self):
        shown = self.perceptron("plan", "--backend", "ladder", "--kernel", "gemm:1").stdout
        self.assertRegex(shown, r"MATMUL .* ladder gemm:1 ")
        self.assertNotIn("gemm:", self.perceptron("plan", "--backend", "ladder").stdout)

    def test_an_unknown_kernel_is_an_error_before_anything_runs(self):
        for verb in ("plan", "run", "bench"):
            done = self.perceptron(verb, "--backend", "ladder", "--kernel", "gem:1", code=2)
            self.assertIn("no op takes kernel 'gem:1' of 'ladder'; did you mean 'gemm:1'", done.stderr)
        done = self.perceptron("run", "--backend", "cpu", "--kernel", "gemm:1", code=2)
        self.assertIn("have no names", done.stderr)

    def test_the_kernel_of_an_experiment_is_a_key_of_it(self):
        done = self.perceptron("run", "--backend", "ladder", "--kernel", "gemm:1", "--steps", "2", "--runs", "keyed", "--quiet")
        self.assertEqual(done.stderr, "")
        (resolved,) = self.folder.glob("keyed/*/*/resolved.yaml")
        self.assertIn('kernels: ["gemm:1"]', resolved.read_text())

    def test_a_race_leaves_out_the_kernel_where_there_are_no_names(self):
        self.perceptron("race", "--backend", "cpu", "--backend", "ladder", "--kernel", "gemm:1", "--steps", "2", "--runs", "raced")

    def test_of_two_backends_either_may_have_the_kernel(self):
        for checked in ("check:ladder,cpu", "check:cpu,ladder"):
            arguments = ["--backend", checked, "--steps", "2", "--runs", "checked", "--quiet"]
            self.perceptron("run", *arguments, "--kernel", "gemm:1")
            done = self.perceptron("run", *arguments, "--kernel", "gem:1", code=2)
            self.assertIn("did you mean 'gemm:1'", done.stderr)

    def test_check_tests_each_kernel(self):
        arguments = ["check", LADDER, "--suite", "ops", "--op", "MATMUL", "--json"]
        cases = self.gpunn(*arguments, code=1).stdout
        self.assertIn('"kernel": "gemm:3"', cases)
        self.gpunn(*arguments, "--kernel", "gemm:1")
        self.gpunn(*arguments, "--kernel", "gemm:3", code=1)
        self.gpunn(*arguments, "--kernel", "gemm:9", code=2)


class BenchOps(ProgramTest):
    QUICK = ["--repeats", "3", "--warmup", "0", "--threads", "1", "--backend", "cpu"]

    def json(self, *arguments):
        return json.loads(self.gpunn(*arguments, "--json").stdout)

    def test_a_sweep_with_a_chart(self):
        report = self.json("bench", "op", "matmul", "32..64", "8x4x2,ta=1", *self.QUICK, "--chart", "roof.svg")
        self.assertEqual([row["shape"] for row in report["rows"]], ["32x32x32", "64x64x64", "8x4x2,ta=1"])
        self.assertTrue(report["ok"])
        for row in report["rows"]:
            self.assertEqual(row["repeats"], 3)
            self.assertGreater(row["teraflops"], 0)
            self.assertLessEqual(row["min_seconds"], row["median_seconds"])
            self.assertLess(row["error"], 1e-5)
            self.assertGreater(row["ceiling_share"], 0)
            self.assertFalse(row["captured"])
        self.assertEqual(report["ceilings"][0]["memory_domain"], "host")
        self.assertIn("32x32x32", (self.folder / "roof.svg").read_text())

    def test_precisions_and_formats(self):
        wanted = ["bench", "op", "relu", "100", *self.QUICK, "--no-ceilings", "--precision", "fp32,bf16"]
        self.assertRegex(self.gpunn(*wanted).stdout, r"relu +100 +bf16 +cpu")
        self.assertIn("| relu | 100 | fp32 | cpu |", self.gpunn(*wanted, "--format", "markdown").stdout)

    def test_a_preset(self):
        report = self.json("bench", "op", "--preset", "small", *self.QUICK, "--no-ceilings")
        self.assertIn("LARS_UPDATE", {row["op"] for row in self.json(
            "bench", "op", "lars_update", "1000", *self.QUICK, "--no-ceilings")["rows"]})
        self.assertGreater(len(report["rows"]), 10)
        self.assertEqual({row["failure"] for row in report["rows"]}, {""})

    @unittest.skipUnless(LADDER.exists(), "the sample plugin is not built")
    def test_every_kernel_beside_another_backend(self):
        done = self.gpunn("bench", "op", "matmul", "32x32x32", "--plugin", LADDER, "--backend", "cpu,ladder", "--kernel",
                          "all", "--repeats", "3", "--no-ceilings", code=1)
        for name in ("cpu", "ladder gemm:1", "ladder gemm:2", "ladder gemm:3"):
            self.assertRegex(done.stdout, rf"matmul +32x32x32 +fp32 +{name} ")
        self.assertIn("WRONG", done.stdout)
        self.assertIn("wrong  matmul 32x32x32 by ladder gemm:3: output 0", done.stdout)

    def test_what_is_wrong_is_said(self):
        for expected, arguments in {
            "no preset": ["kernels", "--preset", "gem"],
            "expected fp32, tf32 or bf16": ["op", "relu", "8", "--precision", "fp8"],
            "--set changes an experiment": ["op", "relu", "8", "--set", "a=b"],
            "no op 'rel' to measure": ["op", "rel", "8"],
            "no kernel 'x' serves these ops": ["op", "relu", "8", "--kernel", "x"],
            "expected a file that ends in .svg, found 'roof.png'": ["op", "relu", "8", "--chart", "roof.png"],
            "--chart is for 'bench op'": [SOURCE / "experiments" / "mlp_mnist.yaml", "--chart", "a.svg"],
        }.items():
            done = self.gpunn("bench", *arguments, "--backend", "cpu", code=2)
            if expected != "no preset":  # the parser has its own words
                self.assertIn(expected, done.stderr)
