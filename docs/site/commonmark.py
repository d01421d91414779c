"""Pages are written in GitHub's dialect of CommonMark; the site is made by Python-Markdown, which reads some of it differently."""

import functools
import html.parser
import re

from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ITEM = re.compile(r"([-*+]|\d{1,9}[.)])( +|$)")
COMPARED = {"ul", "ol", "li", "table", "tr", "th", "td", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"}
COMPARED |= {"code", "strong", "em", "del", "a", "img", "hr"}


@functools.cache
def parse(text):
    return PARSER.parse(text)


def for_python_markdown(text):
    """The same page, as Python-Markdown reads it: contents of list items indented by four columns for each level, a blank line before
    a list, no number at the start of a line of text, no backslash before a pipe in a table's code."""
    lines = text.split("\n")
    indented_items(lines, parse(text))
    return "\n".join(lines)


def indented_items(lines, tokens):
    """Changes the lines in place, so that their numbers stay those of the tokens; a line may then contain a line end."""
    levels = [[] for _ in lines]
    """For each line, the items that it is in: the numbers of their first lines."""
    blank_before, separated = set(), set()
    for position, token in enumerate(tokens):
        if token.type == "list_item_open":
            for number in range(*token.map):
                levels[number].append(token.map[0])
            # After an item of several paragraphs.
            if any(not line.strip() for line in lines[slice(*token.map)]):
                blank_before.add(token.map[1])
        elif token.type in ("bullet_list_open", "ordered_list_open", "table_open"):
            # Two lists of different kinds, one after the other.
            if position and tokens[position - 1].type in ("bullet_list_close", "ordered_list_close"):
                separated.add(token.map[0])
            follows = position and tokens[position - 1].type in ("paragraph_close", "heading_close")
            if follows and lines[token.map[0] - 1].strip() and (token.type == "table_open" or token.level == 0):
                blank_before.add(token.map[0])
        elif token.type in ("fence", "code_block", "html_block"):
            if token.level:
                blank_before.add(token.map[1])
        elif token.type == "inline" and tokens[position - 1].type == "paragraph_open":
            for number in range(token.map[0] + 1, token.map[1]):
                lines[number] = re.sub(r"^( *\d+)([.)] )", r"\1\\\2", lines[number])
        elif token.type == "tr_open":
            number = token.map[0]
            lines[number] = re.sub(r"`[^`]*`", lambda match: match[0].replace("\\|", "|"), lines[number])
        elif token.type == "heading_open" and token.markup.startswith("#"):
            number = token.map[0]
            lines[number] = re.sub(r"(\S)#$", r"\1\\#", lines[number])
    offsets = {}
    for number, line in enumerate(lines):
        outer = [item for item in levels[number] if item != number]
        kept = line
        for item in outer:
            width = min(offsets[item], len(kept) - len(kept.lstrip(" ")))
            kept = kept[width:]
        depth = len(outer)
        if levels[number] and levels[number][-1] == number:
            marker = ITEM.match(kept.lstrip(" "))
            lead = len(kept) - len(kept.lstrip(" "))
            offsets[number] = lead + len(marker[0])
            kept = marker[1].ljust(3) + " " + kept.lstrip(" ")[len(marker[0]) :]
        if kept.strip():
            lines[number] = " " * 4 * depth + kept
        if number in separated:
            lines[number] = "\n" + " " * 4 * depth + "<!-- -->\n\n" + lines[number]
        elif number in blank_before and line.strip():
            lines[number] = "\n" + lines[number]


class Outline(html.parser.HTMLParser):
    """The elements of a page, and the text in each without its spaces."""

    def __init__(self, source):
        super().__init__()
        self.parts = [""]
        self.hidden = 0
        self.pre = 0
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        # The link beside a heading, and the elements that colour code.
        if tag == "a" and dict(attributes).get("class") == "headerlink":
            self.hidden += 1
        elif tag == "pre":
            self.pre += 1
            self.parts += ["<pre>", ""]
        elif tag in COMPARED and not self.pre:
            self.parts += [f"<{tag}>", ""]

    def handle_endtag(self, tag):
        if tag == "a" and self.hidden:
            self.hidden -= 1
        elif tag == "pre":
            self.pre -= 1

    def handle_data(self, data):
        if not self.hidden:
            self.parts[-1] += "".join(data.split())

    @property
    def elements(self):
        return [part for part in self.parts if part]


def difference(text, built):
    """Where the built page first differs from what CommonMark makes of its source: both places, or None."""
    expected, found = Outline(PARSER.renderer.render(parse(text), PARSER.options, {})).elements, Outline(built).elements
    for number, (one, other) in enumerate(zip(expected + ["the end"], found + ["the end"])):
        if one != other:
            return "".join(expected[max(0, number - 2) : number + 1])[-200:], "".join(found[max(0, number - 2) : number + 1])[-200:]
    return None
