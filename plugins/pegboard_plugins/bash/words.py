"""What a word of a command line is once the shell has taken the quotes away."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r"\\([$`\"\\])")
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "0": "\0"}
_DYNAMIC = frozenset(
    {
        *("simple_expansion", "expansion", "command_substitution", "process_substitution"),
        *("arithmetic_expansion", "translated_string", "brace_expression"),
    }
)
_HOME = frozenset({"$HOME", "${HOME}"})


@dataclass(frozen=True, slots=True)
class Word:
    """`text` without quotes; `dynamic` when only the shell knows what stands there at last.

    `bare`: it begins outside of quotes, so that a `~` there means a home.
    """

    text: str
    dynamic: bool = False
    bare: bool = True


def read_word(node: "Node", home: str) -> Word:
    """The word of a node; `$HOME` is the only variable whose value is known."""
    raw = (node.text or b"").decode(errors="surrogateescape")
    if raw in _HOME:
        return Word(home, bare=False)
    match node.type:
        case "raw_string":
            return Word(raw[1:-1], bare=False)
        case "ansi_c_string":
            return Word(_ANSI.sub(_ansi, raw[2:-1]), bare=False)
        case "string":
            return _quoted(node, home)
        case "concatenation" | "command_name" | "variable_assignment":
            return _joined([read_word(child, home) for child in node.children], raw)
        case kind:
            return Word(raw, dynamic=True) if kind in _DYNAMIC else Word(_ESCAPE.sub(r"\1", raw))


def _quoted(node: "Node", home: str) -> Word:
    """The content of double quotes, where blanks between two parts belong to no node."""
    raw = node.text or b""
    pieces, done, dynamic = [], 1, False
    for child in node.named_children:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        pieces.append(_unescaped(raw[done:start]))
        if child.type == "string_content":
            pieces.append(_unescaped(raw[start:end]))
        else:
            word = read_word(child, home)
            pieces.append(word.text)
            dynamic = dynamic or word.dynamic
        done = end
    pieces.append(_unescaped(raw[done:-1]))
    return Word("".join(pieces), dynamic=dynamic, bare=False)


def _unescaped(raw: bytes) -> str:
    return _QUOTED_ESCAPE.sub(r"\1", raw.decode(errors="surrogateescape"))


def _joined(words: list[Word], raw: str) -> Word:
    if not words:
        return Word(_ESCAPE.sub(r"\1", raw))
    return Word(
        "".join(word.text for word in words),
        dynamic=any(word.dynamic for word in words),
        bare=words[0].bare,
    )


def _ansi(match: re.Match[str]) -> str:
    hexadecimal, unicode, octal, letter = match.groups()
    if hexadecimal or unicode:
        return chr(int(hexadecimal or unicode, 16))
    if octal:
        return chr(int(octal, 8) % 256)
    return _ANSI_LETTERS.get(letter, letter)
