"""The functions in docs/counting-over-http.md and docs/supabase.md, and the request of docs/start-http.md for programs, run as they
are printed."""

import base64
import json
import os
import re
import socket
import subprocess
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support import processes
from support.case import MID_MONTH, Case
from support.printed import blocks
from support.tokens import token
from support.waiting import TIMEOUT_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "counting-over-http.md"
SUPABASE = ROOT / "docs" / "supabase.md"
BANNER = "You have 99 conversations left this month"
LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1."
# What the runtimes of the two functions do, as far as these need it.
RUNTIMES = """
import { createInterface } from "node:readline";

let handle;
globalThis.Deno = { env: { get: (name) => process.env[name] }, serve: (handler) => { handle = handler; } };
const module = await import(process.argv[2]);
handle ??= (request) => module.default.fetch(request, process.env);
for await (const line of createInterface({ input: process.stdin })) {
  const { headers, body } = JSON.parse(line);
  const request = new Request("http://function", { method: "POST", headers, body: JSON.stringify(body) });
  try {
    const response = await handle(request);
    console.log(JSON.stringify({ status: response.status, body: await response.json() }));
  } catch (error) {
    console.log(JSON.stringify({ status: 500, body: { error: error.message } }));
  }
}
"""


def programs():
    pages = PAGE.read_text() + "\n" + SUPABASE.read_text()
    found = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?\n)```$", pages, re.S | re.M))
    # supabase_page.py runs the others.
    return {file: text for file, text in found.items() if "headroom-client" in text}


def curl():
    """The request with timeouts, a key and further attempts, with what it uses; the address is a user's, without the path."""
    lines = [line for block in blocks("docs/start-http.md") if block.language == "sh" for line in block.lines]
    (last,) = (number for number, line in enumerate(lines) if "--retry 2" in line)
    function = next(line for line in lines if line.startswith("ask() "))
    return "\n".join([function, "user=$HEADROOM_URL/v1/usage/USER", 'printf %s "$HEADROOM_TOKEN" > token', *lines[last:]])


class Faulty(ThreadingHTTPServer):
    """Forwards requests to the service, and does something else with the first ones."""

    daemon_threads = True

    def __init__(self, service):
        super().__init__(("127.0.0.1", 0), Forwarding)
        self.service = service
        self.faults = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


class Forwarding(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == 503:
            return self.answer(503, b'{"status":503,"title":"","detail":"try again","code":"UNAVAILABLE"}')
        connection = HTTPConnection("127.0.0.1", self.server.service.http_port, timeout=TIMEOUT_SECONDS)
        headers = {name: self.headers[name] for name in ("Authorization", "Idempotency-Key") if name in self.headers}
        connection.request("POST", self.path, body or None, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if fault == "lost":
            # The service has counted, and its answer does not arrive.
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        if fault == 504:
            return self.answer(504, b'{"status":504,"title":"","detail":"it may have been counted","code":"UNKNOWN"}')
        return self.answer(response.status, answer)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Function:
    """A function of the page in Node.js."""

    def __init__(self, directory, file, environment):
        self.process = processes.start(
            ["node", "runtimes.mjs", f"./{file}"], cwd=directory, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip

    def call(self, user, message, text="hello"):
        claims = base64.urlsafe_b64encode(json.dumps({"sub": user}).encode()).decode().rstrip("=")
        request = {"headers": {"Authorization": f"Bearer e30.{claims}.c2ln"}, "body": {"user": user, "message": message, "text": text}}
        self.process.stdin.write(json.dumps(request) + "\n")
        answer = json.loads(self.process.stdout.readline())
        return answer["status"], answer["body"]

    def stop(self):
        self.process.stdin.close()
        processes.stop(self.process)


class Programs(Case):
    CLOCK = MID_MONTH
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.token = token(cls, "functions", "chat")[1]
        cls.operator = token(cls, "operator", "operator")[1]
        headers = {"Authorization": f"Bearer {cls.operator}"}
        wait_until(lambda: cls.service.http("GET", "/v1/report", headers=headers).status == 200, "the service has read the tokens")
        cls.server = Faulty(cls.service)
        cls.environment = {**os.environ, "HEADROOM_URL": cls.server.url, "HEADROOM_TOKEN": cls.token}
        cls.directory = processes.directory()
        cls.programs = programs()
        for file, content in cls.programs.items():
            # Node.js takes neither types nor a module without saying so.
            content = content.replace("(text: string)", "(text)").replace('")!', '")')
            Path(cls.directory, file.replace(".ts", ".js")).write_text(content)
        Path(cls.directory, "package.json").write_text('{"type": "module"}')
        Path(cls.directory, "node_modules").mkdir()
        Path(cls.directory, "node_modules/headroom-client").symlink_to(ROOT / "clients/node")
        Path(cls.directory, "runtimes.mjs").write_text(RUNTIMES)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        super().tearDownClass()

    def subscriber(self, used):
        user = self.user()
        headers = {"Authorization": f"Bearer {self.operator}"}
        planned = self.service.http("PUT", f"/v1/users/{user}/plan", {"plan": "paid"}, headers)
        self.assertEqual(planned.status, 200, planned.text)
        counted = self.service.http("POST", f"/v1/usage/{user}/consume", {"n": used}, {"Authorization": f"Bearer {self.token}"})
        self.assertEqual(counted.status, 200, counted.text)
        return user

    def run_printed(self, command, user):
        command = command.replace("USER", user)
        return processes.completed(["sh", "-c", command], cwd=self.directory, env=self.environment)

    def function(self, file):
        function = Function(self.directory, file, self.environment)
        self.addCleanup(function.stop)
        return function

    def test_every_program_of_the_page_is_run(self):
        self.assertEqual(set(self.programs), {"worker.js", "index.ts"})
        self.assertEqual([block.language for block in blocks("docs/counting-over-http.md")], ["js"])

    def test_curl(self):
        user = self.subscriber(used=700)
        for faults, repeated in (([], False), ([503], True), ([], True)):
            self.server.faults = faults
            ran = self.run_printed(curl(), user)
            answer = json.loads(ran.stdout)
            self.assertEqual((ran.returncode, answer["allowed"], answer["used"]), (0, True, 701), ran.stderr)
            self.assertEqual((answer["banner"], answer.get("replayed", False)), (BANNER, repeated))
        other = self.subscriber(used=700)
        self.server.faults = ["lost"]
        self.assertEqual(self.run_printed(curl(), other).returncode, 0)
        self.assertEqual([self.count(user), self.count(other)], [701, 701])
        self.assertNotEqual(self.run_printed(curl(), "nobody").returncode, 0)

    def test_the_functions(self):
        for file in ("worker.js", "index.js"):
            function = self.function(file)
            for number, faults in enumerate(([], [503, 503], ["lost", "lost"], [504], ["lost", 503])):
                user = self.subscriber(used=700)
                self.server.faults = list(faults)
                sent = function.call(user, f"message-{number}")
                self.assertEqual(sent, (200, {"answer": "olleh", "banner": BANNER}), (file, faults))
                status, body = function.call(user, f"message-{number}")
                self.assertEqual((status, body), (409, {"error": "sent before: show the stored answer"}))
                self.assertEqual((self.count(user), self.server.faults), (701, []))
            user = self.subscriber(used=800)
            self.assertEqual(function.call(user, "message-1"), (429, {"banner": LIMIT}))
            self.server.faults = [503] * 1_000
            # On a slow machine any of the attempts may have had no answer within its second.
            status, body = function.call(user, "message-1")
            self.assertEqual(status, 500)
            self.assertRegex(body["error"], "^(UNAVAILABLE try again|UNKNOWN an attempt was not answered)")
            self.server.faults = []
            self.assertRegex(function.call("nobody", "message-1")[1]["error"], "^BADARG ")
            self.assertEqual(self.count(user), 800)
        self.assertEqual(function.call(None, "message-1"), (401, {"error": "nobody is signed in"}))
