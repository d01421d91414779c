"""A package that depends on HeadroomClient: what SwiftPM fetches and builds for it, and which programs compile in it. All packages
come from the repositories that this clone's build has fetched, without the network."""

import json
import os
import re
import subprocess
from pathlib import Path

from . import processes
from .service import environment

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 1_800
"""Seconds; longer than any step takes on a busy machine."""

MAIN = """\
import HeadroomClient

let headroom = HeadroomClient(.init(host: "127.0.0.1", port: 6747))
let user = UserID("7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11")!
print(try await headroom.consume(user, key: "message-1").isAllowed)
await headroom.shutDown()
"""


def local_git():
    """Environment variables with which git uses the repositories that the build has fetched."""
    rewrites = []
    for repository in sorted((ROOT / ".build/repositories").glob("*/config")):
        url = processes.completed(["git", "config", "--file", repository, "remote.origin.url"], check=True).stdout.strip()
        # Packages write the address of one repository in two ways; git uses the longest match.
        name = url.removesuffix(".git")
        rewrites += [(f"url.{repository.parent}.insteadOf", spelling) for spelling in (name, name + ".git")]
    variables = {"GIT_ALLOW_PROTOCOL": "file", "GIT_CONFIG_COUNT": str(len(rewrites))}
    for number, (key, value) in enumerate(rewrites):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


class Dependent:
    """A new package with these traits of ours; None enables the default traits."""

    def __init__(self, traits, directory=None, cache=None):
        self.directory = Path(directory or processes.directory())
        self.cache = cache or self.directory / "cache"
        choice = "" if traits is None else f", traits: {json.dumps(list(traits))}"
        (self.directory / "Sources/dependent").mkdir(parents=True)
        (self.directory / "Sources/dependent/main.swift").write_text(MAIN, encoding="utf-8")
        (self.directory / "Package.swift").write_text(
            f"""\
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "dependent",
    dependencies: [.package(name: "headroom", path: "{ROOT}"{choice})],
    targets: [
        .executableTarget(name: "dependent", dependencies: [.product(name: "HeadroomClient", package: "headroom")])
    ]
)
""",
            encoding="utf-8",
        )

    def swift(self, command, *arguments):
        """Runs `swift COMMAND` here, without the user's caches; returns what it printed. Shows the progress if it takes long."""
        log = self.directory / "swift.log"
        done = subprocess.run(
            [ROOT / "script/progress", self.directory.name, log, "swift", command, "--package-path", self.directory, "--cache-path",
             self.cache, *arguments],
            timeout=LIMIT_SECONDS, env=environment(**local_git()), check=False,
        )  # fmt: skip
        printed = log.read_text(encoding="utf-8", errors="replace")
        assert done.returncode == 0, f"swift {command} failed\n{printed[-4000:]}"
        return printed

    def packages(self):
        """The names of the fetched packages."""
        self.swift("package", "resolve")
        resolved = json.loads((self.directory / "Package.resolved").read_text(encoding="utf-8"))
        return {pin["identity"] for pin in resolved["pins"]}

    def build(self):
        return self.swift("build")


def c_module_options(built):
    """Compiler options to import the C modules that the built modules use."""
    headers = sorted((ROOT / ".build/checkouts").glob("*/Sources/*/include/module.modulemap"))
    maps = headers + sorted(built.glob("*.build/module.modulemap"))
    options = [option for place in maps for option in ("-Xcc", f"-fmodule-map-file={place}")]
    return options + [option for place in headers for option in ("-I", str(place.parent))]


class Manifest:
    """The modules that a target may import according to Package.swift, for a set of traits."""

    def __init__(self, traits):
        dumped = processes.completed(
            ["swift", "package", "--package-path", ROOT, "--scratch-path", processes.directory(), "dump-package"], check=True,
            env=environment(),
        ).stdout  # fmt: skip
        self.targets = {}
        """The targets by name, each with the targets of its own package that it depends on."""
        self.absent_products = set()
        """Dependencies that a target has with other traits only."""
        targets = json.loads(dumped)["targets"]
        names = {target["name"] for target in targets}
        for target in targets:
            self.targets[target["name"]] = []
            for dependency in target["dependencies"]:
                # {kind: [name, …, condition]}
                ((name, *_, condition),) = dependency.values()
                is_absent = not set((condition or {}).get("traits") or ()) <= set(traits)
                if name in names and not is_absent:
                    self.targets[target["name"]].append(name)
                elif is_absent:
                    self.absent_products.add(name)


class CompiledLibrary:
    """HeadroomClient, compiled with a set of traits and the modules of a build, in seconds instead of a minute. The compiler finds only
    modules that the manifest allows for these traits."""

    def __init__(self, traits, built):
        self.traits, self.built = traits, built
        self.directory = Path(processes.directory())
        self.options = ["-swift-version", "6", "-I", str(self.directory), *c_module_options(built)]
        self.manifest = Manifest(traits)
        hidden = self.manifest.absent_products | set(self.manifest.targets)
        for file in (built / "Modules").iterdir():
            if file.name.split(".")[0] not in hidden:
                (self.directory / file.name).symlink_to(file)
        self._compile("HeadroomClient")

    def _compile(self, target):
        """Compiles the target's module, after its dependencies."""
        module = f"{target}.swiftmodule"
        if (self.directory / module).exists():
            return
        for name in self.manifest.targets[target]:
            self._compile(name)
        sources = sorted((ROOT / "Sources" / target).rglob("*.swift"))
        if not any("\n#if " in "\n" + source.read_text(encoding="utf-8") for source in sources):
            # It is the same with all traits.
            (self.directory / module).symlink_to(self.built / "Modules" / module)
            return
        done = self._swiftc(
            "-emit-module", "-emit-module-path", self.directory / module, "-module-name", target, "-parse-as-library", "-wmo",
            "-warnings-as-errors", "-package-name", package_name(self.built), *[f"-D{trait}" for trait in self.traits], *sources,
        )  # fmt: skip
        assert done.returncode == 0, f"{target} does not compile with {self.traits}\n{done.stderr[-4000:]}"

    def _swiftc(self, *arguments):
        return subprocess.run(
            ["swiftc", *self.options, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=LIMIT_SECONDS, cwd=self.directory, check=False,
        )  # fmt: skip

    def errors_in(self, program):
        """The compiler's errors for a program that imports the library; empty if it compiles."""
        source = self.directory / "program.swift"
        source.write_text(program, encoding="utf-8")
        done = self._swiftc("-typecheck", "-parse-as-library", source)
        errors = re.findall(r"error: (.*)", done.stderr)
        assert bool(errors) == (done.returncode != 0), done.stderr
        return errors


def package_name(built):
    """The package name of `package` access: the clone directory's name, as the build has written it."""
    plan = (ROOT / f".build/{built.name}.yaml").read_text(encoding="utf-8")
    return re.search(r'"-module-name","HeadroomClient".*?"-package-name","(\w+)"', plan, re.DOTALL).group(1)


def built_directory(binary):
    """The tested build's modules."""
    return ROOT / ".build" / os.path.basename(os.path.dirname(binary))
