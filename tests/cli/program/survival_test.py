"""What must not end a training, write over its files, or pass for something else."""

import os
import resource
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest, SOURCE


class Survival(ProgramTest):
    def start(self, arguments, **more):
        process = subprocess.Popen([GPUNN, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment, stdin=subprocess.DEVNULL,
                                   **more)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def run_folder(self, name):
        return next(Path(self.folder, name).glob("*/*"))

    def test_a_model_that_no_memory_holds_is_refused_at_once(self):
        layers = ", ".join(["linear: {units: 60000}"] * 60)
        model = f"{{layers: [flatten, {layers}, linear: {{units: 2}}]}}"
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        for verb in ("run", "plan"):
            done = self.gpunn(verb, *self.points("--set", f"model={model}")[1:], code=3)
            self.assertRegex(done.stderr, r"weights, with their gradients .* need \d\.\d TiB, and [\d.]+ .iB of the")
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(after, max(before, 1 << 20))  # KiB

    def test_data_that_no_memory_holds_is_refused(self):
        limit = 2 << 30
        done = subprocess.run([GPUNN, "data", "inspect", "digits", "--set", "data.synthetic_train=10000000"],
                              capture_output=True, text=True, timeout=LIMIT, env=self.environment,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        if "ulimit -v" in done.stderr:
            self.skipTest("AddressSanitizer takes more address space than any limit leaves")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"10000000 samples, each \[1, 28, 28\], needs 7\.3 GiB of memory, and [12]\.\d GiB")

    def hang_up(self, handler, epochs):
        """A training that is sent SIGHUP, which it was started with that handler of: its exit code and output."""
        process = self.start(self.digits("--runs", "hup" + epochs, "--epochs", epochs, "--json"),
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, handler))
        while '"step"' not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err

    def test_a_terminal_that_goes_away_stops_with_a_checkpoint(self):
        code, out, err = self.hang_up(signal.SIG_DFL, "100000")
        self.assertEqual(code, 130, err)
        self.assertIn('"interrupted":true', out)

    def test_nohup_keeps_a_training_going(self):
        code, out, err = self.hang_up(signal.SIG_IGN, "2")
        self.assertEqual(code, 0, err)
        self.assertIn('"interrupted":false', out)

    def test_drawing_data_ends_with_an_interrupt(self):
        process = self.start(self.digits("--set", "data.synthetic_train=4000000"))
        time.sleep(0.7)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, err)
        self.assertLess(time.monotonic() - sent, 5)
        self.assertIn("interrupted", err)

    def test_a_file_size_limit_is_an_ordinary_error(self):
        most = 2000  # more than the kibibyte in shared memory by which LLVM's OpenMP announces itself
        done = subprocess.run([GPUNN, *map(str, self.points("--runs", "limit"))], cwd=self.folder, capture_output=True,
                              text=True, timeout=LIMIT, env=self.environment,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"can't write .*: File too large")
        self.assertEqual(list(Path(self.folder, "limit").glob("*/*")), [])

    def test_no_output_replaces_what_a_run_keeps(self):
        self.gpunn(*self.points("--runs", "kept", "--quiet"))
        run = self.run_folder("kept")
        before = {path: path.read_bytes() for path in run.iterdir()}
        (self.folder / "link.html").symlink_to(run / "last.h5")
        for output in (run / "last.h5", run / "metrics.csv", run / "experiment.yaml", run / ".lock", "link.html"):
            self.assertIn("would replace", self.gpunn("report", run, "--output", output, code=2).stderr)
        experiment = self.folder / "own.yaml"
        text = (SOURCE / "experiments" / "perceptron_points.yaml").read_text()
        experiment.write_text(text.replace("../models", str(SOURCE / "models")))
        for line in (["run", experiment, "--backend", "cpu", "--profile", "own.yaml"],
                     ["run", experiment, "--backend", "cpu", "--profile", run / "last.h5"],
                     ["data", "inspect", "own.yaml", "--sheet", "own.yaml"]):
            self.assertIn("would replace", self.gpunn(*line, code=2).stderr)
        self.assertEqual({path: path.read_bytes() for path in run.iterdir()}, before)
        self.gpunn("report", run)
        self.gpunn("report", run)  # over its own page

    def test_pipes_as_files(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        text = (SOURCE / "experiments" / "perceptron_points.yaml").read_text().replace("../models",
                                                                                      str(SOURCE / "models"))
        line = f"'{GPUNN}' plan <(sleep 0.3; cat; sleep 0.3; echo '# end') --backend cpu"
        done = subprocess.run(["bash", "-c", line], input=text, capture_output=True, text=True, timeout=LIMIT,
                              env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing came from it", self.gpunn("run", pipe, code=2).stderr)
        for arguments in (["eval", pipe], ["predict", pipe, "x.png"], ["data", "inspect", "hdf5", "--path", pipe]):
            done = subprocess.run([GPUNN, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                                  timeout=20, env=self.environment)
            self.assertIn(done.returncode, (1, 2, 3), done.stderr)

    def test_paths_that_cannot_be_looked_at_are_told_plainly(self):
        (self.folder / "circle").symlink_to("circle")
        long = "n" * 300
        for path, words in (("circle", "symbolic links"), (long, "name too long"), (long + "/x", "name too long")):
            for line in (["run", path], ["resume", path], ["eval", path], ["report", path], ["predict", path, "x.png"],
                         ["data", "inspect", path], ["summary", path], ["export", path, "--to", "x.safetensors"],
                         ["plan", path], self.points("--runs", path), self.points("--profile", path),
                         self.points("--set", f"init_from.file={path}")):
                done = subprocess.run([GPUNN, *map(str, line)], cwd=self.folder, capture_output=True, text=True,
                                      timeout=LIMIT, env=self.environment)
                self.assertIn(done.returncode, (1, 2, 3), done.stderr)
                self.assertNotIn("internal error", done.stderr)
                self.assertRegex(done.stderr, f"(?i){words}", line)

    def test_contents_of_files_are_shown_escaped(self):
        bad = self.folder / "bad.yaml"
        bad.write_bytes(b'model: "x\\ny"\nna\xffme: 1\ntraining: {epochs: "1\\n\\0\\e[2J"}\ndata: points\n')
        done = self.gpunn("run", bad, code=2)
        self.assertIn(r"x\ny: No such file", done.stderr)
        self.assertIn(r"na\xffme", done.stderr)
        self.assertIn(r'the text "1\n\0\x1b[2J"', done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 3)

    def test_resume_waits_some_seconds_for_a_process_that_ends(self):
        self.gpunn(*self.points("--runs", "waits", "--quiet"))
        run = self.run_folder("waits")
        for seconds, code in ((1.5, 0), (30, 2)):
            holder = subprocess.Popen(["flock", "-x", str(run / ".lock"), "sleep", str(seconds)])
            self.addCleanup(holder.wait)
            self.addCleanup(holder.terminate)
            time.sleep(0.3)
            start = time.monotonic()
            done = self.gpunn("resume", run, "--epochs", "6", code=code)
            self.assertIn("waiting 5 s for its end", done.stderr)
            self.assertLess(time.monotonic() - start, 12)

    def test_a_folder_without_access_is_not_another_copy(self):
        if os.getuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("needs another user")
        locked = self.folder / "locked"
        locked.mkdir()
        (locked / "train-images-idx3-ubyte").write_bytes(b"")
        locked.chmod(0)
        self.folder.chmod(0o755)
        command = [GPUNN, "data", "inspect", "mnist", "--path", str(locked)]
        if os.getuid() == 0:
            command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=LIMIT, env=self.environment)
        locked.chmod(0o700)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Permission denied", done.stderr)


@unittest.skipUnless(os.geteuid() == 0, "only root can run a program as another user")
class Unprivileged(ProgramTest):
    """What reads a run, as a user who may write nowhere, with a home that can't be written, or is not there."""

    USER = 65534

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.chmod(cls.folder, 0o755)
        cls.home = cls.folder / "home"
        cls.home.mkdir(mode=0o555)

    def setUp(self):
        if self.runs(["--version"], {}).returncode != 0:
            self.skipTest("that user may not read the program")

    def runs(self, arguments, environment):
        return subprocess.run([GPUNN, *map(str, arguments)], cwd="/", capture_output=True, text=True, timeout=LIMIT,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment},
                              stdin=subprocess.DEVNULL, user=self.USER, group=self.USER, extra_groups=[])

    def test_what_only_reads_needs_no_home(self):
        self.gpunn(*self.points("--runs", "runs", "--epochs", "1"))
        run = next(Path(self.folder, "runs").glob("*/*"))
        verbs = {
            "eval": ["eval", run, "--backend", "cpu"],
            "plan": ["plan", SOURCE / "experiments" / "lenet_digits.yaml", "--backend", "cpu"],
            "check": ["check", "cpu", "--op", "RELU"],
            "bench": ["bench", "op", "matmul", "64", "--backend", "cpu"],
            "predict": ["predict", run, "--row", "3", "--backend", "cpu"],
        }
        for where, environment in {"none": {}, "empty": {"HOME": ""}, "read-only": {"HOME": str(self.home)},
                                   "missing": {"HOME": "/nonesuch"}}.items():
            for name, arguments in verbs.items():
                with self.subTest(verb=name, home=where):
                    done = self.runs(arguments, environment)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("internal error", done.stderr)

    def test_a_run_that_may_not_write_says_where(self):
        done = self.runs(self.points("--runs", self.home / "runs"), {"HOME": str(self.home)})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(str(self.home / "runs"), done.stderr)
        self.assertIn("ermission denied", done.stderr)
