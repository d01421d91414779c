"""Runs each recipe of docs/operations.md and of the other pages for operators as printed, and checks its effect."""

import os
import re
import shutil

import yaml
from support import processes, settings
from support.case import MID_MONTH, Case, needs_one_machine
from support.postgres import SQLError
from support.reference import documented
from support.service import Service, command, environment
from support.stores import AppStore, compact, revenuecat
from support.tokens import token
from support.waiting import wait_until
from support.webhooks import WEBHOOK_SETTINGS, post_event
from support.wire import Answer

DOCS = os.path.join(os.path.dirname(__file__), "../../../docs")
RECIPES = dict.fromkeys(("operations.md", "running.md", "monitoring.md", "database.md", "instances.md"), "###") | {"adopt-a-table.md": "#"}
"""The pages, and the level of the headings of recipes in them."""
SERVICE_COMMAND = re.compile(r"\bheadroom (ask|ping|plan|report|status|top|user) ")
USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
JUST_BEFORE = "2026-03-15T09:29:58Z"


def recipes(*parts):
    """The recipes of all pages, or of some parts: heading → blocks as (language, text)."""
    found = {}
    sections = []
    for name, level in RECIPES.items():
        with open(f"{DOCS}/{name}") as file:
            page = file.read()
        chapters = re.split(r"^## (.+)\n", page, flags=re.M) if level == "###" else ["", name, page]
        texts = [text for part, text in zip(chapters[1::2], chapters[2::2]) if not parts or part in parts]
        sections += [re.split(rf"^{level} (.+)\n", text, flags=re.M) for text in texts]
    for heading, body in [pair for each in sections for pair in zip(each[1::2], each[2::2])]:
        blocks = re.findall(r"^```(sql|sh)\n(.*?)^```$", body, flags=re.M | re.S)
        assert blocks, f"the recipe {heading!r} has nothing to run"
        assert heading not in found, f"two recipes are called {heading!r}"
        found[heading] = blocks
    return found


def slug(heading):
    return re.sub(r"[^a-z]+", "_", heading.lower()).strip("_")


class Operations(Case):
    CLOCK = MID_MONTH
    # A token that a recipe creates is required by the instance alone that it is for.
    FLAGS = ("--authentication", "off")
    OPERATOR = "recipe_operator"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(f"create role {cls.OPERATOR} login")
        cls.psql.run(f"grant headroom_operator to {cls.OPERATOR}")
        cls.as_operator = cls.database_url.replace("user=postgres", f"user={cls.OPERATOR}")

    @classmethod
    def tearDownClass(cls):
        cls.psql.run(f"drop role {cls.OPERATOR}")
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        # The audit trail is in the order of time: this and what a check does come before the recipe.
        self.set_clock(JUST_BEFORE)
        for user in [row[0] for row in self.psql.run("select user_id from headroom.subscribers")]:
            self.psql.run(f"select forget_user('{user}')")
        self.psql.run("delete from headroom.spent_trials")
        self.psql.run("delete from message_usage")
        self.psql.run("update headroom.plans set allowance = 800, gentle_percent = 80 where plan = 'paid'")
        self.psql.run("delete from headroom.plans where plan = 'team'")
        self.send_command(f"SETPLAN {USER} paid")
        self.send_command(f"CONSUME {USER}")

    def run_recipe(self, heading, url=None, **variables):
        """Runs the blocks in order, and returns their output. Commands to a running service have the token that the page names."""
        if any(SERVICE_COMMAND.search(text) for _, text in recipes()[heading]) and "HEADROOM_TARGET" not in variables:
            number, operator = token(self, "operator", "operator")
            service = self.serve("--authentication", "required")
            try:
                target = {"HEADROOM_TARGET": f"127.0.0.1:{service.port}", "HEADROOM_TOKEN": operator}
                return self.run_recipe(heading, url, **target, **variables)
            finally:
                service.stop()
                self.psql.run(f"delete from headroom.tokens where id = {number}")
        self.set_clock(MID_MONTH)
        # Recipes about users run as an operator; creating, copying and pruning a database needs its owner or the service's login.
        operators = recipes("One user", "Everybody", "Stores")
        default = self.as_operator if heading in operators else self.database_url
        directory = processes.directory()
        path = os.pathsep.join([os.path.dirname(settings.binary), self.cluster.bin, os.environ["PATH"]])
        output = []
        for language, text in recipes()[heading]:
            address = url or (self.database_url if language == "sh" else default)
            arguments = ["bash", "-euo", "pipefail", "-c", text]
            if language == "sql":
                with open(directory + "/recipe.sql", "w") as file:
                    file.write(text)
                arguments = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-f", directory + "/recipe.sql", address]
            ran = processes.completed(
                arguments, cwd=variables.get("cwd", directory),
                env=environment(**{"PATH": path, "DATABASE_URL": address, **{k: v for k, v in variables.items() if k.isupper()}}),
            )  # fmt: skip
            self.assertEqual(ran.returncode, 0, f"{heading}:\n{text}\n{ran.stdout}{ran.stderr}")
            output.append(ran.stdout)
        return "\n".join(output)

    def answer(self, request):
        return Answer(self.send_command(request))

    def trail(self, user=USER):
        return self.psql.run(f"select action, reason, actor from audit_trail where user_id = '{user}' order by at desc, id desc")

    def test_every_recipe_has_a_check_and_every_check_a_recipe(self):
        checks = {name.removeprefix("check_") for name in dir(self) if name.startswith("check_")}
        self.assertEqual({slug(heading) for heading in recipes()}, checks)

    def test_a_set_actor_is_recorded_with_the_change(self):
        with open(f"{DOCS}/operations.md") as file:
            naming = re.search(r"^```text\n(set .*?)^```$", file.read(), flags=re.M | re.S)[1]
        session = self.cluster.session(self.database)
        for statement in naming.strip().splitlines():
            session.run(statement)
        self.set_clock(MID_MONTH)
        session.run(f"select reset_usage('{USER}')")
        session.close()
        self.assertEqual(self.trail()[0], ["reset", "ticket 4711", "ann"])

    # One user

    def check_look_at_a_user(self, run):
        self.set_count(USER, 760)
        output = run()
        self.assertRegex(output, r"2026-03 +\| +760 \| +800 \| +40 \| prominent")
        self.assertRegex(output, r"operator +\| paid")

    def check_why_was_this_user_blocked(self, run):
        self.set_count(USER, 800)
        output = run()
        self.assertRegex(output, rf"\+BLOCKED user={USER} .* reason=limit_reached .*\n")
        self.assertRegex(output, r"\n2026-03-15T\S+ +plan +\S+ ")
        with open(f"{DOCS}/operations.md") as file:
            section = file.read().split("### Why was this user blocked?\n")[1].split("\n### ")[0]
        listed = [reason for row in re.findall(r"(?m)^\| (`[^|]*) \|", section) for reason in re.findall("`(\\w+)`", row)]
        self.assertLessEqual(set(documented("reason")), set(listed))

    def check_look_into_a_complaint(self, run):
        self.send_command(f"CONSUME {USER} 3 key=message-17")
        self.psql.run(f"update message_usage set message_count = 700 where user_id = '{USER}'")
        self.psql.run(f"select reset_usage('{USER}')")
        output = run()
        self.assertRegex(output, r"reset +\|.*count 700 → 0.*\| postgres")
        self.assertRegex(output, r"update +\|.*count 4 → 700.*\| postgres")
        self.assertRegex(output, r"message-17 \| .* \| c +\| c +\| +3 \| +4 \| 2026-03")

    def check_reset_a_user(self, run):
        self.set_count(USER, 800)
        self.assertEqual(self.answer(f"CONSUME {USER}").status, "BLOCKED")
        self.assertRegex(run(), r"paid \| +0 \| +800")
        self.assertEqual(self.answer(f"CONSUME {USER}").used, 1)
        self.assertEqual(self.trail()[0][0], "reset")

    def check_reset_a_model_or_a_member(self, run):
        self.psql.run("insert into headroom.plan_limits (plan, kind, name, label, allowance) values ('paid', 'model', 'large', 'Large', 3)")
        try:
            used = self.answer(f"CONSUME {USER} 3 model=large").used
            self.assertEqual(self.answer(f"CONSUME {USER} model=large")["reason"], "model_limit_reached")
            output = run()
            self.assertRegex(output, r"Large \| +3 \| +3 \| +\| +\| blocked")
            self.assertRegex(output, rf"{used} \| large \| +0 \| +3")
            self.assertEqual(self.answer(f"CONSUME {USER} model=large").used, used + 1)
            self.assertEqual(self.trail()[0][0], "reset")
        finally:
            self.psql.run("delete from headroom.plan_limits where plan = 'paid'")

    def check_close_a_window(self, run):
        self.psql.run("update headroom.plans set window_messages = 5, window_seconds = 10800 where plan = 'paid'")
        try:
            used = self.answer(f"CONSUME {USER} 5").used
            self.assertEqual(self.answer(f"CONSUME {USER}")["reason"], "window_limit_reached")
            self.assertRegex(run(), rf"{used} \| +0 \| +5")
            self.assertEqual(self.answer(f"CONSUME {USER}").used, used + 1)
        finally:
            self.psql.run("update headroom.plans set window_messages = null, window_seconds = null where plan = 'paid'")

    def check_correct_a_count(self, run):
        run()
        self.assertEqual(self.answer(f"CONSUME {USER}").used, 121)
        self.assertEqual(self.trail()[0][0], "update")

    def check_undo_a_reset(self, run):
        self.set_count(USER, 700)
        self.set_clock("2026-03-15T09:29:59Z")
        self.psql.run(f"select reset_usage('{USER}')")
        self.send_command(f"CONSUME {USER} 2")
        for _ in range(2):
            run()
            self.assertEqual(self.answer(f"CHECK {USER}").used, 702)
        self.assertEqual(self.trail()[0][0], "update")

    def check_grant_messages(self, run):
        self.set_count(USER, 800)
        self.assertEqual(self.answer(f"CONSUME {USER}").status, "BLOCKED")
        self.assertRegex(run(), r"800 \| +850 \| +50")
        run()
        answer = self.answer(f"CONSUME {USER}")
        self.assertEqual((answer.status, answer["limit"]), ("ALLOWED", "850"), "it is granted once")
        self.assertEqual(self.trail()[0][:2], ["grant", "lost a day to the outage"])
        self.set_clock("2026-04-02T00:00:00Z")
        self.assertEqual(self.answer(f"CONSUME {USER}")["limit"], "800", "the next period is as ever")

    def check_put_a_user_on_a_plan(self, run):
        self.set_count(USER, 800)
        self.assertRegex(run(), r"pro +\| active \| +800 \|")
        answer = self.answer(f"CONSUME {USER}")
        self.assertEqual((answer.status, answer["plan"], answer["limit"], answer.used), ("ALLOWED", "pro", "unlimited", 801))
        self.assertEqual(self.trail()[0][0], "plan")

    def check_move_a_billing_period(self, run):
        self.send_command(f"SETPLAN {USER} paid state=cancelled expires=2026-05-01")
        self.set_count(USER, 41)
        run()
        answer = self.answer(f"CONSUME {USER}")
        # The period from February 20 would be an earlier one, so March's row continues until April 20.
        self.assertEqual((answer.used, answer["period"], answer["resets"]), (42, "2026-03", "2026-04-20T00:00:00Z"))
        self.assertEqual((answer["state"], answer["expires"]), ("cancelled", "2026-05-01T00:00:00Z"))
        self.set_clock("2026-04-20T00:00:00Z")
        self.assertEqual(self.answer(f"CONSUME {USER}").used, 1)

    def check_forget_a_user(self, run):
        self.send_command(f"CONSUME {USER} key=k")
        self.assertRegex(run(), r"\n +[1-9][0-9]*\n")
        for table in ("public.message_usage", "headroom.usage_parts", "headroom.subscribers", "headroom.subscriptions",
                      "headroom.message_keys", "headroom.audit_log", "headroom.grants"):  # fmt: skip
            self.assertEqual(self.psql.number(f"select count(*) from {table} where user_id = '{USER}'"), 0, table)

    # Everybody

    def check_find_who_is_blocked(self, run):
        other, free = self.subscriber("paid", used=799), self.subscriber("pro", used=5_000)
        self.set_count(USER, 800)
        output = run()
        self.assertRegex(output, rf"{USER} \| 2026-03 +\| active +\| +800 \| +800")
        self.assertNotIn(other, output)
        self.assertNotIn(free, output)

    def check_sum_up_a_period(self, run):
        self.set_count(USER, 650)
        self.subscriber("paid", used=10)
        output = run()
        for period in ("2026-03", "open"):
            self.assertRegex(output, rf"{period} +\| +2 \| +660 \| +1 \| +1 \| +0 \| +0\n")

    def check_reset_a_period(self, run):
        others = [self.subscriber("paid", used=800) for _ in range(3)]
        trial = self.subscriber("trial", used=7)
        self.assertRegex(run(), r"\n +4\n")
        for user in (USER, *others):
            self.assertEqual(self.answer(f"CONSUME {user}").used, 1)
            self.assertEqual(self.trail(user)[0][0], "reset_period")
        self.assertEqual(self.answer(f"CONSUME {trial}").used, 8)

    def check_change_a_plan_for_all(self, run):
        other = self.subscriber("paid", used=800)
        self.set_count(USER, 800)
        self.assertEqual(self.answer(f"CONSUME {USER}").status, "BLOCKED")
        run()
        for user in (USER, other):
            answer = self.answer(f"CONSUME {user}")
            self.assertEqual((answer.status, answer["limit"], answer["tier"]), ("ALLOWED", "1000", "silent"))

    def check_add_a_plan(self, run):
        run()
        answer = self.answer(f"SETPLAN {USER} team")
        self.assertEqual((answer["plan"], answer["limit"]), ("team", "5000"))

    def check_introduce_a_limit(self, run):
        # Other recipes need the plan without a limit.
        self.addCleanup(self.psql.run, "update headroom.plans set allowance = null, enforced = true where plan = 'pro'")
        self.send_command(f"SETPLAN {USER} pro")
        self.set_count(USER, 2001)
        self.assertRegex(run(), rf"{USER} \| +2001 \| +2000", "it lists who is over the limit")
        answer = self.answer(f"CONSUME {USER}")
        self.assertEqual((answer.status, answer["limit"], answer["reason"]), ("BLOCKED", "2000", "limit_reached"))

    def check_move_everybody_to_another_plan(self, run):
        cancelled, grace, expired, trial = (self.user() for _ in range(4))
        self.send_command(f"SETPLAN {cancelled} paid state=cancelled expires=2026-03-20")
        self.send_command(f"SETPLAN {grace} paid state=grace_period expires=2026-03-10 grace_until=2026-03-26")
        self.send_command(f"SETPLAN {expired} paid state=expired expires=2026-03-10")
        self.send_command(f"SETPLAN {trial} trial")
        run()
        self.assertEqual(self.answer(f"CONSUME {USER}")["plan"], "pro")
        answer = self.answer(f"CONSUME {cancelled}")
        self.assertEqual((answer["plan"], answer["state"], answer["expires"]), ("pro", "cancelled", "2026-03-20T00:00:00Z"))
        answer = self.answer(f"CONSUME {grace}")
        self.assertEqual((answer["plan"], answer["state"], answer["previous_plan"]), ("pro", "grace_period", "paid"))
        self.assertEqual(self.psql.value(f"select grace_until from headroom.subscriptions where user_id = '{grace}'")[:10], "2026-03-26")
        self.assertEqual(self.answer(f"CHECK {expired}")["plan"], "paid")
        self.assertEqual(self.answer(f"CHECK {trial}")["plan"], "trial")

    def check_delete_old_keys(self, run):
        self.send_command(f"CONSUME {USER} key=old")
        self.send_command(f"CONSUME {USER} key=new")
        self.psql.run("update headroom.message_keys set created_at = headroom.now() - interval '8 days' where key = 'old'")
        self.assertIn("deleted 1 keys", run())
        self.assertEqual(self.psql.run(f"select key from headroom.message_keys where user_id = '{USER}'"), [["new"]])

    # Tokens

    def check_replace_a_token(self, run):
        url = self.cluster.url(self.cluster.new_database())
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        created = command("token", "create", "backend", "--scope", "chat", database_url=url)
        old, number = created.stdout.strip(), created.stderr.split()[1]
        service = Service(database_url=url)
        directory = processes.directory()
        try:
            with service.connect() as connection, service.connect() as other:
                self.assertEqual(connection.send_command(f"AUTH {old}"), "+OK")
                self.assertRegex(run(url=url, cwd=directory, OLD_TOKEN=number), r"backend +chat +live[^\n]*\n +1 +backend +chat +live")
                self.assertEqual(connection.read_to_end(), b"")
                with open(directory + "/new-token") as file:
                    new = file.read().strip()
                wait_until(lambda: other.send_command(f"AUTH {new}") == "+OK", "the new one is good")
                self.assertEqual(Answer(other.send_command(f"CONSUME {USER}")).status, "ALLOWED")
        finally:
            service.stop()

    # The service

    def check_run_it_under_systemd(self, run):
        directory = processes.directory()
        with open(directory + "/useradd", "w") as file:
            file.write(f'#!/bin/sh\necho "${{0##*/}} $*" >> {directory}/calls\n')
        os.symlink("useradd", directory + "/systemctl")
        with open(directory + "/install", "w") as file:
            file.write(f"#!/bin/sh\nexec {shutil.which('install')} $(echo \"$@\" | sed 's| /etc/| {directory}/etc/|')\n")
        for name in ("useradd", "install"):
            os.chmod(f"{directory}/{name}", 0o755)
        path = os.pathsep.join([directory, os.environ["PATH"]])
        run(cwd=f"{DOCS}/..", PATH=path)
        with open(directory + "/calls") as file:
            self.assertEqual(len(file.readlines()), 2)
        self.assertEqual(os.stat(directory + "/etc/headroom/environment").st_mode & 0o777, 0o600)

    def check_commands_in_a_container(self, run):
        directory = processes.directory()
        with open(directory + "/docker", "w") as file:
            # docker compose exec SERVICE PROGRAM …
            file.write(
                '#!/bin/sh\nservice=$3\nshift 3\n'
                'if [ "$service" = database ]; then shift 2; exec psql "$DATABASE_URL" "$@"; fi\nexec "$@"\n'
            )
        os.chmod(directory + "/docker", 0o755)
        path = os.pathsep.join([directory, os.path.dirname(settings.binary), self.cluster.bin, os.environ["PATH"]])
        output = run(PATH=path, HEADROOM_TARGET=f"127.0.0.1:{self.service.port}")
        self.assertRegex(output, r"(?s)\Aservice +.*\nat +what .*\bplan\b.* billing_period \|")
        with open(f"{DOCS}/../docker-compose.yml") as file:
            services = yaml.safe_load(file)["services"]
        self.assertLessEqual({"headroom", "database"}, set(services))

    # Monitoring

    def check_watch_it_with_prometheus(self, run):
        url = self.cluster.url(self.cluster.new_database())
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        directory = processes.directory()
        run(url=url, cwd=directory)
        path = directory + "/headroom.token"
        self.assertEqual(os.stat(path).st_mode & 0o077, 0, "other users cannot read it")
        with open(path) as file:
            bearer = {"Authorization": f"Bearer {file.read().strip()}"}
        service = Service(database_url=url)
        try:
            self.assertEqual(service.http("GET", "/metrics").status, 401)
            self.assertIn("headroom_requests_total", service.http("GET", "/metrics", headers=bearer).text)
        finally:
            service.stop()

    # Stores

    def check_map_a_product(self, run):
        output = run()
        self.assertRegex(output, r"appstore +com\.example\.pack50 +- +- +- +50 +-\n")
        self.assertRegex(output, r"revenuecat +com\.example\.premium\.monthly +paid +trial +- +- +-\n")
        products = self.psql.run("select product, plan, messages from headroom.store_products order by product")
        self.assertIn(["com.example.team.monthly", "pro", None], products)
        self.assertIn(["com.example.pack100", None, "100"], products)

    def check_an_event_failed(self, run):
        event = revenuecat(
            "INITIAL_PURCHASE", MID_MONTH, USER, "9001", product_id="com.example.gold.monthly", expiration_at_ms="2027-01-01T00:00:00Z"
        )
        outcome = post_event(self.serve(env=WEBHOOK_SETTINGS), event)["outcome"]
        self.assertEqual(outcome, "failed")
        output = run()
        self.assertIn("1 kept event failed for lack of this mapping", output)
        self.assertIn(f"revenuecat {event['event']['id']} applied", output)
        self.assertEqual(self.answer(f"USAGE {USER}")["plan"], "pro")
        self.assertEqual(self.psql.run("select from headroom.billing_events where outcome = 'failed'"), [])

    def check_link_a_purchase_that_names_no_user(self, run):
        self.psql.run(f"select forget_user('{USER}')")
        self.psql.run("select headroom.map_product('appstore', 'premium', 'paid')")
        self.set_clock(MID_MONTH)
        store = AppStore()
        service = self.serve(*store.flags)
        dates = {"purchaseDate": MID_MONTH, "expiresDate": "2026-04-15T12:00:00Z"}
        for transaction in ("2000000123456789", "2000000123456790"):
            event = store.notification("SUBSCRIBED", "INITIAL_BUY", MID_MONTH, None, transaction, **dates)
            self.assertEqual(service.http("POST", "/webhooks/appstore", compact(event)).json["outcome"], "failed")
        self.assertIn(f"1 event applied; {USER}: paid, active until 2026-04-15T12:00:00Z\n", run())
        subscriptions = self.psql.value(f"select count(*) from headroom.subscriptions where user_id = '{USER}' and plan = 'paid'")
        self.assertEqual(subscriptions, "2")
        self.assertEqual(self.psql.run("select from headroom.billing_events where outcome = 'failed'"), [])

    # The database

    def check_back_up(self, run):
        directory = processes.directory()
        run(cwd=directory)
        listed = processes.completed([self.cluster.bin + "/pg_restore", "--list", directory + "/headroom.dump"], check=True).stdout
        for table in ("public message_usage", "headroom message_keys", "headroom lane_receipts", "headroom secrets"):
            self.assertIn(f"TABLE DATA {table}", listed)

    def check_restore(self, run):
        self.set_count(USER, 640)
        self.send_command(f"CONSUME {USER} key=before")
        directory = processes.directory()
        self.run_recipe("Back up", cwd=directory)
        self.send_command(f"CONSUME {USER} key=after")
        restored = self.cluster.new_database()
        url = self.cluster.url(restored)
        self.assertIn("the schema is current", run(cwd=directory, RESTORED_URL=url))
        service = Service(database_url=url)
        try:
            # As the page says: a key from before the dump counts once, one from after it counts again.
            self.assertEqual(Answer(service.send_command(f"CONSUME {USER} key=before"))["replayed"], "1")
            self.assertEqual(Answer(service.send_command(f"CONSUME {USER} key=after")).used, 642)
            self.assertTrue(service.send_command(f"COMMIT {USER} key=held-after").startswith("-NOTFOUND"))
        finally:
            service.stop()

    def check_upgrade(self, run):
        url = self.cluster.url(self.cluster.new_database())
        missing = command("migrate", "--status", database_url=url)
        self.assertEqual(missing.returncode, 1, missing.stderr)
        self.assertIn("there is no schema yet", missing.stdout)
        self.assertIn("applied tables/0002_message_usage.sql", run(url=url))
        self.assertEqual(command("migrate", "--status", database_url=url).returncode, 0)
        # It does not affect a running service.
        self.assertIn("the schema is current", run())
        self.assertEqual(self.answer(f"CONSUME {USER}").status, "ALLOWED")

    def check_adopt_an_existing_table(self, run):
        name = self.cluster.new_database()
        session = self.cluster.session(name)
        session.run(
            "create table message_usage (user_id uuid, billing_period text, message_count int, \"limit\" int,"
            " updated_at timestamptz, primary key (user_id, billing_period))"
        )
        session.run(f"insert into message_usage values ('{USER}', to_char(now() at time zone 'UTC', 'YYYY-MM'), 41, 800, now())")
        url = self.cluster.url(name)
        self.assertIn("(0 rows)", run(url=url))
        service = Service(database_url=url)
        try:
            answer = Answer(service.send_command(f"CONSUME {USER}"))
            self.assertEqual((answer["plan"], answer["state"], answer.used, answer["limit"]), ("paid", "active", 42, "800"))
        finally:
            service.stop()
            session.close()

    def check_correct_a_value_out_of_range(self, run):
        self.psql.run("alter table message_usage disable trigger values_are_in_range")
        self.psql.run(f"update message_usage set expires_at = 'infinity' where user_id = '{USER}'")
        self.assertRegex(self.send_command(f"CONSUME {USER}"), r"^-INTERNAL message_usage\.expires_at is out of range")
        self.assertEqual(self.answer(f"CONSUME {self.user()}").status, "ALLOWED")
        self.assertIn(USER, run())
        self.psql.run("alter table message_usage enable trigger values_are_in_range")
        self.assertEqual(self.answer(f"CONSUME {USER}").used, 2)

    def check_hand_out_roles(self, run):
        for role in ("ann", "metabase"):
            self.psql.run(f"create role {role} login")
        try:
            run()
            self.psql.run("set session authorization ann")
            self.psql.run(f"select reset_usage('{USER}')")
            self.psql.run("set session authorization metabase")
            self.assertEqual(self.psql.number("select count(*) from monthly_usage"), 1)
            for forbidden in (f"select reset_usage('{USER}')", "update message_usage set message_count = 0"):
                with self.assertRaisesRegex(SQLError, "permission denied"):
                    self.psql.run(forbidden)
            self.psql.run("reset session authorization")
            self.assertEqual(self.trail()[0][2], "ann")
        finally:
            self.psql.run("reset session authorization")
            for role in ("ann", "metabase"):
                self.psql.run(f"drop owned by {role}")
                self.psql.run(f"drop role {role}")


def recipe_test(heading):
    def test(self):
        check = getattr(self, f"check_{slug(heading)}", None)
        self.assertIsNotNone(check, f"nothing checks what the recipe {heading!r} does")
        check(lambda **options: self.run_recipe(heading, **options))

    return test


for _heading in recipes():
    setattr(Operations, f"test_the_recipe_{slug(_heading)}_does_what_it_says", recipe_test(_heading))
needs_one_machine("Citus adds no constraint to message_usage, because its primary key lacks the bucket")(
    Operations.test_the_recipe_correct_a_value_out_of_range_does_what_it_says
)
