"""Lines that the parser takes for something else than the shell does, and how to read them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_TIMED = re.compile(
    r"\b(time(\s+-p)?|coproc(\s+[A-Za-z_]\w*)?)\s+"
    r"(?=[{(!]|(if|for|while|until|case|select|function)\b)"
)
_CALLED = re.compile(r"\$\{[\s|]([^{}]*)\}")
"""`${ command; }` of bash 5.3, of several in each other the inmost."""
_BRACED_COMMAND = re.compile(r"(^|[\s;&|(])\{([^\s{},'\"`\\;|&<>()$]*,[^\s{}'\"`\\;|&<>()$]*)\}")
_TWO_HERE = re.compile(r"(?<!<)<<(?!<)[^\n]*(?<!<)<<(?!<)")
"""Two here-documents of one line: the parser may take the body of one for that of the other."""
_HERE_AND_MORE = re.compile(r"(<<-?[ \t]*(['\"]?)(\w+)\2)[ \t]+(\d?>&\d|\d?>[ \t]*/dev/null)")
"""A redirection behind the name of a here-document, which the parser takes for something else."""
_BACKTICKED = re.compile(r"`([^`\\]*)`")
_BLANK_AND_TICK = re.compile(r"[ \t]+`")
_BLANKS_AND_ENDS = "; \t\n"
_TEXTS = frozenset({"heredoc_body", "raw_string", "comment"})


@dataclass(frozen=True, slots=True)
class Reading:
    """A line as the shell may read it, and commands of it that the parser would not see."""

    text: str
    commands: tuple[tuple[str, ...], ...] = ()
    is_doubtful: bool = False


def readings(text: str) -> Iterator[Reading]:
    """The line as it is to be read besides."""
    if _CALLED.search(text):
        called = _CALLED.sub(_as_substitution, text)
        yield Reading(called, commands=((text.strip(),),), is_doubtful=True)
    if _TIMED.search(text):
        yield Reading(_TIMED.sub("", text))
    if _BRACED_COMMAND.search(text):
        commands = tuple((f"{{{found[2]}}}",) for found in _BRACED_COMMAND.finditer(text))
        yield Reading(_BRACED_COMMAND.sub(_without_braces, text), commands)


def in_order(text: str) -> str:
    """The line with what follows the name of a here-document in front of it.

    Of two substitutions in backticks with a blank between them the first is written as `$( )`.
    """
    if "`" in text:
        text = _BACKTICKED.sub(_bracketed, text)
    return _HERE_AND_MORE.sub(r"\4 \1", text)


def _bracketed(found: "re.Match[str]") -> str:
    is_followed = _BLANK_AND_TICK.match(found.string, found.end()) is not None
    return f"$({found[1]})" if is_followed else found[0]


def is_run_together(text: str) -> bool:
    """Whether a substitution in backticks has swallowed another one."""
    return text.startswith("`") and re.search(r"(?<!\\)`", text[1:-1]) is not None


def is_confused(line: str, root: "Node") -> bool:
    """Whether a line that is parsed so has two here-documents."""
    return any(_is_outside(found, root) for found in _TWO_HERE.finditer(line))


def joins_words(text: str) -> bool:
    """Whether a word goes on in the next line: it is not the one that it looks like."""
    return re.search(r"[\w$/.-]\\\n[\w$/.-]", text) is not None


def _as_substitution(found: "re.Match[str]") -> str:
    return f"$({found[1].strip().rstrip(_BLANKS_AND_ENDS)})"


def _without_braces(found: "re.Match[str]") -> str:
    return found[1] + found[2].replace(",", " ")


def _is_outside(found: "re.Match[str]", root: "Node") -> bool:
    """Whether it stands where the shell would read it, not in a text."""
    at = len(found.string[: found.start()].encode(errors="surrogateescape"))
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type not in _TEXTS:
        node = node.parent
    return node is None
