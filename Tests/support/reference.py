"""The tables of docs/reference/*.md. A name belongs to one row of one part."""

import os
import re

from support.printed import ROOT

FOLDER = "docs/reference"


def parts():
    """The path of each part, from the root of the repository."""
    return sorted(f"{FOLDER}/{name}" for name in os.listdir(os.path.join(ROOT, FOLDER)) if name.endswith(".md"))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tables(column, paths=None):
    """(path, cells) of each row of the tables whose first column has this heading, in all parts."""
    found = []
    for path in paths or parts():
        is_inside = False
        previous = ""
        for line in read(path).splitlines():
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not line.startswith("|"):
                is_inside = False
            elif not previous.startswith("|"):
                is_inside = cells[0] == column
            elif is_inside and not re.fullmatch("-+", cells[0]):
                found.append((path, cells))
            previous = line
    return found


def documented(column):
    """The row of each name in these tables, without the name: one cell may have several names. Fails if a name has two rows."""
    rows = {}
    for path, cells in tables(column):
        for name in re.findall(r"`([^`]+)`", cells[0]):
            if name in rows:
                raise AssertionError(f"{path} documents {name}, which another row documents already")
            rows[name] = cells[1:]
    return rows
