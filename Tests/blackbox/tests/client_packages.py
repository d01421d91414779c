"""The packages that script/package builds, installed into clean environments, where the programs of their pages are run."""

import filecmp
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

from support import processes
from support.case import Case
from support.nightly import nightly
from support.printed import ROOT, blocks
from support.users import new_user

ROOT = Path(ROOT).resolve()
PAGES = {"python": "clients/python/README.md", "node": "clients/node/README.md"}
USER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TYPED = """
import { Blocked, Headroom } from "headroom-client";

const headroom = new Headroom("http://127.0.0.1", { whenAway: (error) => (error.key ? "allow" : { status: "blocked", banner: "later" }) });
const text: string = await headroom.hold("user", { n: 2 }, async (hold) => { hold.amount = 1; return hold.answer.banner ?? ""; });
const { status, retryAfter } = await headroom.consume("user", { key: text });
if (status === "blocked") console.log(retryAfter?.toFixed());
const { modelRemaining, fallback } = await headroom.consume("team", { model: "large", member: "user" });
const { allowances } = await headroom.allowances("team");
const limits = allowances.filter(({ kind }) => kind === "model").map((each) => each.limit?.toFixed());
console.log(modelRemaining?.toFixed(), fallback?.trim(), limits);
console.log(Blocked.prototype instanceof Error);
"""


def run(command, directory, environment=None):
    done = processes.completed(command, cwd=directory, env=environment)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(processes.directory())
        cls.files = [Path(line) for line in run([ROOT / "script/package", cls.directory], "/").splitlines()]

    def test_is_a_wheel_a_source_archive_and_a_tarball_of_the_version_of_the_service(self):
        version = re.search(r'current = "(.*)"', (ROOT / "Sources/Engine/Schema/Version.swift").read_text())[1]
        expected = [f"headroom_client-{version}{end}" for end in ("-py3-none-any.whl", ".tar.gz")] + [f"headroom-client-{version}.tgz"]
        self.assertEqual([file.name for file in self.files], expected)
        self.assertEqual(sorted(file.name for file in self.directory.iterdir()), sorted(expected), "nothing else")

    def test_is_the_same_each_time(self):
        with tempfile.TemporaryDirectory() as again:
            for line in run([ROOT / "script/package", again], "/").splitlines():
                self.assertTrue(filecmp.cmp(line, self.directory / Path(line).name, shallow=False), line)

    def test_has_the_page_the_license_and_the_types(self):
        wheel, source, tarball = self.files
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (metadata,) = (name for name in names if name.endswith("/METADATA"))
            self.assertIn(b"To the first refusal", archive.read(metadata))
        self.assertLessEqual({"headroom_client/__init__.py", "headroom_client/py.typed"}, set(names))
        self.assertTrue(any(name.endswith("/licenses/LICENSE") for name in names), names)
        with tarfile.open(source) as archive:
            self.assertTrue(all(USER.search(name) is None and "test" not in name for name in archive.getnames()))
        with tarfile.open(tarball) as archive:
            packed = archive.getnames()
        self.assertEqual(set(packed), {f"package/{name}" for name in ("LICENSE", "README.md", "index.d.ts", "index.js", "package.json")})
        if shutil.which("npm"):  # it packs the same
            listed = json.loads(run(["npm", "pack", "--dry-run", "--json", "--offline"], ROOT / "clients/node"))
            self.assertEqual(sorted(f"package/{file['path']}" for file in listed[0]["files"]), sorted(packed))
        for folder in ("python", "node"):
            self.assertTrue(filecmp.cmp(ROOT / "LICENSE", ROOT / "clients" / folder / "LICENSE", shallow=False))


@nightly("`Package` reads what is in the packages")
class InstalledPackage(Case):
    SHARED = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = Path(processes.directory())
        run([ROOT / "script/package", cls.built], "/")

    def programs(self, page):
        """The programs of a page by file name, and each of its shell blocks with the output that is printed after it."""
        programs = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?\n)```$", (ROOT / page).read_text(), re.S | re.M))
        code = blocks(page)
        for block, after in zip(code, [*code[1:], None]):
            if block.language == "sh":
                output = after.text if after is not None and after.language == "text" else None
                yield programs, block.text, output

    def run_page(self, page, directory, environment, install):
        """Runs a page from its first command to its last, as a reader does. On a busy machine an attempt may take longer than the
        client's second, and the outputs differ; the page is then run again."""
        for _ in range(3):
            outputs = list(self.outputs_of_page(page, directory, environment, install))
            self.assertEqual(len(outputs), 2, "the first refusal, and what happens when Headroom is away")
            if all(printed == expected for _, printed, expected in outputs):
                break
        for command, printed, expected in outputs:
            self.assertEqual(printed, expected, command)

    def outputs_of_page(self, page, directory, environment, install):
        """What each of its commands prints, and what is on the page; with new users."""
        users = {}
        for programs, command, output in self.programs(page):
            for file, content in programs.items():
                (directory / file).write_text(content)
            if output is None:
                install(command)
                continue
            mine = USER.sub(lambda user: users.setdefault(user[0], new_user()), command)
            yield command, run(["bash", "-euc", mine], directory, environment), output

    def test_python_from_an_empty_environment_to_the_first_refusal(self):
        (wheel,) = self.built.glob("*.whl")
        directory = Path(processes.directory())
        run([sys.executable, "-m", "venv", directory / "venv"], directory)
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment["PATH"] = f"{directory}/venv/bin:{environment['PATH']}"

        def install(command):
            self.assertEqual(command, "python3 -m venv .venv\n. .venv/bin/activate\npip install ./clients/python\n")
            run(["pip", "install", "--quiet", f"{wheel}[http]"], directory, environment)

        for url in (f"headroom://127.0.0.1:{self.service.port}", self.service.address):
            with self.subTest(url=url):
                self.run_page(PAGES["python"], directory, {**environment, "HEADROOM_URL": url}, install)
        self.assertIn("venv/lib", run(["python3", "-c", "import headroom_client as it; print(it.__file__)"], directory, environment))

    def install_tarball(self, directory):
        (tarball,) = self.built.glob("headroom-client-*.tgz")
        if shutil.which("npm"):
            run(["npm", "install", "--offline", "--no-audit", "--no-fund", tarball], directory)
        else:
            # What npm does with a package without dependencies.
            target = directory / "node_modules/headroom-client"
            target.mkdir(parents=True, exist_ok=True)
            run(["tar", "-xzf", tarball, "--strip-components=1", "-C", target], directory)

    def test_node_from_an_empty_folder_to_the_first_refusal(self):
        if shutil.which("node") is None:
            self.skipTest("node is not installed; script/bootstrap --test installs it on Debian")
        directory = Path(processes.directory())

        def install(command):
            self.assertEqual(command, "npm install ../headroom/clients/node\n")
            if shutil.which("npm"):
                project = Path(processes.directory())
                run(["npm", "install", "--offline", "--no-audit", "--no-fund", ROOT / "clients/node"], project)
                imports = 'import { Headroom } from "headroom-client"; new Headroom("http://h")'
                run(["node", "--input-type=module", "--eval", imports], project)
            self.install_tarball(directory)

        self.run_page(PAGES["node"], directory, {**os.environ, "HEADROOM_URL": self.service.address}, install)

    def test_the_types_for_typescript_fit_a_program(self):
        if shutil.which("tsc") is None:
            self.skipTest("tsc is not installed (node-typescript); script/bootstrap --test installs it on Debian")
        directory = Path(processes.directory())
        self.install_tarball(directory)
        check = ["tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "typed.mts"]
        (directory / "typed.mts").write_text(TYPED)
        run(check, directory)
        (directory / "typed.mts").write_text(TYPED + 'await headroom.commit("user");\n')
        with self.assertRaisesRegex(AssertionError, "Expected 2 arguments"):
            run(check, directory)
