"""Takes the pictures of README.md; script/screenshots runs it."""

import base64
import os
import pathlib
import re
import subprocess
import sys
from types import SimpleNamespace

from . import processes
from .browser import SCHEMES, Browser
from .waiting import wait_until

SIZES = {"chat": (400, 640), "dashboard": (900, 716)}
"""In CSS pixels."""
SCALE = 1.5
"""Device pixels for each CSS pixel: sharp on most screens, at half the bytes of 2."""
ABOUT = {
    # The demo's users with the texts of this table: the one whose next message is the last.
    "user": "the next message is the last",
    "message": "I finally called my sister today.",
}


class Demo:
    """A running script/demo."""

    def __init__(self, root):
        self.output = processes.directory() + "/output"
        with open(self.output, "wb") as output:
            self.process = processes.start([f"{root}/script/demo"], stdin=subprocess.DEVNULL, stdout=output)
        wait_until(lambda: "Ctrl-C" in self.read() or self.process.poll() is not None, "the demo runs")
        self.dashboard = re.search(r"dashboard: +(\S+)/dashboard", self.read())[1]
        self.chat, self.page = re.search(rf"(\S+)(/chat/\S+) .*{ABOUT['user']}", self.read()).groups()

    def read(self):
        return pathlib.Path(self.output).read_text()


def take(browser, name, directory):
    """The window as NAME-light.png and NAME-dark.png."""
    width, height = SIZES[name]
    for scheme in SCHEMES:
        browser.set_appearance("desktop", scheme)
        browser.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": SCALE, "mobile": False}
        )
        browser.run("window.scrollTo(0, document.body.scrollHeight * arguments[0])", 1 if name == "chat" else 0)
        # Two frames: after them the page has its new colours and size.
        browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        shot = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        path = directory / f"{name}-{scheme}.png"
        path.write_bytes(base64.b64decode(shot["data"]))
        print(path)


def main(root):
    directory = pathlib.Path(root) / "docs/pictures"
    demo = Demo(root)
    browser = Browser(SimpleNamespace(address=demo.chat))
    try:
        browser.open(demo.page)
        wait_until(lambda: "1 message left" in browser.text("#indicator"), "the banner of the last message")
        browser.fill("#text", ABOUT["message"])
        browser.find("#send").click()
        wait_until(lambda: browser.text("#gate-words"), "the sentence that closes the chat")
        take(browser, "chat", directory)
        browser.base = demo.dashboard
        browser.open("/dashboard")
        wait_until(lambda: "Users by tier" in browser.text(), "the dashboard's figures")
        take(browser, "dashboard", directory)
    finally:
        browser.close()
        processes.stop(demo.process)


if __name__ == "__main__":
    os.chdir("/")
    main(sys.argv[1])
