"""The commands that connect to a running service use TLS and authenticate first."""

import json
import os
import subprocess

from support import processes, settings
from support.case import Case
from support.certificates import Authority
from support.peer import Peer
from support.service import environment, succeed
from support.waiting import TIMEOUT_SECONDS

SECRET = "headroom_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE"


def run(*arguments, token=None, timeout=TIMEOUT_SECONDS):
    variables = {"HEADROOM_TOKEN": token} if token is not None else {}
    return subprocess.run(
        [settings.binary, *arguments], capture_output=True, text=True, env=environment(**variables), cwd="/", timeout=timeout
    )


class OverTLS(Case):
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority, cls.clients = Authority(), Authority("Clients")
        certificate, key = cls.authority.server()
        cls.service = cls.serve("--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca", cls.clients.certificate)
        cls.service.tls = cls.authority.client_context(cls.clients.issue("tests"))
        own_certificate, own_key = cls.clients.issue("operator")
        cls.presented = ["--tls-certificate", own_certificate, "--tls-key", own_key]
        cls.access = ["--tls-ca", cls.authority.certificate, *cls.presented]
        cls.target = ["--target", f"127.0.0.1:{cls.service.port}"]

    def test_every_command_connects_over_tls(self):
        user = self.user()
        self.assertIn("+OK ", self.send_command(f"SETPLAN {user} paid"))
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user}"))
        for arguments, shown in (
            (["ping", f"127.0.0.1:{self.service.port}"], "PONG"),
            (["status", *self.target], "up"),
            (["user", user, *self.target], "Premium"),
            (["report", *self.target], "messages   1"),
            (["top", "--once", *self.target], "127.0.0.1"),
            (["top", "--once", "--json", *self.target], user),
        ):
            with self.subTest(command=arguments[0]):
                outcome = run(*arguments, *self.access)
                self.assertEqual(outcome.returncode, 0, outcome)
                self.assertIn(shown, outcome.stdout)

    def test_bench_connects_over_tls(self):
        outcome = run(
            "bench", *self.target, *self.access, "--command", "ECHO {user}", "--requests", "500", "--warmup", "0",
            "--connections", "4", "--pipeline", "8", "--idle-connections", "2", "--json", "--quiet",
        )  # fmt: skip
        self.assertEqual(outcome.returncode, 0, outcome)
        self.assertEqual(json.loads(outcome.stdout)["replies"], 500)
        outcome = run("bench", *self.target, "--tls", "--requests", "5", "--quiet")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("not signed by a trusted CA", outcome.stderr)

    def test_a_certificate_of_an_unknown_ca_is_refused(self):
        outcome = run("status", *self.target, "--tls", *self.presented)
        self.assertEqual(outcome.returncode, 69)
        self.assertIn("not signed by a trusted CA", outcome.stderr)
        self.assertIn("--tls-ca", outcome.stderr)
        self.assertNotIn("/Sources/", outcome.stderr)

    def test_a_certificate_for_another_name_is_refused_unless_the_name_is_given(self):
        certificate, key = self.authority.issue("elsewhere", "DNS:headroom.example")
        service = self.serve("--tls-certificate", certificate, "--tls-key", key)
        for host in ("127.0.0.1", "localhost"):
            command = ["status", "--target", f"{host}:{service.port}", "--tls-ca", self.authority.certificate]
            outcome = run(*command)
            self.assertEqual(outcome.returncode, 69, outcome)
            self.assertIn("the certificate is for another name", outcome.stderr)
            self.assertEqual(run(*command, "--tls-server-name", "headroom.example").returncode, 0)
            self.assertEqual(run(*command, "--tls-server-name", "example.headroom").returncode, 69)

    def test_a_client_without_a_required_certificate_gets_an_error(self):
        outcome = run("status", *self.target, "--tls-ca", self.authority.certificate)
        self.assertEqual(outcome.returncode, 69)
        self.assertIn("requires a client certificate", outcome.stderr)

    def test_plain_text_to_a_port_with_tls_and_the_other_way_round(self):
        outcome = run("status", *self.target)
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("this port speaks TLS", outcome.stderr)
        plain = self.serve()
        outcome = run("status", "--target", f"127.0.0.1:{plain.port}", "--tls")
        self.assertEqual(outcome.returncode, 69)
        self.assertIn("does not speak TLS", outcome.stderr)

    def test_ping_succeeds_if_the_service_requires_tls(self):
        outcome = run("ping", f"127.0.0.1:{self.service.port}")
        self.assertEqual(outcome.returncode, 0, outcome)
        self.assertIn("alive", outcome.stdout)

    def test_options_and_files_that_cannot_be_used_are_named(self):
        certificate, _ = self.clients.issue("half")
        for flags, said in (
            (["--tls-certificate", certificate], "--tls-certificate and --tls-key go together"),
            (["--tls-ca", "/nowhere"], "/nowhere cannot be read: No such file"),
            (["--tls-ca", __file__], "has no valid certificate"),
            (["--tls-server-name", "127.0.0.1"], "--tls-server-name must be a host name"),
        ):
            with self.subTest(flags=flags):
                outcome = run("status", *self.target, *flags)
                self.assertEqual(outcome.returncode, 64, outcome)
                self.assertIn(said, outcome.stderr)


class WithAnyAnswer(Case):
    FLAGS = None

    def test_a_reply_cannot_control_the_terminal(self):
        with Peer(version="7\x1b]0;title\x07\x9b31m\u202e\u2028") as peer:
            for flags in ([], ["--json"]):
                outcome = run("status", "--target", f"127.0.0.1:{peer.port}", *flags)
                self.assertEqual(outcome.returncode, 0, outcome)
                self.assertIn("7", outcome.stdout)
                for character in outcome.stdout.replace("\n", ""):
                    self.assertTrue(character.isprintable(), outcome.stdout)


class WithAToken(Case):
    FLAGS = None

    def token_file(self, text):
        path = processes.directory() + "/token"
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o600)
        return path

    def status(self, peer, *flags, **options):
        return run("status", "--json", "--target", f"127.0.0.1:{peer.port}", *flags, **options)

    def test_the_token_is_sent_first_from_a_file_or_the_environment(self):
        with Peer(token=SECRET) as peer:
            self.assertEqual(self.status(peer, token=SECRET).returncode, 0)
            self.assertEqual(self.status(peer, "--token-file", self.token_file(SECRET + "\n")).returncode, 0)
            self.assertEqual(self.status(peer, "--token-file", self.token_file(SECRET), token="another").returncode, 0)
            self.assertEqual(peer.received, [[f"AUTH {SECRET}", "INFO"]] * 3)

    def test_without_a_token_no_auth_is_sent(self):
        with Peer() as peer:
            self.assertEqual(self.status(peer).returncode, 0)
            self.assertEqual(self.status(peer, token="").returncode, 0)
            self.assertEqual(peer.received, [["INFO"]] * 2)

    def test_a_service_that_needs_no_token_is_still_queried(self):
        with Peer() as peer:
            self.assertEqual(self.status(peer, token=SECRET).returncode, 0)
            self.assertEqual(peer.received, [[f"AUTH {SECRET}", "INFO"]])

    def test_a_refused_token_ends_the_command_and_is_not_shown(self):
        with Peer(token="another") as peer:
            outcome = self.status(peer, token=SECRET)
            self.assertEqual(outcome.returncode, 1)
            self.assertIn("NOAUTH no such token", outcome.stderr)
            self.assertNotIn(SECRET, outcome.stdout + outcome.stderr)
            outcome = self.status(peer)
            self.assertEqual(outcome.returncode, 1)
            self.assertIn("NOAUTH send AUTH first", outcome.stderr)
            self.assertIn("HEADROOM_TOKEN", outcome.stderr)

    def test_ping_succeeds_if_the_service_requires_a_token(self):
        with Peer(token=SECRET) as peer:
            for token in (None, "wrong"):
                outcome = run("ping", f"127.0.0.1:{peer.port}", token=token)
                self.assertEqual(outcome.returncode, 0, outcome)
                self.assertRegex(outcome.stdout, "^alive, but NOAUTH ")
            self.assertEqual(run("ping", f"127.0.0.1:{peer.port}", token=SECRET).stdout, "PONG\n")

    def test_bench_authenticates_each_connection(self):
        with Peer(token=SECRET) as peer:
            command = ["bench", "--target", f"127.0.0.1:{peer.port}", "--command", "PING", "--requests", "20",
                       "--warmup", "0", "--connections", "3", "--idle-connections", "1", "--json", "--quiet"]  # fmt: skip
            outcome = run(*command, token=SECRET)
            self.assertEqual(outcome.returncode, 0, outcome)
            self.assertEqual(json.loads(outcome.stdout)["replies"], 20)
            self.assertNotIn(SECRET, outcome.stdout + outcome.stderr)
            self.assertEqual(len(peer.received), 4)
            self.assertEqual([said[:2] for said in peer.received], [[f"AUTH {SECRET}", "PING"]] * 4)
            outcome = run(*command, token="wrong")
            self.assertEqual(outcome.returncode, 1)
            self.assertIn("it answered AUTH with", outcome.stderr)
        with Peer() as peer:
            command[2] = f"127.0.0.1:{peer.port}"
            self.assertEqual(run(*command, token=SECRET).returncode, 0)

    def test_an_invalid_token_is_not_sent_and_not_shown(self):
        with Peer(token=SECRET) as peer:
            for text in ("", "\n", "two words", SECRET + "\n\n", SECRET + "\r\nFORGET x", "x" * 257, "ü"):
                outcome = self.status(peer, "--token-file", self.token_file(text))
                self.assertEqual(outcome.returncode, 64, (text, outcome))
                self.assertIn("holds no token", outcome.stderr)
                self.assertNotIn(SECRET, outcome.stderr)
            outcome = self.status(peer, "--token-file", "/nowhere")
            self.assertEqual((outcome.returncode, "/nowhere cannot be read" in outcome.stderr), (64, True))
            self.assertEqual(self.status(peer, token="two words").returncode, 64)
            self.assertEqual(peer.received, [])


class WithARealToken(Case):
    """The same with a real service."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.target = ["--target", f"127.0.0.1:{cls.service.port}"]
        cls.tokens = {scope: cls.create_token(scope) for scope in ("chat", "dashboard", "operator")}

    @classmethod
    def create_token(cls, scope):
        outcome = succeed("token", "create", scope, "--scope", scope, database_url=cls.database_url)
        return next(word for word in outcome.stdout.split() if word.startswith("headroom_"))

    def test_dashboard_commands_work_with_a_dashboard_token(self):
        for arguments in (["status"], ["user", self.user()], ["top", "--once"]):
            outcome = run(*arguments, *self.target, token=self.tokens["dashboard"])
            self.assertEqual(outcome.returncode, 0, outcome)
        for token, said in (
            (None, "NOAUTH"), ("wrong", "NOAUTH"), (self.tokens["chat"] + "x", "NOAUTH"), (self.tokens["chat"], "FORBIDDEN")
        ):  # fmt: skip
            outcome = run("report", *self.target, token=token)
            self.assertEqual(outcome.returncode, 1, outcome)
            self.assertIn(said, outcome.stderr)

    def test_ping_succeeds_with_and_without_a_token(self):
        address = f"127.0.0.1:{self.service.port}"
        for token, said in ((None, "alive, but NOAUTH"), ("wrong", "alive, but NOAUTH"), (self.tokens["chat"], "PONG")):
            outcome = run("ping", address, token=token)
            self.assertEqual(outcome.returncode, 0, outcome)
            self.assertTrue(outcome.stdout.startswith(said), outcome)

    def test_bench_counts_with_a_token_of_its_scope(self):
        flags = ["--requests", "200", "--warmup", "0", "--connections", "4", "--users", "50", "--json", "--quiet"]
        outcome = run("bench", *self.target, *flags, token=self.tokens["chat"])
        self.assertEqual(outcome.returncode, 0, outcome)
        self.assertEqual(json.loads(outcome.stdout)["allowed"], 200)
        outcome = run("bench", *self.target, *flags)
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("NOAUTH", outcome.stderr)
