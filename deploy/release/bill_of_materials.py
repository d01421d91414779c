"""Prints a bill of materials (CycloneDX 1.6, JSON) of the program: Swift's runtime and the Swift packages in it with their licenses,
and the packages of Debian whose libraries it loads.

    bill_of_materials.py BUILD_FOLDER VERSION SWIFT_VERSION DEBIAN_DEPENDENCIES

DEBIAN_DEPENDENCIES is a list as in the field Depends of a package, such as `libc6 (>= 2.34), libpq5`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from dependencies import resolved

# What a license file of each kind says.
LICENSES = {
    "Apache License": "Apache-2.0",
    "Permission is hereby granted, free of charge": "MIT",
    "Redistribution and use in source and binary forms": "BSD-3-Clause",
}


def license_of(folder: Path) -> str | None:
    for path in sorted(folder.glob("LICENSE*")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for phrase, name in LICENSES.items():
            if phrase in text:
                return name
    return None


def swift_packages(build: Path) -> list[dict[str, Any]]:
    state = json.loads((build / "workspace-state.json").read_text(encoding="utf-8"))
    places = {each["packageRef"]["identity"]: each for each in state["object"]["dependencies"]}
    components = []
    for name, version in sorted(resolved(str(build / "workspace-state.json")).items()):
        location = places[name]["packageRef"]["location"].removesuffix(".git")
        license_name = license_of(build / "checkouts" / places[name]["subpath"])
        if license_name is None:
            raise SystemExit(f"the license of {name} is unknown")
        components.append(
            {
                "type": "library",
                "bom-ref": name,
                "name": name,
                "version": version,
                "purl": f"pkg:swift/{location.removeprefix('https://')}@{version}",
                "licenses": [{"license": {"id": license_name}}],
            }
        )
    return components


def runtime(version: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": "swift-runtime",
        "name": "swift-runtime",
        "version": version,
        "description": "the standard library and Foundation, of the toolchain",
        "purl": f"pkg:github/swiftlang/swift@swift-{version}-RELEASE",
        "licenses": [{"expression": "Apache-2.0 WITH Swift-exception"}],
    }


def debian_packages(dependencies: str) -> list[dict[str, Any]]:
    components = []
    for part in dependencies.split(","):
        name, _, bound = part.strip().partition(" ")
        component = {"type": "library", "bom-ref": name, "name": name, "purl": f"pkg:deb/debian/{name}", "scope": "required"}
        if bound:
            component["description"] = f"loaded when the program starts; {bound.strip('()')}"
        components.append(component)
    return components


def main(build: str, version: str, swift_version: str, dependencies: str) -> None:
    components = [runtime(swift_version), *swift_packages(Path(build)), *debian_packages(dependencies)]
    program = {"type": "application", "bom-ref": "headroom", "name": "headroom", "version": version}
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    content = json.dumps([program, components], sort_keys=True)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # Of the content, so that the same build has the same number.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"timestamp": moment, "component": {**program, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": "headroom", "dependsOn": [each["bom-ref"] for each in components]}],
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
