"""The parts of the chat's page that touch nothing of it, run in the browser over tables of cases."""

from support.chat import ChatCase

# The page's policy forbids code out of texts, so what is to run stands in the script itself.
RUN = """
const [name, cases, done] = arguments;
const run = (module, input) => { BODY };
import('/assets/' + name).then((module) => done(cases.map((input) => run(module, input)))).catch((error) => done(String(error)));
"""

TRIAL = {
    "plan": "trial", "state": "trial", "tier": "silent", "display": "trial", "used": 58, "limit": 100, "remaining": 42,
    "period": "trial", "day": 2, "days": 3, "label": "Trial — Day 2 of 3", "accessible": "58 of 100 trial messages used",
    "banner": "42 of 100 trial messages remaining",
}  # fmt: skip


def trial(used, held=0, **more):
    usage = {**TRIAL, "used": used, "remaining": 100 - used - held, "accessible": f"{used} of 100 trial messages used",
             "banner": f"{100 - used - held} of 100 trial messages remaining", **more}  # fmt: skip
    return {**usage, "held": held} if held else usage


BLOCKED = trial(58, display="blocked", tier="blocked", remaining=0)

# Each step is a function of counter.js and its arguments; `shown` is what the page shows after it, held messages included.
# Timeoutss are milliseconds of a clock of the case's own.
COUNTING = {
    "pressing counts at once, and the hold is not counted again": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", trial(58, 1), 50], 59), (["settled", "a", trial(59), 90], 59),
    ],
    "a change that has the hold already comes before the answer": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["told", trial(58, 1), 40], 59), (["held", "a", trial(58, 1), 50], 59),
        (["told", trial(59), 80], 59), (["settled", "a", trial(59), 90], 59),
    ],
    "a change of before the press comes late": [
        (["told", trial(57), 0], 57), (["pressed", "a"], 58), (["told", trial(57), 10], 58), (["held", "a", trial(57, 1), 50], 58),
    ],
    "a change that the answer has overtaken is not shown": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", trial(58, 1), 50], 59), (["settled", "a", trial(59), 90], 59),
        (["told", trial(58), 100], 59), (["told", trial(59), 110], 59), (["afterWaiting", 5_000], 59),
    ],
    "a reset right after an answer is shown a little later": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["settled", "a", trial(59), 90], 59), (["told", trial(0), 200], 59),
        (["afterWaiting", 1_100], 0),
    ],
    "a reset is shown at once, with the message under way on top": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["told", trial(0), 5_000], 1), (["held", "a", trial(0, 1), 5_100], 1),
        (["settled", "a", trial(1), 5_200], 1),
    ],
    "another window counts meanwhile": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["told", trial(60), 10], 60), (["held", "a", trial(60, 1), 20], 61),
        (["settled", "a", trial(61), 30], 61),
    ],
    "a refused message is taken back": [(["told", trial(58), 0], 58), (["pressed", "a"], 59), (["settled", "a", BLOCKED, 50], 58)],
    "what fails before it is held is taken back": [(["told", trial(58), 0], 58), (["pressed", "a"], 59), (["givenBack", "a", 50], 58)],
    "what is stopped is taken back before the server has done it": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", trial(58, 1), 50], 59), (["givenBack", "a", 60], 58),
        (["told", trial(58, 1), 70], 58), (["told", trial(58), 80], 58),
    ],
    "what is stopped and counted all the same is shown in the end": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", trial(58, 1), 50], 59), (["givenBack", "a", 60], 58),
        (["told", trial(59), 80], 58), (["afterWaiting", 6_000], 59),
    ],
    "what is stopped is taken off once, also where the server has told it before": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", trial(58, 1), 50], 59), (["told", trial(58), 2_000], 58),
        (["givenBack", "a", 2_010], 58),
    ],
    "what was let through and is stopped takes nothing off": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", {"degraded": True}, 50], 58), (["givenBack", "a", 60], 58),
    ],
    "nothing is known of a message that was let through": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", {"degraded": True}, 50], 58),
        (["settled", "a", {"degraded": True}, 90], 58),
    ],
    "an upgrade begins anew": [
        (["told", trial(100, display="blocked"), 0], 100),
        (["told", {**TRIAL, "plan": "paid", "state": "active", "period": "2026-11", "display": "hidden", "used": 0, "limit": 800,
                   "remaining": 800}, 10], 0),
        (["pressed", "a"], 1),
    ],
}  # fmt: skip


DATA = [{"name": "message", "data": "one"}, {"name": "held", "data": "two\nthree"}]

# What comes as server-sent events, however it is cut.
STREAMS = {
    "lines end in LF": ("data: one\n\nevent: held\ndata: two\ndata: three\n\n", DATA),
    "lines end in CRLF": ("data: one\r\n\r\nevent: held\r\ndata: two\r\ndata: three\r\n\r\n", DATA),
    "lines end in CR": ("data: one\r\revent: held\rdata: two\rdata: three\r\rdata: not complete", DATA),
    "comments, other fields, a byte order mark": ("\ufeffretry: 1000\n: here\n\nid: 7\ndata: one\n\nevent:held\ndata:two\ndata:three\n\n", DATA),
    "a blank event is none": ("event: held\n\ndata: one\n\nevent: held\ndata: two\ndata: three\n\n", DATA),
    "a value keeps its own spaces": ("data:  a: b \n\n", [{"name": "message", "data": " a: b "}]),
    "a field without a colon is empty": ("data\n\n", [{"name": "message", "data": ""}]),
    "the end is missing": ("data: one\n\nevent: held\ndata: two", DATA[:1]),
}


def failed(code, can_retry=True):
    return {"kind": "failed", "code": code, "canRetry": can_retry}


# What a message waits for after an attempt that did not send it.
WAITING = [
    ({"kind": "blocked"}, "allowance"),
    ({"kind": "unreachable"}, "connection"),
    ({"kind": "stopped"}, "person"),
    (failed("MODEL"), "person"),
    (failed("INTERNAL"), "person"),
    (failed("UNREACHABLE"), "headroom"),
    (failed("OVERLOADED"), "headroom"),
    (failed("FORBIDDEN", False), "person"),
    ({"kind": "refused", "status": 409, "code": "UNDERWAY"}, "elsewhere"),
    ({"kind": "refused", "status": 409, "code": "CONFLICT"}, "person"),
    ({"kind": "refused", "status": 503, "code": "OVERLOADED"}, "connection"),
    ({"kind": "refused", "status": 400, "code": "BADREQUEST"}, "person"),
]


def message(name, waits_for=None, written_at=0):
    return {"id": name, "waitsFor": waits_for, "writtenAt_ms": written_at}


# The next of an outbox, by its id.
NEXT = [
    ([], None),
    ([message("a"), message("b")], "a"),
    ([message("a", "connection"), message("b")], None),
    ([message("a", "person"), message("b")], "b"),
    ([message("a", "person")], None),
    ([message("a", "elsewhere")], None),
]

# A window's outbox, what all windows keep, and what the outbox is then: each message and what it waits for.
FOLLOWING = [
    ([message("a", "connection", 1)], [], []),
    ([message("a", None, 1)], [], [["a", None]]),
    ([message("b", "elsewhere", 2)], [message("b", "person", 2)], [["b", "person"]]),
    ([message("b", None, 2)], [message("b", "elsewhere", 2)], [["b", None]]),
    (
        [message("b", None, 2)],
        [message("a", "connection", 1), message("c", "headroom", 3)],
        [["a", "connection"], ["b", None], ["c", "headroom"]],
    ),
]

# What the row in the settings says.
ROWS = [
    ({"plan": "paid", "state": "active", "used": 680, "limit": 800, "remaining": 120}, "680 of 800 messages used"),
    ({"plan": "paid", "state": "active", "used": 679, "held": 1, "limit": 800, "remaining": 120}, "680 of 800 messages used"),
    ({"plan": "pro", "state": "active", "used": 1234, "limit": None, "remaining": None}, "1,234 messages used"),
    ({"plan": "free", "state": "free", "used": 0, "limit": 0, "remaining": 0}, "No messages in this plan"),
]

PAID = {"plan": "paid", "state": "active", "display": "blocked", "tier": "blocked", "used": 800, "limit": 800, "remaining": 0, "banner": "…"}

# The button of the gate: its label, and what it does. By the reason, and where an allowance is used up by plan and state.
GATES = [
    (PAID, ["Subscribe to Pro", "subscribe", "pro"]),
    ({**PAID, "state": "cancelled"}, ["Subscribe to Pro", "subscribe", "pro"]),
    ({**PAID, "reason": "limit_reached"}, ["Subscribe to Pro", "subscribe", "pro"]),
    ({**PAID, "reason": "billing_retry"}, ["Fix payment", "pay", None]),
    ({**PAID, "reason": "expired", "previous_plan": "pro"}, ["Subscribe", "subscribe", "pro"]),
    ({**PAID, "reason": "revoked", "previous_plan": "team"}, ["Subscribe", "subscribe", "paid"]),
    ({**BLOCKED, "reason": "trial_ended"}, ["Subscribe", "subscribe", "paid"]),
    (BLOCKED, ["Subscribe", "subscribe", "paid"]),
    ({**PAID, "plan": "free", "state": "free", "limit": 0, "used": 0}, ["Subscribe", "subscribe", "paid"]),
    ({**PAID, "display": "hidden", "banner": None}, None),
]

RESETS, LATER = "2999-12-01T00:00:00Z", "2999-12-05T12:00:00Z"
# The dates of the sheet, by what the answer has.
DATES = [
    ({**PAID, "resets": RESETS}, ["Refreshes"]),
    ({**PAID, "resets": RESETS, "renews": LATER}, ["Refreshes", "Renews"]),
    ({**PAID, "limit": None, "renews": LATER}, ["Renews"]),
    ({**PAID, "state": "cancelled", "resets": RESETS, "expires": LATER}, ["Refreshes", "Active until"]),
    ({**PAID, "state": "grace_period", "resets": RESETS, "grace_until": LATER}, ["Refreshes", "Active until"]),
    ({**PAID, "state": "grace_period", "resets": LATER, "grace_until": RESETS}, ["Active until"]),
]

# A number in a sentence gives way to another, and nothing else does.
SENTENCES = [
    (["Almost there — 30 messages left until December 30", 30, 29], "Almost there — 29 messages left until December 30"),
    (["100 of 100 trial messages remaining", 100, 99], "99 of 100 trial messages remaining"),
    (["41 of 141 used", 41, 42], "42 of 141 used"),
    (["141 of 41", 41, 42], "141 of 42"),
    # One of which the service has a form for exactly one waits for it, in both directions.
    (["You have 3 conversations left this month", 3, 2, True], "You have 2 conversations left this month"),
    (["You have 2 conversations left this month", 2, 1, True], "You have 2 conversations left this month"),
    (["You have 1 conversation left this month", 1, 2, True], "You have 1 conversation left this month"),
]


class Scripts(ChatCase):
    def run_cases(self, module, body, cases):
        if not self.browser.driver.current_url.endswith(f"/chat/{type(self).visitor}"):
            self.browser.chat(type(self).visitor)
        results = self.browser.driver.execute_async_script(RUN.replace("BODY", body), module, cases)
        self.assertIsInstance(results, list, results)
        self.assertEqual(len(results), len(cases))
        return results

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.visitor = cls.user()

    def test_the_counter_never_counts_a_message_twice_and_ends_where_the_server_says(self):
        body = """
            let counter = module.emptyCounter;
            return input.map(([step, ...values]) => {
                counter = module[step](counter, ...values);
                const usage = module.shown(counter);
                const total = usage.used + (usage.held ?? 0);
                return [total, usage.display === "trial" ? [usage.remaining, usage.banner] : null];
            });
        """
        found = self.run_cases("counter.js", body, [[step for step, _ in steps] for steps in COUNTING.values()])
        for (name, steps), totals in zip(COUNTING.items(), found):
            for (step, wanted), (total, words) in zip(steps, totals):
                with self.subTest(case=name, step=step[0]):
                    self.assertEqual(total, wanted)
                    if words:
                        self.assertEqual(words[:2], [100 - wanted, f"{100 - wanted} of 100 trial messages remaining"])

    def test_events_are_read_wherever_the_stream_is_cut(self):
        body = """
            const whole = new module.EventReader().read(input);
            const cuts = [...input].map((_, at) => {
                const reader = new module.EventReader();
                return [...reader.read(input.slice(0, at)), ...reader.read(input.slice(at))];
            });
            const bytes = new module.EventReader();
            return [whole, ...cuts, [...input].flatMap((character) => bytes.read(character))];
        """
        found = self.run_cases("eventReader.js", body, [text for text, _ in STREAMS.values()])
        for (name, (_, events)), readings in zip(STREAMS.items(), found):
            for reading in readings:
                with self.subTest(stream=name):
                    self.assertEqual(reading, events)

    def test_a_message_waits_for_what_mends_its_failure(self):
        found = self.run_cases("outbox.js", "return module.waitsAfter(input)", [outcome for outcome, _ in WAITING])
        self.assertEqual(found, [wanted for _, wanted in WAITING])

    def test_no_message_overtakes_another(self):
        found = self.run_cases("outbox.js", "return module.next(input)?.id ?? null", [outbox for outbox, _ in NEXT])
        self.assertEqual(found, [wanted for _, wanted in NEXT])
        behind = self.run_cases("outbox.js", "return module.add(input, {id: 'z'}).at(-1).waitsFor", [outbox for outbox, _ in NEXT])
        self.assertEqual(behind, [None, None, "connection", None, None, None])

    def test_a_window_follows_what_all_windows_keep(self):
        body = "return module.following(...input).map(({ id, waitsFor }) => [id, waitsFor])"
        found = self.run_cases("outbox.js", body, [[outbox, kept] for outbox, kept, _ in FOLLOWING])
        self.assertEqual(found, [wanted for _, _, wanted in FOLLOWING])

    def test_the_gate_offers_the_way_back(self):
        body = """
            const { gate } = module.describe(input, new Date());
            return gate && [gate.choice.label, gate.choice.action, gate.choice.plan ?? null];
        """
        self.assertEqual(self.run_cases("usageDescription.js", body, [usage for usage, _ in GATES]), [wanted for _, wanted in GATES])

    def test_the_settings_say_how_many_messages_are_used(self):
        body = "return module.describe({ display: 'hidden', ...input }, new Date()).details.usedWords"
        self.assertEqual(self.run_cases("usageDescription.js", body, [usage for usage, _ in ROWS]), [wanted for _, wanted in ROWS])

    def test_a_renewal_stays_known_after_an_answer_that_does_not_tell_it(self):
        paid = {**PAID, "display": "hidden", "accessible": "5 of 800 messages used this month", "used": 5, "renews": LATER, "grace_until": RESETS, "next_plan": "pro"}
        answer = {name: value for name, value in paid.items() if name not in ("accessible", "renews", "grace_until", "next_plan")}
        steps = [["told", paid, 0], ["pressed", "a"], ["settled", "a", {**answer, "used": 6}, 50]]
        body = """
            let counter = module.emptyCounter;
            for (const [step, ...values] of input) counter = module[step](counter, ...values);
            const { renews, grace_until, next_plan, accessible } = module.shown(counter);
            return [renews, grace_until, next_plan, accessible];
        """
        self.assertEqual(self.run_cases("counter.js", body, [steps]), [[LATER, RESETS, "pro", "6 of 800 messages used this month"]])

    def test_the_sheet_says_when_a_subscription_renews(self):
        body = "return module.describe(input, new Date()).details.dates.map(({ term }) => term)"
        self.assertEqual(self.run_cases("usageDescription.js", body, [usage for usage, _ in DATES]), [wanted for _, wanted in DATES])

    def test_a_number_in_a_sentence_gives_way_to_another(self):
        found = self.run_cases("usageFigures.js", "return module.withNumber(...input)", [values for values, _ in SENTENCES])
        self.assertEqual(found, [wanted for _, wanted in SENTENCES])
