"""The generation of the two pages of measurements, and that they match the committed result."""

import re
import unittest
from pathlib import Path

from comparison import document, report, result
from comparison.scenarios import SCENARIOS
from comparison.stages import soak_minutes
from support.processes import Failure

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
PAGES = (PAGE, ROOT / "docs/contributors/performance.md")
RESULT = ROOT / "docs/performance/result.json"

RUN = {
    "date": "2026-11-24T09:30:00Z",
    "commit": "0123456789ab",
    "rounds": 2,
    "seconds": 5,
    "users": 100_000,
    "machine": {
        "processor": "A processor",
        "cores": 2,
        "memory_gb": 8,
        "kernel": "6.1",
        "file_system": "ext4",
        "load_before": 0.1,
    },
    "versions": {"headroom": "1.0", "postgresql": "15.1", "redis": "7.0"},
}


def samples_of(scenario):
    """Made-up samples: they grow with each round, and each measurement is twice the previous one."""
    return [
        {
            "name": name,
            "round": number,
            "per_second": 1000 * 2**index + number,
            "p50_ms": 1.5,
            "p99_ms": 2.5,
            "p99_9_ms": 3.5,
            "max_ms": 9,
            "messages": 5000,
            "cpu_us": {"service": 3, "postgres": 7, "load": 1},
            "wal_bytes": 110,
            "batch": 256,
            "resident_mb": 40,
            "resident_highest_mb": 41,
            "table_mb": 20,
            "indexes_mb": 6,
            "hot_share": 0.99,
            "dead_rows": 12,
            "autovacuums": 3,
        }
        for number in (1, 2)
        for index, name in enumerate(scenario.measurements)
    ]


def made_up(scenarios=SCENARIOS):
    created = {scenario.name: result.scenario_result(scenario, samples_of(scenario), RUN) for scenario in scenarios}
    return {"schema": result.SCHEMA, "scenarios": created}


def page(*names):
    return "before\n" + "".join(
        f"\n## {name}\n{document.BEGIN.format(name)}\nold\n{document.END.format(name)}\nafter {name}\n"
        for name in names
    )


class Rewriting(unittest.TestCase):
    def test_only_what_is_between_markers_changes(self):
        text = document.rewritten(page(*document.BLOCKS), made_up())
        self.assertNotIn("\nold\n", text)
        for name in document.BLOCKS:
            self.assertIn(f"\n## {name}\n", text)
            self.assertIn(f"\nafter {name}\n", text)
        self.assertTrue(text.startswith("before\n"))

    def test_again_it_changes_nothing(self):
        once = document.rewritten(page(*document.BLOCKS), made_up())
        self.assertEqual(document.rewritten(once, made_up()), once)

    def test_a_missing_marker_is_refused(self):
        for name in document.BLOCKS:
            for marker in (document.BEGIN, document.END):
                with self.assertRaises(Failure):
                    document.rewritten(page(*document.BLOCKS).replace(marker.format(name) + "\n", ""), made_up())
            with self.assertRaisesRegex(Failure, name):
                document.rewritten(page(*(other for other in document.BLOCKS if other != name)), made_up())

    def test_a_marker_that_is_there_twice_or_unknown_is_refused(self):
        with self.assertRaisesRegex(Failure, "goals"):
            document.rewritten(page(*document.BLOCKS, "goals"), made_up())
        with self.assertRaisesRegex(Failure, "surprise"):
            document.rewritten(page(*document.BLOCKS, "surprise"), made_up())

    def test_an_end_before_its_begin_is_refused(self):
        text = (page(*document.BLOCKS) .replace("begin goals", "x") .replace("end goals", "begin goals") .replace("x", "end goals"))
        with self.assertRaises(Failure):
            document.rewritten(text, made_up())

    def test_a_missing_measurement_is_shown_with_its_command(self):
        text = document.rewritten(page(*document.BLOCKS), result.empty())
        self.assertIn("`script/bench --only slow_disk --publish`", text)
        self.assertIn("`script/bench --soak 30 --publish`", text)
        for scenario in SCENARIOS:
            without = made_up([other for other in SCENARIOS if other is not scenario])
            document.rewritten(page(*document.BLOCKS), without)

    def test_pictures_have_a_text_with_their_figures(self):
        text = document.rewritten(page(*document.BLOCKS), made_up())
        pictures = dict(re.findall(r"!\[(.+?)\]\(performance/(\w+)\.svg\)", text))
        self.assertEqual(set(pictures.values()), {"peers", "latency", "curves", "soak"})
        self.assertTrue(all(re.search(r"\d", alt) for alt in pictures))

    def test_a_missed_goal_stands_out(self):
        made = made_up()
        made["scenarios"]["half_load"]["goals"][0]["reached"] = False
        self.assertIn("| **no** |", document.goals(made))
        self.assertNotIn("**no**", document.goals(made_up([scenario for scenario in SCENARIOS if scenario.name == "half_load"])))


class Merging(unittest.TestCase):
    def test_new_scenarios_replace_those_of_the_same_name_and_keep_their_own_date(self):
        old = made_up()
        new = {"schema": result.SCHEMA, "scenarios": {"idle": {**old["scenarios"]["idle"], "date": "2027-01-01T00:00:00Z", "commit": "f"}}}
        merged = result.merged(old, new)["scenarios"]
        self.assertEqual(list(merged), [scenario.name for scenario in SCENARIOS])
        self.assertEqual((merged["idle"]["date"], merged["idle"]["commit"]), ("2027-01-01T00:00:00Z", "f"))
        self.assertEqual(merged["rows"], old["scenarios"]["rows"])
        self.assertIn("scenarios `idle`", document.machine({"scenarios": merged}))

    def test_a_scenario_has_the_samples_that_are_its_own(self):
        everything = [sample for scenario in SCENARIOS for sample in samples_of(scenario)]
        zipf = next(scenario for scenario in SCENARIOS if scenario.name == "zipf")
        found = result.scenario_result(zipf, everything, RUN)
        self.assertEqual({sample["name"] for sample in found["samples"]}, {"redis_zipf", "headroom_zipf"})
        self.assertEqual(found["messages_counted"], 10_000)
        self.assertEqual(found["ratios"]["headroom_zipf_to_redis_zipf"]["rounds"], [1.999, 1.998])

    def test_a_result_is_read_as_it_was_written(self):
        import json

        self.assertEqual(json.loads(result.text_of(made_up())), made_up())

    def test_figures_are_computed_again_from_the_samples(self):
        changed = made_up()
        changed["scenarios"]["throughput"]["ratios"] = {}
        changed["scenarios"]["idle"]["goals"] = []
        self.assertEqual(result.judged_anew(changed), made_up())

    def test_a_changed_figure_is_noticed(self):
        changed = made_up()
        changed["scenarios"]["throughput"]["medians"]["headroom_64x16"]["per_second"] += 1
        result.check(made_up())
        with self.assertRaisesRegex(Failure, "throughput"):
            result.check(changed)

    def test_the_terminal_shows_every_scenario_and_ratio(self):
        text = "\n".join(report.lines_of(made_up()))
        for scenario in SCENARIOS:
            self.assertIn(scenario.title, text)
            for ratio in scenario.ratios:
                self.assertIn(ratio.title, text)


class Readme(unittest.TestCase):
    def test_it_describes_every_scenario(self):
        text = (ROOT / "Benchmarks/comparison/README.md").read_text(encoding="utf-8")
        self.assertEqual([scenario.name for scenario in SCENARIOS if f"| `{scenario.name}` |" not in text], [])


class Soak(unittest.TestCase):
    def state(self, **more):
        return {
            "table": 20e6,
            "indexes": 6e6,
            "receipts": 1e6,
            "updated": 0,
            "hot": 0,
            "dead": 5,
            "autovacuums": 7,
            "wal": 0,
            "resident": 40.0,
            **more,
        }

    def test_each_whole_minute_is_a_sample(self):
        series = [{"second": n, "replies": 100 + n // 60, "p50_ms": 1, "p99_ms": 2 + (n == 70), "errors": 0} for n in range(150)]
        states = [
            self.state(updated=100, hot=99, autovacuums=8),
            self.state(updated=300, hot=299, wal=606_000, autovacuums=9),
            self.state(),
        ]
        minutes = soak_minutes(series, self.state(), states)
        self.assertEqual([minute["per_second"] for minute in minutes], [100, 101])
        self.assertEqual([minute["hot_share"] for minute in minutes], [0.99, 1])
        self.assertEqual([minute["autovacuums"] for minute in minutes], [1, 2])
        self.assertEqual([minute["wal_bytes"] for minute in minutes], [0, 100])
        self.assertEqual([(minute["p99_ms"], minute["worst_second_p99_ms"]) for minute in minutes], [(2, 2), (2, 3)])


class Committed(unittest.TestCase):
    def test_the_documents_are_made_from_the_committed_result(self):
        texts = [page.read_text(encoding="utf-8") for page in PAGES]
        self.assertEqual(document.rewritten_pages(texts, result.read(RESULT)), texts, "script/bench --redraw makes them anew")

    def test_its_medians_ratios_and_goals_follow_from_its_samples(self):
        result.check(result.read(RESULT))

    def test_its_pictures_are_there_and_no_others(self):
        shown = set(re.findall(r"\(performance/(\w+\.svg)\)", PAGE.read_text(encoding="utf-8")))
        self.assertEqual(shown, {path.name for path in RESULT.parent.glob("*.svg")})
