"""Medians, ratios and goals."""

import unittest

from comparison import figures, stages
from comparison.__main__ import SET_UP
from comparison.scenario import Goal, Ratio, Scenario
from comparison.scenarios import SCENARIOS, STAGES, USUAL, measurements_wanted
from comparison.titles import TITLES


def sample(name, round, rate, **more):
    return {"name": name, "round": round, "per_second": rate, **more}


class Medians(unittest.TestCase):
    def test_the_middle_of_an_odd_number_and_between_the_two_of_an_even_one(self):
        self.assertEqual(figures.median([9, 1, 4]), 4)
        self.assertEqual(figures.median([9, 1, 4, 6]), 5)
        self.assertEqual(figures.median([7]), 7)

    def test_an_empty_list_has_no_median(self):
        with self.assertRaises(ValueError):
            figures.median([])

    def test_a_percentile_is_one_of_the_values(self):
        values = list(range(1, 101))
        self.assertEqual([figures.percentile(values, percent) for percent in (50, 99, 100)], [50, 99, 100])
        self.assertEqual(figures.percentile([3], 99), 3)
        self.assertEqual(figures.percentile([2, 1], 50), 1)

    def test_four_digits_stay(self):
        self.assertEqual(figures.rounded(123456.7), 123500)
        self.assertEqual(figures.rounded(0.00123456), 0.001235)
        self.assertEqual(figures.rounded(0), 0)

    def test_each_measurement_has_a_median_also_nested_ones(self):
        samples = [
            sample("a", 1, 10, p50_ms=1.0, cpu_us={"load": 2}),
            sample("b", 1, 7),
            sample("a", 2, 30, p50_ms=3.0, cpu_us={"load": 4}),
            sample("a", 3, 20, p50_ms=9.0, cpu_us={"load": 9}),
        ]
        self.assertEqual(figures.medians(samples), {"a": {"per_second": 20, "p50_ms": 3, "cpu_us": {"load": 4}}, "b": {"per_second": 7}})


    def test_passes_are_one_sample_whose_rate_is_that_of_all_of_them(self):
        passes = [
            {"per_second": 10, "messages": 100, "p50_ms": 1, "cpu_us": {"load": 2}},
            {"per_second": 100, "messages": 100, "p50_ms": 3, "cpu_us": {"load": 4}},
        ]
        self.assertEqual(figures.combined(passes), {"per_second": 18.1818, "messages": 200, "p50_ms": 2, "cpu_us": {"load": 3}})


class Ratios(unittest.TestCase):
    def test_they_are_taken_round_by_round(self):
        # The second round was slow for both: the ratio of the medians would be 2.0.
        samples = [sample("a", 1, 30), sample("b", 1, 10), sample("a", 2, 8), sample("b", 2, 2), sample("a", 3, 20), sample("b", 3, 10)]
        self.assertEqual(figures.ratio(samples, "a", "b"), {"median": 3, "rounds": [3, 4, 2]})

    def test_a_round_without_the_other_is_left_out(self):
        samples = [sample("a", 1, 30), sample("a", 2, 8), sample("b", 2, 2)]
        self.assertEqual(figures.ratio(samples, "a", "b"), {"median": 4, "rounds": [4]})
        self.assertIsNone(figures.ratio(samples, "a", "c"))

    def test_another_field_than_the_rate(self):
        samples = [sample("a", 1, 1, p50_ms=3.0), sample("b", 1, 1, p50_ms=2.0)]
        self.assertEqual(figures.ratio(samples, "a", "b", "p50_ms")["median"], 1.5)


class Goals(unittest.TestCase):
    scenario = Scenario(
        name="s",
        stage="main",
        title="a scenario",
        measurements=("a", "b"),
        ratios=(Ratio(name="a_to_b", title="a / b", numerator="a", denominator="b"),),
        goals=(
            Goal(name="ratio", title="a / b", of="a_to_b", at_least=0.6),
            Goal(name="tail", title="p99", of="a", field="p99_ms", at_most=5, unit="ms"),
        ),
    )

    def judged(self, a, b, p99):
        goals = self.scenario.judge([sample("a", 1, a, p99_ms=p99), sample("b", 1, b)])["goals"]
        return [goal["reached"] for goal in goals]

    def test_a_value_at_the_bound_passes(self):
        self.assertEqual(self.judged(6, 10, 5), [True, True])
        self.assertEqual(self.judged(5.9, 10, 5.01), [False, False])

    def test_a_missing_measurement_is_not_judged(self):
        self.assertEqual(self.scenario.judge([sample("a", 1, 6)])["goals"], [])


class Scenarios(unittest.TestCase):
    def test_every_measurement_has_a_title_and_every_ratio_and_goal_something_to_stand_on(self):
        for scenario in SCENARIOS:
            names = {ratio.name for ratio in scenario.ratios}
            self.assertLessEqual(set(scenario.measurements), set(TITLES), scenario.name)
            for ratio in scenario.ratios:
                self.assertLessEqual({ratio.numerator, ratio.denominator}, set(scenario.measurements), ratio.name)
            for goal in scenario.goals:
                self.assertIn(goal.of, names if goal.field is None else scenario.measurements, goal.name)

    def test_the_usual_run_has_all_but_the_soak(self):
        self.assertEqual({scenario.name for scenario in SCENARIOS} - set(USUAL), {"soak"})

    def test_scenarios_of_a_stage_share_their_measurements(self):
        self.assertLessEqual({"function_best", "redis_zipf"}, measurements_wanted(["function", "zipf"], "main"))
        self.assertEqual(measurements_wanted(["function", "zipf"], "curves"), set())

    def test_each_stage_is_measured_and_has_an_estimate_of_its_set_up(self):
        self.assertEqual(set(stages.STAGES), set(STAGES))
        self.assertEqual(set(SET_UP), set(STAGES))
