"""A report in a headless Chromium: `browser_test.py GPUNN SOURCE_FOLDER [SCREENSHOT_FOLDER]`.

Exit code 77, skipped, where no browser is found.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browser import LIMIT, Browser, browser_or_skip, check, contrast, luminance  # noqa: E402

# What a reader of the page would see, as data.
LOOK = r"""(() => {
  const text = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent.trim());
  const rows = (id) => [...document.querySelectorAll(`#${id} tbody tr`)].map(
      (row) => [...row.children].map((cell) => cell.textContent.trim()));
  const shown = (element) => element.getBoundingClientRect();
  return {
    title: document.title,
    images: [...document.images].map((one) => ({
      complete: one.complete, width: one.naturalWidth, shown: shown(one).width, alt: one.alt,
      stretched: shown(one).width * one.naturalHeight / (shown(one).height * one.naturalWidth)})),
    charts: [...document.querySelectorAll('svg')].map((one) => ({
      width: shown(one).width, title: one.querySelector('title').textContent,
      text: Math.min(...[...one.querySelectorAll('text')].map((label) => shown(label).height)),
      ink: getComputedStyle(one.querySelector('text')).fill,
      lines: [...one.querySelectorAll('path')].map((line) => getComputedStyle(line).stroke)})),
    accuracy: text('#accuracy')[0], loss: text('#loss')[0], rows: text('#rows')[0],
    classes: rows('classes'), confusion: rows('confusion'), epochs: rows('epochs'),
    mistakes: text('#mistakes figcaption'),
    headings: text('h2'),
    ground: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    pageWidth: document.documentElement.scrollWidth, viewport: document.documentElement.clientWidth,
    outside: performance.getEntriesByType('resource').map((one) => one.name).filter((name) => !name.startsWith('data:')),
  };
})()"""


def percent(share):
    return f"{100 * share:.2f}\u00a0%"


def check_page(seen, said, expected, where):
    check(not said, f"{where}: the console says {said}")
    check(not seen["outside"], f"{where}: the page asks for {seen['outside']}")
    check(seen["pageWidth"] <= seen["viewport"], f"{where}: {seen['pageWidth']} wide in {seen['viewport']} pixels")
    check(seen["headings"] == ["Learning curves", "Class by class", "Confusion matrix", "Worst mistakes",
                               "Filters of the first convolution", "Experiment"], f"{where}: {seen['headings']}")

    check(len(seen["images"]) == 24 + 1, f"{where}: {len(seen['images'])} images, expected 24 mistakes and the filters")
    for one in seen["images"]:
        check(one["complete"] and one["width"] > 0 and one["shown"] > 20 and one["alt"], f"{where}: the image {one}")
        check(0.98 < one["stretched"] < 1.02, f"{where}: the image {one} is out of shape")
    check(len(seen["charts"]) == 3, f"{where}: {len(seen['charts'])} charts")
    for one in seen["charts"]:
        check(one["width"] > 280 and one["text"] >= 9, f"{where}: the chart {one} is too small to read")
        check(contrast(one["ink"], seen["ground"]) >= 4.5, f"{where}: the text of {one} on {seen['ground']}")
        for line in one["lines"]:
            check(contrast(line, seen["ground"]) >= 3, f"{where}: a line {line} on {seen['ground']}")
    check(contrast(seen["ink"], seen["ground"]) >= 7, f"{where}: {seen['ink']} on {seen['ground']}")

    check(seen["accuracy"] == percent(expected["accuracy"]), f"{where}: accuracy {seen['accuracy']}")
    check(seen["loss"] == f"{expected['loss']:.4f}", f"{where}: loss {seen['loss']}")
    check(seen["classes"] == [[one["name"], str(one["rows"]), percent(one["precision"]), percent(one["recall"]),
                               percent(one["f1"])] for one in expected["classes"]], f"{where}: {seen['classes']}")
    check(seen["confusion"] == [[one["name"], *map(str, row)]
                                for one, row in zip(expected["classes"], expected["confusion"])],
          f"{where}: {seen['confusion']}")
    check(len(seen["epochs"]) == 2, f"{where}: {seen['epochs']}")
    check(len(seen["mistakes"]) == 24, f"{where}: {seen['mistakes']}")


def main(gpunn, source, browser, shots):
    with tempfile.TemporaryDirectory(prefix="gpunn-report-", ignore_cleanup_errors=True) as folder:
        def run_gpunn(*arguments):
            done = subprocess.run([gpunn, *map(str, arguments)], cwd=folder, capture_output=True, text=True,
                                  timeout=LIMIT)
            check(done.returncode == 0, f"gpunn {arguments}: {done.stdout}{done.stderr}")
            return done.stdout

        out = run_gpunn("run", source / "experiments" / "lenet_digits.yaml", "--backend", "cpu", "--epochs", "2", "--set",
                        "data.synthetic_train=640", "--set", "data.synthetic_test=300", "--runs", "runs", "--report")
        run = Path(folder, re.search(r"(?m)^run +(.+)$", out).group(1))
        page = run / "report.html"
        check(page.name in out and page.exists(), f"run --report says where its report is: {out}")
        expected = json.loads(run_gpunn("eval", run, "--json", "--confusion"))
        opened = Browser(browser, Path(folder, "profile"))
        try:
            grounds = set()
            for name, width, height, colours in (("desktop", 1280, 900, "light"), ("phone", 390, 844, "light"),
                                                 ("desktop-dark", 1280, 900, "dark"), ("phone-dark", 390, 844, "dark")):
                seen, said = opened.open(page.as_uri(), width, height, colours, LOOK)
                if shots:
                    opened.screenshot(Path(shots, name + ".png"))
                check_page(seen, said, expected, name)
                grounds.add(seen["ground"])
                check((luminance(seen["ground"]) < 0.5) == (colours == "dark"), f"{name}: the ground is {seen['ground']}")
        finally:
            opened.close()
        # Behind a mistake stands a row that `predict` is wrong about in the same way.
        row = int(re.search(r"test row (\d+)", seen["mistakes"][0]).group(1))
        prediction = json.loads(run_gpunn("predict", run, "--row", row, "--top", "1", "--json"))[0]
        said = re.match(r"(\d+), taken for (\d+) with ([\d.]+)", seen["mistakes"][0])
        check(said and int(said[1]) == prediction["label"] and int(said[2]) == prediction["top"][0]["class"]
              and said[1] != said[2], f"row {row} is {prediction}, the page says {seen['mistakes'][0]}")
        check(abs(float(said[3]) - 100 * prediction["top"][0]["probability"]) < 0.02, f"{prediction}: {said[3]} %")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve(), browser_or_skip(),
         sys.argv[3] if len(sys.argv) > 3 else None)
