"""The blocks of code in a page, and the commands in them."""

import calendar
import os
import re
import textwrap
from dataclasses import dataclass

MONTHS = calendar.month_name[1:]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
"""A block in a list is indented as the list's text."""
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)(?:(?: {4}.*)?\n)*")


def read(path):
    """The text of a file of the repository."""
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


@dataclass
class Block:
    heading: str
    """The nearest heading above it, with its number signs."""
    language: str
    """The language of a fenced block; `indented` for the others."""
    text: str

    @property
    def lines(self):
        return self.text.splitlines()


def blocks(name):
    """All blocks of a page, in order."""
    with open(os.path.join(ROOT, name)) as file:
        parts = re.split(r"^(##+ .+)\n", file.read(), flags=re.M)
    all_blocks = []
    for heading, text in zip(["", *parts[1::2]], parts[0::2]):
        # The line end of the heading, removed by the split.
        text = "\n" + text
        placed = [
            (match.start(), Block(heading=heading, language=match[2], text=textwrap.dedent(match[3]) if match[1] else match[3]))
            for match in FENCED.finditer(text)
        ]
        plain = FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)
        for match in INDENTED.finditer(plain):
            lines = [line[4:] for line in match[0].rstrip("\n").split("\n")]
            placed.append((match.start(), Block(heading=heading, language="indented", text="\n".join(lines) + "\n")))
        all_blocks += [block for _, block in sorted(placed, key=lambda pair: pair[0])]
    return all_blocks


def pattern(printed):
    """A printed answer as a regular expression: `…`, instants, months, days and tokens match anything, because they differ in each
    run."""
    parts = re.split(rf"(headroom_\w+…|…|\d{{4}}-\d\d-\d\dT[\d:]+Z|\b\d{{4}}-\d\d\b(?!-)|\b(?:{'|'.join(MONTHS)}) \d+)", printed)
    return "".join(part_pattern(part) if index % 2 else re.escape(part) for index, part in enumerate(parts))


def part_pattern(part):
    if part.split(" ")[0] in MONTHS:
        # With the year, if it is another one.
        return r"\w+ \d+(?:, \d{4})?"
    return {"…": ".*", "h": r"headroom_\S+"}.get(part[0], r"\S+")
