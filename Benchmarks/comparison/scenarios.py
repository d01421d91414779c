"""The scenarios of the comparison, each a row of the printed result: measurements with their ratios and goals."""

from __future__ import annotations

from collections.abc import Sequence

from .scenario import Goal, Ratio, Scenario
from .titles import (
    CLIENTS,
    CURVE_CONNECTIONS,
    CURVE_ROWS,
    CURVE_USERS,
    FLUSH_MILLISECONDS,
    HOLDS,
    IDLE_CONNECTIONS,
    ONE_USER_CLIENTS,
    PERIODS,
    PROTECTIONS,
    ROTATION_USERS,
    USERS,
)

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
            Goal("function_16", "Headroom 64 × 16 / function", "headroom_16_to_function", at_least=7.5),
            Goal("redis_16", "Headroom / Redis, 64 × 16", "headroom_16_to_redis_16", at_least=0.8),
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
        (Goal("zipf", "Headroom / Redis, 64 × 16, Zipf", "headroom_zipf_to_redis_zipf", at_least=1),),
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
        (Goal("keys", "a key on every request / none", "keys_to_no_keys", at_least=0.65),),
    ),
    Scenario(
        "holds",
        "holds",
        "RESERVE and COMMIT in turn, 64 connections",
        tuple(f"headroom_{kind}_{pipeline}" for pipeline in HOLDS for kind in ("keyed", "holds")),
        tuple(
            Ratio(f"holds_{pipeline}", title, f"headroom_holds_{pipeline}", f"headroom_keyed_{pipeline}")
            for pipeline, title in HOLDS.items()
        ),
        tuple(Goal(f"holds_{pipeline}", title, f"holds_{pipeline}", at_least=0.7) for pipeline, title in HOLDS.items()),
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
            Goal("half_load_p99", "p99 at half load of 64 × 16", "headroom_half_load", "p99_ms", at_most=5, unit="ms"),
            Goal(
                "half_load_p99_9",
                "p99.9 at half load of 64 × 16",
                "headroom_half_load",
                "p99_9_ms",
                at_most=20,
                unit="ms",
            ),
            Goal(
                "half_single_p99",
                "p99 at half load of 64 × 1",
                "headroom_half_single",
                "p99_ms",
                at_most=2.5,
                unit="ms",
            ),
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
        (Goal("http_p99", "p99 at half load, with HTTP requests / without", "http_p99", at_most=1.5),),
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
        "cold",
        "restart",
        "just after a restart",
        tuple(
            f"headroom_{kind}_{period}_{pipeline}"
            for period in PERIODS
            for pipeline in (1, 16)
            for kind in ("cold", "warm")
        ),
        tuple(
            Ratio(
                f"cold_{period}_{pipeline}",
                f"just after a restart / long after, 64 × {pipeline}, {words}",
                f"headroom_cold_{period}_{pipeline}",
                f"headroom_warm_{period}_{pipeline}",
            )
            for period, words in PERIODS.items()
            for pipeline in (1, 16)
        ),
        tuple(
            Goal(
                f"cold_{period}_{pipeline}",
                f"rate, just after a restart / long after, 64 × {pipeline}, {words}",
                f"cold_{period}_{pipeline}",
                at_least=0.8,
            )
            for period, words in PERIODS.items()
            for pipeline in (1, 16)
        ),
    ),
    Scenario(
        "new_users",
        "restart",
        "each user new",
        ("headroom_warm_own_16", "headroom_new_users", "headroom_new_users_limited"),
        (Ratio("new_users", "new users / known users", "headroom_new_users", "headroom_warm_own_16"),),
        (
            Goal("new_users", "rate, new users / known users", "new_users", at_least=0.35),
            Goal("new_users_refused", "new users refused, 64 × 16", "headroom_new_users_limited", "refused", at_most=0),
        ),
    ),
    Scenario(
        "new_month",
        "month",
        "each user's first message of a month",
        ("headroom_within_month", "headroom_new_month"),
        (Ratio("new_month", "first messages of a month / later ones", "headroom_new_month", "headroom_within_month"),),
        (Goal("new_month", "rate, first messages of a month / later ones", "new_month", at_least=0.5),),
    ),
    Scenario(
        "plan_edit",
        "plan_edit",
        "each user's first message after an edit of the plan",
        ("headroom_before_edit", "headroom_after_edit"),
        (Ratio("plan_edit", "just after an edit of the plan / before", "headroom_after_edit", "headroom_before_edit"),),
        (Goal("plan_edit", "rate, just after an edit of the plan / before", "plan_edit", at_least=0.5),),
    ),
    Scenario(
        "rotation",
        "rotation",
        "more users in turn than are cached",
        ("headroom_rotation", "headroom_rotation_cached"),
        (
            Ratio(
                "rotation",
                f"{ROTATION_USERS:,} users in turn / {USERS:,}",
                "headroom_rotation",
                "headroom_rotation_cached",
            ),
        ),
        (Goal("rotation", f"rate, {ROTATION_USERS:,} users in turn / {USERS:,}", "rotation", at_least=0.8),),
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
        (Goal("rows", f"rate, {CURVE_ROWS[-1]:,} rows / {CURVE_ROWS[0]:,}", f"rows_{CURVE_ROWS[-1]}", at_least=0.75),),
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
