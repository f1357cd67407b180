"""The conversion of Claude Code's commands and skills into templates with Pegboard's placeholders.

In Claude Code `$0` is the first word of the arguments, and `$N` is `$ARGUMENTS[N]`.
"""

import re
from collections.abc import Mapping, Sequence

from pegboard_plugins.shared.frontend.frontmatter import listed

_SNIPPET = re.compile(r"(!`[^`\n]+`)")
_PLACEHOLDER = r"\$ARGUMENTS(?:\[(?P<index>\d+)\])?(?!\w)"
_NUMBER = r"\$(?P<number>\d+)"
_APPENDED = "\n\n$ARGUMENTS[+|ARGUMENTS: $ARGUMENTS|]"


def template_of(body: str, names: Sequence[str] = (), *, appends: bool = True) -> str:
    """Convert the body of a command or skill into a template; `names` are its arguments' names.

    If the arguments have no word for a placeholder, the placeholder stays as written. To a body
    without placeholders, the arguments are appended if `appends` is true. In shell snippets only
    names and `$ARGUMENTS[N]` are replaced, because `$1` belongs to the shell.
    """
    named = rf"|\$(?P<name>{'|'.join(map(re.escape, names))})\b" if names else ""
    in_text = re.compile(f"{_PLACEHOLDER}|{_NUMBER}{named}")
    in_snippet = re.compile(f"{_PLACEHOLDER}{named}")

    def index(match: re.Match[str]) -> int | None:
        found = match.groupdict()
        if found.get("name"):
            return names.index(found["name"])
        number = found["index"] or found.get("number")
        return int(number) if number else None

    def word(match: re.Match[str]) -> str:
        place = index(match)
        return match[0] if place is None else f"$ARGUMENTS[{place}|{match[0]}|]"

    def variable(match: re.Match[str]) -> str:
        place = index(match)
        return match[0] if place is None else f"${{{place + 1}}}"

    pieces = _SNIPPET.split(body)
    has_placeholder = any(in_text.search(piece) for piece in pieces[::2])
    texts = (
        in_snippet.sub(variable, piece) if at % 2 else in_text.sub(word, piece)
        for at, piece in enumerate(pieces)
    )
    return "".join(texts) + ("" if has_placeholder or not appends else _APPENDED)


def argument_names(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the argument names in the front matter, where commas or blanks separate them."""
    names = (name for each in listed(settings.get("arguments")) for name in each.split())
    return tuple(name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name))


def argument_hints(settings: Mapping[str, object], body: str) -> tuple[str, ...]:
    """Return the argument hint of the front matter, or else the placeholders in the body."""
    hint = settings.get("argument-hint")
    if isinstance(hint, list):  # YAML reads `[issue]` as a list
        hint = f"[{', '.join(map(str, hint))}]"
    if isinstance(hint, str) and hint.strip():
        return (hint.strip(),)
    return tuple(sorted(set(re.findall(r"\$\d+|\$ARGUMENTS(?:\[\d+\])?", body))))


def counting_note(content: bytes) -> str:
    """Return a warning if a file seems to count arguments from `$1` instead of `$0`, or ""."""
    is_older = re.search(rb"\$[1-9]", content) and b"$0" not in content
    return "`$1` is the second word of its arguments, `$0` the first" if is_older else ""
