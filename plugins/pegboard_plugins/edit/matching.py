"""The replacement of a text that a model remembers, even if the file has it in another form."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

import pegboard.unstable
from pegboard import ToolError
from pegboard_plugins.edit import rules
from pegboard_plugins.edit.candidates import SHOWN_PLACES, fitting, nearest
from pegboard_plugins.edit.rules import EditPlace

Problem = Literal["not_found", "not_unique", "same", "empty", "exists", "too_large"]
LIMIT_LETTERS = 50 << 20
"""A longer file is not made, and many edits of one file must not take all memory."""
MOST_PLACES = 100_000
"""Places that are changed one by one; there is no limit on exact ones between plain line ends."""
BOM = "\ufeff"


class MatchError(ToolError):
    """An error for a text that cannot be replaced; `kind` says why."""

    def __init__(self, kind: Problem, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """The new text, the rule that matched, and the number of places."""

    text: str
    rule: str
    count: int


class _Rule(msgspec.Struct, frozen=True):
    """A rule that finds the places of a text in a file, with the rule's name for messages."""

    name: str
    find: Callable[[str, str], list[EditPlace]]


TYPOGRAPHY = "unicode"
"""The rule under which the file keeps its letters where the new text repeats the old."""
_FUZZY = (
    _Rule("line_trimmed", rules.trimmed_lines),
    _Rule("whitespace", rules.folded_whitespace),
    _Rule("escape", rules.unescaped),
    _Rule("trimmed_boundary", rules.trimmed_boundary),
    _Rule(TYPOGRAPHY, rules.plain_punctuation),
    _Rule("block_anchor", rules.anchored_block),
)


def replace(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Return `text` with `old` replaced by `new`.

    The exact text is tried first, then looser rules; the first rule with a match decides. Unless
    `replace_all`, only one place may match. Line ends and a byte order mark remain those of the
    file. `new` is inserted literally, but is indented like the file if `old` and `new` share
    another indentation.

    :raises MatchError: when there is no such place, or several.
    """
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    flat = body.replace("\r\n", "\n")
    given = new.removeprefix(BOM)
    old, new = (piece.removeprefix(BOM).replace("\r\n", "\n") for piece in (old, new))
    if old == new:
        raise MatchError("same", "oldString and newString are the same: nothing would change")
    if not old:
        return Replacement(text=mark + _created(body, given), rule="create", count=1)
    if replace_all and len(body) == len(flat) and (count := flat.count(old)):
        _check_size(len(flat), count, old, new)
        return Replacement(text=mark + flat.replace(old, new), rule="exact", count=count)
    rule, places = _places(flat, old, replace_all=replace_all)
    _check_size(len(body), len(places), old, new)
    edits = [_edit(flat, place, old, new, keeps=rule == TYPOGRAPHY) for place in places]
    return Replacement(text=mark + _apply(body, flat, edits), rule=rule, count=len(places))


def _check_size(length: int, count: int, old: str, new: str) -> None:
    """Check that the file's text will not become too large."""
    size = length + count * (len(new) - len(old))
    if size > LIMIT_LETTERS:
        raise MatchError(
            "too_large",
            f"the file would have {size:,} letters, and {LIMIT_LETTERS:,} is the most: change "
            "less at once, or write it with a program that bash runs",
        )


def _created(body: str, new: str) -> str:
    if body:
        raise MatchError(
            "exists", "oldString is empty, but the file has content: say what is to be replaced"
        )
    return new


def _places(flat: str, old: str, *, replace_all: bool) -> tuple[str, list[EditPlace]]:
    if exact := list(_exact(flat, old, overlapping=not replace_all)):
        return "exact", _checked(flat, exact, replace_all=replace_all)
    if not old.strip():
        raise MatchError("empty", "oldString is only white space, and it is not in the file so")
    for rule in _FUZZY:
        if places := rule.find(flat, old):
            return rule.name, _checked(flat, places, replace_all=replace_all)
    like = nearest(flat, old)
    shown = f" Most like it is:\n{like}\n" if like else " "
    raise MatchError(
        "not_found",
        f"oldString is not in the file.{shown}"
        "Read the file again and copy the text as it is there.",
    )


def _exact(flat: str, old: str, *, overlapping: bool) -> Iterator[EditPlace]:
    step = 1 if overlapping else len(old)
    at = flat.find(old)
    found = 0
    # One more than is shown of places that are too many.
    most = SHOWN_PLACES if overlapping else MOST_PLACES
    while at >= 0 and found <= most:
        yield EditPlace(at, at + len(old), whole=True)
        found += 1
        at = flat.find(old, at + step)


def _checked(flat: str, places: list[EditPlace], *, replace_all: bool) -> list[EditPlace]:
    if len(places) > MOST_PLACES:
        raise MatchError(
            "too_large",
            f"oldString is there more than {MOST_PLACES:,} times: change them with a program "
            "that bash runs, such as sed",
        )
    if len(places) == 1 or (replace_all and all(place.whole for place in places)):
        return places
    way_out = "" if replace_all else ", or set replaceAll to change every place"
    raise MatchError(
        "not_unique",
        "oldString fits several places in the file:\n"
        f"{fitting(flat, [place.start for place in places])}\n"
        f"Add lines around it until it fits one{way_out}.",
    )


class _Edit(msgspec.Struct, frozen=True):
    start: int
    end: int
    new: str


def _edit(flat: str, place: EditPlace, old: str, new: str, *, keeps: bool) -> _Edit:
    if keeps:
        new = pegboard.unstable.in_letters_of(
            flat[place.start : place.end], old.removesuffix("\n"), new
        )
    if place.lines is None:
        return _Edit(place.start, place.end, _inner(old, new) if place.trimmed else new)
    start, end = place.start, place.end
    if old.endswith("\n") and (new.endswith("\n") or not new):
        if end < len(flat):
            end += 1
        elif new:
            new = new.removesuffix("\n")
        else:
            # The last line goes with the break before it: the file still ends without one.
            start = max(start - 1, 0)
    return _Edit(start, end, _moved(flat[place.start : place.end], old, new))


def _inner(old: str, new: str) -> str:
    """Return `new` without the leading and trailing white space that it shares with `old`."""
    lead = old[: len(old) - len(old.lstrip())]
    trail = old[len(old.rstrip()) :]
    return new.removeprefix(lead).removesuffix(trail)


def _moved(block: str, old: str, new: str) -> str:
    """Return `new`, indented like `block` if `new` is only indented like `old`."""
    there, meant, given = (_indentation(text) for text in (block, old, new))
    lines = new.split("\n")
    if meant != given or meant == there:
        return new
    if any(line.strip() and not line.startswith(meant) for line in lines):
        return new
    return "\n".join(there + line[len(meant) :] if line.strip() else line for line in lines)


def _indentation(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def _apply(body: str, flat: str, edits: list[_Edit]) -> str:
    """Apply the edits to `body`, a file's text with its own line ends.

    The edits' positions count in `flat`, the same text with LF line ends.
    """
    if len(body) == len(flat):
        breaks: list[int] = []
    else:
        # Where the file has CRLF, counted in `flat`: each is one letter more in `body`.
        starts = (match.start() for match in re.finditer("\r\n", body))
        breaks = [start - before for before, start in enumerate(starts)]
    pieces, done = [], 0
    for edit in edits:
        start = edit.start + bisect_left(breaks, edit.start)
        end = edit.end + bisect_left(breaks, edit.end)
        pieces += [body[done:start], _with_ends(body, start, end, edit.new) if breaks else edit.new]
        done = end
    return "".join([*pieces, body[done:]])


def _with_ends(body: str, start: int, end: int, new: str) -> str:
    """Return `new` with the line ends of the lines that it replaces, else of a line nearby."""
    *lines, last = new.split("\n")
    ends = re.findall("\r?\n", body[start:end])
    if not ends:
        after = body.find("\n", end)
        at = after if after >= 0 else body.rfind("\n", 0, start)
        ends = ["\r\n" if at > 0 and body[at - 1] == "\r" else "\n"]
    ends += [ends[-1]] * (len(lines) - len(ends))
    return "".join([*(line + ends[number] for number, line in enumerate(lines)), last])
