"""What every command asks of an open App before it does its own work."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import InvalidInputError
from pegboard.embedding import KeyFile, Places
from pegboard.errors import NotFoundError
from pegboard.kit import nearest_names
from pegboard.schema.session import Session

if TYPE_CHECKING:
    from pegboard import App

_SHOWN = 5
_SEARCHED = 500
"""The newest sessions, among which a misspelt id is looked for."""


def warnings_of(app: "App") -> tuple[str, ...]:
    """What is not as the user might think, the gravest first: `surroundings`, then plugins."""
    found = sorted(app.register.problems, key=lambda each: each.kind != "refusal")
    problems = (f"{problem.plugin}: {problem.text}" for problem in found)
    failures = (failure.message for failure in app.failures)
    return (*surroundings(app), *problems, *failures)


def surroundings(app: "App") -> tuple[str, ...]:
    """What is not as the user might think but for plugins: database, code, keys, settings."""
    damage = _damage_of_keys(Places.of(os.environ).keys)
    return (*app.storage.warnings, *_left_out(app), *damage, *app.loaded.warnings)


def _left_out(app: "App") -> tuple[str, ...]:
    """Code that nobody has trusted."""
    code = [path for path in app.untrusted if path not in app.loaded.untrusted]
    if not code:
        return ()
    names = ", ".join(_short(path, app.workspace.worktree) for path in code)
    text = f"not loaded, because this project is not trusted: {names}"
    return (f"{text}; `pegboard trust allow` shows and trusts it, --trust does so once",)


def _damage_of_keys(file: Path) -> tuple[str, ...]:
    """What is wrong with the keys that were kept."""
    if not file.exists():
        return ()
    _, damage = KeyFile(file).read()
    return (f"{file} cannot be used, and the keys in it do not count: {damage}",) if damage else ()


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _chosen(found: Sequence[Session]) -> Session:
    """The session used last, or another one of the newest that a person chooses."""
    if not found:
        raise InvalidInputError("there is no session in this project yet")
    from pegboard_plugins.cli.picking import can_pick, pick

    if len(found) == 1 or not can_pick():
        return found[0]
    rows = [(each.id, each.title) for each in found]
    chosen = pick("session", rows)
    return next(each for each in found if each.id == chosen)


async def find_session(app: "App", session_id: str | None, *, whole: bool = False) -> Session:
    """The session of this id, or whose id alone begins so; without an id the one used last.

    On a terminal a person chooses where there is no id. With `whole` an id must be given in full.

    :raises NotFoundError: with the nearest ids, when there is none.
    :raises InvalidInputError: when several begin so, or the project has none at all.
    """
    if session_id is None:
        return _chosen(await app.sessions(limit=_SEARCHED))
    try:
        return await app.session(session_id)
    except NotFoundError as error:
        every = await app.sessions(roots=False)
        meant = [each for each in every if session_id and each.id.startswith(session_id)]
        if len(meant) == 1 and not whole:
            return meant[0]
        if len(meant) > 1:
            shown = ", ".join(each.id for each in meant[:_SHOWN])
            text = f"{len(meant)} sessions begin with {session_id}: {shown}"
            raise InvalidInputError(text) from error
        hint = nearest_names(session_id, [each.id for each in every[:_SEARCHED]])
        raise NotFoundError("session", session_id, suggestions=hint) from error
