"""Trees of HTML elements, from which a page builds its content without parsing HTML.

A node is a string, or a list of a tag, its attributes, and its child nodes.
"""

from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from typing import Any

from pegboard.display import Block, escape_controls
from pegboard.unstable import block_lines
from pegboard_plugins.shared.transcripts import answer_html, rows_html

Node = Any
"""JSON: a string, or `[tag, attributes, *nodes]`."""
MOST_LETTERS = 400_000
"""The maximum length of one message or diff; the page says how much is left out."""
_VOID = frozenset({"br", "hr", "img", "input"})


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root: list[Node] = ["div", {}]
        self._open = [self.root]
        self._letters = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node: list[Node] = [tag, {name: value or "" for name, value in attrs}]
        self._open[-1].append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        first = self._open[-1][0] == "pre" and len(self._open[-1]) == 2  # noqa: PLR2004 - empty
        text = data.removeprefix("\n") if first else data
        room = max(0, MOST_LETTERS - self._letters)
        if text and room:
            self._open[-1].append(text[:room])
        self._letters += len(text)

    @property
    def left_out(self) -> int:
        """The number of characters that were cut."""
        return max(0, self._letters - MOST_LETTERS)


def html_nodes(html: str) -> tuple[Node, ...]:
    """Return the nodes of HTML that Pegboard made, cut after `MOST_LETTERS` characters of text."""
    tree = _Tree()
    tree.feed(html)
    tree.close()
    found = tree.root[2:]
    if tree.left_out:
        text = f"{tree.left_out:,} more characters; `pegboard session export` has them"
        found.append(["p", {"class": "s-warning"}, text])
    return tuple(found)


def diff_nodes(patch: str) -> tuple[Node, ...]:
    """Return a unified diff as nodes, formatted as on a terminal."""
    lines = block_lines(Block(diff=patch), "whole").lines
    return html_nodes(f"<pre class='diff'>\n{''.join(rows_html(lines))}</pre>")


def block_nodes(blocks: Iterable[Block]) -> tuple[Node, ...]:
    """Return blocks as nodes, with the title, lines, diff, table and Markdown of each block."""
    return tuple(["section", {"class": "block"}, *_block(each)] for each in blocks)


def _block(block: Block) -> list[Node]:
    found: list[Node] = []
    if block.title:
        found.append(["h3", {}, escape_controls(block.title)])
    for part in (Block(lines=block.lines), Block(diff=block.diff)):
        if lines := block_lines(part, "whole").lines:
            found += html_nodes(f"<pre>\n{''.join(rows_html(lines))}</pre>")
    if block.table:
        found.append(_table(block.table))
    if block.markdown:
        html = answer_html(block.markdown)
        found += html_nodes(html) if html is not None else [["pre", {}, block.markdown]]
    return found


def _table(rows: Sequence[Sequence[str]]) -> Node:
    head, *rest = rows
    return [
        "table",
        {},
        ["thead", {}, ["tr", {}, *(["th", {}, escape_controls(each)] for each in head)]],
        [
            "tbody",
            {},
            *(["tr", {}, *(["td", {}, escape_controls(each)] for each in row)] for row in rest),
        ],
    ]
