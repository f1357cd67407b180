"""Code of plugins that is no hook: what it raises is told with the plugin's name."""

from collections.abc import Iterator
from contextlib import contextmanager

from pegboard.errors import PegboardError, PluginError


@contextmanager
def blaming(plugin: str, what: str, *, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """A block of the plugin's code; `what` of it is named, as "the provider house".

    Errors of Pegboard's own, and those of the types `passing`, are the code's answer.

    :raises PluginError: for all else that the block raises.
    """
    try:
        yield
    except Exception as error:  # it is foreign code
        if isinstance(error, (PegboardError, *passing)):
            raise
        raise PluginError(plugin, f"{what} raised {line_of(error)}") from error


def line_of(error: BaseException) -> str:
    """The error's type and the first line of its text, which may fail to be made."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an error of a plugin may fail to say what it is
        text = ""
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
