"""The files of which a server wants to know each creation, change and deletion."""

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from pegboard import InvalidInputError
from pegboard.files import glob_expression
from pegboard_plugins.lsp.known import Launch

MOST_GLOBS = 200
"""The most patterns that a server may name; beyond it the server hears of every file."""
_ALL = glob_expression("**")


class Watchers:
    """The file patterns that a server registered, or else its languages' files and its markers."""

    def __init__(self, launch: Launch) -> None:
        self._root = launch.root
        self._suffixes = launch.language.languages.keys()
        self._markers = frozenset(launch.language.markers)
        self._globs: dict[str, tuple[re.Pattern[str], ...]] = {}

    def register(self, params: types.RegistrationParams) -> None:
        """Add the patterns that a server registers while it runs."""
        for each in params.registrations:
            if each.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES:
                self._globs[each.id] = tuple(map(_expression, _globs(each.register_options)))
        if sum(map(len, self._globs.values())) > MOST_GLOBS:
            self._globs = {"": (_ALL,)}

    def unregister(self, params: types.UnregistrationParams) -> None:
        """Remove patterns that the server registered before."""
        for each in params.unregisterations:
            self._globs.pop(each.id, None)

    def knows(self, path: str) -> bool:
        """Return whether a file has a language of the server, or configures the server."""
        name = Path(path)
        return name.suffix.lower() in self._suffixes or name.name in self._markers

    def want(self, path: str) -> bool:
        """Return whether the server wants notifications about this file."""
        if not self._globs:
            return self.knows(path)
        below = path.removeprefix(f"{self._root}/")
        return any(
            glob.fullmatch(below) or glob.fullmatch(path[1:])  # some patterns are whole paths
            for globs in self._globs.values()
            for glob in globs
        )


def _globs(options: object) -> Iterator[str]:
    match options:
        case {"watchers": [*watchers]}:
            for watcher in watchers:
                match watcher:
                    case {"globPattern": str(pattern)} | {"globPattern": {"pattern": str(pattern)}}:
                        yield pattern


def _expression(pattern: str) -> re.Pattern[str]:
    """Compile a glob pattern; an invalid pattern matches every path."""
    try:
        return glob_expression(pattern)
    except InvalidInputError:
        return _ALL
