"""Restoring to a moment, by the commands of docs/high-availability.md, and what it does to keys, holds and running instances."""

import os
import re
import subprocess

from support import processes
from support.case import Case, needs_one_machine
from support.postgres import Cluster, as_postgres_user, chown_to_postgres, make_directory
from support.service import Service
from support.waiting import wait_until
from support.wire import Answer

PAGE = os.path.join(os.path.dirname(__file__), "../../../docs/high-availability.md")
PRINTED_ARCHIVE = "/var/lib/postgresql/archive"


def printed(language):
    """The blocks of the section, in their order."""
    with open(PAGE) as file:
        section = re.search(r"^## Restore to a moment\n(.*?)^## ", file.read(), re.M | re.S)[1]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


@needs_one_machine("it restores one server; those of a distributed database have to be restored to one moment")
class ToAMoment(Case):
    OWN_CLUSTER = True
    FLAGS = None

    def as_postgres(self, script, **variables):
        path = os.pathsep.join([self.cluster.bin, os.environ["PATH"]])
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], check=True, cwd="/", env={"PATH": path, **variables}, **as_postgres_user()
        )

    def test_messages_and_keys_after_the_moment_are_gone_and_earlier_ones_still_count_once(self):
        self.home = processes.directory()
        chown_to_postgres(self.home)
        archive = make_directory(f"{self.home}/archive")
        for statement in printed("sql")[0].strip().split(";\n"):
            self.psql.run(statement.replace(PRINTED_ARCHIVE, archive))
        self.psql.close()
        self.cluster.stop()
        self.cluster.start()
        type(self).psql = self.cluster.session(self.database)

        backup, restore = printed("sh")
        locations = {"BACKUP": f"{self.home}/backup", "RESTORED": f"{self.home}/restored"}
        self.as_postgres(backup, PRIMARY_URL=self.cluster.url("postgres"), **locations)

        # The restored server does not exist yet.
        future = f"host={self.cluster.home},{self.home}/2 user=postgres dbname={self.database}"
        service = Service(database_url=future)
        self.services.append(service)
        user = self.user()
        service.send_command(f"CONSUME {user} 3 key=before")
        moment = self.psql.value("select clock_timestamp()")
        wait_until(lambda: self.psql.value(f"select clock_timestamp() > '{moment}'") == "t", "that the moment has passed")
        service.send_command(f"CONSUME {user} 2 key=after")
        service.send_command(f"RESERVE {user} 1 key=held")
        self.assertRegex(service.send_command(f"USAGE {user}"), " used=5 ")
        last = self.psql.value("select pg_walfile_name(pg_current_wal_lsn())")
        self.psql.run("select pg_switch_wal()")
        archived = "select last_archived_wal >= '{}' from pg_stat_archiver"
        wait_until(lambda: self.psql.value(archived.format(last)) == "t", "that the WAL is archived")
        self.psql.close()
        self.cluster.stop()

        self.as_postgres(restore.replace(PRINTED_ARCHIVE, archive), MOMENT=moment, **locations)
        restored = Cluster(home=f"{self.home}/2", like=locations["RESTORED"])
        self.addCleanup(restored.stop_immediately)
        type(self).psql = restored.session(self.database)
        wait_until(lambda: self.psql.value("select pg_is_in_recovery()") == "f", "that the restored server is promoted")

        # The running instance has found it.
        wait_until(lambda: service.send_command(f"USAGE {user}").startswith("+OK "), "an answer of the restored server")
        wait_until(lambda: service.info().get("timeline") == "2", "that the monitor is connected to the restored server")
        self.assertRegex(service.send_command(f"USAGE {user}"), " used=3 ")
        again = Answer(service.send_command(f"CONSUME {user} 3 key=before"))
        self.assertEqual((again["used"], again["replayed"]), ("3", "1"))
        self.assertRegex(service.send_command(f"COMMIT {user} key=held"), "^-NOTFOUND ")
        self.assertRegex(service.send_command(f"CONSUME {user} 2 key=after"), r"^\+ALLOWED .*used=5 ")
        self.assertIn("the database does not know this lane's receipt", service.log())
