"""An App calls the hooks that it promises: plugins hear of each on the way of a prompt."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from contract.fired import FIRED_BY
from pegboard import Prompt, ToolContext, hookimpl, tool
from pegboard.schema.model import Model
from played import Played, ToolsPlugin, call, calls, opened, text


@tool
async def echo(words: str, context: ToolContext) -> str:
    """Echo.

    Args:
        words: what to say.
    """
    await context.ask("echo", [words])
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


async def test_a_run_passes_through_these_hooks(tmp_path: Path) -> None:
    name = test_a_run_passes_through_these_hooks.__name__
    expected = {hook for hook, test in FIRED_BY.items() if test.endswith(f"::{name}")}
    heard: set[str] = set()
    provider = Played(calls(call("echo", '{"words": "aha"}')), text("done"))
    plugins = (Alias(provider.models()[0]), recorder(expected, heard), ToolsPlugin(echo))

    async with opened(tmp_path, provider, *plugins) as app:
        session = await app.create_session()
        async with asyncio.timeout(20):
            turn = await app.prompt(session.id, Prompt("hi", model="alias/fast"))

    assert "done" in str(turn.parts)
    assert heard == expected
