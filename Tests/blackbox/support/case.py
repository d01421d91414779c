"""What tests have in common."""

import random
import unittest
import uuid

from .postgres import Cluster
from .service import Service

# The middle of a month, far from every boundary, so that each line is known to the second.
NOON = "2026-03-15T09:30:00Z"


class Case(unittest.TestCase):
    """A database of its own for each class, with a service on it."""

    FLAGS = ()
    """Of the class's service; None starts none."""
    OWN_CLUSTER = False
    """For classes that stop or break the database."""
    CLOCK = None
    """The database's clock, pinned; None lets it run."""

    maxDiff = None
    longMessage = True

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster() if cls.OWN_CLUSTER else Cluster.shared()
        cls.database = cls.cluster.new_database()
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
            cls.cluster.stop_immediately()

    @classmethod
    def serve(cls, *flags, wait=True, **options):
        """Another instance on the class's database."""
        service = Service(*flags, database_url=cls.database_url, wait=wait, **options)
        cls.services.append(service)
        return service

    @classmethod
    def set_clock(cls, instant):
        """Everything asks headroom.now(); replacing it moves time for all instances at once."""
        cls.psql.run(
            "create or replace function headroom.now() returns timestamptz language sql stable parallel safe"
            f" return timestamptz '{instant}'"
        )

    @classmethod
    def user(cls):
        """A new user."""
        return str(uuid.UUID(int=random.getrandbits(128), version=4))

    def setUp(self):
        if self.service is not None and self.service.process.poll() is not None:
            self.fail(f"the service is gone:\n{self.service.log()[-4000:]}")

    def ask(self, request):
        return self.service.ask(request)

    def count(self, user):
        """Messages of a user over all periods, as the table says."""
        return self.psql.number(f"select coalesce(sum(message_count), 0) from message_usage where user_id = '{user}'")

    def set_count(self, user, count):
        """What an operator types."""
        self.psql.run(f"update message_usage set message_count = {count} where user_id = '{user}'")

    def subscriber(self, plan="paid", options="", used=None):
        """A user on a plan, with a row in the current period that says `used`."""
        user = self.user()
        self.assertIn("+OK ", self.ask(f"SETPLAN {user} {plan} {options}"))
        if used is not None:
            self.assertIn("+ALLOWED ", self.ask(f"CONSUME {user}"))
            self.set_count(user, used)
        return user
