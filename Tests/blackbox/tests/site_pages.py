"""The site that script/docs builds: every page is in it, no link leads nowhere, it loads nothing from other hosts, and it can be read on a
desktop and on a phone, in light and dark."""

import functools
import html
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import types
import unittest
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from support import processes
from support.browser import Browser, looks, missing
from support.nightly import nightly
from support.printed import ROOT
from support.waiting import TIMEOUT_SECONDS, wait_until

ROOT = pathlib.Path(ROOT).resolve()
PAGES = (
    "", "reference/", "reference/settings/", "operations/", "clients/", "performance/", "install/",
    "decisions/0036-windows-in-the-usage-row/", "project/changelog/", "source/deploy/prometheus/rules.yml.html",
)  # fmt: skip
"""Pages with wide tables, long lines of code, pictures, lists in lists, and a file that is no page."""


def module(name):
    """A file of docs/site."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    try:
        spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/site/{name}.py")
        sys.modules[name] = loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded
    finally:
        sys.path.pop(0)


def build(root, *arguments):
    return subprocess.run(
        [root / "script/docs", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=TIMEOUT_SECONDS,
    )  # fmt: skip


class Navigation(unittest.TestCase):
    def setUp(self):
        self.navigation = module("navigation")
        self.read = self.navigation.Navigation()
        self.paths = [entry.path for entry in self.read.entries]

    def test_every_page_of_the_repository_is_there_once(self):
        pages = self.navigation.pages_of_the_repository()
        self.assertIn("docs/contributors/architecture.md", pages)
        self.assertEqual([path for path in pages if path not in self.paths], [], "add these pages to docs/site/navigation.yml")
        self.assertEqual([path for path in self.paths if path not in pages], [], "docs/site/navigation.yml has pages that do not exist")
        self.assertEqual(sorted({path for path in self.paths if self.paths.count(path) > 1}), [], "these pages are there twice")

    def test_every_page_has_a_title_and_a_line_of_its_own(self):
        lines = [entry.line for entry in self.read.entries]
        for entry in self.read.entries:
            with self.subTest(entry.path):
                self.assertTrue(entry.title)
                self.assertRegex(entry.line, r"^\S.{10,200}[.?!]$")
                self.assertEqual(lines.count(entry.line), 1)

    def test_a_missing_page_is_named(self):
        without = self.navigation.FILE.read_text().replace("  - docs/plans.md:", "  - docs/planned.md:")
        paths = [entry.path for entry in self.navigation.Navigation(without).entries]
        self.assertEqual(set(self.navigation.pages_of_the_repository()) - set(paths), {"docs/plans.md"})


@nightly("`Navigation` reads every page")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(processes.directory())
        cls.built = build(ROOT, "--output", cls.directory)
        if cls.built.returncode:
            raise AssertionError(cls.built.stdout)
        cls.entries = module("navigation").Navigation().entries

    def html(self):
        return {path.relative_to(self.directory): path.read_text() for path in self.directory.rglob("*.html")}

    def test_every_page_is_built_without_a_complaint(self):
        # The first build also says that it installs MkDocs.
        said = [line for line in self.built.stdout.splitlines() if not line.startswith("docs: installing ")]
        self.assertEqual(said, [f"docs: built {self.directory}"])
        pattern = re.compile(r"<h1[^>]*>(.*?)<a class=\"headerlink\"", re.S)
        plain = {html.unescape(re.sub(r"<[^>]+>", "", found[1])) for text in self.html().values() if (found := pattern.search(text))}
        self.assertEqual({entry.title for entry in self.entries} - plain, set())

    def test_nothing_is_loaded_from_another_host(self):
        loading = re.compile(r"<(?:script|img|iframe|source|video|object|embed)\b[^>]*\b(?:src|srcset|data)=[\"']?(?:https?:)?//[^>]*>|"
                             r"<link\b[^>]*\brel=[\"']?(?!canonical)[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>")  # fmt: skip
        self.assertTrue(loading.search('<link rel="stylesheet" href="https://fonts.example/css">'))
        for path, text in self.html().items():
            with self.subTest(path):
                self.assertIsNone(loading.search(text))
        for path in self.directory.rglob("*.css"):
            with self.subTest(path):
                self.assertNotRegex(path.read_text(), r"(url\(|@import)\s*[\"']?(https?:)?//")

    def test_links_in_pages_as_markdown_lead_somewhere(self):
        for entry in self.entries:
            self.assertEqual((self.directory / entry.path).read_text(), entry.text)
        links = (
            "deploy/systemd/headroom.service", "docs/openapi.json", "docs/performance/curves.svg",
            "Examples/ChatBackend/EventStream.swift",
        )  # fmt: skip
        for link in links:
            with self.subTest(link):
                self.assertEqual((self.directory / link).read_bytes(), (ROOT / link).read_bytes())

    def test_llms_txt_has_every_page_once(self):
        text = (self.directory / "llms.txt").read_text()
        self.assertRegex(text, r"\A# Headroom\n\n> .+\n\n[^#\n].+\n\n## Start\n\n- ")
        self.assertRegex(text, r"\n\n## Optional\n\n- ")
        listed = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", text, re.M)
        self.assertEqual(listed, [(entry.title, entry.path, module("navigation").plain(entry.line)) for entry in self.entries])
        rest = [line for line in text.splitlines() if line and not line.startswith(("- [", "## "))]
        self.assertEqual(len(rest), 3, "a title, a summary, a sentence")

    def test_llms_full_txt_has_the_text_of_every_page_once(self):
        text = (self.directory / "llms-full.txt").read_text()
        self.assertEqual(re.findall(r"^---\n\nPath: (.+)$", text, re.M), [entry.path for entry in self.entries])
        for entry in self.entries:
            self.assertEqual(text.count(f"\nPath: {entry.path}\n\n{entry.text.rstrip()}\n"), 1, entry.path)


@nightly("`Navigation` reads every page")
class Faults(unittest.TestCase):
    """A repository of its own with faults in its pages."""

    PAGES = {
        "README.md": "# One\n\n[gone](docs/gone.md), [no such part](docs/two.md#gone), [a folder](gone/), [here](#nowhere)\n\n"
        '<picture><source media="(prefers-color-scheme: dark)" srcset="docs/dark.svg"><img src="docs/light.svg" alt="A flow"></picture>\n\n'
        '<img src="docs/gone.png" alt="Nothing">\n',
        "docs/two.md": "# Two\n\nA text\n- with a list\n\n1. A step\n\n   of two paragraphs.\n\n   ```sh\n   echo 1\n   ```\n2. Another\n",
        "docs/three.md": "# Three\n\n\\*[a]: an abbreviation\n\nTerm\n: [two](two.md), [C#](two.md#two)\n",
    }

    def test_each_is_named(self):
        root = pathlib.Path(processes.directory())
        shutil.copytree(ROOT / "docs/site", root / "docs/site", ignore=shutil.ignore_patterns("__pycache__"))
        for path in ("script/docs", "Sources/Engine/Schema/Version.swift"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, root / path)
        for path, text in {**self.PAGES, "docs/light.svg": "<svg/>", "docs/dark.svg": "<svg/>"}.items():
            (root / path).write_text(text)
        navigation = "Start:\n  - README.md: One page.\n  - docs/two.md: Two pages.\n  - docs/three.md: Three pages.\n"
        (root / "docs/site/navigation.yml").write_text(navigation + "  - docs/missing.md: No page.\n")
        if not (ROOT / ".build/docs/headroom-ready").exists():
            build(ROOT, "--output", processes.directory())
        (root / ".build").mkdir()
        (root / ".build/docs").symlink_to(ROOT / ".build/docs")
        result = build(root)
        self.assertEqual(result.returncode, 1)
        for named in (
            "navigation.yml has docs/missing.md", "'docs/gone.md'", "does not contain an anchor '#gone'",
            "unrecognized relative link 'gone/'", "'#nowhere', but there is no such anchor", 'README.md has src="docs/gone.png"',
        ):  # fmt: skip
            self.assertIn(named, result.stdout)
        self.assertNotIn("three.md' contains", result.stdout)
        self.assertNotIn("two.md would differ", result.stdout)
        # Without the faults it is built, with lists and pictures as they are meant.
        (root / "docs/site/navigation.yml").write_text(navigation)
        (root / "README.md").write_text(re.sub(r"\[gone\].*|<img src=\"docs/gone.*", "", self.PAGES["README.md"]))
        result = build(root, "--url", "https://headroom.example/docs")
        self.assertEqual((result.returncode, result.stdout), (0, "docs: built .build/site\n"))
        home, two = (root / ".build/site" / path for path in ("index.html", "two/index.html"))
        for scheme in ("light", "dark"):
            self.assertIn(f'<img src="docs/{scheme}.svg#only-{scheme}" alt="A flow">', home.read_text())
        article = two.read_text().split("<article")[1].split("</article>")[0]
        self.assertEqual((article.count("<ul>"), article.count("<ol>"), article.count("<li>")), (1, 1, 3))
        self.assertIn("(https://headroom.example/docs/docs/two.md): Two pages.", (root / ".build/site/llms.txt").read_text())


class Handler(SimpleHTTPRequestHandler):
    def end_headers(self):
        # A browser then reports whatever would be loaded from elsewhere.
        self.send_header("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; img-src 'self' data:; worker-src 'self' blob:")
        super().end_headers()

    def log_message(self, *arguments):
        pass


@nightly("`Navigation` reads every page")
@unittest.skipIf(missing() and not os.environ.get("CI"), missing())
class InTheBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = processes.directory()
        built = build(ROOT, "--output", cls.directory)
        if built.returncode:
            raise AssertionError(built.stdout)
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=cls.directory))
        cls.server.daemon_threads = True
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.browser = Browser(types.SimpleNamespace(address=f"http://127.0.0.1:{cls.server.server_address[1]}/"))
        cls.addClassCleanup(cls.browser.close)

    def test_every_page_fits_its_window_and_can_be_read_by_everyone(self):
        for number, page in enumerate(PAGES):
            for width, scheme in looks(number):
                with self.subTest(page, width=width, scheme=scheme):
                    self.browser.set_appearance(width, scheme)
                    self.browser.open(page)
                    # Its scripts have made the code's buttons.
                    if self.browser.all("pre code"):
                        wait_until(lambda: self.browser.all(".md-clipboard, .md-code__button"), "the buttons that copy code")
                    self.browser.picture(f"site-{page.replace('/', '-') or 'home'}")
                    self.assertLessEqual(self.browser.overflow(), 0)
                    self.assertEqual(self.browser.axe(impacts=("serious", "critical")), [])
                    background = self.browser.run("return getComputedStyle(document.body).backgroundColor")
                    dark = sum(int(part) for part in re.findall(r"\d+", background)[:3]) < 300
                    self.assertEqual(dark, scheme == "dark")
        self.assertEqual(self.browser.complaints(), [])
        hosts = self.browser.run("return performance.getEntriesByType('resource').map(entry => new URL(entry.name).host)")
        self.assertEqual(set(hosts), {f"127.0.0.1:{self.server.server_address[1]}"})

    def test_search_finds_a_field(self):
        for width in ("desktop", "phone"):
            with self.subTest(width):
                self.browser.set_appearance(width, "light")
                self.browser.open("")
                if width == "phone":
                    self.browser.find("label.md-header__button[for=__search]").click()
                field = self.browser.find("input.md-search__input")
                wait_until(field.is_displayed, "the field")
                field.send_keys("retry_after")
                found = wait_until(lambda: self.browser.text(".md-search-result__list"), "results")
                self.assertIn("retry_after", found)
                self.assertIn("Fields\n", found)
                self.browser.picture("site-search")
        self.assertEqual(self.browser.complaints(), [])
