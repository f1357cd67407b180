"""MIME types of files: what a model is given as text, and what it may see or hear."""

import re
from pathlib import Path

DIRECTORY_MIME = "application/x-directory"
TEXT_MIME = "text/plain"

_TEXTS = re.compile(
    r"text/.*|.*\+(json|xml|yaml)"
    r"|application/(json|ld\+json|xml|toml|yaml|x-yaml|javascript|typescript|sql|x-sh|graphql)"
)
_SHOWN_AS_THEY_ARE = ("image/", "audio/", "video/", "application/pdf")


def mime_of(path: Path) -> str:
    """The MIME type for a file part: its own for what a model may see or hear, else text."""
    import mimetypes  # 10 ms for its tables, which only a prompt with a file pays

    guessed = mimetypes.guess_type(path.name)[0] or ""
    return guessed if guessed.startswith(_SHOWN_AS_THEY_ARE) and not is_text(guessed) else TEXT_MIME


def is_text(mime: str) -> bool:
    """Whether a model is given content of this type as text."""
    return _TEXTS.fullmatch(mime.partition(";")[0].strip().lower()) is not None
