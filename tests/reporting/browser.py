"""Chromium without a window, spoken to by its DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT = 30  # seconds


def program():
    """Chromium of this machine; the test is skipped where there is none."""
    found = os.environ.get("RHALE_STATS_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if found is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    return found


def axe():
    """Source of axe-core; the test is skipped where it is not installed."""
    path = Path(os.environ.get("RHALE_STATS_AXE", "node_modules/axe-core/axe.min.js"))
    if not path.is_file():
        pytest.skip("axe-core is not installed (npm install axe-core; RHALE_STATS_AXE is its path)")
    return path.read_text(encoding="utf-8")


class Browser:
    """A page of Chromium: commands go in, events are kept."""

    def __init__(self):
        websocket = pytest.importorskip("websocket", reason='pip install "rhale-stats[browser]"')
        self._folder = tempfile.mkdtemp(prefix="rhale-stats-browser-")
        self._process = subprocess.Popen(
            [
                *(program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars"),
                *("--remote-debugging-port=0", "--remote-allow-origins=*"),
                *(f"--user-data-dir={self._folder}", "about:blank"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.events, self._id = [], 0
        try:
            port, address = self._port()
            self._socket = websocket.create_connection(
                f"ws://127.0.0.1:{port}{address}", timeout=WAIT
            )
            target = self._send("Target.createTarget", url="about:blank")["targetId"]
            attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
        except BaseException:
            self._end()
            raise
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    _session = None

    def _port(self):
        path = Path(self._folder) / "DevToolsActivePort"
        for _ in range(WAIT * 20):
            lines = path.read_text().splitlines() if path.is_file() else []
            if len(lines) == 2:
                return lines
            assert self._process.poll() is None, "Chromium ended at once"
            time.sleep(0.05)
        raise AssertionError(f"Chromium did not start within {WAIT} s")

    def _send(self, method, **parameters):
        self._id += 1
        message = {"id": self._id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._id:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    send = _send

    def close(self):
        self._socket.close()
        self._end()

    def _end(self):
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- what a reader does -----------------------------------------------------------------------

    def open(self, path):
        """Load a file, and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        for _ in range(WAIT * 20):
            if self.script("document.readyState + location.protocol") == "completefile:":
                return
            time.sleep(0.05)
        raise AssertionError("the page did not load")

    def script(self, code):
        """The value of an expression in the page; the policy of the page does not apply to it."""
        answer = self.send(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key, shift=False):
        """Press a key."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        facts = {
            "key": key,
            "code": {" ": "Space"}.get(key, key),
            "windowsVirtualKeyCode": codes[key],
            "modifiers": 8 if shift else 0,
        }
        text = {"Enter": "\r", " ": " "}.get(key)
        down = {"type": "keyDown" if text else "rawKeyDown", **({"text": text} if text else {})}
        self.send("Input.dispatchKeyEvent", **down, **facts)
        self.send("Input.dispatchKeyEvent", type="keyUp", **facts)

    def look(self, width, scheme, height=900):
        """Set the width of the window and the colour scheme."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path):
        """The whole page as a picture."""
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def pdf(self):
        """The page as it is printed."""
        answer = self.send("Page.printToPDF", preferCSSPageSize=True)
        return base64.b64decode(answer["data"])
