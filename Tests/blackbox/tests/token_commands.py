"""The commands `headroom token`."""

import json
import socket

from support import processes, settings
from support.service import command, environment
from support.tokens import TokenCase


class TokenCommands(TokenCase):
    FLAGS = None

    def test_a_token_is_printed_once_and_alone(self):
        created = command("token", "create", "backend", "--scope", "operator", "--scope", "chat", "--expires-in-days", "30",
                       database_url=self.database_url)  # fmt: skip
        self.assertRegex(created.stdout, r"^headroom_[A-Za-z0-9_-]{43}\n$")
        self.assertRegex(created.stderr, r"^token \d+ of backend \(chat, operator, for 30 days\): store it, it is not shown again\n")
        self.assertNotIn(created.stdout.strip(), created.stderr)
        listed = command("token", "list", database_url=self.database_url).stdout
        self.assertRegex(listed, r"\d+ +backend +chat operator +live +- +20\d\d-")
        self.assertNotIn("headroom_", listed)
        first, second = (self.token("a", "chat")[1] for _ in range(2))
        self.assertNotEqual(first, second)

    def test_invalid_arguments_are_refused_and_create_nothing(self):
        url = self.database_url
        before = self.psql.number("select count(*) from headroom.tokens")
        for arguments in [
            ("create", "backend"), ("create", "Backend", "--scope", "chat"), ("create", "default", "--scope", "chat"),
            ("create", "a b", "--scope", "chat"), ("create", "", "--scope", "chat"), ("create", "a" * 65, "--scope", "chat"),
            ("create", "a", "--scope", "admin"), ("create", "a", "--scope", "chat", "--expires-in-days", "0"), ("create",),
            ("revoke", "backend"), ("revoke",),
        ]:  # fmt: skip
            ran = command("token", *arguments, database_url=url)
            self.assertEqual(ran.returncode, 64, (arguments, ran.stderr))
            self.assertEqual(ran.stdout, "")
        self.assertEqual(self.psql.number("select count(*) from headroom.tokens"), before)
        ran = command("token", "revoke", "4711", database_url=url)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("headroom token list", ran.stderr)

    def test_creator_and_revoker_are_recorded(self):
        url = self.database_url
        self.psql.run("create role token_ann login in role headroom_operator; create role token_bob login in role headroom_dashboard")
        try:
            created = command("token", "create", "b", "--scope", "chat", database_url=url.replace("user=postgres", "user=token_ann"))
            number = created.stderr.split()[1]
            self.assertEqual(command("token", "revoke", number, database_url=url).stdout, f"token {number} of b is revoked\n")
            entry = next(
                row for row in map(json.loads, command("token", "list", "--json", database_url=url).stdout.splitlines())
                if row["id"] == int(number)
            )  # fmt: skip
            self.assertEqual((entry["created_by"], entry["revoked_by"], entry["state"]), ("token_ann", "postgres", "revoked"))
            self.assertEqual((entry["scopes"], entry["last_used_at"], entry["expires_at"]), (["chat"], None, None))
            for login in ("token_bob", "backend"):
                ran = command("token", "create", "c", "--scope", "chat", database_url=url.replace("user=postgres", f"user={login}"))
                self.assertEqual(ran.returncode, 1, ran.stdout)
                self.assertIn("headroom_operator", ran.stderr)
                self.assertEqual(ran.stdout, "")
        finally:
            self.psql.run("drop role token_ann; drop role token_bob")

    def test_a_missing_database_or_schema_is_reported(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ran = command("token", "list", database_url=f"host=127.0.0.1 port={free.getsockname()[1]} user=postgres")
        self.assertEqual(ran.returncode, 69, ran.stderr)
        empty = self.cluster.url(self.cluster.new_database())
        for arguments in (("list",), ("create", "a", "--scope", "chat"), ("revoke", "1")):
            ran = command("token", *arguments, database_url=empty)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
            self.assertIn("headroom migrate", ran.stderr)

    def test_no_flag_takes_a_token(self):
        for arguments in (("--help",), ("serve", "--help"), ("token", "create", "--help"), ("token", "revoke", "--help")):
            shown = processes.completed([settings.binary, *arguments], env=environment()).stdout
            self.assertNotRegex(shown, r"--(token|password|secret)\b[^-]")
