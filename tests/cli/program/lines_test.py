"""`gpunn predict RUN -` and `--watch FOLDER`: answers as images come, a line of JSON each."""

import json
import os
import queue
import signal
import subprocess
import threading

from base import GPUNN, LIMIT, ProgramTest

PATIENCE = 60  # seconds for a line that comes
QUIET = 0.5  # seconds in which none may come


def picture(step):
    return b"P5 28 28 255\n" + bytes(i * step % 256 for i in range(28 * 28))


class Answers:
    """A program whose lines are read as it writes them."""

    def __init__(self, test, *arguments):
        self.process = subprocess.Popen([GPUNN, "predict", *map(str, arguments)], cwd=test.folder,
                                        env=test.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, bufsize=1)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def next(self):
        return self.lines.get(timeout=PATIENCE)

    def has_none(self):
        try:
            return self.lines.get(timeout=QUIET) and False
        except queue.Empty:
            return True

    def end(self):
        code = self.process.wait(timeout=LIMIT)
        error = self.process.stderr.read()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return code, error


class LinesTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        self = cls()
        self.gpunn(*self.digits("--epochs", "1", "--quiet", "--set", f"runs={cls.folder / 'runs'}"))
        cls.run_folder = next((cls.folder / "runs" / "lenet_digits").glob("2*"))
        for name, step in (("one.pgm", 3), ("two.pgm", 7)):
            (cls.folder / name).write_bytes(picture(step))

    def expected(self, file):
        return json.loads(self.gpunn("predict", self.run_folder, file, "--json").stdout)[0]

    def test_paths_on_stdin(self):
        answers = Answers(self, self.run_folder, "-")
        for file in ("one.pgm", "nothing.png", "two.pgm"):
            answers.process.stdin.write(f"{file}\n\n")
            answers.process.stdin.flush()
            line = answers.next()  # while stdin is open
            if file == "nothing.png":
                self.assertEqual(line["source"], file)
                self.assertIn("nothing.png", line["error"])
            else:
                self.assertEqual(line, self.expected(file))
        answers.process.stdin.close()
        self.assertIsNone(answers.next())
        self.assertEqual(answers.end(), (1, ""))
        done = subprocess.run([GPUNN, "predict", self.run_folder, "-", "--top", "1"], input="one.pgm", text=True,
                              capture_output=True, cwd=self.folder, env=self.environment, timeout=LIMIT, check=True)
        self.assertEqual(len(json.loads(done.stdout)["top"]), 1)

    def test_a_folder_is_watched(self):
        folder = self.folder / "incoming"
        folder.mkdir()
        (folder / "there.pgm").write_bytes(picture(5))
        (folder / "notes.txt").write_text("no image")
        answers = Answers(self, self.run_folder, "--watch", folder)
        first = answers.next()
        self.assertEqual(first, self.expected(folder / "there.pgm"))

        with (folder / "slow.pgm").open("wb") as file:
            file.write(picture(11)[:300])
            file.flush()
            self.assertTrue(answers.has_none())
            file.write(picture(11)[300:])
        self.assertEqual(answers.next(), self.expected(folder / "slow.pgm"))

        (folder / ".hidden.pgm").write_bytes(picture(13))
        os.replace(folder / ".hidden.pgm", folder / "moved.pgm")
        self.assertEqual(answers.next()["source"], str(folder / "moved.pgm"))
        (folder / "moved.pgm").write_bytes(picture(17))
        again = answers.next()
        self.assertEqual(again, self.expected(folder / "moved.pgm"))
        (folder / "broken.png").write_bytes(b"no picture")
        self.assertIn("broken.png", answers.next()["error"])
        (folder / "last.pgm").write_bytes(picture(19))
        self.assertEqual(answers.next()["source"], str(folder / "last.pgm"))
        answers.process.send_signal(signal.SIGINT)
        self.assertIsNone(answers.next())
        self.assertEqual(answers.end(), (0, ""))

    def test_what_is_there_is_skipped_and_a_lost_folder_ends_the_watch(self):
        folder = self.folder / "later"
        folder.mkdir()
        (folder / "there.pgm").write_bytes(picture(5))
        answers = Answers(self, self.run_folder, "--watch", folder, "--skip-existing", "--top", 2)
        names = []
        number = 0
        while not names:  # until the watch has begun
            number += 1
            (folder / f"new{number}.pgm").write_bytes(picture(number))
            if not answers.has_none():
                names.append(number)
        (folder / "end.pgm").write_bytes(picture(2))
        while (line := answers.next())["source"] != str(folder / "end.pgm"):
            self.assertNotEqual(line["source"], str(folder / "there.pgm"))
        self.assertEqual(len(line["top"]), 2)
        folder.rename(self.folder / "gone")
        self.assertIsNone(answers.next())
        code, error = answers.end()
        self.assertEqual(code, 3)
        self.assertIn("deleted or moved", error)

    def test_what_does_not_go_together(self):
        self.assertIn("stands alone", self.gpunn("predict", self.run_folder, "-", "one.pgm", code=2).stderr)
        self.assertIn("stands alone", self.gpunn("predict", self.run_folder, "-", "--row", 1, code=2).stderr)
        self.gpunn("predict", self.run_folder, "one.pgm", "--watch", ".", code=2)
        self.gpunn("predict", self.run_folder, "one.pgm", "--skip-existing", code=2)
        self.assertIn("can't be watched", self.gpunn("predict", self.run_folder, "--watch", "none", code=3).stderr)
        self.assertIn("can't be watched", self.gpunn("predict", self.run_folder, "--watch", "one.pgm", code=3).stderr)
