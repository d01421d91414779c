"""What commands show on a terminal while their work goes on."""

import os
import pty
import re
import subprocess
import threading
import time

from support import processes, settings
from support.case import Case, needs_one_machine
from support.service import environment
from support.users import new_user
from support.waiting import wait_until


class Terminal:
    """A command whose standard error is a terminal."""

    def __init__(self, *arguments, url):
        own, other = pty.openpty()
        self.process = subprocess.Popen(
            [settings.binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=other, cwd="/",
            env=environment(DATABASE_URL=url, TERM="xterm"),
        )  # fmt: skip
        os.close(other)
        self.descriptor, self.shown = own, ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.descriptor, 65_536)
            except OSError:
                # The command has ended.
                return
            self.shown += data.decode()

    def status(self):
        status = self.process.wait()
        self.reader.join()
        os.close(self.descriptor)
        return status


class Importing(Case):
    def test_an_import_shows_the_rows_the_rate_and_the_time_left(self):
        begun = time.monotonic()
        path = processes.directory() + "/users.csv"
        users = [new_user() for _ in range(2_500)]
        with open(path, "w") as file:
            file.writelines(["user,plan\n", *(f"{user},paid\n" for user in users)])
        # The second of three batches waits for this row.
        self.psql.run("begin")
        locked = users[1_500]
        self.psql.run(f"insert into headroom.subscribers (bucket, user_id) values (headroom.bucket_of('{locked}'), '{locked}')")
        terminal = Terminal("import", path, url=self.database_url)
        self.wait_until_blocked()
        wait_until(lambda: time.monotonic() > begun + 1.5, "the time in which nothing is shown is over")
        self.psql.run("rollback")
        self.assertEqual(terminal.status(), 0, terminal.shown)
        self.assertRegex(terminal.shown, r"\r\x1b\[K80 %, 2000 of 2500 rows, \d+ a second, 0:\d\d left\r\x1b\[K")


@needs_one_machine("it migrates an empty database")
class Migrating(Case):
    FLAGS = None
    MIGRATED = False

    def test_a_migration_shows_the_file_that_takes_long(self):
        self.psql.run(
            "create table message_usage (user_id uuid not null, billing_period text not null, message_count integer not null,"
            ' "limit" integer, updated_at timestamptz not null, primary key (user_id, billing_period))'
        )
        self.psql.run("begin")
        self.psql.run("lock table message_usage in access share mode")
        terminal = Terminal("migrate", url=self.database_url)
        line = re.compile(r"step \d+: applying tables/000\d_\w+\.sql, 0:0[1-9]")
        wait_until(lambda: line.search(terminal.shown) or terminal.process.poll() is not None, "the file is shown")
        self.psql.run("rollback")
        self.assertEqual(terminal.status(), 0, terminal.shown)
        self.assertRegex(terminal.shown, line)
        self.assertTrue(terminal.shown.endswith("\r\x1b[K"), repr(terminal.shown))
