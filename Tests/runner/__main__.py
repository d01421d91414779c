"""Runs the Swift and the Python tests concurrently."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from support import citus, processes

from . import python_tests, swift_tests
from .results import Report, Result

ROOT = Path(__file__).resolve().parent.parent.parent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/test", add_help=False)
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("--blackbox", action="append", default=[])
    parser.add_argument("--remember", action="store_true")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--citus", action="store_true")
    parser.add_argument("--pg-config")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=2 * len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    if not arguments.citus and (arguments.pg_config or arguments.words):
        parser.error("--pg-config and WORDS are for --citus; --filter and --blackbox choose among other tests")
    if arguments.citus and (arguments.filter or arguments.blackbox or arguments.remember):
        parser.error("--citus runs its tests, chosen by WORDS")
    return arguments


def build(is_debug: bool) -> Path:
    built = subprocess.run(
        [ROOT / "script/build", *(["--debug"] if is_debug else [])], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    if built.returncode != 0:
        print("0 passed, 1 failed")
        sys.exit(1)
    return Path(built.stdout.strip())


def main() -> int:
    arguments = parse()
    if arguments.left_out:
        print(python_tests.left_out(arguments.citus), end="")
        return 0
    if arguments.long:
        os.environ["HEADROOM_TEST_LONG"] = "1"
    if arguments.citus:
        try:
            citus.use(arguments.pg_config)
        except processes.Failure as failure:
            print(f"test: {failure}", file=sys.stderr)
            return 2
    binaries = build(arguments.debug)
    (ROOT / ".build/test").mkdir(exist_ok=True)
    report = Report()
    is_everything = not arguments.filter and not arguments.blackbox and not arguments.citus
    parts: list[Callable[[], None]] = []
    if arguments.filter or is_everything:
        parts.append(lambda: swift_tests.run(ROOT, binaries, arguments.filter, arguments.jobs, report))
    if arguments.blackbox or arguments.citus or is_everything:
        binary = binaries / "headroom"
        words = arguments.words if arguments.citus else arguments.blackbox

        def run_python_tests() -> None:
            python_tests.run(
                ROOT, binary, words, arguments.jobs, report, has_to_remember=arguments.remember, is_distributed=arguments.citus
            )
            if arguments.citus and not report.is_stopped:
                swift_tests.run_over_citus(ROOT, binaries, words, arguments.jobs, report)

        parts.append(run_python_tests)

    def guarded(part: Callable[[], None]) -> None:
        try:
            part()
        except Exception:  # an error of the runner is a failure as well
            failure = traceback.format_exc()
            report.add(Result(part="runner", group="script/test", name="runs all tests", seconds=0, failure=failure))

    def end(*_: object) -> None:
        # Once: `timeout` signals its child and then the whole group, and stopping must not be interrupted.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # As an exception, so that everything is stopped.
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    # A shell that runs this in the background ignores SIGINT, and programs that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threads = [threading.Thread(target=guarded, args=(part,), daemon=True) for part in parts]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except SystemExit:
        report.is_stopped = True
    finally:
        processes.stop_all()
    if report.is_stopped:
        # The tests that were running are reported now, because their process has ended.
        for thread in threads:
            thread.join(10)
        failure = "it was stopped from outside, perhaps after its time"
        report.add(Result(part="runner", group="script/test", name="runs to its end", seconds=0, failure=failure))
    return report.finish()


sys.exit(main())
