"""The lsp tool, and the errors that language servers report in changed files."""

import asyncio
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

import pegboard.permissions
import pegboard.unstable
from pegboard import (
    Host,
    PermissionContext,
    SessionView,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard.files import named_path, resolved_path
from pegboard.plugins import StashKey
from pegboard.providers import ModelRequest
from pegboard.schema.config import Config, Service
from pegboard_plugins.lsp.known import (
    Launch,
    RefusedProgramError,
    can_answer,
    configured,
    launch,
    serving,
)

if TYPE_CHECKING:
    from lsprotocol.types import Diagnostic, Position

    from pegboard_plugins.lsp.server import LanguageServer
    from pegboard_plugins.lsp.servers import LanguageServers

    _Found = dict[Path, list[Diagnostic]]

Operation = Literal[
    "goToDefinition",
    "findReferences",
    "hover",
    "documentSymbol",
    "workspaceSymbol",
    "goToImplementation",
    "prepareCallHierarchy",
    "incomingCalls",
    "outgoingCalls",
    "diagnostics",
]
MOST_LINES = 200
MOST_SHOWN = 20
"""So many errors of a file are shown after an edit (opencode `tool/edit.ts`)."""
MOST_FILES = 5
WAIT_S = 3.0
"""How long an edit waits for errors, its server's start included."""
HOOK_S = 10.0
STOP_S = 5.0
HERE = "The language server reports errors in it now; mend those that your change has caused:"
ELSEWHERE = "These other files have errors now that they had not before:"

_ERROR = 1
"""The severity of an error."""
_SERVERS = StashKey["LanguageServers"]()
_TOLD = StashKey[set[str]]()
"""The reasons why programs of the project do not run; each is reported once."""


async def _may_ask(context: PermissionContext, operation: Operation, filePath: str) -> Path:
    """Require the permission to query the file's server; return the path with links resolved."""
    given = named_path(context, filePath)
    path = await context.require_path(given)
    # The server reads the file and tells what is in it.
    patterns = list(dict.fromkeys((os.path.normpath(given), str(path))))  # noqa: ASYNC240 - texts
    await context.require("read", patterns, always=["*"], metadata={"filepath": str(path)})
    await context.require("lsp", ["*"], always=["*"], metadata={"operation": operation})
    return path


def _may_show(context: ToolContext, path: str) -> bool:
    """Return whether the `read` tool could show this file without asking the user."""
    real = resolved_path(path)
    session = context.session
    return Path(real).is_relative_to(context.worktree) and all(
        pegboard.permissions.may_read(session.rulesets, each, home=session.home)
        for each in dict.fromkeys((path, real))
    )


@tool(requires=_may_ask, effect="reads")
async def lsp(  # noqa: PLR0913, PLR0917 - the protocol's parameters
    context: ToolContext,
    operation: Operation,
    filePath: str,
    line: int = 1,
    character: int = 1,
    query: str = "",
) -> ToolResult:
    """Ask a file's language server who calls, defines or implements a name, and what type it has.

    It knows the code where grep knows text.

    Args:
        filePath: absolute, or relative to the working directory; for workspaceSymbol any file of
            the language.
        line: where the name stands, from 1; not for documentSymbol, workspaceSymbol, diagnostics.
        character: the column of the name's first letter, from 1; as line.
        query: for workspaceSymbol, a part of the name.
    """
    path = context.granted(_may_ask)
    if not await asyncio.to_thread(path.is_file):
        raise ToolError(f"{path} is not a file")
    if not context.trusted:
        raise ToolError("language servers run only in projects that the user trusts")
    env = await context.process_env()
    chosen = await _launch(context, path, env)
    if chosen is None:
        raise ToolError(f"no language server for {path.suffix or path.name} is installed")
    servers = await _servers(context)
    from pegboard_plugins.lsp.operations import OPERATIONS, SymbolPlace  # like the servers

    question = SymbolPlace(
        path=path,
        line=line,
        character=character,
        query=query,
        folder=context.worktree,
        may_show=partial(_may_show, context),
    )
    async with servers.using(chosen, env, context.in_sandbox) as server:
        lines = await OPERATIONS[operation](server, question)
    return ToolResult(
        output=_cut(lines) or f"No results for {operation}",
        title=f"{operation} {filePath}",
        metadata={"result": len(lines), "server": chosen.language.name},
    )


def _cut(lines: Sequence[str]) -> str:
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], f"(and {more} more)"] if more > 0 else lines
    return "\n".join(shown)


async def _servers(context: ToolContext) -> "LanguageServers":
    # The library takes 0.4 s to import: when it is first needed, and beside the event loop.
    await asyncio.to_thread(import_module, "pegboard_plugins.lsp.servers")
    from pegboard_plugins.lsp.servers import LanguageServers

    return context.stash.setdefault(_SERVERS, LanguageServers)


async def _launch(context: ToolContext, path: Path, env: Mapping[str, str]) -> Launch | None:
    search = pegboard.unstable.ProgramSearch.of(context.session, env)
    return await asyncio.to_thread(launch, path, search, context.session.config.lsp)


@hookimpl(trylast=True, timeout_s=HOOK_S)
async def tool_execute_after(context: ToolContext, result: ToolResult) -> ToolResult | None:
    """Add the errors in files that a tool has changed to the tool's result, after formatters ran.

    New errors in other files that are open in the language servers are added too.
    """
    if not context.changed or not context.trusted:
        return None
    if (seen := _seen(context.session)) == [False]:
        seen.clear()  # a file of another language may be there
    refused: list[str] = []
    found, broken = await _errors(context, refused)
    told = context.stash.setdefault(_TOLD, set)
    news = [reason for reason in dict.fromkeys(refused) if reason not in told]
    told.update(news)
    texts = [f"({reason})" for reason in news]
    for note, errors in ((HERE, found), (ELSEWHERE, broken)):
        blocks = [_block(path, each) for path, each in errors.items() if each]
        texts += [note, *blocks] if blocks else []
    if not texts:
        return None
    return replace(
        result,
        output="\n\n".join((result.output, *texts)),
        metadata={**result.metadata, "diagnostics": _metadata({**found, **broken})},
    )


async def _errors(context: ToolContext, refused: list[str]) -> "tuple[_Found, _Found]":
    """Return the errors in the first changed files, and new errors in other files.

    Errors that are not known in time are left out. The reasons why programs of the project do not
    run are added to `refused`.
    """
    found: _Found = {}
    broken: _Found = {}
    changed, said = context.changed, context.session.config.lsp
    served = [path for path in changed[:MOST_FILES] if any(serving(path, said))]
    if not served:  # the environment of programs costs one
        return found, broken
    env = await context.process_env()
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            for chosen, paths in await _launches(context, served, env, refused):
                with suppress(ToolError):  # no edit fails because nobody looks it over
                    servers = await _servers(context)
                    async with servers.using(chosen, env, context.in_sandbox, changed) as server:
                        for path in paths:
                            found[path] = await _errors_in(server, path)
                        broken |= await server.broken(but=changed)
    return found, broken


async def _launches(
    context: ToolContext, paths: Iterable[Path], env: Mapping[str, str], refused: list[str]
) -> list[tuple[Launch, list[Path]]]:
    """Return how to start each language server for these files, with the server's files."""
    found: dict[tuple[str, Path], tuple[Launch, list[Path]]] = {}
    for path in paths:
        try:
            chosen = await _launch(context, path, env)
        except RefusedProgramError as error:
            refused.append(str(error))
            continue
        if chosen is not None:
            refused += [chosen.refused] if chosen.refused else []
            key = (chosen.language.name, chosen.root)
            found.setdefault(key, (chosen, []))[1].append(path)
    return list(found.values())


async def _errors_in(server: "LanguageServer", path: Path) -> "list[Diagnostic]":
    try:
        found = await server.diagnostics(path)
    except ToolError:  # it is gone
        return []
    return [each for each in found if (each.severity or _ERROR) == _ERROR]


def _block(path: Path, errors: Sequence["Diagnostic"]) -> str:
    lines = [
        f"ERROR [{each.range.start.line + 1}:{each.range.start.character + 1}] {each.message}"
        for each in errors[:MOST_SHOWN]
    ]
    if len(errors) > MOST_SHOWN:
        lines.append(f"... and {len(errors) - MOST_SHOWN} more")
    return "\n".join((f'<diagnostics file="{path}">', *lines, "</diagnostics>"))


def _metadata(found: "_Found") -> dict[str, list[dict[str, Any]]]:
    return {
        str(path): [
            {
                "range": {"start": _place(each.range.start), "end": _place(each.range.end)},
                "severity": _ERROR,
                "message": each.message,
            }
            for each in errors[:MOST_SHOWN]
        ]
        for path, errors in found.items()
        if errors
    }


def _place(position: "Position") -> dict[str, int]:
    return {"line": position.line, "character": position.character}


@hookimpl
def register_tools(config: Config) -> list[Tool]:
    """Register the lsp tool if a language server is configured or installed."""
    programs = ((each.named, each.command[0]) for each in configured(config.lsp))
    return [lsp] if any(named or shutil.which(name) for named, name in programs) else []


@hookimpl
async def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """Remove the tool from the request if no language server could answer it.

    The project is examined once per prompt, and again after a tool has changed files. A step thus
    does not wait for the disk, and an offered tool stays available.
    """
    if all(tool.name != lsp.id for tool in request.tools):
        return None
    if session.trust.trusted:
        seen = _seen(session)
        if not seen:
            seen.append(await asyncio.to_thread(_can_answer, session))
        if seen[-1]:
            return None
    return request.without(lsp.id)


def _seen(session: SessionView) -> list[bool]:
    """Return a cached list: whether the tool can work in this prompt; empty until this is known."""
    return _seen_in(session.id, session.turns[-1].prompt_id) if session.turns else []


@lru_cache(maxsize=128)
def _seen_in(session_id: str, prompt_id: str) -> list[bool]:  # noqa: ARG001 - the key
    return []


def _can_answer(session: SessionView) -> bool:
    search = pegboard.unstable.ProgramSearch.of(session, os.environ)
    return can_answer(search, session.config.lsp)


@hookimpl(optionalhook=True)
async def services(app: Host) -> tuple[Service, ...]:
    """Return the language servers that were started, with their states."""
    servers = app.stash.get(_SERVERS)
    return servers.services() if servers is not None else ()


@hookimpl(timeout_s=STOP_S)
async def shutdown(app: Host) -> None:
    """End the language servers of an App."""
    servers = app.stash.get(_SERVERS)
    if servers is not None:
        await servers.aclose()
