"""Verbs that tell of plugins, plans, times, checks and data."""

import csv
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest, SOURCE


class Reports(ProgramTest):
    def json(self, *arguments):
        return json.loads(self.gpunn(*arguments, "--json").stdout)

    def test_plugins(self):
        cpu = [one for one in self.json("plugins") if one["name"] == "cpu"]
        self.assertEqual([one["status"] for one in cpu], ["OK"])
        self.assertIn("cpu", self.gpunn("plugins", "--names").stdout.split())
        self.assertRegex(self.gpunn("plugins").stdout, r"(?m)^NAME +STATUS.*\n(.*\n)*cpu +OK ")

    def test_plugins_tells_why_a_file_is_none(self):
        fake = self.folder / "libgpunn_backend_fake.so"
        fake.write_text("not a library")
        reports = [one for one in self.json("plugins", "--plugin", fake) if one["path"].endswith("fake.so")]
        self.assertEqual([one["status"] for one in reports], ["NOT_A_PLUGIN"])
        self.assertNotEqual(reports[0]["detail"], "")
        fake.unlink()

    def copy_of_cpu(self, folder):
        cpu = next(one["path"] for one in self.json("plugins") if one["name"] == "cpu")
        target = self.folder / folder
        target.mkdir()
        return shutil.copy(cpu, target)

    def test_two_plugins_of_one_name(self):
        installed = next(one["path"] for one in self.json("plugins") if one["name"] == "cpu")
        first, second = (self.copy_of_cpu(folder) for folder in ("clash", "clash_2"))
        statuses = [one["status"] for one in self.json("plugins", "--plugin", "clash") if one["name"] == "cpu"]
        self.assertEqual(statuses, ["OK", "SHADOWED"])
        done = self.gpunn(*self.points("--plugin", "clash", "--runs", "shadowing", "--epochs", "1"))
        notice = f"gpunn: plugin 'cpu' is {first}, which is searched first; left out is {installed}"
        self.assertEqual(done.stderr.splitlines().count(notice), 1, done.stderr)
        (run,) = Path(self.folder, "shadowing", "perceptron_points").iterdir()
        self.assertEqual(self.gpunn("eval", run).stderr.splitlines().count(notice), 1)
        self.assertNotIn("searched first", self.gpunn("check", "cpu", "--op", "RELU", "--suite", "ops").stderr)

        done = self.gpunn(*self.points("--plugin", first, "--plugin", second), code=3)
        self.assertIn(f"NAME_CLASH, name 'cpu' is also that of {second}", done.stderr)
        listed = self.json("plugins", "--plugin", "clash", "--plugin", "clash_2")
        statuses = [one["status"] for one in listed if one["name"] == "cpu"]
        self.assertEqual(statuses, ["NAME_CLASH", "NAME_CLASH", "SHADOWED"])

    def test_a_backend_by_its_path(self):
        self.copy_of_cpu("mine")
        done = self.gpunn("run", SOURCE / "experiments" / "perceptron_points.yaml", "--backend",
                          "mine/libgpunn_backend_cpu.so", "--runs", "by_path", "--epochs", "2")
        run = re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        # From anywhere, whatever folder the path was relative to.
        done = subprocess.run([GPUNN, "resume", self.folder / run, "--epochs", "3"], cwd="/", capture_output=True, text=True,
                              timeout=LIMIT, env=self.environment, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_plugin_file_that_is_cut_short_or_of_another_machine(self):
        whole = Path(self.copy_of_cpu("broken")).read_bytes()
        short = self.folder / "broken" / "libgpunn_backend_short.so"
        short.write_bytes(whole[:len(whole) // 3])
        points = ["run", SOURCE / "experiments" / "perceptron_points.yaml", "--backend"]
        done = self.gpunn(*points, short, code=3)
        self.assertIn("truncated: ", done.stderr)
        self.assertIn("copy or build it again", done.stderr)
        foreign = self.folder / "broken" / "libgpunn_backend_foreign.so"
        machine = b"\xb7\x00" if whole[18:20] != b"\xb7\x00" else b"\x3e\x00"  # e_machine: aarch64 or x86_64
        foreign.write_bytes(whole[:18] + machine + whole[20:])
        done = self.gpunn(*points, foreign, code=3)
        self.assertRegex(done.stderr, "built for another machine: it is of (aarch64|x86_64)")

    def test_plan(self):
        experiment = SOURCE / "experiments" / "lenet_digits.yaml"
        small = ["plan", experiment, "--backend", "cpu", "--set", "data.synthetic_train=256"]
        plan = self.json(*small)
        self.assertEqual(plan["parameters"], 61706)
        self.assertEqual(plan["trainable"], 61706)
        self.assertEqual(plan["peak_bytes"], plan["arena_bytes"] + plan["persistent_bytes"])
        last = len(plan["ops"]) - 1
        for tensor in plan["tensors"]:
            if tensor["storage"] == "arena":
                self.assertLessEqual(tensor["offset"] + tensor["bytes"], plan["arena_bytes"])
                self.assertTrue(0 <= tensor["first_op"] <= tensor["last_op"] <= last)
        text = self.gpunn(*small).stdout
        self.assertIn("61 706", text)
        self.assertIn("ops from left to right", text)

    def test_plan_of_a_schedule(self):
        experiment = SOURCE / "experiments" / "lenet_digits.yaml"
        settings = ["--set", "data.synthetic_train=1280", "--set", "schedule.warmup_epochs=2"]
        # No backend is asked, so one that is not there is no obstacle.
        plan = self.json("plan", experiment, *settings, "--backend", "absent", "--schedule")
        self.assertEqual((plan["type"], plan["steps"], plan["steps_per_epoch"]), ("cosine", 100, 10))
        self.assertEqual(len(plan["learning_rates"]), 100)
        self.assertAlmostEqual(max(plan["learning_rates"]), 0.05)
        self.assertEqual([(point["step"], point["what"]) for point in plan["points"]],
                         [(1, "first"), (21, "warm-up done, highest"), (100, "last")])
        chart = self.folder / "curve.svg"
        text = self.gpunn("plan", experiment, *settings, "--schedule", chart).stdout
        self.assertIn("learning rate of lenet_digits: cosine, 100 steps, 10 an epoch", text)
        self.assertRegex(text, r"\n +21 +2 +0\.05 +warm-up done, highest\n")
        self.assertIn("</svg>", chart.read_text())

        late = self.gpunn("plan", experiment, *settings, "--set", "schedule={type: multi_step, milestones: [30]}",
                          "--schedule")
        self.assertIn("30 is behind the end of the training, 10 epochs", late.stderr)
        # An experiment behind the option is not written over.
        taken = self.gpunn("plan", "--schedule", experiment, experiment, code=2)
        self.assertIn("expected a file that ends in .svg", taken.stderr)

    def test_bench(self):
        report = self.json("bench", SOURCE / "experiments" / "perceptron_points.yaml", "--backend", "cpu", "--repeats",
                           "5")
        self.assertGreater(report["samples_per_second"], 0)
        self.assertEqual((report["allocations"], report["synchronizations"]), (0, 0))
        self.assertEqual(report["peak_bytes"], report["arena_bytes"] + report["persistent_bytes"])
        self.assertGreater(report["data_bytes"], 0)
        self.assertFalse(report["captured"])
        self.assertIn("captures no graphs", report["eager_reason"])

    def test_check(self):
        report = self.json("check", "cpu", "--suite", "ops", "--op", "MATMUL")
        self.assertTrue(report["ok"])
        self.assertGreater(report["passed"], 0)
        self.assertEqual({one["op"] for one in report["cases"]}, {"MATMUL"})
        self.assertRegex(self.gpunn("check", "cpu", "--suite", "ops", "--op", "MATMUL").stdout,
                         r"cpu .*: \d+ passed, 0 failed")

    def test_top5_is_told_of_more_than_five_classes(self):
        for arguments, told in ((self.points("--epochs", "1"), False), (self.digits("--epochs", "1"), True)):
            said = self.gpunn(*arguments, "--report").stdout
            run = self.folder / re.search(r"(?m)^run +(.+)$", said).group(1)
            with open(run / "metrics.csv", encoding="utf-8", newline="") as table:
                epoch, = csv.DictReader(table)
            record = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
            share = self.json("eval", run)["top5_accuracy"]
            if told:
                self.assertTrue(0 < share < 1)
                self.assertAlmostEqual(float(epoch["test_top5_accuracy"]), record["test_top5_accuracy"], places=6)
            else:
                self.assertEqual((epoch["test_top5_accuracy"], record["test_top5_accuracy"], share), ("", None, None))
            self.assertEqual("\ntop-5 accuracy " in self.gpunn("eval", run).stdout, told)
            page = (run / "report.html").read_text()
            self.assertEqual([">Test top-5 accuracy</dt>" in page, ">test top-5 accuracy</th>" in page], [told, told])
            events, = run.glob("events.out.tfevents.*")
            self.assertEqual(b"top5_accuracy/test" in events.read_bytes(), told)

    def test_check_tells_how_far_it_is(self):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 110, 0, 0))
        process = subprocess.Popen([GPUNN, "check", "cpu", "--suite", "grad", "--suite", "ops"], cwd=self.folder,
                                   stderr=follower, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   env=self.environment)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(follower)
        shown = b""
        # Enough of it: the whole suite takes a while.
        while len(re.findall(rb"checking cpu \xe2\x96\x95.*?%  [\d ]+/[\d ]+  \d+:\d\d", shown)) < 3:
            shown += os.read(leader, 65536)
        os.close(leader)

    def test_data(self):
        names = {one["name"] for one in self.json("data", "list")}
        self.assertLessEqual({"mnist", "fashion_mnist", "digits", "points"}, names)
        points = self.json("data", "inspect", "points")
        self.assertEqual(points["classes"], 2)
        self.assertEqual(sum(points["train"]["labels"]), points["train"]["rows"])
        self.assertIn("CLASS", self.gpunn("data", "inspect", "points").stdout)

    def test_data_inspect_of_a_folder_of_images(self):
        root = self.folder / "photos"
        for name, pixels in {"night": bytes(12), "day": bytes([250] * 12)}.items():
            (root / name).mkdir(parents=True)
            for i in range(5):
                (root / name / f"{i}.ppm").write_bytes(b"P6 2 2 255\n" + pixels)
        sheet = self.folder / "sheet.png"
        shown = self.gpunn("data", "inspect", root, "--sheet", sheet, "--set", "data.test_fraction=0.2").stdout
        self.assertRegex(shown, r"train +8 rows, u8\[8, 3, 2, 2\]")
        self.assertRegex(shown, r"1 +night +4 +1 ")
        self.assertTrue(sheet.read_bytes().startswith(b"\x89PNG"))
        found = self.json("data", "inspect", root, "--set", "data.image_size=4")
        self.assertEqual(found["class_names"], ["day", "night"])
        self.assertEqual(found["train"]["type"], "u8[10, 3, 4, 4]")
        self.assertEqual(found["train"]["channels"][0], {"min": 0, "max": 250, "mean": 125, "stddev": 125})
        self.gpunn("data", "pack", root, "--to", "photos.gpack")
        self.assertEqual(self.json("data", "inspect", "photos.gpack", "--set", "data.image_size=4")["train"], found["train"])
        experiment = self.folder / "photos.yaml"
        experiment.write_text("model: {layers: [flatten, linear: {units: 2}]}\n"
                              "data: {dataset: image_folder, path: photos, validation_fraction: 0.2}\n")
        self.assertEqual(self.json("data", "inspect", experiment)["validation"]["labels"], [1, 1])
        changed = self.folder / "changed.png"
        self.gpunn("data", "inspect", experiment, "--sheet", changed, "--augmented", "--set", "backend=cpu",
                   "--set", "data.batch_size=4", "--set", "augmentation.crop=1")
        self.assertTrue(changed.read_bytes().startswith(b"\x89PNG"))
        self.assertNotEqual(changed.read_bytes(), sheet.read_bytes())
        self.gpunn("data", "inspect", experiment, "--augmented", code=2)  # without a sheet
        self.gpunn("data", "inspect", root, "--sheet", changed, "--augmented", code=2)
        self.gpunn("data", "inspect", root / "nowhere", code=3)
        self.assertIn("did you mean 'mnist'", self.gpunn("data", "inspect", "mnits", code=2).stderr)
        self.gpunn("data", "inspect", root, "--set", "data.label_mode=coarse", code=2)
        self.assertIn("data.test_fraction: 0.2", self.gpunn("run", experiment, "--set", "data.validation_fraction=0", code=2).stderr)
