"""What script/release makes: archives with the same bytes each time, and a package that a Debian without a toolchain installs,
upgrades, removes and purges."""

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path

from support import clones, processes, settings
from support.nightly import nightly
from support.printed import ROOT, blocks, pattern
from support.waiting import TIMEOUT_SECONDS, wait_until

VERSION = re.search(r'current = "(.*)"', Path(ROOT, "Sources/Engine/Schema/Version.swift").read_text())[1]
OLD_VERSION = "0.0.9"
# Of the installed system, what changes without the package.
PASSING = re.compile(r"^/(proc|dev|sys|tmp|root|run|var/(cache|log)|var/lib/(apt|dpkg|postgresql)|etc/(passwd|group|g?shadow)-?$)(/|$)")
# What the package needs, and PostgreSQL for the service's private one; with these it is installed without a network.
INCLUDED = "ca-certificates,init-system-helpers,postgresql,procps,python3-redis,systemd-standalone-sysusers,systemd-standalone-tmpfiles"
PAGE = "docs/install.md"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def os_release():
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def run(*arguments, **options):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=1500, **options)
    if done.returncode != 0:
        raise processes.Failure(f"{' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def lines_of_page():
    return [line for block in blocks(PAGE) if block.language == "sh" for line in block.lines]


def release(directory, *flags, **options):
    run(ROOT + "/script/release", VERSION, "--rehearse", "--program", settings.binary, "--output", directory, *flags, **options)
    return Path(directory)


class NoDebian(Exception):
    """The packages of another Debian cannot be had."""


class Machine:
    """A Debian in a directory, with a network and processes of its own."""

    def __init__(self):
        self.root = Path(processes.directory()) / "debian"
        self.install_debian()
        mounts = [
            f"mount --types proc proc {self.root}/proc",
            f"mount --bind /dev {self.root}/dev",
            f"mount --types tmpfs tmpfs {self.root}/dev/shm",
            "ip link set lo up",
        ]
        for folder in self.libraries():
            (self.root / folder.lstrip("/")).mkdir(parents=True)
            mounts.append(f"mount --bind {folder} {self.root}{folder}")
        script = " && ".join([*mounts, "echo ready", "exec sleep infinity"])
        self.log = processes.directory() + "/machine.log"
        own = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
        self.process = processes.start([*own, "sh", "-ec", script], stop_signal=signal.SIGKILL, log=self.log)
        wait_until(lambda: "ready" in Path(self.log).read_text(), lambda: "the machine runs: " + Path(self.log).read_text())
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.enter = ["nsenter", "--target", children[0], "--mount", "--pid", "--net", "chroot", str(self.root)]

    def install_debian(self):
        # It mounts the directories of this machine, and one that was stopped may delete what is in them.
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        done = subprocess.run(
            [
                *own, "sh", "-ec", 'mount --types tmpfs tmpfs /dev/shm; exec "$@"', "sh",
                "mmdebstrap", "--variant=apt", "--mode=root", "--skip=cleanup/apt/lists", "--include=" + INCLUDED,
                # Of Debian's own cluster nothing is needed.
                '--essential-hook=mkdir -p "$1"/etc/postgresql-common',
                '--essential-hook=echo "create_main_cluster = false" > "$1"/etc/postgresql-common/createcluster.conf',
                os_release()["VERSION_CODENAME"], str(self.root),
            ],
            capture_output=True, text=True, timeout=1500, preexec_fn=lambda: processes.die_with_parent(signal.SIGKILL),
        )  # fmt: skip
        if done.returncode != 0:
            raise NoDebian(done.stderr[-500:])

    @staticmethod
    def libraries():
        """Folders with the libraries of a program that was not linked for a release: those of the toolchain."""
        paths = re.findall(r"=> (/\S+)", run("ldd", settings.binary))
        return sorted({os.path.dirname(path) for path in paths} - {"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"})

    def run(self, command):
        return run(*self.enter, "env", "-i", PATH, "DEBIAN_FRONTEND=noninteractive", "sh", "-ec", command)

    def files(self):
        """What is installed, but for what passes."""
        return {path for path in self.run("find / -xdev").splitlines() if not PASSING.match(path)}

    def exists(self, path):
        return os.path.lexists(self.root / path.lstrip("/"))

    def serve(self):
        """Starts the service as the page says."""
        (line,) = [line for line in lines_of_page() if line.endswith("postgresql") and "serve" in line]
        log = processes.directory() + "/service.log"
        process = processes.start([*self.enter, "sh", "-c", "exec " + line], log=log)
        wait_until(lambda: "ready listen=" in Path(log).read_text(), lambda: "it serves: " + Path(log).read_text())
        return process

    def stop(self, process):
        self.run("pkill --signal TERM --exact headroom")
        self.assert_ended(process)

    @staticmethod
    def assert_ended(process):
        if process.wait(TIMEOUT_SECONDS) != 0:
            raise processes.Failure(f"the service ended with {process.returncode}")


class ReleaseCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("dpkg-deb", "dpkg-shlibdeps", "ssh-keygen"):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed; script/bootstrap --test does it")
        cls.dist = release(processes.directory())
        cls.package = next(cls.dist.glob("*.deb"))


class Packages(ReleaseCase):
    @nightly("script/nightly release builds twice")
    def test_the_same_files_give_the_same_bytes(self):
        sums = (self.dist / "SHA256SUMS").read_text()
        names = [line.split()[1] for line in sums.splitlines()]
        self.assertEqual(len(names), 4, names)
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=self.dist)
        self.assertEqual((release(processes.directory()) / "SHA256SUMS").read_text(), sums)

    @nightly("the archive is read, and a key that cannot be read is refused")
    def test_a_user_verifies_what_was_signed_and_finds_a_changed_file(self):
        """With the lines of both pages, and a key that asks for its passphrase on standard input."""
        home, clone = Path(processes.directory()), Path(processes.directory())
        (home / ".ssh").mkdir(mode=0o700)
        (clone / "deploy/release").mkdir(parents=True)
        own = {"env": {**os.environ, "HOME": str(home)}, "start_new_session": True}
        making = next(block for block in blocks("CONTRIBUTING.md") if "ssh-keygen" in block.text)
        run("bash", "-euc", making.text, cwd=clone, input="of a test\n" * 2, **own)
        (step,) = re.findall(r"`script/release VERSION --tag --sign (\S+)`", Path(ROOT, "CONTRIBUTING.md").read_text())
        dist = release(processes.directory(), "--sign", step.replace("~", str(home)), input="of a test\n", **own)
        self.assertEqual((dist / "SHA256SUMS").read_text(), (self.dist / "SHA256SUMS").read_text(), "the files are the same")

        shutil.copy(clone / "deploy/release/allowed_signers", dist)
        verify, compare = (line for line in lines_of_page() if "SHA256SUMS" in line)
        (good,) = re.findall(r"It prints `(Good .*?)`", Path(ROOT, PAGE).read_text())
        self.assertTrue(run("bash", "-euc", verify, cwd=dist).startswith(good + " "))
        self.assertEqual(run("bash", "-euc", compare, cwd=dist).count(": OK\n"), 4)

        def fails(line):
            return subprocess.run(["bash", "-euc", line], cwd=dist, capture_output=True, timeout=TIMEOUT_SECONDS).returncode != 0

        self.assertTrue(fails(verify.replace("-n headroom-release", "-n file")), "signed for a release only")
        with open(next(dist.glob("*.deb")), "ab") as package:
            package.write(b"changed")
        self.assertTrue(fails(compare))
        self.assertFalse(fails(verify))
        (dist / "SHA256SUMS").write_text(run("sha256sum", *(path.name for path in self.dist.iterdir() if "SHA" not in path.name), cwd=dist))
        self.assertFalse(fails(compare), "whoever changed the file wrote its checksum")
        self.assertTrue(fails(verify))
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dist / "other")
        (dist / "SHA256SUMS.sig").unlink()
        run("ssh-keygen", "-q", "-Y", "sign", "-n", "headroom-release", "-f", dist / "other", dist / "SHA256SUMS")
        self.assertTrue(fails(verify), "signed by somebody else")

    @nightly("the archive is read")
    def test_a_release_without_a_key_has_no_signature(self):
        directory = processes.directory()
        Path(directory, "SHA256SUMS.sig").write_text("of another release")
        release(directory)
        self.assertEqual(sorted(path.name for path in Path(directory).iterdir()), sorted(path.name for path in self.dist.iterdir()))
        self.assertFalse(Path(directory, "SHA256SUMS.sig").exists())

    def test_a_key_that_cannot_be_read_ends_the_release_before_the_build(self):
        arguments = [ROOT + "/script/release", VERSION, "--rehearse", "--program", settings.binary, "--output", processes.directory()]
        done = processes.completed([*arguments, "--sign", "/nonexistent"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("release: /nonexistent is not an SSH key", done.stderr)
        # As of a variable that is not set.
        self.assertEqual(subprocess.run([*arguments, "--sign", ""], capture_output=True, timeout=TIMEOUT_SECONDS).returncode, 2)

    def test_two_releases_are_not_built_at_once(self):
        # All are built in one place, so that they have the same bytes. Shared, for other runs of this test; if a release is being
        # built at this moment, it has the lock.
        with open("/var/tmp/headroom-release.lock", "a") as lock:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with self.assertRaisesRegex(processes.Failure, "another release is being built in /var/tmp/headroom-release; wait for its end"):
                run(ROOT + "/script/release", VERSION, "--rehearse", "--output", processes.directory())

    def test_the_archive_has_the_program_its_units_and_pages_for_each_command(self):
        directory = processes.directory()
        with tarfile.open(next(self.dist.glob("headroom-*.tar.gz"))) as archive:
            for member in archive.getmembers():
                self.assertEqual((member.uid, member.gid, member.mode & 0o022), (0, 0, 0), member.name)
            archive.extractall(directory, filter="data")
        (home,) = Path(directory).iterdir()
        self.assertEqual(home.name, f"headroom-{VERSION}-linux-{platform.machine()}")
        self.assertRegex(run(str(home / "bin/headroom"), "--version"), r"^\d+\.\d+\.\d+")
        pages = {path.name.removesuffix(".1.gz") for path in (home / "share/man/man1").iterdir()}
        self.assertEqual(pages, set(self.commands()))
        for name in ("lib/systemd/system/headroom.service", "share/bash-completion/completions/headroom", "share/doc/headroom/copyright"):
            self.assertTrue((home / name).is_file(), name)
        licenses = (home / "share/doc/headroom/third-party-licenses.txt").read_text(encoding="utf-8")
        for package in self.dependencies():
            self.assertRegex(licenses, rf"(?m)^{package}, LICENSE", package)
        # The runtime's license has an exception that the packages' license lacks.
        self.assertIn("Runtime Library Exception", licenses)

    @nightly("built_programs.BuiltPrograms takes an archive")
    def test_a_clone_takes_both_archives(self):
        clone = clones.make()
        shutil.copytree(self.dist, clone / "dist")
        done = processes.completed([clone / "script/program", "chat-backend"])
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        # Only a build for a release has its commit.
        self.assertIn("it does not say of which commit it is", done.stderr)
        (home,) = (clone / ".build/programs").iterdir()
        for name in ("headroom", "chat-backend", "headroom_chat-backend.resources/Page"):
            self.assertTrue((home / "bin" / name).exists(), name)

    def dependencies(self):
        """The names of the Swift packages that a release is built from, with their versions."""
        lines = Path(ROOT, "deploy/release/dependencies.txt").read_text(encoding="utf-8").splitlines()
        return dict(line.split(" ") for line in lines)

    def test_the_bill_of_materials_has_every_package_with_its_version_and_license(self):
        script = str(Path(ROOT, "deploy/release/bill_of_materials.py"))
        build, libraries = str(Path(ROOT, ".build")), "libc6 (>= 2.35), libpq5 (>= 14~~)"
        arguments = [sys.executable, script, build, VERSION, "6.3.1", libraries]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        first, second = (processes.completed(arguments, check=True, env=environment).stdout for _ in range(2))
        self.assertEqual(first, second)
        bill = json.loads(first)
        self.assertEqual((bill["bomFormat"], bill["metadata"]["timestamp"]), ("CycloneDX", "2023-11-14T22:13:20Z"))
        components = {each["name"]: each for each in bill["components"]}
        self.assertEqual(
            {name: each["version"] for name, each in components.items() if each["purl"].startswith("pkg:swift/")},
            self.dependencies(),
        )
        self.assertEqual(components["swift-runtime"]["licenses"], [{"expression": "Apache-2.0 WITH Swift-exception"}])
        self.assertTrue(all(each.get("licenses") for name, each in components.items() if name not in ("libc6", "libpq5")))
        self.assertEqual(set(bill["dependencies"][0]["dependsOn"]), {each["bom-ref"] for each in bill["components"]})

    def commands(self):
        """The names of the pages: of the program, and of each command."""
        dump = json.loads(run(settings.binary, "--experimental-dump-help"))
        names, rest = [], [(["headroom"], dump["command"])]
        while rest:
            path, command = rest.pop()
            names.append("-".join(path))
            rest += [([*path, each["commandName"]], each) for each in command.get("subcommands", []) if each["commandName"] != "help"]
        return names

    def test_a_manual_page_says_what_help_says(self):
        if shutil.which("man") is None:
            self.skipTest("man is not installed; script/bootstrap --test does it")
        directory = processes.directory()
        run("dpkg-deb", "--extract", str(self.package), directory)
        page = f"{directory}/usr/share/man/man1/headroom-serve.1.gz"
        wide = {**os.environ, "MANWIDTH": "1000"}
        done = processes.completed(["man", "--warnings", "--local-file", page], env=wide)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in re.findall(r"--[a-z-]+", run(settings.binary, "serve", "--help")):
            self.assertIn(option, done.stdout)

    def test_the_package_has_a_unit_that_systemd_takes(self):
        directory = processes.directory()
        run("dpkg-deb", "--extract", str(self.package), directory)
        unit = Path(directory) / "usr/lib/systemd/system/headroom.service"
        text = unit.read_text()
        for line in (
            "ExecStart=/usr/bin/headroom serve", "EnvironmentFile=-/etc/default/headroom", "StateDirectory=headroom",
            "Environment=HEADROOM_DATA_DIR=/var/lib/headroom/postgresql", "TimeoutStopSec=60", "KillMode=mixed",
        ):  # fmt: skip
            self.assertEqual(text.count(line + "\n"), 1, line)
        unit.write_text(text.replace("/usr/bin/headroom ", settings.binary + " "))
        done = processes.completed(["systemd-analyze", "verify", "--man=no", unit])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_release_needs_its_version_in_the_clone(self):
        done = processes.completed([ROOT + "/script/release", "99.0.0", "--output", self.dist])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^release: (the clone has changes|Sources/Engine/Schema/Version.swift has another version)")
        self.assertEqual(subprocess.run([ROOT + "/script/release", "v1"], capture_output=True).returncode, 2)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to enter another Debian")
@unittest.skipUnless(os_release().get("ID") == "debian", "needs Debian")
@nightly("`Packages` reads the package; script/nightly release installs it")
class OnAnotherMachine(ReleaseCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if shutil.which("mmdebstrap") is None:
            raise unittest.SkipTest("mmdebstrap is not installed; script/bootstrap --test does it")
        try:
            cls.machine = Machine()
        except NoDebian as error:
            raise unittest.SkipTest(f"another Debian cannot be made here: {error}") from None

    def install(self, package):
        shutil.copy(package, self.machine.root / "root")
        # Without a network.
        self.machine.run(f"apt-get install --yes --quiet --quiet /root/{Path(package).name}")

    def older(self):
        """The same package as an older version."""
        directory = processes.directory()
        run("dpkg-deb", "--raw-extract", str(self.package), directory + "/package")
        control = Path(directory) / "package/DEBIAN/control"
        control.write_text(control.read_text().replace(f"Version: {VERSION}\n", f"Version: {OLD_VERSION}\n"))
        path = f"{directory}/headroom_{OLD_VERSION}.deb"
        run("dpkg-deb", "--build", "--root-owner-group", "-Znone", directory + "/package", path)
        return path

    def first_answer(self):
        """README.md's first request, and its answer with any number of messages used."""
        block = next(block for block in blocks("README.md") if "headroom ask 'CONSUME" in block.text)
        request, printed = block.text.strip().split("\n")
        answer = pattern(printed).replace("used=1", r"used=(\d+)").replace("99", r"\d+")
        return request.removeprefix("$ script/"), answer

    def test_installs_serves_upgrades_and_is_removed_without_a_trace_but_the_data(self):
        machine = self.machine
        before = machine.files()
        request, answer = self.first_answer()
        settings_file, data = "/etc/default/headroom", "/var/lib/headroom"
        wanted = "/etc/systemd/system/multi-user.target.wants/headroom.service"

        self.install(self.older())
        self.assertTrue(machine.exists(wanted), "it starts with the machine")
        self.assertEqual(machine.run(f"stat --format='%a %U' {settings_file} {data}"), "600 root\n700 headroom\n")
        process = machine.serve()
        self.assertEqual(re.fullmatch(answer, machine.run(request).strip())[1], "1")
        machine.stop(process)

        # The second as `systemctl disable` does it.
        machine.run(f"echo HEADROOM_LOG_LEVEL=warning >> {settings_file}; rm {wanted}")
        self.install(self.package)
        self.assertIn(f"\nVersion: {VERSION}\n", machine.run("dpkg --status headroom"))
        self.assertIn("HEADROOM_LOG_LEVEL=warning", machine.run(f"cat {settings_file}"))
        self.assertFalse(machine.exists(wanted), "an operator has disabled it")
        process = machine.serve()
        self.assertEqual(re.fullmatch(answer, machine.run(request).strip())[1], "2")
        machine.stop(process)

        machine.run("apt-get remove --yes --quiet --quiet headroom")
        self.assertFalse(machine.exists("/usr/bin/headroom"))
        self.assertTrue(machine.exists(settings_file))
        machine.run("apt-get purge --yes --quiet --quiet headroom")
        left = machine.files() - before
        self.assertTrue(left and all(path == data or path.startswith(data + "/") for path in left), sorted(left)[:20])
        self.assertIn("headroom", machine.run("stat --format=%U " + data), "nobody else gets its files")

        self.install(self.package)
        machine.run(f"rm -r {data}/*")
        machine.run("apt-get purge --yes --quiet --quiet headroom")
        self.assertEqual(machine.files() ^ before, set())
        self.assertNotIn("headroom", machine.run("cat /etc/passwd /etc/group"))

    def test_the_lines_of_the_page_install_it(self):
        machine, folder = self.machine, "/root/download"
        shutil.copytree(self.dist, machine.root / folder.lstrip("/"))
        # Packages has verified a signature. systemd does not run here.
        lines = [line for line in lines_of_page() if not line.startswith(("ssh-keygen ", "systemctl ")) and " serve " not in line]
        self.assertEqual(
            [line.split()[0] for line in lines],
            ["sha256sum", "apt", "headroom", "apt", "runuser", "mv", "runuser", "tar", "headroom"],
        )
        check, install, ask, library, dump, move, restore, unpack, version = (f"cd {folder}; {line}" for line in lines)
        self.assertEqual(machine.run(check).count(": OK\n"), 4)
        machine.run(install)
        process = machine.serve()
        self.assertTrue(machine.run(ask).startswith("+ALLOWED "))
        machine.run(library)
        (program,) = [block for block in blocks(PAGE) if block.language == "python"]
        (machine.root / "root/program.py").write_text(program.text)
        self.assertTrue(machine.run("/usr/bin/python3 /root/program.py").startswith("BLOCKED "))
        machine.run(dump)
        machine.stop(process)
        machine.run(move)
        process = machine.serve()
        self.assertIn(" used=1 ", machine.run(ask), "an empty database")
        machine.run(restore)
        machine.stop(process)
        process = machine.serve()
        self.assertIn(" used=2 ", machine.run(ask), "what the dump had")
        machine.stop(process)
        machine.run("rm -r /var/lib/headroom/*; apt-get purge --yes --quiet --quiet headroom")
        self.assertEqual(machine.run(unpack), "")
        self.assertRegex(machine.run(version), r"^\d+\.\d+\.\d+")
        machine.run("find /usr/local -type f -delete")
