"""The cases of tests/data: lists of JSON objects, some of which generate long texts."""

import json
from pathlib import Path

DATA = Path(__file__).parents[2] / "data"


def load(name):
    """The cases of a file, without the description that stands first."""
    cases = json.loads((DATA / name).read_text(encoding="utf-8"))
    return [case for case in cases if not case["id"].startswith("_")]


def built(pieces):
    """A long text from its pieces."""
    return "".join(piece if isinstance(piece, str) else _repeated(piece) for piece in pieces)


def _repeated(piece):
    first = piece.get("from", 0)
    numbers = range(first, first + piece["times"])
    return "".join(piece["text"].replace("{i}", str(number)) for number in numbers)
