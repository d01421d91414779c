"""Makes MkDocs build the site from the pages where they are in the repository, so that their links work in both.

MkDocs' files have the paths of the repository. A file that is no page, such as a unit or a source, is shown on a page of its own if a
page links to it; JSON and pictures are copied. So the site needs no address of a repository, and shows the files of the same commit.
"""

import logging
import posixpath
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from commonmark import difference, for_python_markdown, parse
from llms import version, write_llms
from mkdocs.structure.files import File, InclusionLevel
from navigation import ROOT, Navigation, plain

log = logging.getLogger("mkdocs.hooks.headroom")
COPIED = (".json", ".svg", ".png", ".webp")
LANGUAGES = {"yml": "yaml", "mjs": "js", "service": "ini", "socket": "ini", "md": "markdown"}
HIGHLIGHTED = ("swift", "yaml", "js", "ts", "py", "json", "ini", "c", "css", "html", "sql", "toml", "sh", "markdown")
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1 *$|`[^`\n]*`", re.M | re.S)
TAG = re.compile(r"<(?:img|source|a)\b[^>]*>")
ADDRESS = re.compile(r'\b(src|srcset|href)="([^"]*)"')
CODE_BLOCK = re.compile(r"(<pre[^>]*>(?:<span></span>)?<code[^>]*>)(.*?)</code></pre>", re.S)
PICTURE = re.compile(r'<picture>\s*<source\b[^>]*dark\)[^>]*srcset="([^"]*)"[^>]*>\s*(<img\b[^>]*>)\s*</picture>')

# What a phone shows of a line of code without scrolling.
CODE_COLUMNS = 38

navigation = None
sources = {}
"""The Markdown of each page, with the addresses of the site."""


class Shown(File):
    """A file that is no page, shown as code; a folder, as a list of what is in it."""

    def is_documentation_page(self):
        return True


class Alias(File):
    """Another path of a page."""

    def is_documentation_page(self):
        return False

    def copy_file(self, dirty=False):
        pass


def on_config(config):
    global navigation
    navigation = Navigation()
    for path in navigation.drop_missing():
        log.warning(f"docs/site/navigation.yml has {path}, which does not exist")
    config.nav = [item_of(group) for group in navigation.groups]
    config.copyright = f"Headroom {version()}"
    config.watch = [str(ROOT / name) for name in ("docs", "README.md", "clients", "integrations", "CHANGELOG.md", "CONTRIBUTING.md")]
    return config


def item_of(group):
    return {group.name: [entry.path for entry in group.entries] + [item_of(inner) for inner in group.groups]}


def on_files(files, config):
    for entry in navigation.entries:
        files.append(File(entry.path, str(ROOT), config.site_dir, True, dest_uri=destination(entry.path)))
    for entry in navigation.entries:
        for target in targets(entry.path, entry.text):
            add_file(target, files, config)
    return files


def destination(path):
    """docs/plans.md becomes plans/, clients/node/README.md clients/node/, and other pages beside README.md project/…/."""
    if path == "README.md":
        return "index.html"
    name = path.removeprefix("docs/") if path.startswith("docs/") or "/" in path else f"project/{path.lower()}"
    return posixpath.join(name.removesuffix(".md").removesuffix("README"), "index.html")


def targets(path, text):
    """The paths of the repository to which a page links."""
    for token in parse(text):
        for child in token.children or ():
            if address := child.attrGet("href") or child.attrGet("src"):
                yield resolve(path, address)
    for tag in TAG.findall(CODE.sub("", text)):
        for _, address in ADDRESS.findall(tag):
            yield resolve(path, address)


def resolve(path, address):
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), parts.path))


def add_file(path, files, config):
    """Adds a file or folder to which a page links. A missing one is left to MkDocs, which complains."""
    if path is None or path.startswith("..") or files.get_file_from_path(path):
        return
    source = ROOT / path
    if source.is_dir():
        page = files.get_file_from_path(f"{path}/README.md")
        if page:
            files.append(Alias(path, None, config.site_dir, True, dest_uri=page.dest_uri, inclusion=InclusionLevel.NOT_IN_NAV))
            return
        inside = sorted(str(file.relative_to(ROOT)) for file in source.iterdir() if file.is_file())
        for file in inside:
            add_file(file, files, config)
        files.append(shown(path, folder(path, inside), config))
    elif path.endswith(COPIED) and source.is_file():
        files.append(File(path, str(ROOT), config.site_dir, True, inclusion=InclusionLevel.NOT_IN_NAV))
    elif source.is_file():
        files.append(shown(path, listing(path, source.read_text(encoding="utf-8")), config))


def shown(path, content, config):
    file = Shown(path, None, config.site_dir, True, dest_uri=f"source/{path}.html", inclusion=InclusionLevel.NOT_IN_NAV)
    file.content_string = content
    return file


def folder(path, inside):
    titles = {entry.path: entry.title for entry in navigation.entries}
    name = posixpath.basename(path)
    items = [f"- [{titles.get(file, posixpath.basename(file))}]({name}/{posixpath.basename(file)})\n" for file in inside]
    return f"# {path}/\n\n{''.join(items)}"


def listing(path, text):
    """The file as a block of code, with a fence that is longer than any in the file."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    suffix = posixpath.splitext(path)[1].removeprefix(".")
    language = LANGUAGES.get(suffix, suffix)
    return f"# {path}\n\n{fence}{language if language in HIGHLIGHTED else 'text'}\n{text.rstrip()}\n{fence}\n"


def on_page_markdown(markdown, page, config, files):
    if isinstance(page.file, Shown):
        page.meta["search"] = {"exclude": True}
        return markdown
    page.meta["description"] = plain(next(entry.line for entry in navigation.entries if entry.path == page.file.src_uri))
    sources[page.file.src_uri] = text = with_addresses_of_the_site(markdown, page.file, files)
    return for_python_markdown(text)


def with_addresses_of_the_site(text, page, files):
    """The same page with the addresses in HTML, which MkDocs leaves as they are, as they are on the site. A picture for each colour
    scheme follows the choice of the reader."""

    def address(match):
        path = resolve(page.src_uri, match[2])
        if path is None:
            return match[0]
        target = files.get_file_from_path(path)
        if target is None:
            log.warning(f"{page.src_uri} has {match[0]}, which does not exist")
            return match[0]
        fragment = urlsplit(match[2]).fragment
        return f'{match[1]}="{target.url_relative_to(page)}{"#" + fragment if fragment else ""}"'

    def picture(match):
        light = ADDRESS.sub(lambda found: f'{found[1]}="{found[2]}#only-light"', match[2])
        dark = ADDRESS.sub(lambda found: f'{found[1]}="{match[1]}#only-dark"', match[2])
        return light + dark

    def outside_code(part):
        return TAG.sub(lambda tag: ADDRESS.sub(address, tag[0]), PICTURE.sub(picture, part))

    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [outside_code(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, outside_code(text[end:])])


def on_page_content(html, page, config, files):
    """Compares the page with what CommonMark makes of it, and lets the keyboard scroll wide code and tables."""
    if page.file.src_uri in sources and (places := difference(sources[page.file.src_uri], html)):
        log.warning(f"{page.file.src_uri} would differ from what GitHub shows: there {places[0]!r}, here {places[1]!r}")
    return CODE_BLOCK.sub(scrollable, html).replace("<table>", '<table tabindex="0">')


def scrollable(block):
    """The theme removes tabindex from the element that scrolls where no mouse is, so another one scrolls."""
    columns = max(len(unescape(line)) for line in re.sub(r"<[^>]+>", "", block[2]).split("\n"))
    focus = ' tabindex="0"' if columns > CODE_COLUMNS else ""
    return f'{block[1]}<span class="headroom-code"{focus}>{block[2]}</span></code></pre>'


def on_post_page(output, page, config):
    # The theme gives the dialog no name.
    return output.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')


def on_post_build(config):
    site = Path(config.site_dir)
    write_llms(navigation, site, config.site_url or "")
    for view in (site / "source").rglob("*.html"):
        path = view.relative_to(site / "source").with_suffix("")
        if (ROOT / path).is_file():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, site / path)
