"""Describes the machine of the measurements, and checks whether it is suitable."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

from support.processes import Failure, run

IN_MEMORY = {"tmpfs", "ramfs"}


def print_progress(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def first_value(path: str, name: str) -> str:
    try:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    except OSError:
        pass
    return "unknown"


def file_system_of(directory: Path) -> str:
    """The type of the mount that holds a directory."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, mount, found = line.split()[:3]
        mount = mount.replace("\\040", " ")
        if len(mount) >= len(best) and (directory == Path(mount) or Path(mount) in directory.parents):
            best, kind = mount, found
    return kind


def load_before() -> float:
    return os.getloadavg()[0]


def description(directory: Path) -> dict[str, Any]:
    return {
        "processor": first_value("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(first_value("/proc/meminfo", "MemTotal").split()[0]) * 1024 / 1e9, 1),
        "kernel": platform.release(),
        "file_system": file_system_of(directory),
        "load_before": round(load_before(), 2),
    }


def warn_of_noise() -> None:
    load = load_before()
    if load > 0.5:
        print_progress(f"the machine is busy with something else (load {load:.2f} in the last minute): figures will be too low")


def must_be_on_a_disk(directory: Path) -> None:
    if file_system_of(directory) in IN_MEMORY:
        raise Failure("the directory for the databases is in memory; name one on a disk in HEADROOM_BENCH_DIRECTORY")


def free_gigabytes(directory: Path) -> float:
    return shutil.disk_usage(directory).free / 1e9


def raise_descriptor_limit() -> int:
    """Raises the limit of open files of this process and its children to the maximum; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def compiled(source: Path, program: Path, *flags: str) -> Path:
    """Compiles a C source; returns the program."""
    run(["cc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source), *flags], 60)
    program.chmod(0o755)
    return program


def commit_of(root: Path) -> str:
    """The commit, with -dirty if there are uncommitted changes other than in documents."""
    git = ["git", "-C", str(root)]
    try:
        commit = run([*git, "describe", "--always", "--abbrev=12"], 30).strip()
        changes = run([*git, "status", "--porcelain", "--", ".", ":(exclude)docs"], 30).strip()
    except Failure:
        return "unknown"
    return commit + ("-dirty" if changes else "")
