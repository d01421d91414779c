"""Restoring the servers of a distributed database to one point, and its dump to one machine, by the commands of docs/distributed.md."""

import os
import shutil

from support import printed, processes, settings
from support.case import Case
from support.citus import Node
from support.postgres import VOLATILE, PortCluster, as_postgres_user, chown_to_postgres, make_directory
from support.service import Service, command
from support.waiting import wait_until
from support.wire import Answer

PRINTED_ARCHIVE = "/var/lib/postgresql/archive"
SERVERS = ("db", "w1", "w2")
"""The names of the coordinator and of the workers, in the order of their groups."""


def texts(page, heading, language):
    """The blocks of a section, in their order."""
    return [block.text for block in printed.blocks(page) if block.heading == heading and block.language == language]


def texts_of_scaling(language):
    return texts("docs/distributed.md", "## Back up and restore", language)


def run_shell(script, variables, **options):
    """Runs a block; returns its output."""
    path = os.pathsep.join([variables.pop("PROGRAMS"), os.path.dirname(settings.binary), os.environ["PATH"]])
    options = {"cwd": "/", **options}
    done = processes.completed(["bash", "-euo", "pipefail", "-c", script], env={"PATH": path, **variables}, **options)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


class Restoring(Case):
    NEEDS_CITUS = True
    FLAGS = None

    def users_by_worker(self):
        """Two users of each worker who have sent three messages."""
        placements = self.cluster.placements(self.database)
        users = {worker.name: [] for worker in self.cluster.workers}
        while any(len(of_worker) < 2 for of_worker in users.values()):
            user = self.user()
            of_worker = users[placements[self.psql.number(f"select headroom.bucket_of('{user}')")][1].name]
            if len(of_worker) < 2:
                of_worker.append(user)
        for user in sum(users.values(), []):
            self.assertIn("+ALLOWED ", self.service.send_command(f"CONSUME {user} 3 key=before"))
        return users

    def start_service(self, database_url):
        type(self).service = Service(database_url=database_url)
        self.services.append(self.service)

    def assert_used(self, user, used):
        self.assertEqual(Answer(self.service.send_command(f"USAGE {user}")).used, used, user)

    def assert_counts_on(self, user, used):
        """What came before counts once, and what came after as something new."""
        self.assertEqual(Answer(self.service.send_command(f"CONSUME {user} 3 key=before"))["replayed"], "1")
        new = Answer(self.service.send_command(f"CONSUME {user} 2 key=after"))
        self.assertEqual((new.status, new.used, new.get("replayed")), ("ALLOWED", used + 2, None))


class ToAPoint(Restoring):
    OWN_CLUSTER = True

    def run_as_postgres(self, script, **variables):
        account = as_postgres_user()
        return run_shell(script.replace(PRINTED_ARCHIVE, self.archive), {"PROGRAMS": self.cluster.bin, **variables}, **account)

    def setUp(self):
        super().setUp()
        self.home = processes.directory(mode=0o711)
        chown_to_postgres(self.home)
        self.archive, self.backups = make_directory(f"{self.home}/archive"), make_directory(f"{self.home}/backups")
        one_server = ("docs/high-availability.md", "## Restore to a moment")
        (keep_wal,) = texts(*one_server, "sql")
        back_up = texts(*one_server, "sh")[0]
        self.make_point, self.restore, _ = texts_of_scaling("sh")
        (self.complete,) = texts_of_scaling("sql")
        for server, node in zip(SERVERS, self.cluster.nodes):
            make_directory(f"{self.archive}/{server}")
            node.sql(*keep_wal.replace(PRINTED_ARCHIVE, f"{self.archive}/{server}").strip().split(";\n"))
        self.psql.close()
        self.cluster.stop()
        self.cluster.start()
        type(self).psql = self.cluster.session(self.database)
        for server, node in zip(SERVERS, self.cluster.nodes):
            self.run_as_postgres(back_up, PRIMARY_URL=node.url("postgres"), BACKUP=f"{self.backups}/{server}")

    def wait_until_archived(self, files):
        for node, file in zip(self.cluster.nodes, files):
            archived = f"select last_archived_wal >= '{file}' from pg_stat_archiver"
            wait_until(lambda: node.sql(archived) == "t", f"the archive of {node.name} has {file}")

    def files(self):
        return self.cluster.on_each(lambda node: node.sql("select pg_walfile_name(pg_current_wal_lsn())"))

    def point(self):
        """Makes a restore point; returns its name when each archive has it."""
        before = self.files()
        output = self.run_as_postgres(self.make_point + 'echo "$point"', DATABASE_URL=self.database_url)
        self.wait_until_archived(before)
        return output.splitlines()[-1]

    def go_on(self, users):
        """Sends messages and changes a plan after the point, and stops the servers when their archives have it."""
        for user in users:
            self.assertIn("+ALLOWED ", self.service.send_command(f"CONSUME {user} 2 key=after"))
        self.assertIn("+HELD ", self.service.send_command(f"RESERVE {users[0]} 1 key=held"))
        self.psql.run("update headroom.plans set allowance = 7 where plan = 'paid'")
        last = self.files()
        self.cluster.on_each(lambda node: node.sql("select pg_switch_wal()"))
        self.wait_until_archived(last)
        self.psql.close()
        self.cluster.stop()

    def restore_to(self, point, ports):
        """Restores all servers, and starts them as the page says: the coordinator last."""
        for server in SERVERS:
            self.run_as_postgres(self.restore, BACKUPS=self.backups, SERVER=server, POINT=point, RESTORED=f"{self.home}/{server}-data")
        restored = {}
        for server, port in reversed(list(zip(SERVERS, ports))):
            node = Node(VOLATILE, f"{self.home}/{server}", f"{self.home}/{server}-data", port)
            self.addCleanup(node.stop_immediately)
            wait_until(lambda: node.sql("select pg_is_in_recovery()") == "f", f"{server} is promoted")
            restored[server] = node
        type(self).psql = restored["db"].session(self.database)
        return restored

    def assert_plans_are_as_before(self, restored):
        allowances = {name: node.sql("select allowance from headroom.plans where plan = 'paid'", database=self.database)
                      for name, node in restored.items()}  # fmt: skip
        self.assertEqual(allowances, dict.fromkeys(SERVERS, "800"))


class AtTheSameAddresses(ToAPoint):
    def test_an_instance_that_runs_goes_on_with_what_came_before_the_point(self):
        self.start_service(self.database_url)
        users = sum(self.users_by_worker().values(), [])
        point = self.point()
        self.go_on(users)
        restored = self.restore_to(point, [node.port for node in self.cluster.nodes])
        self.wait_until_lanes_are_connected()
        wait_until(lambda: self.service.info().get("timeline") == "2", "the monitor is connected to the restored coordinator")
        for user in users:
            self.assert_used(user, 3)
        self.assertRegex(self.service.send_command(f"COMMIT {users[0]} key=held"), "^-NOTFOUND ")
        for user in users:
            self.assert_counts_on(user, 3)
        self.assert_plans_are_as_before(restored)
        self.assertIn("the database does not know this lane's receipt", self.service.log())


class AtOtherAddresses(ToAPoint):
    def prepare(self, worker, number, user, is_committed):
        """Leaves a transaction that gives a user ten messages prepared on a worker, as if the coordinator had failed; with
        `is_committed` after its commit."""
        name = f"citus_0_1_{number}_0"
        bucket = self.psql.number(f"select headroom.bucket_of('{user}')")
        shard, _ = self.cluster.placements(self.database)[bucket]
        session = worker.session(self.database)
        # Without triggers, because Citus lets nobody else prepare a transaction in which it was called.
        session.run("set session_replication_role = replica")
        session.run("begin")
        session.run(f"update message_usage_{shard} set message_count = message_count + 10 where user_id = '{user}'")
        session.run(f"prepare transaction '{name}'")
        session.close()
        if is_committed:
            self.psql.run(f"insert into pg_dist_transaction (groupid, gid) select groupid, '{name}' from pg_dist_node"
                          f" where nodeport = {worker.port}")  # fmt: skip

    def addresses(self, node):
        return node.sql("select groupid, nodename, nodeport from pg_dist_node order by groupid", database=self.database).splitlines()

    def test_a_new_instance_counts_on_and_prepared_transactions_end_as_the_coordinator_had_decided(self):
        self.start_service(self.database_url)
        users = self.users_by_worker()
        # After the base backups, so the restored servers do not have it.
        self.cluster.on_each(lambda node: node.sql("alter system set citus.recover_2pc_interval = -1", "select pg_reload_conf()"))
        for number, worker in enumerate(self.cluster.workers):
            committed, undecided = users[worker.name]
            self.prepare(worker, 2 * number, committed, is_committed=True)
            self.prepare(worker, 2 * number + 1, undecided, is_committed=False)
        point = self.point()
        # The prepared transactions lock the rows of the users above.
        others = sum(self.users_by_worker().values(), [])
        self.go_on(others)
        self.service.stop()

        restored = self.restore_to(point, [processes.free_port() for _ in SERVERS])
        daemons, begin, update, commit, synced, recover = (line.partition(";")[0] for line in self.complete.splitlines())
        wait_until(lambda: self.psql.value(daemons) == "1", "Citus's maintenance process")
        self.psql.run(begin)
        for group, node in enumerate(restored[server] for server in SERVERS):
            changes = {"'w1-new'": "'127.0.0.1'", "5432": str(node.port), "groupid = 1": f"groupid = {group}"}
            statement = update
            for text, change in changes.items():
                self.assertIn(text, statement)
                statement = statement.replace(text, change)
            self.psql.run(statement)
        self.psql.run(commit)
        wait_until(lambda: self.psql.value(synced) == "t", "the workers have the addresses")
        expected = [f"{group}|127.0.0.1|{restored[server].port}" for group, server in enumerate(SERVERS)]
        self.assertEqual([self.addresses(node) for node in restored.values()], [expected] * len(SERVERS))
        # Citus may have ended some before.
        self.psql.run(recover)
        self.assertEqual([node.sql("select gid from pg_prepared_xacts") for node in restored.values()], [""] * len(SERVERS))

        self.start_service(restored["db"].url(self.database))
        for committed, undecided in users.values():
            self.assert_used(committed, 13)
            self.assert_used(undecided, 3)
            self.assert_counts_on(committed, 13)
            self.assert_counts_on(undecided, 3)
        for user in others:
            self.assert_used(user, 0)
        self.assert_plans_are_as_before(restored)


class FromADump(Restoring):
    def test_one_machine_without_Citus_has_everything_and_counts_on(self):
        self.start_service(self.database_url)
        users = sum(self.users_by_worker().values(), [])
        self.service.stop()
        machine = PortCluster()
        self.addCleanup(machine.end)
        variables = {"DATABASE_URL": self.database_url, "RESTORED_URL": machine.create_database("restored")}
        folder = processes.directory()
        self.addCleanup(shutil.rmtree, folder)
        *_, restore = texts_of_scaling("sh")
        for script in (*texts("docs/database.md", "### Back up", "sh"), restore):
            run_shell(script, {"PROGRAMS": self.cluster.bin, **variables}, cwd=folder)
        migrated = command("migrate", database_url=variables["RESTORED_URL"])
        self.assertEqual((migrated.returncode, migrated.stdout), (0, "the schema is current\n"), migrated.stderr)
        self.start_service(variables["RESTORED_URL"])
        self.assertNotIn("nodes", self.service.info())
        for user in users:
            self.assert_used(user, 3)
            self.assert_counts_on(user, 3)
