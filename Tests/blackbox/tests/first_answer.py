"""The first requests after the start of a service are answered as the documentation prints it."""

import os
import re
import shutil
import subprocess

from support import processes, settings
from support.case import Case
from support.printed import ROOT, blocks, pattern
from support.service import command, environment
from support.waiting import TIMEOUT_SECONDS, wait_until

USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"


class FirstAnswer(Case):
    SHARED = True

    def run_in_a_new_clone(self, line):
        """On a machine that has only what script/bootstrap requires and the base system: no nc, no Python, no Redis."""
        clone = processes.directory(0o755)
        os.makedirs(clone + "/.build")
        os.symlink(os.path.dirname(settings.binary), clone + "/.build/release")
        shutil.copytree(os.path.join(ROOT, "script"), clone + "/script")
        os.makedirs(clone + "/bin")
        for program in ("bash", "env", "dirname", "readlink"):
            os.symlink(shutil.which(program), f"{clone}/bin/{program}")
        variables = environment(PATH=clone + "/bin", HEADROOM_TARGET=f"127.0.0.1:{self.service.port}")
        return processes.completed(["/bin/bash", "-c", line], cwd=clone, env=variables)

    def test_the_first_example_of_the_documentation_needs_nothing_that_the_start_did_not_install(self):
        printed = next(block for block in blocks("README.md") if block.lines[0].startswith("$ "))
        self.assertEqual(printed.heading, "## Start")
        ran = self.run_in_a_new_clone(printed.lines[0].removeprefix("$ "))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertRegex(ran.stdout, rf"\A{pattern(printed.lines[1])}\n\Z")
        expected = (
            rf"\+ALLOWED user={USER} plan=trial state=trial tier=silent display=trial used=1 limit=100 remaining=99"
            r" period=trial expires=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) day=1 days=3"
            r' banner="99 of 100 trial messages remaining"' + "\n"
        )
        match = re.fullmatch(expected, ran.stdout)
        self.assertTrue(match, ran.stdout)
        stored = self.psql.value(
            "select to_char((started_at + interval '3 days') at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
            f" from message_usage where user_id = '{USER}' and message_count = 1"
        )
        self.assertEqual(match[1], stored, "the trial ends three days after its first message")

    def test_the_service_prints_a_command_that_answers(self):
        line = re.search(r"(?m)^try it: +(.*)$", self.service.log())[1]
        self.assertEqual(line, f"headroom ask --target 127.0.0.1:{self.service.port} 'CONSUME {USER}'")
        ran = self.run_in_a_new_clone(f'PATH="$PWD/script:$PATH"; {line}')
        self.assertRegex(ran.stdout, rf"\A\+ALLOWED user={USER} ")

    def test_printf_into_netcat_answers_every_line_and_ends(self):
        users = [self.user() for _ in range(3)]
        request = "".join(f"CONSUME {user}\n" for user in users) + "PING\n"
        script = f"printf '%s' \"$1\" | nc -N 127.0.0.1 {self.service.port}"
        lines = subprocess.run(["bash", "-c", script, "bash", request], capture_output=True, timeout=TIMEOUT_SECONDS).stdout
        replies = lines.decode().split("\r\n")
        self.assertEqual([r.split(" ")[:2] for r in replies[:3]], [["+ALLOWED", f"user={u}"] for u in users])
        self.assertEqual(replies[3:], ["+PONG", ""])

    def test_the_server_sends_nothing_first(self):
        with self.service.connect() as connection:
            connection.send("PING\n")
            self.assertEqual(connection.read_line(), "+PONG")
            connection.end_input()
            self.assertEqual(connection.read_to_end(), b"", "nothing before the first reply, nothing after the last")

    def test_verbs_and_users_are_case_insensitive_and_users_answered_in_lower_case(self):
        user = self.user()
        for verb in ("CONSUME", "consume", "CoNsUmE"):
            self.assertIn(f"+ALLOWED user={user} ", self.send_command(f"{verb} {user.upper()}"))
        self.assertEqual(self.count(user), 3)
        self.assertIn("+OK ", self.send_command(f"setplan {user} paid STATE=active Anchor=3"))

    def test_ping_echo_and_quit(self):
        with self.service.connect() as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")
            self.assertEqual(connection.send_command("PING hello=1"), "+hello=1")
            self.assertEqual(connection.send_command("ECHO día"), "+día")
            self.assertEqual(connection.send_command("QUIT"), "+OK")
            self.assertEqual(connection.read_to_end(), b"")

    def test_nothing_after_quit_is_executed(self):
        user = self.user()
        with self.service.connect() as connection:
            connection.send(f"QUIT\nCONSUME {user}\n")
            self.assertEqual(connection.read_to_end(), b"+OK\r\n")
        self.assertEqual(self.count(user), 0)

    def test_help_lists_every_verb_and_explains_one(self):
        with self.service.connect() as connection:
            listed = {entry[1:].split(" ")[0] for entry in connection.send_list_command("HELP")}
            expected = (
                "CONSUME CHECK USAGE HISTORY SETPLAN GRANT RESETUSAGE FORGET PING ECHO HELP INFO QUIT HELLO CLIENT"
                " COMMAND SELECT"
            )
            self.assertLessEqual(set(expected.split()), listed)
            for verb in listed:
                (entry,) = connection.send_list_command(f"HELP {verb.lower()}")
                self.assertTrue(entry.startswith(f"+{verb}"), entry)
            self.assertTrue(connection.send_command("HELP NOSUCH").startswith("-BADARG "))

    def test_info_has_version_uptime_connections_queue_database_and_counters(self):
        # The ready line means that the port is open; the second lane may still be connecting.
        wait_until(lambda: self.service.info()["database"] == "up", "all lanes are connected")
        info = self.service.info()
        for name in ("version", "uptime_s", "connections", "queue_depth", "database", "requests"):
            self.assertIn(name, info)
        self.assertGreaterEqual(int(info["connections"]), 1)
        self.assertEqual(command("--version").stdout.strip(), info["version"])

    def test_the_handshake_of_client_libraries_is_answered_as_they_expect(self):
        with self.service.connect() as connection:
            self.assertEqual(connection.send_command("HELLO 2"), "*14")
            fields = connection.read_lines(25)
            self.assertEqual(fields[:2], ["$6", "server"])
            self.assertIn("proto", fields)
            self.assertEqual(fields[fields.index("proto") + 1], ":2")
            self.assertEqual(fields[-1], "*0", "no modules")
            self.assertEqual(connection.send_command("HELLO 3"), "%7")
            fields = connection.read_lines(25)
            self.assertEqual(fields[fields.index("proto") + 1], ":3")
            for request in ("CLIENT SETNAME x", "CLIENT SETINFO LIB-NAME y", "SELECT 0"):
                self.assertEqual(connection.send_command(request), "+OK", request)
            for request in ("COMMAND", "COMMAND DOCS"):
                self.assertEqual(connection.send_command(request), "*0", request)
            for request, code in (("HELLO 4", "-NOPROTO"), ("HELLO 1", "-NOPROTO"), ("HELLO x", "-BADARG"), ("SELECT 1", "-BADARG")):
                self.assertTrue(connection.send_command(request).startswith(code + " "), request)
            self.assertEqual(connection.send_command("PING"), "+PONG", "still in step")

    def test_the_ping_command_succeeds_if_a_service_answers(self):
        alive = command("ping", f"127.0.0.1:{self.service.port}")
        self.assertEqual((alive.returncode, alive.stdout), (0, "PONG\n"))
        self.assertNotEqual(command("ping", f"127.0.0.1:{processes.free_port()}").returncode, 0)
