"""Agents, slash commands and rules of Claude Code, in `.claude` folders and in bundles.

Rules that deny or ask count at once, because they only tighten permissions. Agents and commands of
a project count after the user trusts their files.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary, ref

import msgspec

from pegboard import (
    Host,
    PendingCall,
    Plugin,
    SessionView,
    ToolError,
    Workspace,
    evolve,
    hookimpl,
)
from pegboard.providers import ModelRequest
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.message import Turn
from pegboard.schema.session import Rule
from pegboard_plugins.shared import FileWarnings, has_bundles, has_project_bundles

if TYPE_CHECKING:
    from pegboard.app import UserFolders
    from pegboard_plugins.foreignfiles.claudefolder import ClaudeSetup

_READ = ("agents", "commands", "settings.json", "settings.local.json")
"""The names in a `.claude` folder of which one must exist, or its modules are not loaded."""
_MOST_NOTES = 3


class ForeignOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the plugin; with `all`, the user's allow rules in Claude Code count too."""

    permissions: Literal["tighten", "all"] = "tighten"


options = ForeignOptions
_SETUPS: "WeakKeyDictionary[Plugin, ClaudeSetup]" = WeakKeyDictionary()
"""The parsed folders of each App, read once before anything is registered."""
_LOSSES: "WeakKeyDictionary[Plugin, list[str]]" = WeakKeyDictionary()
"""The lines about parts of files without effect, which the first prompt shows."""
_WARNINGS: "WeakKeyDictionary[Plugin, FileWarnings]" = WeakKeyDictionary()


@hookimpl
async def trusted_files(workspace: Workspace) -> Sequence[Path]:
    """Return the files that define the project's agents and commands, and the bundles' files."""
    bundled: tuple[Path, ...] = ()
    if has_project_bundles(workspace.worktree):
        from pegboard_plugins.shared.frontend import project_bundles  # where there are some

        found = await asyncio.to_thread(lambda: [*project_bundles(workspace.worktree)])
        bundled = tuple(path for each in found for path in each.files)
    folders = [each for each in _project_folders(workspace) if each != Path.home()]
    if not any((each / ".claude").is_dir() for each in folders):
        return bundled
    from pegboard_plugins.foreignfiles.claudefolder import (  # where there are some
        FOLDER,
        definition_files,
    )

    root = workspace.worktree
    return (
        *bundled,
        *(file.path for each in folders for file in definition_files(each / FOLDER, within=root)),
    )


@hookimpl
async def config_load(  # noqa: PLR0913, PLR0917 - the arguments of the hook
    config: Config,
    workspace: Workspace,
    home: Path,
    places: "UserFolders",
    trusted: Mapping[Path, bytes],
    plugin: Plugin,
) -> Config | None:
    """Read `.claude` folders and bundles; return the configuration with their rules and servers."""
    _SETUPS.pop(plugin, None)
    _LOSSES[plugin] = []
    changed = await _with_folders(config, workspace, home, trusted, plugin)
    if not has_bundles(places, workspace.worktree):
        return changed
    from pegboard_plugins.foreignfiles.bundleparts import read_parts  # where there are some
    from pegboard_plugins.foreignfiles.claudefolder import ClaudeSetup

    parts = await asyncio.to_thread(read_parts, places, workspace.worktree, trusted)
    own = _SETUPS.get(plugin, ClaudeSetup())
    _SETUPS[plugin] = ClaudeSetup(
        agents=(*parts.setup.agents, *own.agents),
        commands=(*parts.setup.commands, *own.commands),
        withheld={**parts.setup.withheld, **own.withheld},
    )
    if parts.setup.notes:
        _LOSSES[plugin].append("; ".join(parts.setup.notes[:_MOST_NOTES]))
    changed = changed or config
    return evolve(changed, mcp={**parts.servers, **changed.mcp})


async def _with_folders(
    config: Config,
    workspace: Workspace,
    home: Path,
    trusted: Mapping[Path, bytes],
    plugin: Plugin,
) -> Config | None:
    """Read `.claude` folders; return the configuration with their rules, or None without any."""
    projects = [each for each in _project_folders(workspace) if each != home]
    if any((each / ".mcp.json").exists() for each in projects):
        _name_servers(plugin)
    if not any(map(_has_files, (home, *projects))):
        return None
    from pegboard_plugins.foreignfiles.claudefolder import (  # where there are some
        Places,
        read_setup,
    )

    places = Places(home=home, workspace=workspace, projects=tuple(projects))
    setup = await asyncio.to_thread(read_setup, places, trusted)
    _SETUPS[plugin] = setup
    if setup.notes:
        more = len(setup.notes) - _MOST_NOTES
        rest = f"; and {more} more" if more > 0 else ""
        first = "; ".join(setup.notes[:_MOST_NOTES])
        way = "`pegboard import claude --dry-run` shows all"
        _LOSSES[plugin].append(f"not honoured: {first}{rest}; {way}")
    allowed = setup.allowed if plugin.options.permissions == "all" else ()
    if not setup.tightening and not allowed and not setup.plans:
        return None
    return evolve(
        config,
        default_agent=config.default_agent or ("plan" if setup.plans else None),
        permission=_before_the_users(config, allowed),
        rulesets=(*config.rulesets, *setup.tightening),
    )


def _name_servers(plugin: Plugin) -> None:
    """Add a note for the user if the package that starts the project's MCP servers is missing."""
    from importlib.util import find_spec  # where a project has servers

    if find_spec("pegboard_mcp") is None:
        _LOSSES[plugin].append("not honoured: .mcp.json needs `pip install 'pegboard[mcp]'`")


@hookimpl
async def startup(app: Host, plugin: Plugin) -> None:
    """Store the object that shows warnings about the `.claude` folders and bundles."""
    _WARNINGS[plugin] = FileWarnings(ref(app))


@hookimpl
async def chat_message(session: SessionView, message: Turn, plugin: Plugin) -> None:
    """Warn the user once about the parts of `.claude` folders and bundles that have no effect."""
    del message
    if plugin in _WARNINGS:
        for line in _LOSSES.get(plugin, ()):
            await _WARNINGS[plugin].show(session.id, line)


def _before_the_users(config: Config, allowed: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return all permission rules, with `allowed` between the built-in rules and the user's."""
    built_in = [each for each in config.permission if each.by == "built-in"]
    users = [each for each in config.permission if each.by != "built-in"]
    return (*built_in, *allowed, *users)


@hookimpl
async def register_agents(plugin: Plugin) -> tuple[Agent, ...]:
    """Return the agents in `.claude` folders and bundles, as subagents."""
    setup = _SETUPS.get(plugin)
    return setup.agents if setup else ()


@hookimpl
async def register_commands(plugin: Plugin) -> tuple[Command, ...]:
    """Return the slash commands in `.claude` folders and bundles."""
    setup = _SETUPS.get(plugin)
    return setup.commands if setup else ()


@hookimpl
async def chat_params(
    session: SessionView, request: ModelRequest, plugin: Plugin
) -> ModelRequest | None:
    """Remove the tools that the agent's file withholds from the request."""
    names = _withheld(session, plugin)
    return request.without(*names) if names else None


@hookimpl
async def tool_execute_before(session: SessionView, call: PendingCall, plugin: Plugin) -> None:
    """Reject a call of a tool that the agent's file withholds.

    :raises ToolError: for such a call.
    """
    withheld = _withheld(session, plugin)
    if call.tool in withheld:
        raise ToolError(f"the agent {session.agent.name} does not have the tool {call.tool}")
    if withheld and call.tool == "apply_patch":
        from pegboard_plugins.foreignfiles.claudetools import refused_section  # few agents need it

        if section := refused_section(str(call.input.get("patchText")), withheld):
            name = session.agent.name
            raise ToolError(f"the agent {name} may not apply a patch with `*** {section}`")


def _withheld(session: SessionView, plugin: Plugin) -> frozenset[str]:
    setup = _SETUPS.get(plugin)
    return setup.withheld.get(session.agent.name, frozenset()) if setup else frozenset()


def _has_files(folder: Path) -> bool:
    top = folder / ".claude"
    return top.is_dir() and any((top / name).exists() for name in _READ)


def _project_folders(workspace: Workspace) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((workspace.worktree, workspace.directory)))
