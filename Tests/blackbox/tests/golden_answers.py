"""The golden table, Tests/golden/answers.txt, over the line protocol, over HTTP and in SQL. GoldenTableTests runs it in Swift."""

import json

from support.case import MID_MONTH, Case
from support.printed import ROOT

COUNTS = ("used", "held", "remaining", "window_used", "window_remaining")
NAMES = ("status", *COUNTS, "tier", "display", "crossed", "reason", "retry_after", "shadow", "banner")
"""What the table has of an answer."""
SHOWN = (*COUNTS, "tier", "display", "banner")
"""What USAGE shows of it."""
COLUMNS = {
    "allowance": "allowance", "gentle": "gentle_percent", "prominent": "prominent_percent", "days": "trial_days", "zone": "time_zone",
    "window": "window_messages", "seconds": "window_seconds", "enforced": "enforced",
}  # fmt: skip

STORED = {"window_count": "window", "message_count": "used", '"limit"': "limit"}


def pairs(words):
    return dict(word.split("=", 1) for word in words)


def read():
    """The plans and the examples of the table."""
    with open(f"{ROOT}/Tests/golden/answers.txt") as file:
        lines = [line for line in file.read().splitlines() if not line.startswith("#")]
    plans = [line.split()[1:] for line in lines if line.startswith("plan ")]
    return plans, [Example(line) for line in lines if not line.startswith("plan ")]


class Example:
    def __init__(self, line):
        self.line = line
        self.plan, before, request, answer, banner = (part.strip() for part in line.split("|"))
        self.before = pairs(before.split())
        self.start = self.before.pop("from", MID_MONTH)
        self.at = self.before.pop("at", self.start)
        self.verb, n = request.split()
        self.n = int(n)
        status, *fields = answer.split()
        self.answer = {"status": status, **pairs(fields), **({"banner": banner} if banner else {})}

    @property
    def shown(self):
        """What USAGE shows afterwards: not how many messages a refused request needed."""
        is_about_request = self.answer.get("reason", "").endswith("exceeds_remaining")
        return {name: self.answer[name] for name in SHOWN if name in self.answer and not (is_about_request and name == "banner")}


class Ports:
    """Each sends a request and returns the answer's fields as texts."""

    def __init__(self, test):
        self.test = test
        self.connection = test.service.connect()

    def line(self, verb, user, n=None):
        words = [verb, user, *([str(n)] if n else []), *(["key=golden"] if verb == "RESERVE" else [])]
        answer = self.connection.answer(" ".join(words))
        return {"status": answer.status, **answer.fields}

    def http(self, verb, user, n=None):
        if verb == "USAGE":
            answer = self.test.service.http("GET", f"/v1/usage/{user}")
        else:
            key = {"Idempotency-Key": "golden"} if verb == "RESERVE" else {}
            answer = self.test.service.http("POST", f"/v1/usage/{user}/{verb.lower()}", {"n": n}, key)
        self.test.assertEqual(answer.status, 200, answer.text)
        fields = self.texts(answer.json)
        status = "OK" if verb == "USAGE" else "HELD" if verb == "RESERVE" else "ALLOWED"
        return {"status": "BLOCKED" if fields.get("allowed") == "0" else status, **fields}

    def sql(self, verb, user, n=None):
        call = f"increment_and_check_usage('{user}', {n})" if verb == "CONSUME" else f"headroom.current_answer('{user}')"
        return self.texts(json.loads(self.test.psql.value(f"select to_json({call})")))

    @staticmethod
    def texts(values):
        """The values of an object of JSON as the line has them: true as 1, no number of held messages instead of 0."""
        values = {name: int(value) if isinstance(value, bool) else value for name, value in values.items() if name != "held" or value}
        fields = {name: str(value) for name, value in values.items() if value is not None}
        return {**fields, "remaining": fields.get("remaining", "unlimited")}


class GoldenAnswers(Case):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        plans, cls.examples = read()
        for name, cycle, *options in plans:
            values = {"plan": name, "label": name.title(), "cycle": cycle, **{COLUMNS[key]: value for key, value in pairs(options).items()}}
            texts = ", ".join(f"'{value}'" for value in values.values())
            cls.psql.run(f"insert into headroom.plans ({', '.join(values)}) values ({texts})")

    def setUp(self):
        super().setUp()
        self.ports = Ports(self)
        self.addCleanup(self.ports.connection.close)

    def user_of(self, example):
        """A user as the example has it."""
        user, before = self.user(), dict(example.before)
        self.set_clock(example.start)
        self.send(f"SETPLAN {user} {example.plan}", "+OK")
        held = before.pop("held", None)
        counts = {column: before.pop(name, None) for column, name in STORED.items()}
        if held:
            self.send(f"RESERVE {user} {held} key=hold ttl=86400", "+HELD")
        elif any(counts.values()):
            self.send(f"CONSUME {user} 1", "+ALLOWED")
        for column, value in counts.items():
            if value:
                value = "null" if value == "unlimited" else value
                self.psql.run(f"update message_usage set {column} = {value} where user_id = '{user}'")
        if before:
            self.send(f"SETPLAN {user} {example.plan} " + " ".join(f"{name}={value}" for name, value in before.items()), "+OK")
        self.set_clock(example.at)
        return user

    def send(self, request, status):
        line = self.ports.connection.send_command(request)
        self.assertTrue(line.startswith(status), f"{request}: {line}")

    def check(self, port, names, can_check, shows_usage):
        def taken(fields, names=names):
            return {name: fields[name] for name in names if name in fields}

        for example in self.examples:
            user = self.user_of(example)
            with self.subTest(example.line):
                expected = taken(example.answer)
                if example.verb != "CHECK" and can_check(example):
                    check = taken(port("CHECK", user, example.n))
                    if example.answer["status"] == "BLOCKED":
                        self.assertEqual(check, expected, "CHECK")
                    else:
                        self.assertEqual([check["status"], check.get("shadow")], ["ALLOWED", expected.get("shadow")], "CHECK")
                self.assertEqual(taken(port(example.verb, user, example.n)), expected)
                if shows_usage:
                    self.assertEqual(taken(port("USAGE", user), [*example.shown]), example.shown, "USAGE")

    def test_over_the_line_protocol(self):
        self.check(self.ports.line, NAMES, lambda _: True, True)

    def test_over_http(self):
        self.check(self.ports.http, NAMES, lambda _: True, True)

    def test_in_sql(self):
        # SQL has no function that holds, and shows what CHECK says about one message.
        self.examples = [row for row in self.examples if row.verb == "CONSUME" or row.verb == "CHECK" and row.n == 1]
        self.check(self.ports.sql, NAMES[:-1], lambda row: row.n == 1, False)
