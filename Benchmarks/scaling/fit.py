"""A straight line through measured costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Costs `start + slope * size`."""

    start: float
    slope: float


def fit_line(points: Sequence[tuple[float, float]]) -> Line:
    """The line with the least squares of relative errors, so that small sizes count as much as large ones."""
    if len({size for size, _ in points}) < 2:
        raise ValueError("a line needs two sizes")
    weights = [1 / cost**2 for _, cost in points]
    total = sum(weights)
    mean_size = sum(weight * size for weight, (size, _) in zip(weights, points)) / total
    mean_cost = sum(weight * cost for weight, (_, cost) in zip(weights, points)) / total
    spread = sum(weight * (size - mean_size) ** 2 for weight, (size, _) in zip(weights, points))
    slope = sum(weight * (size - mean_size) * (cost - mean_cost) for weight, (size, cost) in zip(weights, points)) / spread
    return Line(mean_cost - slope * mean_size, slope)
