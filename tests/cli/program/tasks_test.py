"""Regression, multi-label and super-resolution as a user meets them: what is trained, evaluated, reported and inspected."""

import csv
import json
import os
import re
import subprocess

from base import GPUNN, LIMIT, ProgramTest, SOURCE

DIABETES = SOURCE / "experiments" / "mlp_diabetes.yaml"
DIGITS = SOURCE / "experiments" / "lenet_two_digits.yaml"
ESPCN = SOURCE / "experiments" / "espcn_x3.yaml"
STYLE = SOURCE / "experiments" / "style_transfer.yaml"


class Tasks(ProgramTest):
    def train(self, experiment, *settings):
        more = [word for setting in settings for word in ("--set", setting)]
        done = self.gpunn("run", experiment, "--backend", "cpu", *more)
        return re.search(r"(?m)^run +(.+)$", done.stdout)[1], done.stdout + done.stderr

    def few_digits(self):
        return self.train(DIGITS, "training.epochs=1", "data.synthetic_train=256", "data.synthetic_test=64")

    def test_a_regression(self):
        run, text = self.train(DIABETES, "training.epochs=3")
        self.assertRegex(text, r"epoch 3/3 .*test loss [\d.]+  R² -?[\d.]+")
        rows = list(csv.DictReader((self.folder / run / "metrics.csv").read_text().splitlines()))
        self.assertEqual(len(rows), 3)
        evaluated = json.loads(self.gpunn("eval", f"{run}/last.h5", "--json").stdout)
        for metric in ("r2", "rmse", "mae"):
            self.assertAlmostEqual(float(rows[-1][f"test_{metric}"]), evaluated[metric], places=3)
        self.assertEqual([one["name"] for one in evaluated["outputs"]], ["progression"])
        self.assertNotIn("classes", evaluated)
        text = self.gpunn("eval", run).stdout
        self.assertRegex(text, r"(?m)^RMSE +\d")
        self.assertNotIn("PRECISION", text)
        page = (self.folder / self.gpunn("report", run).stdout.split()[1]).read_text()
        for title in ("Learning curves", "Each target column", "Predictions and targets", "Rows with the largest loss"):
            self.assertIn(title, page)
        for title in ("Class by class", "Confusion matrix", "Worst mistakes"):
            self.assertNotIn(title, page)

    def test_several_target_columns_have_a_line_each(self):
        run, _ = self.train(DIABETES, "training.epochs=2", "data.target_columns=[progression, bmi]",
                            "model.parameters.classes=2")
        text = self.gpunn("eval", run).stdout
        self.assertRegex(text, r"(?m)^TARGET COLUMN +R² +RMSE +MAE$")
        self.assertRegex(text, r"(?m)^1 bmi +-?[\d.]+ +[\d.]+ +[\d.]+$")

    def test_multi_label(self):
        run, text = self.few_digits()
        self.assertRegex(text, r"epoch 1/1 .*mAP [\d.]+ %")
        text = self.gpunn("eval", run).stdout
        self.assertRegex(text, r"(?m)^LABEL +ROWS +AP +PRECISION +RECALL +F1$")
        self.assertIn("exact match", text)
        evaluated = json.loads(self.gpunn("eval", run, "--json").stdout)
        self.assertEqual([one["name"] for one in evaluated["outputs"]], list("0123456789"))
        mean = sum(one["average_precision"] for one in evaluated["outputs"]) / 10
        self.assertAlmostEqual(mean, evaluated["map"], places=9)
        page = (self.folder / self.gpunn("report", run).stdout.split()[1]).read_text()
        self.assertIn("Each label", page)
        self.assertNotIn("Predictions and targets", page)

    def test_super_resolution(self):
        run, text = self.train(ESPCN, "training.epochs=2", "data.dataset=drawn_photographs", "data.patches=64",
                               "data.synthetic_train=4", "data.synthetic_test=2", "data.also_scaled=[]")
        self.assertRegex(text, r"epoch 2/2 .*PSNR [\d.]+")
        self.assertIn(f"gpunn upscale {run} IMAGE --to larger.png", text)
        text = self.gpunn("eval", run).stdout
        self.assertRegex(text, r"(?m)^IMAGE +PSNR +SSIM +BICUBIC PSNR +BICUBIC SSIM$")
        self.assertRegex(text, r"(?m)^1 drawn 1 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$")
        evaluated = json.loads(self.gpunn("eval", run, "--json").stdout)
        mean = sum(one["psnr"] for one in evaluated["outputs"]) / 2
        self.assertAlmostEqual(mean, evaluated["psnr"], places=9)
        self.assertGreater(evaluated["bicubic_psnr"], 15)
        page = (self.folder / self.gpunn("report", run).stdout.split()[1]).read_text()
        self.assertIn("<strong>bicubic</strong>", page)
        self.assertIn("Details", page)
        seen = json.loads(self.gpunn("data", "inspect", ESPCN, "--set", "data.dataset=drawn_photographs",
                                     "--json").stdout)
        self.assertEqual(seen["targets"], "image")
        self.assertIn("gpunn upscale RUN", self.gpunn("predict", run, "x.png", code=2).stderr)
        self.damaged_images_do_not_stop_the_others(run)
        image = "sheet.png"
        self.gpunn("data", "inspect", "digits", "--set", "data.synthetic_train=40", "--sheet", image, "--columns", 2)
        done = json.loads(self.gpunn("upscale", run, image, "--to", "larger.png", "--compare", "--tile", 64,
                                     "--overlap", 8, "--json").stdout)
        self.assertEqual(len(done), 1)
        self.assertGreater(done[0]["tiles"], 1)
        self.assertTrue((self.folder / "larger.png").exists())
        self.assertTrue((self.folder / "larger.compare.png").exists())
        self.gpunn("upscale", run, image, "--to", "larger.jpg", code=2)
        timed = json.loads(self.gpunn("bench", "infer", run, "--batch", 1, "--size", "60x40", "--json").stdout)
        self.assertGreater(timed["rows"][0]["calls"], 0)
        self.assertIn("found '60'", self.gpunn("bench", "infer", run, "--size", 60, code=2).stderr)
        self.frames_from_stdin(run)
        self.parts_bound_the_memory(run)

    def damaged_images_do_not_stop_the_others(self, run):
        folder = self.folder / "some"
        folder.mkdir(exist_ok=True)
        (folder / "a.pgm").write_bytes(b"P5 8 8 255\n" + bytes(range(64)))
        (folder / "b.pgm").write_bytes(b"P5 8 8 255\n" + bytes(range(40)))
        (folder / "c.pgm").write_bytes(b"P5 8 8 255\n" + bytes(range(64)))
        told = self.gpunn("upscale", run, folder, "--to", "some_larger", code=1).stderr
        self.assertIn("1 of 3 images is damaged", told)
        self.assertEqual(sorted(file.name for file in (self.folder / "some_larger").iterdir()), ["a.png", "c.png"])
        self.gpunn("upscale", run, folder, "--to", "some_larger", "--damaged", "repair")
        self.assertTrue((self.folder / "some_larger/b.png").exists())

    def frames_from_stdin(self, run):
        frame = bytes(range(4 * 6)) * 3
        done = self.with_stdin(frame * 2, "upscale", run, "--frames", "6x4", "--to", "-")
        self.assertEqual(len(done.stdout), 2 * 9 * len(frame))
        self.assertIn(b"2 frames of 18x12 pixels", done.stderr)
        y4m = b"YUV4MPEG2 W6 H4 F25:1 Cmono\nFRAME\n" + bytes(range(4 * 6))
        done = self.with_stdin(y4m, "upscale", run, "-", "--to", "larger.y4m", "--json")
        self.assertEqual(json.loads(done.stdout)["frames"], 1)
        self.assertTrue((self.folder / "larger.y4m").read_bytes().startswith(b"YUV4MPEG2 W18 H12 F25:1 Cmono\nFRAME\n"))
        for words, told in ((("-", "--to", "-", "--frames", "6by4"), "expected WIDTHxHEIGHT"),
                            (("-", "--to", "-", "--compare"), "not for a stream"),
                            (("larger.png", "--to", "l.png", "--frames", "6x4"), "leave out the images"),
                            (("--to", "l.png"), "nothing to enlarge")):
            self.assertIn(told, self.gpunn("upscale", run, *words, code=2).stderr)

    def with_stdin(self, stdin, *words):
        done = subprocess.run([GPUNN, *map(str, words)], cwd=self.folder, input=stdin, capture_output=True,
                              timeout=LIMIT, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def parts_bound_the_memory(self, run):
        """The activations of a part are all that a large image takes besides its own pixels."""
        side = 1200
        (self.folder / "large.pgm").write_bytes(b"P5 %d %d 255\n" % (side, side) + bytes(side * side))

        def peak(tile):
            words = [GPUNN, "upscale", run, "large.pgm", "--to", "l.png", "--tile", str(tile)]
            child = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(child.returncode, 0)
            return usage.ru_maxrss * 1024

        conv1 = 64 * side * side * 4  # bytes
        self.assertGreater(peak(0) - peak(256), conv1)

    def test_style_transfer(self):
        run, text = self.train(STYLE, "training.epochs=1", "data.dataset=drawn_photographs", "data.patches=16",
                               "data.synthetic_train=4", "data.synthetic_test=2", "data.patch_size=32",
                               "model.parameters.width=4", "model.parameters.depth=1")
        self.assertRegex(text, r"epoch 1/1 .*test loss [\d.]+")
        self.assertIn(f"gpunn stylize {run} IMAGE --to painted.png", text)
        self.assertNotIn("gpunn predict", text)
        evaluated = json.loads(self.gpunn("eval", run, "--json").stdout)
        self.assertGreater(evaluated["loss"], 0)
        page = (self.folder / self.gpunn("report", run).stdout.split()[1]).read_text()
        self.assertIn("<strong>painted</strong>", page)
        self.assertNotIn("bicubic", page)
        self.gpunn("data", "inspect", "digits", "--set", "data.synthetic_train=40", "--sheet", "sheet.png",
                   "--columns", 2)
        done = json.loads(self.gpunn("stylize", run, "sheet.png", "--to", "painted.png", "--size", 50,
                                     "--json").stdout)
        self.assertEqual([max(one["width"], one["height"]) for one in done], [50])
        self.assertTrue((self.folder / "painted.png").exists())
        told = self.gpunn("stylize", run, "sheet.png", "--to", "p.png", "--content", "sheet.png", code=2).stderr
        self.assertIn("leave out --content", told)
        self.assertIn("expected --content and --style", self.gpunn("stylize", "--to", "p.png", code=2).stderr)
        self.assertIn("of the task style_transfer", self.gpunn("upscale", run, "sheet.png", "--to", "p.png",
                                                               code=2).stderr)

    def test_targets_are_inspected(self):
        seen = json.loads(self.gpunn("data", "inspect", DIABETES, "--json").stdout)
        self.assertEqual(seen["targets"], "numbers")
        self.assertEqual(seen["train"]["targets"][0]["max"], 346)
        self.assertRegex(self.gpunn("data", "inspect", DIABETES).stdout, r"(?m)^progression +25 +346 ")
        table = self.folder / "tags.csv"
        table.write_text("x,tags\n1,cat|dog\n2,dog\n3,\n")
        text = self.gpunn("data", "inspect", table, "--set", "task=multi_label").stdout
        self.assertRegex(text, r"(?m)^ *1 +dog +2 ")

    def test_what_does_not_fit_is_told_before_the_training(self):
        for verb in ("run", "summary", "plan"):
            done = self.gpunn(verb, DIGITS, "--set", "task=classification", code=2)
            for part in ("has any of 10 labels", "task classification", "loss cross_entropy", "'output'"):
                self.assertIn(part, done.stderr)
        done = self.gpunn("run", DIABETES, "--set", "model.parameters.classes=4", code=2)
        self.assertIn("the task regression with the loss mean_squared_error", done.stderr)
        self.assertIn("model's last layer 'output' gives f32[32, 4]", done.stderr)
        (self.folder / "a.pgm").write_bytes(b"P5 32 32 255\n" + bytes(32 * 32))
        (self.folder / "boxes.csv").write_text("filename,class,xmin,ymin,xmax,ymax\na.pgm,dot,4,4,20,20\n")
        data = "{dataset: detection_folder, format: csv, path: ., images: ., boxes: boxes.csv, image_size: 32, batch_size: 1}"
        error = self.gpunn("run", SOURCE / "experiments" / "fcos_voc.yaml", "--backend", "cpu", "--set", f"data={data}",
                           "--set", "init_from=null", code=2).stderr
        self.assertIn("say with data.test_path where they are, or with data.test_boxes which", error)
        self.assertNotIn("test_fraction", error)
        broken = self.folder / "broken.csv"
        broken.write_text("x,y\n1,2\n3,nan\n")
        done = self.gpunn("data", "inspect", broken, "--set", "task=regression", code=1)
        self.assertIn("broken.csv:3: column 'y': expected a finite number, found 'nan'", done.stderr)

    def test_a_share_that_takes_no_row_is_told_as_such(self):
        (self.folder / "few.csv").write_text("x,y,side\n1,2,a\n2,1,b\n")
        (self.folder / "few.yaml").write_text(
            "model: {layers: [linear: {units: 2}]}\n"
            "data: {dataset: csv, path: few.csv, test_fraction: 0.2, batch_size: 1}\nbackend: cpu\n")
        self.assertIn("data.test_fraction is 0.2, which takes none of the 2 samples of ",
                      self.gpunn("run", "few.yaml", "--runs", "few_runs", code=2).stderr)
        self.assertIn("data.validation_fraction is 0.1, which takes none of the 2 samples of ",
                      self.gpunn("run", "few.yaml", "--runs", "few_runs", "--set", "data.test_fraction=0",
                                 "--set", "data.validation_fraction=0.1", code=2).stderr)

    def test_help_knows_the_keys(self):
        text = self.gpunn("help", "keys").stdout
        for key in ("data.target_columns", "data.label_separator", "data.scale_targets", "data.targets"):
            self.assertIn(key, text)
