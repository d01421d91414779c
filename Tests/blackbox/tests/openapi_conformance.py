"""Tests the HTTP API against its OpenAPI document, docs/openapi.json. Schemathesis sends valid and invalid requests,
which it generates from the document, and checks that the document allows each response."""

import os
import re
import subprocess
import sys

from support import citus, processes, settings
from support.case import Case
from support.nightly import IS_LONG
from support.service import command, environment
from support.waiting import TIMEOUT_SECONDS, wait_until


class OpenAPIConformance(Case):
    FLAGS = ("--authentication", "required")
    EXAMPLES = 40 if IS_LONG and not citus.is_asked_for() else 8
    """How many requests Schemathesis generates at most, per operation and kind of data. A report takes a second where Citus distributes
    the users."""
    PHASES = "examples,coverage,fuzzing,stateful" if IS_LONG else "examples,fuzzing"
    """`coverage` are the limits of each parameter, alone and together, and most of the requests."""

    def test_every_response_matches_the_openapi_document(self):
        self.assert_conforms("dashboard", 300)

    def test_every_response_about_messages_matches_it(self):
        self.assert_conforms("chat", 150, "--include-path-regex", "^/v1/usage/.*/(?!commit$)")

    def test_every_response_to_a_commit_matches_it(self):
        # More than the key holds is refused, and a schema cannot tell how much that is.
        self.assert_conforms("chat", 30, "--include-path-regex", "^/v1/usage/.*/commit$", "--exclude-checks", "positive_data_acceptance")

    def test_every_response_to_a_change_matches_it(self):
        # A plan's members may contradict each other, which a schema cannot tell.
        self.assert_conforms("operator", 100, "--include-path-regex", "^/v1/users/", "--exclude-checks", "positive_data_acceptance")

    def assert_conforms(self, scope, requests, *flags):
        """Sends at least so many requests with a token of the scope, of 40 examples."""
        token = command("token", "create", scope, "--scope", scope, database_url=self.database_url).stdout.strip()
        bearer = {"Authorization": f"Bearer {token}"}
        wait_until(lambda: self.service.http("GET", "/metrics", headers=bearer).status == 200, "the token is known")
        for plan, used in (("paid", 700), ("trial", 41), ("pro", 3)):
            self.psql.run(f"select set_plan('{self.user()}', '{plan}')")
            self.psql.run(f"select increment_and_check_usage('7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11', {used})")
        ran = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "run",
                f"http://127.0.0.1:{self.service.http_port}/v1/openapi.json",
                "--checks", "all", "--seed", str(settings.seed), "--max-examples", str(self.EXAMPLES), "--phases", self.PHASES,
                "--generation-database", "none", "--header", f"Authorization: Bearer {token}",
                "--continue-on-failure", "--no-color", *flags,
            ],
            capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=processes.directory(),
            env=environment(COLUMNS="200", SCHEMATHESIS_HOOKS="support.openapi_hooks", PYTHONPATH=os.environ["PYTHONPATH"]),
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stdout.replace(token, "TOKEN") + ran.stderr)
        generated = re.search(r"(\d+) generated", ran.stdout)
        self.assertTrue(generated, ran.stdout)
        self.assertGreater(int(generated[1]), requests * self.EXAMPLES // 40, "Schemathesis sent too few requests")
        if os.environ.get("HEADROOM_TEST_VERBOSE"):
            print(ran.stdout)
        self.assertNotIn("level=error", self.service.log())
