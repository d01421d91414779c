"""Lists the Swift packages that a build has resolved, also those of packages, with their versions.

    dependencies.py WORKSPACE_STATE                 prints a line each: name and version
    dependencies.py WORKSPACE_STATE --check FILE    exit status 1 if FILE has others

Package.swift fixes the versions of the packages that it names. The file does so for theirs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def resolved(workspace_state: str) -> dict[str, str]:
    """The version of each package, by its name."""
    state = json.loads(Path(workspace_state).read_text(encoding="utf-8"))
    return {
        each["packageRef"]["identity"]: each["state"]["checkoutState"].get("version", "unknown")
        for each in state["object"]["dependencies"]
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    found = [f"{name} {version}" for name, version in sorted(resolved(arguments[0]).items())]
    if "--check" not in arguments:
        print("\n".join(found))
        return 0
    path = arguments[-1]
    expected = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    if found == expected:
        return 0
    print(f"the build has other packages than {path}; test these, and write them there:", file=sys.stderr)
    for line in sorted(set(found) ^ set(expected)):
        print(("+ " if line in found else "- ") + line, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
