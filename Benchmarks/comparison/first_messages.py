"""Messages for which the service knows nothing yet: after a restart, of new users, of a new month, after an edit of the
plan, and of more users than it caches. Each is measured beside messages of users that it has cached, in the same database
and by the same load generator.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from pathlib import Path

from .bench import Bench
from .figures import Sample
from .generators import InTurn
from .machine import compiled, print_progress
from .peers import ALLOWANCE, Headroom, users_sql
from .titles import NEW_USERS, ROTATION_USERS, USERS, load_name

#: A slow first message is a figure, and no failure of the run: 1,024 in flight would be refused below 2,000 a second.
PATIENT = ("--queue-wait-ms=30000", "--request-timeout-ms=60000")
#: The first number of a user that no message was sent for.
UNUSED_NUMBER = 10_000_000
DAY, MINUTE = datetime.timedelta(days=1), datetime.timedelta(minutes=1)


def in_turn(bench: Bench) -> InTurn:
    return InTurn(compiled(Path(__file__).with_name("in_turn.c"), bench.work / "in_turn"))


def unmeasured(service: Headroom, what: str, sample: Sample) -> None:
    service.counted(what, sample["messages"])


# A restart, and new users ---------------------------------------------------------------------------------------------


def restart_stage(bench: Bench) -> None:
    load = in_turn(bench)
    numbers = itertools.count(UNUSED_NUMBER, NEW_USERS)

    def new_users(service: Headroom, may_refuse: bool = False) -> Sample:
        return load.measure(service.port, NEW_USERS, first=next(numbers), may_refuse=may_refuse)

    def measure_kind(kind: str, service: Headroom) -> None:
        def restart() -> None:
            service.stop()
            service.start(*PATIENT)

        if not any(name.startswith((f"headroom_cold_{kind}", f"headroom_warm_{kind}")) for name in bench.wanted):
            return
        # Every page was written once since the checkpoint, and every user is cached.
        unmeasured(service, "a first pass", load.measure(service.port, USERS))
        for pipeline in (1, 16):

            def once(pipeline: int = pipeline) -> Sample:
                return load.measure(service.port, USERS, pipeline)

            bench.by_passes(f"headroom_cold_{kind}_{load_name(pipeline)}", service, once, restart)
            bench.by_passes(f"headroom_warm_{kind}_{load_name(pipeline)}", service, once)

    with bench.separate_service("own_periods", *PATIENT) as service:
        prepare_own_periods(service)
        bench.settle(service.database)

        def measure() -> None:
            measure_kind("month", bench.headroom)
            measure_kind("own", service)
            bench.by_passes("headroom_new_users", service, lambda: new_users(service))
            if bench.is_wanted("headroom_new_users_limited"):
                service.stop()
                service.start()
                unmeasured(service, "a first pass", load.measure(service.port, USERS, may_refuse=True))
                bench.by_passes("headroom_new_users_limited", service, lambda: new_users(service, may_refuse=True))
                service.stop()
                service.start(*PATIENT)

        bench.rounds(measure)
    bench.headroom.stop()
    bench.headroom.start()


def prepare_own_periods(service: Headroom) -> None:
    """Users whose period is not the calendar month: two are in a trial, then two have an anchor day.

    Two by two, because lanes have users with even and with odd numbers. The period that began on the 31st of last month
    has last month's name, except on the last day of this month: then all of them are in a trial.
    """
    service.make_plan()
    service.postgres.sql(
        f"update headroom.plans set allowance = {ALLOWANCE} where plan = 'trial'",
        f"""
        set session_replication_role = replica;
        create temporary table anchored as select user_id from ({users_sql(USERS)}) as users
        where right(user_id::text, 2)::integer % 4 >= 2
            and extract(day from (now() at time zone 'UTC') + interval '1 day') > 1;
        insert into headroom.subscribers (user_id, anchor_day) select user_id, 31 from anchored;
        insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at)
        select user_id, 'operator', 'bench', now() from anchored""",
        database=service.database,
        seconds=900,
    )
    service.send_first_messages(USERS)


# A new month ----------------------------------------------------------------------------------------------------------


def month_stage(bench: Bench) -> None:
    """The database's clock passes the end of a month, as it would: the service has all users' old period in its cache."""
    load = in_turn(bench)
    with bench.separate_service("month", *PATIENT) as service:
        months = ends_of_months(datetime.datetime.now(datetime.timezone.utc))
        end = next(months)
        set_clock(service, end - DAY)
        service.prepare(USERS)
        bench.settle(service.database)

        def once() -> Sample:
            return load.measure(service.port, USERS)

        def turn() -> None:
            nonlocal end
            set_clock(service, end - 10 * MINUTE)
            unmeasured(service, "the last evening of a month", once())
            set_clock(service, end + MINUTE)
            end = next(months)

        def measure() -> None:
            unmeasured(service, "a first pass", once())
            bench.by_passes("headroom_within_month", service, once)
            bench.by_passes("headroom_new_month", service, once, turn)

        bench.rounds(measure)


def ends_of_months(now: datetime.datetime) -> Iterator[datetime.datetime]:
    """The ends of this month and of those after it."""
    end = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while True:
        end = (end + datetime.timedelta(days=31)).replace(day=1)
        yield end


def set_clock(service: Headroom, instant: datetime.datetime) -> None:
    """Replaces headroom.now(), by which the service counts. The clock goes on from that instant."""
    ahead = instant - datetime.datetime.now(datetime.timezone.utc)
    service.postgres.sql(
        "create or replace function headroom.now() returns timestamptz language sql stable parallel safe "
        f"return pg_catalog.now() + interval '{ahead.total_seconds():.0f} seconds'; "
        # A service that starts would refuse a function that is not as it was installed.
        "delete from headroom.installed_objects where object = 'function headroom.now()'",
        database=service.database,
    )


# An edit of the plan --------------------------------------------------------------------------------------------------


def plan_edit_stage(bench: Bench) -> None:
    load = in_turn(bench)
    with bench.separate_service("edited", *PATIENT) as service:
        service.prepare(USERS)
        bench.settle(service.database)
        allowances = itertools.count(ALLOWANCE + 1)

        def once() -> Sample:
            return load.measure(service.port, USERS)

        def edit() -> None:
            service.postgres.sql(
                f"update headroom.plans set allowance = {next(allowances)} where plan = 'bench'", database=service.database
            )

        def measure() -> None:
            unmeasured(service, "a first pass", once())
            bench.by_passes("headroom_before_edit", service, once)
            bench.by_passes("headroom_after_edit", service, once, edit)

        bench.rounds(measure)


# More users than are cached -------------------------------------------------------------------------------------------


def rotation_stage(bench: Bench) -> None:
    load = in_turn(bench)
    with bench.separate_service("rotation") as service:
        print_progress(f"making {ROTATION_USERS:,} users")
        service.prepare_rows(ROTATION_USERS)
        bench.settle(service.database)

        def rotation() -> Sample:
            return load.measure(service.port, ROTATION_USERS)

        def cached() -> Sample:
            # Scattered over the same table, so that only the cache differs.
            return load.measure(service.port, USERS, among=ROTATION_USERS, cycles=10)

        def measure() -> None:
            # Every page was written once since the checkpoint.
            unmeasured(service, "a first rotation", rotation())
            bench.by_passes("headroom_rotation", service, rotation)
            unmeasured(service, "a first pass", load.measure(service.port, USERS, among=ROTATION_USERS))
            bench.by_passes("headroom_rotation_cached", service, cached)

        bench.rounds(measure)
