"""Command hooks of other agents: Pegboard runs hook files of Claude Code, Codex and Gemini CLI.

The user's hooks always run. A project's hooks run after `pegboard trust allow`, which stores the
digests of the file and of the scripts that it names. A hook can tighten rules but never loosen
them, so an `allow` has no effect.
"""

import asyncio
import os
from collections.abc import Mapping
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import msgspec

from pegboard import Host, PendingCall, Plugin, SessionView, ToolContext, ToolResult, hookimpl
from pegboard.schema.config import Command
from pegboard.schema.message import Turn
from pegboard.schema.part import Part
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard_plugins.shared import BUNDLE_PLACES

if TYPE_CHECKING:
    from pegboard_plugins.chat import SlashCommand, StatusItem
    from pegboard_plugins.commandhooks.hookcommand import ForeignFiles
    from pegboard_plugins.commandhooks.hookruns import HookRuns
    from pegboard_plugins.commandhooks.runner import HookRunner

HOOK_S = 660.0
"""The time limit of this plugin's hooks, longer than that of any command hook."""
FILES: "ForeignFiles" = (
    ("claude", ".claude/settings.json"),
    ("claude", ".claude/settings.local.json"),
    ("codex", ".codex/hooks.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
)
"""The names of hook files in the user's home and in projects, each with its product."""
_APPS: "WeakKeyDictionary[Plugin, Host]" = WeakKeyDictionary()
_RUNNERS: "WeakKeyDictionary[Plugin, HookRunner]" = WeakKeyDictionary()
"""The Apps and runners of the plugin, stored here because hooks of tools do not get the App."""
_BEGUN: "WeakKeyDictionary[Plugin, set[str]]" = WeakKeyDictionary()
"""The sessions that had a prompt in this process."""


class HookOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plugin's options; `failure` decides whether a failed hook blocks the tool call."""

    failure: Literal["continue", "block"] = "continue"


options = HookOptions


def _runner(plugin: Plugin, session: SessionView) -> "HookRunner | None":
    """Return the runner of the App's hooks, or None without hook files and used skills."""
    known = _RUNNERS.get(plugin)
    if not _has_files(session) and (known is None or not known.skills.of(session)):
        return None
    return known or _new_runner(plugin)


def _new_runner(plugin: Plugin) -> "HookRunner":
    from pegboard_plugins.commandhooks.runner import HookRunner  # where there are hooks

    runner = _RUNNERS[plugin] = HookRunner(plugin, FILES)
    if plugin in _APPS:
        runner.open(_APPS[plugin])
    return runner


async def _use_skills(plugin: Plugin, session: SessionView, folder: str) -> None:
    """Run the hooks of the skill in this folder in the session from now on."""
    from pegboard_plugins.commandhooks.skillhooks import hooked_skills  # few sessions use skills

    found = await asyncio.to_thread(hooked_skills, session)
    if skills := [each for each in found if str(each.folder) == folder]:
        await (_RUNNERS.get(plugin) or _new_runner(plugin)).use(session, skills)


async def _resume_skills(plugin: Plugin, session: SessionView) -> None:
    """At a session's first prompt in this process, find the skills that it used in earlier ones."""
    begun = _BEGUN.setdefault(plugin, set())
    if session.id in begun or plugin not in _APPS:
        return
    begun.add(session.id)
    if session.info.model is None:
        return
    from pegboard_plugins.commandhooks.skillhooks import hooked_skills, used_folders  # few resume

    if skills := await asyncio.to_thread(hooked_skills, session):
        used = frozenset(used_folders(await _APPS[plugin].list_turns(session.id)))
        if again := [each for each in skills if str(each.folder) in used]:
            await (_RUNNERS.get(plugin) or _new_runner(plugin)).use(session, again)


def _has_files(session: SessionView) -> bool:
    home, places = session.home or Path.home(), session.places
    state = places.state if places is not None else None
    # Asked for by each hook of each call: a file that is absent costs no exception here.
    paths = _paths(home, session.worktree, session.directory, state)
    return any(map(os.access, paths, repeat(os.F_OK)))


@lru_cache(maxsize=64)
def _paths(home: Path, worktree: Path, directory: Path, state: Path | None) -> tuple[str, ...]:
    """Return the paths that may be hook files of a session, or folders of bundles with hooks."""
    folders = dict.fromkeys((home, worktree, directory))
    paths = [folder / name for folder in folders for _, name in FILES]
    paths += [worktree / name for name in BUNDLE_PLACES]
    return tuple(map(str, (*paths, state / "bundles.json") if state is not None else paths))


@hookimpl
async def startup(app: Host, plugin: Plugin) -> None:
    """Store the App that hooks run for."""
    _APPS[plugin] = app
    if plugin in _RUNNERS:
        _RUNNERS[plugin].open(app)


@hookimpl(timeout_s=HOOK_S)
async def tool_execute_before(
    session: SessionView, call: PendingCall, plugin: Plugin
) -> PendingCall | None:
    """Run PreToolUse and BeforeTool, which can reject or change a call, or have the user asked."""
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.calls import before_call

    return await before_call(runner, session, call)


@hookimpl(timeout_s=HOOK_S)
async def permission_ask(
    session: SessionView, request: PermissionRequest, plugin: Plugin
) -> Verdict | None:
    """Let PermissionRequest hooks deny a request before the user is asked.

    Also have the user asked if a PreToolUse hook returned `ask` for this call.
    """
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.calls import before_asking

    return await before_asking(runner, session, request)


@hookimpl(timeout_s=HOOK_S)
async def tool_execute_after(
    session: SessionView,
    call: PendingCall,
    result: ToolResult,
    context: ToolContext,
    plugin: Plugin,
) -> ToolResult | None:
    """Run PostToolUse and AfterTool hooks, which can extend or replace the result."""
    del context
    if call.tool == "skill":
        await _use_skills(plugin, session, str(result.metadata.get("dir")))
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.calls import after_call

    return await after_call(runner, session, call, result)


@hookimpl(timeout_s=HOOK_S)
async def tool_execute_failed(
    session: SessionView, call: PendingCall, error: str, plugin: Plugin
) -> str | None:
    """Run PostToolUseFailure hooks, which can extend the error."""
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.calls import after_failure

    return await after_failure(runner, session, call, error)


@hookimpl(timeout_s=HOOK_S)
async def chat_messages_transform(
    session: SessionView, messages: tuple[Turn, ...], plugin: Plugin
) -> tuple[Turn, ...] | None:
    """Run PostToolBatch hooks before the request that follows the calls of a step."""
    if session.purpose != "turn" or (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.calls import after_calls

    return await after_calls(runner, session, messages)


@hookimpl(timeout_s=HOOK_S)
async def chat_message(session: SessionView, message: Turn, plugin: Plugin) -> Turn | None:
    """Run SessionStart or SubagentStart, then UserPromptSubmit, which can reject the prompt."""
    await _resume_skills(plugin, session)
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.prompts import before_prompt

    return await before_prompt(runner, session, message)


@hookimpl(timeout_s=HOOK_S)
async def command_execute_before(
    session: SessionView, command: Command, parts: tuple[Part, ...], plugin: Plugin
) -> tuple[Part, ...] | None:
    """Run UserPromptExpansion hooks, which can extend or reject a slash command."""
    if command.source == "skill" and command.location:
        await _use_skills(plugin, session, str(Path(command.location).parent))
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.prompts import before_command

    return await before_command(runner, session, command, parts)


@hookimpl(timeout_s=HOOK_S)
async def turn_end(session: SessionView, answer: Turn, plugin: Plugin) -> str | None:
    """Run Stop, SubagentStop and AfterAgent hooks, which can make the turn continue."""
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.prompts import at_end

    return await at_end(runner, session, answer)


@hookimpl(timeout_s=HOOK_S)
async def session_compacting(session: SessionView, prompt: str, plugin: Plugin) -> str | None:
    """Run PreCompact and PreCompress hooks, which can add instructions for writing the summary."""
    if (runner := _runner(plugin, session)) is None:
        return None
    from pegboard_plugins.commandhooks.prompts import before_summary

    return await before_summary(runner, session, prompt)


@hookimpl(optionalhook=True)
async def register_slash(plugin: Plugin) -> "tuple[SlashCommand, ...]":
    """Return the slash command /hooks, or () before the App has started."""
    if plugin not in _APPS:
        return ()
    from pegboard_plugins.commandhooks.chatlist import hooks_command  # in a chat

    def runs() -> "Mapping[str, HookRuns]":
        return _RUNNERS[plugin].runs if plugin in _RUNNERS else {}

    return (hooks_command(_APPS[plugin], FILES, runs),)


@hookimpl(optionalhook=True)
async def status_items(plugin: Plugin) -> "tuple[StatusItem, ...]":
    """Return a status item if hooks of the project do not run."""
    runner = _RUNNERS.get(plugin)
    if runner is None or not runner.is_refusing:
        return ()
    from pegboard_plugins.chat import StatusItem  # in a chat

    return (StatusItem(id="hooks", text="hooks do not run: /trust", priority=90),)


@hookimpl
async def shell_env(
    session: SessionView, env: Mapping[str, str], plugin: Plugin
) -> Mapping[str, str] | None:
    """Add the environment variables that SessionStart hooks have exported."""
    runner = _RUNNERS.get(plugin)
    return None if runner is None else await runner.with_exported(session, env)


@hookimpl(timeout_s=HOOK_S)
async def shutdown(app: Host, plugin: Plugin) -> None:
    """Run SessionEnd hooks, and end background hooks."""
    del app
    _APPS.pop(plugin, None)
    if (runner := _RUNNERS.pop(plugin, None)) is None:
        return
    from pegboard_plugins.commandhooks.watching import end

    await end(runner)
    await runner.close()
