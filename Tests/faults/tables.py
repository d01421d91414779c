"""The tables of script/faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from case import Result


@dataclass(frozen=True)
class Column:
    heading: str
    cell: Callable[[Result], str]
    least_width: int = 4

    def aligned(self, text: str) -> str:
        return text.ljust(self.width) if self.heading == "fault" else text.rjust(self.width)

    @property
    def width(self) -> int:
        return max(len(self.heading), self.least_width)


def count(name: str) -> Callable[[Result], str]:
    return lambda result: str(result.counts.get(name, "-"))


def seconds(name: str) -> Callable[[Result], str]:
    return lambda result: f"{result.counts[name] / 1000:.1f}" if name in result.counts else "-"


def related(names: tuple[str, ...], relation: str) -> Callable[[Result], str]:
    return lambda result: relation.join(str(result.counts.get(name, "-")) for name in names)


def fault(width: int) -> Column:
    return Column("fault", lambda result: result.fault, width)


BEFORE = [Column("seed", lambda result: str(result.seed)), Column("fired", lambda result: str(result.fired))]
BEFORE += [Column("operations", count("ops")), Column("allowed", count("allowed"))]
AFTER = [Column("violations", lambda result: "failed" if result.error else str(len(result.violations)))]
FAULTS = [
    fault(23), *BEFORE, Column("blocked", count("blocked")), Column("unknowns", count("unknowns")), Column("replays", count("replays")),
    *AFTER,
]  # fmt: skip
# The gaps are the longest times without an allowed message, in seconds: of both instances together, and of each. Keys are those
# answered and those stored; messages without a key those answered, those counted, and the most that can be.
CLUSTER = [
    fault(31), *BEFORE, Column("unknowns", count("unknowns")), Column("events", count("events")),
    *(Column(gap, seconds(gap)) for gap in ("gap", "gap 0", "gap 1")), Column("keyed", related(("keys answered", "keys stored"), "="), 13),
    Column("without a key", related(("answered", "counted", "most"), "≤"), 21), *AFTER,
]  # fmt: skip
# In a distributed database: also the gap of the users who were on each worker at first, and errors that the clients saw.
CITUS = [
    fault(27), *BEFORE, Column("unknowns", count("unknowns")), Column("errors", count("errors")),
    *(Column(gap, seconds(gap)) for gap in ("gap", "gap worker 1", "gap worker 2")),
    Column("keyed", related(("keys answered", "keys stored"), "="), 13),
    Column("without a key", related(("answered", "counted", "most"), "≤"), 21), *AFTER,
]  # fmt: skip


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def head(columns: list[Column]) -> str:
    names = line(column.heading.ljust(column.width) for column in columns)
    return names + "\n|" + "|".join("-" * (column.width + 2) for column in columns) + "|"


def row(columns: list[Column], result: Result) -> str:
    return line(column.aligned(column.cell(result)) for column in columns)


def gaps(results: list[Result]) -> str:
    """The median and the worst gap of each fault."""
    by_fault: dict[str, list[float]] = defaultdict(list)
    for result in results:
        if "gap" in result.counts:
            by_fault[result.fault].append(result.counts["gap"] / 1000)
    lines = ["| fault | runs | median gap | worst gap |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {fault} | {len(g)} | {median(g):.1f} s | {max(g):.1f} s |" for fault, g in by_fault.items()])
