"""The result as JSON: scenarios with samples and derived figures. README.md describes the format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.processes import Failure

from .figures import Sample
from .scenario import Scenario
from .scenarios import SCENARIOS, scenario_named

SCHEMA = 1

Result = dict[str, Any]


def empty() -> Result:
    return {"schema": SCHEMA, "scenarios": {}}


def scenario_result(scenario: Scenario, samples: Sequence[Sample], run: dict[str, Any]) -> dict[str, Any]:
    """One scenario: date, machine and method of the measurement, its samples and derived figures."""
    own = [sample for sample in samples if sample["name"] in scenario.measurements]
    counted = sum(sample.get("messages", 0) for sample in own if sample["name"].startswith(("headroom", "soak")))
    return {"title": scenario.title, **run, "messages_counted": counted, **scenario.judge(own), "samples": own}


def merged(old: Result, new: Result) -> Result:
    """The scenarios of the new result and those of the old one that it lacks, in the default order."""
    scenarios = {**old["scenarios"], **new["scenarios"]}
    in_order = {scenario.name: scenarios[scenario.name] for scenario in SCENARIOS if scenario.name in scenarios}
    return {"schema": SCHEMA, "scenarios": in_order}


def judged_anew(result: Result) -> Result:
    """Derives all figures from the samples again, with the current ratios and goals."""
    judged = {}
    for name, scenario in result["scenarios"].items():
        judged[name] = {
            **scenario,
            "title": scenario_named(name).title,
            **scenario_named(name).judge(scenario["samples"]),
        }
    return {"schema": SCHEMA, "scenarios": judged}


def check(result: Result) -> None:
    """Checks that titles and figures follow from the samples and scenarios.py."""
    for name, scenario in judged_anew(result)["scenarios"].items():
        for part, value in scenario.items():
            if result["scenarios"][name][part] != value:
                raise Failure(f"the {part} of {name} is out of date")


def read(path: Path) -> Result:
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Failure(f"{path} is not JSON: {error}") from error
    if result.get("schema") != SCHEMA:
        raise Failure(f"{path} has schema {result.get('schema')}, and this reads {SCHEMA}")
    return result


def write(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(result), encoding="utf-8")


def text_of(result: Result) -> str:
    """Indented JSON with a line for each sample, so that differences are readable."""
    samples: list[str] = []

    def shorten(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: [_mark(samples, sample) for sample in entry] if key == "samples" else shorten(entry)
                for key, entry in value.items()
            }
        return value

    text = json.dumps(shorten(result), indent=2, ensure_ascii=False)
    for position, sample in enumerate(samples):
        text = text.replace(f'"@sample {position}@"', sample, 1)
    return text + "\n"


def _mark(samples: list[str], sample: Sample) -> str:
    samples.append(json.dumps(sample, ensure_ascii=False))
    return f"@sample {len(samples) - 1}@"
