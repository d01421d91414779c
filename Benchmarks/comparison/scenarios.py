"""The scenarios of the comparison: their measurements, ratios and goals."""

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
    clients_name,
    load_name,
)

SCENARIOS = (
    Scenario(
        name="function",
        stage="main",
        title="the plpgsql function",
        measurements=(
            "function_1_client",
            *(f"function_{clients_name(clients)}" for clients in CLIENTS),
            "function_best",
            *(f"function_one_user_{clients_name(clients)}" for clients in ONE_USER_CLIENTS),
            "function_one_user",
        ),
        ratios=(
            Ratio(
                name="one_user_to_uniform",
                title="function, one user / 100,000 users",
                numerator="function_one_user",
                denominator="function_best",
            ),
        ),
    ),
    Scenario(
        name="throughput",
        stage="main",
        title="64 connections, 1 and 16 requests in flight, 100,000 users",
        measurements=(
            *(f"function_{clients_name(clients)}" for clients in CLIENTS),
            "function_best",
            "redis_64x1",
            "headroom_64x1",
            "redis_64x16",
            "headroom_64x16",
        ),
        ratios=(
            Ratio(
                name="headroom_to_function_64x1",
                title="Headroom 64 × 1 / function",
                numerator="headroom_64x1",
                denominator="function_best",
            ),
            Ratio(
                name="headroom_to_function_64x16",
                title="Headroom 64 × 16 / function",
                numerator="headroom_64x16",
                denominator="function_best",
            ),
            Ratio(
                name="headroom_to_redis_64x1",
                title="Headroom / Redis, 64 × 1",
                numerator="headroom_64x1",
                denominator="redis_64x1",
            ),
            Ratio(
                name="headroom_to_redis_64x16",
                title="Headroom / Redis, 64 × 16",
                numerator="headroom_64x16",
                denominator="redis_64x16",
            ),
        ),
        goals=(
            Goal(
                name="function_64x1", title="Headroom 64 × 1 / function", of="headroom_to_function_64x1", at_least=2.5
            ),
            Goal(
                name="function_64x16",
                title="Headroom 64 × 16 / function",
                of="headroom_to_function_64x16",
                at_least=7.5,
            ),
            Goal(name="redis_64x16", title="Headroom / Redis, 64 × 16", of="headroom_to_redis_64x16", at_least=0.8),
        ),
    ),
    Scenario(
        name="ceiling",
        stage="main",
        title="the C ceiling",
        measurements=(
            "ceiling_64x1",
            "headroom_64x1",
            "ceiling_64x16",
            "headroom_64x16",
            "ceiling_one_user",
            "headroom_one_user",
            "ceiling_single",
            "headroom_single",
        ),
        ratios=(
            Ratio(
                name="headroom_to_ceiling_64x1",
                title="Headroom / ceiling, 64 × 1",
                numerator="headroom_64x1",
                denominator="ceiling_64x1",
            ),
            Ratio(
                name="headroom_to_ceiling_64x16",
                title="Headroom / ceiling, 64 × 16",
                numerator="headroom_64x16",
                denominator="ceiling_64x16",
            ),
            Ratio(
                name="headroom_one_user_to_ceiling",
                title="Headroom / ceiling, 64 × 16, one user",
                numerator="headroom_one_user",
                denominator="ceiling_one_user",
            ),
            Ratio(
                name="ceiling_single_to_headroom",
                title="ceiling / Headroom, one at a time, p50",
                numerator="ceiling_single",
                denominator="headroom_single",
                field="p50_ms",
            ),
        ),
        goals=(
            Goal(name="ceiling_64x1", title="Headroom / ceiling, 64 × 1", of="headroom_to_ceiling_64x1", at_least=0.85),
            Goal(
                name="ceiling_64x16", title="Headroom / ceiling, 64 × 16", of="headroom_to_ceiling_64x16", at_least=0.85
            ),
            Goal(
                name="ceiling_one_user",
                title="Headroom / ceiling, one user",
                of="headroom_one_user_to_ceiling",
                at_least=0.7,
            ),
            Goal(
                name="ceiling_single",
                title="p50, one at a time, ceiling / Headroom",
                of="ceiling_single_to_headroom",
                at_least=0.6,
            ),
        ),
    ),
    Scenario(
        name="zipf",
        stage="main",
        title="64 × 16, users by Zipf's law",
        measurements=("redis_zipf", "headroom_zipf"),
        ratios=(
            Ratio(
                name="headroom_zipf_to_redis_zipf",
                title="Headroom / Redis, 64 × 16, Zipf",
                numerator="headroom_zipf",
                denominator="redis_zipf",
            ),
        ),
        goals=(
            Goal(name="zipf", title="Headroom / Redis, 64 × 16, Zipf", of="headroom_zipf_to_redis_zipf", at_least=1),
        ),
    ),
    Scenario(
        name="one_user",
        stage="main",
        title="64 × 16, all on one user",
        measurements=(
            *(f"function_one_user_{clients_name(clients)}" for clients in ONE_USER_CLIENTS),
            "function_one_user",
            "redis_one_user",
            "headroom_one_user",
        ),
        ratios=(
            Ratio(
                name="headroom_one_user_to_function",
                title="Headroom / function, one user",
                numerator="headroom_one_user",
                denominator="function_one_user",
            ),
            Ratio(
                name="headroom_one_user_to_redis",
                title="Headroom / Redis, one user",
                numerator="headroom_one_user",
                denominator="redis_one_user",
            ),
        ),
        goals=(
            Goal(
                name="one_user", title="Headroom / function, one user", of="headroom_one_user_to_function", at_least=100
            ),
        ),
    ),
    Scenario(
        name="keys",
        stage="main",
        title="64 × 16, a new key on every request",
        measurements=("headroom_without_keys", "headroom_with_keys"),
        ratios=(
            Ratio(
                name="keys_to_no_keys",
                title="a key on every request / none",
                numerator="headroom_with_keys",
                denominator="headroom_without_keys",
            ),
        ),
        goals=(Goal(name="keys", title="a key on every request / none", of="keys_to_no_keys", at_least=0.65),),
    ),
    Scenario(
        name="holds",
        stage="holds",
        title="RESERVE and COMMIT in turn, 64 connections",
        measurements=tuple(
            f"headroom_{kind}_{load_name(pipeline)}" for pipeline in HOLDS for kind in ("keyed", "holds")
        ),
        ratios=tuple(
            (
                Ratio(
                    name=f"holds_{load_name(pipeline)}",
                    title=title,
                    numerator=f"headroom_holds_{load_name(pipeline)}",
                    denominator=f"headroom_keyed_{load_name(pipeline)}",
                )
                for pipeline, title in HOLDS.items()
            )
        ),
        goals=tuple(
            (
                Goal(name=f"holds_{load_name(pipeline)}", title=title, of=f"holds_{load_name(pipeline)}", at_least=0.7)
                for pipeline, title in HOLDS.items()
            )
        ),
    ),
    Scenario(
        name="one_at_a_time",
        stage="main",
        title="one connection, one request at a time",
        measurements=("function_1_client", "headroom_single"),
        ratios=(
            Ratio(
                name="single_p50_to_function",
                title="Headroom / function, p50",
                numerator="headroom_single",
                denominator="function_1_client",
                field="p50_ms",
            ),
        ),
        goals=(
            Goal(
                name="single_p50",
                title="p50, one at a time, Headroom / function",
                of="single_p50_to_function",
                at_most=2,
            ),
        ),
    ),
    Scenario(
        name="half_load",
        stage="main",
        title="half of the most, open loop",
        measurements=("headroom_64x16", "headroom_half_load", "headroom_64x1", "headroom_half_single"),
        goals=(
            Goal(
                name="half_load_p99",
                title="p99 at half load of 64 × 16",
                of="headroom_half_load",
                field="p99_ms",
                at_most=5,
                unit="ms",
            ),
            Goal(
                name="half_load_p99_9",
                title="p99.9 at half load of 64 × 16",
                of="headroom_half_load",
                field="p99_9_ms",
                at_most=20,
                unit="ms",
            ),
            Goal(
                name="half_single_p99",
                title="p99 at half load of 64 × 1",
                of="headroom_half_single",
                field="p99_ms",
                at_most=2.5,
                unit="ms",
            ),
        ),
    ),
    Scenario(
        name="slow_disk",
        stage="slow_disk",
        title=f"a disk that takes {FLUSH_MILLISECONDS} ms to flush",
        measurements=(
            "function_undisturbed",
            "redis_undisturbed",
            "headroom_undisturbed",
            "function_slow_disk",
            "redis_slow_disk",
            "headroom_slow_disk",
        ),
        ratios=(
            Ratio(
                name="function_slow_disk",
                title="function, slow disk / undisturbed",
                numerator="function_slow_disk",
                denominator="function_undisturbed",
            ),
            Ratio(
                name="redis_slow_disk",
                title="Redis, slow disk / undisturbed",
                numerator="redis_slow_disk",
                denominator="redis_undisturbed",
            ),
            Ratio(
                name="headroom_slow_disk",
                title="Headroom, slow disk / undisturbed",
                numerator="headroom_slow_disk",
                denominator="headroom_undisturbed",
            ),
        ),
        goals=(Goal(name="slow_disk", title="rate, slow disk / undisturbed", of="headroom_slow_disk", at_least=0.6),),
    ),
    Scenario(
        name="idle",
        stage="idle",
        title=f"{IDLE_CONNECTIONS:,} idle connections",
        measurements=("headroom_alone", "headroom_among_idle"),
        ratios=(
            Ratio(
                name="idle",
                title="among idle connections / alone",
                numerator="headroom_among_idle",
                denominator="headroom_alone",
            ),
        ),
        goals=(
            Goal(name="idle", title="rate, among idle connections / alone", of="idle", at_least=0.9),
            Goal(
                name="idle_memory",
                title=f"resident memory with {IDLE_CONNECTIONS:,} connections",
                of="headroom_among_idle",
                field="resident_highest_mb",
                at_most=150,
                unit="MB",
            ),
        ),
    ),
    Scenario(
        name="http",
        stage="http",
        title="with load on the HTTP server",
        measurements=("headroom_quiet_full", "headroom_visited_full", "headroom_quiet_half", "headroom_visited_half"),
        ratios=(
            Ratio(
                name="http_rate",
                title="rate, visited / quiet, 64 × 16",
                numerator="headroom_visited_full",
                denominator="headroom_quiet_full",
            ),
            Ratio(
                name="http_p99",
                title="p99, visited / quiet, open loop at half of it",
                numerator="headroom_visited_half",
                denominator="headroom_quiet_half",
                field="p99_ms",
            ),
        ),
        goals=(
            Goal(name="http_p99", title="p99 at half load, with HTTP requests / without", of="http_p99", at_most=1.5),
        ),
    ),
    Scenario(
        name="renewals",
        stage="renewals",
        title="renewals of subscriptions",
        measurements=("renewals_alone", "headroom_unrenewed_full", "headroom_unrenewed_half", "headroom_renewed_half"),
        ratios=(
            Ratio(
                name="renewed_p99",
                title="p99, 200 renewals a second / none, open loop at half of 64 × 16",
                numerator="headroom_renewed_half",
                denominator="headroom_unrenewed_half",
                field="p99_ms",
            ),
        ),
        goals=(
            Goal(
                name="renewals",
                title="renewals on 8 connections",
                of="renewals_alone",
                field="per_second",
                at_least=1000,
                unit="/s",
            ),
            Goal(
                name="renewal",
                title="a renewal in PostgreSQL",
                of="renewals_alone",
                field="postgres_ms",
                at_most=0.8,
                unit="ms",
            ),
            Goal(
                name="renewed_p99",
                title="p99 at half load, 200 renewals a second / none",
                of="renewed_p99",
                at_most=1.5,
            ),
        ),
    ),
    Scenario(
        name="protected",
        stage="protected",
        title="tokens and TLS, 64 connections, 1 and 16 requests in flight",
        measurements=tuple(f"headroom_{kind}_{load_name(pipeline)}" for pipeline in (1, 16) for kind in PROTECTIONS),
        ratios=tuple(
            Ratio(
                name=f"{kind}_{load_name(pipeline)}",
                title=f"{PROTECTIONS[kind]} / open, 64 × {pipeline}",
                numerator=f"headroom_{kind}_{load_name(pipeline)}",
                denominator=f"headroom_open_{load_name(pipeline)}",
            )
            for pipeline in (1, 16)
            for kind in PROTECTIONS
            if kind != "open"
        ),
    ),
    Scenario(
        name="cold",
        stage="restart",
        title="just after a restart",
        measurements=tuple(
            f"headroom_{kind}_{period}_{load_name(pipeline)}"
            for period in PERIODS
            for pipeline in (1, 16)
            for kind in ("cold", "warm")
        ),
        ratios=tuple(
            (
                Ratio(
                    name=f"cold_{period}_{load_name(pipeline)}",
                    title=f"just after a restart / long after, 64 × {pipeline}, {words}",
                    numerator=f"headroom_cold_{period}_{load_name(pipeline)}",
                    denominator=f"headroom_warm_{period}_{load_name(pipeline)}",
                )
                for period, words in PERIODS.items()
                for pipeline in (1, 16)
            )
        ),
        goals=tuple(
            (
                Goal(
                    name=f"cold_{period}_{load_name(pipeline)}",
                    title=f"rate, just after a restart / long after, 64 × {pipeline}, {words}",
                    of=f"cold_{period}_{load_name(pipeline)}",
                    at_least=0.8,
                )
                for period, words in PERIODS.items()
                for pipeline in (1, 16)
            )
        ),
    ),
    Scenario(
        name="new_users",
        stage="restart",
        title="each user new",
        measurements=("headroom_warm_own_64x16", "headroom_new_users", "headroom_new_users_limited"),
        ratios=(
            Ratio(
                name="new_users",
                title="new users / known users",
                numerator="headroom_new_users",
                denominator="headroom_warm_own_64x16",
            ),
        ),
        goals=(
            Goal(name="new_users", title="rate, new users / known users", of="new_users", at_least=0.35),
            Goal(
                name="new_users_refused",
                title="new users refused, 64 × 16",
                of="headroom_new_users_limited",
                field="refused",
                at_most=0,
            ),
        ),
    ),
    Scenario(
        name="new_month",
        stage="month",
        title="each user's first message of a month",
        measurements=("headroom_within_month", "headroom_new_month"),
        ratios=(
            Ratio(
                name="new_month",
                title="first messages of a month / later ones",
                numerator="headroom_new_month",
                denominator="headroom_within_month",
            ),
        ),
        goals=(
            Goal(name="new_month", title="rate, first messages of a month / later ones", of="new_month", at_least=0.5),
        ),
    ),
    Scenario(
        name="plan_edit",
        stage="plan_edit",
        title="each user's first message after an edit of the plan",
        measurements=("headroom_before_edit", "headroom_after_edit"),
        ratios=(
            Ratio(
                name="plan_edit",
                title="just after an edit of the plan / before",
                numerator="headroom_after_edit",
                denominator="headroom_before_edit",
            ),
        ),
        goals=(
            Goal(name="plan_edit", title="rate, just after an edit of the plan / before", of="plan_edit", at_least=0.5),
        ),
    ),
    Scenario(
        name="rotation",
        stage="rotation",
        title="more users in turn than are cached",
        measurements=("headroom_rotation", "headroom_rotation_cached"),
        ratios=(
            Ratio(
                name="rotation",
                title=f"{ROTATION_USERS:,} users in turn / {USERS:,}",
                numerator="headroom_rotation",
                denominator="headroom_rotation_cached",
            ),
        ),
        goals=(
            Goal(
                name="rotation",
                title=f"rate, {ROTATION_USERS:,} users in turn / {USERS:,}",
                of="rotation",
                at_least=0.8,
            ),
        ),
    ),
    Scenario(
        name="connections",
        stage="curves",
        title="over connections, 16 in flight on each",
        measurements=tuple(f"headroom_connections_{count}" for count in CURVE_CONNECTIONS),
    ),
    Scenario(
        name="users",
        stage="curves",
        title="64 × 16 over users",
        measurements=tuple(f"headroom_users_{count}" for count in CURVE_USERS),
    ),
    # The last of the default scenarios, because the disk stays busy with its writes for a while.
    Scenario(
        name="rows",
        stage="rows",
        title=f"{CURVE_ROWS[-1]:,} users and rows",
        measurements=tuple(f"headroom_rows_{count}{when}" for when in ("", "_fresh") for count in CURVE_ROWS),
        ratios=tuple(
            Ratio(
                name=f"rows_{count}{when}",
                title=f"{count:,} rows / {CURVE_ROWS[0]:,}{(', just after a checkpoint' if when else '')}",
                numerator=f"headroom_rows_{count}{when}",
                denominator=f"headroom_rows_{CURVE_ROWS[0]}{when}",
            )
            for when in ("", "_fresh")
            for count in CURVE_ROWS[1:]
        ),
        goals=(
            Goal(
                name="rows",
                title=f"rate, {CURVE_ROWS[-1]:,} rows / {CURVE_ROWS[0]:,}",
                of=f"rows_{CURVE_ROWS[-1]}",
                at_least=0.75,
            ),
        ),
    ),
    Scenario(
        name="soak", stage="soak", title="full load for long, 64 × 16, 100,000 users", measurements=("soak_minute",)
    ),
)
STAGES = tuple(dict.fromkeys(scenario.stage for scenario in SCENARIOS))
QUICK = ("function", "throughput", "ceiling", "one_user")
USUAL = tuple(scenario.name for scenario in SCENARIOS if scenario.name != "soak")


def scenario_named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def measurements_wanted(names: Sequence[str], stage: str) -> set[str]:
    return {
        measurement
        for scenario in SCENARIOS
        if scenario.stage == stage and scenario.name in names
        for measurement in scenario.measurements
    }
