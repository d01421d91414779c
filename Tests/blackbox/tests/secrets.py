"""Passwords and requests are not logged, and no peer can forge log lines."""

import os
import re
import signal
import socket
import struct
import threading

from support import processes, settings
from support.case import Case
from support.service import Service, environment
from support.waiting import wait_until

PASSWORD = "hunter2-and-more"
VALUE = r'("(?:[^"\\\x00-\x1f\x7f]|\\.)*"|[^\s"]+)'
LINE = re.compile(rf"^time=\S+ level=[a-z]+ msg={VALUE}(?: [A-Za-z0-9_.-]+={VALUE})*$")
HOSTILE = "x\nlevel=info msg=forged\r\x1b[2J\x1b]0;title\x07\x9b31m\u202e\u2028 \"quoted\" back\\slash"


class Secrets(Case):
    FLAGS = None

    def serve_with_password(self, *flags, **options):
        service = Service(
            *flags, database_url=self.database_url + f" password={PASSWORD}", as_owner=True, cwd=processes.directory(), **options
        )
        self.services.append(service)
        return service

    def test_a_crash_leaves_no_password_behind(self):
        for number in (signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(signal=number.name):
                # Names of functions would take a minute.
                backtrace = "symbolicate=off,unwind=fast,threads=crashed,images=none,limit=8"
                service = self.serve_with_password(env={"SWIFT_BACKTRACE": backtrace})
                home = os.readlink(f"/proc/{service.process.pid}/cwd")
                self.assertIn("+ALLOWED ", service.send_command(f"CONSUME {self.user()}"))
                with open(f"/proc/{service.process.pid}/limits") as file:
                    limits = file.read()
                self.assertRegex(limits, r"(?m)^Max core file size +0 ")
                service.signal(number)
                # A sent signal does not repeat like a crash: the handler reports it, and the process continues.
                wait_until(lambda: "Backtrace took" in service.log() or service.process.poll() is not None, "its report")
                service.kill()
                self.assertNotIn(PASSWORD, service.log() + service.output())
                self.assertEqual(os.listdir(home), [], "a core file was left")
                # Memory bytes, as a crash report shows those at a register's address.
                self.assertNotRegex(service.log(), r"(?:[0-9a-f]{2} ){8}")

    def test_the_process_keeps_the_name_of_its_file(self):
        with open(f"/proc/{self.serve_with_password().process.pid}/comm") as file:
            self.assertEqual(file.read().strip(), os.path.basename(settings.binary)[:15], "it begins anew when it starts")

    def test_no_password_in_the_log_the_ready_line_or_info(self):
        service = self.serve_with_password("--log-level", "trace")
        with service.connect() as connection:
            info = "\n".join(connection.send_list_command("INFO"))
        service.stop()
        self.assertNotIn(PASSWORD, service.log() + service.output() + info)

    def test_no_password_in_the_error_of_a_database_that_cannot_be_used(self):
        for url in (
            f"host=/nowhere user=u dbname=d password={PASSWORD}",
            f"postgresql://u:{PASSWORD}@127.0.0.1:1/d",
            f"postgresql://u:{PASSWORD}@[::broken/d",
            f"password={PASSWORD} nonsense",
            f"host=/nowhere password='{PASSWORD}",
        ):
            for command in (["migrate"], ["prune"], ["audit", self.user()]):
                with self.subTest(url=url.replace(PASSWORD, "…"), command=command[0]):
                    done = processes.completed(
                        [settings.binary, *command], cwd="/", env=environment(DATABASE_URL=url, HEADROOM_CONNECT_TIMEOUT_MS="1000")
                    )
                    self.assertNotEqual(done.returncode, 0)
                    self.assertNotEqual(done.stderr, "")
                    self.assertNotIn(PASSWORD, done.stdout + done.stderr)

    def test_no_password_in_the_log_while_the_database_is_waited_for(self):
        service = Service("--log-level", "trace", database_url=f"postgresql://u:{PASSWORD}@127.0.0.1:1/d", as_owner=True, wait=False)
        self.services.append(service)
        wait_until(lambda: "cannot be reached yet" in service.log(), "the log has the reason for waiting")
        self.assertNotIn(PASSWORD, service.log() + service.output())

    def test_a_password_on_the_command_line_is_warned_of_and_not_shown(self):
        service = Service("--database-url", self.database_url + f" password={PASSWORD}")
        self.services.append(service)
        self.assertIn("every user of this machine can read a password on the command line", service.log())
        self.assertNotIn(PASSWORD, service.log() + service.output())
        quiet = Service("--database-url", self.database_url)
        self.services.append(quiet)
        self.assertNotIn("password", quiet.log())

    def test_no_part_of_a_request_is_logged_at_any_level(self):
        service = self.serve("--log-level", "trace", "--in-flight-maximum", "8")
        user, words = self.user(), "words-of-a-message"
        with service.connect() as connection:
            for request in (
                f"CONSUME {user} key={words}", f"RESERVE {user} key={words}2", f"RELEASE {user} key={words}2", f"USAGE {user}",
                f"HISTORY {user}", f"SETPLAN {user} paid", f"SETPLAN {user} {words}", f"GRANT {user} 5 key={words}",
                f"GRANT {user} 6 key={words}", f"RESETUSAGE {user}", f"COMMIT {user} key={words}", f"CONSUME {words}",
                f"ECHO {words}", f"{words} {user}", f"CONSUME {user} {words}=1", f"SUBSCRIBE usage:{user}", "PING",
            ):  # fmt: skip
                connection.send(f"{request}\nPING over\n")
                # The answer's form does not matter: it shows that the request was answered.
                while not connection.read_line().endswith("over"):
                    pass
            connection.reset()
        with service.connect() as connection:
            connection.send(f"CONSUME {user} key={words}".encode() + b"\x00" * 2_000)
            connection.read_to_end()
        service.stop()
        self.assertNotEqual(service.log(), "")
        for secret in (user, words):
            self.assertNotIn(secret, service.log())


class ForgingDatabase:
    """A server that refuses every PostgreSQL login with a chosen message."""

    def __init__(self, message):
        self.message = message.encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                while True:
                    head = connection.recv(8)
                    if len(head) < 8:
                        break
                    length, code = struct.unpack("!II", head)
                    connection.recv(length - 8)
                    if code in (80877103, 80877104):  # a request for TLS or GSS
                        connection.sendall(b"N")
                        continue
                    fields = b"SFATAL\0VFATAL\0C28000\0M" + self.message + b"\0D" + self.message + b"\0H" + self.message + b"\0\0"
                    connection.sendall(b"E" + struct.pack("!I", len(fields) + 4) + fields)
                    break

    def close(self):
        self.listener.close()


class LogLines(Case):
    FLAGS = None

    def assert_harmless(self, text):
        """Checks that the text has no control or direction character and forges no line."""
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]")
        for line in text.splitlines():
            self.assertFalse(line.startswith("level=info"), line)

    def test_a_database_cannot_forge_a_line_nor_move_the_cursor(self):
        database = ForgingDatabase(HOSTILE)
        try:
            for command in (["migrate"], ["migrate", "--status"], ["audit", self.user()]):
                with self.subTest(command=command):
                    done = processes.completed(
                        [settings.binary, *command], cwd="/", env=environment(DATABASE_URL=f"postgresql://u@127.0.0.1:{database.port}/d")
                    )
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn("quoted", done.stderr, "its message is shown")
                    self.assert_harmless(done.stdout + done.stderr)
            service = Service(database_url=f"postgresql://u@127.0.0.1:{database.port}/d", as_owner=True, wait=False)
            self.services.append(service)
            wait_until(lambda: "cannot be reached yet" in service.log(), "the log has the reason for waiting")
            self.assert_harmless(service.log())
            for line in service.log().splitlines():
                self.assertRegex(line, LINE)
        finally:
            database.close()

    def test_a_database_that_turns_hostile_under_a_running_service_writes_whole_lines_only(self):
        service = self.serve("--log-level", "trace")
        user = self.user()
        self.assertIn("+ALLOWED ", service.send_command(f"CONSUME {user}"))
        psql = self.cluster.session(self.database)
        if psql:
            psql.run(
                "create function public.forge() returns trigger language plpgsql as $$ begin"
                f" raise exception using message = {self.quoted(HOSTILE)}, detail = {self.quoted(HOSTILE)},"
                f" hint = {self.quoted(HOSTILE)}, errcode = '22023'; end $$;"
                " create trigger forge before insert or update on message_usage for each row execute function public.forge()"
            )
            try:
                reply = service.send_command(f"CONSUME {user}")
            finally:
                psql.run("drop trigger forge on message_usage")
        self.assertTrue(reply.startswith("-"), reply)
        self.assert_harmless(reply)
        wait_until(lambda: "forged" in service.log(), "the error is logged")
        lines = [line for line in service.log().splitlines() if line.startswith("time=")]
        self.assertTrue(any("forged" in line for line in lines))
        for line in lines:
            self.assertRegex(line, LINE)
        self.assert_harmless(service.log())

    def quoted(self, text):
        parts = [f"chr({ord(character)})" if ord(character) < 32 or character in "\"\\'" else f"'{character}'" for character in text]
        return " || ".join(parts)

    def test_settings_with_line_ends_are_refused_without_being_written_out(self):
        for name in ("HEADROOM_LISTEN", "HEADROOM_LOG_LEVEL", "HEADROOM_LANES", "HEADROOM_UNKNOWN_USERS"):
            with self.subTest(name=name):
                done = processes.completed(
                    [settings.binary, "serve"], cwd="/", env=environment(DATABASE_URL=self.database_url, **{name: HOSTILE})
                )
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(name, done.stderr)
                self.assert_harmless(done.stdout + done.stderr)

    def test_an_address_with_a_terminal_escape_is_not_written_as_it_is(self):
        done = processes.completed(
            [settings.binary, "serve", "--listen", "\x1b[31mhost:1"], cwd="/", env=environment(DATABASE_URL=self.database_url)
        )
        self.assertNotEqual(done.returncode, 0)
        self.assert_harmless(done.stdout + done.stderr)
