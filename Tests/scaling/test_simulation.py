"""The simulation of several machines, beside closed forms."""

import unittest
from dataclasses import replace
from unittest import mock

from scaling.capacity import capacity, sized
from scaling.formulas import cores_limit, event_loops_limit, lane_seconds, lanes_limit, sweep_seconds
from scaling.parameters import BadParameter, Cluster, Costs, costs_of, measured_costs
from scaling.resources import Clock, GroupCommit, SharedCores
from scaling.simulation import Outcome, Simulation, simulate
from scaling.users import Users

FREE = Costs(
    batch=0, row=1_000, flush=0, event_loop=0, lane_batch=0, lane_message=0, monitor=0, watch=0, poll_bucket=0, poll_user=0,
    poll_worker_bucket=0, poll_worker_user=0,
)  # fmt: skip
"""A message takes a millisecond of a core, and nothing else takes time."""

ONE_LANE = Cluster(buckets=1, instances=1, lanes=1, batch_maximum=1, round_trip=0)
COSTS = Costs(
    batch=1_000, row=5, flush=1_250, event_loop=3, lane_batch=95, lane_message=0.6, monitor=1_300, watch=15, poll_bucket=300, poll_user=6,
    poll_worker_bucket=340, poll_worker_user=4,
)  # fmt: skip
"""Of the order of the measured ones, and independent of them."""


class ClosedForms(unittest.TestCase):
    def test_one_lane_with_batches_of_one_waits_as_a_queue_with_constant_service(self):
        for busy in (0.3, 0.6, 0.8):
            with self.subTest(busy=busy):
                # M/D/1: the mean wait is ρ / (2 (1 - ρ)) services; the median of sojourns lies below the mean.
                outcome, mean = outcome_and_mean_latency(ONE_LANE, FREE, 1_000 * busy)
                self.assertAlmostEqual(mean, 1 + busy / (2 * (1 - busy)), delta=0.06 * mean)
                self.assertAlmostEqual(outcome.cores * ONE_LANE.cores, busy, delta=0.03 * busy)

    def test_shared_cores_answer_as_processor_sharing(self):
        # M/G/1 with processor sharing: the mean sojourn is service / (1 - ρ). Enough lanes keep no message waiting elsewhere.
        cluster = replace(ONE_LANE, cores=1, buckets=1_024, lanes=512)
        _, mean = outcome_and_mean_latency(cluster, FREE, 500)
        self.assertAlmostEqual(mean, 2, delta=0.15)

    def test_a_saturated_worker_counts_as_many_as_its_cores_divided_by_the_cost(self):
        cluster = Cluster(buckets=16, instances=4, event_loops=8, lanes=4, cores=2, batch_maximum=64)
        costs = replace(COSTS, flush=100, event_loop=1)
        limit = cores_limit(cluster, costs, cluster.batch_maximum)
        outcome = simulate(cluster, costs, 2 * limit, seconds=1)
        self.assertGreater(outcome.cores, 0.99)
        self.assertGreater(outcome.batch, 0.95 * cluster.batch_maximum)
        rate = outcome.finished * outcome.offered
        # A user with two messages in a batch is one row, so a little more is counted.
        self.assertAlmostEqual(rate / limit, 1, delta=0.03)

    def test_saturated_lanes_count_a_batch_in_the_time_of_a_batch(self):
        cluster = Cluster(buckets=2, instances=1, event_loops=8, lanes=2, cores=8, batch_maximum=32)
        costs = replace(COSTS, flush=0)
        limit = lanes_limit(cluster, costs, 32)
        outcome = simulate(cluster, costs, 1.5 * limit, seconds=1)
        self.assertGreater(outcome.lanes, 0.99)
        self.assertAlmostEqual(outcome.finished * outcome.offered / limit, 1, delta=0.03)
        self.assertEqual(limit, 2 * 32 / lane_seconds(cluster, costs, 32))

    def test_event_loops_pass_on_no_more_than_their_limit(self):
        cluster = replace(ONE_LANE, batch_maximum=512, event_loops=2)
        costs = replace(FREE, row=0.1, batch=1, event_loop=100)
        self.assertEqual(event_loops_limit(cluster, costs), 20_000)
        outcome = simulate(cluster, costs, 40_000, seconds=1)
        self.assertGreater(outcome.event_loops, 0.99)
        self.assertLess(outcome.finished * outcome.offered, 20_000)

    def test_workers_that_are_not_simulated_take_the_time_of_event_loops(self):
        one = Cluster(workers=8, instances=2, lanes=4)
        all_of_them = replace(one, simulated_workers=8)
        few, every = (simulate(cluster, COSTS, 50_000, seconds=0.5) for cluster in (one, all_of_them))
        self.assertAlmostEqual(few.event_loops, every.event_loops, delta=0.03)
        self.assertAlmostEqual(few.lanes, every.lanes, delta=0.05)
        self.assertAlmostEqual(few.batch / every.batch, 1, delta=0.1)

    def test_a_flush_serves_all_commits_that_waited_for_it(self):
        clock, done = Clock(), []
        commits = GroupCommit(clock, 1.0)
        for at in (0.0, 0.1, 0.9, 1.5):
            clock.at(at, commits.commit, lambda at=at: done.append((at, clock.now)))
        clock.run(until=10)
        self.assertEqual(done, [(0.0, 1.0), (0.1, 2.0), (0.9, 2.0), (1.5, 3.0)])
        self.assertEqual((commits.flushes, commits.busy), (3, 3.0))

    def test_more_processes_than_cores_share_them_equally(self):
        clock, done = Clock(), {}
        cores = SharedCores(clock, 2)
        for name, seconds in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
            cores.execute(seconds, lambda name=name: done.update({name: round(clock.now, 9)}))
        clock.run(until=10)
        # Each of three gets two thirds of a core, until two are done after 1.5 s; the last has one core from then on.
        self.assertEqual(done, {"a": 1.5, "b": 1.5, "c": 2.5})
        self.assertAlmostEqual(cores.busy, 4)


def outcome_and_mean_latency(cluster: Cluster, costs: Costs, rate: float) -> tuple[Outcome, float]:
    """The latency in milliseconds; the outcome itself has percentiles. The time is so long that other seeds lead to the same within
    two thirds of what the tests tolerate."""
    simulation = Simulation(cluster, costs, Users(cluster), rate, seconds=100, seed=1)
    outcome = simulation.run()
    return outcome, 1e3 * sum(simulation.latencies) / len(simulation.latencies)


class Behaviour(unittest.TestCase):
    def test_a_seed_decides_everything(self):
        cluster = Cluster(workers=2, lanes=2, zipf_exponent=1.0, users=10_000, subscribed_users=10)
        first, again = (simulate(cluster, COSTS, 20_000, seed=7) for _ in range(2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, simulate(cluster, COSTS, 20_000, seed=8))

    def test_batches_grow_with_the_load(self):
        cluster = Cluster(buckets=4, instances=2, event_loops=4)
        sizes = [simulate(cluster, COSTS, rate).batch for rate in (1_000, 10_000, 50_000)]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreater(sizes[2], 4 * sizes[0])

    def test_more_buckets_make_batches_smaller(self):
        sizes = [simulate(Cluster(buckets=buckets), COSTS, 20_000).batch for buckets in (4, 64, 1_024)]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertGreater(sizes[0], 2 * sizes[2])

    def test_messages_of_one_user_share_a_row(self):
        cluster = Cluster(workers=4, buckets=4, event_loops=4)
        costs = replace(COSTS, flush=100)
        alone, others = (simulate(replace(cluster, hot_user_share=share), costs, 40_000) for share in (1.0, 0.0))
        # All messages go to the worker of the hot user, and cost it less than a quarter of them by different users.
        self.assertGreater(alone.batch, 2 * others.batch)
        self.assertLess(alone.cores, others.cores)

    def test_the_busiest_worker_is_the_one_that_is_simulated(self):
        cluster = Cluster(workers=8, buckets=8, event_loops=8, lanes=4, users=50_000)
        uniform, zipf = (simulate(replace(cluster, zipf_exponent=exponent), COSTS, 50_000) for exponent in (None, 1.2))
        self.assertGreater(zipf.batch, uniform.batch)

    def test_polls_for_changes_take_the_workers_cores(self):
        cluster = Cluster(workers=2, instances=16)
        quiet, asked = (simulate(replace(cluster, subscribed_users=users), COSTS, 1_000) for users in (0, 1_000))
        self.assertGreater(asked.cores, quiet.cores + 0.05)


@mock.patch("scaling.capacity.STEPS", 8)
@mock.patch("scaling.capacity.MESSAGES", 10_000)
class Sizing(unittest.TestCase):
    """Shorter and fewer runs than for the tables: they shift the greatest rate by some hundredths, and not what breaks first."""

    def test_what_breaks_first_is_named(self):
        fast = replace(COSTS, flush=100)
        cases = {
            "event loops": (Cluster(workers=8, instances=1, lanes=8, buckets=32), fast),
            "lanes": (Cluster(cores=16, instances=1, event_loops=8, lanes=1, buckets=1), replace(fast, event_loop=1)),
            "connections": (Cluster(instances=40, lanes=3, buckets=4), fast),
            "coordinator": (Cluster(instances=30, subscribed_users=1_000, connections_maximum=200), fast),
            "turns of buckets": (Cluster(workers=2, buckets=1_024), fast),
            "flushes": (Cluster(instances=2, event_loops=8, lanes=8, buckets=1), replace(COSTS, flush=10_000, event_loop=1)),
        }
        for name, (cluster, costs) in cases.items():
            with self.subTest(name):
                self.assertEqual(capacity(cluster, costs).breaks_first, name)

    def test_small_batches_of_many_buckets_wait_for_a_sweep_and_at_most_two(self):
        fast = replace(COSTS, flush=500, event_loop=1)
        for cluster in (Cluster(buckets=32, instances=4, lanes=2), Cluster(buckets=64, instances=1, lanes=1)):
            with self.subTest(buckets=cluster.buckets):
                # Fast enough that every bucket always has a message, slow enough that rows cost little.
                outcome = simulate(cluster, fast, 10_000, seconds=1)
                sweep = 1e3 * sweep_seconds(cluster, fast)
                self.assertGreater(outcome.lanes, 0.95)
                self.assertGreater(outcome.p50, 0.4 * sweep)
                self.assertLess(outcome.p99, 2.4 * sweep)

    def test_a_sized_cluster_has_fewer_buckets_where_many_instances_would_take_turns(self):
        costs = replace(COSTS, event_loop=12)
        per_worker = [sized(workers, costs).buckets / workers for workers in (2, 8, 64)]
        self.assertEqual(per_worker[0], 4)
        self.assertLess(per_worker[2], per_worker[0])

    def test_a_sized_cluster_grows_with_its_workers(self):
        costs = replace(COSTS, flush=300)
        one, four = (capacity(sized(workers, costs), costs).rate for workers in (2, 8))
        self.assertAlmostEqual(four / one, 4, delta=0.6)


class Parameters(unittest.TestCase):
    def test_parameters_that_cannot_be_are_refused(self):
        for wrong in (
            {"workers": 0}, {"cores": 0}, {"lanes": 0}, {"instances": -1}, {"batch_maximum": 0}, {"buckets": 12}, {"buckets": 2_048},
            {"workers": 8, "buckets": 4}, {"simulated_workers": 2}, {"hot_user_share": 1.5}, {"zipf_exponent": -1.0},
            {"zipf_exponent": 1.0, "hot_user_share": 0.1}, {"round_trip": -1.0}, {"poll_interval": 0.0}, {"subscribed_users": -1},
        ):  # fmt: skip
            with self.subTest(wrong), self.assertRaises(BadParameter):
                Cluster(**wrong)

    def test_costs_below_zero_are_refused(self):
        for wrong in ({"row": -1.0}, {"flush": float("nan")}, {"row": 0.0}):
            with self.subTest(wrong), self.assertRaises(BadParameter):
                replace(FREE, **wrong)

    def test_a_run_needs_messages_and_time(self):
        for rate, seconds in ((0, 1), (-5, 1), (1, 0)):
            with self.subTest(rate=rate), self.assertRaises(BadParameter):
                simulate(ONE_LANE, FREE, rate, seconds=seconds)

    def test_costs_json_has_every_cost_with_its_date_and_machine(self):
        measured = measured_costs()
        self.assertRegex(measured["date"], r"^\d{4}-\d\d-\d\d$")
        self.assertIn("processor", measured["machine"])
        for server in ("plain", "worker"):
            for load in measured["service"]["event_loop_us"]:
                costs_of(measured, server, load)
