"""What a scenario consists of: measurements, ratios of two of them, and goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import figures
from .figures import Sample


@dataclass(frozen=True)
class Ratio:
    """A field of one measurement divided by that of another."""

    name: str
    title: str
    numerator: str
    denominator: str
    field: str = "per_second"


@dataclass(frozen=True)
class Goal:
    """A target value: for the median of a field of the measurement `of`, or, without a field, for the ratio `of`."""

    name: str
    title: str
    of: str
    field: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""

    @property
    def bound(self) -> float:
        bound = self.at_least if self.at_least is not None else self.at_most
        assert bound is not None
        return bound

    def judge(self, medians: dict[str, Sample], ratios: dict[str, Any]) -> dict[str, Any] | None:
        if self.field is None:
            value = ratios[self.of]["median"] if self.of in ratios else None
        else:
            value = medians.get(self.of, {}).get(self.field)
        if value is None:
            return None
        reached = value >= self.bound if self.at_least is not None else value <= self.bound
        kind = "at_least" if self.at_least is not None else "at_most"
        return {
            "name": self.name,
            "title": self.title,
            kind: self.bound,
            "unit": self.unit,
            "value": value,
            "reached": reached,
        }


@dataclass(frozen=True)
class Scenario:
    """A part of the comparison: what is measured, and what the figures are compared with."""

    name: str
    #: The part of the run that takes the measurements. Scenarios of one stage share them.
    stage: str
    title: str
    #: Their names. A measurement has one sample in each round.
    measurements: tuple[str, ...]
    ratios: tuple[Ratio, ...] = ()
    goals: tuple[Goal, ...] = ()

    def judge(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """Returns the medians and ratios of the samples, and whether each goal is reached."""
        medians = figures.medians(samples)
        computed = ((ratio, figures.ratio(samples, ratio.numerator, ratio.denominator, ratio.field)) for ratio in self.ratios)
        ratios = {ratio.name: {"title": ratio.title, **figure} for ratio, figure in computed if figure}
        goals = [judged for judged in (goal.judge(medians, ratios) for goal in self.goals) if judged]
        return {"medians": medians, "ratios": ratios, "goals": goals}
