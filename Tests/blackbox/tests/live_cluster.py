"""script/cluster starts a high-availability cluster with a load, and leaves nothing."""

import os
import re
import signal
import subprocess
import unittest
from pathlib import Path

from support import processes, settings
from support.nightly import nightly
from support.residence import residents
from support.service import environment
from support.waiting import TIMEOUT_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = str(ROOT / "script" / "cluster")
LINE = re.compile(r"^\d\d:\d\d:\d\d leader=node(\d) timeline=(\d+) .*allowed/s=(\d+) gap=[\d.]+ longest=[\d.]+ errors: ", re.MULTILINE)


def can_install():
    done = processes.completed([str(ROOT / "script" / "install-patroni")], env=environment())
    return done.returncode == 0, done.stderr


class LiveCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        is_installed, reason = can_install()
        if not is_installed and os.environ.get("CI") != "true":
            raise unittest.SkipTest(f"Patroni and etcd cannot be installed here: {reason}")
        assert is_installed, reason

    def setUp(self):
        self.directory = processes.directory()
        self.files = [self.directory + "/stdout", self.directory + "/stderr"]

    def start(self, *arguments):
        with open(self.files[0], "wb") as out, open(self.files[1], "wb") as err:
            return processes.start(
                [SCRIPT, "--binary", settings.binary, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd="/",
                env=environment(),
            )  # fmt: skip

    def output(self, file=0):
        return Path(self.files[file]).read_text()

    @property
    def home(self):
        return Path(re.search(r"^directory +(\S+)$", self.output(), re.MULTILINE)[1])

    @nightly("its flags; script/faults --cluster --gate")
    def test_it_shows_the_leader_and_allowed_messages_and_ends_by_itself_without_a_trace(self):
        cluster = self.start("--seconds", "3")
        self.assertEqual(cluster.wait(TIMEOUT_SECONDS), 0, self.output(1))
        shown = LINE.findall(self.output())
        self.assertGreater(len(shown), 0, self.output())
        self.assertGreater(sum(int(allowed) for _, _, allowed in shown), 0, self.output())
        self.assertRegex(self.output(), r"(?m)^To switch over +\S+/patronictl -c \S+ switchover headroom --force$")
        self.assertRegex(self.output().splitlines()[-1], r"^\d+ messages allowed, longest gap since the lead changed [\d.]+ s, errors: ")
        # On a slow machine, lines with the time follow each of them.
        began = [line for line in self.output(1).splitlines() if not re.fullmatch(r"cluster: .*, for \d+ s", line)]
        self.assertEqual(began, [f"cluster: {what}" for what in ("creating the database", "starting the nodes", "starting the instances")])
        self.assertFalse(self.home.exists())
        self.assertEqual(residents(self.home), [])

    @nightly("its flags; script/faults --cluster --gate")
    def test_nothing_is_left_when_it_is_killed(self):
        cluster = self.start("--nodes", "2", "--no-load")
        wait_until(lambda: LINE.search(self.output()) or cluster.poll() is not None, "a line", 3 * TIMEOUT_SECONDS)
        home = self.home
        names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in residents(home)}
        self.assertLessEqual({"etcd", "postgres", "headroom"}, names)
        cluster.send_signal(signal.SIGKILL)
        cluster.wait(TIMEOUT_SECONDS)
        wait_until(lambda: not home.exists(), "the directory is deleted")
        self.assertEqual(residents(home), [])

    def test_a_wrong_flag_starts_nothing(self):
        for arguments, said in [
            (("--ttl", "5"), "--ttl must be at least 20"), (("--nodes", "1"), "--nodes must be 2 to 9"), (("--lanes",), "unrecognized"),
        ]:  # fmt: skip
            with self.subTest(arguments):
                cluster = self.start(*arguments)
                self.assertEqual(cluster.wait(TIMEOUT_SECONDS), 2)
                self.assertIn(said, self.output(1))
                self.assertEqual(self.output(), "")


if __name__ == "__main__":
    unittest.main()
