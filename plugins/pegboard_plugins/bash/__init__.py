"""The bash tool, which judges each command of a shell line and runs the line in a new shell."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import (
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
from pegboard.permissions import UNCLEAR
from pegboard.processes import ProcessResult
from pegboard.providers import ModelRequest

if TYPE_CHECKING:
    from pegboard_plugins.bash.scan import Scan

DEFAULT_TIMEOUT_MS = 120_000
LONGEST_TIMEOUT_MS = 3_600_000
LONGEST_COMMAND_BYTES = (128 << 10) - 1
"""Of one argument of a program (Linux, `MAX_ARG_STRLEN`)."""
SHOWN_LETTERS = 30_000
"""opencode `tool/bash.ts`: letters of the output in the metadata; ours are the last ones."""
SHOW_EVERY_S = 0.1
_READS_VARIABLES = re.compile(r"[$=]|\(\(|\[\[|\blet\b")
"""What a line has that takes the value of a variable, or gives one."""
QUICK_LETTERS = 500
"""A command of this length is judged in less time (0.5 ms) than a thread takes to be woken."""


async def _may_run(
    context: PermissionContext,
    command: str,
    timeout: int,  # noqa: ASYNC109 - the model's argument
    workdir: str,
    *,
    background: bool,
) -> Path:
    """Ask for the permissions that a call of the tool needs, and return the folder to run it in."""
    _check(command, timeout)
    metadata = {"command": command}
    cwd = await context.require_path(named_path(context, workdir), metadata=metadata)
    env = await context.process_env() if _READS_VARIABLES.search(command) else {}
    if len(command) <= QUICK_LETTERS and "pegboard_plugins.bash.scan" in sys.modules:
        scanned, outside = _scanned(context, command, cwd, env)
    else:
        scanned, outside = await asyncio.to_thread(_scanned, context, command, cwd, env)
    # 2 ms more that the start of the program need not pay.
    from pegboard_plugins.bash.approving import covered, is_once, only_reads

    if scanned.globs or scanned.listings or scanned.lost:
        from pegboard_plugins.bash.wildcards import looked_up

        scanned = await asyncio.to_thread(looked_up, scanned, command)
        outside = _outside(scanned.paths, context)
    for path in outside:
        await context.require_path(path, metadata=metadata)
    inside, facts = _inside(scanned.writes, context), {**metadata, "runs_in": str(cwd)}
    if inside and cwd == context.directory and not is_once(scanned):
        facts["part_of"] = "bash"  # elsewhere the same line writes other files
    if inside:  # a denial comes before any question
        await context.require("edit", inside, always=inside, metadata=facts, later=True)
    commands = [" ".join(argv) for argv in scanned.commands]
    settings = [" ".join(argv) for argv in scanned.settings]
    patterns = [UNCLEAR + command] if scanned.unclear else [*commands, *settings] or [command]
    await context.require(
        "bash",
        patterns,
        always=covered(scanned),
        metadata={
            **facts,
            **_facts(scanned, command),
            "commands": commands,
            **({"once": True} if is_once(scanned) else {}),
            **({"effect": "reads"} if only_reads(scanned) else {}),
            "background": background,
        },
    )
    if inside:  # a user who was asked about the line is not asked about its files
        await context.require("edit", inside, always=inside, metadata=facts)
    return cwd


def _check(command: str, timeout_ms: int) -> None:
    """Check the tool's arguments before the user is asked for permission.

    :raises ToolError: for arguments with which no shell can be started.
    """
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError("the command holds a zero byte, which no shell can be given")
    if len(command.encode(errors="replace")) > LONGEST_COMMAND_BYTES:
        raise ToolError(
            f"the command is longer than {LONGEST_COMMAND_BYTES:,} bytes, which no shell can be"
            " given: write it, or its data, to a file first"
        )
    if not 0 < timeout_ms <= LONGEST_TIMEOUT_MS:
        raise ToolError(f"timeout is in milliseconds, from 1 to {LONGEST_TIMEOUT_MS}")


def _facts(scanned: "Scan", command: str) -> dict[str, object]:
    """Return the facts about a shell line for permission policies; all paths are absolute."""
    globs = [each.pattern for each in scanned.globs if not each.is_written]
    return {
        "command": command,
        **_unclear(scanned, command),
        **({"told": list(scanned.snippets)} if scanned.snippets else {}),
        "paths": [str(path) for path in scanned.paths],
        "writes": [str(path) for path in scanned.writes],
        **({"reads": [str(path) for path in scanned.reads]} if scanned.reads else {}),
        "destroys": list(scanned.destroys),
        **({"overlays": list(scanned.overlays)} if scanned.overlays else {}),
        **({"renames": list(scanned.renames)} if scanned.renames else {}),
        "hazards": dict(scanned.hazards),
        "linked": [str(path) for path in scanned.linked],
        "lands": [str(path) for path in scanned.lands],
        **({"globs": globs} if globs else {}),
    }


def _unclear(scanned: "Scan", command: str) -> dict[str, object]:
    """Return why the shell line is unclear and how to write it instead; empty lists if clear."""
    if scanned.unclear is None:
        return {"unclear": []}
    from pegboard_plugins.bash.advice import advised  # 5 ms, and most lines are clear

    advice = advised(scanned.unclear, command)
    facts = {"column": advice.column, "marked": advice.marked, "instead": advice.instead}
    return {"unclear": [advice.code], "advice": [advice.sentence], "place": facts}


def _scanned(
    context: PermissionContext, command: str, cwd: Path, env: Mapping[str, str]
) -> "tuple[Scan, list[Path]]":
    # The first command pays 15 ms for the reader, not the start of the program.
    from pegboard_plugins.bash.scan import StartPlace, scan
    from pegboard_plugins.bash.starting import is_read_as_bash

    place = StartPlace(
        cwd=cwd,
        home=context.session.home or Path.home(),
        worktree=context.worktree,
        environment=env,
        is_bash=is_read_as_bash(context.worktree),
    )
    scanned = scan(command, place)
    return scanned, _outside(scanned.paths, context)


def _outside(paths: Iterable[Path], context: PermissionContext) -> list[Path]:
    """Return a path per folder outside the project, so that the user is asked once per folder."""
    roots = (context.directory, context.worktree)
    folders: dict[Path, Path] = {}
    for path in paths:
        real = Path(resolved_path(path))
        if not any(real.is_relative_to(root) for root in roots):
            is_folder = os.path.isdir(real)  # noqa: PTH112 - no error for what cannot be looked at
            folders.setdefault(real if is_folder else real.parent, path)
    return list(folders.values())


def _inside(paths: Iterable[Path], context: PermissionContext) -> list[str]:
    """Return the paths that lie in the project, as patterns for permission rules on edits.

    An existing folder also gets a pattern for its content. A `*` as the name stands for an unknown
    file; its pattern is marked as unclear, so that a rule about some files asks the user.
    """
    root, found = context.worktree, dict[str, None]()
    for path in map(Path, map(resolved_path, paths)):
        if path.is_relative_to(root):
            text = str(path.relative_to(root))
            found[f"{UNCLEAR}{text}" if path.name == "*" else text] = None
            if path != root and os.path.isdir(path):  # noqa: PTH112 - no error for what is odd
                found[f"{text}/*"] = None
    return list(found)


_ALIASES = {
    "cmd": "command",
    "cwd": "workdir",
    "run_in_background": "background",
    "timeout_ms": "timeout",
}
_AT_FIRST_CALL = (
    *("pegboard_plugins.bash.scan", "pegboard_plugins.bash.approving"),
    *("pegboard_plugins.bash.starting", "pegboard_plugins.bash.display"),
)


@tool(
    timeout_s=LONGEST_TIMEOUT_MS / 1000 + 60,
    requires=_may_run,
    aliases=_ALIASES,
    serves="shell",
    imports=_AT_FIRST_CALL,
)
async def bash(  # noqa: PLR0913 - the model's arguments
    context: ToolContext,
    command: str,
    description: str = "",
    timeout: int = DEFAULT_TIMEOUT_MS,  # noqa: ASYNC109 - the model's argument
    workdir: str = "",  # noqa: ARG001 - for `requires`
    *,
    background: bool = False,
) -> ToolResult:
    """Run a command in a new shell in the project's directory, without input or terminal.

    cd, variables and what it starts, also behind `&`, end with the call. Long output is cut in
    the middle; a file has all of it.

    Args:
        command: quote paths.
        description: 5 to 10 words for the user.
        timeout: milliseconds, at most an hour.
        workdir: where to start, rather than cd.
        background: let it run on, for a server.
    """
    cwd = context.granted(_may_run)
    from pegboard_plugins.bash.starting import shell_argv  # not before a command is run

    argv = [*shell_argv(context.worktree), command]
    if background:
        from pegboard_plugins.bash.leaving import left_running

        return await left_running(context, argv, cwd, command=command, description=description)
    live = _Live(context, description)
    try:
        result = await context.run(
            argv,
            cwd=cwd,
            timeout_s=timeout / 1000,
            on_output=live.hear,
        )
    except asyncio.CancelledError as error:  # its text goes to the model
        raise asyncio.CancelledError(live.reported()) from error
    finally:
        live.close()
    return _result(result, command, description, timeout)


class _Live:
    """The live output of a command, sent to the tool call at most ten times a second."""

    def __init__(self, context: ToolContext, description: str) -> None:
        self._context = context
        self._description = description
        self._text = ""
        self._letters = 0
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, text: str) -> None:
        self._letters += len(text)
        self._text = (self._text + text)[-SHOWN_LETTERS:]
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SHOW_EVERY_S, self._show)

    def _show(self) -> None:
        self._timer = None
        from pegboard_plugins.bash.display import plain

        self._context.progress(metadata=_metadata(plain(self._text), self._description))

    def reported(self) -> str:
        """Return the output until now, which the model receives after its call was cancelled."""
        from pegboard_plugins.bash.display import plain

        output = plain(self._text).strip("\n") or "(no output)"
        if self._letters <= SHOWN_LETTERS:
            return output
        return f"[the last {SHOWN_LETTERS:,} of {self._letters:,} characters]\n{output}"

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._show()


def _metadata(output: str, description: str) -> dict[str, object]:
    return {"output": output[-SHOWN_LETTERS:], "description": description}


def _result(result: ProcessResult, command: str, description: str, timeout_ms: int) -> ToolResult:
    from pegboard_plugins.bash.display import plain

    output = plain(result.output)
    metadata: dict[str, object] = {
        **_metadata(output, description),
        "exit": result.exit_code,
        "seconds": round(result.duration_s, 3),
    }
    if result.output_path is not None:
        metadata["outputPath"] = str(result.output_path)
    text = output.strip("\n") or "(no output)"
    notes = "\n".join(f"[{note}]" for note in _notes(result, timeout_ms))
    return ToolResult(
        output=f"{text}\n\n{notes}",
        title=description or command,
        metadata=metadata,
    )


def _notes(result: ProcessResult, timeout_ms: int) -> Iterable[str]:
    # In whole seconds: a quick command run again says the same, which recordings rely on.
    took = f"{result.duration_s:.0f} s" if result.duration_s >= 1 else "under 1 s"
    if result.timed_out:
        yield f"timed out after {timeout_ms} ms, and was ended"
    elif result.exceeded:
        yield f"stopped: {result.exceeded}, {took}"
    elif result.exit_code is not None and result.exit_code < 0:
        yield f"ended by {_signal_name(-result.exit_code)}, {took}"
    elif result.exit_code is not None:
        yield f"exit code {result.exit_code}, {took}"
    if result.background_ended:
        yield "processes that it left running were ended; background=true keeps a command running"
    if result.truncated and (kept := _stored_bytes(result.output_path)) < result.output_bytes:
        what = f"its file has the first {kept:,}" if kept else "no file could keep the middle"
        yield f"of {result.output_bytes:,} bytes of output {what}"


def _stored_bytes(path: Path | None) -> int:
    """Return the size of the file with the output; 0 if another program has removed the file."""
    try:
        return path.stat().st_size if path is not None else 0
    except OSError:
        return 0


def _signal_name(number: int) -> str:
    names: Mapping[int, str] = {each.value: each.name for each in signal.Signals}
    return names.get(number, f"signal {number}")


# It sees and ends only what the session was allowed to start.
@tool(permission="bash", requires=False)
async def processes(context: ToolContext, stop: str = "") -> ToolResult:
    """List what runs in the background, or stop one by its id."""
    from pegboard_plugins.bash.leaving import listed, stopped

    return await stopped(context, stop) if stop else listed(context)


@hookimpl
async def register_tools() -> list[Tool]:
    """Register the tools `bash` and `processes`."""
    return [bash, processes]


@hookimpl
async def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """Remove the tool `processes` from the request unless a process runs in the background."""
    return None if session.background else request.without(processes.id)
