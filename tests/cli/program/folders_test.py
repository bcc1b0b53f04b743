"""Folders of images as users have them: parts in any spelling, damaged files, and what to do next."""

import json
import re
import shlex
import struct
import zlib

from base import ProgramTest

EXPERIMENT = """name: folders
model:
  name: small
  layers:
    - flatten
    - linear: {units: 2}
data: {dataset: image_folder, path: photos, batch_size: 4%s}
optimizer: {type: sgd, learning_rate: 0.01}
training: {epochs: 1}
backend: cpu
"""


def png(value, side=8):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    # Rows that do not repeat, so that a file that is cut short lacks some of them.
    rows = b"".join(b"\0" + bytes((value + y * 37 + x * x * 11) % 251 for x in range(side)) for y in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 0))
            + chunk(b"IEND", b""))


class Folders(ProgramTest):
    def setUp(self):
        self.place = self.folder / self.id().rsplit(".", 1)[1]

    def write(self, folder, count=4, start=0):
        place = self.place / "photos" / folder
        place.mkdir(parents=True, exist_ok=True)
        for i in range(count):
            (place / f"{i}.png").write_bytes(png(start + i))

    def run_it(self, more="", code=0, words=()):
        (self.place / "e.yaml").write_text(EXPERIMENT % more)
        return self.gpunn("run", self.place / "e.yaml", *words, code=code)

    def run_folder(self, done):
        return re.search(r"(?m)^run +(.+)$", done.stdout)[1]

    def test_parts_are_recognised_and_a_resumed_run_keeps_what_becomes_of_damaged_images(self):
        for part in ("Training", "Testing"):
            for label, start in (("cat", 0), ("dog", 100)):
                self.write(f"{part}/{label}", 4, start)
        broken = self.place / "photos/Training/cat/1.png"
        broken.write_bytes(broken.read_bytes()[:60])
        (self.place / "photos/Testing/dog/2.png").write_bytes(b"")
        told = self.run_it(code=1).stderr
        for text in ("2 of 16 images", "cat/1.png: damaged PNG", "dog/2.png: not an image", "data.damaged: skip"):
            self.assertIn(text, told)
        done = self.run_it(", damaged: skip", words=("--set", "training.epochs=2"))
        self.assertIn("the parts are recognised by the names of their folders", done.stderr)
        self.assertIn("2 of 16 images", done.stderr)
        self.assertIn("left out", done.stderr)
        run = self.run_folder(done)
        self.assertIn("2 of 16 images", self.gpunn("resume", run, "--epochs", "3").stderr)
        inspected = json.loads(self.gpunn("data", "inspect", self.place / "e.yaml", "--json").stdout)
        self.assertEqual(inspected["train"]["rows"], 7)

    def test_one_class_is_refused(self):
        self.write("cat", 8)
        told = self.run_it(", test_fraction: 0.25", code=2).stderr
        self.assertIn("all 6 training rows have the class 'cat'", told)
        table = self.place / "t.csv"
        table.write_text("x,species\n" + "1,setosa\n2,setosa\n" * 8)
        told = self.run_it(f", test_fraction: 0.25", code=2, words=(
            "--set", "data.dataset=csv", "--set", f"data.path={table}", "--set", "data.label_column=species")).stderr
        self.assertIn("t.csv, the column 'species' (data.label_column): all 12 training rows have the class 'setosa'",
                      told)

    def test_the_same_labels_in_every_row_are_refused(self):
        self.place.mkdir(parents=True)
        table = self.place / "t.csv"
        table.write_text("x,red,round\n" + "1,1,0\n2,1,0\n" * 8)
        words = ("--set", "data.dataset=csv", "--set", f"data.path={table}", "--set", "task=multi_label",
                 "--set", "data.target_columns=[red, round]")
        told = self.run_it(", test_fraction: 0.25", code=2, words=words).stderr
        self.assertIn("t.csv, the columns red, round (data.target_columns): all 12 training rows have the same labels",
                      told)
        table.write_text("x,red,round\n" + "1,1,0\n2,1,1\n" * 8)
        self.run_it(", test_fraction: 0.25", words=words)

    def test_ranges_far_from_zero_are_shown_apart(self):
        self.place.mkdir(parents=True)
        table = self.place / "times.csv"
        table.write_text("time,y\n1700000000,a\n1700000060,b\n1700000120,a\n")
        shown = self.gpunn("data", "inspect", table).stdout
        self.assertRegex(shown, r"0 +1700000000 +1700000120 +1700000060 +48\.99")

    def test_one_damaged_file_does_not_lose_the_answers_of_others(self):
        for label, start in (("cat", 0), ("dog", 100)):
            self.write(label, 6, start)
        done = self.run_it(", test_fraction: 0.25")
        run = self.run_folder(done)
        photos = self.place / "photos/cat"
        whole = (photos / "1.png").read_bytes()
        (photos / "1.png").write_bytes(whole[:-30])
        (photos / "2.png").write_bytes(b"")
        done = self.gpunn("predict", run, photos, code=1)
        self.assertEqual(len(re.findall(r"(?m)^\S+\.png$", done.stdout)), 4)
        self.assertIn("2 of 6 images are damaged", done.stderr)
        self.assertIn("--damaged skip", done.stderr)
        done = self.gpunn("predict", run, photos, "--json", code=1)
        answers = json.loads(done.stdout)
        self.assertEqual(len(answers), 6)
        self.assertEqual(sum("error" in one for one in answers), 2)
        done = self.gpunn("predict", run, photos, "--damaged", "skip", "--json")
        self.assertEqual(sum("error" not in one for one in json.loads(done.stdout)), 4)
        self.assertIn("left out", done.stderr)
        done = self.gpunn("predict", run, photos, "--damaged", "repair", "--json")
        self.assertEqual(sum("error" not in one for one in json.loads(done.stdout)), 5)
        self.assertIn("1.png: damaged PNG", self.gpunn("predict", run, photos / "1.png", code=1).stderr)
        self.gpunn("predict", run, photos / "none.png", code=3)

    def test_commands_at_the_end_serve_the_task(self):
        for label, start in (("cat", 0), ("dog", 100)):
            self.write(label, 6, start)
        done = self.run_it(", test_fraction: 0.25", words=("--set", f"runs={self.place}/my runs"))
        commands = re.findall(r"(?m)^  gpunn (.+)$", done.stdout.split("next:")[1])
        self.assertEqual([words.split()[0] for words in commands], ["eval", "predict"])
        for command in commands:
            self.gpunn(*shlex.split(command))
