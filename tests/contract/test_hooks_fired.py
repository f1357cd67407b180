"""An App calls the hooks that it promises: plugins hear of each on the way of a prompt."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from pegboard import Prompt, ToolContext, hookimpl, tool
from pegboard.schema.model import Model
from support.models.played import Played, ToolsPlugin, call, calls, opened, text


@tool(requires=False)
async def echo(words: str, context: ToolContext) -> str:
    """Echo.

    Args:
        words: what to say.
    """
    await context.require("echo", [words])
    result = await context.run(["echo", words])
    return result.output


def recorder(hooks: Iterable[str], heard: set[str]) -> object:
    """A plugin that implements these hooks and notes which of them are called."""

    class Recorder:
        pass

    def noting(hook: str) -> Callable[..., object]:
        async def note(self: object) -> None:
            heard.add(hook)

        return hookimpl(note)

    for hook in hooks:
        setattr(Recorder, hook, noting(hook))
    return Recorder()


class Alias:
    """Knows a model by another name."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @hookimpl
    def model_resolve(self, name: str) -> Model | None:
        return self._model if name == "alias/fast" else None


@pytest.mark.fires(
    "register_tools",
    "register_providers",
    "register_agents",
    "register_commands",
    "register_budget",
    "register_processes",
    "register_files",
    "register_snapshots",
    "register_keystore",
    "register_storage",
    "config_load",
    "chat_message",
    "chat_messages_transform",
    "chat_system_transform",
    "chat_params",
    "chat_headers",
    "text_complete",
    "permission_ask",
    "permission_decided",
    "tool_definition",
    "tool_execute_before",
    "tool_execute_after",
    "shell_env",
    "model_resolve",
    "event",
    "startup",
    "shutdown",
)
async def test_a_run_passes_through_these_hooks(tmp_path: Path) -> None:
    [mark] = test_a_run_passes_through_these_hooks.pytestmark  # type: ignore[attr-defined]
    expected = set(mark.args)
    heard: set[str] = set()
    provider = Played(calls(call("echo", '{"words": "aha"}')), text("done"))
    plugins = (Alias(provider.models()[0]), recorder(expected, heard), ToolsPlugin(echo))

    async with opened(tmp_path, provider, *plugins) as app:
        session = await app.create_session()
        async with asyncio.timeout(60):
            turn = await app.prompt(session.id, Prompt("hi", model="alias/fast"))

    assert "done" in str(turn.parts)
    assert heard == expected
