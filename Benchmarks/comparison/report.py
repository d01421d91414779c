"""The result as a table for the terminal."""

from __future__ import annotations

from .document import short, whole
from .result import Result
from .titles import TITLES

WIDTH = 86


def lines_of(result: Result) -> list[str]:
    lines = []
    for name, scenario in result["scenarios"].items():
        rounds = "a round" if scenario["rounds"] == 1 else f"median of {scenario['rounds']}"
        title = f"{name}: {scenario['title']}, {rounds}"
        lines.append(f"{title:<{WIDTH}} {'per second':>12} {'p50 ms':>9} {'p99 ms':>9}")
        for measurement, values in scenario["medians"].items():
            rate, p50, p99 = values["per_second"], values.get("p50_ms"), values.get("p99_ms")
            lines.append(f"  {TITLES[measurement]:<{WIDTH - 2}} {whole(rate):>12} {short(p50):>9} {short(p99):>9}")
        lines += [
            f"  {ratio['title']:<{WIDTH - 2}} {short(ratio['median']):>12}" for ratio in scenario["ratios"].values()
        ]
        for goal in scenario["goals"]:
            bound = f">= {goal['at_least']:g}" if "at_least" in goal else f"<= {goal['at_most']:g}"
            words = f"goal: {goal['title']} {bound} {goal['unit']}".rstrip()
            lines.append(
                f"  {words:<{WIDTH - 2}} {short(goal['value']):>12} {'reached' if goal['reached'] else 'MISSED':>9}"
            )
        lines.append("")
    return lines


def print_report(result: Result) -> None:
    print("\n".join(lines_of(result)), end="")
