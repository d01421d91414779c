"""The languages of the shipped words: the files of Sources/Usage/Words/Languages."""

from pathlib import Path

FILES = (Path(__file__).resolve().parents[2] / "Sources/Usage/Words/Languages").glob("*.properties")
WORDS = {
    file.stem: dict(line.split(" = ", 1) for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    for file in sorted(FILES)
}
"""By language: the text of each key."""


def lookup(language):
    """The language and more general ones, in the order in which a word is looked up."""
    subtags = language.split("-")
    return [tag for count in range(len(subtags), 0, -1) if (tag := "-".join(subtags[:count])) in WORDS]


def plural_form(language, number):
    """The column of headroom.words, by the rules of CLDR."""
    if number == 1:
        return "one"
    if "few" not in WORDS[language]["plurals"]:
        return "other"
    assert language == "pl", f"add the rule of {language}"
    return "few" if number % 10 in (2, 3, 4) and number % 100 not in (12, 13, 14) else "many"


def shipped(language, word, number):
    """The template for a number."""
    texts = (WORDS[tag].get(key) for tag in lookup(language) for key in (f"{word}.{plural_form(tag, number)}", f"{word}.other", word))
    return next(text for text in texts if text)
