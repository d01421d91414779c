"""The scenarios of the comparison, each a row of the printed result: measurements with their ratios and goals.

"64 × 16" means 64 connections with 16 requests in flight on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import figures
from .figures import Sample

CLIENTS = (8, 16, 32, 64)
#: Fewer clients are faster if all wait for the lock of one row.
ONE_USER_CLIENTS = (1, 4, *CLIENTS)
USERS = 100_000
CURVE_CONNECTIONS = (1, 4, 16, 64, 256, 1024)
CURVE_USERS = (1, 100, 10_000, 100_000)
CURVE_ROWS = (100_000, 1_000_000, 10_000_000)
IDLE_CONNECTIONS = 10_000
FLUSH_MILLISECONDS = 5
#: How the port is secured, in the order of measurement.
PROTECTIONS = {"open": "open", "token": "with a token", "tls": "over TLS", "token_tls": "with a token, over TLS"}

#: What each measurement is called in the output, by its name.
TITLES = {
    "function_1": "plpgsql function, 1 client",
    **{f"function_{clients}": f"plpgsql function, {clients} clients" for clients in CLIENTS},
    "function_best": "plpgsql function per message, best of 8, 16, 32, 64 clients",
    **{
        f"function_one_user_{clients}": f"plpgsql function, {clients} client{'s' * (clients > 1)}, one user"
        for clients in ONE_USER_CLIENTS
    },
    "function_one_user": "plpgsql function, best of 1, 4, 8, 16, 32, 64 clients, all on one user",
    "redis_1": "Redis and Lua, 64 connections",
    "redis_16": "Redis and Lua, 64 connections, 16 pipelined",
    "redis_zipf": "Redis and Lua, 64 × 16, users by Zipf's law",
    "redis_one_user": "Redis and Lua, 64 × 16, all on one user",
    "ceiling_1": "C ceiling, 64 connections",
    "ceiling_16": "C ceiling, 64 connections, 16 pipelined",
    "ceiling_one_user": "C ceiling, 64 × 16, all on one user",
    "ceiling_single": "C ceiling, 1 connection, one request at a time",
    "headroom_1": "Headroom, 64 connections",
    "headroom_16": "Headroom, 64 connections, 16 pipelined",
    "headroom_zipf": "Headroom, 64 × 16, users by Zipf's law",
    "headroom_one_user": "Headroom, 64 × 16, all on one user",
    "headroom_keys_0": "Headroom, 64 × 16, no keys",
    "headroom_keys_1": "Headroom, 64 × 16, a new key on every request",
    "headroom_single": "Headroom, 1 connection, one request at a time",
    "headroom_half_load": "Headroom, 64 connections, half of what 64 × 16 brings, open loop",
    "headroom_half_single": "Headroom, 64 connections, half of what 64 × 1 brings, open loop",
    "function_undisturbed": "plpgsql function, 64 clients, the disk as it is",
    "function_slow_disk": f"plpgsql function, 64 clients, {FLUSH_MILLISECONDS} ms a flush",
    "redis_undisturbed": "Redis and Lua, 64 × 16, the disk as it is",
    "redis_slow_disk": f"Redis and Lua, 64 × 16, {FLUSH_MILLISECONDS} ms a flush",
    "headroom_undisturbed": "Headroom, 64 × 16, the disk as it is",
    "headroom_slow_disk": f"Headroom, 64 × 16, {FLUSH_MILLISECONDS} ms a flush",
    "headroom_alone": "Headroom, 64 × 16, no other connection",
    "headroom_among_idle": f"Headroom, 64 × 16, and {IDLE_CONNECTIONS:,} idle connections",
    **{
        f"headroom_{kind}_{pipeline}": f"Headroom, 64 × {pipeline}, {words}"
        for kind, words in PROTECTIONS.items()
        for pipeline in (1, 16)
    },
    "headroom_quiet_full": "Headroom, 64 × 16, idle HTTP server",
    "headroom_visited_full": "Headroom, 64 × 16, metrics scraped, dashboard open, up to 200 store events a second",
    "headroom_quiet_half": "Headroom, open loop at half of that, idle HTTP server",
    "headroom_visited_half": "Headroom, open loop at half of that, metrics scraped, dashboard open, up to 200 events/s",
    "renewals_alone": "renewals on 8 connections, no messages",
    "headroom_unrenewed_full": "Headroom, 64 × 16, no renewals",
    "headroom_unrenewed_half": "Headroom, open loop at half of that, no renewals",
    "headroom_renewed_half": "Headroom, open loop at half of that, 200 renewals a second",
    **{f"headroom_rows_{count}": f"Headroom, 64 × 16, {count:,} users and rows" for count in CURVE_ROWS},
    **{
        f"headroom_rows_{count}_fresh": f"Headroom, 64 × 16, {count:,} users and rows, just after a checkpoint"
        for count in CURVE_ROWS
    },
    **{f"headroom_connections_{count}": f"Headroom, {count:,} × 16" for count in CURVE_CONNECTIONS},
    **{f"headroom_users_{count}": f"Headroom, 64 × 16, {count:,} user{'s' * (count > 1)}" for count in CURVE_USERS},
    "soak_minute": "Headroom, 64 × 16, a minute of the soak",
}


@dataclass(frozen=True)
class Ratio:
    """A field of the measurement `above` divided by that of the measurement `below`."""

    name: str
    title: str
    above: str
    below: str
    field: str = "per_second"


@dataclass(frozen=True)
class Goal:
    """A target value: for a field's median in the measurement `of`, or, without a field, for the ratio `of`."""

    name: str
    title: str
    of: str
    field: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""

    @property
    def bound(self) -> float:
        bound = self.at_least if self.at_least is not None else self.at_most
        assert bound is not None
        return bound

    def judge(self, medians: dict[str, Sample], ratios: dict[str, Any]) -> dict[str, Any] | None:
        if self.field is None:
            value = ratios[self.of]["median"] if self.of in ratios else None
        else:
            value = medians.get(self.of, {}).get(self.field)
        if value is None:
            return None
        reached = value >= self.bound if self.at_least is not None else value <= self.bound
        kind = "at_least" if self.at_least is not None else "at_most"
        return {
            "name": self.name,
            "title": self.title,
            kind: self.bound,
            "unit": self.unit,
            "value": value,
            "reached": reached,
        }


@dataclass(frozen=True)
class Scenario:
    """A scenario of the comparison, not a row of a table in PostgreSQL."""

    name: str
    #: The part of the run that takes the measurements. Scenarios of one stage share them.
    stage: str
    title: str
    #: The names of its measurements.
    samples: tuple[str, ...]
    ratios: tuple[Ratio, ...] = ()
    goals: tuple[Goal, ...] = ()

    def judge(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """Returns the medians and ratios of the samples, and whether each goal is reached."""
        medians = figures.medians(samples)
        found = ((ratio, figures.ratio(samples, ratio.above, ratio.below, ratio.field)) for ratio in self.ratios)
        ratios = {ratio.name: {"title": ratio.title, **value} for ratio, value in found if value}
        goals = [judged for judged in (goal.judge(medians, ratios) for goal in self.goals) if judged]
        return {"medians": medians, "ratios": ratios, "goals": goals}


SCENARIOS = (
    Scenario(
        "function",
        "main",
        "the plpgsql function",
        (
            "function_1",
            *(f"function_{clients}" for clients in CLIENTS),
            "function_best",
            *(f"function_one_user_{clients}" for clients in ONE_USER_CLIENTS),
            "function_one_user",
        ),
        (Ratio("one_user_to_uniform", "function, one user / 100,000 users", "function_one_user", "function_best"),),
    ),
    Scenario(
        "throughput",
        "main",
        "64 connections, 1 and 16 requests in flight, 100,000 users",
        (
            *(f"function_{clients}" for clients in CLIENTS),
            "function_best",
            "redis_1",
            "headroom_1",
            "redis_16",
            "headroom_16",
        ),
        (
            Ratio("headroom_1_to_function", "Headroom 64 × 1 / function", "headroom_1", "function_best"),
            Ratio("headroom_16_to_function", "Headroom 64 × 16 / function", "headroom_16", "function_best"),
            Ratio("headroom_1_to_redis_1", "Headroom / Redis, 64 × 1", "headroom_1", "redis_1"),
            Ratio("headroom_16_to_redis_16", "Headroom / Redis, 64 × 16", "headroom_16", "redis_16"),
        ),
        (
            Goal("function_1", "Headroom 64 × 1 / function", "headroom_1_to_function", at_least=2.5),
            Goal("function_16", "Headroom 64 × 16 / function", "headroom_16_to_function", at_least=6),
            Goal("redis_1", "Headroom / Redis, 64 × 1", "headroom_1_to_redis_1", at_least=1),
            Goal("redis_16", "Headroom / Redis, 64 × 16", "headroom_16_to_redis_16", at_least=1),
        ),
    ),
    Scenario(
        "ceiling",
        "main",
        "the C ceiling",
        (
            "ceiling_1",
            "headroom_1",
            "ceiling_16",
            "headroom_16",
            "ceiling_one_user",
            "headroom_one_user",
            "ceiling_single",
            "headroom_single",
        ),
        (
            Ratio("headroom_1_to_ceiling", "Headroom / ceiling, 64 × 1", "headroom_1", "ceiling_1"),
            Ratio("headroom_16_to_ceiling", "Headroom / ceiling, 64 × 16", "headroom_16", "ceiling_16"),
            Ratio(
                "headroom_one_user_to_ceiling",
                "Headroom / ceiling, 64 × 16, one user",
                "headroom_one_user",
                "ceiling_one_user",
            ),
            Ratio(
                "ceiling_single_to_headroom",
                "ceiling / Headroom, one at a time, p50",
                "ceiling_single",
                "headroom_single",
                "p50_ms",
            ),
        ),
        (
            Goal("ceiling_1", "Headroom / ceiling, 64 × 1", "headroom_1_to_ceiling", at_least=0.85),
            Goal("ceiling_16", "Headroom / ceiling, 64 × 16", "headroom_16_to_ceiling", at_least=0.85),
            Goal("ceiling_one_user", "Headroom / ceiling, one user", "headroom_one_user_to_ceiling", at_least=0.7),
            Goal(
                "ceiling_single", "p50, one at a time, ceiling / Headroom", "ceiling_single_to_headroom", at_least=0.6
            ),
        ),
    ),
    Scenario(
        "zipf",
        "main",
        "64 × 16, users by Zipf's law",
        ("redis_zipf", "headroom_zipf"),
        (Ratio("headroom_zipf_to_redis_zipf", "Headroom / Redis, 64 × 16, Zipf", "headroom_zipf", "redis_zipf"),),
        (Goal("zipf", "Headroom / Redis, 64 × 16, Zipf", "headroom_zipf_to_redis_zipf", at_least=1.2),),
    ),
    Scenario(
        "one_user",
        "main",
        "64 × 16, all on one user",
        (
            *(f"function_one_user_{clients}" for clients in ONE_USER_CLIENTS),
            "function_one_user",
            "redis_one_user",
            "headroom_one_user",
        ),
        (
            Ratio(
                "headroom_one_user_to_function",
                "Headroom / function, one user",
                "headroom_one_user",
                "function_one_user",
            ),
            Ratio("headroom_one_user_to_redis", "Headroom / Redis, one user", "headroom_one_user", "redis_one_user"),
        ),
        (Goal("one_user", "Headroom / function, one user", "headroom_one_user_to_function", at_least=100),),
    ),
    Scenario(
        "keys",
        "main",
        "64 × 16, a new key on every request",
        ("headroom_keys_0", "headroom_keys_1"),
        (Ratio("keys_to_no_keys", "a key on every request / none", "headroom_keys_1", "headroom_keys_0"),),
        (Goal("keys", "a key on every request / none", "keys_to_no_keys", at_least=0.6),),
    ),
    Scenario(
        "one_at_a_time",
        "main",
        "one connection, one request at a time",
        ("function_1", "headroom_single"),
        (Ratio("single_p50_to_function", "Headroom / function, p50", "headroom_single", "function_1", "p50_ms"),),
        (Goal("single_p50", "p50, one at a time, Headroom / function", "single_p50_to_function", at_most=2),),
    ),
    Scenario(
        "half_load",
        "main",
        "half of the most, open loop",
        ("headroom_16", "headroom_half_load", "headroom_1", "headroom_half_single"),
        (),
        (
            Goal("half_load_p99", "p99 at half load", "headroom_half_load", "p99_ms", at_most=5, unit="ms"),
            Goal("half_load_p99_9", "p99.9 at half load", "headroom_half_load", "p99_9_ms", at_most=20, unit="ms"),
        ),
    ),
    Scenario(
        "slow_disk",
        "slow_disk",
        f"a disk that takes {FLUSH_MILLISECONDS} ms to flush",
        (
            "function_undisturbed",
            "redis_undisturbed",
            "headroom_undisturbed",
            "function_slow_disk",
            "redis_slow_disk",
            "headroom_slow_disk",
        ),
        (
            Ratio(
                "function_slow_disk", "function, slow disk / undisturbed", "function_slow_disk", "function_undisturbed"
            ),
            Ratio("redis_slow_disk", "Redis, slow disk / undisturbed", "redis_slow_disk", "redis_undisturbed"),
            Ratio(
                "headroom_slow_disk", "Headroom, slow disk / undisturbed", "headroom_slow_disk", "headroom_undisturbed"
            ),
        ),
        (Goal("slow_disk", "rate, slow disk / undisturbed", "headroom_slow_disk", at_least=0.6),),
    ),
    Scenario(
        "idle",
        "idle",
        f"{IDLE_CONNECTIONS:,} idle connections",
        ("headroom_alone", "headroom_among_idle"),
        (Ratio("idle", "among idle connections / alone", "headroom_among_idle", "headroom_alone"),),
        (
            Goal("idle", "rate, among idle connections / alone", "idle", at_least=0.9),
            Goal(
                "idle_memory",
                f"resident memory with {IDLE_CONNECTIONS:,} connections",
                "headroom_among_idle",
                "resident_highest_mb",
                at_most=150,
                unit="MB",
            ),
        ),
    ),
    Scenario(
        "http",
        "http",
        "with load on the HTTP server",
        ("headroom_quiet_full", "headroom_visited_full", "headroom_quiet_half", "headroom_visited_half"),
        (
            Ratio("http_rate", "rate, visited / quiet, 64 × 16", "headroom_visited_full", "headroom_quiet_full"),
            Ratio(
                "http_p99",
                "p99, visited / quiet, open loop at half of it",
                "headroom_visited_half",
                "headroom_quiet_half",
                "p99_ms",
            ),
        ),
    ),
    Scenario(
        "renewals",
        "renewals",
        "renewals of subscriptions",
        ("renewals_alone", "headroom_unrenewed_full", "headroom_unrenewed_half", "headroom_renewed_half"),
        (
            Ratio(
                "renewed_p99",
                "p99, 200 renewals a second / none, open loop at half of 64 × 16",
                "headroom_renewed_half",
                "headroom_unrenewed_half",
                "p99_ms",
            ),
        ),
        (
            Goal("renewals", "renewals on 8 connections", "renewals_alone", "per_second", at_least=1000, unit="/s"),
            Goal("renewal", "a renewal in PostgreSQL", "renewals_alone", "postgres_ms", at_most=0.8, unit="ms"),
            Goal("renewed_p99", "p99 at half load, 200 renewals a second / none", "renewed_p99", at_most=1.5),
        ),
    ),
    Scenario(
        "protected",
        "protected",
        "tokens and TLS, 64 connections, 1 and 16 requests in flight",
        tuple(f"headroom_{kind}_{pipeline}" for pipeline in (1, 16) for kind in PROTECTIONS),
        tuple(
            Ratio(
                f"{kind}_{pipeline}",
                f"{PROTECTIONS[kind]} / open, 64 × {pipeline}",
                f"headroom_{kind}_{pipeline}",
                f"headroom_open_{pipeline}",
            )
            for pipeline in (1, 16)
            for kind in PROTECTIONS
            if kind != "open"
        ),
    ),
    Scenario(
        "connections",
        "curves",
        "over connections, 16 in flight on each",
        tuple(f"headroom_connections_{count}" for count in CURVE_CONNECTIONS),
    ),
    Scenario("users", "curves", "64 × 16 over users", tuple(f"headroom_users_{count}" for count in CURVE_USERS)),
    # The last of the default scenarios, because the disk stays busy with its writes for a while.
    Scenario(
        "rows",
        "rows",
        f"{CURVE_ROWS[-1]:,} users and rows",
        tuple(f"headroom_rows_{count}{when}" for when in ("", "_fresh") for count in CURVE_ROWS),
        tuple(
            Ratio(
                f"rows_{count}{when}",
                f"{count:,} rows / {CURVE_ROWS[0]:,}{', just after a checkpoint' if when else ''}",
                f"headroom_rows_{count}{when}",
                f"headroom_rows_{CURVE_ROWS[0]}{when}",
            )
            for when in ("", "_fresh")
            for count in CURVE_ROWS[1:]
        ),
        (Goal("rows", f"rate, {CURVE_ROWS[-1]:,} rows / {CURVE_ROWS[0]:,}", f"rows_{CURVE_ROWS[-1]}", at_least=0.7),),
    ),
    Scenario("soak", "soak", "full load for long, 64 × 16, 100,000 users", ("soak_minute",)),
)
STAGES = tuple(dict.fromkeys(row.stage for row in SCENARIOS))
QUICK = ("function", "throughput", "ceiling", "one_user")
USUAL = tuple(row.name for row in SCENARIOS if row.name != "soak")


def scenario_named(name: str) -> Scenario:
    return next(row for row in SCENARIOS if row.name == name)


def samples_wanted(names: Sequence[str], stage: str) -> set[str]:
    return {sample for row in SCENARIOS if row.stage == stage and row.name in names for sample in row.samples}
