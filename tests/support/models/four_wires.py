"""Scripted servers of four wire formats, and an App whose models are behind them.

Each model thinks, takes a look with a tool that answers with a picture, and says what it saw. What
it wants to have back later is a secret of its own, which no other is to see.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard import App, AppOptions, Attachment, ToolResult, hookimpl, tool
from pegboard.schema.config import Agent
from pegboard.schema.session import Rule
from pegboard_plugins import anthropic, catalogue, openai_compatible, sqlite
from pegboard_plugins import gemini as gemini_plugin
from support.models import claude_frames as claude
from support.models import gemini_frames as gemini
from support.models import model_server as ms
from support.models import response_frames as responses
from support.models.played import AllowAll, ToolsPlugin
from support.models.vendor_types import check_chat, check_claude, check_gemini, check_responses
from support.tools.media_files import data_url, png

PICTURE = data_url("image/png", png())
Check = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One wire format: how its server answers, and what holds a request against its types."""

    model: str
    secret: str
    look: ms.Answer
    say: ms.Answer
    is_seen: Callable[[ms.Body], bool]
    check: Check

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    def script(self, body: ms.Body) -> ms.Answer:
        return self.say if self.is_seen(body) else self.look


def _chat_only(body: Mapping[str, Any]) -> None:
    """A body of chat completions, without the fields that OpenAI itself does not have."""
    messages = [
        {name: value for name, value in message.items() if name != "reasoning_details"}
        for message in body["messages"]
    ]
    check_chat({**body, "messages": messages})


def _details(secret: str) -> ms.Piece:
    detail = {"type": "reasoning.encrypted", "data": secret, "index": 0}
    return ms.chunk({"reasoning": "I think.", "reasoning_details": [detail]})


WIRES = {
    wire.provider: wire
    for wire in (
        Wire(
            model="anthropic/claude-sonnet-4-5",
            secret="c2VjcmV0LWE",
            look=claude.answer(
                claude.thought("I think.", "c2VjcmV0LWE"),
                claude.call("look", {"at": "it"}, "toolu_01"),
                reason="tool_use",
            ),
            say=claude.say("It is there."),
            is_seen=lambda body: "tool_result" in str(body["messages"][-1]),
            check=check_claude,
        ),
        Wire(
            model="openai/gpt-5",
            secret="c2VjcmV0LW8",
            look=responses.answer(
                responses.thought("I think.", encrypted="c2VjcmV0LW8"),
                responses.call("look", {"at": "it"}, "call_01"),
            ),
            say=responses.say("It is there."),
            is_seen=lambda body: body["input"][-1]["type"] == "function_call_output",
            check=check_responses,
        ),
        Wire(
            model="gemini/gemini-3-pro",
            secret="c2VjcmV0LWc=",
            look=gemini.answer(
                gemini.thought("I think."), gemini.call("look", {"at": "it"}, "c2VjcmV0LWc=")
            ),
            say=gemini.say("It is there."),
            is_seen=lambda body: "functionResponse" in str(body["contents"][-1]),
            check=check_gemini,
        ),
        Wire(
            model="house/coder",
            secret="c2VjcmV0LWg",
            look=[
                _details("c2VjcmV0LWg"),
                *ms.tool_call("look", {"at": "it"}, call_id="functions.look:0"),
                *ms.finish("tool_calls"),
            ],
            say=ms.say("It is there."),
            is_seen=lambda body: "'role': 'tool'" in str(body["messages"][-2:]),
            check=_chat_only,
        ),
    )
}


@tool
async def look(at: str) -> ToolResult:
    """Look at a thing.

    Args:
        at: the thing.
    """
    picture = Attachment(mime="image/png", url=PICTURE, filename="seen.png")
    return ToolResult(output=f"I see {at}.", attachments=(picture,))


class FreeAgent:
    """Registers the agent `build`, which may do all."""

    @hookimpl
    async def register_agents(self) -> list[Agent]:
        free = (Rule("*", "*", "allow"),)
        return [Agent(name="build", mode="primary", permission=free, options={})]


@asynccontextmanager
async def serving() -> AsyncIterator[dict[str, ms.ModelServer]]:
    """The servers, by the provider's name."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(ms.ModelServer(wire.script))
            for name, wire in WIRES.items()
        }


@asynccontextmanager
async def talking(folder: Path, urls: Mapping[str, str]) -> AsyncIterator[App]:
    """An App in `folder/project` that asks these servers, with its data beside it."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    chosen: dict[str, dict[str, Any]] = {
        name: {"options": {"baseURL": url, "apiKey": f"sk-key-of-{name}"}}
        for name, url in urls.items()
    }
    chosen["openai"]["options"]["wire"] = "responses"
    chosen["house"]["models"] = {"coder": {"attachment": False, "reasoning": True}}
    plugins = (
        *(anthropic, catalogue, gemini_plugin, openai_compatible, sqlite),
        *(FreeAgent(), AllowAll(), ToolsPlugin(look)),
    )
    options = AppOptions(
        installed=False,
        builtins=False,
        plugins=plugins,
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        config={"provider": chosen, "retry": {"attempts": 1}},
    )
    async with App.open(project, options) as app:
        yield app


def strings(value: object) -> Iterator[str]:
    """Every text in a body."""
    yield from json.dumps(value).split('"')
