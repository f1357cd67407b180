"""The evaluation of a `find` expression: on which files the expression may act."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NamedTuple

from pegboard.unstable import shell_fits
from pegboard_plugins.bash.listings import finds
from pegboard_plugins.bash.syntax import ANYTHING
from pegboard_plugins.bash.tables import words

_VALUED, _EXECUTES = words("programs", "find", "valued"), words("programs", "find", "acts")
_PRINTS = frozenset({"-print", "-print0", "-ls", "-fprint", "-fprint0", "-fls", "-printf"})
_ACTS = frozenset({"-delete", "-fprintf", *_PRINTS, *_EXECUTES})
_OPTION = re.compile(r"-[DHLP]|-O\d*|--")
_DEEPEST = 30
_FALSE, _TRUE, _EITHER = 1, 2, 3
"""What an expression may come to."""


class _Node(NamedTuple):
    """A node of a `find` expression: an operator, or a test or action with its value."""

    kind: str
    value: str = ""
    parts: "tuple[_Node, ...]" = ()


@dataclass(slots=True)
class _Visit:
    """A file that `find` visits, and whether the expression acts on the file."""

    path: str
    is_folder: bool
    is_empty: bool
    acts: bool = False
    prunes: bool = False

    @property
    def name(self) -> str:
        """The name of the file without its folder."""
        return self.path.rstrip("/").rpartition("/")[2]


def start_texts(texts: Sequence[str]) -> list[str]:
    """Return the start folders among the words of a `find`."""
    at = sum(1 for _ in takewhile(_OPTION.fullmatch, texts))
    found = list(takewhile(lambda text: not text.startswith(("-", "(", "!")), texts[at:]))
    return found or ["."]


def acted_on(
    texts: Sequence[str], files: Mapping[str, bool], empty: Container[str] = ()
) -> list[str]:
    """Return the files on which a `find` with these words may act; printing counts too.

    `files` maps each path, as `find` would print it, to whether it is a folder. `empty` are the
    empty ones. A test that needs other facts from the disk may be true or false.
    """
    at = sum(1 for _ in takewhile(_OPTION.fullmatch, texts))
    starts = start_texts(texts)
    at += len(starts) if [*texts[at : at + 1]] == starts[:1] else 0
    tokens = list(texts[at:])
    limits = dict(pairwise(tokens))
    least, most = (_number(limits.get(name, "")) for name in ("-mindepth", "-maxdepth"))
    parser = _ExpressionParser(tokens)
    node = parser.whole()
    if not parser.has_acts:
        node = _Node("and", parts=(node, _Node("act")))
    pruned: list[str] = []
    found = []
    for path, is_folder in files.items():
        depth = min((_depth(path, start) for start in starts), default=0)
        is_out = depth < (least or 0) or (most is not None and depth > most)
        if is_out or any(path.startswith(f"{folder}/") for folder in pruned):
            continue
        visit = _Visit(path, is_folder, path in empty)
        _evaluate(node, visit, sure=True)
        if visit.prunes and "-delete" not in tokens and "-depth" not in tokens:
            pruned.append(path.rstrip("/"))
        if visit.acts:
            found.append(path)
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _depth(path: str, start: str) -> int:
    """Return the depth of a path below the start folder of a `find`."""
    folder = start.rstrip("/")
    is_inside = path == folder or path.startswith(f"{folder}/")
    return path.removeprefix(folder).count("/") if is_inside else _DEEPEST


class _ExpressionParser:
    """A parser of `find` expressions: alternatives, conjunctions, negations and tests."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self.has_acts = False

    def _sees(self, *texts: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] in texts:
            self._at += 1
            return True
        return False

    def whole(self) -> _Node:
        """Read the whole `find` expression, a list of expressions that commas separate."""
        parts = [self._either()]
        while self._sees(","):
            parts.append(self._either())
        return _Node("list", parts=tuple(parts))

    def _either(self) -> _Node:
        parts = [self._both()]
        while self._sees("-o", "-or"):
            parts.append(self._both())
        return _Node("or", parts=tuple(parts))

    def _both(self) -> _Node:
        parts = []
        while self._at < len(self._tokens):
            if self._tokens[self._at] in ("-o", "-or", ",", ")"):
                break
            if not self._sees("-a", "-and"):
                parts.append(self._denied())
        return _Node("and", parts=tuple(parts))

    def _denied(self) -> _Node:
        if self._sees("!", "-not"):
            return _Node("not", parts=(self._denied(),))
        if self._sees("("):
            node = self.whole()
            self._sees(")")
            return node
        name = "".join(self._tokens[self._at : self._at + 1])
        self._at += 1
        if name in _EXECUTES:
            while self._at < len(self._tokens) and not self._sees(";", "+"):
                self._at += 1
        value = ""
        if name in _VALUED or name in ("-fprintf", "-printf"):
            value = "".join(self._tokens[self._at : self._at + 1])
            self._at += 2 if name == "-fprintf" else 1
        self.has_acts |= name in _ACTS
        return _Node("act", name) if name in _ACTS else _Node(name, value)


def _evaluate(node: _Node, visit: _Visit, *, sure: bool) -> int:
    """Return the possible results of a node for a file; unless `sure`, `find` may skip the node."""
    match node.kind:
        case "and" | "or":
            return _joined(node, visit, stops=_FALSE if node.kind == "and" else _TRUE, sure=sure)
        case "list" | "not":
            found = [_evaluate(part, visit, sure=sure) for part in node.parts]
            if node.kind == "not":
                return {_FALSE: _TRUE, _TRUE: _FALSE}.get(found[0], _EITHER)
            return found[0] if len(set(found)) == 1 else _EITHER  # find puts lists in another order
        case "act":
            visit.acts = True
            return _EITHER if node.value in _EXECUTES else _TRUE
        case "-prune":
            visit.prunes |= sure
            return _TRUE
        case _:
            return _tested(node, visit)


def _joined(node: _Node, visit: _Visit, *, stops: int, sure: bool) -> int:
    """Return the possible results of an `and` or `or`, which ends at a part with result `stops`."""
    found = 0
    for part in node.parts:
        each = _evaluate(part, visit, sure=sure)
        if each == stops:
            return stops
        found |= each & stops
        sure &= each != _EITHER
    return found | (stops ^ _EITHER)


def _tested(node: _Node, visit: _Visit) -> int:
    """Return the possible results of a test, from the file's name and type alone."""
    test = _TESTS.get(node.kind)
    fits = test(node.value, visit) if test and ANYTHING not in node.value else None
    return _EITHER if fits is None else _TRUE if fits else _FALSE


def _is_kind(value: str, visit: _Visit) -> bool:
    return ("d" if visit.is_folder else "f") in value.split(",")


_TESTS: Mapping[str, Callable[[str, _Visit], bool | None]] = {
    "-name": lambda value, visit: shell_fits(value, visit.name),
    "-iname": lambda value, visit: shell_fits(value.lower(), visit.name.lower()),
    **dict.fromkeys(("-path", "-wholename"), lambda value, visit: shell_fits(value, visit.path)),
    **dict.fromkeys(
        ("-ipath", "-iwholename"),
        lambda value, visit: shell_fits(value.lower(), visit.path.lower()),
    ),
    **dict.fromkeys(("-regex", "-iregex"), lambda value, visit: finds(f"^({value})$", visit.path)),
    **dict.fromkeys(("-type", "-xtype"), _is_kind),
    **dict.fromkeys(("-false", "-nouser", "-nogroup", "-lname"), lambda *_: False),
    "-empty": lambda _, visit: visit.is_empty,
    "-size": lambda value, _: False if value.startswith("+") else None,
    **dict.fromkeys(words("programs", "find", "settings"), lambda *_: True),
}
"""What tests say of a file that is there; one that is missing may be true."""
