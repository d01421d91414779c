"""Concurrent messages of an account's members with two models, over two instances and in psql, are counted exactly: in the account's
allowance, in each model's and in each member's."""

import collections
import itertools
import json
import threading
import uuid
from http.client import HTTPException

from support.case import Case
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer, Closed

from .racing import in_threads

MODELS = {"deep": "deep", "fast-1": "fast*"}
"""The limit of each."""
WEIGHTS = {"deep": 2, "fast-1": 1}
MEMBERS, EACH = 40, 24
COUNTS = ("used", "model_used", "member_used")
UNANSWERED = ("-UNAVAILABLE", "-UNKNOWN", "-OVERLOADED", "-DRAINING")


class Line:
    """A member's connection to one of two instances, or to the other one if that is gone."""

    def __init__(self, services):
        self.services = itertools.cycle(services)
        self.connection = next(self.services).connect()

    def consume(self, account, model, member, key=None):
        words = ["CONSUME", account, f"model={model}", f"member={member}", *([f"key={key}"] if key else [])]
        while True:
            try:
                reply = self.connection.send_command(" ".join(words))
                if not (key and reply.startswith(UNANSWERED)):
                    break
            except (Closed, OSError):
                assert key, "an instance is gone"
                self.connection.close()
                self.connection = next(self.services).connect()
        answer = Answer(reply)
        return {"allowed": answer.status == "ALLOWED", **answer.fields}

    def close(self):
        self.connection.close()


class Web:
    """The same over HTTP."""

    def __init__(self, services):
        self.services = itertools.cycle(services)
        self.service = next(self.services)

    def consume(self, account, model, member, key=None):
        path, headers = f"/v1/usage/{account}/consume", {"Idempotency-Key": key} if key else {}
        while True:
            try:
                answer = self.service.http("POST", path, {"model": model, "member": member}, headers)
                if not (key and answer.status >= 500):
                    break
            except (HTTPException, OSError):
                assert key, "an instance is gone"
                self.service = next(self.services)
        assert answer.status == 200, answer.text
        return answer.json

    def close(self):
        pass


class Session:
    """The same in SQL, which has no keys."""

    def __init__(self, case):
        self.session = case.cluster.session(case.database)

    def consume(self, account, model, member):
        call = f"increment_and_check_usage(p_user_id => '{account}', p_messages => 1, p_model => '{model}', p_member => '{member}'::uuid)"
        row = json.loads(self.session.value(f"select to_json(answer) from {call} as answer"))
        return {"allowed": row["status"] == "ALLOWED", **row}

    def close(self):
        self.session.close()


class RacingParts(Case):
    PLANS = {
        # The account's limit, those of the models, and each member's; only the named one is met.
        "members": (100_000, 10_000, 10_000, 15),
        "models": (100_000, 150, 220, 10_000),
        "account": (500, 10_000, 10_000, 10_000),
        "all": (500, 130, 260, 14),
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.serve()
        for plan, (limit, deep, fast, member) in cls.PLANS.items():
            cls.psql.run(
                f"insert into headroom.plans (plan, label, cycle, allowance) values ('{plan}', '{plan}', 'monthly', {limit});"
                "insert into headroom.plan_limits (plan, kind, name, allowance, weight) values"
                f" ('{plan}', 'model', 'deep', {deep}, {WEIGHTS['deep']}), ('{plan}', 'model', 'fast*', {fast}, 1),"
                f" ('{plan}', 'member', '*', {member}, 1)"
            )

    def race(self, plan, client_of, keyed=False, after=None):
        """Each of 40 members sends 12 messages with each model, all at once. Returns (model, member, answer) for each of the 960
        messages. `after` is told of each answer."""
        account, members = self.subscriber(plan), [str(uuid.uuid4()) for _ in range(MEMBERS)]

        def client(index):
            port, member = client_of(index), members[index]
            try:
                answers = []
                for number in range(EACH):
                    model = list(MODELS)[(index + number) % 2]
                    key = {"key": f"{index}-{number}"} if keyed else {}
                    answers.append((model, member, port.consume(account, model, member, **key)))
                    if after:
                        after()
                return answers
            finally:
                port.close()

        answers = [answer for share in in_threads(client, MEMBERS) for answer in share]
        self.assertEqual(len(answers), MEMBERS * EACH)
        return account, answers

    def check(self, plan, account, answers):
        """Every answer is right, whichever came first; returns the counts of the account, of the models and of the members."""
        limit, deep, fast, member_limit = self.PLANS[plan]
        limits = {"used": limit, "deep": deep, "fast*": fast}
        taken = collections.defaultdict(list)
        for model, member, answer in answers:
            if answer["allowed"]:
                weight = WEIGHTS[model]
                for name, count, n in zip(("used", MODELS[model], member), COUNTS, (weight, 1, weight)):
                    taken[name].append((int(answer[count]), n))
        counts = {}
        for name, steps in taken.items():
            # Each answer has a count of its own, and together they are all messages up to the last.
            steps.sort()
            self.assertEqual([used - n for used, n in steps], [0, *(used for used, _ in steps[:-1])], name)
            counts[name] = steps[-1][0]
            self.assertLessEqual(counts[name], limits.get(name, member_limit), name)
        stored = self.psql.run(f"select name, used from headroom.usage_parts where user_id = '{account}' and used > 0")
        self.assertEqual({"used": str(self.count(account)), **dict(stored)}, {name: str(count) for name, count in counts.items()})
        for model, member, answer in answers:
            if not answer["allowed"]:
                # Counts only grow, so what did not fit does not fit at the end.
                kind = answer["reason"].partition("_")[0]
                name = {"model": MODELS[model], "member": member}.get(kind, "used")
                n = 1 if kind == "model" else WEIGHTS[model]
                self.assertGreater(counts[name] + n, limits.get(name, member_limit), f"{answer['reason']} of {name}")
        return counts

    def any_port(self, index):
        services = (self.service, self.other)[:: 1 if index % 2 else -1]
        return (Line, Web, lambda _: Session(self))[index % 3](services)

    def test_960_messages_of_40_members_with_two_models_get_each_members_allowance_exactly(self):
        counts = self.check("members", *self.race("members", self.any_port))
        # The last one of 15 is for a message that weighs 1, and each member sends twelve of these.
        members = [count for name, count in counts.items() if name not in ("used", *MODELS.values())]
        self.assertEqual(members, [15] * MEMBERS)
        self.assertEqual(counts["used"], 15 * MEMBERS)

    def test_960_messages_get_each_models_allowance_exactly(self):
        counts = self.check("models", *self.race("models", self.any_port))
        self.assertEqual((counts["deep"], counts["fast*"], counts["used"]), (150, 220, 2 * 150 + 220))

    def test_960_messages_get_the_accounts_allowance_exactly(self):
        counts = self.check("account", *self.race("account", self.any_port))
        self.assertEqual(counts["used"], 500)
        self.assertEqual(2 * counts["deep"] + counts["fast*"], 500)

    def test_960_messages_of_which_each_allowance_refuses_some(self):
        account, answers = self.race("all", self.any_port)
        self.check("all", account, answers)
        refusals = {answer["reason"].partition("_")[0] for _, _, answer in answers if not answer["allowed"]}
        self.assertLessEqual({"model", "member"}, refusals)

    def test_960_messages_with_keys_count_once_where_an_instance_is_killed_in_the_middle(self):
        for plan in self.PLANS:
            with self.subTest(plan):
                victim = self.serve()
                answered = threading.Semaphore(0)

                def client(index, victim=victim):
                    return (Line, Web)[index % 4 // 2]((victim, self.service) if index % 2 else (self.service, victim))

                def kill(victim=victim, answered=answered):
                    for _ in range(MEMBERS * EACH // 3):
                        assert answered.acquire(timeout=TIMEOUT_SECONDS), "too few answers"
                    victim.kill()

                thread = threading.Thread(target=kill, daemon=True)
                thread.start()
                account, answers = self.race(plan, client, keyed=True, after=answered.release)
                thread.join(TIMEOUT_SECONDS)
                wait_until(lambda victim=victim: not victim.is_running, "the instance is killed")
                self.check(plan, account, answers)
                used = [int(answer["used"]) for _, _, answer in answers if answer["allowed"]]
                keys = self.psql.number(f"select count(*) from headroom.message_keys where user_id = '{account}'")
                self.assertEqual(keys, len(used), "a key for each message that was allowed")
