"""A run without its data: what it predicts, and what happens where the data is not what it was."""

import json
import random
import shutil
from pathlib import Path

from base import ProgramTest


def write_pgm(file, level, seed):
    drawn = random.Random(seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"P5 12 12 255\n" + bytes(max(0, min(255, level + drawn.randrange(-30, 30))) for _ in range(144)))


class StandAlone(ProgramTest):
    def photos(self, name):
        """A folder of images in three classes, and a run that was trained on it."""
        data = self.folder / name
        for label, level in (("ant", 40), ("bee", 120), ("cat", 210)):
            for i in range(12):
                write_pgm(data / label / f"{i}.pgm", level, f"{label}{i}")
        experiment = self.folder / f"{name}.yaml"
        experiment.write_text("model: {layers: [flatten, linear: {units: 8}, relu, linear: {units: 3}]}\n"
                              f"data: {{dataset: image_folder, path: {data}, test_fraction: 0.25, batch_size: 9}}\n"
                              "optimizer: {learning_rate: 0.1}\ntraining: {epochs: 4}\nbackend: cpu\n")
        done = self.gpunn("run", experiment, "--runs", name + "_runs", "--json", "--quiet")
        return data, Path(self.folder, json.loads(done.stdout.splitlines()[-1])["run"])

    def predictions(self, *arguments):
        return json.loads(self.gpunn("predict", *arguments, "--top", "3", "--json").stdout)

    def test_predictions_and_exports_need_no_data(self):
        data, run = self.photos("away")
        others = self.folder / "others"
        for i in range(3):
            write_pgm(others / "sub" / f"{i}.pgm", 60 * i, i)
        (others / "notes.txt").write_text("no image")
        before = self.predictions(run, others, others / "sub" / "*[12].pgm")
        self.assertEqual([Path(one["source"]).name for one in before], ["0.pgm", "1.pgm", "2.pgm", "1.pgm", "2.pgm"])
        self.assertEqual({one["name"] for one in before[0]["top"]}, {"ant", "bee", "cat"})
        exported = self.folder / "away.safetensors"
        self.gpunn("export", run, "--to", exported)
        content = exported.read_bytes()

        moved = self.folder / "elsewhere"
        data.rename(moved)
        self.assertEqual(self.predictions(run, others, others / "sub" / "*[12].pgm"), before)
        self.gpunn("export", run, "--to", exported)
        self.assertEqual(exported.read_bytes(), content)
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        model = json.loads(header["__metadata__"]["model"])
        image, label = model["fields"]
        self.assertEqual((label["role"], label["kind"], label["names"]), ("target", "class", ["ant", "bee", "cat"]))
        self.assertEqual((image["kind"], image["dtype"], image["shape"]), ("image", "u8", [1, 12, 12]))
        self.assertEqual(sum(part["rows"] for part in model["data"]["parts"].values()), 36)
        # Test rows are of the data, which is missing, or is where the user says that it is.
        self.assertIn("data.path", self.gpunn("predict", run, "--row", "0", code=3).stderr)
        self.gpunn("predict", run, "--row", "0", "--set", f"data.path={moved}")
        self.assertNotIn("note:", self.gpunn("eval", run, "--set", f"data.path={moved}").stderr)

        # A renamed class renames no prediction, and photos that are gone change none.
        moved.rename(data)
        (data / "ant").rename(data / "wasp")
        for photo in (data / "bee").glob("1*.pgm"):
            photo.unlink()
        self.assertEqual(self.predictions(run, others, others / "sub" / "*[12].pgm"), before)
        shutil.rmtree(data)
        data.mkdir()
        self.assertEqual(self.predictions(run, others, others / "sub" / "*[12].pgm"), before)

        self.assertIn("no file matches", self.gpunn("predict", run, "nothing/*.pgm", code=3).stderr)
        self.assertIn("has no images", self.gpunn("predict", run, data, code=3).stderr)
        (self.folder / "rows.csv").write_text("1,2\n")
        self.assertIn("not rows of a table", self.gpunn("predict", run, "rows.csv", code=2).stderr)

    def test_other_data_is_refused_or_told(self):
        data, run = self.photos("changed")
        rows = json.loads(self.gpunn("eval", run, "--json").stdout)["rows"]
        self.assertEqual(rows, 9)

        write_pgm(data / "cat" / "3.pgm", 210, "another")
        told = self.gpunn("eval", run)
        self.assertTrue("of other content now" in told.stderr or "rows are not those" not in told.stderr)
        for i in range(12):
            write_pgm(data / "cat" / f"{i}.pgm", 200, f"another {i}")
        self.assertIn("note: the test rows of 'image_folder' are not those of the time of training: 9 rows then, "
                      "9 rows of other content now", self.gpunn("eval", run).stderr)
        self.assertIn("are not those that the run began with", self.gpunn("resume", run, "--epochs", "5").stderr)
        write_pgm(data / "cat" / "new.pgm", 210, "new")
        self.assertIn("had 27 rows when the run began and has 28 rows now",
                      self.gpunn("resume", run, "--epochs", "6", "--set", "data.drop_last=true", code=2).stderr)
        (data / "cat" / "new.pgm").unlink()

        (data / "ant").rename(data / "wasp")
        for verb in ("eval", "resume"):
            refused = self.gpunn(verb, run, code=2).stderr
            self.assertIn("the classes differ: 'ant' is missing and 'wasp' is new, as if the one had been renamed",
                          refused)
        shutil.rmtree(data / "wasp")
        self.assertIn("the classes differ: missing: 'ant'", self.gpunn("eval", run, code=2).stderr)
        for name in ("ant", "dog", "emu"):
            write_pgm(data / name / "1.pgm", 10, name)
            write_pgm(data / name / "2.pgm", 10, name)
        self.assertIn("the classes differ: new: 'dog', 'emu'", self.gpunn("eval", run, code=2).stderr)
        refused = self.gpunn("eval", run, "--set", "data.image_size=[10, 12]", code=2).stderr
        self.assertIn("a sample is u8[1, 10, 12], the model takes u8[1, 12, 12]", refused)

    def test_rows_of_a_table_are_those_of_the_training_where_names_are_missing_or_there_twice(self):
        rows = [(x / 10, y / 10, "above" if x > y else "below") for x in range(20) for y in range(20) if x != y]
        lines = "".join(f"{x},{y},{side}\n" for x, y, side in rows)
        for name, header in (("nameless", ""), ("same", "x,x,side\n")):
            (self.folder / f"{name}.csv").write_text(header + lines)
            (self.folder / f"{name}.yaml").write_text(
                "model: {layers: [linear: {units: 2}]}\n"
                f"data: {{dataset: csv, path: {name}.csv, test_path: {name}.csv, header: {str(bool(header)).lower()}, "
                "batch_size: 19}\noptimizer: {learning_rate: 0.5}\ntraining: {epochs: 5}\nbackend: cpu\n")
            done = self.gpunn("run", f"{name}.yaml", "--runs", "table_runs", "--json", "--quiet")
            run = json.loads(done.stdout.splitlines()[-1])["run"]
            of_table = self.predictions(run, f"{name}.csv")
            of_rows = self.predictions(run, "--row", "0", "--row", str(len(rows) - 1))
            self.assertEqual(len(of_table), len(rows))
            self.assertEqual([of_table[0]["top"], of_table[-1]["top"]], [one["top"] for one in of_rows])

    def test_rows_of_a_table_are_predicted_by_the_names_of_its_columns(self):
        rows = [(x / 10, y / 10, "above" if x > y else "below") for x in range(20) for y in range(20) if x != y]
        table = self.folder / "plane.csv"
        table.write_text("x,y,side\n" + "".join(f"{x},{y},{side}\n" for x, y, side in rows))
        experiment = self.folder / "plane.yaml"
        experiment.write_text("model: {layers: [linear: {units: 2}]}\n"
                              "data: {dataset: csv, path: plane.csv, test_fraction: 0.25, batch_size: 19}\n"
                              "optimizer: {learning_rate: 0.5}\ntraining: {epochs: 5}\nbackend: cpu\n")
        done = self.gpunn("run", experiment, "--runs", "plane_runs", "--json", "--quiet")
        run = json.loads(done.stdout.splitlines()[-1])["run"]
        table.rename(self.folder / "gone.csv")

        some = rows[::40]
        (self.folder / "new.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y, _ in some))
        # The same in another order, with more columns and with labels.
        (self.folder / "turned.csv").write_text("side,id,y,x\n" + "".join(
            f"{side},7,{y},{x}\n" for x, y, side in some))
        found = self.predictions(run, "new.csv", "--set", "data.label_column=side")
        turned = self.predictions(run, "turned.csv", "--set", "data.label_column=side")
        self.assertEqual(len(found), len(some))
        self.assertEqual([one["top"] for one in found], [one["top"] for one in turned])
        self.assertEqual(found[0]["source"], "new.csv:2")
        self.assertEqual([one["label"] for one in found], [None] * len(some))
        self.assertEqual([one["label"] for one in turned], [0 if side == "above" else 1 for _, _, side in some])
        right = sum(one["top"][0]["name"] == side for one, (_, _, side) in zip(found, some))
        self.assertGreaterEqual(right, len(some) - 1)

        (self.folder / "wrong.csv").write_text("x,z\n1,2\n")
        self.assertIn("the model's columns 'y' are missing", self.gpunn("predict", run, "wrong.csv", code=1).stderr)
        (self.folder / "text.csv").write_text("x,y\n1,two\n")
        self.assertIn("text.csv:2: column 1: expected a number, found 'two'",
                      self.gpunn("predict", run, "text.csv", code=1).stderr)
        (self.folder / "twice.csv").write_text("x,y,x\n1,2,3\n")
        self.assertIn("the column 'x' is there 2 times; the model knows 1",
                      self.gpunn("predict", run, "twice.csv", code=1).stderr)
        image = self.folder / "some.pgm"
        write_pgm(image, 10, 1)
        self.assertIn("not images; give it a CSV file", self.gpunn("predict", run, image, code=2).stderr)
