"""The terminal of docs/pictures shows what a terminal shows: `terminal_test.py SOURCE_FOLDER`."""

import re
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "docs" / "pictures"))
import terminal  # noqa: E402


def screen_of(text, columns=20):
    screen = terminal.Screen(columns)
    screen.feed(text)
    return screen


def styles_of(screen, row=0):
    return [(text, style) for _, text, style in terminal.spans_of(screen.lines[row])]


class Terminal(unittest.TestCase):
    def test_lines_are_written_over_and_erased(self):
        self.assertEqual(screen_of("epoch 1\rEP").text(), "EPoch 1")
        self.assertEqual(screen_of("epoch 1\r\x1b[2Kdone\r\n").text(), "done")
        self.assertEqual(screen_of("epoch 1\rab\x1b[K").text(), "ab")
        self.assertEqual(screen_of("abcdef\r\x1b[1KX").text(), "Xbcdef")
        self.assertEqual(screen_of("one\r\ntwo\x1b[A\r\x1b[Jx").text(), "x")
        self.assertEqual(screen_of("12345678", columns=5).text(), "12345\n678")
        self.assertEqual(screen_of("a\tb").text(), "a       b")

    def test_colours_hold_until_they_are_reset(self):
        screen = screen_of("a \x1b[1mbold\x1b[0m \x1b[32mgreen\x1b[39m\x1b[2mdim\x1b[0m")
        self.assertEqual(styles_of(screen), [("a", terminal.PLAIN), ("bold", terminal.Style(bold=True)),
                                             ("green", terminal.Style(colour=32)), ("dim", terminal.Style(dim=True))])

    def test_what_it_does_not_know_is_an_error(self):
        for sequence in ("\x1b[5m", "\x1b[2J", "\x1b]0;title\x07", "\x07"):
            with self.subTest(sequence=sequence), self.assertRaisesRegex(ValueError, "does not know"):
                screen_of(sequence)

    def test_a_program_sees_a_terminal(self):
        script = "import os, sys; print(os.isatty(2), os.get_terminal_size(2)[0]); sys.exit(3)"
        screen, status = terminal.run([sys.executable, "-c", script], 47)
        self.assertEqual((screen.text(), status), ("True 47", 3))
        with self.assertRaises(TimeoutError):
            terminal.run([sys.executable, "-c", "import time; time.sleep(60)"], 80, limit=0.5)

    def test_the_drawing_is_svg_with_the_text_in_its_columns(self):
        screen = screen_of("a < b\r\n   \x1b[31mred\x1b[0m & so on", columns=40)
        root = xml.fromstring(terminal.svg(screen, "gpunn run x.yaml", "a machine"))
        texts = {one.text: one for one in root.iter("{http://www.w3.org/2000/svg}text")}
        self.assertEqual(list(texts), ["a machine", "$", "gpunn run x.yaml", "a < b", "red", "& so on"])
        self.assertAlmostEqual(float(texts["red"].get("x")) - float(texts["a < b"].get("x")), 3 * terminal.CELL_WIDTH,
                               places=1)
        self.assertAlmostEqual(float(texts["red"].get("textLength")), 3 * terminal.CELL_WIDTH, places=1)
        self.assertEqual(texts["red"].get("fill"), terminal.COLOURS[31])

    def test_another_drawing_stands_below(self):
        other = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100" viewBox="0 0 200 100"><rect/></svg>'
        alone = terminal.svg(screen_of("a row of text"), "gpunn", "")
        both = terminal.svg(screen_of("a row of text"), "gpunn", "", other)
        inner = xml.fromstring(both).find("{http://www.w3.org/2000/svg}svg")
        self.assertAlmostEqual(float(inner.get("width")) / float(inner.get("height")), 2, places=1)
        heights = [float(re.search(r'height="(\d+)"', one)[1]) for one in (alone, both)]
        self.assertGreaterEqual(heights[1], heights[0] + float(inner.get("height")))


if __name__ == "__main__":
    unittest.main()
