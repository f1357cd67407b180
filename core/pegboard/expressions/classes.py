"""Classes of letters, such as `[a-z&&[^aeiou]]`, as ripgrep writes them and as `regex` does."""

import re
from collections.abc import Sequence
from itertools import chain

import msgspec

from pegboard.expressions.source import Flags, Letter, Source

NOTHING = "(?!)"
_LINE_ENDS = ("\n", "\r")
_FIRST_SURROGATE, _LAST_SURROGATE = "\ud800", "\udfff"
_PROPERTY = re.compile(r"[pP](?:\{([^}]*)\}|([A-Za-z]))")
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_KINDS = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\x09\x20",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\x09-\x0d\x20",
    "upper": "A-Z",
    "word": r"0-9A-Za-z\x5f",
    "xdigit": "0-9A-Fa-f",
}
_SHORT = {"d": "digit", "s": "space", "w": "word"}
_OPERATIONS = {
    "&&": "(?:(?={left}){right})",
    "--": "(?:(?!{right}){left})",
    "~~": "(?:(?!{right}){left}|(?!{left}){right})",
}
_WITH_LINE_ENDS = ("ascii", "cntrl", "space")


class Class(msgspec.Struct, frozen=True):
    """A class: of what `members` has, as `regex` writes a set, or what one of `others` fits.

    It is `plain` if neither the end of a line nor a byte that is no letter can be in it, and
    `ascii` if nothing else can. It is `cased` if it may have a letter without its other case.
    """

    members: str = ""
    others: tuple[str, ...] = ()
    negated: bool = False
    plain: bool = False
    ascii: bool = False
    cased: bool = True

    def without(self, members: str) -> str:
        """An expression for one letter of the class that is not one of these."""
        if not self.negated:
            return f"(?:(?![{members}]){self.text})"
        if not self.others:
            return f"[^{self.members}{members}]"
        return f"(?:(?!{self._inside})[^{members}])"

    @property
    def text(self) -> str:
        """An expression for one letter of the class."""
        if not self.negated:
            return self._inside
        return f"(?:(?!{self._inside})[\\s\\S])" if self.others else f"[^{self.members}]"

    @property
    def _inside(self) -> str:
        if not self.others:
            return f"[{self.members}]" if self.members else NOTHING
        first = (f"[{self.members}]",) if self.members else ()
        return f"(?:{'|'.join((*first, *self.others))})"


def letter_class(letter: Letter) -> Class:
    """The class of one letter."""
    return _range(letter.text, letter.text)


def escaped_class(source: Source, flags: Flags) -> Class | None:
    r"""The class that `\d`, `\pL` and the like stand for; None if the escape is of no class."""
    sign = source.text[source.at : source.at + 1]
    if sign in ("p", "P"):
        return _property(source)
    if sign.lower() not in _SHORT or not sign:
        return None
    source.at += 1
    kind, negated = _SHORT[sign.lower()], sign.isupper()
    members = f"\\{sign.lower()}" if flags.u else _KINDS[kind]
    return Class(
        members,
        negated=negated,
        plain=not negated and kind not in _WITH_LINE_ENDS,
        ascii=not flags.u and not negated,
        cased=False,
    )


def read_class(source: Source, flags: Flags) -> tuple[Class, Letter | None]:
    """The class behind a bracket, and the letter that is alone in it."""
    source.peek(flags)
    negated = source.skip("^")
    items = _first(source, flags)
    whole: Class | None = None
    operation = ""
    while True:
        if not source.peek(flags):
            raise source.fail("a [ without its ]")
        found = next((each for each in (*_OPERATIONS, "]") if source.skip(each)), "")
        if not found:
            items.append(_item(source, flags))
            continue
        union = _union([kind for kind, _ in items])
        alone = items[0][1] if len(items) == 1 and not operation and not negated else None
        whole = _combined(whole, operation, union) if whole else union
        if found == "]":
            return _opposite(whole) if negated else whole, alone
        operation, items = found, []


def _union(kinds: Sequence[Class]) -> Class:
    if len(kinds) == 1:
        return kinds[0]
    flat = [kind for kind in kinds if not kind.negated]
    return Class(
        "".join(kind.members for kind in flat),
        (*chain(*(kind.others for kind in flat)), *(kind.text for kind in kinds if kind.negated)),
        plain=all(kind.plain for kind in kinds),
        ascii=all(kind.ascii for kind in kinds),
        cased=any(kind.cased for kind in kinds),
    )


def _combined(left: Class, operation: str, right: Class) -> Class:
    first, second = left.text, right.text
    return Class(
        others=(_OPERATIONS[operation].format(left=first, right=second),),
        plain=left.plain and right.plain,
        ascii=left.ascii and right.ascii,
    )


def _opposite(kind: Class) -> Class:
    if kind.negated:
        return Class(others=(kind.text,), negated=True, cased=kind.cased)
    return Class(kind.members, kind.others, negated=True, cased=kind.cased)


def _first(source: Source, flags: Flags) -> list[tuple[Class, Letter | None]]:
    """What would have a meaning anywhere but at the start."""
    items: list[tuple[Class, Letter | None]] = []
    while source.peek(flags) == "-":
        source.at += 1
        items.append(_alone(Letter("-")))
    if not items and source.peek(flags) == "]":
        source.at += 1
        items.append(_alone(Letter("]")))
    return items


def _alone(letter: Letter) -> tuple[Class, Letter]:
    return letter_class(letter), letter


def _item(source: Source, flags: Flags) -> tuple[Class, Letter | None]:
    if (posix := _POSIX.match(source.text, source.at)) and posix[2] in _KINDS:
        source.at = posix.end()
        negated = bool(posix[1])
        plain = not negated and posix[2] not in _WITH_LINE_ENDS
        return Class(_KINDS[posix[2]], negated=negated, plain=plain, ascii=not negated), None
    if source.skip("["):
        return read_class(source, flags)[0], None
    first = _member(source, flags)
    if isinstance(first, Class):
        return first, None
    source.peek(flags)
    after = source.text[source.at : source.at + 2]
    if not after.startswith("-") or after in ("-]", "--", "-"):
        return _alone(first)
    source.at += 1
    source.peek(flags)
    last = _member(source, flags)
    if isinstance(last, Class) or first.text > last.text:
        raise source.fail("a range of letters has to go from one letter to a later one")
    return _range(first.text, last.text), None


def _member(source: Source, flags: Flags) -> Letter | Class:
    if not source.skip("\\"):
        source.at += 1
        return Letter(source.text[source.at - 1 : source.at])
    letter = source.escaped(flags)
    found = letter or escaped_class(source, flags)
    if found is None:
        raise source.fail("an unknown escape in a class")
    return found


def _range(first: str, last: str) -> Class:
    plain = not any(first <= end <= last for end in _LINE_ENDS) and (
        last < _FIRST_SURROGATE or first > _LAST_SURROGATE
    )
    return Class(f"{quoted(first)}-{quoted(last)}", plain=plain, ascii=last.isascii())


def quoted(letter: str) -> str:
    """A letter that means itself, also in a class."""
    return letter if letter.isascii() and letter.isalnum() else f"\\U{ord(letter):08x}"


def _property(source: Source) -> Class:
    found = source.match(_PROPERTY)
    if not found:
        raise source.fail("the name of a property of letters is missing")
    name = (found[1] or found[2]).replace(" ", "")
    negated = found[0].startswith("P")
    if "!=" in name:
        name, negated = name.replace("!=", "="), not negated
    return Class(f"\\p{{{name}}}", negated=negated)
