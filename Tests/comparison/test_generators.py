"""Parsing the output of load generators."""

import json
import unittest

from comparison import generators
from support.processes import Failure

PGBENCH = """pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: /var/tmp/x/function.sql
scaling factor: 1
query mode: prepared
number of clients: 8
number of threads: 2
maximum number of tries: 1
duration: 2 s
number of transactions actually processed: 29820
number of failed transactions: 0 (0.000%)
latency average = 0.536 ms
initial connection time = 9.331 ms
tps = 14929.617424 (without initial connection time)
"""

REDIS_BENCHMARK = """\
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"EVALSHA 0f 1 usage:__rand_int__ 1,000","217351.28","4.601","1.112","5.167","6.023","8.479","11.223"
"""

HEADROOM_BENCH = {
    "target": "127.0.0.1:6747",
    "mode": "closed",
    "connections": 64,
    "pipeline": 16,
    "rate_offered": None,
    "users": 100000,
    "distribution": "uniform",
    "seconds": 2.0,
    "requests": 2000,
    "replies": 2000,
    "allowed": 2000,
    "blocked": 0,
    "other": 0,
    "errors": {},
    "dropped": 0,
    "unanswered": 0,
    "per_second": 1000.04,
    "warmup_replies": 500,
    "warmup_allowed": 500,
    "broken_connections": 0,
    "idle_connections_closed": 0,
    "verb": "consume",
    "latency_ms": {"min": 0.1, "mean": 1, "p50": 1.5, "p90": 2, "p99": 3.5, "p99_9": 7.5, "p99_99": 9, "max": 10},
    "series": [{"second": 1, "replies": 1000, "p50_ms": 1, "p99_ms": 2, "errors": 0}],
}


WRK = """Running 4s test @ http://127.0.0.1:6748
  1 threads and 64 connections

{"messages": 34000, "seconds": 4.000000, "p50_ms": 7.250000, "p99_ms": 15.500000, "errors": 0}
"""


class Wrk(unittest.TestCase):
    def test_rate_latency_and_number_of_messages(self):
        self.assertEqual(
            generators.parse_wrk(WRK, 64),
            {"per_second": 8500.0, "p50_ms": 7.25, "p99_ms": 15.5, "messages": 34000, "unanswered_at_most": 64},
        )

    def test_errors_fail_the_run(self):
        with self.assertRaisesRegex(Failure, "3 errors"):
            generators.parse_wrk(WRK.replace('"errors": 0', '"errors": 3'), 64)
        with self.assertRaisesRegex(Failure, "no figure"):
            generators.parse_wrk("unable to connect", 64)


class Pgbench(unittest.TestCase):
    def test_rate_and_number_of_transactions(self):
        self.assertEqual(generators.parse_pgbench(PGBENCH), {"per_second": 14929.6, "messages": 29820})

    def test_the_versions_before_failed_transactions_were_counted(self):
        older = "\n".join(line for line in PGBENCH.splitlines() if "failed" not in line)
        self.assertEqual(generators.parse_pgbench(older)["messages"], 29820)

    def test_a_failed_transaction_fails_the_run(self):
        with self.assertRaisesRegex(Failure, "3 of pgbench"):
            generators.parse_pgbench(PGBENCH.replace("transactions: 0 (0.000%)", "transactions: 3 (0.010%)"))

    def test_no_figure_is_a_failure(self):
        with self.assertRaises(Failure):
            generators.parse_pgbench("pgbench: error")

    def test_latencies_are_the_third_column_in_microseconds(self):
        lines = [f"0 {number} {number * 10} 0 1763702000 123456" for number in range(1, 101)]
        self.assertEqual(generators.pgbench_latencies(lines), {"p50_ms": 0.5, "p99_ms": 0.99, "p99_9_ms": 1})
        with self.assertRaises(Failure):
            generators.pgbench_latencies([])


class RedisBenchmark(unittest.TestCase):
    def test_columns_are_counted_from_the_end(self):
        self.assertEqual(generators.parse_redis_benchmark(REDIS_BENCHMARK), {"per_second": 217351.28, "p50_ms": 5.167, "p99_ms": 8.479})

    def test_no_figure_is_a_failure(self):
        for out in ("", REDIS_BENCHMARK.splitlines()[0]):
            with self.assertRaises(Failure):
                generators.parse_redis_benchmark(out)

    def test_requests_are_whole_batches_on_every_connection(self):
        benchmark = generators.RedisBenchmark(work=None, seconds=2)
        self.assertEqual(benchmark.requests_for(0), 1024)
        self.assertEqual(benchmark.requests_for(10_000), 20 * 1024)


class HeadroomBench(unittest.TestCase):
    def parsed(self, **changes):
        return generators.parse_headroom_bench(json.dumps({**HEADROOM_BENCH, **changes}))

    def test_the_warm_up_counts_as_messages_and_not_in_the_rate(self):
        found = self.parsed()
        self.assertEqual(found["messages"], 2500)
        self.assertEqual(found["per_second"], 1000.04)
        self.assertEqual((found["p50_ms"], found["p99_ms"], found["p99_9_ms"], found["max_ms"]), (1.5, 3.5, 7.5, 10))
        self.assertNotIn("rate_offered", found)

    def test_an_open_loop_reports_the_offered_rate_and_the_delay(self):
        found = self.parsed(mode="open", rate_offered=1000, send_lag_ms={"p99": 0.2})
        self.assertEqual((found["rate_offered"], found["send_lag_p99_ms"]), (1000, 0.2))

    def test_replies_of_another_server_count(self):
        self.assertEqual(self.parsed(verb=None, allowed=0, other=2000, warmup_allowed=0)["messages"], 2500)

    def test_a_message_with_a_hold_has_two_requests(self):
        held = {"verb": "reserve", "allowed": 1000, "other": 1000, "warmup_allowed": 250}
        found = self.parsed(**held)
        self.assertEqual((found["messages"], found["per_second"]), (1250, 1000.04))
        for wrong in (
            {"allowed": 999, "other": 1001},
            {"warmup_replies": 499},
            {"warmup_replies": 501},
            {"errors": {"NOTFOUND": 1}},
        ):
            with self.assertRaisesRegex(Failure, "should not be"):
                self.parsed(**(held | wrong))

    def test_an_uncounted_message_fails_the_run(self):
        for wrong in (
            {"errors": {"OVERLOADED": 2}},
            {"blocked": 1},
            {"dropped": 1},
            {"unanswered": 1},
            {"broken_connections": 1},
            {"idle_connections_closed": 1},
            {"warmup_allowed": 499},
            {"allowed": 1999},
        ):
            with self.assertRaisesRegex(Failure, "should not be"):
                self.parsed(**wrong)

    def test_refused_messages_are_a_figure_where_they_may_be(self):
        report = {**HEADROOM_BENCH, "errors": {"OVERLOADED": 2}, "allowed": 1998}
        found = generators.parse_headroom_bench(json.dumps(report), may_refuse=True)
        self.assertEqual((found["messages"], found["refused"]), (2498, 2))
        in_warmup = generators.parse_headroom_bench(json.dumps({**report, "warmup_allowed": 400}), may_refuse=True)
        self.assertEqual((in_warmup["messages"], in_warmup["refused"]), (2398, 2))
        report["allowed"] = 1997
        with self.assertRaisesRegex(Failure, "not allowed"):
            generators.parse_headroom_bench(json.dumps(report), may_refuse=True)

    def test_an_invalid_report_is_a_failure(self):
        for out in ("", "[]", "{}"):
            with self.assertRaises(Failure):
                generators.parse_headroom_bench(out)
