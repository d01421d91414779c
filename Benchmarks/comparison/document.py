"""Generates the parts of docs/performance.md and docs/contributors/performance.md between their markers from the result. The rest stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from support.processes import Failure

from .figures import Sample
from .result import Result
from .scenarios import SCENARIOS, scenario_named
from .titles import CURVE_CONNECTIONS, CURVE_ROWS, CURVE_USERS, TITLES

BEGIN = "<!-- figures: begin {} -->"
END = "<!-- figures: end {} -->"
MARKER = re.compile(r"^<!-- figures: (begin|end) ([a-z-]+) -->$", re.MULTILINE)


PAGE_END = "\f"
"""Separates pages that are rewritten together. No page has it."""


def rewritten_pages(texts: Sequence[str], result: Result) -> list[str]:
    """The pages with the result's figures, each of which is on one of them."""
    return rewritten(PAGE_END.join(texts), result).split(PAGE_END)


def rewritten(text: str, result: Result) -> str:
    """The document with the result's figures. Refuses one whose markers are missing, unknown, or out of order."""
    found = [(match[1], match[2]) for match in MARKER.finditer(text)]
    names = [name for kind, name in found if kind == "begin"]
    if found != [(kind, name) for name in names for kind in ("begin", "end")]:
        raise Failure("performance.md: markers must come in pairs, `begin NAME` before its `end NAME`")
    if sorted(names) != sorted(BLOCKS):
        odd = sorted(set(names) ^ set(BLOCKS)) or sorted(name for name in BLOCKS if names.count(name) > 1)
        raise Failure(f"performance.md: each figure has its markers once; wrong is {', '.join(odd)}")
    for name, render in BLOCKS.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, rest = text.split(begin)
        _, after = rest.split(end)
        text = f"{before}{begin}\n\n{render(result).strip()}\n\n{end}{after}"
    return text


# Texts and tables ---------------------------------------------------------------------------------------------------


def whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """With at most two decimals, and fewer for larger values."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table whose columns are numbers except the first."""
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in (head, rule, *lines))


def unmeasured(*names: str) -> str:
    return f"Not in the committed result; {_command(*names)} adds it."


def _command(*names: str) -> str:
    how = "--soak 30" if names == ("soak",) else f"--only {','.join(names)}"
    return f"`script/bench {how} --publish`"


def medians(result: Result, scenario: str) -> dict[str, Sample]:
    found: dict[str, Sample] = result["scenarios"].get(scenario, {}).get("medians", {})
    return found


def rates(result: Result, scenario: str, names: Sequence[str]) -> list[list[str]]:
    found = medians(result, scenario)
    return [
        [
            TITLES[name],
            whole(found[name]["per_second"]),
            short(found[name].get("p50_ms")),
            short(found[name].get("p99_ms")),
        ]
        for name in names
        if name in found
    ]


def ratios(result: Result, *scenarios: str) -> str:
    lines = [
        [ratio["title"], short(ratio["median"]), ", ".join(short(value) for value in ratio["rounds"])]
        for scenario in scenarios
        for ratio in result["scenarios"].get(scenario, {}).get("ratios", {}).values()
    ]
    return table(["ratio", "median", "rounds"], lines)


def image(name: str, alt: str) -> str:
    return f"![{alt}](performance/{name}.svg)"


# The blocks -----------------------------------------------------------------------------------------------------------

PEERS = (
    ("throughput", ("function_best", "redis_64x1", "redis_64x16", "headroom_64x1", "headroom_64x16")),
    ("zipf", ("redis_zipf", "headroom_zipf")),
    ("one_user", ("function_one_user", "redis_one_user", "headroom_one_user")),
)


def machine(result: Result) -> str:
    runs: dict[tuple[Any, ...], list[str]] = {}
    for name, scenario in result["scenarios"].items():
        here, versions = scenario["machine"], scenario["versions"]
        run = (
            scenario["date"][:10],
            scenario["commit"],
            scenario["rounds"],
            scenario["seconds"],
            here["cores"],
            here["processor"],
            here["kernel"],
            here["file_system"],
            versions["postgresql"],
            versions["redis"],
        )
        runs.setdefault(run, []).append(name)
    if not runs:
        return unmeasured(*(scenario.name for scenario in SCENARIOS if scenario.name != "soak"))
    lines = []
    for (date, commit, count, seconds, cores, processor, kernel, disk, postgres, redis), names in runs.items():
        what = "all scenarios" if len(runs) == 1 else "scenarios " + ", ".join(f"`{name}`" for name in names)
        rounds = "a round" if count == 1 else f"{count} rounds"
        lines.append(
            f"- {date}, commit `{commit}`, {rounds} of {seconds:g} s a measurement: {cores} cores ({processor}), Linux "
            f"{kernel}, {disk}, PostgreSQL {postgres}, Redis {redis}: {what}"
        )
    return "\n".join(lines)


def goals(result: Result) -> str:
    lines = []
    for scenario in result["scenarios"].values():
        for goal in scenario["goals"]:
            word, bound = ("at least", goal["at_least"]) if "at_least" in goal else ("at most", goal["at_most"])
            unit = f" {goal['unit']}" if goal["unit"] else ""
            reached = "yes" if goal["reached"] else "**no**"
            lines.append([goal["title"], f"{word} {bound:g}{unit}", short(goal["value"]) + unit, reached])
    names = [scenario.name for scenario in SCENARIOS if scenario.goals]
    return table(["goal", "bound", "measured", "reached"], lines) if lines else unmeasured(*names)


def peers(result: Result) -> str:
    lines = [line for scenario, names in PEERS for line in rates(result, scenario, names)]
    if not lines:
        return unmeasured("throughput", "zipf", "one_user")
    found = medians(result, "throughput")
    alt = "Bar chart of messages a second"
    if found:
        alt += "".join(f"; {TITLES[name]}: {whole(found[name]['per_second'])}" for name in PEERS[0][1])
    return "\n\n".join(
        (
            image("peers", alt),
            table(["", "per second", "p50 ms", "p99 ms"], lines),
            ratios(result, *(scenario for scenario, _ in PEERS)),
        )
    )


def time_spent(result: Result) -> str:
    found = medians(result, "throughput")
    if not found:
        return unmeasured("throughput")
    lines = []
    for name in PEERS[0][1]:
        sample = found[name]
        cpu = sample["cpu_us"]
        server = cpu.get("service", cpu.get("redis"))
        lines.append(
            [
                TITLES[name],
                short(server),
                short(cpu.get("postgres")),
                short(cpu["load"]),
                short(sum(cpu.values())),
                whole(sample.get("wal_bytes")),
                short(sample.get("batch")),
            ]
        )
    head = ["", "service µs", "PostgreSQL µs", "load µs", "together µs", "WAL bytes", "batch"]
    return table(head, lines)


def latency(result: Result) -> str:
    single, half = medians(result, "one_at_a_time"), medians(result, "half_load")
    lines = [
        [
            TITLES[name],
            whole(found[name]["per_second"]),
            *(short(found[name].get(field)) for field in ("p50_ms", "p99_ms", "p99_9_ms", "max_ms")),
        ]
        for found, names in (
            (single, ("function_1_client", "headroom_single")),
            (half, ("headroom_half_load", "headroom_half_single")),
        )
        for name in names
        if name in found
    ]
    if not lines:
        return unmeasured("one_at_a_time", "half_load")
    alt = "Bar chart of latency percentiles in milliseconds" + "".join(
        f"; {line[0]}: p50 {line[2]}, p99 {line[3]}" for line in lines
    )
    return image("latency", alt) + "\n\n" + table(["", "per second", "p50 ms", "p99 ms", "p99.9 ms", "max ms"], lines)


def table_of(scenario: str) -> Callable[[Result], str]:
    """A function that renders a scenario as its measurements and ratios."""

    def render(result: Result) -> str:
        if scenario not in result["scenarios"]:
            return unmeasured(scenario)
        lines = rates(result, scenario, scenario_named(scenario).measurements)
        return table(["", "per second", "p50 ms", "p99 ms"], lines) + "\n\n" + ratios(result, scenario)

    return render


def idle(result: Result) -> str:
    found = medians(result, "idle")
    if not found:
        return unmeasured("idle")
    lines = [
        [TITLES[name], whole(sample["per_second"]), short(sample["p99_ms"]), short(sample["resident_highest_mb"])]
        for name, sample in found.items()
    ]
    return table(["", "per second", "p99 ms", "memory MB"], lines) + "\n\n" + ratios(result, "idle")


def http(result: Result) -> str:
    found = medians(result, "http")
    if not found:
        return unmeasured("http")
    lines = [
        [
            TITLES[name],
            whole(sample["per_second"]),
            short(sample["p50_ms"]),
            short(sample["p99_ms"]),
            *(short(sample[field]) if field in sample else "" for field in ("event_p50_ms", "event_p99_ms")),
        ]
        for name, sample in found.items()
    ]
    head = ["", "per second", "p50 ms", "p99 ms", "event p50 ms", "event p99 ms"]
    return table(head, lines) + "\n\n" + ratios(result, "http")


def renewals(result: Result) -> str:
    found = medians(result, "renewals")
    if not found:
        return unmeasured("renewals")
    fields = ("p50_ms", "p99_ms", "event_p50_ms", "event_p99_ms", "service_ms", "postgres_ms")
    lines = [
        [
            TITLES[name],
            whole(sample["per_second"]),
            whole(sample.get("refused")),
            *(short(sample.get(field)) for field in fields),
        ]
        for name, sample in found.items()
    ]
    head = ["", "per second", "refused", "p50 ms", "p99 ms", "event p50 ms", "event p99 ms", "service ms"]
    head.append("PostgreSQL ms")
    return table(head, lines) + "\n\n" + ratios(result, "renewals")


CURVES = (
    ("connections", "connections", "headroom_connections_", CURVE_CONNECTIONS),
    ("users", "users", "headroom_users_", CURVE_USERS),
    ("rows", "rows", "headroom_rows_", CURVE_ROWS),
)


def curves(result: Result) -> str:
    parts, alts = [], []
    for scenario, what, prefix, counts in CURVES:
        found = medians(result, scenario)
        if not found:
            parts.append(unmeasured(scenario))
            continue
        here = [(count, found[f"{prefix}{count}"]) for count in counts if f"{prefix}{count}" in found]
        head = [what, "per second", "p99 ms", "batch", "WAL bytes"]
        lines = [
            [
                whole(count),
                whole(sample["per_second"]),
                short(sample["p99_ms"]),
                short(sample.get("batch")),
                whole(sample.get("wal_bytes")),
            ]
            for count, sample in here
        ]
        if f"{prefix}{here[0][0]}_fresh" in found:
            head.append("per second just after a checkpoint")
            for (count, _), line in zip(here, lines):
                line.append(whole(found.get(f"{prefix}{count}_fresh", {}).get("per_second")))
        parts.append(table(head, lines))
        (low, first), (high, last) = here[0], here[-1]
        rate, most = whole(first["per_second"]), whole(last["per_second"])
        alts.append(f"over {what} {rate} at {whole(low)} and {most} at {whole(high)}")
    if not alts:
        return unmeasured(*(scenario for scenario, *_ in CURVES))
    if "rows" in result["scenarios"]:
        parts.append(ratios(result, "rows"))
    return "\n\n".join((image("curves", "Line charts of messages a second: " + "; ".join(alts)), *parts))


def soak(result: Result) -> str:
    if "soak" not in result["scenarios"]:
        return unmeasured("soak")
    minutes = result["scenarios"]["soak"]["samples"]
    shown = sorted({0, len(minutes) // 4, len(minutes) // 2, len(minutes) * 3 // 4, len(minutes) - 1})
    lines = [
        [
            str(minute["round"]),
            whole(minute["per_second"]),
            short(minute["p99_ms"]),
            short(minute["resident_mb"]),
            short(minute["table_mb"]),
            short(minute["indexes_mb"]),
            f"{100 * minute['hot_share']:.2f}",
            whole(minute["dead_rows"]),
            whole(minute["autovacuums"]),
        ]
        for minute in (minutes[position] for position in shown)
    ]
    first, last = minutes[0], minutes[-1]
    alt = (
        f"Line chart over {len(minutes)} minutes: {whole(first['per_second'])} messages a second in the first, "
        f"{whole(last['per_second'])} in the last; {short(last['resident_mb'])} MB resident at the end"
    )
    head = [
        "minute",
        "per second",
        "p99 ms",
        "memory MB",
        "table MB",
        "indexes MB",
        "HOT %",
        "dead rows",
        "autovacuums",
    ]
    return image("soak", alt) + "\n\n" + table(head, lines)


BLOCKS: dict[str, Callable[[Result], str]] = {
    "machine": machine,
    "goals": goals,
    "peers": peers,
    "ceiling": table_of("ceiling"),
    "time": time_spent,
    "latency": latency,
    "keys": table_of("keys"),
    "holds": table_of("holds"),
    "parts": table_of("parts"),
    "slow-disk": table_of("slow_disk"),
    "idle": idle,
    "http": http,
    "counting-http": table_of("counting_http"),
    "renewals": renewals,
    "protected": table_of("protected"),
    "cold": table_of("cold"),
    "new-users": table_of("new_users"),
    "new-month": table_of("new_month"),
    "plan-edit": table_of("plan_edit"),
    "rotation": table_of("rotation"),
    "curves": curves,
    "soak": soak,
}
