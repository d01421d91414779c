"""Measures the service under attack: `python3 -m hostile --help`. script/hostile builds and starts it."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from comparison import machine
from comparison.figures import median, rounded
from comparison.machine import print_progress
from comparison.peers import Postgres
from comparison.stages import slow_disk_library
from support import processes
from support.certificates import Authority
from support.processes import Failure

from . import floods, http_scenarios, scenarios
from .scenarios import Contender, Sample

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = ("throughput", "fairness", "singles", "long_replies", "hostile", "bodies", "http", "floods", "overload")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/hostile", description="Measures the service under attack.")
    parser.add_argument("--headroom", type=Path, default=ROOT / ".build/release/headroom", metavar="FILE")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="another binary, measured in turn with it; named before")
    parser.add_argument("--only", choices=SCENARIOS, nargs="+", default=SCENARIOS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / ".build/hostile.json", metavar="FILE")
    return parser.parse_args()


class Figures:
    def __init__(self) -> None:
        self.samples: dict[str, dict[str, list[Sample]]] = {}

    def add(self, what: str, name: str, sample: Sample) -> None:
        self.samples.setdefault(what, {}).setdefault(name, []).append(sample)
        print_progress(f"{what}, {name}: {json.dumps(sample)}")

    def medians(self) -> dict[str, dict[str, Sample]]:
        return {what: {name: medians(samples) for name, samples in by.items()} for what, by in self.samples.items()}


def medians(samples: list[Any]) -> Any:
    """The median of each number over the rounds, also in nested objects; a round without a number does not count for it."""
    if all(isinstance(sample, dict) for sample in samples):
        keys = dict.fromkeys(key for sample in samples for key in sample)
        return {key: medians([sample[key] for sample in samples if key in sample]) for key in keys}
    return rounded(median(samples), 6)


def measure(chosen: argparse.Namespace, work: Path, figures: Figures) -> None:
    postgres = Postgres(work)
    programs = {"now": chosen.headroom.resolve()} | ({"before": chosen.beside.resolve()} if chosen.beside else {})
    try:
        contenders = [
            Contender(name=name, program=program, generator=programs["now"], postgres=postgres, work=work)
            for name, program in sorted(programs.items())
        ]
        for contender in contenders:
            contender.prepare_database()
        for number in range(chosen.rounds):
            # The binaries take turns being first in a round.
            for contender in contenders if number % 2 == 0 else contenders[::-1]:
                one_round(contender, chosen, figures)
        if "overload" in chosen.only:
            under_overload(contenders, chosen, work, figures)
    finally:
        for contender in locals().get("contenders", []):
            contender.stop()
        postgres.stop()


def one_round(contender: Contender, chosen: argparse.Namespace, figures: Figures) -> None:
    if "throughput" in chosen.only:
        for pipeline in (1, 16):
            with contender.serving():
                sample = scenarios.throughput(contender, pipeline, chosen.seconds)
                figures.add(f"throughput, 64 x {pipeline}", contender.name, sample)
    if "fairness" in chosen.only:
        for connections in scenarios.GREEDY_CONNECTIONS:
            with contender.serving():
                sample = scenarios.fairness(contender, connections, chosen.seconds)
                figures.add(f"beside {connections} greedy", contender.name, sample)
    if "singles" in chosen.only:
        with contender.serving():
            sample = scenarios.fairness(contender, 16, chosen.seconds, "HISTORY {user} 12")
            figures.add("beside 16 greedy with HISTORY", contender.name, sample)
    if "long_replies" in chosen.only:
        with contender.serving():
            sample = scenarios.fairness(contender, 16, chosen.seconds, "INFO")
            figures.add("beside 16 greedy with INFO", contender.name, sample)
    if "hostile" in chosen.only:
        for connections in (0, scenarios.HOSTILE_CONNECTIONS):
            # Leaves connections for well-behaved clients; connections-per-address-maximum limits hostile ones.
            with contender.serving("--connections-maximum", str(scenarios.HOSTILE_CONNECTIONS + 256)):
                sample = scenarios.hostile(contender, connections, max(chosen.seconds, 15))
                figures.add(f"beside {connections} hostile", contender.name, sample)
    if "bodies" in chosen.only:
        for connections in (0, http_scenarios.BODY_CONNECTIONS):
            with contender.serving(*http_scenarios.BODY_SETTINGS, http="127.0.0.1:0"):
                sample = http_scenarios.bodies(contender, connections, chosen.seconds)
                figures.add(f"beside {connections} with bad bodies", contender.name, sample)
    if "http" in chosen.only:
        authority = Authority()
        for tls in (None, authority):
            for connections in (0, scenarios.HTTP_CONNECTIONS):
                with contender.serving(http="127.0.0.1:0", tls=tls):
                    sample = scenarios.http_probes(contender, connections, chosen.seconds, tls)
                    name = f"health beside {connections} hostile, {'TLS' if tls else 'plain text'}"
                    figures.add(name, contender.name, sample)
    if "floods" in chosen.only:
        authority = Authority()
        for kind in floods.KINDS:
            with contender.serving(http="127.0.0.1:0", tls=authority):
                sample = http_scenarios.flood(contender, kind, authority.certificate, chosen.seconds)
                figures.add(f"flood: {kind}", contender.name, sample)


def under_overload(contenders: list[Contender], chosen: argparse.Namespace, work: Path, figures: Figures) -> None:
    library = slow_disk_library(work)
    preload = {
        "LD_PRELOAD": str(library),
        "HEADROOM_FLUSH_MICROSECONDS": str(scenarios.FLUSH_MILLISECONDS * 1000),
    }
    contenders[0].postgres.restart(preload)
    with contenders[-1].serving():
        # 64 connections with 64 requests in progress each are more than the database can take.
        sample = scenarios.throughput(contenders[-1], 64, chosen.seconds)
    most = sample["per_second"]
    figures.add("capacity of the slowed database", contenders[-1].name, sample)
    for number in range(chosen.rounds):
        for contender in contenders if number % 2 == 0 else contenders[::-1]:
            for times in (0.5, 2):
                with contender.serving():
                    sample = scenarios.overload(contender, most * times, max(chosen.seconds, 10))
                    figures.add(f"{times:g} times the capacity", contender.name, sample)


def main() -> None:
    chosen = parse_arguments()
    machine.raise_descriptor_limit()
    work = Path(
        tempfile.mkdtemp(prefix="headroom-hostile.", dir=os.environ.get("HEADROOM_BENCH_DIRECTORY") or "/var/tmp")
    )
    work.chmod(0o711)  # PostgreSQL runs under another account, which must be able to enter this directory
    figures = Figures()
    try:
        machine.must_be_on_a_disk(work)
        machine.warn_of_noise()
        about = {"machine": machine.description(work), "commit": machine.commit_of(ROOT), "rounds": chosen.rounds}
        measure(chosen, work, figures)
        result = about | {"medians": figures.medians(), "samples": figures.samples}
        chosen.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(result["medians"], indent=1))
    except (Failure, AssertionError) as failure:
        for log in sorted([*work.glob("*.log"), *work.glob("*/*.log")]):
            print_progress(f"{log.name}: " + " | ".join(log.read_text(errors="replace").splitlines()[-5:]))
        raise SystemExit(f"hostile: {failure}") from failure
    finally:
        processes.stop_all()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
