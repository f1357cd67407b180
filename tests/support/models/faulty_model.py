"""Prompts to a model server that misbehaves, and what comes of them."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard import App, tool
from pegboard.schema.message import APIFailure, AssistantMessage, Failure, Turn
from pegboard.schema.part import TextPart, ToolPart
from support.models import model_server as ms
from support.models.played import ToolsPlugin, opened
from support.models.provider_run import provider_at

OK = ms.say("all is well")
HALF = ms.text("half of an")
NOTE = {"text": "remember"}
CUT_CALL = ms.tool_call("note", NOTE)[:-1]
GZIP = ms.Status(headers={"content-encoding": "gzip"})


@dataclass
class Played:
    """What a prompt came to, and what the server saw of it."""

    turn: Turn
    turns: tuple[Turn, ...]
    requests: list[dict[str, Any]]
    noted: list[str]
    took_s: float

    @property
    def error(self) -> Failure | None:
        assert isinstance(self.turn.info, AssistantMessage)
        return self.turn.info.error

    @property
    def finish(self) -> str | None:
        assert isinstance(self.turn.info, AssistantMessage)
        return self.turn.info.finish

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.turn.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> list[ToolPart]:
        return [part for turn in self.turns for part in turn.parts if isinstance(part, ToolPart)]

    @property
    def message(self) -> str:
        assert isinstance(self.error, APIFailure)
        return self.error.data.message


@dataclass
class Setting:
    """An App whose model is the server, and the notes that its one tool has taken."""

    app: App
    server: ms.ModelServer
    noted: list[str] = field(default_factory=list)

    async def prompt(self, session_id: str | None = None) -> Played:
        session_id = session_id or (await self.app.create_session()).id
        began = time.perf_counter()
        turn = await self.app.prompt(session_id, "hi")
        return Played(
            turn=turn,
            turns=await self.app.list_turns(session_id),
            requests=self.server.requests,
            noted=self.noted,
            took_s=time.perf_counter() - began,
        )


@asynccontextmanager
async def playing(
    folder: Path, *answers: ms.Answer, retry: dict[str, object] | None = None, **facts: Any
) -> AsyncIterator[Setting]:
    noted: list[str] = []

    @tool
    async def note(text: str) -> str:
        """Take a note."""
        noted.append(text)
        return f"noted: {text}"

    config = {
        "model": "test/m",
        "retry": {"cap_s": 0.02, **(retry or {})},
        "stream_idle_timeout_s": facts.pop("idle_s", 30),
    }
    async with ms.ModelServer(ms.in_order(*answers)) as server:
        provider = provider_at(facts.pop("url", server.url), **facts)
        async with opened(folder, provider, ToolsPlugin(note), config=config) as app:
            yield Setting(app, server, noted)


async def played(folder: Path, *answers: ms.Answer, **facts: Any) -> Played:
    """What a prompt comes to when the server gives these answers, one for each request."""
    async with playing(folder, *answers, **facts) as setting:
        return await setting.prompt()


def is_well(outcome: Played, *, requests: int) -> bool:
    return (outcome.text, outcome.error, len(outcome.requests)) == ("all is well", None, requests)
