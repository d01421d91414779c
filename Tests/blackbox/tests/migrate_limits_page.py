"""docs/migrate-model-limits.md: teams, members and models of LiteLLM, and a counter for each model, moved as printed."""

import os
import uuid
from datetime import datetime, timezone
from pathlib import Path

from support import processes, settings
from support.case import Case
from support.printed import blocks
from support.service import environment
from support.wire import Answer

PAGE = "docs/migrate-model-limits.md"
NAMESPACE = uuid.UUID("0b1f2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d")
LITELLM = """
create table "LiteLLM_TeamTable" (team_id text primary key);
create table "LiteLLM_SpendLogs" (
    request_id text primary key default gen_random_uuid(), call_type text not null default 'acompletion',
    "startTime" timestamp(3) not null default (now() at time zone 'UTC' - interval '1 second'), model_group text default 'large',
    "user" text default 'ann', team_id text default 'sales', status text default 'success'
);
insert into "LiteLLM_TeamTable" values ('sales'), ('support');
"""


def printed(heading, language):
    return [block.text for block in blocks(PAGE) if block.heading == "## " + heading and block.language == language]


class MigrateLimitsPage(Case):
    FLAGS = ("--user-namespace", str(NAMESPACE))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = processes.directory()

    def shell(self, text, **variables):
        path = os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])
        target = f"127.0.0.1:{self.service.port}"
        variables = environment(PATH=path, OLD_DATABASE=self.database_url, HEADROOM_TARGET=target, **variables)
        ran = processes.completed(["bash", "-euo", "pipefail", "-c", text], cwd=self.directory, env=variables)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def ask(self, request):
        return Answer(self.send_command(request))

    def test_every_block_is_run(self):
        self.assertEqual([(block.heading.strip("# "), block.language) for block in blocks(PAGE)], [
            *[("From LiteLLM", language) for language in ("sql", "sh", "sh", "sql")],
            *[("From a counter for each model", language) for language in ("sql", "sql", "sh")], ("If nobody chats meanwhile", "sh"),
        ])  # fmt: skip

    def test_from_litellm_while_messages_are_counted(self):
        (plan, enforced), (teams, counts) = printed("From LiteLLM", "sql"), printed("From LiteLLM", "sh")
        self.psql.run(LITELLM)
        self.psql.run(
            "insert into \"LiteLLM_SpendLogs\" (model_group, \"user\") select 'large', 'ann' from generate_series(1, 4) union all"
            " select 'gpt 5 (x)', 'bob' from generate_series(1, 3)"
        )
        self.psql.run("""
            insert into "LiteLLM_SpendLogs" (call_type, status, "startTime", team_id, model_group) values
                ('aembedding', 'success', now() at time zone 'UTC', 'sales', 'large'), ('acompletion', 'failure', now(), 'sales', 'large'),
                ('acompletion', 'success', '2020-01-31', 'sales', 'large'), ('acompletion', 'success', now(), null, 'large'),
                ('acompletion', 'success', now() at time zone 'UTC' + interval '1 hour', 'sales', 'large')
        """)
        self.psql.run(plan)
        self.shell(teams)
        # The callback counts meanwhile.
        self.assertEqual(self.ask("CONSUME sales 2 model=large member=ann")["used"], "10")
        since = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S.%f}"
        for _ in range(2):
            self.shell(counts, SINCE=since)
        answers = Path(self.directory, "moved.log").read_text().splitlines()
        self.assertEqual([answer.split()[0] for answer in answers], ["+ALLOWED"] * 2)
        ann = self.ask("USAGE sales model=large member=ann")
        self.assertEqual((ann["used"], ann["model_used"], ann["member_used"]), (str(6 * 5 + 3), "6", "30"))
        self.assertEqual(self.ask("USAGE sales model=gpt_5__x_ member=bob")["member_used"], "3")
        self.assertEqual(self.ask("CONSUME sales 500 member=bob").status, "ALLOWED", "the plan is unenforced")
        self.psql.run(enforced)
        self.assertEqual(self.ask("CONSUME sales member=bob")["reason"], "member_limit_reached")
        allowed = self.ask("CONSUME sales model=large member=ann")
        self.assertEqual((allowed["model_limit"], allowed["model_used"]), ("100", "1"), "the window is fuller than the month")

    def test_from_a_counter_for_each_model(self):
        (tables, limits), (counts,) = printed("From a counter for each model", "sql"), printed("From a counter for each model", "sh")
        (imports,) = printed("If nobody chats meanwhile", "sh")
        self.psql.run(tables)
        month = f"{datetime.now(timezone.utc):%Y-%m}"
        self.psql.run("insert into model_limits values ('paid', 'large', 50), ('paid', 'small', 500)")
        for _ in range(2):
            self.psql.run(limits)
        for moves in (counts, imports):
            user = self.user()
            self.psql.run("delete from model_usage")
            self.psql.run(
                f"insert into model_usage values ('{user}', 'large', '{month}', 49), ('{user}', '', '{month}', 7),"
                f" ('{user}', 'large', '2020-01', 50), ('{user}', 'small', '{month}', 0)"
            )
            self.assertIn("+OK ", self.send_command(f"SETPLAN {user} paid"))
            for _ in range(2):
                self.shell(moves, DATABASE_URL=self.database_url)
            usage = self.ask(f"USAGE {user} model=large")
            self.assertEqual((usage["used"], usage["model_limit"], usage["model_used"]), ("56", "50", "49"))
            self.assertEqual([self.ask(f"CONSUME {user} model=large").status for _ in range(2)], ["ALLOWED", "BLOCKED"])
