"""Turns of buckets, and lanes of users, as the service has them."""

import random
import unittest

from scaling.fit import fit_line
from scaling.parameters import Cluster
from scaling.turns import BucketTurns
from scaling.users import Users, lane_of, scattered


class Turns(unittest.TestCase):
    def test_the_fullest_bucket_is_next(self):
        turns = BucketTurns()
        queues = [[1], [1, 2, 3], [1, 2]]
        for bucket in range(3):
            turns.append(bucket)
        self.assertEqual([turns.take_next(queues) for _ in range(4)], [1, 2, 0, None])

    def test_of_equally_full_buckets_the_one_that_waited_longest_is_next(self):
        turns = BucketTurns()
        for bucket in (2, 0, 1):
            turns.append(bucket)
        self.assertEqual([turns.take_next([[1], [1], [1]]) for _ in range(3)], [2, 0, 1])

    def test_no_bucket_waits_for_more_batches_than_there_are_waiting_buckets(self):
        chance = random.Random(3)
        for buckets in (2, 3, 8, 17):
            turns, waits = BucketTurns(), dict.fromkeys(range(buckets), 0)
            longest = 0
            for bucket in range(buckets):
                turns.append(bucket)
            for _ in range(2_000):
                # All buckets always have messages, and their numbers are the worst that chance finds.
                queues = [[0] * (1 if chance.random() < 0.8 else 100) for _ in range(buckets)]
                chosen = turns.take_next(queues)
                turns.append(chosen)
                waits = {bucket: 0 if bucket == chosen else wait + 1 for bucket, wait in waits.items()}
                longest = max(longest, *waits.values())
            self.assertLessEqual(longest, buckets)
            self.assertGreaterEqual(longest, buckets - 1)

    def test_a_bucket_that_is_always_the_fullest_has_more_turns_than_the_others(self):
        turns = BucketTurns()
        queues = [[0] * 100, [0], [0], [0]]
        taken = []
        for bucket in range(4):
            turns.append(bucket)
        for _ in range(400):
            taken.append(turns.take_next(queues))
            turns.append(taken[-1])
        self.assertGreaterEqual(taken.count(0), 100)
        self.assertGreaterEqual(min(taken.count(bucket) for bucket in (1, 2, 3)), 400 // 5)


class Places(unittest.TestCase):
    def test_a_bucket_has_one_lane_where_there_are_enough_buckets(self):
        self.assertEqual([lane_of(unit, 5, 8, 2) for unit in range(4)], [1] * 4)

    def test_lanes_share_a_bucket_where_there_are_fewer_buckets_than_lanes(self):
        lanes = {bucket: {lane_of(unit, bucket, 2, 5) for unit in range(100)} for bucket in range(2)}
        self.assertEqual(lanes, {0: {0, 2, 4}, 1: {1, 3}})

    def test_users_of_the_simulated_workers_have_their_part_of_the_messages(self):
        self.assertAlmostEqual(Users(Cluster(workers=4, buckets=16)).share, 1 / 4)
        # Six buckets of 64 are on the first of twelve workers, and five on others.
        self.assertAlmostEqual(Users(Cluster(workers=12, buckets=64)).share, 6 / 64)
        self.assertAlmostEqual(Users(Cluster(workers=4, buckets=16, hot_user_share=0.2)).share, 0.2 + 0.8 / 4)
        self.assertGreater(Users(Cluster(workers=4, buckets=16, zipf_exponent=1.0, users=1_000)).share, 1 / 4)

    def test_only_users_of_the_simulated_workers_are_drawn(self):
        chance = random.Random(1)
        for cluster in (
            Cluster(workers=4, buckets=16, simulated_workers=2),
            Cluster(workers=4, buckets=16, simulated_workers=2, zipf_exponent=1.0, users=1_000),
        ):
            users = Users(cluster)
            self.assertEqual({user % 16 % 4 for user in users.draw(chance, 2_000)}, set(users.workers))

    def test_a_hot_user_sends_its_part(self):
        users = Users(Cluster(workers=4, buckets=16, hot_user_share=0.5))
        drawn = users.draw(random.Random(1), 10_000)
        self.assertAlmostEqual(drawn.count(0) / 10_000 * users.share, 0.5, delta=0.02)

    def test_no_two_users_have_one_number(self):
        self.assertEqual(len({scattered(rank) for rank in range(100_000)}), 100_000)


class Fit(unittest.TestCase):
    def test_a_line_through_points_of_a_line_is_that_line(self):
        line = fit_line([(size, 250 + 8 * size) for size in (1, 4, 16, 64, 256)])
        self.assertAlmostEqual(line.start, 250)
        self.assertAlmostEqual(line.slope, 8)

    def test_one_size_makes_no_line(self):
        with self.assertRaises(ValueError):
            fit_line([(4, 100), (4, 110)])
