"""Scenarios under special circumstances: a slow disk, idle connections, HTTP requests, renewals, tokens and TLS."""

from .scenario import Goal, Ratio, Scenario
from .titles import (
    FLUSH_MILLISECONDS,
    HTTP_PER_SECOND,
    IDLE_CONNECTIONS,
    PROTECTIONS,
    load_name,
)

CIRCUMSTANCES = (
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
        goals=(Goal(name="slow_disk", title="rate, slow disk / undisturbed", of="headroom_slow_disk", at_least=0.35),),
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
        goals=(Goal(name="http_rate", title="rate, with HTTP requests / without, 64 × 16", of="http_rate", at_least=0.6),),
    ),
    Scenario(
        name="counting_http",
        stage="counting_http",
        title="counting over HTTP",
        measurements=("headroom_line_64x1", "headroom_http_64", "headroom_line_half", "headroom_line_half_beside_http"),
        ratios=(
            Ratio(
                name="counting_http_rate",
                title="messages over HTTP, 64 keep-alive connections / line protocol, 64 × 1",
                numerator="headroom_http_64",
                denominator="headroom_line_64x1",
            ),
            Ratio(
                name="counting_http_p99",
                title=f"p99 on the line protocol, beside {HTTP_PER_SECOND:,} messages a second over HTTP / without",
                numerator="headroom_line_half_beside_http",
                denominator="headroom_line_half",
                field="p99_ms",
            ),
        ),
        goals=(
            Goal(
                name="counting_http_rate",
                title="rate over HTTP / line protocol, 64 connections",
                of="counting_http_rate",
                at_least=0.4,
            ),
            Goal(
                name="counting_http_p99",
                title=f"p99 at half load, beside {HTTP_PER_SECOND:,} HTTP requests a second / without",
                of="counting_http_p99",
                at_most=3,
            ),
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
                at_least=350,
                unit="/s",
            ),
            Goal(
                name="renewal",
                title="a renewal in PostgreSQL",
                of="renewals_alone",
                field="postgres_ms",
                at_most=3.4,
                unit="ms",
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
)
