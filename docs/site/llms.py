"""llms.txt (https://llmstxt.org) and llms-full.txt, from the navigation."""

from navigation import ROOT, plain

SUMMARY = (
    "A service that a chat product asks before every message: may this user send another message, and what should we tell them? "
    "It counts in PostgreSQL, in a table called message_usage, and answers over a line protocol that Redis clients speak, over HTTP "
    "and from SQL."
)
OPTIONAL = "Internals"
"""The group that llmstxt.org calls `Optional`: what a reader with little room leaves out."""


def write_llms(navigation, site, address):
    """Writes both files, and the pages themselves at the paths that they have in the repository, so that their links work there, too.
    `address` is the site's, with a slash at its end; empty makes relative links."""
    (site / "llms.txt").write_text(short(navigation, address), encoding="utf-8")
    (site / "llms-full.txt").write_text(full(navigation), encoding="utf-8")
    for entry in navigation.entries:
        target = site / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(entry.text, encoding="utf-8")


def short(navigation, address):
    parts = [f"# Headroom\n\n> {SUMMARY}\n"]
    parts.append("Each page is Markdown at its path in the repository; llms-full.txt has all of them in one file.\n")
    for group in navigation.groups:
        parts.append(f"## {'Optional' if group.name == OPTIONAL else group.name}\n")
        parts.append("".join(f"- [{entry.title}]({address}{entry.path}): {plain(entry.line)}\n" for entry in group.all_entries))
    return "\n".join(parts)


def full(navigation):
    parts = [f"# Headroom\n\n> {SUMMARY}\n\nAll pages. A link is relative to the path of its page, which stands above it.\n"]
    for entry in navigation.entries:
        parts.append(f"\n---\n\nPath: {entry.path}\n\n{entry.text.rstrip()}\n")
    return "".join(parts)


def version():
    text = (ROOT / "Sources/Engine/Schema/Version.swift").read_text(encoding="utf-8")
    return text.split('current = "')[1].split('"')[0]
