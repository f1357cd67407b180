"""What a word of a command line is once the shell has taken the quotes away."""

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_ESCAPE = re.compile(r"\\(?:\n|(.))", re.DOTALL)
"""A backslash and what it makes plain; with the end of a line it is nothing."""
_QUOTED_ESCAPE = re.compile(r"\\(?:\n|([$`\"\\]))")
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})"
    r"|c(.)|(.))",
    re.DOTALL,
)
_ANSI_LETTERS = {
    **dict.fromkeys("eE", "\x1b"),
    **dict(zip("ntrabfv", "\n\t\r\a\b\f\v", strict=True)),
}
_LAST_CHARACTER = 0x10FFFF
_COMPUTED = frozenset(
    {
        *("command_substitution", "arithmetic_expansion", "translated_string"),
        *("brace_expression", "process_substitution"),
    }
)
_DYNAMIC = _COMPUTED | {"simple_expansion", "expansion"}
_JOINED = frozenset({"concatenation", "command_name", "variable_assignment"})
_FORMER_FOLDER = re.compile(r"~(-|[-+]?\d+)(/.*)?", re.DOTALL)
_PLAIN_VARIABLE = re.compile(r"\$(?:\w+|\{\w+(?:(?:##?|%%?)[\w./*?-]+)?\})")


@dataclass(frozen=True, slots=True)
class Word:
    """`text` without quotes; `dynamic` when only the shell knows what stands there at last.

    `bare`: it begins outside of quotes, so that a `~` there means a home. `opens`: of its parts
    one that is not in quotes has a brace. `computed`: not even the values of variables would
    tell. `leads`: what is dynamic stands first, so that it may be an option or any path.
    `splits`: it may become several words. `parts` are what is dynamic.
    """

    text: str
    dynamic: bool = False
    bare: bool = True
    opens: bool = False
    computed: bool = False
    leads: bool = False
    splits: bool = False
    parts: "tuple[Node, ...]" = field(default=(), compare=False, repr=False)

    @property
    def open(self) -> bool:
        """Whether it may become anything, not only a text with a known beginning."""
        return self.dynamic and (self.leads or self.splits)


def read_word(node: "Node", home: str) -> Word:
    """The word of a node; `$HOME` is the only variable whose value is known here."""
    raw = (node.text or b"").decode(errors="surrogateescape")
    if raw in ("$HOME", "${HOME}"):
        return Word(home, bare=False)
    match node.type:
        case "raw_string" | "ansi_c_string":
            text = raw[1:-1] if raw[0] == "'" else _ANSI.sub(_ansi, raw[2:-1]).partition("\0")[0]
            return Word(text, bare=False)
        case "string":
            return _quoted(node, home)
        case kind if kind in _JOINED:
            return _joined([read_word(child, home) for child in node.children], raw)
        case kind if kind in _DYNAMIC:
            leads = kind != "process_substitution"  # it stands for a file of the shell's own
            computed = kind in _COMPUTED or _PLAIN_VARIABLE.fullmatch(raw) is None
            return Word(
                raw, dynamic=True, computed=computed, leads=leads, splits=leads, parts=(node,)
            )
        case _:
            former = _FORMER_FOLDER.fullmatch(raw) is not None
            text, bare = _ESCAPE.sub(_escaped, raw), not raw.startswith("\\")
            return Word(text, dynamic=former, bare=bare, computed=former, leads=former)


def _quoted(node: "Node", home: str) -> Word:
    """The content of double quotes, where blanks between two parts belong to no node."""
    raw = node.text or b""
    pieces: list[Word] = []
    done = 1
    for child in node.named_children:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        pieces.append(Word(_unescaped(raw[done:start])))
        if child.type == "string_content":
            pieces.append(Word(_unescaped(raw[start:end])))
        else:
            pieces.append(read_word(child, home))
        done = end
    pieces.append(Word(_unescaped(raw[done:-1])))
    word = _together(pieces)
    return replace(word, bare=False, opens=False, splits=False)


def _unescaped(raw: bytes) -> str:
    return _QUOTED_ESCAPE.sub(_escaped, raw.decode(errors="surrogateescape"))


def _escaped(match: re.Match[str]) -> str:
    return match[1] or ""


def _joined(words: list[Word], raw: str) -> Word:
    if not words:
        return Word(_ESCAPE.sub(_escaped, raw))
    return _together(words)


def _together(words: list[Word]) -> Word:
    first = next((word for word in words if word.text), words[0])
    return Word(
        "".join(word.text for word in words),
        dynamic=any(word.dynamic for word in words),
        bare=words[0].bare,
        opens=any(word.bare and "{" in word.text for word in words),
        computed=any(word.computed for word in words),
        leads=first.dynamic and first.leads,
        splits=any(word.splits for word in words),
        parts=tuple(part for word in words for part in word.parts),
    )


def _ansi(match: re.Match[str]) -> str:
    short, unicode, long, octal, control, letter = match.groups()
    if digits := short or unicode or long:
        return chr(min(int(digits, 16), _LAST_CHARACTER))
    if octal:
        return chr(int(octal, 8) % 256)
    if control:
        return chr(ord(control) & 0x1F)
    return _ANSI_LETTERS.get(letter, letter if letter in "\\'\"?" else f"\\{letter}")
