"""Chromium without a window, by WebDriver."""

import base64
import importlib.util
import json
import os
import pathlib
import shutil

from . import processes
from .nightly import IS_LONG
from .waiting import TIMEOUT_SECONDS, wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")

WIDTHS = {"desktop": 1280, "phone": 360}
SCHEMES = ("light", "dark")


def looks(number=0):
    """Widths and schemes in which to look at the page with this number: a phone's width in one scheme, pages in turn in one and the
    other; in a long run, both widths in both."""
    if not IS_LONG:
        return [("phone", SCHEMES[number % 2])]
    return [(width, scheme) for width in WIDTHS for scheme in SCHEMES]


def missing():
    """The missing program or package; None if everything is installed."""
    if not CHROMIUM or not DRIVER:
        return "chromium and chromium-driver (script/bootstrap --test installs them)"
    for module in ("selenium", "axe_playwright_python"):
        if importlib.util.find_spec(module) is None:
            return f"Python's {module} (script/bootstrap --test installs it)"
    return None


def axe_source():
    """axe-core, from a package on PyPI."""
    return (pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).parent / "axe.min.js").read_text()


class Browser:
    PAGE_LOAD = "normal"
    """WebDriver's page load strategy."""

    def __init__(self, site, has_scripts=True):
        """`site` has an `address` to open: a service, or a chat."""
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        options.page_load_strategy = self.PAGE_LOAD
        # Root has no sandbox, and containers have little shared memory.
        for flag in ["headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars", "no-first-run",
                     "disable-background-networking", "disable-component-update", "force-device-scale-factor=1",
                     f"user-data-dir={processes.directory()}"]:  # fmt: skip
            options.add_argument("--" + flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if not has_scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_page_load_timeout(TIMEOUT_SECONDS)
        self.driver.set_script_timeout(TIMEOUT_SECONDS)
        self.base = site.address
        self.set_appearance("desktop", "light")

    def close(self):
        self.driver.quit()

    def set_appearance(self, width, scheme, forced=None):
        """Sets the window's width in CSS pixels, and the preferred colour scheme."""
        self.width, self.scheme = width, scheme
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": WIDTHS[width], "height": 800, "deviceScaleFactor": 1, "mobile": width == "phone"},
        )

    def set_language(self, accepted):
        """Sets the header field Accept-Language of all requests from now on, and the browser's languages."""
        agent = self.run("return navigator.userAgent")
        self.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": agent, "acceptLanguage": accepted})

    def open(self, path="/dashboard"):
        self.driver.get(self.base + path)
        return self

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def text(self, selector="main"):
        """The visible text; empty while the page changes to another one."""
        from selenium.common.exceptions import JavascriptException

        try:
            # In one script: an element found first may be removed before its text is read.
            return self.run("const part = document.querySelector(arguments[0]); return part ? part.innerText.trim() : ''", selector)
        except JavascriptException:
            return ""

    @property
    def path(self):
        return self.driver.current_url.removeprefix(self.base)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def fill(self, selector, text):
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def press(self, *keys):
        """Sends keys to the focused element."""
        from selenium.webdriver import ActionChains

        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def sign_in(self, token):
        """Sends the form and waits for its answer, so that nothing is read from the previous page."""
        self.open("/dashboard/sign-in")
        self.fill("#token", token)
        self.run("window.isBefore = true")
        self.find("main button").click()
        wait_until(self.is_another_page, "the answer to the sign-in")

    def is_another_page(self):
        from selenium.common.exceptions import JavascriptException

        try:
            return self.run("return !window.isBefore && document.readyState === 'complete'")
        except JavascriptException:
            return False

    def complaints(self):
        """New entries of the browser's console: errors, and violations of the Content-Security-Policy."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def axe(self, impacts=("minor", "moderate", "serious", "critical")):
        """Violated rules of these impacts, each with the elements that violate it."""
        # From outside the page, because its Content-Security-Policy would block it.
        if not self.run("return typeof window.axe === 'object'"):
            self.run(axe_source())
        report = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(found => done(found), error => done(String(error)));"
        )
        if not isinstance(report, dict):
            raise AssertionError(f"axe did not run: {report}")
        assert len(report["passes"]) > 10, "axe looked at nothing"
        return [
            f"{rule['id']}: {rule['help']}: "
            + "; ".join(node["html"][:160] + json.dumps(node["any"][:1])[:300] for node in rule["nodes"][:3])
            for rule in report["violations"] if rule["impact"] in impacts
        ]  # fmt: skip

    def picture(self, name):
        """The whole page as NAME-WIDTH-SCHEME.png in HEADROOM_SCREENSHOTS, if that is set."""
        directory = os.environ.get("HEADROOM_SCREENSHOTS")
        if not directory:
            return
        height = self.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": WIDTHS[self.width], "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path = pathlib.Path(directory) / f"{name}-{self.width}-{self.scheme}.png"
        path.write_bytes(base64.b64decode(shot["data"]))
