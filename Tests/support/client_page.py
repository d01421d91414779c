"""Parses docs/clients.md: its programs, the commands that run them, and the packages to install."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "clients.md")
USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
"""The chapter's Markdown."""


@dataclass
class Chapter:
    title: str
    text: str

    @property
    def is_run(self):
        return "**The test does not run it" not in self.text

    @property
    def programs(self):
        """Each file's name and content."""
        return re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?\n)```$", self.text, re.S | re.M)

    @property
    def commands(self):
        """The shell blocks, one script each."""
        return re.findall(r"^```sh\n(.*?\n)```$", self.text, re.S | re.M)

    @property
    def blocks(self):
        return len(re.findall(r"^```\w+$", self.text, re.M))

    @property
    def packages(self):
        """The packages in the chapter's apt-get command."""
        return [name for line in re.findall(r"`apt-get install ([^`]*)`", self.text) for name in line.split()]


def chapters():
    """The chapters with code."""
    with open(PAGE) as file:
        parts = re.split(r"^##+ (.*)\n", file.read(), flags=re.M)
    all_chapters = [Chapter(title, text) for title, text in zip(parts[1::2], parts[2::2])]
    return [chapter for chapter in all_chapters if chapter.blocks]


@dataclass
class Printed:
    """A program with the command that runs it."""

    file: str
    content: str
    command: str
    packages: list

    def save(self, directory):
        with open(os.path.join(directory, self.file), "w") as file:
            file.write(self.content)


def printed_programs():
    """The programs that tests run, by file name."""
    programs = {}
    for chapter in chapters():
        if not chapter.is_run:
            continue
        for (file, content), command in zip(chapter.programs, chapter.commands):
            programs[file] = Printed(file=file, content=content, command=command, packages=chapter.packages)
    return programs


def missing(packages):
    """The packages that are not installed, as far as that can be determined."""
    if shutil.which("dpkg-query") is None:
        return []
    states = {
        name: subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status}", name], capture_output=True, text=True).stdout
        for name in packages
    }
    return [name for name, state in states.items() if state != "installed"]


def lines_without_program():
    """Commands that need no program."""
    return [command for chapter in chapters() if chapter.is_run for command in chapter.commands[len(chapter.programs) :]]
