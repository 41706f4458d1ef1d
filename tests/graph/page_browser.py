"""A page in headless Chromium, driven over the DevTools protocol by pipes: no package is needed for that."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
)  # fmt: skip
PATIENCE = 30.0


def find_browser() -> str | None:
    """The path of a Chromium, or None."""
    return os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A running browser. Use `opened_browser`."""

    def __init__(self, commands: int, answers: int):
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)
        raise TimeoutError(f"no answer to {method}")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._answers, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, address: str, width: int = 1280, height: int = 800, dark: bool = False) -> Tab:
        """Open a page, and wait until it is loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            tab.ask(f"{domain}.enable")
        tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        tab.ask("Emulation.setEmulatedMedia", features=features)
        tab.ask("Page.navigate", url=address)
        tab.wait("document.readyState === 'complete' && Boolean(window.pellucid || !document.getElementById('data'))")
        return tab


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, target: str):
        self.browser, self.session, self.target = browser, session, target

    def close(self) -> None:
        """Close the page."""
        self.browser.ask("Target.closeTarget", targetId=self.target)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to the page."""
        return self.browser.ask(method, self.session, **parameters)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}")
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until the page has been drawn twice."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def key(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key, as a keyboard does."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key.upper()) if key.isalnum() and len(key) == 1 else 0)
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def type(self, text: str) -> None:
        """Type a text."""
        for character in text:
            self.key(character)

    def click(self, selector: str, *, text: str = "") -> None:
        """Click in the middle of the first element of a selector, with the mouse; of those whose text contains `text`."""
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find((e) => e.textContent.includes({json.dumps(text)}))"
        )
        place = self.run(
            f"(() => {{ const e = {found}; if (!e) return null; e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        if place is None:
            raise LookupError(f"no {selector} with {text!r}")
        self.mouse("mousePressed", *place)
        self.mouse("mouseReleased", *place)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event."""
        button = {} if kind in ("mouseMoved", "mouseWheel") else {"button": "left", "clickCount": 1}
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button, **more)

    def text(self, selector: str) -> str:
        """The text of the first element of a selector."""
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def complaints(self) -> list[str]:
        """What the page has written to the console as an error or a warning, and errors that nobody caught."""
        self.ask("Page.bringToFront")  # pages in the background are not drawn
        self.settle()
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            what = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(what["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event["method"] == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                found.append(str(what["args"]))
            elif event["method"] == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(what["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """The addresses that the page has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, path: Path | str) -> None:
        """Write what is seen to a PNG file."""
        self.settle()
        Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def opened_browser() -> Iterator[Browser]:
    """A browser, ended when the block is left."""
    program = find_browser()
    if program is None:
        raise LookupError("no Chromium")
    command_end, commands = os.pipe()
    answers, answer_end = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads commands from file 3 and writes to file 4.
        shell = f'exec "$@" 3<&{command_end} 4>&{answer_end}'
        process = subprocess.Popen(
            ["bash", "-c", shell, "browser", program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(command_end, answer_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_end)
        os.close(answer_end)
        try:
            yield Browser(commands, answers)
        finally:
            os.close(commands)
            os.close(answers)
            process.terminate()
            process.wait(20)
