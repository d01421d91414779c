"""Prints the licenses and notices of what is inside the program: the Swift packages and Swift's runtime.

    licenses.py BUILD_FOLDER LICENSE_OF_SWIFT

BUILD_FOLDER has the packages' checkouts. A text that several packages have is printed once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def texts(build: Path) -> dict[str, list[str]]:
    """Which packages have a text, by the text."""
    state = json.loads((build / "workspace-state.json").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for each in sorted(state["object"]["dependencies"], key=lambda each: each["packageRef"]["identity"]):
        name, checkout = each["packageRef"]["identity"], build / "checkouts" / each["subpath"]
        # In Sources there are those of code that a package has from elsewhere.
        paths = [*sorted(checkout.glob("*")), *sorted(checkout.glob("Sources/**/*"))]
        own = [path for path in paths if path.is_file() and path.name.split(".")[0].upper() in ("LICENSE", "NOTICE")]
        if not own:
            raise SystemExit(f"{name} has no license")
        for path in own:
            found.setdefault(path.read_text(encoding="utf-8", errors="replace").strip("\n"), []).append(
                f"{name}, {path.relative_to(checkout)}"
            )
    return found


def main(build: str, license_of_swift: str) -> None:
    found = texts(Path(build))
    found.setdefault(Path(license_of_swift).read_text(encoding="utf-8").strip("\n"), []).append("Swift's runtime and Foundation")
    print("The program contains the following software, under these licenses and with these notices.")
    for text, owners in found.items():
        print("\n" + "=" * 80 + "\n\n" + "\n".join(owners) + "\n\n" + "-" * 80 + "\n\n" + text)


if __name__ == "__main__":
    main(*sys.argv[1:])
