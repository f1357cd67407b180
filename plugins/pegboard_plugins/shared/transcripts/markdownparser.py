"""A parser of Markdown for which HTML is text."""

from collections.abc import Sequence

from markdown_it import MarkdownIt


class Parser(MarkdownIt):
    """A parser that makes only links that begin with one of the schemes; "" allows all."""

    def __init__(self, *, schemes: Sequence[str]) -> None:
        super().__init__("commonmark", {"html": False, "xhtmlOut": False})
        self.enable(["strikethrough", "table"])
        self._schemes = tuple(schemes)

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's
        """Return whether the link is made; any other stays as it was written."""
        return url.lower().startswith(self._schemes)
