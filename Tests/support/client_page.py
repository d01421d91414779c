"""The programs of docs/clients.md: those that its tables name, and the one that is printed there, with the packages to install."""

import os
import re
import shutil
from dataclasses import dataclass

from . import processes
from .printed import blocks, read

PAGE = "docs/clients.md"
FOLDER = "Examples/RedisClients"
USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
# Language, installation, file, command, and how it was checked if no test runs it.
ROW = re.compile(rf"^\| [^|]+ \| ([^|]*) \| \[([\w.]+)\]\(\.\./{FOLDER}/\2\) \| `([^|`]+)` \|(?: (.+) \|)?$", re.M)


@dataclass
class Printed:
    """A program with the command that runs it."""

    file: str
    content: str
    command: str
    packages: list
    is_run: bool = True

    def save(self, directory):
        with open(os.path.join(directory, self.file), "w") as file:
            file.write(self.content)


def printed_programs():
    """The programs by file name, with those that no test runs."""
    programs = {}
    for installation, file, command, checked in ROW.findall(read(PAGE)):
        packages = [name for names in re.findall(r"`apt-get install ([^`]*)`", installation) for name in names.split()]
        content = read(os.path.join(FOLDER, file))
        programs[file] = Printed(file, content, f"{command} {USER} message-1", packages, is_run=not checked)
    ((file, content),) = re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?\n)```$", read(PAGE), re.S | re.M)
    (command,) = (text for text in commands() if file in text)
    programs[file] = Printed(file, content, command, [])
    return programs


def commands():
    """The shell blocks of the page, one script each."""
    return [block.text for block in blocks(PAGE) if block.language == "sh"]


def missing(packages):
    """The packages that are not installed, as far as that can be determined."""
    if shutil.which("dpkg-query") is None:
        return []
    states = {name: processes.completed(["dpkg-query", "-W", "-f=${db:Status-Status}", name]).stdout for name in packages}
    return [name for name, state in states.items() if state != "installed"]


def lines_without_program():
    """Commands that need no program."""
    programs = printed_programs()
    return [command for command in commands() if not any(file in command for file in programs)]
