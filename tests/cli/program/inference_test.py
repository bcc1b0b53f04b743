"""The engine of trained models from the command line: its plan, its times, and models in eight bits."""

import json
import re
import unittest

from base import ProgramTest, SOURCE

DIGITS = SOURCE / "experiments" / "lenet_digits.yaml"
FEW = ("--set", "data.synthetic_train=512", "--set", "data.synthetic_test=128")


class Inference(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.folder, case.environment = cls.folder, cls.environment
        done = case.gpunn("run", DIGITS, *FEW, "--epochs", "2", "--backend", "cpu")
        cls.run_folder = re.search(r"(?m)^run +(.+)$", done.stdout)[1]

    def test_a_plan_of_a_call_shows_passes_and_ops(self):
        text = self.gpunn("plan", "--inference", self.run_folder, "--rows", "3", "--backend", "cpu").stdout
        self.assertIn("ops of a call with 3 rows on cpu", text)
        self.assertRegex(text, r"(?m)^fuse +5 ")
        self.assertRegex(text, r"CONV2D_BIAS_ACTIVATION +conv1 +cpu conv:")
        plan = json.loads(
            self.gpunn("plan", "--inference", self.run_folder, "--without", "fuse", "layout", "--json").stdout
        )
        on = {one["name"]: one["on"] for one in plan["passes"]}
        self.assertFalse(on["fuse"] or on["layout"])
        self.assertTrue(on["fold_constants"])
        self.assertIn("BIAS_ADD", [op["op"] for op in plan["ops"]])
        self.assertIn("--rows and --without", self.gpunn("plan", DIGITS, "--rows", "3", code=2).stderr)

    def test_calls_are_timed(self):
        report = json.loads(self.gpunn("bench", "infer", self.run_folder, "--batch", "1,3", "--json").stdout)
        self.assertEqual([row["rows"] for row in report["rows"]], [1, 3])
        for row in report["rows"]:
            self.assertGreaterEqual(row["calls"], 30)
            self.assertLessEqual(row["least_seconds"], row["p50_seconds"])
            self.assertLessEqual(row["p50_seconds"], row["p99_seconds"])
            self.assertGreater(row["memory_bytes"], 100_000)
            self.assertGreater(row["device_seconds"], 0)
            self.assertNotIn("profile", row)
        self.assertIn("--batch", self.gpunn("bench", "infer", self.run_folder, "--batch", "1,x", code=2).stderr)

    def test_the_ops_of_a_call_are_timed(self):
        command = ("bench", "infer", self.run_folder, "--batch", "2", "--backend", "cpu", "--profile")
        text = self.gpunn(*command).stdout
        self.assertRegex(text, r"ROWS +P50 +P99 +LEAST +DEVICE ")
        self.assertRegex(text, r" cpu +conv1 +CONV2D_BIAS_ACTIVATION")
        self.assertNotIn("perfetto", text)
        report = json.loads(self.gpunn(*command, "calls.json", "--profile-steps", "4", "--json").stdout)
        profile = report["rows"][0]["profile"]
        self.assertEqual(profile["steps"], 4)
        self.assertIn("conv2", [op["name"] for op in profile["ops"]])
        self.assertIn("traceEvents", json.loads((self.folder / "calls.json").read_text()))
        several = (*command[:4], "1,2", *command[5:], "calls.json")
        self.assertIn("one batch", self.gpunn(*several, code=2).stderr)
        self.assertIn("there is no folder", self.gpunn(*command, "nowhere/calls.json", code=2).stderr)
        step = ("bench", DIGITS, "--profile", "x.json")
        self.assertIn("--profile is for 'bench infer'", self.gpunn(*step, code=2).stderr)

    def test_an_engine_is_planned_once(self):
        text = self.gpunn("export", self.run_folder, "--to", "x.engine", "--backend", "cpu", "--batch", "1,4").stdout
        self.assertRegex(text, r"(?m)^engine +\d+ ops, .* for 1, 4 rows, in x.engine$")
        report = json.loads(self.gpunn("bench", "infer", "x.engine", "--batch", "1,4", "--json").stdout)
        self.assertEqual([row["rows"] for row in report["rows"]], [1, 4])
        self.assertIn("--batch 8", self.gpunn("bench", "infer", "x.engine", "--batch", "8", code=2).stderr)
        rows = ("--row", "0", "--row", "1", "--row", "2", "--json")
        planned, trained = (
            json.loads(self.gpunn("predict", model, *rows).stdout) for model in ("x.engine", self.run_folder)
        )
        self.assertEqual(planned, trained)
        self.assertIn("answers only", self.gpunn("eval", "x.engine", code=1).stderr)
        other = ("export", self.run_folder, "--to", "x.onnx", "--batch", "1")
        self.assertIn("are for NAME.engine", self.gpunn(*other, code=2).stderr)

    def test_a_model_goes_into_eight_bits(self):
        options = ("--images", "64", "--most-lost", "3", "--backend", "cpu", *FEW)
        try:
            text = self.gpunn("quantize", self.run_folder, "--to", "int8.onnx", *options).stdout
        except AssertionError as error:
            if "without protobuf" in str(error):
                raise unittest.SkipTest("this gpunn writes no ONNX files") from error
            raise
        self.assertIn("int8      2 convolutions, 3 dense layers", text)
        plan = self.gpunn("plan", "--inference", "int8.onnx", "--backend", "cpu").stdout
        self.assertIn("QUANTIZED_CONV2D", plan)
        bench = ("bench", "infer", "int8.onnx", "--batch", "1", "--backend", "cpu", "--warmup", "1", "--kernel")
        self.gpunn(*bench, "quantized:portable")
        self.assertIn("quantized:portable", self.gpunn(*bench, "quantized:nothing", code=2).stderr)
        before, after = (
            json.loads(self.gpunn("eval", model, *data, "--backend", "cpu", "--json").stdout)["accuracy"]
            for model, data in ((self.run_folder, ()), ("int8.onnx", ("--data", DIGITS, *FEW)))
        )
        self.assertLess(abs(before - after), 0.03)
        self.assertIn(
            "in eight bits already",
            self.gpunn("quantize", "int8.onnx", "--to", "again.onnx", "--data", DIGITS, *options, code=2).stderr,
        )
        self.assertIn(
            "all not in train|validation|test",
            self.gpunn("quantize", self.run_folder, "--to", "other.onnx", "--part", "all", code=2).stderr,
        )


if __name__ == "__main__":
    unittest.main()
