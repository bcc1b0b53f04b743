"""Standard files that are full, closed, or pipes that are no longer read end no training."""

import os
import subprocess
import unittest
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest


@unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
class Descriptors(ProgramTest):
    def shell(self, redirection, arguments, code):
        line = " ".join(f"'{word}'" for word in map(str, [GPUNN, *arguments]))
        done = subprocess.run(["bash", "-c", f"{line} {redirection}"], cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, env=self.environment)
        self.assertEqual(done.returncode, code, f"{redirection}: {done.stdout}{done.stderr}")
        return done

    def train(self, name, redirection, code, *more):
        done = self.shell(redirection, self.points("--runs", name, "--epochs", "3", *more), code)
        runs = list(Path(self.folder, name, "perceptron_points").iterdir())
        self.assertEqual(len(runs), 1)
        self.assertEqual((runs[0] / ".lock").stat().st_size, 0)
        records = (runs[0] / "metrics.csv").read_text().splitlines()
        self.assertEqual(len(records), 4)  # a header and three epochs
        self.gpunn("eval", runs[0] / "last.h5")
        return done

    def test_progress_that_cannot_be_shown_ends_nothing(self):
        self.train("stderr-full", "2>/dev/full", 0)
        self.train("stderr-closed", "2>&-", 0)
        self.train("stderr-closed-quiet", "2>&-", 0, "--quiet")
        self.train("stderr-unread", "2> >(true)", 0, "--set", "training.log_every_steps=1")

    def test_results_that_cannot_be_written_are_an_error_of_a_whole_training(self):
        for more in ((), ("--json",)):
            name = "-".join(("stdout", *more))
            full = self.train(name + "-full", ">/dev/full", 1, *more)
            self.assertIn("can't write to the standard output: No space left", full.stderr)
            closed = self.train(name + "-closed", ">&-", 1, *more)
            self.assertIn("can't write to the standard output: Bad file descriptor", closed.stderr)
        self.train("all-closed", "<&- >&- 2>&-", 1)

    def test_a_reader_that_leaves_is_an_error_at_the_end(self):
        line = " ".join(f"'{word}'" for word in map(str, [GPUNN, *self.points("--runs", "left", "--json")]))
        done = subprocess.run(["bash", "-c", f"{line} | (exec 0<&-; sleep 0.1); exit ${{PIPESTATUS[0]}}"],
                              cwd=self.folder, capture_output=True, text=True, timeout=LIMIT, env=self.environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("Broken pipe", done.stderr)
        self.assertEqual(len(list(Path(self.folder).glob("left/*/*/last.h5"))), 1)

    def test_exit_codes_need_no_stderr(self):
        for redirection in ("2>/dev/full", "2>&-"):
            self.shell(redirection, ["run", "nowhere.yaml"], 2)
            self.shell(redirection, ["eval", "nowhere.h5"], 3)
            self.shell(redirection, ["run"], 2)

    def test_a_pipe_that_does_not_block_gets_everything(self):
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        training = self.points("--json", "--epochs", "200", "--set", "training.log_every_steps=1")
        process = subprocess.Popen([GPUNN, *map(str, training)], cwd=self.folder, stdout=writing,
                                   stderr=subprocess.DEVNULL, env=self.environment)
        os.close(writing)
        with os.fdopen(reading) as out:
            text = out.read()
        self.assertEqual(process.wait(LIMIT), 0)
        self.assertGreater(len(text), 1 << 17)
        self.assertIn('"event":"result"', text.splitlines()[-1])
