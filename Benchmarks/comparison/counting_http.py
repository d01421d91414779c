"""Messages over HTTP, and what they cost those on the line protocol."""

from __future__ import annotations

from .bench import Bench
from .titles import HTTP_PER_SECOND, USERS


def stage(bench: Bench) -> None:
    with bench.separate_service("counting_http", "--http-connections-maximum=512", http="127.0.0.1:0") as service:
        service.prepare(USERS)
        bench.settle(service.database)

        def measure() -> None:
            bench.by_headroom_bench("headroom_line_64x1", service, USERS, pipeline=1)
            bench.by_wrk("headroom_http_64", service, USERS)
            half = bench.latest("headroom_line_64x1")["per_second"] / 2
            bench.by_headroom_bench("headroom_line_half", service, USERS, rate=half)
            bench.beside_http("headroom_line_half_beside_http", service, USERS, half, HTTP_PER_SECOND)

        bench.rounds(measure)
