"""How the scenarios are measured: each stage sets up what its scenarios need, and measures them in turn, round by round."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.certificates import Authority
from support.processes import Failure, resident_bytes
from support.users import numbered_user

from . import counting_http, first_messages, parts
from .background_load import AUTHORIZATION, EVENTS_PER_SECOND, PRODUCT, BackgroundLoad
from .bench import Bench
from .figures import Sample, median, rounded
from .machine import compiled, free_gigabytes, print_progress, raise_descriptor_limit
from .peers import Headroom, Redis
from .renewals import CONNECTIONS as RENEWAL_CONNECTIONS
from .renewals import Renewals
from .titles import (
    CLIENTS,
    CURVE_CONNECTIONS,
    CURVE_ROWS,
    CURVE_USERS,
    FLUSH_MILLISECONDS,
    HOLDS,
    IDLE_CONNECTIONS,
    ONE_USER_CLIENTS,
    PROTECTIONS,
    USERS,
    clients_name,
    load_name,
)

ANY_USER = "00000000-0000-4000-8000-__rand_int__"
#: The size of the tables of ten million users, with their write-ahead log.
ROWS_GIGABYTES = 28


def main_stage(bench: Bench) -> None:
    bench.rounds(lambda: _main_round(bench))


def _main_round(bench: Bench) -> None:
    headroom, ceiling, statement, redis = bench.headroom, bench.ceiling, bench.statement, bench.redis
    bench.by_pgbench("function_1_client", "function", 1)
    for name, peer in (("ceiling", ceiling), ("statement", statement), ("headroom", headroom)):
        bench.by_headroom_bench(f"{name}_single", peer, USERS, connections=1, pipeline=1)
    for name, best, counts in (
        ("function", "function_best", CLIENTS),
        ("function_one_user", "function_one_user", ONE_USER_CLIENTS),
    ):
        for clients in counts:
            bench.by_pgbench(f"{name}_{clients_name(clients)}", name, clients)
        if bench.is_wanted(best):
            bench.best(name, best, counts)
    any_key = redis.request("usage:__rand_int__")
    for pipeline in (1, 16):
        bench.by_redis_benchmark(f"redis_{load_name(pipeline)}", pipeline, USERS, any_key, redis)
        for name, peer in (("ceiling", ceiling), ("statement", statement), ("headroom", headroom)):
            bench.by_redis_benchmark(f"{name}_{load_name(pipeline)}", pipeline, USERS, ["CONSUME", ANY_USER], peer)
    # An open loop sends each message when it is due, so it is comparable to no pipelining; the more are due at once, the
    # more are sent in one write.
    for load, most in (("half_load", "headroom_64x16"), ("half_single", "headroom_64x1")):
        for name, peer in ((f"statement_{load}", statement), (f"headroom_{load}", headroom)):
            if bench.is_wanted(name):
                bench.by_headroom_bench(name, peer, USERS, rate=bench.latest(most)["per_second"] / 2)
    command = " ".join(redis.request("usage:{user}"))
    bench.by_headroom_bench("redis_zipf", redis, USERS, command=command, distribution="zipf:1")
    bench.by_headroom_bench("headroom_zipf", headroom, USERS, distribution="zipf:1")
    bench.by_redis_benchmark("redis_one_user", 16, 1, redis.request(f"usage:{numbered_user(0)}"), redis)
    for name, peer in (("ceiling", ceiling), ("statement", statement), ("headroom", headroom)):
        bench.by_redis_benchmark(f"{name}_one_user", 16, 1, ["CONSUME", numbered_user(0)], peer)
    for name, peer in (("statement", statement), ("headroom", headroom)):
        bench.by_headroom_bench(f"{name}_without_keys", peer, USERS, key_share=0)
        bench.by_headroom_bench(f"{name}_with_keys", peer, USERS, key_share=1)
        if bench.is_wanted(f"{name}_with_keys"):
            # The next measurement starts without keys.
            bench.postgres.sql("truncate headroom.message_keys", database=peer.database)


# Holds ----------------------------------------------------------------------------------------------------------------


def holds_stage(bench: Bench) -> None:
    headroom = bench.headroom

    def measure() -> None:
        for pipeline in HOLDS:
            for name, how in (("keyed", {"key_share": 1}), ("holds", {"verb": "reserve"})):
                # Each measurement starts without keys.
                bench.postgres.sql("truncate headroom.message_keys", database=headroom.database)
                bench.by_headroom_bench(f"headroom_{name}_{load_name(pipeline)}", headroom, USERS, pipeline=pipeline, **how)
                headroom.holds_nothing(f"headroom_{name}_{load_name(pipeline)}")

    bench.rounds(measure)
    bench.postgres.sql("truncate headroom.message_keys", database=headroom.database)


# A slow disk ----------------------------------------------------------------------------------------------------------


def slow_disk_stage(bench: Bench) -> None:
    library = slow_disk_library(bench.work)
    slow = {"LD_PRELOAD": str(library), "HEADROOM_FLUSH_MICROSECONDS": str(FLUSH_MILLISECONDS * 1000)}
    slow_redis = Redis(bench.work / "slow-redis", bench.work / "slow-redis.log")
    bench.redises.append(slow_redis)
    slow_redis.start(preload=slow)

    def measure() -> None:
        for name, preload, redis in (("undisturbed", {}, bench.redis), ("slow_disk", slow, slow_redis)):
            bench.postgres.restart(preload)
            for process in (bench.postgres.pid, redis.pid) if preload else ():
                if library.name not in Path(f"/proc/{process}/maps").read_text():
                    raise Failure("the library that slows flushes down was not loaded")
            bench.headroom.wait_for_database()
            # The restart emptied its memory.
            reads = ("select count(*) from public.message_usage", "select count(*) from plain.message_usage")
            bench.postgres.sql(*reads, database=bench.headroom.database)
            bench.by_pgbench(f"function_{name}", "function", CLIENTS[-1])
            request = redis.request("usage:__rand_int__")
            bench.by_redis_benchmark(f"redis_{name}", 16, USERS, request, redis)
            bench.by_redis_benchmark(f"headroom_{name}", 16, USERS, ["CONSUME", ANY_USER], bench.headroom)

    bench.rounds(measure)
    slow_redis.stop()
    bench.postgres.restart()
    bench.headroom.wait_for_database()


def slow_disk_library(work: Path) -> Path:
    return compiled(Path(__file__).with_name("slow_disk.c"), work / "slow_disk.so", "-shared", "-fPIC", "-ldl")


# Idle connections -----------------------------------------------------------------------------------------------------


def idle_stage(bench: Bench) -> None:
    limit, needed = raise_descriptor_limit(), IDLE_CONNECTIONS + 500
    if limit < needed:
        print_progress(f"skipped: {needed} open files are needed for idle connections, and {limit} are allowed (ulimit -Hn)")
        return
    headroom = bench.headroom

    def measure() -> None:
        for name, idle in (("headroom_alone", 0), ("headroom_among_idle", IDLE_CONNECTIONS)):
            # A new process, so that the memory is that of this measurement.
            headroom.stop()
            headroom.start(f"--connections-maximum={2 * IDLE_CONNECTIONS}", "--first-request-timeout-ms=3600000")
            bench.by_headroom_bench(name, headroom, USERS, idle_connections=idle)

    bench.rounds(measure)
    headroom.stop()
    headroom.start()


# The HTTP server ------------------------------------------------------------------------------------------------------


@contextmanager
def store_service(bench: Bench, database: str, *settings: str) -> Iterator[Headroom]:
    """A service with a webhook, on a separate database, because it stores the events."""
    settings = (f"--revenuecat-authorization={AUTHORIZATION}", *settings)
    with bench.separate_service(database, *settings, http="127.0.0.1:0") as service:
        service.prepare(USERS)
        service.map_product("revenuecat", PRODUCT)
        yield service


def http_stage(bench: Bench) -> None:
    with store_service(bench, "visited") as service:
        bench.settle(service.database)

        def compare(loop: str, **how: float) -> None:
            bench.by_headroom_bench(f"headroom_quiet_{loop}", service, USERS, **how)
            with BackgroundLoad(service, USERS) as background:
                bench.by_headroom_bench(f"headroom_visited_{loop}", service, USERS, **how)
            bench.latest(f"headroom_visited_{loop}").update(background.figures())

        def measure() -> None:
            compare("full")
            compare("half", rate=bench.latest("headroom_quiet_full")["per_second"] / 2)

        bench.rounds(measure)


# Renewals -------------------------------------------------------------------------------------------------------------


def renewals_stage(bench: Bench) -> None:
    with store_service(bench, "renewed", f"--billing-sessions={RENEWAL_CONNECTIONS}") as service:
        renewals = Renewals(service.http_port)
        renewals.make_history()
        bench.settle(service.database)

        def measure() -> None:
            bench.by_renewals("renewals_alone", service, renewals)
            bench.by_headroom_bench("headroom_unrenewed_full", service, USERS)
            half = bench.latest("headroom_unrenewed_full")["per_second"] / 2
            bench.by_headroom_bench("headroom_unrenewed_half", service, USERS, rate=half, may_refuse=True)
            with renewals.at_rate(EVENTS_PER_SECOND):
                bench.by_headroom_bench("headroom_renewed_half", service, USERS, rate=half, may_refuse=True)
            bench.latest("headroom_renewed_half").update(renewals.figures())

        bench.rounds(measure)
        renewals.close()


# Tokens and TLS -------------------------------------------------------------------------------------------------------


def protected_stage(bench: Bench) -> None:
    """On a separate database, because a database that has had a token requires one from then on."""
    database = "protected"
    bench.postgres.create_database(database)
    service = Headroom(program=bench.options.program, postgres=bench.postgres, database=database, work=bench.work)
    bench.services.append(service)
    service.start()
    service.prepare(USERS)
    bench.settle(database)
    authority = Authority()
    token = ""
    if service.knows_tokens:
        token = service.create_token()
    else:
        print_progress("skipped: this headroom does not support tokens")
    open_flags = ("--authentication=off",) if token else ()

    def measure() -> None:
        for kind in PROTECTIONS:
            needs_token = kind.startswith("token")
            if needs_token and not token:
                continue
            service.stop()
            service.start(
                *(() if needs_token else open_flags),
                token=token if needs_token else "",
                tls=authority if kind.endswith("tls") else None,
            )
            for pipeline in (1, 16):
                name = f"headroom_{kind}_{load_name(pipeline)}"
                bench.by_redis_benchmark(name, pipeline, USERS, ["CONSUME", ANY_USER], service)

    bench.rounds(measure)
    service.stop()
    bench.services.remove(service)
    bench.postgres.sql(f"drop database {database}", seconds=900)


# Many rows ------------------------------------------------------------------------------------------------------------


def rows_stage(bench: Bench) -> None:
    free = free_gigabytes(bench.work)
    if free < ROWS_GIGABYTES:
        print_progress(f"skipped: many rows need {ROWS_GIGABYTES} GB, and {free:.0f} GB are free (HEADROOM_BENCH_DIRECTORY)")
        return
    services = {CURVE_ROWS[0]: bench.headroom}
    for count in CURVE_ROWS[1:]:
        print_progress(f"making {count:,} users")
        database = f"rows_{count}"
        bench.postgres.create_database(database)
        service = Headroom(program=bench.options.program, postgres=bench.postgres, database=database, work=bench.work)
        bench.services.append(service)
        service.start()
        service.prepare_rows(count)
        bench.settle(database)
        services[count] = service

    def measure() -> None:
        for count, service in services.items():
            bench.by_headroom_bench(f"headroom_rows_{count}_fresh", service, count)
            # Until nearly every page has been written once since the checkpoint.
            bench.by_headroom_bench(f"headroom_rows_{count}", service, count, warmup=max(1, 15 * count // 10_000_000))

    bench.rounds(measure)
    for count in CURVE_ROWS[1:]:
        services[count].stop()
        bench.services.remove(services[count])
        bench.postgres.sql(f"drop database rows_{count}", seconds=900)


# Curves ---------------------------------------------------------------------------------------------------------------


def curves_stage(bench: Bench) -> None:
    headroom = bench.headroom

    def measure() -> None:
        for count in CURVE_CONNECTIONS:
            bench.by_headroom_bench(f"headroom_connections_{count}", headroom, USERS, connections=count)
        for count in CURVE_USERS:
            bench.by_headroom_bench(f"headroom_users_{count}", headroom, count)

    bench.rounds(measure)


# The soak -------------------------------------------------------------------------------------------------------------

STATE = """
select pg_relation_size('public.message_usage'), pg_indexes_size('public.message_usage'),
    pg_total_relation_size('headroom.lane_receipts'), pg_stat_get_tuples_updated(usage.oid),
    pg_stat_get_tuples_hot_updated(usage.oid), pg_stat_get_dead_tuples(usage.oid),
    pg_stat_get_autovacuum_count(usage.oid), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
from (select 'public.message_usage'::regclass::oid) as usage (oid)
"""
STATE_NAMES = ("table", "indexes", "receipts", "updated", "hot", "dead", "autovacuums", "wal")


def soak_stage(bench: Bench) -> None:
    """One run; records a sample of the database and the service each minute."""
    headroom, minutes = bench.headroom, bench.options.soak_minutes
    states: list[dict[str, float]] = []
    over = threading.Event()

    def look() -> dict[str, float]:
        values = map(int, bench.postgres.sql(STATE, database=headroom.database).split("|"))
        return {**dict(zip(STATE_NAMES, values)), "resident": resident_bytes(headroom.pid) / 1e6}

    def watch() -> None:
        try:
            while not over.wait(60):
                states.append(look())
                print_progress(f"soak: minute {len(states)} of {minutes}")
        except Failure as error:
            print_progress(f"soak: looking at the database failed, the rest of the minutes is skipped: {error}")

    before = look()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        load = bench.headroom_bench.measure(headroom.port, USERS, seconds=minutes * 60.0)
    finally:
        over.set()
        watcher.join()
    headroom.counted("the soak", load["messages"])
    for minute, sample in enumerate(soak_minutes(load["series"], before, states), start=1):
        bench.round = minute
        bench.record("soak_minute", sample)


def soak_minutes(series: list[Sample], before: dict[str, float], states: list[dict[str, float]]) -> list[Sample]:
    """A sample for each whole minute."""
    result = []
    for minute, (earlier, state) in enumerate(zip([before, *states], states)):
        seconds = series[minute * 60 : minute * 60 + 60]
        if len(seconds) < 60 or not any(second["replies"] for second in seconds):
            break
        replies = sum(second["replies"] for second in seconds)
        answered = [second for second in seconds if second["replies"]]
        updated = state["updated"] - earlier["updated"]
        result.append(
            {
                "per_second": rounded(replies / 60, 6),
                "p50_ms": rounded(median([second["p50_ms"] for second in answered])),
                "p99_ms": rounded(median([second["p99_ms"] for second in answered])),
                "worst_second_p99_ms": rounded(max(second["p99_ms"] for second in answered)),
                "seconds_without_replies": len(seconds) - len(answered),
                "messages": replies,
                "resident_mb": rounded(state["resident"]),
                "table_mb": rounded(state["table"] / 1e6),
                "indexes_mb": rounded(state["indexes"] / 1e6),
                "receipts_mb": rounded(state["receipts"] / 1e6),
                "hot_share": rounded((state["hot"] - earlier["hot"]) / updated, 6) if updated else 0,
                "dead_rows": int(state["dead"]),
                "autovacuums": int(state["autovacuums"] - before["autovacuums"]),
                "wal_bytes": rounded((state["wal"] - earlier["wal"]) / replies),
            }
        )
    return result


STAGES: dict[str, Callable[[Bench], None]] = {
    "main": main_stage,
    "holds": holds_stage,
    "parts": parts.stage,
    "slow_disk": slow_disk_stage,
    "idle": idle_stage,
    "http": http_stage,
    "counting_http": counting_http.stage,
    "renewals": renewals_stage,
    "protected": protected_stage,
    "restart": first_messages.restart_stage,
    "month": first_messages.month_stage,
    "plan_edit": first_messages.plan_edit_stage,
    "rotation": first_messages.rotation_stage,
    "rows": rows_stage,
    "curves": curves_stage,
    "soak": soak_stage,
}
