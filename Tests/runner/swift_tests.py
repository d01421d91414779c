"""Runs the Swift tests in one process, and reads its stream of events (swift-testing's ABI, version 0)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from support import citus, processes

from .results import Report, Result

PART = "Swift"
LIMIT_SECONDS = 3_000
DISTRIBUTED = "EngineModelTests/agreementOnWorkers"
"""The test that `--citus` runs, over databases of its own; the others start a server themselves."""
SEEDS = 3
"""Of that test, each with a database."""


class EventReader:
    """Computes results from events, also if the process dies before it has written them all.

    The event that starts a test without arguments comes before the test waits for a free slot, and no event says when it gets one.
    So the time is computed: `jobs` tests run at a time, in the order of their events, and each case of a test with arguments has
    an event when it begins.
    """

    def __init__(self, report: Report, jobs: int) -> None:
        self.report, self.jobs = report, jobs
        self.names: dict[str, str] = {}
        """The test functions' names, by id."""
        self.waiting: list[str] = []
        """Tests without arguments that wait for a slot, the next one first."""
        self.started_at: dict[str, float] = {}
        """The start times of the running ones, the earliest first."""
        self.parameterized: set[str] = set()
        self.seconds: dict[str, float] = {}
        self.cases: dict[str, list[float]] = {}
        """The start times of running cases, by the id of their test."""
        self.issues: dict[str, list[str]] = {}
        self.running: set[str] = set()
        self.has_ended = False

    def read(self, line: str) -> None:
        record = json.loads(line)
        payload = record["payload"]
        if record["kind"] == "test":
            if payload["kind"] == "function":
                self.names[payload["id"]] = payload.get("displayName", payload["name"])
                if payload["isParameterized"]:
                    self.parameterized.add(payload["id"])
        elif payload["kind"] == "runEnded":
            self.has_ended = True
        elif payload["kind"] == "issueRecorded":
            self._note_issue(payload)
        elif payload.get("testID") in self.names:
            self._note(payload["kind"], payload["testID"], payload["instant"]["absolute"])

    def _note(self, kind: str, test: str, instant: float) -> None:
        if kind == "testStarted":
            self.running.add(test)
            if test not in self.parameterized:
                self.waiting.append(test)
        elif kind == "testCaseStarted":
            self.cases.setdefault(test, []).append(instant)
            if self._count_running() > self.jobs and self.started_at:
                # This test had the slot, not the one that was assumed to have started last.
                last = list(self.started_at)[-1]
                del self.started_at[last]
                self.waiting.insert(0, last)
        elif kind == "testCaseEnded":
            # The sum does not depend on which of several cases has ended.
            self.seconds[test] = self.seconds.get(test, 0) + instant - self.cases[test].pop()
        elif kind in ("testEnded", "testSkipped"):
            self.running.discard(test)
            if test in self.waiting:
                self.waiting.remove(test)
            if test in self.started_at:
                self.seconds[test] = instant - self.started_at.pop(test)
            issues = self.issues.pop(test, [])
            self._add(test, "\n".join(issues) if issues else None, is_skipped=kind == "testSkipped")
        while self.waiting and self._count_running() < self.jobs:
            self.started_at[self.waiting.pop(0)] = instant

    def _count_running(self) -> int:
        return len(self.started_at) + sum(map(len, self.cases.values()))

    def _note_issue(self, payload: dict) -> None:
        issue = payload["issue"]
        if issue.get("isKnown") or issue.get("severity", issue.get("_severity", "error")) == "warning":
            return
        location = issue.get("sourceLocation") or {}
        prefix = f"{location.get('fileID', '?')}:{location.get('line', '?')}: "
        text = prefix + "\n    ".join(message["text"] for message in payload["messages"])
        test = payload.get("testID")
        if test in self.names:
            self.issues.setdefault(test, []).append(text)
        else:
            self.report.add(Result(part=PART, group="outside of tests", name=test or "an issue", seconds=0, failure=text))

    def _add(self, test: str, failure: str | None, is_skipped: bool = False) -> None:
        group = test.split("/")[0]
        self.report.add(
            Result(
                part=PART,
                group=group,
                name=self.names[test],
                seconds=self.seconds.get(test, 0),
                failure=failure,
                is_skipped=is_skipped,
            )
        )

    def finish(self, status: int) -> None:
        """Reports tests that were running when the process ended."""
        if not self.has_ended:
            names = sorted(self.names[test] for test in self.running)
            text = f"the tests ended with status {status} before their end, in one of:\n    " + "\n    ".join(names)
            self.report.add(Result(part=PART, group="the process", name="runs to its end", seconds=0, failure=text))
        elif status != 0 and not any(result.part == PART and result.failure for result in self.report.results):
            text = f"status {status}, though no test failed"
            self.report.add(Result(part=PART, group="the process", name="ends well", seconds=0, failure=text))


def follow(path: Path, reader: EventReader, has_ended: threading.Event) -> None:
    """Reads the file until the writer has ended."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        part = ""
        while True:
            is_last = has_ended.is_set()
            while line := stream.readline():
                part += line
                if part.endswith("\n"):
                    reader.read(part)
                    part = ""
            if is_last:
                return
            has_ended.wait(0.2)


def seeds_in(log: Path) -> list[str]:
    """The seeds that tests have printed, to repeat a failed one."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return sorted(set(re.findall(r"^.*\bseeds?\b.*$", text, re.MULTILINE)))


def run_over_citus(root: Path, binaries: Path, words: list[str], jobs: int, report: Report) -> None:
    """After `citus.prepare`."""
    if words and not any(word in DISTRIBUTED for word in words):
        return
    cluster = citus.CitusCluster()
    conninfos = [cluster.url(cluster.new_database(is_migrated=True)) for _ in range(SEEDS)]
    run(root, binaries, [DISTRIBUTED], jobs, report, {"HEADROOM_TEST_DISTRIBUTED": "\n".join(conninfos)})
    cluster.end()


def run(
    root: Path, binaries: Path, filters: list[str], jobs: int, report: Report, variables: Mapping[str, str] = MappingProxyType({})
) -> None:
    work = root / ".build/test"
    events, log = work / "swift-events.jsonl", work / "swift.log"
    events.write_bytes(b"")
    # The program that `swift test` would run. `swift test` itself takes half a minute longer on a busy machine, because it checks
    # all packages again, and it blocks every other build until the tests end.
    command = [str(binaries / "headroomPackageTests.xctest"), "--testing-library", "swift-testing", "--parallel"]
    command += ["--event-stream-output-path", str(events), "--event-stream-version", "0"]
    for text in filters:
        command += ["--filter", text]
    environment = {
        **os.environ,
        **variables,
        "HEADROOM_TEST_BINARIES": str(binaries),
        # Hundreds of concurrent tests with sessions of their own would delay each other.
        "SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH": str(jobs),
    }
    reader, has_ended = EventReader(report, jobs), threading.Event()
    with open(log, "wb") as output:
        process = processes.start(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        following = threading.Thread(target=follow, args=(events, reader, has_ended))
        following.start()
        try:
            status = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = processes.stop(process)
            report.print_line(f"the Swift tests took longer than {LIMIT_SECONDS} s")
        finally:
            has_ended.set()
            following.join()
    reader.finish(status)
    if any(result.part == PART and result.failure for result in report.results):
        print("\n".join(seeds_in(log)), flush=True)
        report.print_line(f"everything that the Swift tests printed: {log.relative_to(root)}")
