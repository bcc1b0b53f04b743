"""The pictures of the README in a headless Chromium: `pictures_test.py GPUNN SOURCE_FOLDER [SCREENSHOT_FOLDER]`.

Looks at those in the repository, and at those that docs/pictures/make.py makes of a short run now. Exit code 77, skipped,
where no browser is found.
"""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browser import LIMIT, Browser, browser_or_skip, check, contrast  # noqa: E402

DRAWINGS = {"run.svg", "race.svg"}
PHOTOGRAPHS = {"report", "mistakes"}  # each in light and in dark
COLOURS = ("light", "dark")
PICTURES = DRAWINGS | {f"{one}-{colours}.png" for one in PHOTOGRAPHS for colours in COLOURS}
LARGEST = 150_000  # bytes
SCREENS = (("desktop", 1280, 900), ("phone", 390, 844))
IMAGE = re.compile(r"<picture>.*?</picture>|<img\b[^>]*>|!\[[^]]*\]\([^)]*\)", re.DOTALL)
MARKDOWN_IMAGE = re.compile(r"!\[([^]]*)\]\(([^)]*)\)")

# A page as a hosting site shows a README: as wide as the window allows, images no wider than the page.
PAGE = """<!DOCTYPE html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><base href="{base}/">
<style>body {{ margin: 0 auto; padding: 16px; max-width: 980px; background: #ffffff; color: #1f2328 }}
img {{ max-width: 100%; height: auto }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1117; color: #e6edf3 }} }}</style>{body}"""

LOOK_AT_IMAGES = r"""(() => ({
  images: [...document.images].map((one) => ({
    source: one.currentSrc.split('/').pop(), complete: one.complete, natural: one.naturalWidth, alt: one.alt,
    width: one.getBoundingClientRect().width, height: one.getBoundingClientRect().height,
    stretched: one.getBoundingClientRect().width * one.naturalHeight /
               (one.getBoundingClientRect().height * one.naturalWidth)})),
  pageWidth: document.documentElement.scrollWidth, viewport: document.documentElement.clientWidth}))()"""

# Of each text of a drawing: its box, its colour, and the colour of the last filled shape below its middle.
LOOK_AT_DRAWING = r"""(() => {
  const box = (one) => { const r = one.getBoundingClientRect();
                         return {left: r.left, top: r.top, right: r.right, bottom: r.bottom}; };
  const svg = document.querySelector('svg');
  const shapes = [...svg.querySelectorAll('rect, path')].filter((one) => getComputedStyle(one).fill !== 'none');
  return {
    drawing: box(svg), title: svg.querySelector('title')?.textContent,
    texts: [...svg.querySelectorAll('text')].map((one) => {
      const place = box(one), x = (place.left + place.right) / 2, y = (place.top + place.bottom) / 2;
      const below = shapes.filter((shape) => {
        const r = box(shape);
        return r.left <= x && x <= r.right && r.top <= y && y <= r.bottom &&
               shape.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING; });
      return {text: one.textContent, place, height: place.bottom - place.top, ink: getComputedStyle(one).fill,
              ground: below.length ? getComputedStyle(below[below.length - 1]).fill : null}; })};
})()"""

# Mean brightness of a photograph, from 0 to 1, and how many brightnesses there are.
LOOK_AT_PIXELS = r"""(async () => {
  const image = document.images[0];
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const counts = new Map();
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) {
    const level = Math.round((data[i] + data[i + 1] + data[i + 2]) / 3);
    sum += level; counts.set(level, (counts.get(level) || 0) + 1);
  }
  const pixels = data.length / 4;
  return {mean: sum / pixels / 255, levels: counts.size, commonest: Math.max(...counts.values()) / pixels};
})()"""


class Gallery:
    """Opens HTML in the browser and keeps what it saw as a screenshot, if a folder for them is given."""

    def __init__(self, browser, folder, shots):
        self.browser, self.page, self.shots = browser, Path(folder, "page.html"), shots

    def see(self, name, html, width, height, colours, look):
        self.page.write_text(html, encoding="utf-8")
        seen, said = self.browser.open(self.page.as_uri(), width, height, colours, look)
        if self.shots:
            self.browser.screenshot(Path(self.shots, name + ".png"))
        check(not said, f"{name}: the console says {said}")
        return seen


def images_of(readme):
    """The images of a page of Markdown, as HTML."""
    found = [MARKDOWN_IMAGE.sub(r'<img src="\2" alt="\1">', one) for one in IMAGE.findall(readme)]
    return "\n".join(f"<p>{one}</p>" for one in found)


def check_readme(gallery, source):
    html = images_of((source / "README.md").read_text(encoding="utf-8"))
    named = set(re.findall(r'docs/pictures/([^"]+)"', html))
    check(named == PICTURES, f"the README shows {named}, expected {PICTURES}")
    for size, width, height in SCREENS:
        for colours in COLOURS:
            name = f"readme-{size}-{colours}"
            seen = gallery.see(name, PAGE.format(base=source.as_uri(), body=html), width, height, colours,
                               LOOK_AT_IMAGES)
            check(seen["pageWidth"] <= seen["viewport"], f"{name}: {seen['pageWidth']} wide in {seen['viewport']} pixels")
            check({one["source"] for one in seen["images"]} == DRAWINGS | {f"{one}-{colours}.png" for one in PHOTOGRAPHS},
                  f"{name}: shows {[one['source'] for one in seen['images']]}")
            for one in seen["images"]:
                check(one["complete"] and one["natural"] > 0 and one["width"] > 150 and one["height"] > 100,
                      f"{name}: {one} is not shown")
                check(0.98 < one["stretched"] < 1.02, f"{name}: {one} is out of shape")
                check(len(one["alt"]) > 30, f"{name}: {one} is not described")


def check_drawing(gallery, file):
    text = file.read_text(encoding="utf-8")
    check(len(text.encode()) <= LARGEST, f"{file.name} has {len(text.encode())} bytes")
    outside = [one for one in re.findall(r"https?://[^\"'\s]+", text) if one != "http://www.w3.org/2000/svg"]
    check(not outside, f"{file.name} asks for {outside}")
    body = f'<body style="margin:0">{text}'
    for colours in COLOURS:
        seen = gallery.see(f"{file.stem}-{colours}", PAGE.format(base=file.parent.as_uri(), body=body), 1280, 900,
                           colours, LOOK_AT_DRAWING)
        drawing = seen["drawing"]
        check(seen["title"], f"{file.name} has no title")
        check(len(seen["texts"]) >= 10, f"{file.name} has {len(seen['texts'])} texts")
        for one in seen["texts"]:
            place = one["place"]
            check(place["left"] >= drawing["left"] and place["right"] <= drawing["right"] + 0.5
                  and place["top"] >= drawing["top"] and place["bottom"] <= drawing["bottom"],
                  f"{file.name}: {one} is outside of {drawing}")
            check(one["height"] >= 9, f"{file.name}: {one} is too small to read")
            check(one["ground"] and contrast(one["ink"], one["ground"]) >= 4.5,
                  f"{file.name}, {colours}: {one['text']!r}, {one['ink']} on {one['ground']}, can't be read")
    return [one["text"] for one in seen["texts"]]


def check_photograph(gallery, file, colours):
    check(file.stat().st_size <= LARGEST, f"{file.name} has {file.stat().st_size} bytes")
    # As data: a page may not look at the pixels of another file.
    data = base64.b64encode(file.read_bytes()).decode()
    seen = gallery.see(f"pixels-{file.stem}", f'<img src="data:image/png;base64,{data}">', 1280, 900, colours,
                       LOOK_AT_PIXELS)
    check((seen["mean"] > 0.5) == (colours == "light"), f"{file.name}: brightness {seen['mean']}")
    check(seen["levels"] >= 32 and seen["commonest"] < 0.97, f"{file.name} is empty: {seen}")


def check_folder(gallery, folder):
    """The pictures in the folder; the texts of the drawings."""
    made = json.loads((folder / "made.json").read_text())
    check(set(made) == PICTURES, f"{folder}/made.json tells of {set(made)}")
    for name, one in made.items():
        check(one["command"].startswith("gpunn ") and one["machine"] and re.fullmatch(r"\d{4}-\d\d-\d\d", one["date"]),
              f"made.json: {name}: {one}")
    for colours in COLOURS:
        for one in PHOTOGRAPHS:
            check_photograph(gallery, folder / f"{one}-{colours}.png", colours)
    texts = {}
    for name in sorted(DRAWINGS):
        texts[name] = check_drawing(gallery, folder / name)
        check(made[name]["command"] in texts[name], f"{name} was made by {made[name]['command']}")
        check(any(made[name]["date"] in one and made[name]["machine"] in one for one in texts[name]),
              f"{name} does not say where and when it was made")
    run = "\n".join(texts["run.svg"])
    check(re.search(r"\bepoch +1/\d+", run) and re.search(r"\baccuracy +\d", run), f"run.svg shows\n{run}")
    race = "\n".join(texts["race.svg"])
    for backend in re.findall(r"--backend (\S+)", made["race.svg"]["command"]):
        check(len(re.findall(rf"^{backend}\b", race, re.MULTILINE)) >= 2, f"race.svg shows no row and curve of {backend}")
    return texts


def make(gpunn, source, output):
    """Runs the script on drawn digits, an epoch."""
    command = [sys.executable, "-B", source / "docs" / "pictures" / "make.py", "--gpunn", gpunn, "--output", output,
               "--experiment", "experiments/lenet_digits.yaml", "--epochs", "1", "--set", "data.synthetic_train=512",
               "--set", "data.synthetic_test=128", "--backend", "cpu"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=2 * LIMIT)
    check(done.returncode == 0, f"{command}: {done.stdout}{done.stderr}")


def main(gpunn, source, program, shots):
    with tempfile.TemporaryDirectory(prefix="gpunn-pictures-test-", ignore_cleanup_errors=True) as folder:
        fresh = Path(folder, "fresh")
        make(gpunn, source, fresh)
        browser = Browser(program, Path(folder, "profile"))
        try:
            gallery = Gallery(browser, folder, shots)
            check_readme(gallery, source)
            check_folder(gallery, source / "docs" / "pictures")
            texts = check_folder(gallery, fresh)
        finally:
            browser.close()
        check("gpunn run experiments/lenet_digits.yaml --epochs 1 --set data.synthetic_train=512 --set "
              "data.synthetic_test=128" in texts["run.svg"], f"run.svg shows {texts['run.svg']}")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve(), browser_or_skip(),
         sys.argv[3] if len(sys.argv) > 3 else None)
