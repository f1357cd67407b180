"""The MIME types of content that a model receives as text."""

import re

_TEXTS = re.compile(
    r"text/.*|.*\+(json|xml|yaml)"
    r"|application/(json|ld\+json|xml|toml|yaml|x-yaml|javascript|typescript|sql|x-sh|graphql)"
)


def is_text(mime: str) -> bool:
    """Return whether a model receives content of this MIME type as text."""
    return _TEXTS.fullmatch(mime.partition(";")[0].strip().lower()) is not None
