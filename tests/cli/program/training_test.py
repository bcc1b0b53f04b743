"""`run`, `resume`, `eval`, `predict`, `export`."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest
from datetime import datetime, timezone
from pathlib import Path

from base import EPOCH_LINE, GPUNN, LIMIT, ProgramTest, SOURCE


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

        weights = Path(self.folder, "points.safetensors")
        self.assertIn("2 tensors, 6 numbers", self.gpunn("export", run, "--to", weights).stdout)
        content = weights.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + length])
        self.assertEqual(header["output.weight"], {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]})
        self.assertEqual(len(content), 8 + length + 24)
        begun = self.gpunn(*self.points("--runs", "a2", "--epochs", "1", "--set", f"init_from={weights}"))
        self.assertIn("2 of 2 tensors", begun.stderr)
        refused = self.gpunn("export", run, "--to", "weights.pt", code=2)
        self.assertIn("written as NAME.safetensors", refused.stderr)

        resumed = self.gpunn("resume", run, "--epochs", "5")
        self.assertEqual(EPOCH_LINE.findall(resumed.stderr), [("4", "5"), ("5", "5")])
        self.assertEqual(len(list(Path(self.folder, "a", "perceptron_points").iterdir())), 1)

    def test_the_experiments_in_a_run_folder_are_experiments(self):
        mine = Path(self.folder, "mine")
        (mine / "sets").mkdir(parents=True)
        (mine / "sets" / "points.csv").write_text("x,y,kind\n" + "0,1,a\n1,0,b\n" * 20)
        shutil.copy(SOURCE / "models" / "perceptron.yaml", mine)
        (mine / "two.yaml").write_text("model: perceptron.yaml  # one layer\n"
                                       "data: {dataset: csv, path: sets/points.csv, label_column: kind, test_fraction: 0.2, batch_size: 8}\n")
        self.gpunn("run", "mine/two.yaml", "--steps", "2", "--runs", "kept", "--backend", "cpu")
        (run,) = Path(self.folder, "kept", "two").iterdir()
        for name in ("experiment.yaml", "resolved.yaml"):
            copy = run / name
            for verb in (["data", "inspect"], ["plan"], ["summary"], ["eval", run, "--data"]):
                self.gpunn(*verb, copy)
            again = self.gpunn("run", copy, "--steps", "1", "--runs", "again", "--set", "data.batch_size=4")
            self.assertIn("accuracy", again.stdout)
        self.assertIn("  # one layer\n", (run / "experiment.yaml").read_text())

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
        self.assertEqual([one["validation"]["rows"] for one in lines if one["event"] == "epoch"], [100])
        self.assertIn("100 training samples are put aside", done.stdout)
        self.assertEqual(lines[-1]["final_validation"]["part"], "validation")
        run = lines[-1]["run"]
        evaluated = json.loads(self.gpunn("eval", run, "--json").stdout)
        self.assertEqual((evaluated["rows"], evaluated["part"]), (200, "test"))
        resumed = self.gpunn("resume", run, "--epochs", "2", "--json")
        lines = [json.loads(line) for line in resumed.stdout.splitlines()]
        self.assertEqual([one["validation"]["rows"] for one in lines if one["event"] == "epoch"], [100])

    def test_every_place_names_the_part_that_was_evaluated(self):
        for settings, part, other, rows in (((), "test", "validation", 200),
                                            (("--set", "data.validation_fraction=0.1"), "validation", "test", 100)):
            done = self.gpunn(*self.points("--runs", f"p-{part}", "--epochs", "2", *settings))
            run = self.folder / re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
            self.assertEqual(len(re.findall(rf"epoch \d/2 .* {part} loss", done.stderr)), 2, done.stderr)
            self.assertRegex(done.stdout, rf"(?m)^accuracy .* of {rows} {part} rows")
            log = (run / "log.txt").read_text()
            self.assertEqual(len(re.findall(rf"epoch \d: {part} loss [\d.]+, {part} accuracy", log)), 2, log)
            header = (run / "metrics.csv").read_text().splitlines()[0].split(",")
            self.assertEqual(header[4:7], [f"{part}_loss", f"{part}_accuracy", f"{part}_top5_accuracy"])
            records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual([f"{part}_loss" in one for one in records if one["kind"] == "epoch"], [True, True])
            events = b"".join(file.read_bytes() for file in run.glob("events.*"))
            for tag in ("loss", "accuracy"):
                self.assertIn(f"{tag}/{part}".encode(), events)
            for text in (done.stderr.split(" in p-")[1], log.split("steps to go")[1], ",".join(header), str(records)):
                self.assertNotIn(f"{other} loss", text)
                self.assertNotIn(f"{other}_", text)
            self.assertNotIn(f"loss/{other}".encode(), events)
            self.assertIn("rows      200 test rows", self.gpunn("eval", run).stdout)
            self.gpunn("report", run)
            page = (run / "report.html").read_text()
            self.assertIn(f"{part} loss</th>", page)
            self.assertIn("<dt>Test accuracy</dt>", page)

    def test_a_longer_resume_names_the_rates_and_keeps_the_schedule(self):
        settings = ("--set", "schedule={type: cosine, min_learning_rate: 0.001}", "--epochs", "2")
        runs = []
        for name in ("stretched", "kept"):
            done = self.gpunn(*self.points("--runs", name, *settings))
            runs.append(self.folder / re.search(r"(?m)^run +(.+)$", done.stdout).group(1))
        told = self.gpunn("resume", runs[0], "--epochs", "4").stderr
        self.assertRegex(told, r"WARNING: schedule cosine was made for \d+ steps and now extends over \d+: the next "
                               r"learning rate is 0\.\d+, by the old schedule it would be 0\.001\. To keep the old one, "
                               r"resume with --keep-schedule, which sets schedule\.length to 2")
        told = self.gpunn("resume", runs[1], "--epochs", "4", "--keep-schedule").stderr
        self.assertNotIn("schedule cosine", told)
        rows = [line.split(",") for line in (runs[1] / "metrics.csv").read_text().splitlines()]
        rate = rows[0].index("learning_rate")
        self.assertEqual([round(float(row[rate]), 6) for row in rows[3:]], [0.001, 0.001])
        self.assertIn("--keep-schedule", self.gpunn("resume", "--help").stdout)

    def test_an_edited_experiment_is_not_taken_without_a_word(self):
        done = self.gpunn(*self.points("--runs", "edited", "--epochs", "1"))
        run = self.folder / re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        file = run / "experiment.yaml"
        file.write_text(file.read_text() + "runs: elsewhere\n")
        told = self.gpunn("resume", run, "--epochs", "2").stderr
        self.assertIn("experiment.yaml differs from it, which changes nothing", told)
        self.assertIn("--set runs=elsewhere", told)
        file.unlink()
        self.assertNotIn("experiment.yaml", self.gpunn("resume", run, "--epochs", "3").stderr)

    def test_a_run_of_an_earlier_version_is_reported_and_resumed(self):
        done = self.gpunn(*self.points("--runs", "old", "--epochs", "2", "--set", "data.validation_fraction=0.1"))
        run = self.folder / re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        for name in ("metrics.csv", "metrics.jsonl"):
            (run / name).write_text((run / name).read_text().replace("validation_", "test_"))
        before = (run / "metrics.csv").read_text().splitlines()[1:]
        self.gpunn("report", run)
        self.assertIn("validation loss</th>", (run / "report.html").read_text())
        self.gpunn("resume", run, "--epochs", "3")
        rows = (run / "metrics.csv").read_text().splitlines()
        self.assertIn("validation_loss", rows[0])
        self.assertEqual(rows[1:3], before)
        self.assertEqual(len(rows), 4)
        self.gpunn("report", run)
        epochs = re.search(r'(?s)<table id="epochs">.*?</table>', (run / "report.html").read_text()).group(0)
        self.assertEqual(len(re.findall(r'<th scope="row">', epochs)), 3)
        self.assertNotIn("<td>-</td>", epochs)

    def test_a_validation_part_of_ones_own_is_called_so(self):
        for part, kinds in (("train", 8), ("val", 3)):
            for shade in (10, 240):
                folder = self.folder / "shades" / part / str(shade)
                folder.mkdir(parents=True)
                for i in range(kinds):
                    (folder / f"{i}.pgm").write_bytes(b"P5 4 4 255\n" + bytes([shade + i] * 16))
        experiment = self.folder / "shades.yaml"
        experiment.write_text("model: {layers: [flatten, linear: {units: 2}]}\n"
                              "data: {dataset: image_folder, path: shades, batch_size: 4}\n"
                              "optimizer: {learning_rate: 0.1}\ntraining: {epochs: 1}\nbackend: cpu\n")
        done = self.gpunn("run", experiment, "--runs", "own")
        self.assertIn("validation loss", done.stderr)
        self.assertIn("of 6 validation rows", done.stdout)
        run = re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        self.assertIn("6 validation rows", self.gpunn("eval", run).stdout)

    def test_one_clock_and_the_backend_that_runs(self):
        experiment = SOURCE / "experiments" / "perceptron_points.yaml"
        done = self.gpunn("run", experiment, "--set", "backend=auto", "--runs", "clock", "--epochs", "1")
        self.assertNotIn("auto", done.stderr + done.stdout)
        run = self.folder / re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        self.assertRegex(run.name, r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$")
        for line in (run / "log.txt").read_text().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \[ *\d+\.\d s\] ")
        named = datetime.strptime(run.name, "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=timezone.utc)
        self.assertLess(abs((datetime.now(timezone.utc) - named).total_seconds()), LIMIT)
        device = json.loads((run / "environment.json").read_text())["device"]["name"]
        self.assertRegex(done.stderr, rf"perceptron_points on \w+, {re.escape(device)}, in ")
        self.assertIn(device, (run / "log.txt").read_text())
        done = self.gpunn("run", experiment, "--set", "backend=auto", "--runs", "clock", "--epochs", "1", "--json")
        start = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(start["device"], device)
        self.assertNotEqual(start["backend"], "auto")

    def test_a_run_that_fails_leaves_no_folder(self):
        self.gpunn(*self.points("--runs", "none", "--kernel", "no_such_kernel"), code=2)
        left = [path for path in (self.folder / "none").rglob("*") if path.name != "perceptron_points"]
        self.assertEqual(left, [])

    def test_each_stop_is_told_of_once(self):
        stopping = "early_stopping={monitor: train_loss, patience: 1, min_delta: 100}"
        done = self.gpunn(*self.points("--runs", "stop", "--epochs", "9", "--set", stopping))
        self.assertEqual(len(re.findall(r"(?i)stopped|improvement", done.stderr + done.stdout)), 2)  # in one line
        self.assertEqual(len(re.findall(r"stopped early: no improvement", done.stderr)), 1)
        done = self.gpunn(*self.digits("--runs", "diverged", "--set", "optimizer.learning_rate=1000"), code=4)
        self.assertEqual(len(re.findall(r"(?i)\bnan\b|\binf\b|became", done.stderr + done.stdout)),
                         len(re.findall(r"(?i)\bnan\b|\binf\b|became", done.stderr.splitlines()[-1])))

    def test_a_training_goes_on_where_stderr_is_closed(self):
        def run(name, **how):
            command = [GPUNN, *map(str, self.points("--runs", name, "--epochs", "3"))]
            return subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  timeout=LIMIT, text=True, env=self.environment, **how)
        done = run("closed", preexec_fn=lambda: os.close(2))
        self.assertEqual(done.returncode, 0)
        self.assertIn("accuracy", done.stdout)
        for file in (self.folder / "closed").rglob("*"):  # no file took its place
            self.assertFalse(file.is_file() and b"train loss" in file.read_bytes(), file)
        reader, writer = os.pipe()
        os.close(reader)
        done = run("broken", stderr=writer)
        os.close(writer)
        self.assertEqual(done.returncode, 0)
        self.assertIn("accuracy", done.stdout)

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

    @unittest.skipUnless(os.environ.get("GPUNN_TRAINING_SAMPLE_DIR"), "the sample plugins are not built")
    def test_kernels_that_take_long_to_make_are_counted(self):
        plugin = Path(os.environ["GPUNN_TRAINING_SAMPLE_DIR"], "libgpunn_backend_slow_to_create.so")
        experiment = self.folder / "slow.yaml"
        experiment.write_text("model: {layers: [linear: {units: 4}, relu, linear: {units: 2}]}\n"
                              "data: {dataset: points}\noptimizer: {learning_rate: 0.1}\ntraining: {epochs: 1}\n")
        slow = ["run", experiment, "--plugin", plugin, "--backend", "slow_to_create", "--runs", "slow"]
        shown = self.pty_run(slow)
        lines = [part for part in re.split(r"\r\x1b\[2K|\r\n", shown) if part.startswith("preparing kernels")]
        self.assertGreater(len(lines), 5, shown)  # it is drawn anew while one kernel is made
        for line in lines:
            self.assertRegex(line, r"^preparing kernels ▕[█▏▎▍▌▋▊▉ ]+▏ +\d+%  \d+/\d+ ")
            self.assertLess(len(line), 100)
        self.assertIn("RELU", "".join(lines))
        self.assertEqual(self.pty_run([*slow, "--quiet"]), "")
        done = self.gpunn(*slow, "--json")
        for line in done.stdout.splitlines():
            self.assertIn(json.loads(line)["event"], ("start", "message", "step", "epoch", "result"))
        self.assertNotIn("preparing", done.stdout + done.stderr)  # nothing for a log in less than five seconds

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


class Compared(ProgramTest):
    def test_two_backends_step_by_step(self):
        done = self.gpunn(*self.points()[:-1], "check:cpu,cpu", "--runs", "check", "--steps", "4")
        self.assertIn("agreed with 'cpu' in every op of 4 steps, bit for bit", done.stderr)
        for verb in ("plan", "bench"):
            done = self.gpunn(verb, SOURCE / "experiments" / "perceptron_points.yaml", "--backend", "check:cpu,cpu", code=2)
            self.assertIn("takes one backend", done.stderr)
