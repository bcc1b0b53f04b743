"""The program gpunn as a user meets it: `program_test.py GPUNN SOURCE_FOLDER`. Standard library only."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import xml.etree.ElementTree
from pathlib import Path

GPUNN = ""
SOURCE = Path()
LIMIT = 120  # seconds that no command here comes near

VERBS = ["run", "resume", "eval", "predict", "report", "diagnose", "plugins", "plan", "check", "bench", "race", "data", "completion",
         "data list", "data get", "data inspect"]
EPOCH_LINE = re.compile(r"epoch +(\d+)/(\d+)  train loss")


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="gpunn-cli-"))
        cls.environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        for name in ("NO_COLOR", "GPUNN_PLUGIN_PATH"):
            cls.environment.pop(name, None)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def gpunn(self, *arguments, code=0, **environment):
        done = subprocess.run([GPUNN, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, env={**self.environment, **environment}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"gpunn {arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def points(self, *more):
        return ["run", SOURCE / "experiments" / "perceptron_points.yaml", "--backend", "cpu", *more]

    def digits(self, *more):
        return ["run", SOURCE / "experiments" / "lenet_digits.yaml", "--backend", "cpu", "--set",
                "data.synthetic_train=512", "--set", "data.synthetic_test=128", *more]


class Help(ProgramTest):
    def test_every_verb_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(verb=verb):
                done = self.gpunn(*verb.split(), "--help")
                self.assertRegex(done.stdout, r"Examples?:\n  (source <\()?gpunn " + verb)
                self.assertEqual(done.stderr, "")

    def test_help_and_version_go_to_stdout(self):
        listed = self.gpunn("--help").stdout
        for verb in VERBS:
            self.assertIn(verb.split()[0], listed)
        self.assertRegex(self.gpunn("--version").stdout, r"^\d+\.\d+\.\d+\n$")

    def test_completion_is_accepted_by_its_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.gpunn("completion", shell).stdout
            self.assertIn("plugins --names", script)
            self.assertIn("resume", script)
            if shutil.which(shell):
                checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, timeout=LIMIT)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), shell)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes_verbs_options_and_backends(self):
        def complete(*words):
            listed = " ".join(f"'{word}'" for word in words)
            script = (f"PATH={Path(GPUNN).parent}:$PATH; source <(gpunn completion bash)\n"
                      f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _gpunn\n"
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT,
                                  env=self.environment).stdout.split()
        self.assertEqual(complete("gpunn", "res"), ["resume"])
        self.assertEqual(complete("gpunn", "data", "in"), ["inspect"])
        self.assertIn("--backend", complete("gpunn", "run", "x.yaml", "--b"))
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--backend", "cp"), ["cpu"])


class ExitCodes(ProgramTest):
    def fails(self, code, expected, *arguments):
        done = self.gpunn(*arguments, code=code)
        self.assertIn(expected, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_usage_is_2(self):
        self.fails(2, "subcommand is required")
        self.fails(2, "there is no verb 'rum'; did you mean 'run'?", "rum", "x.yaml")
        self.fails(2, "did you mean '--seed'?", "run", "x.yaml", "--seedd", "3")
        self.fails(2, "experiment is required", "run")
        self.fails(2, "--set wants KEY=VALUE", *self.points("--set", "epochs"))
        self.fails(2, "predict wants images or rows", "predict", "somewhere")
        self.fails(2, "bench wants", "bench", "op", "matmul")
        self.fails(2, "tcsh not in", "completion", "tcsh")

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
        self.fails(3, "nobody", *self.points()[:-1], "nobody")
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
        self.copy_of_cpu("clash")
        done = self.gpunn(*self.points("--plugin", "clash"), code=3)
        self.assertIn("NAME_CLASH", done.stderr)
        self.assertIn("or name the backend by its path", done.stderr)
        statuses = [one["status"] for one in self.json("plugins", "--plugin", "clash") if one["name"] == "cpu"]
        self.assertEqual(statuses, ["NAME_CLASH", "NAME_CLASH"])

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
        plan = self.json("plan", experiment, *settings, "--backend", "nobody", "--schedule")
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
        report = self.json("bench", "op", "matmul", "64x64x64", "--backend", "cpu", "--repeats", "5")
        self.assertEqual(report["repeats"], 5)
        self.assertGreater(report["gflops"], 0)
        self.assertLessEqual(report["min_seconds"], report["median_seconds"])
        self.assertGreaterEqual(report["pool_requests"], 3)
        self.assertGreaterEqual(report["pool_peak_bytes"], 3 * 64 * 64 * 4)
        report = self.json("bench", SOURCE / "experiments" / "perceptron_points.yaml", "--backend", "cpu", "--repeats",
                           "5")
        self.assertGreater(report["images_per_second"], 0)
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
        experiment = self.folder / "photos.yaml"
        experiment.write_text("model: {layers: [flatten, linear: {units: 2}]}\n"
                              "data: {dataset: image_folder, path: photos, validation_fraction: 0.2}\n")
        self.assertEqual(self.json("data", "inspect", experiment)["validation"]["labels"], [1, 1])
        self.gpunn("data", "inspect", root / "nowhere", code=3)
        self.assertIn("did you mean 'mnist'", self.gpunn("data", "inspect", "mnits", code=2).stderr)
        self.gpunn("data", "inspect", root, "--set", "data.label_mode=coarse", code=2)
        self.assertIn("data.test_fraction: 0.2", self.gpunn("run", experiment, "--set", "data.validation_fraction=0", code=2).stderr)


class Profiles(ProgramTest):
    def spans(self, file):
        """The spans of each row, once it is known that viewers can show them."""
        trace = json.loads(Path(file).read_text())
        rows, spans, last = {}, {}, 0.0
        for event in trace["traceEvents"]:
            if event["ph"] == "M":
                if event["name"] == "thread_name":
                    rows[event["pid"], event["tid"]] = event["args"]["name"]
                continue
            self.assertEqual(event["ph"], "X")
            self.assertGreaterEqual(event["dur"], 0)
            self.assertGreaterEqual(event["ts"], last)
            last = event["ts"]
            spans.setdefault(rows[event["pid"], event["tid"]], []).append(event)
        for row in spans.values():
            open_ends = []
            for one in row:
                begin, end = round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000)
                while open_ends and open_ends[-1] <= begin + 1:
                    open_ends.pop()
                if open_ends:
                    self.assertLessEqual(end, open_ends[-1] + 1)
                open_ends.append(end)
        return trace, spans

    def test_a_run_writes_a_profile(self):
        small = ["--epochs", "4", "--set", "data.batch_size=32"]
        done = self.gpunn(*self.digits(*small, "--runs", "profiled", "--profile", "--profile-steps", "7"))
        run = Path(self.folder, re.search(r"(?m)^run +(.+)$", done.stdout).group(1))
        trace, spans = self.spans(run / "trace.json")
        ops = [one for one in spans["stream 0: compute"] if one["cat"] == "op"]
        plan = json.loads(self.gpunn("plan", *self.digits(*small)[1:], "--json").stdout)
        self.assertEqual(len(ops), 7 * len(plan["ops"]))
        for measured, planned in zip(ops, plan["ops"] * 7):
            self.assertEqual(measured["args"]["op"], planned["op"])
            self.assertEqual(measured["args"]["layer"], planned["name"])
            self.assertEqual(measured["args"]["plugin"], planned["backend"])
            self.assertEqual(measured["args"]["FLOPs"], planned["flops"])
        host = {one["name"] for one in spans["training"]}
        self.assertLessEqual({"data upload", "warm-up step", "enqueue step 4", "read back", "evaluation", "checkpoint"},
                             host)
        self.assertGreater(trace["otherData"]["ceiling GB/s"], 0)
        self.assertGreater(trace["otherData"]["ceiling GFLOP/s"], 0)
        # The table: the largest first.
        self.assertIn("7 steps op by op on cpu", done.stdout)
        shares = [float(share) for share in re.findall(r"(?m)^ *[\d.]+ [nmu]?s +([\d.]+) % +7 ", done.stdout)]
        self.assertEqual(len(shares), len(plan["ops"]))
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_the_profile_is_in_the_json_and_where_it_was_wanted(self):
        lines = self.gpunn(*self.points("--epochs", "3", "--json", "--profile", "here.json", "--quiet")).stdout
        profile = json.loads(lines.splitlines()[-1])["profile"]
        self.assertEqual(profile["file"], "here.json")
        self.assertEqual({one["count"] for one in profile["ops"]}, {profile["steps"]})
        self.assertAlmostEqual(sum(one["share"] for one in profile["ops"]), 1, places=6)
        self.spans(self.folder / "here.json")

    def test_a_profile_that_cannot_be_written_is_told_first(self):
        done = self.gpunn(*self.points("--profile", "nowhere/trace.json"), code=2)
        self.assertIn("can't write nowhere/trace.json: there is no folder nowhere", done.stderr)
        self.assertEqual(done.stdout, "")
        self.gpunn(*self.points("--profile", "."), code=2)
        self.assertIn("requires --profile", self.gpunn(*self.points("--profile-steps", "3"), code=2).stderr)
        self.assertIn("10000", self.gpunn(*self.points("--profile", "--profile-steps", "0"), code=2).stderr)


class Training(ProgramTest):
    def test_run_then_eval_predict_and_resume(self):
        done = self.gpunn(*self.points("--runs", "a", "--epochs", "3"))
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertNotIn("\r", done.stderr)
        self.assertEqual(EPOCH_LINE.findall(done.stderr), [("1", "3"), ("2", "3"), ("3", "3")])
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^\[ *\d+\.\d s\] ")
        self.assertRegex(done.stdout, r"(?m)^accuracy +\d+\.\d\d %")
        run = re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        self.assertIn(f"gpunn eval {run}", done.stdout)

        evaluated = json.loads(self.gpunn("eval", run, "--json").stdout)
        self.assertEqual(evaluated["rows"], 200)
        self.assertGreater(evaluated["accuracy"], 0.9)
        self.assertIn("accuracy", self.gpunn("eval", Path(run) / "last.h5").stdout)
        self.assertNotIn("confusion", evaluated)
        matrix = json.loads(self.gpunn("eval", run, "--json", "--confusion").stdout)["confusion"]
        self.assertEqual(sum(map(sum, matrix)), 200)
        for i, one in enumerate(evaluated["classes"]):
            self.assertEqual((one["index"], one["rows"], one["correct"]), (i, sum(matrix[i]), matrix[i][i]))
            self.assertAlmostEqual(one["precision"], matrix[i][i] / sum(row[i] for row in matrix))
        shown = self.gpunn("eval", run, "--confusion").stdout
        self.assertRegex(shown, r"(?m)^CLASS +ROWS +PREDICTED +PRECISION +RECALL +F1$")
        self.assertRegex(shown, rf"(?m)^0 .*{matrix[0][0]} +{matrix[0][1] or '[.]'}$")

        predictions = json.loads(self.gpunn("predict", run, "--row", "0", "--row", "3", "--top", "2", "--json").stdout)
        self.assertEqual(len(predictions), 2)
        for prediction in predictions:
            self.assertEqual(len(prediction["top"]), 2)
            self.assertAlmostEqual(sum(one["probability"] for one in prediction["top"]), 1, places=4)
        self.assertIn("row 3", self.gpunn("predict", run, "--row", "3").stdout)

        resumed = self.gpunn("resume", run, "--epochs", "5")
        self.assertEqual(EPOCH_LINE.findall(resumed.stderr), [("4", "5"), ("5", "5")])
        self.assertEqual(len(list(Path(self.folder, "a", "perceptron_points").iterdir())), 1)

    def test_json_lines(self):
        done = self.gpunn(*self.points("--runs", "b", "--epochs", "2", "--json", "--quiet"))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(lines[0]["event"], "start")
        self.assertEqual([one["epoch"] for one in lines if one["event"] == "epoch"], [1, 2])
        self.assertEqual(lines[-1]["event"], "result")
        self.assertFalse(lines[-1]["interrupted"])
        self.assertTrue(Path(self.folder, lines[-1]["run"], "best.h5").exists())
        self.assertEqual(done.stderr, "")

    def test_seed_set_and_epochs_reach_the_training(self):
        def losses(*more):
            done = self.gpunn(*self.points("--runs", "c", "--epochs", "1", "--json", "--quiet", *more))
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            return [one["train_loss"] for one in lines if one["event"] == "epoch"]
        first = losses("--seed", "5")
        self.assertEqual(losses("--seed", "5"), first)
        self.assertNotEqual(losses("--seed", "6"), first)
        self.assertNotEqual(losses("--seed", "5", "--set", "optimizer.learning_rate=0.2"), first)

    def test_validation_samples_are_evaluated_in_place_of_the_test_samples(self):
        done = self.gpunn(*self.points("--runs", "v", "--epochs", "1", "--json",
                                       "--set", "data.validation_fraction=0.1"))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one["test"]["rows"] for one in lines if one["event"] == "epoch"], [100])
        self.assertIn("100 training samples are put aside", done.stdout)
        run = lines[-1]["run"]
        self.assertEqual(json.loads(self.gpunn("eval", run, "--json").stdout)["rows"], 200)
        resumed = self.gpunn("resume", run, "--epochs", "2", "--json")
        lines = [json.loads(line) for line in resumed.stdout.splitlines()]
        self.assertEqual([one["test"]["rows"] for one in lines if one["event"] == "epoch"], [100])

    def test_a_table_is_trained_on_and_judged(self):
        rows = [f"{x / 10},{y / 10},{'above' if x > y else 'below'}" for x in range(20) for y in range(20) if x != y]
        (self.folder / "sides.csv").write_text("x,y,side\n" + "\n".join(rows) + "\n")
        experiment = self.folder / "sides.yaml"
        experiment.write_text("model: {layers: [linear: {units: 2}]}\n"
                              "data: {dataset: csv, path: sides.csv, test_fraction: 0.25, batch_size: 19}\n"
                              "optimizer: {learning_rate: 0.5}\ntraining: {epochs: 5}\nbackend: cpu\n")
        done = self.gpunn("run", experiment, "--runs", "t", "--json")
        result = json.loads(done.stdout.splitlines()[-1])
        evaluated = json.loads(self.gpunn("eval", result["run"], "--json").stdout)
        self.assertEqual(evaluated["rows"], 95)
        self.assertGreater(evaluated["accuracy"], 0.9)
        top = json.loads(self.gpunn("predict", result["run"], "--row", "0", "--json").stdout)[0]["top"]
        self.assertIn(top[0]["name"], ("above", "below"))
        done = self.gpunn("run", experiment, "--runs", "t", "--json", "--set", "data.test_fraction=0",
                          "--set", "data.validation_fraction=0.1")
        run = json.loads(done.stdout.splitlines()[-1])["run"]
        self.assertEqual(json.loads(self.gpunn("eval", run, "--json").stdout)["rows"], 38)
        self.gpunn("predict", run, "--row", "37")

    def pty_run(self, arguments, columns=100, **environment):
        """Runs on a terminal; what is on stderr there."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([GPUNN, *map(str, arguments)], cwd=self.folder, stderr=follower,
                                   stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                   env={**self.environment, **environment})
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # Linux's end of a terminal
                break
            if not part:
                break
            shown += part
        os.close(leader)
        self.assertEqual(process.wait(timeout=LIMIT), 0)
        return shown.decode()

    def test_a_terminal_gets_a_bar_that_fits(self):
        for columns in (100, 40):
            shown = self.pty_run(self.digits("--runs", "d", "--epochs", "2"), columns)
            bars = [part for part in re.split(r"\r\x1b\[2K|\r\n", shown) if re.match(r"epoch +\d+/2 ▕", part)]
            self.assertGreater(len(bars), 1, shown)
            for line in bars:
                self.assertLess(len(line), columns)
                self.assertIn("loss", line)
            self.assertEqual(len(EPOCH_LINE.findall(shown)), 2)
            self.assertIn("\x1b[1m", shown)

    def test_no_color_and_plain_locale(self):
        shown = self.pty_run(self.digits("--runs", "e", "--epochs", "1"), NO_COLOR="1", LC_ALL="C")
        self.assertNotRegex(shown, r"\x1b\[\d+m")
        self.assertTrue(shown.isascii())
        self.assertRegex(shown, r"epoch 1/1 \[[#.]+\]")

    def test_a_dumb_terminal_gets_plain_lines(self):
        self.assertNotIn("\x1b", self.pty_run(self.points("--runs", "f", "--epochs", "1"), TERM="dumb"))


class Race(ProgramTest):
    def race(self, *more, code=0):
        return self.gpunn("race", SOURCE / "experiments" / "perceptron_points.yaml", "--runs", "race", *more, code=code)

    def test_a_table_a_chart_and_the_runs(self):
        done = self.race("--backend", "cpu", "--epochs", "2")
        self.assertRegex(done.stdout, r"(?m)^BACKEND +STEP +IMAGES/s +SPEED-UP .*\n^cpu .* 1\.00x .* done$")
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
        done = self.race("--backend", "nobody", "--backend", "cpu", "--epochs", "1", code=1)
        self.assertRegex(done.stdout, r"(?m)^nobody .* failed$")
        self.assertRegex(done.stdout, r"(?m)^cpu .* done$")
        self.assertIn("nobody failed: ", done.stdout)

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


class Compared(ProgramTest):
    def test_two_backends_step_by_step(self):
        done = self.gpunn(*self.points()[:-1], "check:cpu,cpu", "--runs", "check", "--steps", "4")
        self.assertIn("agreed with 'cpu' in every op of 4 steps, bit for bit", done.stderr)
        for verb in ("plan", "bench"):
            done = self.gpunn(verb, SOURCE / "experiments" / "perceptron_points.yaml", "--backend", "check:cpu,cpu", code=2)
            self.assertIn("takes one backend", done.stderr)


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
            result = json.loads(out.splitlines()[-1])
            self.assertEqual((result["event"], result["interrupted"]), ("result", True))
            self.assertTrue((run / "last.h5").exists())
            self.assertIn("accuracy", self.gpunn("eval", run / "last.h5").stdout)

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


if __name__ == "__main__":
    GPUNN, SOURCE = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
