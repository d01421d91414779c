"""Writes a manual page for the program and one for each of its commands, from what `headroom --help` says.

    manual_pages.py PROGRAM VERSION DIRECTORY

The argument parser's own generator is a plugin of the package manager, which would have to build the program again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# Exit statuses, files and environment stand once, in the page of the program.
SEE_ALSO = "The complete reference is docs/reference/ of the source code; /usr/share/doc/headroom/README.md has the first steps."


def escaped(text: str) -> str:
    """Text for roff: a backslash, and a dot or quote that begins a line, have a meaning there."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def spelled(argument: dict[str, Any]) -> str:
    """As a user types it: -h, --help, --listen VALUE, <user>."""
    value = argument.get("valueName", "")
    if argument["kind"] == "positional":
        return f"\\fI{escaped(value)}\\fR"
    names = [("--" if name["kind"] == "long" else "-") + name["name"] for name in argument["names"]]
    names.sort(key=len)
    shown = ", ".join(f"\\fB{escaped(name)}\\fR" for name in names)
    return f"{shown} \\fI{escaped(value)}\\fR" if argument["kind"] == "option" else shown


def described(argument: dict[str, Any]) -> str:
    text = escaped(argument.get("abstract", ""))
    if argument.get("discussion"):
        text += "\n.br\n" + escaped(argument["discussion"])
    if argument.get("defaultValue"):
        text += f" Default: {escaped(argument['defaultValue'])}."
    return text


def page(command: dict[str, Any], path: list[str], version: str, date: str) -> str:
    name = "-".join(path)
    lines = [f'.TH "{name.upper()}" "1" "{date}" "headroom {version}" "Headroom"', ".SH NAME"]
    lines.append(f"{escaped(name)} \\- {escaped(command.get('abstract', '').rstrip('.'))}")
    arguments = [each for each in command.get("arguments", []) if each.get("shouldDisplay", True)]
    commands = [each for each in command.get("subcommands", []) if each.get("shouldDisplay", True) and each["commandName"] != "help"]
    positional = [each for each in arguments if each["kind"] == "positional"]
    lines.append(".SH SYNOPSIS")
    words = [f"\\fB{escaped(' '.join(path))}\\fR"]
    if commands:
        words.append("\\fIcommand\\fR")
    if len(arguments) > len(positional):
        words.append("[\\fIoptions\\fR]")
    for each in positional:
        word = spelled(each) + ("..." if each.get("isRepeating") else "")
        words.append(f"[{word}]" if each.get("isOptional") else word)
    lines.append(" ".join(words))
    if command.get("discussion"):
        lines += [".SH DESCRIPTION", escaped(command["discussion"])]
    if commands:
        lines.append(".SH COMMANDS")
        for each in commands:
            lines += [".TP", f"\\fB{escaped(each['commandName'])}\\fR", escaped(each.get("abstract", ""))]
    for title, some in (("ARGUMENTS", positional), ("OPTIONS", [each for each in arguments if each["kind"] != "positional"])):
        if some:
            lines.append(f".SH {title}")
        for each in some:
            lines += [".TP", spelled(each), described(each)]
    lines.append(".SH SEE ALSO")
    if len(path) > 1:
        lines.append(f"\\fB{escaped('-'.join(path[:-1]))}\\fR(1)")
    elif commands:
        lines.append(", ".join(f"\\fB{escaped(name + '-' + each['commandName'])}\\fR(1)" for each in commands))
    lines += [".PP", escaped(SEE_ALSO)]
    return "\n".join(lines) + "\n"


def write(command: dict[str, Any], path: list[str], version: str, date: str, directory: Path) -> None:
    (directory / f"{'-'.join(path)}.1").write_text(page(command, path, version, date), encoding="utf-8")
    for each in command.get("subcommands", []):
        if each["commandName"] != "help":
            write(each, [*path, each["commandName"]], version, date, directory)


def main(program: str, version: str, directory: str) -> None:
    dump = subprocess.run([program, "--experimental-dump-help"], capture_output=True, text=True, check=True)
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    write(json.loads(dump.stdout)["command"], ["headroom"], version, date, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
