"""Runs faults against the service under load, and checks the histories. Started by script/faults."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import tables
from case import Assignment, Result
from citus_faults import CITUS_FAULTS, CitusFault
from cluster_faults import CLUSTER_FAULTS, PLANTED, ClusterFault
from clusters import prepare
from failover_faults import FAILOVER_FAULTS, FailoverFault
from faults import FAULTS, Fault
from plants import PLANTS
from side_by_side import results
from support import citus, processes, settings
from tracer import Tracer
from workload import setup_sql

AnyFault = Fault | ClusterFault | CitusFault | FailoverFault


def report(result: Result, columns: list[tables.Column]) -> None:
    """Prints a row with its violations; each invariant is shown at most a few times."""
    print(tables.row(columns, result), flush=True)
    if result.error:
        print(f"    {result.error}")
    if not result.error and result.fired == 0:
        print("    the fault was never seen to fire")
    shown: dict[str, int] = {}
    for violation in result.violations:
        shown[violation.invariant] = shown.get(violation.invariant, 0) + 1
        if shown[violation.invariant] <= 2:
            print("    " + str(violation).replace("\n", "\n    "))
    for invariant, count in shown.items():
        if count > 2:
            print(f"    {invariant}: {count} in all")
    sys.stdout.flush()


def reason_to_skip(fault: AnyFault) -> str:
    """Why a fault cannot be injected here; empty when it can."""
    if not isinstance(fault, Fault):
        return ""
    if "strace" in fault.needs and not Tracer.is_installed():
        return "there is no strace"
    if "tmpfs" in fault.needs and (os.geteuid() != 0 or os.environ.get("HEADROOM_FAULTS_NAMESPACE") != "1"):
        return "a small disk can only be mounted as root, in a namespace of its own"
    return ""


def chosen_faults(arguments: argparse.Namespace) -> Sequence[AnyFault]:
    of_citus: Sequence[AnyFault] = [*CITUS_FAULTS, *FAILOVER_FAULTS]
    known: Sequence[AnyFault] = CLUSTER_FAULTS if arguments.cluster else of_citus if arguments.citus else FAULTS
    if not arguments.only:
        return known
    names = arguments.only.split(",")
    unknown = set(names) - {fault.name for fault in known}
    if unknown:
        raise SystemExit(f"faults: no fault {', '.join(sorted(unknown))}; there are {', '.join(f.name for f in known)}")
    return [fault for fault in known if fault.name in names]


class Cases:
    """Creates the assignments of a run, with directories below its own."""

    def __init__(self, binary: Path, directory: Path, arguments: argparse.Namespace) -> None:
        self.binary, self.directory, self.patroni, self.slack = binary, directory, arguments.patroni, arguments.slack
        self.is_distributed = arguments.citus
        settings.binary = str(binary)
        if self.is_distributed:
            self.prepared = Path(citus.prepare(str(directory / "prepared"), setup_sql()))
        else:
            self.prepared = prepare(directory / "prepared")

    def assignment(self, fault: str, seed: int, seconds: float, plant: str | None = None) -> Assignment:
        name = f"{fault}-{seed}" + (f"-{plant}" if plant else "")
        directory = self.directory / name
        directory.mkdir()
        return Assignment(
            fault=fault,
            seed=seed,
            seconds=seconds,
            binary=str(self.binary),
            prepared=self.prepared,
            directory=directory,
            clusters=self.directory / f"{name}-clusters",
            plant=plant,
            patroni=self.patroni,
            is_distributed=self.is_distributed,
            slack=self.slack,
        )


def run_planted(arguments: argparse.Namespace, cases: Cases) -> tuple[int, int]:
    """Each planted bug must be caught, by an invariant that names it. On a busy machine too little may happen in a run: it is then
    repeated with another seed, for longer."""
    uncaught = list(PLANTS)
    for attempt, factor in enumerate((1, 4, 16)):
        seed = arguments.first_seed + attempt
        plants = {plant.name: plant for plant in uncaught}
        assignments = [cases.assignment(plant.fault, seed, plant.seconds * factor, plant.name) for plant in uncaught]
        uncaught = []
        for assignment, result in results(assignments, arguments.jobs):
            plant = plants[assignment.plant or ""]
            planted = f"planted {plant.name} ({plant.description}), under {plant.fault}, seed {seed}, {assignment.seconds:g} s"
            if not report_plant(result, planted, plant.caught_by):
                uncaught.append(plant)
    for plant in uncaught:
        print(f"failed: planted {plant.name} was not caught")
    return len(PLANTS) - len(uncaught), len(uncaught)


def run_planted_clusters(arguments: argparse.Namespace, cases: Cases) -> tuple[int, int]:
    """Each wrong set-up must be caught, by an invariant that names it."""
    passed = failed = 0
    plants = {plant.fault.name: plant for plant in PLANTED}
    assignments = [cases.assignment(name, arguments.first_seed, 1) for name in plants]
    for _, result in results(assignments, arguments.jobs):
        plant = plants[result.fault]
        is_caught = report_plant(result, f"planted: {plant.description}", plant.caught_by)
        passed, failed = passed + is_caught, failed + (not is_caught)
    return passed, failed


def report_plant(result: Result, planted: str, caught_by: frozenset[str]) -> bool:
    """Prints whether a planted bug was caught, and by what; returns it."""
    caught = sorted({violation.invariant for violation in result.violations})
    is_caught = not result.error and bool(caught_by & set(caught))
    verdict = f"caught by {', '.join(caught)}" if is_caught else f"NOT caught ({result.error or ', '.join(caught) or 'nothing seen'})"
    print(f"{planted}: {verdict}")
    for violation in result.violations:
        if violation.invariant in caught_by:
            print("    " + str(violation).replace("\n", "\n    "))
            break
    sys.stdout.flush()
    return is_caught


def run_all(arguments: argparse.Namespace, cases: Cases) -> tuple[int, int]:
    kept = Path(arguments.keep) if arguments.keep else None
    passed = failed = 0
    totals = {"unknowns": 0, "replays": 0, "ops": 0}
    assignments, skipped = [], {}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for fault in chosen_faults(arguments):
            if reason := reason_to_skip(fault):
                skipped[fault.name] = reason
            else:
                assignments.append(cases.assignment(fault.name, seed, arguments.duration))
    columns = tables.CLUSTER if arguments.cluster else tables.CITUS if arguments.citus else tables.FAULTS
    print(tables.head(columns), flush=True)
    done = []
    for assignment, result in results(assignments, arguments.jobs):
        done.append(result)
        report(result, columns)
        passed, failed = passed + result.is_passed, failed + (not result.is_passed)
        for name in totals:
            totals[name] += result.counts.get(name, 0)
        if not result.is_passed:
            cluster = " --cluster" if arguments.cluster else " --citus" if arguments.citus else ""
            print(f"    again: script/faults{cluster} --only {result.fault} --first-seed {result.seed} --duration {arguments.duration:g}")
        if kept and (arguments.verbose or not result.is_passed):
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copytree(assignment.directory, kept / assignment.directory.name, dirs_exist_ok=True)
        if arguments.verbose:
            print(f"    {'; '.join(result.notes)}", flush=True)
        shutil.rmtree(assignment.directory)
    for name, reason in skipped.items():
        print(f"{name} was not injected: {reason}")
    if (arguments.cluster or arguments.citus) and arguments.seeds > 1:
        print("\n" + tables.gaps(done) + "\n")
    print(f"{totals['ops']} operations, {totals['unknowns']} unknown outcomes, {totals['replays']} replays")
    # Often only the end of a long log is shown, so failures are listed again there.
    for result in done:
        if not result.is_passed:
            reasons = [result.error, *(str(violation) for violation in result.violations), "the fault was never seen to fire"]
            print(f"failed: {result.fault}, seed {result.seed}: {next(filter(None, reasons)).splitlines()[0]}")
    return passed, failed


def end_by_signal(number: int, _: FrameType | None) -> NoReturn:
    # As an exception, so that everything is cleaned up; only once.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--cluster", action="store_true", help="the faults of a high-availability cluster instead")
    parser.add_argument("--patroni", type=Path, help="Patroni's virtual environment, for --cluster and --citus")
    parser.add_argument("--citus", action="store_true", help="the faults of a distributed database instead")
    parser.add_argument("--pg-config", help="that of a PostgreSQL with Citus, for --citus; by default the one in PATH")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--duration", type=float, default=5, help="seconds of faults in each run")
    parser.add_argument("--slack", type=float, default=0, help="seconds that the service may be late, for a busy machine")
    parser.add_argument("--only", help="names of faults, with commas between")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at a time")
    parser.add_argument("--keep", help="where histories and logs of failed runs go; with --verbose, of all")
    parser.add_argument("--planted", action="store_true", help="plant bugs instead, and see that they are caught")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.citus:
        try:
            citus.use(arguments.pg_config)
        except processes.Failure as failure:
            parser.exit(2, f"faults: {failure}\n")
        if arguments.planted:
            parser.error("nothing is planted in a distributed database")
    # If our parent is killed, so are we, and with us (in our namespace) every process that we started.
    processes.die_with_parent(signal.SIGTERM)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, end_by_signal)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, hard), hard))
    # On a disk, because the temporary directory may be in memory.
    directory = Path(tempfile.mkdtemp(prefix="headroom-faults-", dir="/var/tmp"))
    directory.chmod(0o711)
    try:
        cases = Cases(arguments.binary.resolve(), directory, arguments)
        planted = run_planted_clusters if arguments.cluster else run_planted
        passed, failed = (planted if arguments.planted else run_all)(arguments, cases)
    finally:
        processes.stop_all()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
