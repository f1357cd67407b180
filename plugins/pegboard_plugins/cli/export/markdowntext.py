"""The export of a session as Markdown, for an issue or a review."""

import re
from collections.abc import Iterator
from typing import assert_never

from pegboard.display import escape_controls, plain_line
from pegboard_plugins.shared.transcripts import (
    AnswerText,
    Entry,
    Fold,
    Inner,
    MessageEntry,
    Note,
    Picture,
    Transcript,
    Words,
    answer_markdown,
    fenced,
)

_OBEYED = re.compile(r"([\\`*_\[\]<>&!#|~])")


def session_markdown(transcript: Transcript, report: str) -> str:
    """Return the session as Markdown, with the `report` about redactions at the end."""
    return "\n\n".join((*_session(transcript, 1), "---", _plain(report))) + "\n"


def _session(transcript: Transcript, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 5)} {_plain(transcript.title)}"
    yield _plain(" · ".join(transcript.facts))
    for message in transcript.messages:
        yield from _message(message, level + 1)


def _message(message: MessageEntry, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 6)} {_plain(' · '.join((message.by, *message.facts)))}"
    for entry in message.entries:
        yield from _entry(entry, level)


def _entry(entry: Entry, level: int) -> Iterator[str]:
    match entry:
        case Words(text=text):
            yield fenced(escape_controls(text))
        case AnswerText(text=text):
            yield answer_markdown(text)
        case Note(text=text):
            yield _plain(text)
        case Picture(name=name):
            yield _plain(f"image: {name}")
        case Fold(title=title, lines=lines, inner=inner):
            yield f"**{_plain(title)}**"
            if lines:
                yield fenced("\n".join(map(plain_line, lines)))
            for each in inner:
                yield from _entry(each, level)
        case Inner(transcript=inside):
            yield from _session(inside, level + 1)
        case _:
            assert_never(entry)


def _plain(text: str) -> str:
    """Return the text on one line, with Markdown's special characters escaped."""
    return _OBEYED.sub(r"\\\1", " ".join(escape_controls(text).split()))
