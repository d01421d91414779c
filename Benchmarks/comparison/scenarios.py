"""All scenarios of the comparison, in the order of measurement."""

from __future__ import annotations

from collections.abc import Sequence

from .circumstances import CIRCUMSTANCES
from .peer_scenarios import PEER_SCENARIOS
from .scale_scenarios import SCALE_SCENARIOS
from .scenario import Scenario

SCENARIOS = (*PEER_SCENARIOS, *CIRCUMSTANCES, *SCALE_SCENARIOS)
STAGES = tuple(dict.fromkeys(scenario.stage for scenario in SCENARIOS))
QUICK = ("function", "throughput", "ceiling", "one_user")
USUAL = tuple(scenario.name for scenario in SCENARIOS if scenario.name != "soak")


def scenario_named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def measurements_wanted(names: Sequence[str], stage: str) -> set[str]:
    return {
        measurement
        for scenario in SCENARIOS
        if scenario.stage == stage and scenario.name in names
        for measurement in scenario.measurements
    }
