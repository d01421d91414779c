"""The start of the service, and the errors with which it refuses to start."""

import os
import re
import shutil
import signal
import socket

from support import processes, settings
from support.case import Case, needs_one_machine
from support.postgres import Cluster, as_postgres_user
from support.service import Service, command, environment, succeed
from support.waiting import wait_until


@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class Starting(Case):
    FLAGS = None

    def setUp(self):
        self.name = self.cluster.new_database()
        self.url = self.cluster.url(self.name)
        self.started = []

    def tearDown(self):
        for service in self.started:
            service.stop()

    def start(self, *flags, wait=True, **options):
        service = Service(*flags, database_url=self.url, as_owner=True, wait=wait, **options)
        self.started.append(service)
        return service

    def test_instances_started_at_the_same_moment_on_an_empty_database_all_become_ready(self):
        services = [self.start(wait=False) for _ in range(4)]
        user = self.user()
        for used, service in enumerate(services, start=1):
            service.ready()
            self.assertIn(f" used={used} ", service.send_command(f"CONSUME {user}"))
        session = self.cluster.session(self.name)
        files = session.run("select number, count(*) from headroom.migrations group by number order by number")
        session.close()
        self.assertEqual([count for _, count in files], ["1"] * len(files))

    def test_standard_output_is_the_ready_line_alone(self):
        service = self.start()
        service.send_command("PING")
        service.stop()
        self.assertRegex(service.output(), rf"\Aready listen=127\.0\.0\.1:{service.port} http=\S+\n\Z")

    def test_migrate_status_lists_missing_files_and_changes_nothing(self):
        before = command("migrate", "--status", database_url=self.url)
        self.assertEqual((before.returncode, before.stdout), (1, "there is no schema yet: headroom migrate creates it\n"))
        lines = command("migrate", "--status", "--verbose", database_url=self.url).stdout.splitlines()
        count = len(lines) - 1
        self.assertGreaterEqual(count, 4)
        self.assertEqual(lines[0] + "\n", before.stdout)
        for line in lines[1:]:
            self.assertRegex(line, r"^pending -                     (tables/\d{4}_\w+|functions/\w+/[\w.]+|\w+)\.sql$")
        plan = command("migrate", "--plan", database_url=self.url)
        self.assertEqual(plan.returncode, 1, plan.stderr)
        self.assertIn("apply tables/0002_message_usage.sql: not applied yet", plan.stdout)
        self.assertRegex(plan.stdout, r"to do, in one transaction: \d+ migrations applied, \d+ definitions created\n$")
        session = self.cluster.session(self.name)
        self.assertEqual(session.number("select count(*) from pg_namespace where nspname = 'headroom'"), 0)
        self.assertEqual(command("migrate", database_url=self.url).returncode, 0)
        after = succeed("migrate", "--status", database_url=self.url)
        self.assertEqual(after.stdout, f"the schema is current: {count} files are applied\n")
        verbose = command("migrate", "--status", "--verbose", database_url=self.url)
        self.assertEqual((verbose.returncode, verbose.stdout.splitlines()[0]), (0, after.stdout.strip()))
        self.assertEqual(len(verbose.stdout.splitlines()), count + 1)
        for line in verbose.stdout.splitlines()[1:]:
            self.assertRegex(line, r"^applied \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  [\w./]+\.sql$")
        self.assertEqual(command("migrate", "--verbose", database_url=self.url).returncode, 64)
        again = command("migrate", database_url=self.url)
        self.assertEqual((again.returncode, again.stdout), (0, "the schema is current\n"))
        plan = command("migrate", "--plan", database_url=self.url)
        self.assertEqual((plan.returncode, plan.stdout), (0, "nothing to do: the schema is current\n"))
        # Another release: one function differs, and one does not exist in this release.
        session.run("update headroom.definitions set checksum = 'x' where file = 'functions/headroom/now.sql'")
        session.run("insert into headroom.definitions values ('functions/headroom/old.sql', 'x', '0.0.1')")
        session.run("create function headroom.old() returns integer language sql return 1")
        shown = command("migrate", "--status", database_url=self.url)
        self.assertEqual(shown.returncode, 1)
        self.assertRegex(shown.stdout, r"\Athe schema is not current: 2 of \d+ files differ; .*\n")
        self.assertRegex(shown.stdout, r"\nchanged \S+Z  functions/headroom/now\.sql: another version than this binary's\n")
        self.assertRegex(shown.stdout, r"\nunknown \S+Z  functions/headroom/old\.sql: this binary does not have it\n")
        self.assertEqual(len(shown.stdout.splitlines()), 3, "only what differs is listed")
        plan = command("migrate", "--plan", database_url=self.url).stdout.splitlines()
        self.assertEqual(
            plan,
            [
                "apply functions/headroom/now.sql: the database has another version",
                "drop the objects of functions/headroom/old.sql: this release does not have the file",
                "to do, in one transaction: 1 definitions replaced, 1 objects dropped",
            ],
        )
        migrated = succeed("migrate", database_url=self.url)
        self.assertIn("dropped ROUTINE headroom.old()", migrated.stdout)
        self.assertEqual(command("migrate", "--plan", database_url=self.url).returncode, 0)
        session.close()

    def test_a_schema_of_before_the_first_release_is_refused_clearly_and_not_changed(self):
        session = self.cluster.session(self.name)
        session.run("create schema headroom")
        session.run("create table headroom.migrations (number integer, name text, checksum text, applied_at timestamptz)")
        for outcome in (command("migrate", database_url=self.url), command("migrate", "--plan", database_url=self.url)):
            self.assertNotEqual(outcome.returncode, 0)
            self.assertIn("development version from before the first release", outcome.stderr)
        service = self.start(wait=False)
        self.assertNotEqual(service.wait(), 0)
        self.assertIn("development version from before the first release", service.log())
        self.assertEqual(session.number("select count(*) from pg_class where relname = 'message_usage'"), 0)
        session.close()

    def test_a_database_with_a_newer_migration_is_refused_clearly_and_not_changed(self):
        self.start().stop()
        session = self.cluster.session(self.name)
        session.run("insert into headroom.migrations (number, name, checksum) values (9999, 'of_the_future', 'x')")
        for run in (lambda: self.start(wait=False), None):
            if run:
                service = run()
                self.assertNotEqual(service.wait(), 0)
                log, output = service.log(), service.output()
            else:
                outcome = command("migrate", database_url=self.url)
                self.assertNotEqual(outcome.returncode, 0)
                log, output = outcome.stderr, outcome.stdout
            self.assertIn("newer than this binary", log)
            self.assertIn("9999", log)
            self.assertEqual(output, "")
        session.close()

    def test_a_database_that_comes_up_later_is_waited_for(self):
        # A socket without a listener stands for a starting server.
        cluster = Cluster()
        name = cluster.new_database()
        cluster.stop_immediately()
        self.url = cluster.url(name)
        service = self.start(wait=False)
        wait_until(lambda: "cannot be reached" in service.log() or service.process.poll() is not None, "it tries")
        self.assertIsNone(service.process.poll(), service.log())
        cluster.start()
        service.ready()
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {self.user()}"))
        service.stop()
        cluster.stop_immediately()

    def test_a_port_in_use_is_reported_and_ends_the_service(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            service = self.start("--listen", address, wait=False)
            self.assertNotEqual(service.wait(), 0)
        self.assertEqual(service.output(), "")
        self.assertIn(f"Error: listen={address} cannot be opened: another program uses that port", service.log())
        for alternative in ("ss -ltnp", "--listen", "HEADROOM_LISTEN"):
            self.assertIn(alternative, service.log())

    def test_an_address_of_another_machine_is_reported_and_ends_the_service(self):
        reasons = {"192.0.2.1": "this machine does not have that address", "nosuch.invalid": "the host name cannot be resolved"}
        for host, reason in reasons.items():
            with self.subTest(host=host):
                service = self.start("--listen", f"{host}:6747", "--trusted-network", "yes", wait=False)
                self.assertNotEqual(service.wait(), 0)
                self.assertIn(f"Error: listen={host}:6747 cannot be opened: {reason}", service.log())

    def test_a_password_in_the_database_url_is_never_written(self):
        secret = "swordfish-4711"
        uri = f"postgresql://postgres:{secret}@/{self.name}?host={self.cluster.home.replace('/', '%2F')}"
        service = Service("--log-level", "trace", database_url=uri)
        service.send_command(f"CONSUME {self.user()}")
        service.stop()
        self.assertNotIn(secret, service.log() + service.output())
        # Neither if the server is unreachable, nor if the URL is malformed.
        for broken in (f"postgresql://postgres:{secret}@127.0.0.1:1/x", f"postgresql://postgres:{secret}@[::1/x?port=no",
                       f"host=/nowhere password={secret} nosuch=1"):  # fmt: skip
            outcome = command("migrate", database_url=broken)
            self.assertNotEqual(outcome.returncode, 0)
            self.assertNotIn(secret, outcome.stderr + outcome.stdout)

    def test_the_flag_wins_over_the_environment(self):
        service = self.start("--unknown-users", "deny", env={"HEADROOM_UNKNOWN_USERS": "free", "HEADROOM_LANES": "1"})
        self.assertIn("reason=no_subscription", service.send_command(f"CONSUME {self.user()}"))
        self.assertEqual(service.info()["lanes"], "1")

    def test_an_ordinary_user_can_run_it(self):
        # The binary may be in a directory that only root can read.
        binary = shutil.copy(settings.binary, processes.directory() + "/headroom")
        os.chmod(binary, 0o755)
        service = self.start(binary=binary, **as_postgres_user())
        user = self.user()
        with service.connect() as connection:
            self.assertIn(" used=1 ", connection.send_command(f"CONSUME {user}"))
            self.assertIn(" used=2 ", connection.send_command(f"CONSUME {user}"))
        service.signal(signal.SIGTERM)
        self.assertEqual(service.wait(), 0, service.log())

    def test_help_lists_the_commands_and_every_setting_of_serve(self):
        log = command("--help").stdout
        for word in ("serve", "migrate", "ping"):
            self.assertIn(word, log)
        serve = command("serve", "--help").stdout
        for setting in ("listen", "database-url", "data-dir", "unknown-users", "when-unavailable", "log-level"):
            self.assertIn(f"--{setting}", serve)
        # In groups, in the order of docs/reference/settings.md.
        titles = re.findall(r"(?m)^([A-Z ]+):$", serve)
        groups = ["DATABASE AND LOG", "CONNECTIONS", "ACCESS", "COUNTING", "HTTP", "WEBHOOKS OF STORES", "NOTIFICATIONS"]
        self.assertEqual([title for title in titles if title in groups], groups)
        parts = dict(zip(titles, re.split(r"(?m)^[A-Z ]+:$", serve)[1:]))
        for title, setting in (("CONNECTIONS", "listen"), ("ACCESS", "tls-key"), ("HTTP", "http-tls"), ("COUNTING", "lanes")):
            self.assertIn(f"--{setting} ", parts[title])

    def test_without_a_command_it_prints_help_and_starts_nothing(self):
        directory = processes.directory()
        ran = processes.completed([settings.binary], cwd=directory, env=environment())
        self.assertEqual((ran.returncode, ran.stderr, os.listdir(directory)), (0, "", []))
        self.assertEqual(ran.stdout, command("--help").stdout)
        refused = command("--listen", "127.0.0.1:0")
        self.assertEqual((refused.returncode, refused.stdout), (64, ""))

    def test_a_login_without_rights_on_the_schema_gets_an_error(self):
        session = self.cluster.session(self.name)
        session.run("create role guest_of_starting login")
        try:
            outcome = command("migrate", database_url=self.url.replace("user=postgres", "user=guest_of_starting"))
        finally:
            session.run("drop role guest_of_starting")
            session.close()
        self.assertNotEqual(outcome.returncode, 0)
        self.assertRegex(outcome.stderr, "(?i)permission denied|needs CREATE")
        self.assertFalse(re.search(r"Fatal error|Stack dump", outcome.stderr))
