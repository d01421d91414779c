"""Concurrent requests of clients of several instances are counted exactly."""

import json
import shutil
import subprocess
import threading
import uuid

from support.case import Case
from support.waiting import TIMEOUT_SECONDS
from support.wire import Answer


def in_threads(work, count):
    """Runs work(index) in `count` threads; returns the results, or raises the first failure."""
    results, failures = [None] * count, []

    def one(index):
        try:
            results[index] = work(index)
        except BaseException as failure:  # it is raised again below
            failures.append(failure)

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * TIMEOUT_SECONDS)
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), "a client did not finish"
    return results


class Racing(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.serve()
        cls.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance) values"
            " ('thousand', 'Thousand', 'monthly', 1000), ('five', 'Five', 'monthly', 5), ('crew', 'Crew', 'monthly', 600);"
            "insert into headroom.plan_limits (plan, kind, name, allowance, window_messages, window_seconds, weight) values"
            " ('crew', 'model', 'large', null, 60, 86400, 3), ('crew', 'model', 'small', 530, null, null, 1),"
            " ('crew', 'member', '*', 20, null, null, 1)"
        )

    def test_64_connections_of_two_instances_get_a_limit_of_1000_exactly_once(self):
        user = self.subscriber("thousand")

        def client(index):
            service = (self.service, self.other)[index % 2]
            share = 5_000 // 64 + (1 if index < 5_000 % 64 else 0)
            with service.connect() as connection:
                # One at a time for half of the clients, pipelined for the others.
                if index % 4 < 2:
                    return [connection.answer(f"CONSUME {user}") for _ in range(share)]
                connection.send(f"CONSUME {user}\n" * share)
                return [Answer(connection.read_line()) for _ in range(share)]

        answers = [answer for share in in_threads(client, 64) for answer in share]
        self.assertEqual(len(answers), 5_000)
        allowed = [answer for answer in answers if answer.status == "ALLOWED"]
        self.assertEqual(sorted(answer.used for answer in allowed), list(range(1, 1_001)))
        self.assertEqual(self.count(user), 1_000)
        refused = [answer for answer in answers if answer.status == "BLOCKED"]
        self.assertEqual(len(refused), 4_000)
        self.assertEqual({(answer.used, answer["reason"]) for answer in refused}, {(1_000, "limit_reached")})
        crossed = [(answer.used, answer["crossed"]) for answer in answers if "crossed" in answer]
        self.assertEqual(sorted(crossed), [(800, "gentle"), (950, "prominent"), (1_000, "blocked")])

    def test_concurrent_first_messages_on_both_instances_start_one_trial(self):
        users = [self.user() for _ in range(20)]

        def client(index):
            service = (self.service, self.other)[index % 2]
            with service.connect() as connection:
                connection.send("".join(f"CONSUME {user}\n" for user in users))
                return [Answer(connection.read_line()) for _ in users]

        answers = in_threads(client, 16)
        for position, user in enumerate(users):
            self.assertEqual(sorted(share[position].used for share in answers), list(range(1, 17)))
            self.assertEqual(len({share[position]["expires"] for share in answers}), 1, "one trial, one end")
            self.assertEqual(self.count(user), 16)

    def test_pipelined_4_3_1_of_remaining_5_allow_4_and_1(self):
        for service in (self.service, self.other):
            user = self.subscriber("five")
            with service.connect() as connection:
                connection.send("".join(f"CONSUME {user} {n}\n" for n in (4, 3, 1)))
                answers = [Answer(connection.read_line()) for _ in range(3)]
            self.assertEqual(
                [(a.status, a.used, a["remaining"]) for a in answers],
                [("ALLOWED", 4, "1"), ("BLOCKED", 4, "1"), ("ALLOWED", 5, "0")],
            )
            self.assertEqual(self.count(user), 5)

    def test_mixed_n_of_many_clients_never_pass_the_limit_and_refuse_only_what_does_not_fit(self):
        user = self.subscriber("thousand")

        def client(index):
            service = (self.service, self.other)[index % 2]
            with service.connect() as connection:
                return [(n, connection.answer(f"CONSUME {user} {n}")) for n in [7, 1, 13, 40, 2, 5] * 10]

        answers = [pair for share in in_threads(client, 12) for pair in share]
        allowed = sum(n for n, answer in answers if answer.status == "ALLOWED")
        self.assertEqual(self.count(user), allowed)
        self.assertLessEqual(allowed, 1_000)
        self.assertEqual(allowed, 1_000, "single messages were sent until the end, so none can be left")
        for n, answer in answers:
            if answer.status == "BLOCKED":
                self.assertGreater(answer.used + n, 1_000, "a refused request does not fit")

    def test_40_members_with_two_models_over_lines_http_and_sql_get_each_allowance_exactly(self):
        user, members = self.subscriber("crew"), [str(uuid.uuid4()) for _ in range(40)]

        def client(index):
            service, share = (self.service, self.other)[index % 2], []
            session = self.cluster.session(self.database)
            with service.connect() as connection:
                for turn in range(40):
                    member, model = members[(index + turn) % 40], ("small", "small", "large")[(index + turn // 4) % 3]
                    match (index + turn) % 3:
                        case 0:
                            allowed = connection.answer(f"CONSUME {user} model={model} member={member}").status == "ALLOWED"
                        case 1:
                            body = {"model": model, "member": member}
                            allowed = service.http("POST", f"/v1/usage/{user}/consume", json.dumps(body)).json["allowed"]
                        case _:
                            call = f"increment_and_check_usage('{user}', 1, '{model}', '{member}')"
                            allowed = session.run(f"select status from {call}")[0][0] == "ALLOWED"
                    share.append((model, member, allowed))
            session.close()
            return share

        asked = [one for share in in_threads(client, 24) for one in share]
        self.assertEqual(len(asked), 960)
        weights, left = {"large": 3, "small": 1}, {"large": 60, "small": 530, "all": 600, **dict.fromkeys(members, 20)}
        for model, member, allowed in asked:
            if allowed:
                left[model] -= 1
                left["all"] -= weights[model]
                left[member] -= weights[model]
        self.assertGreaterEqual(min(left.values()), 0)
        for model, member, allowed in asked:
            fits = left[model] >= 1 and min(left["all"], left[member]) >= weights[model]
            self.assertTrue(allowed or not fits, f"{member} had room for {model}")
        self.assertLess(left["all"], 3, "there was demand for all")
        self.assertEqual(self.count(user), 600 - left["all"])
        views = " union all ".join(
            f"select name, used from headroom.usage_by_{kind} where user_id = '{user}'" for kind in ("model", "member")
        )
        limits = {"large": 60, "small": 530, **dict.fromkeys(members, 20)}
        self.assertEqual({name: int(used) for name, used in self.psql.run(views)}, {name: limits[name] - left[name] for name in limits})

    def test_each_write_is_read_through_the_other_instance(self):
        user = self.subscriber("thousand")
        with self.service.connect() as here, self.other.connect() as there:
            for turn in range(1, 101):
                here, there = there, here
                self.assertEqual(here.answer(f"CONSUME {user}").used, turn)
                self.assertEqual(there.answer(f"USAGE {user}").used, turn)
                self.assertEqual(there.answer(f"CHECK {user}").used, turn)

    def test_psql_and_the_service_count_the_same_user_at_once(self):
        user = self.subscriber("thousand")
        session = self.cluster.session(self.database)
        used_by_service = []

        def service():
            with self.service.connect() as connection:
                for _ in range(600):
                    answer = connection.answer(f"CONSUME {user}")
                    if answer.status == "ALLOWED":
                        used_by_service.append(answer.used)

        thread = threading.Thread(target=service)
        thread.start()
        rows = [session.run(f"select status, used from increment_and_check_usage('{user}')")[0] for _ in range(600)]
        thread.join()
        session.close()
        used = used_by_service + [int(used) for status, used in rows if status == "ALLOWED"]
        self.assertEqual(sorted(used), list(range(1, 1_001)))

    def test_redis_benchmark_ends_without_an_error_and_every_message_is_counted(self):
        if shutil.which("redis-benchmark") is None:
            self.skipTest("redis-benchmark is not installed (redis-tools)")
        before = self.psql.number("select coalesce(sum(message_count), 0) from message_usage")
        outcome = subprocess.run(
            ["redis-benchmark", "-p", str(self.service.port), "-c", "64", "-P", "16", "-n", "100000", "-r", "10000", "-q",
             "CONSUME", "00000000-0000-4000-8000-__rand_int__"],
            capture_output=True, text=True, timeout=2 * TIMEOUT_SECONDS,
        )  # fmt: skip
        said = outcome.stdout + outcome.stderr
        self.assertEqual(outcome.returncode, 0, said)
        self.assertIn("requests per second", said)
        # It sends CONFIG first, which only Redis has; every other answer must begin with a plus.
        complaints = [line for line in said.replace("\r", "\n").split("\n") if "rror" in line and "CONFIG" not in line]
        self.assertEqual(complaints, [])
        # 10 messages a user on average and 100 in each trial: all are allowed. (At 30, it would be one in a million.)
        after = self.psql.number("select coalesce(sum(message_count), 0) from message_usage")
        self.assertEqual(self.psql.number("select count(*) from message_usage where message_count >= 100 and plan = 'trial'"), 0)
        self.assertEqual(after - before, 100_000)

    def test_2000_connections_at_once_are_all_answered(self):
        connections = []
        try:
            for _ in range(2_000):
                connections.append(self.service.connect())
            users = [str(uuid.UUID(int=(0x4 << 76) + index)) for index in range(2_000)]
            for connection, user in zip(connections, users):
                connection.send(f"CHECK {user}\n")
            for connection, user in zip(connections, users):
                self.assertIn(f"user={user} ", connection.read_line())
        finally:
            for connection in connections:
                connection.close()
