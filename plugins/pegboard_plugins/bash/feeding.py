"""What the parts of a line read, from a pipe, a file or the line itself, and who uses it."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard_plugins.bash.effects import moves_content
from pegboard_plugins.bash.findings import Feed, Findings
from pegboard_plugins.bash.nodes import text_of
from pegboard_plugins.bash.origins import Origin, names_secret, of_pipeline
from pegboard_plugins.bash.words import Word, read_word
from pegboard_plugins.bash.wrappers import (
    CODE,
    FINDERS,
    INTERPRETERS,
    SHELLS,
    is_wrapper,
    unwrapped,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_PARTS = 32
_TELLERS = ("echo ", "printf ", "cat ", "head ", "tail ")
"""What such a program puts out stands in the line, or in a file that the line names."""


def of_redirections(nodes: "Sequence[Node]", findings: Findings) -> Feed | None:
    """What the redirections give a command to read, None when they give nothing."""
    feed = None
    for node in nodes:
        match node.type:
            case "heredoc_redirect":
                feed = Feed(Origin.UNKNOWN, is_told=True)
            case "herestring_redirect":
                word = read_word(node.named_children[-1], findings.home)
                origin = findings.origin(word) or Origin.UNKNOWN
                known = findings.known(word)
                feed = Feed(Origin.UNKNOWN if known else origin, is_told=known is not None)
            case "file_redirect" if any(child.type == "<" for child in node.children):
                feed = _of_file(node, findings)
            case _:
                pass
    return feed


def of_parts(pipeline: "Node", number: int, findings: Findings) -> Feed:
    """What the first parts of a pipeline give to the next one."""
    if number > _MOST_PARTS:
        return Feed(Origin.UNKNOWN)
    parts = [node for node in pipeline.children[:number] if node.is_named]
    if not parts:  # of a here-document's line the parser puts the rest below the document
        return Feed(Origin.UNKNOWN, is_told=_is_of_cat(pipeline))
    is_told = f"{text_of(parts[0])} ".startswith(_TELLERS) and "$(" not in text_of(parts[0])
    return Feed(
        of_pipeline(parts, findings.values),
        is_told=is_told and len(parts) == 1,
        text=" | ".join(map(text_of, parts)),
    )


def _is_of_cat(pipeline: "Node") -> bool:
    """Whether what stands before the here-document only puts it out."""
    statement = pipeline.parent.parent if pipeline.parent else None
    body = statement.child_by_field_name("body") if statement else None
    return body is not None and text_of(body).strip() == "cat"


def _of_file(node: "Node", findings: Findings) -> Feed:
    target = node.child_by_field_name("destination")
    if target is None:
        return Feed(Origin.UNKNOWN)
    word = read_word(target, findings.home)
    if target.type == "process_substitution":
        return Feed(findings.origin(word))
    return Feed(Origin.UNKNOWN, is_told=not word.dynamic, is_file=not word.dynamic)


def is_fed_anything(
    base: str, words: Sequence[Word], inner: Sequence[Sequence[Word]], findings: Findings
) -> bool:
    """Whether nobody knows the files, or the command, that a feeder gives to what it runs."""
    if base in FINDERS:
        return False
    if base == "find":
        sought = any(names_secret(word.text) for word in words if not word.dynamic)
        return sought and any(_takes_anything(each, Origin.UNKNOWN) for each in inner)
    is_of_file = any(re.match(r"-a|--arg-file|::::", word.text) for word in words)
    origin = findings.fed.origin if findings.fed else Origin.KNOWN
    return any(_takes_anything(each, Origin.UNKNOWN if is_of_file else origin) for each in inner)


def _takes_anything(words: Sequence[Word], origin: Origin) -> bool:
    if words[0] is CODE:
        return origin is Origin.UNKNOWN
    name = words[0].text.rpartition("/")[2]
    if name in SHELLS | INTERPRETERS or moves_content(name, [word.text for word in words[1:]]):
        return origin is Origin.UNKNOWN
    if not is_wrapper(name) or name == "find":
        return False
    inside = list(unwrapped(name, words[1:]))
    return (not inside and origin is not Origin.KNOWN) or any(
        _takes_anything(each, origin) for each in inside
    )
