"""ONNX files where models stand: trained further, evaluated, timed and counted."""

import json
import re
import shutil
import unittest

from base import ProgramTest, SOURCE

DIGITS = SOURCE / "experiments" / "lenet_digits.yaml"
FEW = ("--set", "data.synthetic_train=256", "--set", "data.synthetic_test=64")


class OnnxModels(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.folder, case.environment = cls.folder, cls.environment
        cls.first = case.train(DIGITS, *FEW, "--epochs", "2")
        try:
            case.gpunn("export", cls.first, "--to", "x.onnx")
        except AssertionError as error:
            if "without protobuf" in str(error):
                raise unittest.SkipTest("this gpunn reads no ONNX files") from error
            raise
        (cls.folder / "tuned.yaml").write_text(
            "model: x.onnx\ndata: {dataset: digits, batch_size: 64, synthetic_train: 256, synthetic_test: 64}\n"
            "optimizer: {type: sgd, learning_rate: 0.01}\ntraining: {epochs: 2}\n"
        )

    def train(self, *arguments):
        done = self.gpunn("run", *arguments, "--backend", "cpu")
        return re.search(r"(?m)^run +(.+)$", done.stdout)[1]

    def loss(self, model, *more):
        return json.loads(self.gpunn("eval", model, *more, "--backend", "cpu", "--json").stdout)["loss"]

    def test_eval_takes_the_data_of_an_experiment(self):
        given = ("--data", DIGITS, *FEW)
        self.assertAlmostEqual(self.loss("x.onnx", *given), self.loss(self.first), places=5)
        self.assertAlmostEqual(self.loss("x.onnx", "--data", "digits", *FEW), self.loss(self.first), places=5)
        self.assertIn("--data cifar10", self.gpunn("eval", "x.onnx", code=2).stderr)
        wrong = self.gpunn("eval", "x.onnx", "--data", "points", code=2).stderr
        self.assertIn("not of the kind that the model was trained on", wrong)

    def test_a_training_goes_on_without_the_file(self):
        shutil.copy(self.folder / "x.onnx", self.folder / "gone.onnx")
        (self.folder / "gone.yaml").write_text((self.folder / "tuned.yaml").read_text().replace("x.onnx", "gone.onnx"))
        run = self.train("gone.yaml")
        (self.folder / "gone.onnx").unlink()
        self.gpunn("resume", run, "--set", "training.epochs=3")
        resolved = f"{run}/resolved.yaml"
        self.assertIn('file: "initial.safetensors"', (self.folder / resolved).read_text())
        # The folder may be moved.
        shutil.move(self.folder / run, self.folder / "moved")
        self.gpunn("resume", "moved", "--set", "training.epochs=4")
        self.assertLess(self.loss("moved/last.h5"), self.loss(self.first))
        resolved = "moved/resolved.yaml"
        text = self.gpunn("summary", resolved).stdout
        self.assertIn("initial.safetensors: 10 of 10 tensors", text)
        self.assertIn("initial.safetensors", self.gpunn("plan", resolved, "--backend", "cpu").stdout)
        self.gpunn("report", "moved")
        for name in ("again.onnx", "again.safetensors"):
            self.gpunn("export", "moved", "--to", name)
        best = self.loss("moved")
        self.assertAlmostEqual(self.loss("again.onnx", "--data", "digits", *FEW), best, places=5)
        again = self.train(resolved, "--epochs", "1")
        self.assertTrue((self.folder / again / "last.h5").exists())

    def test_the_first_weights_are_those_of_the_file(self):
        for model in ("model: x.onnx", "model: {file: x.onnx}"):
            (self.folder / "still.yaml").write_text(
                (self.folder / "tuned.yaml").read_text().replace("model: x.onnx", model).replace("0.01", "1e-12")
            )
            run = self.train("still.yaml", "--epochs", "1")
            self.assertAlmostEqual(self.loss(run), self.loss("x.onnx", "--data", "digits", *FEW), places=5)

    def test_other_classes_get_a_last_layer_of_their_own(self):
        text = (self.folder / "tuned.yaml").read_text()
        (self.folder / "five.yaml").write_text(text.replace("x.onnx", "{file: x.onnx, parameters: {classes: 5}}"))
        text = self.gpunn("summary", "five.yaml", "--input", "1,28,28").stdout
        self.assertIn("8 of 10 tensors", text)
        self.assertIn("output.weight f32[5, 84] (there f32[10, 84])", text)
        self.gpunn("run", "tuned.yaml", "--set", "model.parameters.classes=none", code=2)
        self.gpunn("run", "tuned.yaml", "--set", "model.parameters.width=3", code=2)

    def test_bench_and_summary_take_the_file(self):
        report = json.loads(self.gpunn("bench", "x.onnx", "--backend", "cpu", "--repeats", "2", "--warmup", "0",
                                       "--set", "data.batch_size=8", "--json").stdout)
        self.assertGreater(report["samples_per_second"], 0)
        self.assertRegex(self.gpunn("summary", "x.onnx").stdout, r"(?m)^parameters +61.706$")

    def test_what_is_no_onnx_file_is_told_with_its_place(self):
        (self.folder / "bad.onnx").write_text("ONNX")
        (self.folder / "bad.yaml").write_text("model: bad.onnx\ndata: digits\n")
        text = self.gpunn("run", "bad.yaml", code=2).stderr
        self.assertRegex(text, r"bad\.yaml:1:8: model: bad\.onnx: not an ONNX model")
        self.gpunn("eval", "bad.onnx", "--data", "digits", code=1)
