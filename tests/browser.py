"""A headless Chromium, for tests that look at pages and for the script that takes pictures of them."""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SKIPPED = 77  # the exit code by which ctest knows a test that was skipped
BROWSERS = ["chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable", "chromium-browser"]
LIMIT = 120  # seconds that nothing here comes near


def find_browser():
    """$GPUNN_BROWSER, or the first of the usual names on the path, or None."""
    return os.environ.get("GPUNN_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


def browser_or_skip():
    program = find_browser()
    if not program:
        print("skipped: no Chromium; Debian has it as chromium-headless-shell, or name one in GPUNN_BROWSER")
        sys.exit(SKIPPED)
    return program


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def group_is_alive(group):
    """Whether a process of this group runs. One that ended and was not yet waited for does not."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return False


class Browser:
    """The DevTools protocol over two pipes: one JSON message, one zero byte."""

    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.input, from_browser = os.pipe()

        def numbered():  # the browser reads 3 and writes 4; its processes are a group of their own
            os.setsid()
            keep = [os.dup(to_browser), os.dup(from_browser)]
            os.dup2(keep[0], 3)
            os.dup2(keep[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=numbered)
        os.close(to_browser)
        os.close(from_browser)
        self.watchdog = threading.Timer(LIMIT, self.process.kill)
        self.watchdog.start()
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def close(self):
        """Returns when all its processes have ended, so that none writes into the profile any more."""
        self.watchdog.cancel()
        self.process.kill()
        self.process.wait()
        end = time.monotonic() + LIMIT
        while group_is_alive(self.process.pid):
            check(time.monotonic() < end, "the browser's processes end")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            time.sleep(0.01)

    def receive(self):
        while b"\0" not in self.buffer:
            part = os.read(self.input, 1 << 20)
            check(part, "the browser ended")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                check("error" not in answer, f"{method}: {answer.get('error')}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        while not any(one.get("method") == event for one in self.events):
            self.events.append(self.receive())

    def open(self, url, width, height, colours, look):
        """Loads the page in `colours` (light or dark); what the script `look` returns there, and what the console says."""
        self.ask("Page.enable")
        self.ask("Runtime.enable")
        self.ask("Log.enable")
        self.ask("Network.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
        self.events = []
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")
        result = self.ask("Runtime.evaluate", expression=look, returnByValue=True,
                          awaitPromise=True)
        check("exceptionDetails" not in result, f"looking at the page: {result.get('exceptionDetails')}")
        said = [one for one in self.events if one.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
                or one.get("method") == "Runtime.consoleAPICalled"]
        return result["result"]["value"], said

    def screenshot(self, file, place=None):
        """The page, or what lies at `place` (left, top, width, height) of it, as a PNG file."""
        if place is None:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            place = (0, 0, size["width"], size["height"])
        clip = dict(zip(("x", "y", "width", "height"), place), scale=1)
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        Path(file).write_bytes(base64.b64decode(shot["data"]))


def luminance(colour):
    parts = [float(one) / 255 for one in re.findall(r"[\d.]+", colour)[:3]]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)
