"""The protocol's identifiers; each new id sorts after all other ids of its session.

An id is `<prefix>_`, 12 hexadecimal digits of time and 14 random characters of base 62. The digits
are the low 48 bits of `milliseconds * 4096 + counter`. They start again from zero every 795 days
(for example at 2026-08-14T11:19:55Z), so a clock alone does not keep the order.
"""

import os
import re
import threading
import time
from bisect import bisect_right
from typing import Literal

from pegboard.errors import InvalidInputError

Kind = Literal["session", "message", "part", "permission", "question", "event", "tool", "pty"]

PREFIXES: dict[Kind, str] = {
    "session": "ses",
    "message": "msg",
    "part": "prt",
    "permission": "per",
    "question": "que",
    "event": "evt",
    "tool": "tool",
    "pty": "pty",
}
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TIME_DIGITS = 12
_LETTERS = bytes(ord(_ALPHABET[byte % len(_ALPHABET)]) for byte in range(256))
"""The character for each random byte."""
_TAIL_LENGTH = 14
_LENGTH = _TIME_DIGITS + _TAIL_LENGTH
_STEPS_PER_MS = 4096
_GREATEST_TIME = 2**48 - 1
# Four characters count 14 million ids before an id grows by one character.
_COUNTER_LENGTH = 4
_TIME = re.compile(f"[0-9a-f]{{{_TIME_DIGITS}}}")
_GIVEN_LIMIT = 64


def check_id(kind: Kind, text: str) -> str:
    """Return `text` if it is a valid id for a new session or message that a client names.

    :raises InvalidInputError: when its prefix is wrong, or the rest is not 1 to 64 letters, digits,
      `_` and `-`.
    """
    prefix = PREFIXES[kind]
    if not re.fullmatch(rf"{prefix}_[0-9A-Za-z_-]{{1,{_GIVEN_LIMIT}}}", text):
        raise InvalidInputError(
            f"not the id of a {kind}: {text[:80]!r}; it is {prefix}_ and 1 to {_GIVEN_LIMIT} "
            "letters, digits, _ or -"
        )
    return text


class IdSource:
    """The source of ids; a process has one source, which threads may share.

    Its ids ascend within a kind (session ids descend), even when the clock is set back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new(self, kind: Kind, *, after: str | None = None) -> str:
        """Return a new id, greater as a string than `after`.

        `after` is the greatest id of this kind in the session. It may be any string, for example a
        client's id from a clock that is ahead, or an id from before the 48 bits wrapped. Session
        ids have no `after`, because sessions are not ordered by id.
        """
        prefix = f"{PREFIXES[kind]}_"
        number = self._tick() & _GREATEST_TIME
        if kind == "session":
            return prefix + _body(_GREATEST_TIME - number)
        natural = prefix + _body(number)
        if after is None or natural > after:
            return natural
        return prefix + _beyond(after.removeprefix(prefix))

    def _tick(self) -> int:
        with self._lock:
            now = time.time_ns() // 1_000_000 * _STEPS_PER_MS + 1
            self._last = max(now, self._last + 1)
            return self._last


def _body(number: int) -> str:
    return f"{number:0{_TIME_DIGITS}x}{_random(_TAIL_LENGTH)}"


def _random(length: int) -> str:
    """Return random characters directly from the system, since `secrets` takes 7 ms to import."""
    return os.urandom(length).translate(_LETTERS).decode()


def _beyond(body: str) -> str:
    """Return a string that is greater than `body`, an id without its prefix.

    The new body has the next time. If the time is already the greatest, the counter after it is
    raised. Each `z` after the time is kept, so that a greater counter always exists.
    """
    match = _TIME.match(body)
    if match and int(match[0], 16) < _GREATEST_TIME:
        return _body(int(match[0], 16) + 1)
    start = min(_TIME_DIGITS, len(body))
    while body[start : start + 1] >= _ALPHABET[-1]:
        start += 1
    counter = body[start : start + _COUNTER_LENGTH].ljust(_COUNTER_LENGTH, _ALPHABET[0])
    greater = body[:start] + _raised(counter)
    shortest_tail = _TAIL_LENGTH - _COUNTER_LENGTH
    return greater + _random(max(shortest_tail, _LENGTH - len(greater)))


def _raised(counter: str) -> str:
    """Return the next greater string of this length; its first character is below `z`."""
    place = max(at for at, character in enumerate(counter) if character < _ALPHABET[-1])
    raised = _ALPHABET[bisect_right(_ALPHABET, counter[place])]
    return counter[:place] + raised + _ALPHABET[0] * (len(counter) - place - 1)
