"""A program that prints the text of an HTML page; a page may be hostile to its parser.

The tool runs it by its path, as `python reading.py FILE FORMAT CHARSET URL`; it prints UTF-8.
Endless nesting, time or memory in the parser ends only this process.
"""

import re
import resource
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from bs4 import Tag

MEMORY_BYTES = 2 << 30
NESTING = 5000
"""Python's limit of recursion; a page that is nested deeper is given as plain text."""
_HIDDEN = frozenset(
    ("script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "title")
)
"""Not `head`, whose end a page need not write (WHATWG HTML 13.1.2.4): it would hide the rest."""
_VOID = frozenset(("embed",))
_CELLS = frozenset(("td", "th"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header"),
        *("hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul"),
    )
)


def main(path: str, wanted: str, charset: str, url: str) -> None:
    """Print the page as `markdown` or `text`; the parameters are the command-line arguments."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.setrecursionlimit(NESTING)
    html = Path(path).read_bytes().decode(charset, "replace")
    html = html.replace("\r\n", "\n").replace("\r", "\n")  # WHATWG HTML 13.2.3.5
    sys.stdout.buffer.write(converted(html, wanted, url).encode(errors="replace"))


def converted(html: str, wanted: str, url: str) -> str:
    """Return the page as Markdown or text; a too deeply nested page always becomes text."""
    if wanted == "markdown":
        try:
            return _tidy(_markdown(html, url), fenced=True)
        except RecursionError:
            return _tidy(_plain(html))
    return _tidy(_plain(html))


def _markdown(html: str, url: str) -> str:
    from bs4 import BeautifulSoup
    from bs4.element import NavigableString
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(html, "html.parser")
    title = soup.title.get_text(strip=True) if soup.title else ""
    base = soup.find("base", href=True)
    place = _absolute(url, str(base["href"])) if base else url
    for element in soup.find_all((*_HIDDEN, "meta", "link", "base")):
        element.decompose()
    for name, attribute in (("a", "href"), ("img", "src")):
        for element in soup.find_all(name, {attribute: True}):
            element[attribute] = _absolute(place, str(element[attribute]))
    for picture in soup.find_all("img", src=re.compile("^data:")):
        picture.replace_with(str(picture.get("alt", "")))  # its text is as long as a book
    for text in soup.find_all(string=re.compile(r"\|")):
        if type(text) is NavigableString and text.find_parent(_CELLS):
            text.replace_with(text.replace("|", r"\|"))
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", code_language_callback=_code_language
    )
    said: str = converter.convert_soup(soup)
    return f"# {title}\n\n{said}" if title and not re.search(r"^# ", said, re.MULTILINE) else said


def _code_language(pre: "Tag") -> str:
    """Return the language in a code block's class (WHATWG HTML 4.5.15), or ""."""
    elements = (pre, *pre.find_all("code"))
    names = [name for element in elements for name in element.get_attribute_list("class")]
    return next((name[9:] for name in names if name and name.startswith("language-")), "")


def _absolute(url: str, link: str) -> str:
    try:
        return urljoin(url, link.strip()).replace(" ", "%20")
    except ValueError:  # a link can be any text
        return link


class _Words(HTMLParser):
    """A parser that collects the visible text of a page, each block element on its own line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces = ["\n"]
        self._hidden = ""
        self._depth = 0
        self._laid_out = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - html.parser's
        """Process a start tag; `HTMLParser` calls this method."""
        if self._hidden:
            self._depth += tag == self._hidden
        elif tag in _HIDDEN - _VOID:
            self._hidden, self._depth = tag, 1
        elif tag in _BLOCKS:
            self.pieces.append("\n")
            self._laid_out += tag == "pre"
        elif tag in _CELLS:
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        """Process an end tag; `HTMLParser` calls this method."""
        if self._hidden:
            self._depth -= tag == self._hidden
            self._hidden = self._hidden if self._depth else ""
        elif tag in _BLOCKS:
            self.pieces.append("\n")
            self._laid_out -= tag == "pre" and self._laid_out > 0

    def handle_data(self, data: str) -> None:
        """Process the text between tags; `HTMLParser` calls this method."""
        if self._hidden:
            return
        if not self._laid_out:
            data = re.sub(r"\s+", " ", data)
            data = data.lstrip() if self.pieces[-1][-1] in " \n" else data
        if data:
            self.pieces.append(data)


def _plain(html: str) -> str:
    words = _Words()
    words.feed(html)
    words.close()
    return "".join(words.pieces)


def _tidy(text: str, *, fenced: bool = False) -> str:
    """Remove spaces at line ends and repeated empty lines, except in `fenced` code blocks."""
    lines: list[str] = []
    in_code = False
    for line in text.split("\n"):
        if fenced and line.lstrip(" >").startswith("```"):
            in_code = not in_code
        if in_code:
            lines.append(line)
        elif (plain := line.rstrip()) or lines[-1:] != [""]:
            lines.append(plain)
    return "\n".join(lines).strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
