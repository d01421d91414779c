"""The base class of tests with a database and a service."""

import functools
import unittest

from . import citus
from .citus import CitusCluster
from .postgres import Cluster
from .service import Service, command
from .users import new_user
from .waiting import wait_until

# The middle of a month, far from every boundary, so that each line is known to the second.
MID_MONTH = "2026-03-15T09:30:00Z"

LONG_TIMEOUTS = {
    "HEADROOM_RENEWAL_LEEWAY": "0",
    "HEADROOM_REQUEST_TIMEOUT_MS": "30000",
    "HEADROOM_QUEUE_WAIT_MS": "15000",
    **{
        f"HEADROOM_{name}_TIMEOUT_MS": "300000"
        for name in ("FIRST_REQUEST", "INCOMPLETE_REQUEST", "OUTPUT", "TLS_HANDSHAKE", "AUTHENTICATION", "HTTP_REQUEST")
    },
}
"""A busy machine may exceed the service's default timeouts, so tests run with long ones. A test of a timeout sets its own by a
flag, which wins over the environment."""


def needs_one_machine(reason):
    """Marks a class or a test that `script/test --citus` leaves out, and says why it cannot hold in a distributed database.
    docs/scaling.md lists what differs there."""

    def mark(marked):
        marked.one_machine_reason = reason
        return marked

    return mark


def called_by(runner, **options):
    """Has a method of the class call the test, with what it gives: for each client, say."""

    def decorate(test):
        @functools.wraps(test)
        def run(self):
            getattr(self, runner)(lambda *given: test(self, *given), **options)

        return run

    return decorate


class Case(unittest.TestCase):
    """A database of its own for each class, with a service on it."""

    FLAGS = ()
    """Flags of the class's service; None starts no service."""
    OWN_CLUSTER = False
    """For classes that stop or break the database."""
    MIGRATED = True
    """Whether the database is migrated at the start. If not (for tests of adoption and migration), the owner migrates it when the
    first service is started."""
    CLOCK = None
    """A fixed time of the database's clock, which each test begins with; None lets it run."""
    _clock = None
    """What the clock was set to last."""
    SHARED = False
    """Whether the tests use only users of their own: then the class shares its database and service with other classes of its
    worker that have the same flags and clock."""
    one_machine_reason = ""
    """See `needs_one_machine`."""
    NEEDS_CITUS = False
    """For classes about the servers of a distributed database: only `script/test --citus` runs them."""
    _hosts = {}
    """Classes that own a shared database and service, by flags and clock. They stay until the worker ends."""

    maxDiff = None
    longMessage = True

    @classmethod
    def setUpClass(cls):
        if cls.SHARED:
            cls._join_host()
        else:
            cls._set_up_alone()

    @classmethod
    def _join_host(cls):
        key = (cls.FLAGS, cls.CLOCK)
        if key not in Case._hosts:
            host = type("Host", (Case,), {"FLAGS": cls.FLAGS, "CLOCK": cls.CLOCK})
            host._set_up_alone()
            Case._hosts[key] = host
        host = Case._hosts[key]
        for name in ("cluster", "database", "database_url", "service"):
            setattr(cls, name, getattr(host, name))
        cls.services = []
        cls.psql = cls.cluster.session(cls.database)

    @classmethod
    def _set_up_alone(cls):
        kind = CitusCluster if citus.is_asked_for() else Cluster
        cls.cluster = kind() if cls.OWN_CLUSTER else kind.shared()
        cls.database = cls.cluster.new_database(cls.MIGRATED)
        cls.database_url = cls.cluster.url(cls.database)
        cls.services = []
        cls.psql = cls.cluster.session(cls.database)
        cls.service = None
        if cls.FLAGS is not None:
            cls.service = cls.serve(*cls.FLAGS)
            if cls.CLOCK:
                cls.set_clock(cls.CLOCK)

    @classmethod
    def tearDownClass(cls):
        for service in cls.services:
            service.stop()
        cls.psql.close()
        if cls.OWN_CLUSTER:
            cls.cluster.end()
        elif not cls.SHARED:
            cls.cluster.drop_database(cls.database)

    @classmethod
    def serve(cls, *flags, wait=True, env=None, **options):
        """Starts another instance on the class's database, with long timeouts."""
        if not cls.MIGRATED:
            # If this fails, the service reports the reason.
            command("migrate", database_url=cls.database_url)
        service = Service(*flags, database_url=cls.database_url, wait=wait, env={**LONG_TIMEOUTS, **(env or {})}, **options)
        cls.services.append(service)
        return service

    @classmethod
    def set_clock(cls, instant):
        """Replaces headroom.now(), which every statement calls: time moves for all instances at once."""
        cls.psql.run(
            "create or replace function headroom.now() returns timestamptz language sql stable parallel safe"
            f" return timestamptz '{instant}'"
        )
        cls._clock = instant
        # A service that starts would refuse a function that is not as it was installed.
        cls.psql.run("delete from headroom.installed_objects where object = 'function headroom.now()'")

    @classmethod
    def user(cls):
        return new_user()

    def setUp(self):
        kind = type(self)
        if "first_clock" not in vars(kind):
            kind.first_clock = kind._clock
        elif kind.first_clock not in (None, kind._clock):
            self.set_clock(kind.first_clock)
        if self.service is not None and self.service.process.poll() is not None:
            self.fail(f"the service has ended:\n{self.service.log()[-4000:]}")

    def send_command(self, request):
        return self.service.send_command(request)

    def count(self, user):
        """A user's messages over all periods, from the table."""
        return self.psql.number(f"select coalesce(sum(message_count), 0) from message_usage where user_id = '{user}'")

    def lock_rows(self, *users):
        """An open session of psql, in whose transaction these users' rows are locked until it is closed."""
        session = self.cluster.session(self.database)
        session.run("begin")
        for user in users:
            session.run(f"select from message_usage where bucket = headroom.bucket_of('{user}') and user_id = '{user}' for update")
        return session

    def wait_until_blocked(self):
        """Waits until a statement of a service waits for a lock that the test holds."""
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        wait_until(lambda: self.cluster.number(waiting, self.database), "a statement waits for the lock")

    def wait_until_lanes_are_connected(self):
        """After an outage each lane connects by itself, one later than another; until then it refuses its own users."""

        def are_connected():
            info = self.service.info()
            return info["lanes_connected"] == info["lanes"]

        wait_until(are_connected, "every lane is connected")

    def set_count(self, user, count):
        """Sets a count as an operator does, by a plain UPDATE."""
        self.psql.run(f"update message_usage set message_count = {count} where user_id = '{user}'")

    def subscriber(self, plan="paid", options="", used=None):
        """Creates a user on a plan, with `used` messages in the current period."""
        user = self.user()
        self.assertIn("+OK ", self.send_command(f"SETPLAN {user} {plan} {options}"))
        if used is not None:
            self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user}"))
            self.set_count(user, used)
        return user
