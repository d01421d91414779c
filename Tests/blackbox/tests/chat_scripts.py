"""The parts of the chat's page that touch nothing of it, run in the browser over tables of cases."""

from support.chat import ChatCase

RUN = """
const [name, body, cases, done] = arguments;
import('/assets/' + name).then((module) => {
    const run = new Function('module', 'input', body);
    done(cases.map((input) => run(module, input)));
}).catch((error) => done(String(error)));
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
# Times are milliseconds of a clock of the case's own.
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
    "nothing is known of a message that was let through": [
        (["told", trial(58), 0], 58), (["pressed", "a"], 59), (["held", "a", {"degraded": True}, 50], 58),
        (["settled", "a", {"degraded": True}, 90], 58),
    ],
    "an upgrade begins anew": [
        (["told", trial(100, display="blocked"), 0], 100),
        (["told", {**TRIAL, "plan": "paid", "state": "active", "period": "2026-11", "used": 0, "limit": 800, "remaining": 800}, 10], 0),
        (["pressed", "a"], 1),
    ],
}  # fmt: skip


class Scripts(ChatCase):
    def run_cases(self, module, body, cases):
        self.browser.chat(self.user())
        results = self.browser.driver.execute_async_script(RUN.replace("new Function", "new Function"), module, body, cases)
        self.assertIsInstance(results, list, results)
        return results
