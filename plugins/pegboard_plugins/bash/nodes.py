"""The parser's nodes: their text, and what the parser leaves out or puts in a wrong place."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard_plugins.bash.words import Word, read_word

if TYPE_CHECKING:
    from tree_sitter import Node

CARRIAGE_RETURN = "\ue00d"
"""Stands for it while the parser reads, which would take it for a blank."""


def text_of(node: "Node") -> str:
    """The text as it stands in the line."""
    return (node.text or b"").decode(errors="surrogateescape").replace(CARRIAGE_RETURN, "\r")


def gaps(node: "Node") -> list[str]:
    """What stands between the parts of a node and is no part, such as a lone `-`."""
    if len(node.children) < len("ab"):
        return []
    raw, start = node.text or b"", node.start_byte
    ends = [child.end_byte - start for child in node.children]
    starts = [child.start_byte - start for child in node.children[1:]]
    between = (
        raw[end:begin].replace(b"\\\n", b"").strip()
        for end, begin in zip(ends, starts, strict=False)
    )
    return [gap.decode(errors="surrogateescape") for gap in between if gap]


def squeezed(text: str) -> str:
    """The text with one blank where there are several, or a line's end."""
    return re.sub(r"\s+", " ", text).strip()


def returned(word: Word) -> Word:
    """The word with carriage returns, which the parser would take for blanks."""
    if CARRIAGE_RETURN not in word.text:
        return word
    return Word(word.text.replace(CARRIAGE_RETURN, "\r"), dynamic=word.dynamic, bare=word.bare)


def inside_of_test(node: "Node", home: str) -> str:
    """The inside of `[[ ]]` with quotes taken away."""
    leaves = []
    pending = list(reversed(node.children[1:-1]))
    while pending:
        each = pending.pop()
        if each.type.endswith("_expression") and each.children:
            pending += reversed(each.children)
        else:
            leaves.append(read_word(each, home).text)
    return " ".join(leaves)


def left_over(redirections: "Sequence[Node]") -> "list[Node]":
    """Arguments behind a redirection, which the parser takes for parts of it."""
    found = []
    for node in redirections:
        found += node.children_by_field_name("destination")[1:]
        found += node.children_by_field_name("argument")
    return found


def unread(body: "Node") -> str:
    """What the parser takes for plain text in a here-document, escaped letters left out."""
    raw, start = body.text or b"", body.start_byte
    pieces, done = [], 0
    for child in body.named_children:
        if child.type != "heredoc_content":
            pieces.append(raw[done : child.start_byte - start])
            done = child.end_byte - start
    pieces.append(raw[done:])
    text = b" ".join(pieces).decode(errors="surrogateescape")
    return re.sub(r"\\.", "", text, flags=re.DOTALL)
