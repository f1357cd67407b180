"""Completions of the command line: current sessions, models, agents and settings.

Because a shell waits for them, they return nothing after an error or a delay.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.shell_completion import CompletionItem

from pegboard import PegboardError
from pegboard.app import UserFolders
from pegboard.cli import run_async

if TYPE_CHECKING:
    from pegboard import App

Kind = Literal["session", "model", "agent", "plugin", "tool", "command", "profile", "setting"]
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
LIMIT_S = 5.0
NEWEST = 30
"""The number of newest sessions that are completed; `session list` has the others."""
_MODEL_KEYS = frozenset({"model", "small_model"})
"""The names of settings with a model as their value, in any table."""


def live(kind: Kind) -> Completer:
    """Return a function that completes values of this kind, such as sessions or models."""

    def complete(
        ctx: click.Context,
        _parameter: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        directory = ctx.find_root().params.get("directory") or Path()
        head, comma, last = incomplete.rpartition(",") if kind == "tool" else ("", "", incomplete)
        return [
            CompletionItem(f"{head}{comma}{value}", help=_help(text))
            for value, text in _values(kind, Path(directory)).items()
            if value.startswith(last)
        ]

    return complete


def setting_value(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of models, if the setting's value is a model."""
    is_model = str(ctx.params.get("key")).rpartition(".")[2] in _MODEL_KEYS
    return live("model")(ctx, parameter, incomplete) if is_model else []


def _help(text: str) -> str | None:
    from pegboard_plugins.cli.render import one_line

    return one_line(text, 60).replace(":", " ") or None


def _values(kind: Kind, directory: Path) -> Mapping[str, str]:
    try:
        with _silence():
            return run_async(asyncio.wait_for(_complete(kind, directory), LIMIT_S))
    except (PegboardError, OSError, ValueError):  # the time is over, the configuration not valid
        return {}


@contextmanager
def _silence() -> Iterator[None]:
    """Discard all output within the context, because the shell would take it for completions."""
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, stream in enumerate(kept, start=1):
            os.dup2(stream, number)
            os.close(stream)
        os.close(nothing)


async def _complete(kind: Kind, directory: Path) -> Mapping[str, str]:
    if kind == "session":
        return await _sessions(directory)
    from pegboard import App, AppOptions

    async with App.open(directory, AppOptions(trust=False)) as app:
        return await _OF_APP[kind](app)


async def _sessions(directory: Path) -> Mapping[str, str]:
    """Return the newest sessions; a missing database is not created."""
    from pegboard.app import IdSource, open_storage
    from pegboard.unstable import open_workspace

    url = os.environ.get("PEGBOARD_DATABASE", "")
    database = UserFolders.of(os.environ).database
    if not url and not os.path.exists(database):  # noqa: ASYNC240, PTH110 - nothing else runs
        return {}
    storage = await open_storage(ids=IdSource(), directory=directory)
    try:
        project = open_workspace(directory).project_id
        found = await storage.sessions(project, limit=NEWEST, roots=True)
    finally:
        await storage.aclose()
    return {each.id: each.title for each in found}


async def _models(app: "App") -> Mapping[str, str]:
    return {f"{each.provider_id}/{each.id}": each.name for each in await app.models()}


async def _agents(app: "App") -> Mapping[str, str]:
    found = (each for each in app.agents.values() if not each.hidden)
    return {each.name: each.description or "" for each in found}


async def _plugins(app: "App") -> Mapping[str, str]:
    return {each.name: "" for each in app.plugins.infos}


async def _tools(app: "App") -> Mapping[str, str]:
    return {name: tool.description for name, tool in app.tools.items()}


async def _commands(app: "App") -> Mapping[str, str]:
    return {name: command.description or "" for name, command in app.commands.items()}


async def _settings(app: "App") -> Mapping[str, str]:
    """Return the keys of all settings, including keys that the user named, such as an agent's."""
    import msgspec  # `--help` does without it

    from pegboard_plugins.cli.settingvalues import leaves

    def keys(table: msgspec.Struct, prefix: str = "") -> Iterator[str]:
        for name in table.__struct_fields__:
            value = getattr(table, name)
            if isinstance(value, msgspec.Struct):
                yield from keys(value, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}"

    named = (key for key, _ in leaves(msgspec.to_builtins(app.config_sources.config)))
    return dict.fromkeys((*keys(app.config), *named), "")


async def _profiles(app: "App") -> Mapping[str, str]:
    return dict.fromkeys(app.config.profile, "")


_OF_APP: Mapping[str, Callable[["App"], Awaitable[Mapping[str, str]]]] = {
    "model": _models,
    "agent": _agents,
    "plugin": _plugins,
    "tool": _tools,
    "command": _commands,
    "profile": _profiles,
    "setting": _settings,
}
