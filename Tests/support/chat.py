"""The example's chat: a running chat-backend, and its page in a browser."""

import json
import os
import re
import signal
import subprocess
import unittest

from . import browser, http, processes, settings
from .browser import Browser
from .case import Case
from .service import environment
from .stores import AUTHORIZATION
from .waiting import TIMEOUT_SECONDS, wait_until
from .wire import Answer


def binary():
    """Beside the service's."""
    return os.path.join(os.path.dirname(settings.binary), "chat-backend")


def missing():
    """What is not there; None when everything is."""
    if not os.access(binary(), os.X_OK):
        return "chat-backend beside headroom (swift build --product chat-backend)"
    return browser.missing()


class ChatBackend:
    """Starts `chat-backend` on a free port and waits for the line that says so."""

    def __init__(self, service, *flags, people=(), has_store=True):
        self.directory = processes.directory()
        store = ["--webhook", f"{service.address}/webhooks/revenuecat"] if has_store else []
        self.flags = ["--headroom", f"127.0.0.1:{service.port}", *store, *flags]
        if people:
            with open(self.directory + "/people.json", "w") as file:
                json.dump(people, file)
            self.flags += ["--people", file.name]
        # Nobody else is given it while the chat is away.
        self.listen = f"127.0.0.1:{processes.free_port()}"
        self.start()

    def start(self):
        """Always on the same port, so that open pages find it again."""
        self.stdout, self.stderr = self.directory + "/stdout", self.directory + "/stderr"
        with open(self.stdout, "wb") as out, open(self.stderr, "ab") as err:
            self.process = processes.start(
                [binary(), "--listen", self.listen, *self.flags],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd="/",
                env=environment(CHAT_WEBHOOK_AUTHORIZATION=AUTHORIZATION),
            )  # fmt: skip
        self.port = wait_until(self._port, "the chat's ready line")

    def _port(self):
        with open(self.stdout) as file:
            line = re.search(r"^ready chat=http://127\.0\.0\.1:(\d+)\n", file.read())
        if line is None and self.process.poll() is not None:
            raise AssertionError(f"chat-backend ended with {self.process.returncode}:\n{self.log()}")
        return line and int(line[1])

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def log(self):
        with open(self.stderr) as file:
            return file.read()

    def request(self, method, path, body=None, headers=None, timeout=TIMEOUT_SECONDS):
        return http.request(self.port, method, path, body, headers, timeout)

    def state(self, user):
        answer = self.request("GET", f"/users/{user}")
        assert answer.status == 200, answer.text
        return answer.json

    def stop(self):
        return processes.stop(self.process)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class ChatBrowser(Browser):
    """A browser in which somebody chats."""

    # The driver takes a page with an open stream for one that is still loading, and waits for its end.
    PAGE_LOAD = "none"

    def chat(self, user):
        """Opens the page, and reads nothing before it has come and has said what it begins with."""
        return self._arrive(lambda: self.open(f"/chat/{user}"))

    def reload(self):
        return self._arrive(self.driver.refresh)

    def _arrive(self, leave):
        self.run("window.isBefore = true")
        leave()
        wait_until(lambda: self.is_another_page() and self.has_loaded(), "the chat has loaded")
        return self

    def wait_until_it_shows(self, usage):
        """Waits until the page shows this usage. On a busy machine the chat's backend may give up reading the usage when the
        page loads; the page then gets it from the stream of changes."""

        def shown():
            return self.run(
                "const {display, tier} = document.getElementById('indicator').dataset;"
                "const label = document.querySelector('#plan-and-usage .about').textContent;"
                "return [display, tier, label, document.getElementById('connection').checkVisibility()]"
            )

        wanted = [usage["display"], usage["tier"], usage["label"], False]
        wait_until(lambda: shown() == wanted, lambda: f"{wanted} shows; there is {shown()}, and the page says\n{self.text('body')}")

    def has_loaded(self):
        return self.run("return document.documentElement.dataset.loaded") == "true"

    def write(self, text):
        self.fill("#text", text)

    def say(self, text):
        """Writes and sends, by the keyboard."""
        from selenium.webdriver.common.keys import Keys

        self.write(text)
        self.find("#text").send_keys(Keys.ENTER)

    def is_shown(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return e !== null && e.checkVisibility()", selector)

    def wait_for(self, selector):
        return wait_until(lambda: self.is_shown(selector), lambda: f"{selector} shows; the page says\n{self.text('body')}")

    def wait_for_text(self, selector, text):
        def says():
            return text in self.text(selector)

        return wait_until(says, lambda: f"{selector} says {text!r}; the page says\n{self.text('body')}")

    def wait_for_answer(self, text):
        """To what was said: the article after it, whole."""
        return wait_until(lambda: self.answer(text), lambda: f"an answer to {text!r}; the page says\n{self.text('body')}")

    def answer(self, text):
        return self.run(
            "const said = [...document.querySelectorAll('.message.user')].findLast(m => m.querySelector('.text').innerText === arguments[0]);"
            "const next = said?.nextElementSibling;"
            "return next?.matches('.assistant[aria-busy=false]') && !said.matches('.sending') ? next.querySelector('.text').innerText : ''",
            text,
        )

    def said(self):
        """What the user said, as the page shows it in the conversation."""
        return self.run("return [...document.querySelectorAll('.message.user .text')].map(text => text.innerText)")

    def show_window(self, window):
        """In front of the others, as a person sees it."""
        self.driver.switch_to.window(window)
        self.driver.execute_cdp_cmd("Page.bringToFront", {})
        wait_until(lambda: self.run("return document.visibilityState") == "visible", "the window is in front")

    def has_begun_to_answer(self):
        return self.text(".message.assistant[aria-busy=true] .text") != ""

    @property
    def display(self):
        return self.run("return document.getElementById('indicator').dataset.display")

    def focus(self):
        """What has the focus: its id, or what it says."""
        return self.run("const e = document.activeElement; return e.id || e.innerText || e.tagName")


class ChatCase(Case):
    """A service that takes a store's events, a chat on it, and a browser."""

    CHAT_FLAGS = ("--pace-ms", "0")
    FLAGS = None
    MORE_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        if missing():
            raise unittest.SkipTest(f"not installed: {missing()}")
        super().setUpClass()
        cls.service = cls.serve(*cls.MORE_FLAGS, env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})
        for product, plan in (("premium_monthly", "paid"), ("pro_monthly", "pro")):
            cls.psql.run(f"select headroom.map_product('revenuecat', '{product}', '{plan}')")
        cls.chat = ChatBackend(cls.service, *cls.CHAT_FLAGS)
        cls.browser = ChatBrowser(cls.chat)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.chat.stop()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.browser.look("desktop", "light")
        self.browser.complaints()

    def assert_count(self, user, count):
        """In the database, and nothing held."""
        wait_until(lambda: self.count(user) == count, lambda: f"{count} counted; there are {self.count(user)}")
        wait_until(lambda: "held=" not in self.send_command(f"USAGE {user}"), "nothing is held")

    def usage(self, user):
        """USAGE's fields."""
        return Answer(self.send_command(f"USAGE {user}"))
