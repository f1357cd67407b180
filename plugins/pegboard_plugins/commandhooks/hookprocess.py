"""The process of a hook: its command line, its end, and whether it reads a transcript."""

import os
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path

from pegboard import Host, SessionView, ToolError
from pegboard.processes import run_program
from pegboard_plugins.commandhooks.hookcommand import CommandHook
from pegboard_plugins.commandhooks.outcome import Ended

OUTPUT_LIMIT_BYTES = 1 << 20
_PLACEHOLDERS = (
    *("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"),
    "CLAUDE_SKILL_DIR",
)
_TRANSCRIPT = b"transcript_path"
_WORD = re.compile(r"[\w./@%+~${}-]+")


async def hook_ended(
    app: Host, hook: CommandHook, directory: Path, env: Mapping[str, str], given: bytes
) -> Ended:
    """Run a hook with its input until it ends, in the sandbox if one is configured."""
    if hook.args is None:
        argv = ["/bin/sh", "-c", hook.command]  # not a program of the project's
    else:
        argv = [_filled(word, env) for word in (hook.command, *hook.args)]
    try:
        async with app.in_sandbox(argv, cwd=directory, env=env) as line:
            done = await run_program(
                line,
                cwd=directory,
                env=env,
                timeout_s=hook.timeout_s,
                limit_bytes=OUTPUT_LIMIT_BYTES,
                given=given,
            )
    except ToolError as error:
        return Ended(failure=str(error))
    if done.timed_out:
        return Ended(failure=f"it took longer than {hook.timeout_s:g} s")
    if done.flooded or done.exit_code is None:
        return Ended(failure="it printed more than 1 MiB" if done.flooded else "it was killed")
    return Ended(
        exit_code=done.exit_code,
        stdout=done.output.decode(errors="replace"),
        stderr=done.errors.decode(errors="replace"),
    )


def _filled(word: str, env: Mapping[str, str]) -> str:
    for name in _PLACEHOLDERS:
        word = word.replace(f"${{{name}}}", env.get(name, ""))
    return word


def mentions_transcript(hook: CommandHook, session: SessionView) -> bool:
    """Return whether a hook's command, or a file that it names, mentions a transcript; blocks."""
    text = " ".join((hook.command, *(hook.args or ())))
    if _TRANSCRIPT in text.encode():
        return True
    return any(_TRANSCRIPT in content for content in _named_contents(text, hook, session))


def _named_contents(text: str, hook: CommandHook, session: SessionView) -> Iterator[bytes]:
    names = {
        "CLAUDE_PROJECT_DIR": str(session.worktree),
        "GEMINI_PROJECT_DIR": str(session.directory),
        "CLAUDE_PLUGIN_ROOT": str(hook.root or ""),
        "CLAUDE_SKILL_DIR": str(hook.file.parent),
        "HOME": str(session.home or Path.home()),
    }
    for word in _WORD.findall(text):
        name = string.Template(word).safe_substitute(names)
        path = session.directory / Path(name.replace("~/", f"{names['HOME']}/", 1))
        if os.path.isfile(path) and path.stat().st_size <= OUTPUT_LIMIT_BYTES:  # noqa: PTH113 - any text
            yield path.read_bytes()
