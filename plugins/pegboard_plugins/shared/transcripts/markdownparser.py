"""A Markdown parser that treats HTML as text."""

from collections.abc import Sequence

from markdown_it import MarkdownIt


class Parser(MarkdownIt):
    """A Markdown parser that makes links only for URLs with one of `schemes`; "" allows all."""

    def __init__(self, *, schemes: Sequence[str]) -> None:
        super().__init__("commonmark", {"html": False, "xhtmlOut": False})
        self.enable(["strikethrough", "table"])
        self._schemes = tuple(schemes)

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's
        """Return whether a URL becomes a link; otherwise the link stays plain text."""
        return url.lower().startswith(self._schemes)
