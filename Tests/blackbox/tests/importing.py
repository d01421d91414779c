"""`headroom import`: users, plans and counts from another system, while the service counts."""

import random
import signal
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor

from support import processes, settings
from support.case import MID_MONTH, Case, needs_one_machine
from support.proxy import DatabaseProxy
from support.service import command, environment, succeed
from support.users import new_user
from support.waiting import wait_until
from support.wire import Answer

SUBSCRIPTION = """
select plan, started_at, expires_at, grace_until, billing_issue_at, unsubscribed_at, revoked_at, original_transaction_id
from headroom.subscriptions where user_id = '{user}' order by original_transaction_id
"""
SUBSCRIBER = """
select anchor_day, operator_anchor_day, trial_started_at, trial_ends_at, previous_plan, operator_previous_plan, operator_set_at
from headroom.subscribers where user_id = '{user}'
"""
USAGE = """
select billing_period, message_count, "limit", plan, plan_limit, state, started_at, resets_at, expires_at, previous_plan, renews,
    usable_until, held, released
from message_usage where user_id = '{user}' order by billing_period
"""
PLAN_CHANGES = "select action, before, after from headroom.audit_log where user_id = '{user}' and action = 'plan'"


class Import(Case):
    def file(self, *lines, end="\n"):
        path = processes.directory() + "/users.csv"
        with open(path, "w", newline="") as file:
            file.write("".join(line + end for line in lines))
        return path

    def run_import(self, *arguments, url=None, text=None, status=0):
        result = processes.completed(
            [settings.binary, "import", *arguments], cwd="/", input=text, env=environment(DATABASE_URL=url or self.database_url)
        )
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    def imported(self, *lines, flags=(), status=0):
        return self.run_import(self.file(*lines), *flags, status=status).stdout.splitlines()

    def usage(self, user):
        return Answer(self.send_command(f"USAGE {user}"))


class AsAnOperator(Import):
    CLOCK = MID_MONTH

    def test_a_row_becomes_what_setplan_makes_of_it(self):
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        states = {
            "paid": ["active", "cancelled", "grace_period", "billing_retry", "expired", "revoked"],
            "pro": ["active", "cancelled", "expired"], "trial": ["trial", "expired", "revoked"], "free": ["free", "revoked"],
        }  # fmt: skip
        lines, pairs = ["user,plan,state,started,expires,grace_until,anchor"], []
        for _ in range(150):
            plan = chance.choice(list(states))
            options = {
                "state": chance.choice(["", "", *states[plan]]),
                "started": chance.choice(["", "2026-01-02", "2026-03-14T00:00:00Z"]),
                "expires": chance.choice(["", "2026-02-01", "2027-03-14T00:00:00Z"]),
                "grace_until": chance.choice(["", "2026-03-20", "2026-03-01"]),
                "anchor": chance.choice(["", "1", "15", "31"]),
            }
            imported, operated = new_user(), new_user()
            lines.append(",".join([imported, plan, *options.values()]))
            given = " ".join(f"{name}={value}" for name, value in options.items() if value)
            self.assertIn("+OK ", self.send_command(f"SETPLAN {operated} {plan} {given}"))
            pairs.append((imported, operated, lines[-1]))
        self.assertEqual(self.imported(*lines), ["imported 150 rows with 0 messages"])
        for imported, operated, line in pairs:
            for query in (SUBSCRIPTION, SUBSCRIBER, USAGE, PLAN_CHANGES):
                of_import, of_operator = (self.psql.run(query.format(user=user)) for user in (imported, operated))
                self.assertEqual(of_import, of_operator, f"{line} (seed {seed})")
            one, other = (self.send_command(f"CONSUME {user}").replace(user, "") for user in (imported, operated))
            self.assertEqual(one, other, f"{line} (seed {seed})")

    def test_counts_are_those_of_the_period_and_messages_follow(self):
        users = [new_user() for _ in range(6)]
        self.imported(
            "period,used,user,plan,limit,anchor",
            f",412,{users[0]},paid,,",
            f"2026-03,413,{users[1]},paid,,",
            f"2026-02,414,{users[2]},paid,,31",
            f",,{users[3]},paid,unlimited,",
            f",800,{users[4]},paid,,",
            f",41,{users[5]},,,",
        )
        self.assertEqual([self.usage(user).used for user in users[:3]], [412, 413, 414])
        self.assertEqual(self.usage(users[3])["limit"], "unlimited")
        answers = [Answer(self.send_command(f"CONSUME {user}")) for user in users]
        self.assertEqual([answer.used for answer in answers], [413, 414, 415, 1, 800, 42])
        self.assertEqual([answer.status for answer in answers], ["ALLOWED"] * 4 + ["BLOCKED", "ALLOWED"])
        self.assertEqual((answers[2]["period"], answers[5]["period"]), ("2026-02", "trial"))
        self.assertEqual(answers[5]["plan"], "trial")

    def test_files_are_accepted_as_copy_pandas_and_spreadsheets_write_them(self):
        first, second = new_user(), new_user()
        began, ends = "2026-03-05 09:30:00+00", "2026-04-05 09:30:00+00"
        forms = {
            "COPY": f"user,plan,used,started,expires\n{first},paid,412,{began},{ends}\n{second},paid,17,{began},\n",
            "pandas": f"user,plan,used\n{first},paid,412.0\n{second},paid,17.0\n",
            "Excel": f'\ufeffUser,Plan,Used\r\n"{first.upper()}","paid","412"\r\n{second},paid,17\r\n,,\r\n\r\n',
            "Excel with semicolons": f"user;plan;used\r\n{first};paid;412\r\n{second};paid;17\r\n",
            "blanks": f'user, plan, used\n{first}, paid, 412\n{second}, "paid" , 17\n',
        }
        for form, text in forms.items():
            with self.subTest(form):
                for user in (first, second):
                    self.send_command(f"FORGET {user}")
                self.assertEqual(self.run_import("-", text=text).stdout.splitlines(), ["imported 2 rows with 429 messages"])
                self.assertEqual([self.usage(user).used for user in (first, second)], [412, 17])
        refused = self.run_import("-", "--check", text=f"user,plan,used\n{first},paid,\\N\n", status=1)
        self.assertIn("line 2, column used: has a word for a missing value", refused.stdout + refused.stderr)

    def test_earlier_periods_show_in_the_history(self):
        user = new_user()
        self.imported(
            "user,plan,period,used,limit", f"{user},paid,2026-01,700,", f"{user},,2026-02,750,1000", f"{user},paid,,3,",
            # A second period of February, and one of March, which is later than the open one.
            f"{user},,2026-02.2,40,", f"{user},,2026-03.2,9,",
        )  # fmt: skip
        history = self.service.connect()
        periods = [Answer(line) for line in history.send_list_command(f"HISTORY {user} 6")]
        history.close()
        self.assertEqual(
            [(one["period"], one.used, one["limit"]) for one in periods],
            [("2026-03", 3, "800"), ("2026-02.2", 40, "800"), ("2026-02", 750, "1000"), ("2026-01", 700, "800")],
        )

    def test_no_batch_is_imported_without_its_import(self):
        for begin in ("null", "0"):
            with self.assertRaisesRegex(Exception, "is not the next one"):
                self.psql.run(f"select headroom.import_batch(sha256('no file'), false, {begin}, 1, '{{}}', false)")

    def test_the_audit_log_names_the_file(self):
        user = new_user()
        self.imported("user,plan,used", f"{user},paid,5")
        entries = self.psql.run(
            f"select action, billing_period, after ->> 'count', reason, actor from headroom.audit_log where user_id = '{user}' order by id"
        )
        self.assertEqual(
            [entry[:4] for entry in entries],
            [["plan", None, None, "import of users.csv"], ["import", "2026-03", "5", "import of users.csv"]],
        )
        shown = command("audit", user, database_url=self.database_url)
        self.assertIn("import of users.csv", shown.stdout)


class Existing(Import):
    def test_whoever_is_counted_already_is_left_until_add_adds_the_count_once(self):
        counted, planned, new = new_user(), self.subscriber("pro"), new_user()
        self.send_command(f"CONSUME {counted} 3")
        lines = ["user,plan,used", f"{counted},paid,100", f"{planned},paid,200", f"{new},paid,300"]
        self.assertEqual(
            self.imported(*lines),
            [
                "imported 2 rows with 500 messages",
                "left 1 row of users whom Headroom counts already; --add adds their counts: line 2",
                "kept the users' other plans in 1 row: line 3",
            ],
        )
        self.assertEqual((self.usage(counted).used, self.usage(counted)["plan"]), (3, "trial"))
        self.assertEqual((self.usage(planned).used, self.usage(planned)["plan"]), (200, "pro"))
        added = self.imported(*lines, flags=["--add"])
        nothing_new = "rows had nothing new: imported before, or the plan is the same"
        self.assertEqual(added[:2], ["imported 1 row with 100 messages", f"2 {nothing_new}"])
        self.assertEqual(self.usage(counted)["plan"], "paid")
        period = self.usage(planned)["period"]
        of_period = f"select message_count from message_usage where billing_period = '{period}' and user_id = "
        self.assertEqual([self.psql.number(f"{of_period}'{user}'") for user in (counted, planned, new)], [100, 200, 300])
        for flags in ([], ["--add"]):
            self.assertIn("the file was imported before", self.imported(*lines, flags=flags)[0])
        # Another file with the same rows.
        again = self.imported(*lines, f"{new_user()},paid,1", flags=["--add"])
        self.assertEqual(again[:2], ["imported 1 row with 1 messages", f"3 {nothing_new}"])
        self.assertEqual([self.psql.number(f"{of_period}'{user}'") for user in (counted, planned, new)], [100, 200, 300])

    def test_counts_of_models_and_members_are_taken_over_once(self):
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, allowance)"
            " values ('paid', 'model', 'import-*', 50), ('paid', 'member', '*', 20)"
        )
        self.addCleanup(self.psql.run, "delete from headroom.plan_limits")
        user, counted = self.subscriber("paid"), self.subscriber("paid")
        ann, bob, silent, unknown = (new_user() for _ in range(4))
        self.send_command(f"CONSUME {counted} 2 model=import-a member={ann}")
        lines = [
            "user,plan,model,member,used",
            f"{user},paid,,,60", f"{user},paid,import-a,,30", f"{user},paid,import-b,,15", f"{user},paid,,{ann},20",
            f"{user},paid,other,,9", f"{counted},,import-a,,40", f"{counted},,,{bob},3",
            f"{silent},paid,import-a,,4", f"{unknown},,import-a,,5",
        ]  # fmt: skip
        left = [
            "left 1 row of users whom Headroom counts already; --add adds their counts: line 7",
            "left the counts of 2 rows whose models or members the users' plans do not limit: lines 6, 10",
        ]
        self.assertEqual(self.imported(*lines, flags=["--check"]), ["would import 6 rows with 132 messages", *left])
        self.assertEqual(self.imported(*lines), ["imported 6 rows with 132 messages", *left])
        self.assertEqual(self.imported(*lines, flags=["--add"])[0], "imported 1 row with 40 messages")
        again = self.imported(*lines, f"{new_user()},paid,,,1", flags=["--add"])
        self.assertEqual(again[:2], [
            "imported 1 row with 1 messages", "7 rows had nothing new: imported before, or the plan is the same",
        ])  # fmt: skip
        usage = Answer(self.send_command(f"USAGE {user} model=import-c member={ann}"))
        self.assertEqual((usage.used, usage["model_used"], usage["member_used"]), (60, "45", "20"))
        refused = Answer(self.send_command(f"CONSUME {user} model=import-a member={ann}"))
        self.assertEqual(refused["reason"], "member_limit_reached")
        usage = Answer(self.send_command(f"USAGE {counted} model=import-a member={bob}"))
        self.assertEqual((usage.used, usage["model_used"], usage["member_used"]), (2, "42", "3"))
        # It also shows without a message, and nobody begins a trial.
        shown = f"select user_id, used from headroom.usage_by_model where user_id in ('{silent}', '{unknown}')"
        self.assertEqual(self.psql.run(shown), [[silent, "4"]])
        self.assertEqual(self.psql.number(f"select count(*) from message_usage where user_id = '{unknown}'"), 0)
        entries = self.psql.run(
            f"select detail from audit_trail where user_id = '{user}' and action = 'import' and detail like 'kind%' order by id"
        )
        period = usage["period"]
        self.assertEqual([entry[0] for entry in entries], [
            f"kind model, name import-a, period {period}, used none → 30",
            f"kind model, name import-b, period {period}, used 30 → 45", f"kind member, period {period}, used none → 20",
        ])  # fmt: skip
        self.assertEqual(self.psql.number(f"select count(*) from headroom.notifications where user_id = '{user}' and status <> 's'"), 0)

    def test_add_adds_to_what_was_counted(self):
        user = self.subscriber("paid", used=7)
        lines = ["user,used", f"{user},100"]
        self.assertEqual(self.imported(*lines)[0], "imported 0 rows with 0 messages")
        self.imported(*lines, flags=["--add"])
        self.imported(*lines, flags=["--add"])
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 108)

    def test_a_forgotten_user_does_not_get_a_second_trial(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 60")
        self.send_command(f"FORGET {user}")
        self.imported("user,plan,used", f"{user},trial,10")
        self.assertEqual(self.usage(user).used, 60)

    def test_check_changes_nothing(self):
        users = [new_user(), self.subscriber("paid", used=7)]
        lines = ["user,plan,used", f"{users[0]},paid,5", f"{users[1]},paid,5"]
        before = self.psql.run("select * from headroom.imports")
        checked = self.imported(*lines, flags=["--check"])
        self.assertEqual(checked[0], "would import 1 row with 5 messages")
        self.assertIn("line 3", checked[1])
        self.assertEqual(self.psql.number(f"select count(*) from headroom.subscribers where user_id = '{users[0]}'"), 0)
        self.assertEqual(self.psql.run("select * from headroom.imports"), before)
        self.assertEqual(self.imported(*lines)[0], "imported 1 row with 5 messages")


class Files(Import):
    def test_a_bad_row_keeps_the_whole_file_out_and_is_named(self):
        user, other = new_user(), new_user()
        path = self.file("user,plan,used", f"{user},paid,5", f"{other},gold,6", "nobody,paid,7", f"{user},paid,8", f"{other},paid")
        refused = self.run_import(path, status=1)
        self.assertEqual(refused.stdout, "")
        lines = refused.stderr.splitlines()
        self.assertRegex(lines[0], r"^line 3, column plan: there is no such plan; .*free, paid, pro, trial")
        self.assertRegex(lines[1], r"^line 4, column user: user must be a UUID")
        self.assertRegex(lines[2], r"^line 6: has 2 fields, and the first line has 3")
        self.assertRegex(lines[3], r"^line 5, column user: line 2 is about the same user and period")
        self.assertRegex(lines[4], r"^Error: 4 of 5 rows are bad, and nothing was imported; .*--skip-bad")
        self.assertEqual(self.count(user), 0)
        rest = processes.directory() + "/bad.csv"
        done = self.run_import(path, "--skip-bad", rest)
        self.assertEqual(done.stdout.splitlines(), ["imported 1 row with 5 messages", f"skipped 4 rows with problems, now in {rest}"])
        with open(rest) as file:
            self.assertEqual(
                file.read().splitlines(),
                ["user,plan,used", f"{other},gold,6", "nobody,paid,7", f"{user},paid,8", f"{other},paid"],
            )
        self.assertEqual(self.run_import(path, "--skip-bad", path, status=64).stdout, "")

    def test_a_file_that_is_none_is_refused(self):
        for lines, error in (
            ([], "line 1: the file is empty"),
            (["user,count"], "line 1, column count: there is no such column"),
            (["user,used", 'a,"1'], "line 2: the quotes of a field are not closed"),
        ):
            with self.subTest(error):
                self.assertIn(f"Error: {error}", self.run_import(self.file(*lines), status=1).stderr)
        self.assertIn("/nowhere cannot be opened: No such file", self.run_import("/nowhere", status=1).stderr)

    def test_standard_input_with_a_byte_order_mark_quotes_and_windows_line_ends_is_read(self):
        user = new_user()
        text = f'\ufeff"user","plan","used"\r\n"{user}",paid,"5"\r\n'
        self.assertEqual(self.run_import("-", text=text).stdout, "imported 1 row with 5 messages\n")
        self.assertEqual(self.usage(user).used, 5)
        reason = self.psql.value(f"select distinct reason from headroom.audit_log where user_id = '{user}'")
        self.assertEqual(reason, "import of standard input")

    def test_a_file_without_rows_imports_nothing(self):
        self.assertEqual(self.imported("user,plan"), ["imported 0 rows with 0 messages"])

    def test_a_login_needs_the_right_of_an_operator(self):
        path = self.file("user,plan", f"{new_user()},paid")
        self.psql.run("do $$ begin create role importer login; exception when duplicate_object then null; end $$")
        url = self.database_url.replace("user=postgres", "user=importer")
        self.assertIn("granted headroom_operator", self.run_import(path, url=url, status=1).stderr)
        self.psql.run("grant headroom_operator to importer")
        self.assertEqual(self.run_import(path, url=url).stdout, "imported 1 row with 0 messages\n")


class Named(Import):
    FLAGS = ("--user-namespace", "6ba7b810-9dad-11d1-80b4-00c04fd430c8")

    def test_users_have_the_names_that_the_service_knows(self):
        name = f"auth0|{uuid.uuid4().hex}"
        self.imported("user,plan,used", f"{name},paid,5")
        self.assertEqual(self.usage(name).used, 5)


class Interrupted(Import):
    ROWS = 2_500

    def setUp(self):
        super().setUp()
        self.users = [new_user() for _ in range(self.ROWS)]
        self.path = self.file("user,plan,used", *(f"{user},paid,{place % 700}" for place, user in enumerate(self.users)))

    def start_import(self):
        return subprocess.Popen(
            [settings.binary, "import", self.path], env=environment(DATABASE_URL=self.database_url),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
        )  # fmt: skip

    def assert_each_is_counted_once(self, more=None):
        rows = self.psql.run("select user_id, sum(message_count) from message_usage group by user_id")
        found = {user: int(count) for user, count in rows}
        expected = {user: place % 700 + (more or {}).get(user, 0) for place, user in enumerate(self.users)}
        self.assertEqual({user: found.get(user) for user in self.users}, expected)
        entries = "select count(*), count(distinct user_id) from headroom.audit_log where action = 'import'"
        self.assertEqual(len(set(self.psql.run(entries)[0])), 1)

    def done(self, session):
        return session.value("select coalesce(max(done), 0) from headroom.imports where finished_at is null")

    def interrupt(self, number, ends_session):
        """Ends an import while its second batch waits for a lock, and with `ends_session` its session in the database, which would
        otherwise execute the batch to its end. Returns the status."""
        locked = self.users[1_500]
        other = self.cluster.session(self.database)
        self.psql.run("begin")
        self.psql.run(f"insert into headroom.subscribers (bucket, user_id) values (headroom.bucket_of('{locked}'), '{locked}')")
        process = self.start_import()
        wait_until(lambda: self.done(other) == "1000", "the first batch is committed")
        process.send_signal(number)
        process.communicate()
        status = process.returncode
        if ends_session:
            sessions = "from pg_stat_activity where application_name = 'headroom import' and datname = current_database()"
            other.run(f"select pg_terminate_backend(pid) {sessions}")
            wait_until(lambda: other.number(f"select count(*) {sessions}") == 0, "the session has ended")
        self.psql.run("rollback")
        if ends_session:
            self.assertEqual(self.done(other), "1000")
        other.close()
        return status

    def test_a_killed_import_continues_and_each_row_is_imported_once(self):
        self.assertEqual(self.interrupt(signal.SIGKILL, ends_session=True), -signal.SIGKILL)
        # The service counts meanwhile, also for users who are not imported yet.
        done, waiting = self.users[3], self.users[2_000]
        for user in (done, waiting):
            self.assertIn("+ALLOWED", self.send_command(f"CONSUME {user}"))
        again = self.run_import(self.path).stdout.splitlines()
        self.assertEqual(again[0], "continued after row 1000 of 2500, where an earlier run has ended")
        self.assertTrue(again[1].startswith("imported 1499 rows "), again)
        self.assertIn("left 1 row of users whom Headroom counts already", again[2])
        self.assertIn("the file was imported before", self.run_import(self.path).stdout)
        self.assertEqual(Answer(self.send_command(f"CONSUME {done}")).used, 5)
        added = self.run_import(self.path, "--add").stdout.splitlines()
        self.assertTrue(added[0].startswith("imported 1 row "), added)
        self.assert_each_is_counted_once({done: 2, waiting: 1})

    def test_an_import_that_ctrl_c_ends_continues(self):
        self.assertEqual(self.interrupt(signal.SIGINT, ends_session=False), -signal.SIGINT)
        self.assertRegex(self.run_import(self.path).stdout, "^continued after row [12]000 of 2500")
        self.assert_each_is_counted_once()

    @needs_one_machine("a proxy stands before the Unix socket of the only server")
    def test_a_lost_reply_to_a_commit_imports_nothing_twice(self):
        for place, cut in enumerate(("cut_after_commit", "cut_before_request")):
            with self.subTest(cut):
                proxy = DatabaseProxy(self.cluster)
                users = [new_user() for _ in range(20)]
                path = self.file("user,plan,used", *(f"{user},paid,{place + 7}" for user in users))
                getattr(proxy, cut)(lambda data: b"headroom.import_batch(" in data)
                done = self.run_import(path, url=proxy.url(self.database)).stdout
                self.assertEqual(proxy.fired, 1)
                self.assertRegex(done, "imported 20 rows" if place else "20 rows were done when the connection broke")
                self.assertEqual([self.usage(user).used for user in users], [place + 7] * 20)
                proxy.close()

    def test_two_imports_of_one_file_import_each_row_once(self):
        both = [self.start_import() for _ in range(2)]
        outputs = [process.communicate()[0] for process in both]
        self.assertIn(0, [process.returncode for process in both], outputs)
        self.run_import(self.path)
        self.assert_each_is_counted_once()

    @needs_one_machine("a distributed database is divided already")
    def test_users_are_imported_while_the_database_is_divided(self):
        importing = self.start_import()
        succeed("distribute", "--buckets", "8", database_url=self.database_url)
        output = importing.communicate()[0]
        self.assertEqual(importing.returncode, 0, output)
        self.assert_each_is_counted_once()
        misplaced = "select count(*) from message_usage where bucket <> headroom.bucket_of(user_id)"
        self.assertEqual(self.psql.number(misplaced), 0)
        self.assertEqual(Answer(self.send_command(f"CONSUME {self.users[5]}")).used, 6)


class Division(Case):
    FLAGS = None

    @needs_one_machine("a distributed database is divided already")
    def test_a_division_waits_for_a_new_user(self):
        user = new_user()
        self.psql.run("select headroom.begin_division('{0,1,2,3,4,5,6,7}')")
        other, dividing = self.cluster.session(self.database), self.cluster.session(self.database)
        other.run("begin")
        other.run(f"select set_plan('{user}', 'paid')")
        with ThreadPoolExecutor(1) as pool:
            divided = pool.submit(dividing.run, "select headroom.divide_users(4096)")
            waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            wait_until(lambda: divided.done() or self.psql.number(waits) == 1, "the division waits for the other session")
            other.run("commit")
            divided.result()
        other.close()
        dividing.close()
        misplaced = "select count(*) from headroom.subscribers where bucket <> headroom.bucket_of(user_id)"
        self.assertEqual(self.psql.number(misplaced), 0)
