"""Long texts that are the same every time, and are not all one letter."""

import base64
import random
from collections.abc import Callable, Mapping

WORDS = 8_000
_LETTERS = "etaoinshrdlucmfwypvbgk"
"""The more frequent ones first; each is drawn as often as its place says."""


def words(size: int) -> str:
    """Text like English: words of a vocabulary, of which few are frequent, with sentences."""
    chance = random.Random(size)
    likely = [1 / (place + 3) for place in range(len(_LETTERS))]
    vocabulary = [
        "".join(chance.choices(_LETTERS, likely, k=chance.randint(2, 10))) for _ in range(WORDS)
    ]
    often = [1 / (place + 1) for place in range(WORDS)]
    drawn = chance.choices(vocabulary, often, k=size // 2)
    ends = chance.choices((" ", ", ", ". ", "\n"), (30, 3, 2, 1), k=len(drawn))
    return "".join(word + end for word, end in zip(drawn, ends, strict=True))[:size]


def noise(size: int) -> str:
    """Base64 of random bytes: no two pieces are alike, and six of eight bits are chance."""
    return base64.b64encode(random.Random(size).randbytes(size))[:size].decode()


TEXTS: Mapping[str, Callable[[int], str]] = {"words": words, "noise": noise}
