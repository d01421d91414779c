"""The pictures of docs/performance.md. The same result gives the same bytes, with the same matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

from .document import CURVES, PEERS, medians, whole
from .result import Result
from .titles import TITLES

# Pages are light or dark: the background is transparent, and these colours are readable on white and on black.
INK = "#777777"
HEADROOM, REDIS, FUNCTION = "#2f81c7", "#c2553b", "#8a7a2c"
pyplot.rcParams.update(
    {
        "svg.hashsalt": "headroom",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.titlecolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10,
        "grid.color": INK,
        "grid.alpha": 0.25,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.frameon": False,
    }
)


def colour(name: str) -> str:
    return HEADROOM if name.startswith("headroom") else REDIS if name.startswith("redis") else FUNCTION


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    pyplot.close(figure)


def draw(result: Result, directory: Path) -> None:
    """Draws a picture for each part of the result, and deletes pictures without one."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, picture in (("peers", peers), ("latency", latency), ("curves", curves), ("soak", soak)):
        path = directory / f"{name}.svg"
        figure = picture(result)
        if figure is None:
            path.unlink(missing_ok=True)
        else:
            save(figure, path)


def bars(axes: Any, names: Sequence[str], values: Sequence[float], words: Sequence[str]) -> None:
    places = range(len(values))
    axes.barh(list(places), values, color=[colour(name) for name in names], height=0.7)
    axes.set_yticks(list(places), [TITLES[name] for name in names])
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    for place, value, word in zip(places, values, words):
        axes.text(value, place, f" {word}", va="center")


def peers(result: Result) -> Any:
    found = {name: sample for scenario, _ in PEERS for name, sample in medians(result, scenario).items()}
    names = [name for _, measurements in PEERS for name in measurements if name in found]
    if not names:
        return None
    figure, axes = pyplot.subplots(figsize=(7, 0.35 * len(names) + 0.5))
    values = [found[name]["per_second"] for name in names]
    bars(axes, names, values, [whole(value) for value in values])
    axes.set_title("messages a second", loc="left")
    return figure


def latency(result: Result) -> Any:
    parts = [
        (name, found[name])
        for found, names in (
            (medians(result, "one_at_a_time"), ("function_1_client", "headroom_single")),
            (medians(result, "half_load"), ("headroom_half_load", "headroom_half_single")),
        )
        for name in names
        if name in found
    ]
    if not parts:
        return None
    figure, axes = pyplot.subplots(figsize=(7, 3))
    shades = (("p50_ms", "p50", 0.9), ("p99_ms", "p99", 0.6), ("p99_9_ms", "p99.9", 0.35))
    for place, (name, sample) in enumerate(parts):
        for offset, (field, word, shade) in enumerate(shades):
            if field in sample:
                height = place + (offset - 1) * 0.27
                axes.barh(height, sample[field], height=0.25, color=colour(name), alpha=shade)
                axes.text(sample[field], height, f" {word} {sample[field]:.2f}", va="center", fontsize=8)
    axes.set_yticks(range(len(parts)), [TITLES[name].replace(", ", ",\n", 1) for name, _ in parts])
    axes.invert_yaxis()
    axes.set_title("latency, ms", loc="left")
    return figure


def short_count(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1000}k" if count >= 1000 else str(count)


def thousands(axes: Any) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k" if value else "0")


def curves(result: Result) -> Any:
    parts = [
        (what, prefix, counts, medians(result, scenario))
        for scenario, what, prefix, counts in CURVES
        if scenario in result["scenarios"]
    ]
    if not parts:
        return None
    figure, places = pyplot.subplots(1, len(parts), figsize=(2.6 * len(parts) + 0.6, 2.6), sharey=True, squeeze=False)
    highest = max(found[name]["per_second"] for *_, found in parts for name in found)
    for axes, (what, prefix, counts, found) in zip(places[0], parts):
        here = [count for count in counts if f"{prefix}{count}" in found]
        axes.plot(here, [found[f"{prefix}{count}"]["per_second"] for count in here], "o-", color=HEADROOM)
        axes.set_xscale("log")
        axes.set_xticks(here, [short_count(count) for count in here], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_ylim(0, 1.08 * highest)
        axes.set_xlabel(what)
        axes.grid(axis="y")
        thousands(axes)
    places[0][0].set_title("Headroom, messages a second", loc="left")
    figure.tight_layout()
    return figure


def soak(result: Result) -> Any:
    minutes = result["scenarios"].get("soak", {}).get("samples", [])
    if not minutes:
        return None
    times = [minute["round"] for minute in minutes]
    figure, (rate, memory) = pyplot.subplots(2, 1, figsize=(7, 4), sharex=True)
    rate.plot(times, [minute["per_second"] for minute in minutes], color=HEADROOM)
    rate.set_title("messages a second", loc="left")
    thousands(rate)
    for field, word, line in (
        ("resident_mb", "service memory", HEADROOM),
        ("table_mb", "table", FUNCTION),
        ("indexes_mb", "indexes", REDIS),
    ):
        memory.plot(times, [minute[field] for minute in minutes], color=line, label=word)
    memory.set_title("MB", loc="left")
    memory.set_xlabel("minute")
    memory.legend(ncol=3)
    for axes in (rate, memory):
        axes.set_ylim(0, 1.1 * axes.dataLim.ymax)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
    figure.tight_layout()
    return figure
