"""Medians and ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Sample = dict[str, Any]


def median(values: Sequence[float]) -> float:
    if not values:
        raise ValueError("there is no median of nothing")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile of the values."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def rounded(value: float, digits: int = 4) -> float:
    """Rounds to significant digits, without the noise of floating point."""
    if value == 0 or not math.isfinite(value):
        return value
    places = digits - 1 - math.floor(math.log10(abs(value)))
    result = round(value, places)
    return int(result) if places <= 0 else result


def named(samples: Iterable[Sample], name: str) -> list[Sample]:
    return sorted((sample for sample in samples if sample["name"] == name), key=lambda sample: sample["round"])


def medians(samples: Sequence[Sample]) -> dict[str, Sample]:
    """The median of each number of a measurement over its rounds, also in nested objects."""
    names = dict.fromkeys(sample["name"] for sample in samples)
    return {name: _median_of_objects([_numbers(sample) for sample in named(samples, name)]) for name in names}


def combined(passes: Sequence[Sample]) -> Sample:
    """Passes of one measurement as one sample: its rate, messages and refusals over all of them, and medians of the other numbers."""
    messages = sum(sample["messages"] for sample in passes)
    seconds = sum(sample["messages"] / sample["per_second"] for sample in passes)
    sums = {"messages": messages}
    if any("refused" in sample for sample in passes):
        sums["refused"] = sum(sample["refused"] for sample in passes)
    return {**_median_of_objects(passes), "per_second": rounded(messages / seconds, 6), **sums}


def _numbers(sample: Sample) -> Sample:
    return {key: value for key, value in sample.items() if key not in ("name", "round", "series")}


def _median_of_objects(objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key in dict.fromkeys(key for entry in objects for key in entry):
        values = [entry[key] for entry in objects if key in entry]
        if all(isinstance(value, dict) for value in values):
            result[key] = _median_of_objects(values)
        elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            result[key] = rounded(median(values), 6)
    return result


def ratio(samples: Sequence[Sample], numerator: str, denominator: str, field: str = "per_second") -> dict[str, Any] | None:
    """The median of the rounds' ratios, not the ratio of medians: a slow round slows both numbers."""
    denominators = {sample["round"]: sample for sample in named(samples, denominator)}
    rounds = [
        sample[field] / denominators[sample["round"]][field] for sample in named(samples, numerator) if sample["round"] in denominators
    ]
    if not rounds:
        return None
    return {"median": rounded(median(rounds)), "rounds": [rounded(value) for value in rounds]}
