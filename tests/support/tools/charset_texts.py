"""Texts in many languages with the encodings that files have them in, for tests of their guess."""

from pathlib import Path

import msgspec

TEXTS = Path(__file__).parents[2] / "data" / "charset_texts.json"
CODE = """\
import os


def load(path, *, strict=False):
    rows = []  {comment}
    with open(path) as file:
        for number, line in enumerate(file):
            rows.append((number, line.split(",")))
    return rows if strict else [row for row in rows if row]
"""


class Sample(msgspec.Struct, frozen=True):
    """A text, the encoding that it is in, and whether it is as long as some sentences."""

    text: str
    encoding: str
    is_long: bool

    @property
    def content(self) -> bytes:
        """The text as bytes."""
        return self.text.encode(self.encoding)


class Language(msgspec.Struct, frozen=True):
    """Comments of one line and a text of some sentences, for the encodings that they are in."""

    encodings: tuple[str, ...]
    comments: tuple[str, ...]
    sentences: str


def languages() -> list[Language]:
    """The texts, which are read anew at each call."""
    return msgspec.json.decode(TEXTS.read_bytes(), type=list[Language])


def sentences(encoding: str) -> str:
    """The first text that is in this encoding."""
    return next(each.sentences for each in languages() if encoding in each.encodings)


def samples() -> list[Sample]:
    """Each text in each of its encodings: comments alone and in code, sentences likewise."""
    return [sample for language in languages() for sample in _samples(language)]


def _samples(language: Language) -> list[Sample]:
    short = [
        text
        for comment in language.comments
        for text in (f"# {comment}\n", CODE.replace("{comment}", f"# {comment}"))
    ]
    words = language.sentences
    long = [words, f'"""{words}"""\n{CODE}', f"{CODE * 50}# {words}"] if words else []
    return [
        Sample(text, encoding, is_long=text in long)
        for encoding in language.encodings
        for text in short + long
    ]
