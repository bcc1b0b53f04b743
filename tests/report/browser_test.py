"""Reports and a race's chart in a headless Chromium: `browser_test.py GPUNN SOURCE_FOLDER [SCREENSHOT_FOLDER]`.

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
      width: shown(one).width, height: shown(one).height, title: one.querySelector('title').textContent,
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

# What a reader could not read: texts with too little contrast to what is behind them, and what lies beside the page,
# with everything unfolded. What scrolls in a box of its own may be wider.
AUDIT = r"""(() => {
  document.querySelectorAll('details').forEach((one) => { one.open = true; });
  const channels = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
  };
  const over = (front, back) => front.rgb.map((one, i) => front.alpha * one + (1 - front.alpha) * back[i]);
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      layers.push(channels(getComputedStyle(one).backgroundColor));
      if (layers.at(-1).alpha === 1) break;
    }
    return layers.reverse().reduce((ground, layer) => over(layer, ground), [255, 255, 255]);
  };
  const luminance = (rgb) => {
    const linear = rgb.map((one) => one / 255).map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const pale = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, shown = element.getBoundingClientRect();
    if (!texts.currentNode.data.trim() || shown.width === 0 || shown.height === 0) continue;
    const style = getComputedStyle(element), ground = behind(element);
    const ink = over(channels(element.closest('svg') ? style.fill : style.color), ground);
    const [low, high] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    ++count;
    if (contrast < 4.5) pale.push({text: texts.currentNode.data.trim(), contrast, ink, ground});
  }
  const width = document.documentElement.clientWidth;  // innerWidth grows with the page on a phone
  const beside = [...document.querySelectorAll('body *')].filter((one) => {
    const shown = one.getBoundingClientRect();
    return (shown.right > width + 0.5 || shown.left < -0.5) && !one.parentElement.closest('.scroll, pre, svg');
  }).map((one) => one.outerHTML.slice(0, 100));
  const cut = [...document.querySelectorAll('.scroll, pre')].filter(
      (one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).overflowX !== 'auto').length;
  return {pale, beside, cut, count, pageWidth: document.scrollingElement.scrollWidth};
})()"""

# A chart that is a document of its own: its ground, its texts and its lines, axes and grid left out.
CHART = r"""(() => ({
  ground: getComputedStyle(document.querySelector('rect')).fill,
  texts: [...document.querySelectorAll('text')].map((one) => getComputedStyle(one).fill),
  lines: [...document.querySelectorAll('path')].map((one) => getComputedStyle(one).stroke),
}))()"""

VIEWS = (("desktop", 1280, 900, "light"), ("phone", 390, 844, "light"),
         ("desktop-dark", 1280, 900, "dark"), ("phone-dark", 390, 844, "dark"))


def percent(share):
    return f"{100 * share:.2f}\u00a0%"


def check_readable(seen, width, where):
    check(seen["count"] > 40, f"{where}: {seen['count']} texts")
    check(not seen["pale"], f"{where}: too little contrast: {seen['pale'][:5]}")
    check(not seen["beside"] and seen["pageWidth"] <= width,
          f"{where}: {seen['pageWidth']} wide in {width} pixels: {seen['beside'][:5]}")
    check(seen["cut"] == 0, f"{where}: {seen['cut']} tables are cut off")


def check_page(seen, expected, where):
    check(not seen["outside"], f"{where}: the page asks for {seen['outside']}")
    check(seen["pageWidth"] <= seen["viewport"], f"{where}: {seen['pageWidth']} wide in {seen['viewport']} pixels")
    check(seen["headings"] == ["Learning curves", "Class by class", "Confusion matrix", "Worst mistakes",
                               "Filters of the first convolution", "Experiment"], f"{where}: {seen['headings']}")

    check(len(seen["images"]) == 2 * 24 + 1,
          f"{where}: {len(seen['images'])} images, expected 24 mistakes with their maps, and the filters")
    for one in seen["images"]:
        check(one["complete"] and one["width"] > 0 and one["shown"] > 20 and one["alt"], f"{where}: the image {one}")
        check(0.98 < one["stretched"] < 1.02, f"{where}: the image {one} is out of shape")
    check(len(seen["charts"]) == 3, f"{where}: {len(seen['charts'])} charts")
    for one in seen["charts"]:
        check(one["width"] > 280 and one["height"] > 180 and one["text"] >= 9,
              f"{where}: the chart {one} is too small to read")
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


def check_chart(seen, colours, where):
    check((luminance(seen["ground"]) < 0.5) == (colours == "dark"), f"{where}: the ground is {seen['ground']}")
    check(len(seen["texts"]) > 10 and len(seen["lines"]) == 2, f"{where}: {seen}")
    for text in seen["texts"]:
        check(contrast(text, seen["ground"]) >= 4.5, f"{where}: a text {text} on {seen['ground']}")
    for line in seen["lines"]:
        check(contrast(line, seen["ground"]) >= 3, f"{where}: a line {line} on {seen['ground']}")


def report_of_long_names(folder, run_gpunn):
    """Of classes whose names no screen has room for, with all of the matrix in use and no more than five classes."""
    for name, grey in (("a_name_of_a_class_that_goes_on_without_a_space_for_longer_than_a_phone_is_wide", 40),
                       ("a second one with spaces that is about as long as the first and so must wrap", 50), ("c", 60)):
        for i in range(12):
            file = Path(folder, "photos", name, f"{i}.ppm")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"P6 40 30 255\n" + bytes((grey + 7 * i + j) % 256 for j in range(40 * 30 * 3)))
    experiment = Path(folder, "an_experiment_whose_name_is_longer_than_the_screen_of_a_phone_is_wide.yaml")
    experiment.write_text("model: {layers: [flatten, linear: {units: 3}]}\n"
                          "data: {dataset: image_folder, path: photos, test_fraction: 0.5, batch_size: 4}\n")
    out = run_gpunn("run", experiment, "--backend", "cpu", "--epochs", "1", "--runs", "runs", "--report")
    return Path(folder, re.search(r"(?m)^run +(.+)$", out).group(1), "report.html")


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
        hard = report_of_long_names(folder, run_gpunn)
        run_gpunn("race", source / "experiments" / "perceptron_points.yaml", "--backend", "cpu", "--epochs", "2",
                  "--runs", "race", "--chart", "race.svg")
        opened = Browser(browser, Path(folder, "profile"))
        try:
            for name, width, height, colours in VIEWS:
                seen, said = opened.open(page.as_uri(), width, height, colours, LOOK)
                if shots:
                    opened.screenshot(Path(shots, name + ".png"))
                check(not said, f"{name}: the console says {said}")
                check_page(seen, expected, name)
                check((luminance(seen["ground"]) < 0.5) == (colours == "dark"), f"{name}: the ground is {seen['ground']}")
                for place, file in ((name, page), (name + ", long names", hard)):
                    readable, said = opened.open(file.as_uri(), width, height, colours, AUDIT)
                    check(not said, f"{place}: the console says {said}")
                    check_readable(readable, width, place)
                if shots:
                    opened.screenshot(Path(shots, name + "-names.png"))

                chart, _ = opened.open(Path(folder, "race.svg").as_uri(), width, height, colours, CHART)
                check_chart(chart, colours, name + ", chart of a race")
                if shots:
                    opened.screenshot(Path(shots, name + "-race.png"))
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
