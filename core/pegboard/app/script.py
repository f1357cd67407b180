"""One prompt in one call, for scripts."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pegboard.app.application import App
from pegboard.contract.plugin import hookimpl
from pegboard.contract.tools import Tool, tool
from pegboard.errors import BudgetError, ProviderError
from pegboard.opening.opener import Opener
from pegboard.opening.options import AppOptions
from pegboard.providers import Provider
from pegboard.schema.message import (
    AssistantMessage,
    BudgetFailure,
    Prompt,
    StructuredOutputFailure,
    Turn,
)

_TITLE = "pegboard.run"
"""Of a session that is deleted: no model is asked for a title."""


class ScriptProvider:
    """A plugin that registers the provider that a caller of `run` passes as `model`."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    @hookimpl
    def register_providers(self) -> Sequence[Provider]:
        """Return the provider."""
        return (self._provider,)


def run(
    prompt: str,
    *,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    model: str | Provider | None = None,
    output: Any = None,  # noqa: ANN401 - a type, or a JSON Schema
    directory: Path | str | None = None,
) -> Any:  # noqa: ANN401 - a text, or a value of `output`
    """Return the text of a model's answer, or a value of the type `output`.

    `tools` are functions. Without a `directory` the model has only these tools, and the session, in
    an empty folder, is deleted at the end. With a directory it has all other tools too. `model` is
    `provider/model`, a provider, or None for the configured model.

    :raises RuntimeError: when an event loop runs in this thread.
    :raises OutputError: when the answer does not have the form of `output` after two repairs.
    :raises BudgetError: when a limit of the user's budget is reached.
    :raises ProviderError: when the model does not answer.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        text = "pegboard.run() would block the event loop that runs; await app.prompt() instead"
        raise RuntimeError(text)
    own = [each if isinstance(each, Tool) else tool(each) for each in tools]
    plugins = () if model is None or isinstance(model, str) else (ScriptProvider(model),)
    if model is not None and not isinstance(model, str):
        model = f"{model.id}/{model.models()[0].id}"
    only = {"*": False, **{each.id: True for each in own}} if directory is None else None
    asked = Prompt(prompt, model=model, tools=only, output=output)
    with tempfile.TemporaryDirectory() if directory is None else nullcontext(directory) as place:
        opening = App.open(place, AppOptions(tools=own, plugins=plugins))
        turn = asyncio.run(_prompted(opening, asked, passing=directory is None))
    return turn.text if output is None else turn.output


async def _prompted(opening: Opener[App], prompt: Prompt, *, passing: bool) -> Turn:
    """Return the answer to a prompt in a new session, which is deleted afterwards if `passing`."""
    async with opening as app:
        session = await app.create_session(title=_TITLE if passing else None)
        try:
            turn = await app.prompt(session, prompt)
        finally:
            if passing:
                await app.delete_session(session.id)
    assert isinstance(turn.info, AssistantMessage)
    match turn.info.error:
        case None | StructuredOutputFailure():
            return turn
        case BudgetFailure(data=data):
            raise BudgetError(data.message)
        case failure:
            raise ProviderError(getattr(failure.data, "message", "the answer is cut off"))
