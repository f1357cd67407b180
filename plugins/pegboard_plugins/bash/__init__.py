"""The bash tool: a command line, judged part by part, run in a shell of its own."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import (
    UNCLEAR,
    ProcessResult,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard_plugins.bash.display import plain
from pegboard_plugins.bash.prefixes import prefix
from pegboard_plugins.bash.wrappers import INTERPRETERS, SHELLS, is_wrapper

if TYPE_CHECKING:
    from pegboard_plugins.bash.scan import Scan

DEFAULT_TIMEOUT_MS = 120_000
LONGEST_TIMEOUT_MS = 3_600_000
SHOWN_LETTERS = 30_000
"""opencode `tool/bash.ts`: letters of the output in the metadata; ours are the last ones."""
SHOW_EVERY_S = 0.1
QUICK_LETTERS = 500
"""A command of this length is judged in less time (0.2 ms) than a thread takes to be woken."""


async def _requests(context: ToolContext, command: str, workdir: str = "") -> Path:
    """The folder of the call, once all that it would do is allowed."""
    cwd = await context.ask_path(context.directory / workdir)
    if len(command) <= QUICK_LETTERS and "pegboard_plugins.bash.scan" in sys.modules:
        scanned, outside = _scanned(context, command, cwd)
    else:
        scanned, outside = await asyncio.to_thread(_scanned, context, command, cwd)
    for path in outside:
        await context.ask_path(path)
    if inside := _inside(scanned.writes, context):
        await context.ask("edit", inside, always=["*"], metadata={"command": command})
    patterns = [" ".join(argv) for argv in scanned.commands]
    if scanned.unclear:
        patterns.append(UNCLEAR + command)
    await context.ask(
        "bash",
        patterns,
        always=() if scanned.unclear else _always(scanned),
        metadata=_facts(scanned, command),
    )
    return cwd


def _facts(scanned: "Scan", command: str) -> dict[str, object]:
    """What a policy may look at: the paths are absolute, as the line names them."""
    return {
        "command": command,
        "unclear": list(scanned.unclear),
        "paths": [str(path) for path in scanned.paths],
        "writes": [str(path) for path in scanned.writes],
        "destroys": list(scanned.destroys),
    }


def _scanned(context: ToolContext, command: str, cwd: Path) -> "tuple[Scan, list[Path]]":
    # The first command pays 15 ms for the scanner, not the start of the program.
    from pegboard_plugins.bash.scan import scan

    home = Path.home()
    scanned = scan(command, cwd=cwd, home=home, worktree=context.worktree)
    return scanned, _outside(scanned.paths, context)


def _outside(paths: Iterable[Path], context: ToolContext) -> list[Path]:
    """Of the paths outside the project one for each folder, so that nobody is asked twice."""
    roots = (context.directory, context.worktree)
    folders: dict[Path, Path] = {}
    for path in paths:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(root) for root in roots):
            folders.setdefault(real if real.is_dir() else real.parent, path)
    return list(folders.values())


def _inside(paths: Iterable[Path], context: ToolContext) -> list[str]:
    """The paths in the project, as rules about edits name them."""
    real = (Path(os.path.realpath(path)) for path in paths)
    root = context.worktree
    return _unique(str(path.relative_to(root)) for path in real if path.is_relative_to(root))


def _always(scanned: "Scan") -> list[str]:
    """What an approval for good covers; nothing when a part could run anything."""
    names = {argv[0].rpartition("/")[2] for argv in scanned.commands}
    if any(name in SHELLS or name in INTERPRETERS or is_wrapper(name) for name in names):
        return []
    return _unique(f"{prefix(argv)} *" for argv in scanned.commands)


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


@tool(timeout_s=LONGEST_TIMEOUT_MS / 1000 + 60, asks=_requests)
async def bash(
    context: ToolContext,
    command: str,
    description: str = "",
    timeout: int = DEFAULT_TIMEOUT_MS,  # noqa: ASYNC109 - the model's argument
    workdir: str = "",
) -> ToolResult:
    """Run a shell command.

    Each call is a new shell in the project's directory, or in workdir: use that rather than
    cd. It has no input, and what it starts ends with it. timeout is in milliseconds, 120000
    unless given. description says in 5 to 10 words what the command does.
    """
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError("the command holds a zero byte, which no shell can be given")
    if not 0 < timeout <= LONGEST_TIMEOUT_MS:
        raise ToolError(f"timeout is in milliseconds, from 1 to {LONGEST_TIMEOUT_MS}")
    cwd = await _requests(context, command, workdir)
    live = _Live(context, description)
    try:
        result = await context.run(
            [shutil.which("bash") or "/bin/sh", "-c", command],
            cwd=cwd,
            timeout_s=timeout / 1000,
            on_output=live.hear,
        )
    finally:
        live.close()
    return _result(result, command, description, timeout)


class _Live:
    """The output so far, shown at most ten times a second."""

    def __init__(self, context: ToolContext, description: str) -> None:
        self._context = context
        self._description = description
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, text: str) -> None:
        self._text = (self._text + text)[-SHOWN_LETTERS:]
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SHOW_EVERY_S, self._show)

    def _show(self) -> None:
        self._timer = None
        self._context.progress(metadata=_metadata(plain(self._text), self._description))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _metadata(output: str, description: str) -> dict[str, object]:
    return {"output": output[-SHOWN_LETTERS:], "description": description}


def _result(result: ProcessResult, command: str, description: str, timeout_ms: int) -> ToolResult:
    output = plain(result.output)
    metadata: dict[str, object] = {
        **_metadata(output, description),
        "exit": result.exit_code,
    }
    if result.output_path is not None:
        metadata["outputPath"] = str(result.output_path)
    notes = "".join(f"\n[{note}]" for note in _notes(result, timeout_ms))
    return ToolResult(
        output=(output.rstrip("\n") + "\n" * bool(notes and output) + notes).strip("\n")
        or "(no output)",
        title=description or command,
        metadata=metadata,
    )


def _notes(result: ProcessResult, timeout_ms: int) -> Iterable[str]:
    if result.timed_out:
        yield f"timed out after {timeout_ms} ms, and was ended"
    elif result.exit_code is not None and result.exit_code < 0:
        yield f"ended by {_signal_name(-result.exit_code)}"
    elif result.exit_code:
        yield f"exit code {result.exit_code}"
    if result.background_ended:
        yield "processes that it left in the background were ended"


def _signal_name(number: int) -> str:
    names: Mapping[int, str] = {each.value: each.name for each in signal.Signals}
    return names.get(number, f"signal {number}")


@hookimpl
async def register_tools() -> list[Tool]:
    """The bash tool."""
    return [bash]
