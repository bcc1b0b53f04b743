"""`gpunn explain` as users call it: pictures, what is printed, and what can't be explained."""

import json
import struct

from base import ProgramTest


def png_size(file):
    head = file.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


class ExplainTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        self = cls()
        self.gpunn(*self.digits("--epochs", "1", "--quiet", "--set", f"runs={cls.folder / 'runs'}"))
        cls.run_folder = next((cls.folder / "runs" / "lenet_digits").glob("2*"))
        images = cls.folder / "images"
        images.mkdir()
        for name, step in (("one", 3), ("two", 7)):
            pixels = bytes(i * step % 256 for i in range(28 * 28))
            (images / f"{name}.pgm").write_bytes(b"P5 28 28 255\n" + pixels)

    def test_the_predicted_class_is_explained(self):
        image = self.folder / "images" / "one.pgm"
        text = self.gpunn("explain", self.run_folder, image, "--overlay", "new/why.png").stdout
        self.assertRegex(text, r"one\.pgm\n +[\d.]+ %  \d, by the layer \S+\n  new/why\.png\n")
        self.assertEqual(png_size(self.folder / "new" / "why.png"), (224, 224))
        predicted = json.loads(self.gpunn("predict", self.run_folder, image, "--json").stdout)[0]["top"][0]
        found = json.loads(self.gpunn("explain", self.run_folder, image, "--heatmap", "map.png", "--json").stdout)
        self.assertEqual(found, [{"source": str(image), "class": predicted["class"], "name": predicted["name"],
                                  "score": found[0]["score"], "layer": found[0]["layer"], "heatmap": "map.png"}])
        self.assertAlmostEqual(found[0]["score"], predicted["probability"], places=6)

    def test_folders_layers_classes_and_methods(self):
        found = json.loads(self.gpunn("explain", self.run_folder, "images", "--class", "3", "--layer", "conv1",
                                      "--method", "gradcam++", "--overlay", "overlays", "--heatmap", "maps",
                                      "--json").stdout)
        self.assertEqual([(one["class"], one["layer"]) for one in found], [(3, "conv1")] * 2)
        files = {str(file.relative_to(self.folder)) for file in self.folder.glob("*/*.png")}
        self.assertLessEqual({"overlays/one.png", "overlays/two.png", "maps/one.png", "maps/two.png"}, files)
        plain = self.gpunn("explain", self.run_folder, "images", "--class", "3", "--layer", "conv1", "--heatmap",
                           "plain")
        self.assertIn("conv1", plain.stdout)
        self.assertNotEqual((self.folder / "plain" / "one.png").read_bytes(),
                            (self.folder / "maps" / "one.png").read_bytes())

    def test_what_can_not_be_explained(self):
        image = "images/one.pgm"

        def told(*arguments, code=2):
            return self.gpunn("explain", self.run_folder, *arguments, code=code).stderr

        self.assertIn("needs a file to write", told(image))
        unknown = told(image, "--overlay", "o.png", "--layer", "conv9")
        self.assertRegex(unknown, "no layer 'conv9'; layers with rows and columns: conv1, .*; did you mean 'conv")
        self.assertIn("no class 10; classes count from 0 to 9: 0, 1", told(image, "--overlay", "o.png", "--class", 10))
        self.assertIn("did you mean", told(image, "--overlay", "o.png", "--method", "grad_cam"))
        self.assertIn("ends in .png", told(image, "--overlay", "o.jpg"))
        self.assertIn("would be written twice", told(image, image, "--overlay", "o"))
        told("nothing.png", "--overlay", "o.png", code=3)
        (self.folder / "broken.png").write_bytes(b"no picture")
        self.assertIn("broken.png", told("broken.png", "--overlay", "o.png", code=1))
        self.assertFalse((self.folder / "o.png").exists())
