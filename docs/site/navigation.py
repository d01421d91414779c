"""The pages in navigation.yml, with their titles. Needs only PyYAML, so that the tests use it as well."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = Path(__file__).with_name("navigation.yml")


@dataclass
class Entry:
    path: str
    """From the repository's root."""
    line: str
    """One sentence, which says what is on the page."""

    @property
    def text(self):
        return (ROOT / self.path).read_text(encoding="utf-8")

    @property
    def title(self):
        return plain(re.search(r"^# (.+)$", self.text, re.M)[1])


@dataclass
class Group:
    name: str
    entries: list[Entry] = field(default_factory=list)
    groups: list["Group"] = field(default_factory=list)

    def drop_missing(self):
        """Removes pages that do not exist, and returns their paths."""
        missing = [entry.path for entry in self.entries if not (ROOT / entry.path).is_file()]
        self.entries = [entry for entry in self.entries if entry.path not in missing]
        return missing + [path for group in self.groups for path in group.drop_missing()]

    @property
    def all_entries(self):
        return self.entries + [entry for group in self.groups for entry in group.all_entries]


class Navigation:
    def __init__(self, text=None):
        tree = yaml.safe_load(text if text is not None else FILE.read_text(encoding="utf-8"))
        self.listed = set(paths_of(tree))
        self.groups = [self.group(name, items) for name, items in tree.items()]

    def group(self, name, items):
        group = Group(name)
        for item in items:
            (key, value), *_ = item.items()
            if isinstance(value, list):
                group.groups.append(self.group(key, value))
            elif "*" in key:
                found = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(key))
                group.entries += [Entry(path, first_sentence(ROOT / path)) for path in found if path not in self.listed]
            else:
                group.entries.append(Entry(key, value))
        return group

    def drop_missing(self):
        return [path for group in self.groups for path in group.drop_missing()]

    @property
    def entries(self):
        return [entry for group in self.groups for entry in group.all_entries]


def paths_of(tree):
    for items in tree.values():
        for item in items:
            for key, value in item.items():
                if isinstance(value, list):
                    yield from paths_of({key: value})
                else:
                    yield key


def plain(markdown):
    """A heading or a sentence without code marks, emphasis and links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").replace("*", "")


def first_sentence(path):
    """Of the first paragraph; of a decision, its question."""
    paragraphs = [part for part in path.read_text(encoding="utf-8").split("\n\n") if not part.startswith("#")]
    paragraph = " ".join(paragraphs[0].split()).removeprefix("**Question.** ")
    return plain(re.match(r"(.+?[.?!])(?: |$)|.+", paragraph)[0].strip())


def pages_of_the_repository():
    """Every page, but those of the Swift library's own documentation, which docc builds."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return sorted(path for path in listed if path and not path.startswith("Sources/") and (ROOT / path).is_file())
