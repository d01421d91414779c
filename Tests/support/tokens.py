"""Creating tokens, and the base class of tests with tokens."""

from .case import Case
from .service import succeed
from .waiting import wait_until
from .wire import Closed


def token(case, name, *scopes, days=None):
    """Creates a token as an operator does; returns its number and its text."""
    flags = [word for scope in scopes for word in ("--scope", scope)] + (["--expires-in-days", str(days)] if days else [])
    created = succeed("token", "create", name, *flags, database_url=case.database_url)
    return int(created.stderr.split()[1]), created.stdout.strip()


class TokenCase(Case):
    token = classmethod(token)

    @classmethod
    def revoke(cls, number):
        succeed("token", "revoke", str(number), database_url=cls.database_url)

    def connect(self, token=None, name=None, service=None):
        connection = (service or self.service).connect()
        self.addCleanup(connection.close)
        if token:
            self.assertEqual(connection.send_command(f"AUTH {name} {token}" if name else f"AUTH {token}"), "+OK")
        return connection

    def assert_closed_with(self, connection, code):
        """Checks that the next request gets the code, and that the connection then ends."""
        def last_reply():
            try:
                return connection.send_command("PING")
            except (Closed, ConnectionError):
                return "closed"

        reply = wait_until(lambda: (r := last_reply()) != "+PONG" and r, f"the connection ends with {code}")
        if reply != "closed":
            self.assertTrue(reply.startswith(f"-{code} "), reply)
            self.assertTrue(reply.endswith("closing"), reply)
        connection.read_to_end()
