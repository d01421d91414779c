"""The example's chat: a running chat-backend, and its page in a browser."""

import contextlib
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import unittest

from . import browser, processes, settings
from . import http as web
from .browser import Browser
from .case import Case
from .service import environment
from .stores import AUTHORIZATION
from .waiting import TIMEOUT_SECONDS, wait_until
from .wire import Answer

SHORT_MINUTES = "const each = window.setInterval; window.setInterval = (call, ms) => each(call, ms / 1000);"
"""A script. The page reads the usage again each minute, which then takes a moment."""


def binary():
    """The path of chat-backend, beside the service's binary."""
    return os.path.join(os.path.dirname(settings.binary), "chat-backend")


def missing():
    """The missing program; None when everything is installed."""
    if not os.access(binary(), os.X_OK):
        return "chat-backend beside headroom (swift build --product chat-backend)"
    return browser.missing()


class ChatBackend:
    """Starts `chat-backend` on a free port and waits for its ready line."""

    def __init__(self, service, *flags, people=(), has_store=True):
        self.directory = processes.directory()
        store = ["--webhook", f"{service.address}/webhooks/revenuecat"] if has_store else []
        self.flags = ["--headroom", f"127.0.0.1:{service.port}", *store, *flags]
        if people:
            with open(self.directory + "/people.json", "w") as file:
                json.dump(people, file)
            self.flags += ["--people", file.name]
        # Reserved, so that no other process takes the port while the chat is stopped.
        self.listen = f"127.0.0.1:{processes.free_port()}"
        self.start()

    def start(self):
        """Starts on the same port each time, so that open pages reconnect."""
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
        return web.request(self.port, method, path, body, headers, timeout)

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
    """A browser with the chat's page."""

    # The driver would wait for the end of the page's stream of events.
    PAGE_LOAD = "none"

    def chat(self, user):
        """Opens the page and waits until it has loaded its data."""
        return self._load(lambda: self.open(f"/chat/{user}"))

    def reload(self):
        return self._load(self.driver.refresh)

    def _load(self, navigate):
        self.run("window.isBefore = true")
        navigate()
        wait_until(lambda: self.is_another_page() and self.has_loaded(), "the chat has loaded")
        return self

    def wait_until_it_shows(self, usage):
        """Waits until the page shows this usage. On a busy machine the page may receive it late, from the stream of changes."""

        def shown():
            return self.run(
                "const {display, tier} = document.getElementById('indicator').dataset;"
                "const label = document.querySelector('#plan-and-usage .about').textContent;"
                "return [display, tier, label, document.getElementById('connection').checkVisibility()]"
            )

        wanted = [usage["display"], usage["tier"], usage["label"], False]
        wait_until(lambda: shown() == wanted, lambda: f"{wanted} shows; there is {shown()}, and the page shows\n{self.text('body')}")

    def has_loaded(self):
        return self.run("return document.documentElement.dataset.loaded") == "true"

    def write(self, text):
        self.fill("#text", text)

    def send_message(self, text):
        """Writes and sends a message by the keyboard."""
        from selenium.webdriver.common.keys import Keys

        self.write(text)
        self.find("#text").send_keys(Keys.ENTER)

    def is_shown(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return e !== null && e.checkVisibility()", selector)

    def texts(self, selector):
        """The texts of all elements, read at one instant: the page replaces them when a change arrives."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(element => element.innerText)", selector)

    def wait_for(self, selector):
        return wait_until(lambda: self.is_shown(selector), lambda: f"{selector} shows; the page shows\n{self.text('body')}")

    def wait_for_text(self, selector, text):
        def matches():
            return text in self.text(selector)

        return wait_until(matches, lambda: f"{selector} says {text!r}; the page shows\n{self.text('body')}")

    def wait_for_answer(self, text):
        """Waits for the complete answer to a message, and returns it."""
        return wait_until(lambda: self.answer(text), lambda: f"an answer to {text!r}; the page shows\n{self.text('body')}")

    def answer(self, text):
        return self.run(
            "const message = [...document.querySelectorAll('.message.user')].findLast(m => m.querySelector('.text').innerText === arguments[0]);"
            "const next = message?.nextElementSibling;"
            "return next?.matches('.assistant[aria-busy=false]') && !message.matches('.sending') ? next.querySelector('.text').innerText : ''",
            text,
        )

    def user_messages(self):
        """The user's messages on the page."""
        return self.run("return [...document.querySelectorAll('.message.user .text')].map(text => text.innerText)")

    def show_window(self, window):
        """Brings a window to the front."""
        self.driver.switch_to.window(window)
        self.driver.execute_cdp_cmd("Page.bringToFront", {})
        wait_until(lambda: self.run("return document.visibilityState") == "visible", "the window is in front")

    def has_begun_to_answer(self):
        return self.text(".message.assistant[aria-busy=true] .text") != ""

    @property
    def display(self):
        return self.run("return document.getElementById('indicator').dataset.display")

    def focus(self):
        """The focused element: its id or its text."""
        return self.run("const e = document.activeElement; return e.id || e.innerText || e.tagName")


class ChatCase(Case):
    """A service with a webhook, a chat on it, and a browser."""

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
        self.browser.set_appearance("desktop", "light")
        self.browser.complaints()

    def run_before_pages(self, source):
        """Runs a script before those of each page, until the test ends."""
        driver = self.browser.driver
        added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        self.addCleanup(driver.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", added)

    def assert_count(self, user, count):
        """Waits for this count in the database, without a hold."""
        wait_until(lambda: self.count(user) == count, lambda: f"{count} counted; there are {self.count(user)}")
        wait_until(lambda: "held=" not in self.send_command(f"USAGE {user}"), "nothing is held")

    def usage(self, user):
        """The fields of USAGE."""
        return Answer(self.send_command(f"USAGE {user}"))


class FlowCase(ChatCase):
    def tearDown(self):
        self.assertEqual(self.unexpected(), [], "the browser's console")

    # The console reports unreachable addresses as errors.
    EXPECTED_COMPLAINTS = ()

    def unexpected(self):
        return [line for line in self.browser.complaints() if not any(part in line for part in self.EXPECTED_COMPLAINTS)]

    def trial_user(self, used=58):
        user = self.user()
        self.assertIn("+ALLOWED", self.send_command(f"CONSUME {user} {used}"))
        return user

    def trial_count(self, user):
        return self.psql.number(f"select message_count from message_usage where user_id = '{user}' and billing_period = 'trial'")

    def conversation_count(self, user, text):
        """How often the backend's conversation contains the text."""
        return [message["text"] for message in self.chat.state(user)["messages"] if message["role"] == "user"].count(text)

    def second_window(self):
        """Opens a second window of the same browser and switches to it; closed after the test. Returns both handles."""
        driver = self.browser.driver
        first = driver.current_window_handle
        driver.switch_to.new_window("tab")
        second = driver.current_window_handle

        def close():
            driver.switch_to.window(second)
            driver.close()
            self.browser.show_window(first)

        self.addCleanup(close)
        return first, second

    def watch(self, selector):
        """Records every text of an element from now on, in order."""
        self.browser.run(
            "window.watched = []; const part = document.querySelector(arguments[0]);"
            "const look = () => { const text = part.innerText; if (watched.at(-1) !== text) watched.push(text); };"
            "look(); new MutationObserver(look).observe(part, {subtree: true, childList: true, characterData: true})",
            selector,
        )

    def watched(self):
        return self.browser.run("return window.watched")


class HeldModel:
    """An API like OpenAI's that sends the first words of each answer at once, and the rest when the test releases it."""

    FIRST, REST = "Let me think ", "about that."

    def __init__(self):
        self.released = threading.Event()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                # The backend closes the connection when the user stops the answer.
                with contextlib.suppress(OSError):
                    self.send_piece(model.FIRST)
                    while not model.released.wait(1):
                        self.wfile.write(b": still thinking\n\n")
                    self.send_piece(model.REST)
                    self.wfile.write(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')

            def send_piece(self, text):
                piece = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
                self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.flags = ("--model", f"http://127.0.0.1:{self.server.server_port}/v1", "--model-name", "test")

    def hold(self):
        self.released.clear()

    def release(self):
        self.released.set()

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()
