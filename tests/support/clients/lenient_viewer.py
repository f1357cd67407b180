"""A viewer of Markdown that obeys everything in it, as none on the web does."""

from markdown_it import MarkdownIt


class Lenient(MarkdownIt):
    """A parser that passes HTML on, and makes every link."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's
        return True


def drawn(text: str) -> str:
    """The HTML of a text."""
    return str(Lenient("commonmark", {"html": True}).enable("table").render(text))
