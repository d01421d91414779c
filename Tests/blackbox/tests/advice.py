"""No hint, error or page advises to give rights to roles that all users of an application have."""

import re
import unittest
from pathlib import Path

from support.printed import ROOT

PLACES = ("sql", "Sources", "docs", "deploy", "clients", "integrations", "Examples", "README.md", "SECURITY.md")
KINDS = {".sql", ".swift", ".md", ".sh", ".yaml", ".yml", ".py", ".js", ".ts"}
OF_USERS = {"public", "anon", "authenticated", "authenticator", "headroom_user"}
"""Roles in which users come, and the login of PostgREST."""
ROLE_GRANT = re.compile(r"\bgrant\s+([\w, ]+?)\s+to\s+[\"'`]*([\w%\\(]+)", re.IGNORECASE)
HINT = re.compile(r"\bhint\s*=\s*(.*?);", re.IGNORECASE | re.DOTALL)


def files():
    for place in PLACES:
        path = Path(ROOT, place)
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (each for each in found if each.suffix in KINDS and each.is_file() and "node_modules" not in each.parts)


def role_grants(text):
    """Memberships that a text grants: roles and member. Rights on objects have ON."""
    for found in ROLE_GRANT.finditer(text):
        granted = set(re.findall(r"\w+", found[1].lower()))
        if "on" not in granted:
            yield granted, found[2].lower()


class Advice(unittest.TestCase):
    def test_no_role_of_users_becomes_a_member_of_headrooms_roles(self):
        seen = set()
        for path in files():
            for granted, member in role_grants(path.read_text()):
                seen |= granted
                if member in OF_USERS:
                    self.assertFalse(granted & {"headroom_owner", "headroom_service", "headroom_operator", "headroom_dashboard"}, path)
        self.assertGreaterEqual(seen, {"headroom_owner", "headroom_service", "headroom_operator", "headroom_dashboard"})

    def test_functions_that_everybody_may_call_advise_no_grant(self):
        hints = [(path, hint) for path in files() if "functions" in path.parts for hint in HINT.findall(path.read_text())]
        self.assertGreater(len(hints), 20)
        for path, hint in hints:
            self.assertNotRegex(hint, r"(?i)\b(grant\b.*\bto|alter role|inherit|bypassrls|superuser)\b", path)

    def test_nothing_advises_to_turn_row_level_security_off(self):
        for path in files():
            self.assertNotRegex(path.read_text(), r"(?i)disable row level security|\balter role \S+ (inherit|bypassrls|superuser)\b", path)
