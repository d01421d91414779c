"""Simulates Headroom on one machine and on many: `script/scaling --help`."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from support.processes import Failure

from . import table
from .measure import measure, write
from .parameters import COSTS, BadParameter, measured_costs

ROOT = Path(__file__).resolve().parent.parent.parent
SECTIONS = {
    "machine": ("One machine without Citus, with more cores", "cores", table.one_machine),
    "installed": ("With two instances, and the settings as they are", "workers", table.as_installed),
    "needed": ("With as many instances and lanes as the workers need", "workers", table.as_needed),
    "varied": ("Eight workers, with one thing changed", "changed", table.variations),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/scaling", description="Simulates Headroom on one machine and on many.")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=list(SECTIONS))
    parser.add_argument("--cores", type=int, default=2, help="cores of each server")
    parser.add_argument("--flush-us", type=float, metavar="N", help="time of a flush in microseconds, instead of the measured one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--costs", type=Path, default=COSTS, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="clusters at a time")
    parser.add_argument("--measure", action="store_true", help="measures the costs and writes them to --costs")
    for name in ("plain", "worker", "coordinator"):
        parser.add_argument(f"--{name}", metavar="URL", help=f"the {name}'s scratch database, with --measure")
    parser.add_argument("--headroom", type=Path, default=ROOT / ".build/release/headroom", metavar="FILE", help="with --measure")
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.measure and None in (chosen.plain, chosen.worker, chosen.coordinator):
        parser.error("--measure needs --plain, --worker and --coordinator")
    return chosen


def print_tables(chosen: argparse.Namespace) -> None:
    measured = measured_costs(chosen.costs)
    with ProcessPoolExecutor(chosen.jobs) as executor:
        found = []
        # All are submitted before the first is awaited.
        for name in chosen.only:
            rows = SECTIONS[name][2](measured, chosen.cores, chosen.flush_us)
            found.append((name, rows, table.computed(rows, chosen.seed, executor)))
        for name, rows, capacities in found:
            title, first, _ = SECTIONS[name]
            print(f"{title}:\n\n{table.markdown(first, [row.name for row in rows], capacities)}\n", flush=True)


def main() -> int:
    chosen = parse_arguments()
    try:
        if chosen.measure:
            write(measure(chosen), chosen.costs)
        else:
            print_tables(chosen)
    except (BadParameter, Failure) as error:
        print(f"scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
