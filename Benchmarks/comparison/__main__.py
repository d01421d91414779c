"""The command line of the comparison; script/bench documents the flags."""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from support import processes
from support.processes import Failure

from . import document, machine, result
from .bench import Bench, Options
from .machine import print_progress
from .peers import redis_version
from .report import print_report
from .scenarios import QUICK, SCENARIOS, STAGES, USUAL, measurements_wanted
from .titles import USERS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "docs/performance.md", ROOT / "docs/contributors/performance.md")
PUBLISHED = ROOT / "docs/performance/result.json"
#: Seconds of a stage besides its measurements, once and in each round.
SET_UP = {
    "main": (35, 5),
    "holds": (0, 4),
    "parts": (10, 8),
    "slow_disk": (5, 15),
    "idle": (3, 10),
    "http": (10, 2),
    "counting_http": (10, 2),
    "renewals": (60, 2),
    "protected": (10, 10),
    "restart": (40, 25),
    "month": (20, 5),
    "plan_edit": (20, 2),
    "rotation": (30, 25),
    "rows": (150, 25),
    "curves": (0, 2),
    "soak": (0, 0),
}


def number(highest: int) -> Any:
    def parse(text: str) -> int:
        if not text.isdigit() or not 1 <= int(text) <= highest:
            raise argparse.ArgumentTypeError(f"a number from 1 to {highest}")
        return int(text)

    return parse


def scenario_names(text: str) -> tuple[str, ...]:
    known = [scenario.name for scenario in SCENARIOS]
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"no scenario is called {name!r}; there are {', '.join(known)}")
    return tuple(name for name in known if name in names)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/bench", description="Measures Headroom beside what one would write instead."
    )
    parser.add_argument("--quick", action="store_true", help=f"a round of the scenarios {', '.join(QUICK)}; three minutes")
    parser.add_argument(
        "--only",
        type=scenario_names,
        metavar="NAME[,NAME]",
        help="these scenarios: " + ", ".join(scenario.name for scenario in SCENARIOS),
    )
    parser.add_argument("--rounds", type=number(20), metavar="N", help="rounds (default 3; with --quick 1), 1 to 20")
    parser.add_argument(
        "--seconds",
        type=number(120),
        metavar="N",
        help="about how long a measurement takes (default 5; with --quick 3), 1 to 120",
    )
    parser.add_argument("--soak", type=number(1440), metavar="MINUTES", help="the soak, alone unless --only names more")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / ".build/bench.json",
        metavar="FILE",
        help="the JSON (default .build/bench.json)",
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="also merge it into docs/performance/result.json, and rewrite the documents",
    )
    parser.add_argument("--plan", action="store_true", help="only print the measurements and their duration")
    parser.add_argument(
        "--redraw", action="store_true", help="measure nothing, only make the document and pictures anew"
    )
    parser.add_argument("--headroom", type=Path, default=ROOT / ".build/release/headroom", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.quick and (chosen.only or chosen.soak):
        parser.error("--quick has scenarios of its own; leave it out")
    if chosen.only and ("soak" in chosen.only) != bool(chosen.soak):
        if not chosen.soak:
            parser.error("the scenario soak needs --soak MINUTES")
        chosen.only += ("soak",)
    chosen.names = chosen.only or (QUICK if chosen.quick else ("soak",) if chosen.soak else USUAL)
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 3)
    chosen.seconds = chosen.seconds or (3 if chosen.quick else 5)
    return chosen


def minutes_needed(chosen: argparse.Namespace) -> float:
    seconds = 60.0 * (chosen.soak or 0) + 30
    for stage in STAGES:
        wanted = measurements_wanted(chosen.names, stage) - {"function_best", "function_one_user", "soak_minute"}
        if wanted:
            once, each = SET_UP[stage]
            seconds += once + chosen.rounds * (each + len(wanted) * (chosen.seconds + 1.2))
    return seconds / 60


def measure(chosen: argparse.Namespace) -> result.Result:
    from .stages import STAGES as MEASURE

    machine.raise_descriptor_limit()
    work = Path(
        tempfile.mkdtemp(prefix="headroom-bench.", dir=os.environ.get("HEADROOM_BENCH_DIRECTORY") or "/var/tmp")
    )
    work.chmod(0o711)  # PostgreSQL runs under another account, which must be able to enter this directory
    bench: Bench | None = None
    try:
        machine.must_be_on_a_disk(work)
        machine.warn_of_noise()
        options = Options(
            names=chosen.names,
            rounds=chosen.rounds,
            seconds=chosen.seconds,
            soak_minutes=chosen.soak or 0,
            program=chosen.headroom.resolve(),
        )
        bench = Bench(options, work)
        run = {"rounds": chosen.rounds, "seconds": chosen.seconds, "users": USERS, "machine": machine.description(work)}
        bench.start()
        run["versions"] = {
            "headroom": bench.headroom.version,
            "postgresql": bench.postgres.version,
            "redis": redis_version(),
        }
        new = result.empty()
        for stage in STAGES:
            bench.wanted = measurements_wanted(chosen.names, stage)
            if not bench.wanted:
                continue
            bench.samples = []
            MEASURE[stage](bench)
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            about = {"date": now, "commit": machine.commit_of(ROOT), **run}
            if stage == "soak":
                about |= {"rounds": options.soak_minutes, "seconds": 60}
            for scenario in SCENARIOS:
                if scenario.stage == stage and scenario.name in chosen.names and bench.samples:
                    new["scenarios"][scenario.name] = result.scenario_result(scenario, bench.samples, about)
        if bench.headroom.counts() != bench.headroom.sent:
            raise Failure("at the end message_count does not add up to the messages sent")
        print_progress(f"{bench.headroom.sent:,} messages were allowed, and message_count adds up to {bench.headroom.sent:,}")
        return new
    except BaseException:
        show_logs(work)
        raise
    finally:
        if bench:
            bench.close()
        processes.stop_all()
        shutil.rmtree(work, ignore_errors=True)


def show_logs(work: Path) -> None:
    for log in sorted([*work.glob("*.log"), *work.glob("*/*.log")]):
        lines = log.read_text(errors="replace").splitlines()[-15:]
        if lines:
            print_progress(f"the end of {log.name}:")
            print("\n".join(lines), file=sys.stderr)


def publish(new: result.Result) -> None:
    from . import plots

    old = result.judged_anew(result.read(PUBLISHED)) if PUBLISHED.exists() else result.empty()
    merged = result.merged(old, new)
    # First the step that may fail.
    texts = document.rewritten_pages([page.read_text(encoding="utf-8") for page in DOCUMENTS], merged)
    result.write(PUBLISHED, merged)
    for page, text in zip(DOCUMENTS, texts):
        page.write_text(text, encoding="utf-8")
    plots.draw(merged, PUBLISHED.parent)
    print_progress(f"published in {PUBLISHED.relative_to(ROOT)} and {', '.join(str(page.relative_to(ROOT)) for page in DOCUMENTS)}")


def end_by_signal(number: int, _: FrameType | None) -> NoReturn:
    # Raised as an exception, once, so that all processes are stopped.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    chosen = parse_arguments(sys.argv[1:])
    rounds = "a round" if chosen.rounds == 1 else f"{chosen.rounds} rounds"
    if chosen.plan:
        print_progress(f"{', '.join(chosen.names)}: {rounds}; about {minutes_needed(chosen):.0f} minutes without the build")
        return 0
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, end_by_signal)
    try:
        if chosen.redraw:
            publish(result.empty())
            return 0
        new = measure(chosen)
        result.write(chosen.output, new)
        print_report(new)
        if chosen.publish:
            publish(new)
    except (Failure, AssertionError) as error:
        print_progress(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
