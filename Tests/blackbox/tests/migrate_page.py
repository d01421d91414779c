"""docs/migrate-a-counter.md: a counter in Redis, and one in a table, moved as printed while messages are counted."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import redis
from support import processes, settings
from support.case import Case
from support.nightly import nightly
from support.printed import ROOT, blocks, pattern
from support.service import environment
from support.waiting import TIMEOUT_SECONDS, wait_until

PAGE = "docs/migrate-a-counter.md"
LIMIT = 500
USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
DRIVER = """
import json, os, sys, threading, uuid
from both import may_send

os.environ["DECIDES"] = sys.argv[1]
if sys.argv[2] == "once":
    print(json.dumps(may_send(sys.argv[3], sys.argv[4])))
else:
    counted = dict.fromkeys(sys.argv[3:], 0)
    ended = threading.Event()

    def send(user):
        while not ended.is_set():
            counted[user] += may_send(user, str(uuid.uuid4()))
            if counted[user] == 1:
                # One write: `print` writes the line end separately, and another thread may come in between.
                print("sending\\n", end="", flush=True)
            # Twice a second: no user reaches the limit, however long the steps take on a busy machine.
            ended.wait(0.5)

    # A thread that fails ends the program, so that nobody waits for its message.
    threading.excepthook = lambda failure: (sys.excepthook(*failure[:3]), os._exit(1))
    threads = [threading.Thread(target=send, args=[user]) for user in counted]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    print(json.dumps(counted))
"""


def printed(heading, language):
    return [block.text for block in blocks(PAGE) if block.heading == "## " + heading and block.language == language]


def programs():
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?\n)```$", Path(ROOT, PAGE).read_text(), re.S | re.M))


class MigratePage(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run("create role counter_operator login in role headroom_operator")
        cls.operator = cls.database_url.replace("user=postgres", "user=counter_operator")
        cls.directory = processes.directory()
        for file, text in {**programs(), "drive.py": DRIVER}.items():
            Path(cls.directory, file).write_text(text)
        cls.exports = printed("Export the counts", "sh")
        port = processes.free_port()
        cls.redis = processes.start(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""], log=f"{cls.directory}/redis.log"
        )
        cls.old = redis.Redis(port=port, decode_responses=True)
        wait_until(cls.is_up, "Redis answers")
        cls.variables = {"OLD_REDIS": f"redis://127.0.0.1:{port}", "OLD_DATABASE": cls.database_url,
                         "HEADROOM_URL": f"headroom://127.0.0.1:{cls.service.port}", "DATABASE_URL": cls.operator}  # fmt: skip

    @classmethod
    def is_up(cls):
        try:
            return cls.old.ping()
        except redis.ConnectionError:
            return False

    @classmethod
    def tearDownClass(cls):
        processes.stop(cls.redis)
        cls.psql.run("drop role counter_operator")
        super().tearDownClass()

    def environment(self):
        path = os.pathsep.join([os.path.dirname(settings.binary), os.path.dirname(sys.executable), os.environ["PATH"]])
        return environment(PATH=path, PYTHONPATH=str(Path(ROOT, "clients/python")), **self.variables)

    def shell(self, text):
        ran = processes.completed(["bash", "-euo", "pipefail", "-c", text], cwd=self.directory, env=self.environment())
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def export(self, number):
        Path(self.directory, "export.sh").write_text(self.exports[number])

    def level(self, pause=0):
        """How many users were levelled, and left over."""
        Path(self.directory, "level.sql").write_text(programs()["level.sql"].replace("pg_sleep(10)", f"pg_sleep({pause})"))
        shown = self.shell(printed("Bring over the counts", "sh")[0])
        return tuple(map(int, re.search(r"levelled \| left_over *\n[-+]+\n +(\d+) \| +(\d+)", shown).groups()))

    def prepare(self):
        for sql in printed("Prepare", "sql"):
            self.psql.run(sql)

    def key(self, user):
        return f"usage:{user}:{time.strftime('%Y-%m', time.gmtime())}"

    def counts(self, users):
        """The counts of both sides."""
        return [(int(self.old.get(self.key(user))), self.count(user)) for user in users]

    def drive(self, decides, *arguments):
        process = processes.start(
            [sys.executable, "drive.py", decides, *arguments], cwd=self.directory, env=self.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(processes.stop, process)
        return process

    def send(self, decides, user, message):
        process = self.drive(decides, "once", user, message)
        return json.loads(process.communicate(timeout=TIMEOUT_SECONDS)[0])

    def begin(self, decides, users):
        process = self.drive(decides, "on", *users)
        for _ in users:
            self.assertEqual(process.stdout.readline(), "sending\n")
        return process

    def end(self, process):
        """How many messages each user could send."""
        return json.loads(process.communicate(timeout=TIMEOUT_SECONDS)[0].splitlines()[-1])

    def test_every_block_is_run(self):
        self.assertEqual([(block.heading.strip("# "), block.language) for block in blocks(PAGE)], [
            ("Prepare", "sql"), *[("Export the counts", "sh")] * 3, ("Put the users on their plans", "sql"),
            ("Put the users on their plans", "sh"), ("Put the users on their plans", "sql"),
            ("Count on both sides", "python"), ("Bring over the counts", "sql"),
            ("Bring over the counts", "sh"), ("Let Headroom decide", "sql"),
            *[("Import from a CSV file", language) for language in ("csv", "sh", "text", "sh")],
        ])  # fmt: skip
        self.assertEqual(set(programs()), {"plans.sql", "both.py", "level.sql", "users.csv"})

    @nightly("a file is imported as printed")
    def test_from_redis_while_messages_are_counted(self):
        self.prepare()
        self.export(0)
        self.old.flushall()
        before = dict(zip([self.user() for _ in range(6)], (10, 120, 0, 37, LIMIT - 1, LIMIT)))
        for user, used in before.items():
            self.old.set(self.key(user), used)
        users = list(before)
        for _ in range(2):
            self.shell(printed("Put the users on their plans", "sh")[0])
        self.assertEqual({self.usage(user)[:2] for user in users}, {("paid", LIMIT)})
        busy = self.begin("old", users[:3])
        self.assertTrue(self.send("old", users[3], "one"))
        # As printed: long enough for every message that is on its way. Users who send meanwhile are left over.
        levelled, left_over = self.level(pause=10)
        self.assertEqual(levelled, 3)
        self.assertIn(left_over, (2, 3))
        for user in users[3:]:
            self.assertEqual(len(set(self.counts([user])[0])), 1)
        sent = self.end(busy)
        self.assertEqual(self.level(), (2, 0))
        again = self.begin("old", users[:3])
        # Longer than a message is on its way, which would be missing on one side.
        self.assertEqual(self.level(pause=4)[0], 0)
        more = self.end(again)
        self.assertEqual(self.level(), (0, 0))
        for user in users[:3]:
            self.assertEqual(self.counts([user]), [(before[user] + sent[user] + more[user],) * 2])
        self.assertEqual(self.audited(users[4]), [["counts of the old counter"]])
        # Some backends decide by the old counter, some by Headroom: each lets the last message through, and only that.
        for sql in printed("Let Headroom decide", "sql"):
            self.psql.run(sql)
        last, full = users[4:]
        self.assertEqual([self.send(side, last, f"{side}-{n}") for n in range(2) for side in ("headroom", "old")],
                         [True, False, False, False])  # fmt: skip
        self.assertEqual([self.send(side, full, side) for side in ("headroom", "old")], [False, False])
        mixed = [self.begin(side, users[:3]) for side in ("headroom", "old")]
        allowed = [self.end(process) for process in mixed]
        for user in users[:3]:
            total = before[user] + sent[user] + more[user] + sum(each[user] for each in allowed)
            self.assertEqual(self.counts([user]), [(total, total)])
        self.assertEqual(self.counts([last, full]), [(LIMIT, LIMIT)] * 2)

    def usage(self, user):
        answer = self.service.http("GET", f"/v1/usage/{user}").json
        return answer["plan"], answer["limit"], answer["used"]

    def audited(self, user):
        return self.psql.run(f"select reason from audit_trail where user_id = '{user}' and action in ('insert', 'update')")

    def test_a_trial_that_has_begun(self):
        self.prepare()
        self.export(0)
        self.old.flushall()
        self.assertEqual(self.psql.run(printed("Put the users on their plans", "sql")[1]), [["trial", "2", "3"]])
        self.old.set(self.key(USER), 41)
        self.assertEqual((self.level(), self.level()), ((1, 0), (0, 0)))
        self.assertRegex(self.send_command(f"CONSUME {USER}"), "state=trial .* used=42 limit=100 .* day=2 days=3")

    @nightly("a file is imported as printed")
    def test_from_a_table_and_from_stored_messages(self):
        self.prepare()
        self.psql.run("create table quotas (user_id uuid, month text, used integer, primary key (user_id, month));"
                      "create table messages (id bigserial primary key, user_id uuid, created_at timestamptz default now())")  # fmt: skip
        from_table, from_messages = self.user(), self.user()
        self.psql.run(f"insert into quotas values ('{from_table}', to_char(now() at time zone 'UTC', 'YYYY-MM'), 123),"
                      f" ('{from_table}', '2020-01', 7)")  # fmt: skip
        self.psql.run(f"insert into messages (user_id) select '{from_messages}' from generate_series(1, 45);"
                      f"insert into messages (user_id, created_at) values ('{from_messages}', '2020-01-31T23:59:59Z')")  # fmt: skip
        for number, user, used in ((1, from_table, 123), (2, from_messages, 45)):
            self.export(number)
            self.assertEqual(self.shell("sh export.sh"), f"user,plan,used\n{user},paid,{used}\n")
            self.shell(printed("Put the users on their plans", "sh")[0])
            self.assertEqual(self.level(), (1, 0))
            self.assertEqual(self.level(), (0, 0))
            self.assertEqual(self.usage(user), ("paid", LIMIT, used))
            self.assertIn(f" used={used + 1} ", self.send_command(f"CONSUME {user}"))

    def test_a_file_is_imported_as_printed(self):
        heading = "Import from a CSV file"
        (expected,), (imports, export) = printed(heading, "text"), printed(heading, "sh")
        self.assertRegex(self.shell(imports), f"^{pattern(expected)}$")
        for row in programs()["users.csv"].splitlines()[1:]:
            user, plan, used = row.split(",")
            answer = self.service.http("GET", f"/v1/usage/{user}").json
            self.assertEqual((answer["plan"], answer["used"]), (plan, int(used)))
        # A row that an export has twice, as SCAN may return a key twice.
        user = self.user()
        Path(self.directory, "export.sh").write_text(f"printf 'user,plan,used\\n{user},paid,5\\n{user},paid,5\\n'\n")
        self.shell(export)
        self.assertIn("imported 1 row with 5 messages", self.shell("headroom import users.csv"))
        self.assertEqual(self.count(user), 5)
