"""Exit codes, and what stands on stderr with them."""

import json
import os
import subprocess
import unittest

from base import GPUNN, LIMIT, ProgramTest, SOURCE


class ExitCodes(ProgramTest):
    def fails(self, code, expected, *arguments):
        done = self.gpunn(*arguments, code=code)
        self.assertIn(expected, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_usage_is_2(self):
        self.fails(2, "subcommand is required")
        self.fails(2, "there is no verb 'rum'; did you mean 'run'?", "rum", "x.yaml")
        self.fails(2, "there is no verb 'trian'; did you mean 'train'?", "trian", "x.yaml")
        self.fails(2, "did you mean '--seed'?", "run", "x.yaml", "--seedd", "3")
        self.fails(2, "try 'gpunn data get --help'", "data", "get", "--xyzzy")
        self.fails(2, "experiment is required", "run")
        self.fails(2, "--set: expected KEY=VALUE", *self.points("--set", "epochs"))
        self.fails(2, "predict needs files or rows", "predict", "somewhere")
        self.fails(2, "bench needs", "bench", "op", "matmul")
        self.fails(2, "tcsh not in", "completion", "tcsh")

    def test_words_of_the_field_are_understood(self):
        self.fails(2, "did you mean '--set optimizer.learning_rate=VALUE'?", *self.points("--lr", "0.1"))
        self.fails(2, "did you mean 'optimizer.learning_rate'?", *self.points("--set", "lr=0.1"))
        self.fails(2, "did you mean 'grad'?", "check", "cpu", "--suite", "gradients")
        self.fails(2, "did you mean 'MATMUL'?", "check", "cpu", "--op", "gemm")
        self.fails(2, "did you mean 'MATMUL'?", "bench", "op", "gemm", "8x8x8")
        self.fails(2, "did you mean 'image_folder'?", "data", "inspect", "imagenet")
        self.fails(2, "fp33 not in fp32|tf32|bf16; did you mean 'fp32'?", "check", "cpu", "--precision", "fp33")

    def test_what_this_version_does_not_serve(self):
        self.fails(2, "How many devices train together", *self.points("--gpus", "4"))
        self.fails(2, "trains neither in fp8", "check", "cpu", "--precision", "fp16")
        self.fails(2, "safetensors.torch", "export", "run", "--to", "x.pt")
        self.fails(2, "is a trained model", "run", "x.onnx")
        self.fails(2, "not on text, audio or video", *self.points("--set", "data=imdb"))
        onnx = self.folder / "x.onnx"
        onnx.write_text("ONNX")
        self.fails(1, "not an ONNX model", "eval", onnx, "--data", "digits")
        sound = self.folder / "x.wav"
        sound.write_text("RIFF")
        self.fails(2, "not on text, audio or video", "data", "inspect", sound)

    def test_no_message_lists_dozens_of_names(self):
        for line in (["check", "cpu", "--op", "xyzzy"], ["bench", "op", "xyzzy", "8"], ["xyzzy"],
                     ["bench", "--xyzzy"], self.points("--set", "xyzzy=1"), self.points("--set", "data.xyzzy=1"),
                     self.points("--set", "model={layers: [xyzzy]}")):
            with self.subTest(line=line):
                message = self.gpunn(*line, code=2).stderr
                self.assertLess(len(message), 300)
                self.assertRegex(message, "help")

    def test_configuration_is_2_with_the_place(self):
        self.fails(2, "did you mean 'learning_rate'?", *self.points("--set", "optimizer.learning_rat=1"))
        self.fails(2, "nowhere.yaml", "run", "nowhere.yaml")
        model = SOURCE / "models" / "perceptron.yaml"
        bad = self.folder / "bad.yaml"
        bad.write_text(f"model: {model}\ndata: {{dataset: points}}\noptimizer:\n  learning_rat: 1\nseeed: 1\n")
        done = self.gpunn("run", bad, code=2)
        self.assertRegex(done.stderr, r"bad\.yaml:4:\d+: .*learning_rat")
        self.assertRegex(done.stderr, r"bad\.yaml:5:\d+: .*seeed")

    def test_missing_is_3(self):
        self.fails(3, "absent", *self.points()[:-1], "absent")
        self.fails(3, "no such run", "resume", "no such run")
        self.fails(3, "nothing.h5", "eval", "nothing.h5")

    def test_diverged_is_4(self):
        diverging = self.points("--set", "loss=mean_squared_error", "--set", "optimizer.learning_rate=1000", "--epochs",
                                "20")
        done = subprocess.run([GPUNN, *map(str, diverging)], cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, env=self.environment)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"step \d+")

    def test_a_damaged_checkpoint_is_1(self):
        broken = self.folder / "broken.h5"
        broken.write_text("not HDF5")
        self.fails(1, "is not an HDF5 file", "eval", broken)

    def test_errors_are_json_where_json_was_asked_for(self):
        done = self.gpunn(*self.points("--set", "optimizer.learning_rat=1", "--json"), code=2)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], 2)
        self.assertIn("learning_rat", error["diagnostics"][0]["message"])
        done = self.gpunn("plugins", "--jsn", "--json", code=2)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], 2)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_behind_stdout_is_1(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([GPUNN, "completion", "bash"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("can't write", done.stderr)
