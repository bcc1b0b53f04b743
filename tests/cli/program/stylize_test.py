"""`gpunn stylize` as users call it: a picture, previews, what is printed, and what can't be painted."""

import json
import struct

from base import ProgramTest


def png_size(file):
    head = file.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


class StylizeTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, step in (("content", 3), ("style", 11)):
            pixels = bytes((i * step + i // 90) % 256 for i in range(3 * 60 * 40))
            (cls.folder / f"{name}.ppm").write_bytes(b"P6 60 40 255\n" + pixels)

    def stylize(self, *more, features="drawn", code=0):
        return self.gpunn("stylize", "--content", "content.ppm", "--style", "style.ppm", "--features", features,
                          "--size", 48, "--backend", "cpu", *more, code=code)

    def test_a_picture_is_painted(self):
        done = self.stylize("--to", "painted.png", "--steps", 6, "--preview-every", 4)
        self.assertRegex(done.stdout, r"(?m)^painted\.png  48x32 pixels, 6 steps in .*; loss [\d.e+-]+, at first ")
        self.assertRegex(done.stderr, r"(?m)^step 6 of 6  loss [\d.e+-]+  content [\d.e+-]+  style ")
        self.assertEqual(png_size(self.folder / "painted.png"), (48, 32))
        self.assertTrue((self.folder / "painted.step4.png").exists())
        self.assertFalse((self.folder / "painted.step6.png").exists())

    def test_json(self):
        done = json.loads(self.stylize("--to", "again.png", "--steps", 5, "--optimizer", "adam", "--original-colours",
                                       "--from-noise", "--json").stdout)
        self.assertEqual((done["height"], done["width"], done["steps"]), (32, 48, 5))
        self.assertEqual(len(done["history"]), 5)
        self.assertAlmostEqual(done["history"][0], done["first"]["total"], places=6)
        self.assertLess(done["last"]["total"], done["first"]["total"])

    def test_what_can_not_be_painted(self):
        def told(*more, features="drawn", code=2):
            return self.stylize(*more, features=features, code=code).stderr

        self.assertIn(".png", told("--to", "painted.jpg"))
        painted = self.folder / "painted_before.png"
        self.stylize("--to", painted.name, "--steps", 1)
        before = painted.read_bytes()
        refused = self.gpunn("stylize", "--content", painted.name, "--style", "style.ppm", "--features", "drawn",
                             "--to", painted.name, code=2)
        self.assertIn("would replace painted_before.png, which is read", refused.stderr)
        self.assertEqual(painted.read_bytes(), before)
        self.assertIn("no layer 'relu9'", told("--to", "p.png", "--style-layer", "relu9"))
        self.assertIn("vgg19", told("--to", "p.png", features="vgg99"))
        self.assertIn("takes no file", told("--to", "p.png", "--weights", "w.safetensors"))
