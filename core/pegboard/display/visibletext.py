"""Foreign text, with characters escaped that a terminal would interpret or hide."""

import re

_TEXT_CONTROLS = "\n\t"
_UNSEEN = re.compile(
    "[\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a\u202f\u205f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_JOINERS = re.compile(
    "(?<=[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff])\u200d|(?<=[\u0600-\u0dff])[\u200c\u200d]"
)
"""Between emoji, and between letters of the scripts from Arabic to Sinhala."""

_OPENING = re.compile(r"(?<=://)[^\s/@\"']{1,500}(?=@)")
"""A name and a password, or a key alone, before the host of a URL."""


def without_passwords(text: str) -> str:
    """Replace the user names and passwords in the URLs of a text."""
    return _OPENING.sub("•••", text)


def escape_controls(text: str) -> str:
    r"""Return the string with each character escaped that a terminal would interpret or hide.

    Line breaks and tabs stay. Escape sequences, carriage returns and marks that change the writing
    direction become Python escapes such as `\x1b`. Joiners are removed, because terminals disagree
    on the width of joined characters.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _JOINERS.sub("", text)
    return "".join(
        character if character.isprintable() or character in _TEXT_CONTROLS else _spelt(character)
        for character in text
    )


def exposed(text: str) -> str:
    """Return the string with controls and invisible characters escaped."""
    spelt = _JOINERS.sub(lambda found: _spelt(found[0]), text)
    return _UNSEEN.sub(
        lambda found: found[0].encode("unicode_escape").decode(), escape_controls(spelt)
    )


def _spelt(character: str) -> str:
    if character == " " or (character.isspace() and character not in "\r\x0b\x0c\x85\u2028\u2029"):
        return character
    return character.encode("unicode_escape").decode("ascii")
