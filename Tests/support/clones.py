"""A clone without a build: the scripts, and what they look for beside them."""

import shutil
from pathlib import Path

from . import processes
from .printed import ROOT

FOLDERS = ("Tests", "Fuzz", "Plugins", "Examples/ChatBackend", "Snippets", "Benchmarks", "sql", "Sources/Engine/Schema", ".build")
FILES = ("Package.swift", ".gitignore", "Sources/Engine/Schema/Version.swift")


def make():
    clone = Path(processes.directory(0o755))
    shutil.copytree(Path(ROOT, "script"), clone / "script")
    for name in FOLDERS:
        (clone / name).mkdir(parents=True)
    for name in FILES:
        shutil.copy(Path(ROOT, name), clone / name)
    return clone
