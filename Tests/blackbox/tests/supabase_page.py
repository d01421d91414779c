"""docs/supabase.md: its SQL and its programs as printed, in a database as in a Supabase project."""

import json
import os
import re
import unittest
import uuid
from pathlib import Path

from support import processes, settings, supabase
from support.case import needs_one_machine
from support.nightly import nightly
from support.postgres import SQLError
from support.printed import ROOT, blocks
from support.service import Service, environment
from support.users import new_user
from support.wire import Answer

PAGE = "docs/supabase.md"
DRIVER = """
const { default: _, ...programs } = await import(`./${process.argv[2]}`);
try {
  console.log(JSON.stringify({ result: await programs[process.argv[3]](...JSON.parse(process.argv[4])) ?? null }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
"""
SENTENCES = {"banner", "notice", "label", "state_label", "accessible", "steps"}
LIVE = """
import { watch } from "./live.js";

const shown = [];
const channel = watch(process.env.SUBJECT, (usage) => shown.push(usage.used));
for (const listener of channel.listeners) await listener.handler();
console.log(JSON.stringify({ listeners: channel.listeners, shown }));
"""


def printed(heading, language):
    return [block.text for block in blocks(PAGE) if block.heading == "## " + heading and block.language == language]


def programs():
    with open(os.path.join(ROOT, PAGE)) as file:
        return dict(re.findall(r"^`(\w+\.js)`:\n\n```js\n(.*?\n)```$", file.read(), re.S | re.M))


@nightly("`roles.Supabase` has the rights of its roles")
@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class SupabasePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = supabase.project()
        cls.owner = cls.cluster.session("project")
        cls.owner.run("set session authorization owner")
        cls.owner.run("create publication supabase_realtime")
        cls.directory = processes.directory()
        cls.run_shell(printed("Connect", "sh")[0])
        for heading in ("Connect", "Read your own row", "Count from SQL"):
            for sql in printed(heading, "sql"):
                cls.owner.run(sql)
        url = supabase.url(cls.cluster).replace("user=owner", "user=backend")
        cls.service = Service(database_url=url)
        cls.api = supabase.API(cls.cluster)
        for file, text in {**programs(), "supabase.js": supabase.CLIENT, "driver.mjs": DRIVER, "live.mjs": LIVE}.items():
            Path(cls.directory, file).write_text(text)
        Path(cls.directory, "package.json").write_text('{"type": "module"}')

    @classmethod
    def tearDownClass(cls):
        cls.api.stop()
        cls.service.stop()
        cls.owner.close()
        cls.cluster.stop_immediately()

    @classmethod
    def run_shell(cls, text):
        """The block with the database's address in place of the project's."""
        text = re.sub(r"(DATABASE_URL=)'[^']*'", rf"\1'{supabase.url(cls.cluster)}'", text)
        path = os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])
        ran = processes.completed(["bash", "-euo", "pipefail", "-c", text], cwd=cls.directory, env=environment(PATH=path))
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def node(self, arguments, role, user):
        ran = processes.completed(
            ["node", *arguments], cwd=self.directory, env=environment(URL_OF_THE_API=self.api.url, ROLE=role, SUBJECT=user or "")
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def call(self, file, function, *arguments, role="authenticated", user=None):
        """The result of a program's function, or the text of its error."""
        answer = self.node(["driver.mjs", file, function, json.dumps(arguments)], role, user)
        return answer.get("error") or answer["result"]

    def sql(self, role, user, statement):
        """A statement through the API, which commits."""
        answer = self.api.execute(role, user, statement)
        return answer["error"]["message"] if answer["error"] else answer["data"]

    def subscriber(self, used, plan="paid"):
        user = new_user()
        self.assertIn("+OK ", self.service.send_command(f"SETPLAN {user} {plan}"))
        self.assertIn("+ALLOWED ", self.service.send_command(f"CONSUME {user}"))
        self.owner.run(f"update message_usage set message_count = {used} where user_id = '{user}'")
        return user

    def used(self, user):
        return Answer(self.service.send_command(f"CHECK {user}")).used

    def messages(self, user):
        return int(self.owner.run(f"select count(*) from messages where user_id = '{user}'")[0][0])

    def test_every_block_is_run(self):
        languages = [(block.heading, block.language) for block in blocks(PAGE)]
        expected = {"Connect": ("sh", "sql"), "Read your own row": ("js", "sql", "js"), "Count from SQL": ("sql", "js"),
                    "Ask before the model": ("ts",), "Live changes": ("sql", "js")}  # fmt: skip
        self.assertEqual(languages, [("## " + heading, language) for heading, each in expected.items() for language in each])
        self.assertEqual(set(programs()), {"row.js", "usage.js", "send.js", "live.js"})

    def test_a_signed_in_user_reads_the_own_row_and_nothing_else(self):
        ann, ben = self.subscriber(used=760), self.subscriber(used=5)
        row = self.call("row.js", "row", user=ann)
        self.assertEqual((row["message_count"], row["limit"]), (760, 800))
        self.assertEqual(set(row), {"billing_period", "message_count", "limit"})
        self.assertEqual(self.call("row.js", "row", user=ben)["message_count"], 5)
        self.assertIsNone(self.call("row.js", "row", user=new_user()))
        # After a trial there is one row, too.
        self.service.send_command(f"CONSUME {(eve := new_user())} 41")
        self.service.send_command(f"SETPLAN {eve} paid")
        self.assertEqual(self.call("row.js", "row", user=eve)["message_count"], 0)
        months = "select json_agg(usage.used order by usage.used) from monthly_usage as usage"
        self.assertEqual(self.sql("authenticated", eve, months), [0, 41])
        everything = "select json_agg(distinct user_id) from message_usage"
        self.assertEqual(self.sql("authenticated", ann, everything), [ann])
        self.assertIsNone(self.sql("authenticated", None, everything))
        self.assertIn("permission denied", self.call("row.js", "row", role="anon"))
        self.assertEqual(len(self.sql("service_role", None, everything)), int(self.owner.run(
            "select count(distinct user_id) from message_usage")[0][0]))  # fmt: skip

    def test_the_function_gives_the_own_answer(self):
        ann = self.subscriber(used=760)
        usage = self.call("usage.js", "usage", user=ann)
        self.assertEqual((usage["user"], usage["tier"], usage["display"], usage["remaining"]), (ann, "prominent", "compact", 40))
        self.assertIsNone(self.call("usage.js", "usage", user=new_user()))
        self.assertIn("permission denied", self.call("usage.js", "usage", role="anon", user=ann))

    def test_answers_have_the_fields_of_http_without_sentences_and_instants_in_whole_seconds(self):
        # A trial begins at the microsecond of its first message.
        trial, paid = new_user(), self.subscriber(used=799)
        counted = "select to_json(answer) from increment_and_check_usage('{}') as answer".format
        for user in (trial, paid):
            answer = self.sql("authenticated", user, counted(user))
            usage, in_full = self.call("usage.js", "usage", user=user), self.service.http("GET", f"/v1/usage/{user}").json
            for shown in (answer, usage):
                self.assertEqual(shown.keys() & SENTENCES, set())
                applying = {name for name, value in shown.items() if value is not None}
                same = (applying & in_full.keys()) - {"status", "crossed", "reason"}
                self.assertGreaterEqual(same, {"user", "state", "tier", "display", "remaining", "resets" if user == paid else "expires"})
                self.assertEqual({name: shown[name] for name in same}, {name: in_full[name] for name in same})
                self.assertNotRegex(json.dumps(shown), r":\d\d\.\d")
            self.assertRegex(usage["updated_at"], r"T\d\d:\d\d:\d\d\+00:00$")
        row = "select to_json(usage) from monthly_usage as usage where user_id = '{}'".format
        self.assertNotRegex(json.dumps(self.sql("service_role", None, row(trial))), r":\d\d\.\d")

    def test_the_table_of_rights(self):
        ann, ben = self.subscriber(used=1), self.subscriber(used=1)
        count = "select to_json(answer) from increment_and_check_usage('{}') as answer".format
        change = f"update message_usage set message_count = 0 where user_id = '{ann}' returning 'null'"
        views = ("current_usage", "monthly_usage", "billing_period_report", "audit_trail")
        closed = [f"select to_json(count(*)) from {view}" for view in views if view != "monthly_usage"]
        closed += [f"select to_json(reset_usage('{ann}'))", f"select to_json(set_plan('{ann}', 'pro'))",
                   f"select to_json(grant_messages('{ann}', 5))"]  # fmt: skip
        writes = [change, f"delete from message_usage where user_id = '{ann}' returning 'null'",
                  f"insert into message_usage (user_id, billing_period) values ('{ann}', 'free') returning 'null'"]  # fmt: skip
        for role in ("anon", "authenticated"):
            for statement in (*closed, *writes):
                self.assertIn("permission denied", str(self.sql(role, ann, statement)), f"{role}: {statement}")
        self.assertEqual(self.sql("authenticated", ann, count(ann))["used"], 2)
        refused = self.sql("authenticated", ann, count(ben))
        self.assertIn("own user only", refused)
        self.assertNotRegex(refused, r"(?i)\bgrant\b", "whoever obeys would let each user count for all")
        self.assertIn("authenticated must not have them", refused)
        self.assertIn("permission denied", self.sql("anon", ann, count(ann)))
        self.assertEqual(self.sql("service_role", None, count(ben))["used"], 2)
        self.assertIsNone(self.sql("service_role", None, change))
        last = f"select to_json(actor) from audit_trail where user_id = '{ann}' order by id desc limit 1"
        self.assertEqual(self.sql("service_role", None, last), "service_role")
        for statement in closed:
            self.assertNotIn("permission denied", str(self.sql("service_role", None, statement)), statement)

    def test_a_message_is_counted_and_stored_once_and_at_the_limit_neither(self):
        ann, first = self.subscriber(used=799), str(uuid.uuid4())
        self.assertEqual(self.call("send.js", "send", first, "hello", user=ann)["status"], "ALLOWED")
        self.assertEqual(self.call("send.js", "send", first, "hello", user=ann), {"status": "REPEATED"})
        blocked = self.call("send.js", "send", str(uuid.uuid4()), "more", user=ann)
        self.assertEqual(blocked["status"], "BLOCKED")
        self.assertEqual((blocked["reason"], blocked["remaining"]), ("limit_reached", 0))
        self.assertEqual((self.used(ann), self.messages(ann)), (800, 1))
        # The id is another user's.
        ben = self.subscriber(used=1)
        self.assertEqual(self.call("send.js", "send", first, "hello", user=ben), {"status": "REPEATED"})
        self.assertEqual((self.used(ben), self.messages(ben)), (1, 0))

    def test_no_other_way_leads_to_a_message(self):
        ann = self.subscriber(used=1)
        insert = f"insert into messages (id, user_id, body) values ('{uuid.uuid4()}', '{ann}', 'x') returning 'null'"
        self.assertRegex(str(self.sql("authenticated", ann, insert)), "row-level security")
        self.assertIn("permission denied", self.call("send.js", "send", str(uuid.uuid4()), "x", role="anon", user=ann))
        nobody = self.call("send.js", "send", str(uuid.uuid4()), "x")
        self.assertIn("null value", nobody)
        self.call("send.js", "send", str(uuid.uuid4()), "x", user=ann)
        self.assertEqual(self.sql("authenticated", ann, "select to_json(count(*)) from messages"), 1)
        self.assertEqual(self.sql("authenticated", self.subscriber(used=1), "select to_json(count(*)) from messages"), 0)

    def test_the_table_is_published_and_the_program_listens_to_the_own_rows(self):
        member = "select pg_has_role('owner', 'headroom_owner', 'USAGE')"
        before = self.owner.run(member)
        with self.assertRaisesRegex(SQLError, "must be owner"):
            self.owner.run("alter publication supabase_realtime add table public.message_usage")
        for sql in printed("Live changes", "sql"):
            self.owner.run(sql)
        published = self.owner.run("select tablename from pg_publication_tables where pubname = 'supabase_realtime'")
        self.assertEqual((published, self.owner.run(member)), ([["message_usage"]], before))
        ann = self.subscriber(used=640)
        answer = self.node(["live.mjs"], "authenticated", ann)
        rows = {"schema": "public", "table": "message_usage", "filter": f"user_id=eq.{ann}"}
        self.assertEqual(
            [(each["kind"], each["filter"]) for each in answer["listeners"]],
            [("postgres_changes", {"event": event, **rows}) for event in ("INSERT", "UPDATE")],
        )
        self.assertEqual(answer["shown"], [640, 640])
        # A migration finds nothing to restore.
        self.assertNotIn("restored", self.run_shell(printed("Connect", "sh")[0]))
