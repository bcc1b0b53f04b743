"""The page of the service in a headless Chromium: `browser_test.py GPUNN SOURCE_FOLDER [SCREENSHOT]`.

Exit code 77, skipped, where no browser is found.
"""

import base64
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["GPUNN_PROGRAM"] = os.path.abspath(sys.argv[1])
os.environ["GPUNN_SOURCE"] = os.path.abspath(sys.argv[2])
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import served  # noqa: E402
from browser import Browser, browser_or_skip, check, contrast  # noqa: E402

# Drops a file on the page, and what there is to see once the model has answered.
DROP = r"""(async () => {
  const bytes = Uint8Array.from(atob('%s'), (one) => one.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], 'digit.png', {type: 'image/png'}));
  document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true}));
  const message = document.getElementById('message');
  for (let i = 0; i < 200 && !/ ms$/.test(message.textContent) && !message.className; ++i) {
    await new Promise((done) => setTimeout(done, 50));
  }
  const image = document.getElementById('image');
  await image.decode();
  const size = {image: image.naturalWidth, shown: image.getBoundingClientRect().width};
  const wasSaid = message.textContent, overlay = document.getElementById('overlay');
  document.querySelectorAll('#classes tr')[1].click();
  for (let i = 0; i < 200 && overlay.hidden; ++i) await new Promise((done) => setTimeout(done, 50));
  await overlay.decode();
  return {
    overlay: overlay.naturalWidth, imageHidden: image.hidden, explanation: message.textContent,
    explained: document.querySelector('tr.explained').cells[0].textContent, ...size,
    message: wasSaid, failed: message.className,
    models: [...document.getElementById('model').options].map((one) => one.value),
    rows: [...document.querySelectorAll('#classes tr')].map((row) => ({
      name: row.cells[0].textContent, share: parseFloat(row.cells[1].textContent),
      bar: row.querySelector('.bar').getBoundingClientRect().width, space: row.cells[2].getBoundingClientRect().width})),
    ink: getComputedStyle(message).color, ground: getComputedStyle(document.body).backgroundColor,
    pageWidth: document.documentElement.scrollWidth, viewport: document.documentElement.clientWidth,
  };
})()"""


def main():
    program = browser_or_skip()
    image = served.png(28)
    with served.Server(f"digits={served.digits()}") as server, tempfile.TemporaryDirectory() as profile:
        _, _, body = server.ask("POST", "/v1/classify", image)
        expected = json.loads(body)["classes"]
        browser = Browser(program, profile)
        try:
            for width in (1000, 360):
                seen, said = browser.open(f"http://127.0.0.1:{server.port}/", width, 800, "light",
                                          DROP % base64.b64encode(image).decode())
                check(not said, f"the console is silent: {said}")
                check(not seen["failed"] and seen["message"].startswith("digits, version 1"), f"an answer: {seen}")
                check(seen["models"] == ["digits"], f"the models: {seen['models']}")
                check([row["name"] for row in seen["rows"]] == [one["name"] for one in expected], f"classes: {seen}")
                for row, one in zip(seen["rows"], expected):
                    check(abs(row["share"] - 100 * one["probability"]) < 0.01, f"shares: {row}, {one}")
                    check(abs(row["bar"] - max(row["space"] * one["probability"], 1)) < 4, f"bars: {row}")
                check(seen["image"] == 28 and seen["shown"] >= 28, f"the image is shown: {seen}")
                second = expected[1]["name"]
                check(seen["overlay"] == 224 and seen["imageHidden"] and seen["explained"] == second and
                      seen["explanation"].startswith(f"What speaks for {second}"), f"the second class is explained: {seen}")
                check(seen["pageWidth"] <= seen["viewport"], f"nothing lies beside the page: {seen}")
                check(contrast(seen["ink"], "rgb(255, 255, 255)") > 4.5, f"the text can be read: {seen['ink']}")
                if len(sys.argv) > 3:
                    browser.screenshot(f"{sys.argv[3]}-{width}.png")
        finally:
            browser.close()


if __name__ == "__main__":
    try:
        main()
    finally:
        served.clean_up()
