"""A model that does what its prompt says, however strange, and notes what it is paid for it.

A prompt is a name and a plan: `p7 [["look", "put"], ["slow"]]`. Each list is one answer. A word is
a tool to call or a way to answer, a list among the words is the plan of a subagent that is called.
So what happens follows from the prompt alone.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from pegboard import ToolContext, hookimpl, tool
from pegboard.contract.host import Compaction, CompactionRequest
from pegboard.contract.tools import Tool
from pegboard.errors import ProviderError
from pegboard.providers import (
    Content,
    FinishReason,
    ModelMessage,
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
    Usage,
)
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost
from pegboard.schema.session import PermissionRequest, Todo, Verdict

TOOLS = ("look", "put", "doze", "guarded", "note", "broken", "unknown")
"""What a plan can call: the last two are no call that can run."""
ENDS = ("say", "slow", "fail", "flaky", "cut")
"""How an answer without calls goes on; `flaky` and `cut` fail the first time."""
PLANNED = re.compile(r"\b([pq]\d+(?:\.\d+)*) (\[.*)", re.DOTALL)
PRICE = 1.0
"""US dollars per million tokens, of either kind."""
TITLE = "Write a title for"
SUMMARY = "Summarise."

Plan = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Payment:
    """What a request cost; it is `due` once the session has heard the end of the answer."""

    session_id: str
    tokens: int
    due: bool


class Planned(Provider):
    """Provider `played`: answers by the plan of the newest prompt."""

    id = "played"
    name = "Played"
    env = ()

    def __init__(self, pay: Callable[[Payment], None]) -> None:
        self.requests: list[ModelRequest] = []
        self._pay = pay
        self._failed: set[tuple[str, str, int]] = set()
        self._calls = count()
        cost = ModelCost(input=PRICE, output=PRICE, cache=CacheCost())
        self._model = Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"), cost=cost)

    def models(self) -> tuple[Model, ...]:
        return (self._model,)

    def resolve(self, model_id: str) -> Model | None:
        return self._model if model_id == self._model.id else None

    async def aclose(self) -> None:
        return

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        await asyncio.sleep(0.001)
        if not request.tools:
            async for event in self._plain(request):
                yield event
            return
        name, plan, step = _place(request)
        words = plan[step] if step < len(plan) else ["say"]
        async for event in self._answer(request, (name, step), words):
            yield event

    async def _plain(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        said = "A fine title" if TITLE in _text(request.messages[-1]) else "In short: work."
        async for event in self._said(said.split(" "), pause_s=0.002):
            yield event
        async for event in self._finished(request, "stop"):
            yield event

    async def _answer(
        self, request: ModelRequest, place: tuple[str, int], words: list[Any]
    ) -> AsyncIterator[StreamEvent]:
        key = (request.session_id, *place)
        name = f"{place[0]}.{place[1]}"
        calls = [word for word in words if word in TOOLS or isinstance(word, list)]
        end = next((word for word in words if word in ENDS), "say")
        first = key not in self._failed
        self._failed.add(key)
        pause_s = 0.01 if end == "slow" else 0.001
        async for event in self._said([f"{name} "] * 8, pause_s=pause_s):
            yield event
        if end == "fail" or (end == "flaky" and first):
            raise ProviderError("the model is not well", status=500, retryable=end == "flaky")
        for number, word in enumerate(calls):
            for event in self._call(f"{name}.{number}", word):
                yield event
            await asyncio.sleep(0.001)
        if end == "cut" and first:
            return
        async for event in self._finished(request, "tool-calls" if calls else "stop"):
            yield event

    async def _said(self, words: list[str], *, pause_s: float) -> AsyncIterator[StreamEvent]:
        yield TextStart("t")
        for word in words:
            yield TextDelta("t", word)
            await asyncio.sleep(pause_s)
        yield TextEnd("t")

    async def _finished(
        self, request: ModelRequest, reason: FinishReason
    ) -> AsyncIterator[StreamEvent]:
        tokens = 1000 + len(self.requests)
        self._pay(Payment(request.session_id, tokens, due=False))
        yield StreamFinish(reason, Usage(input=tokens - 1, output=1))
        self._pay(Payment(request.session_id, tokens, due=True))

    def _call(self, name: str, word: Any) -> Iterator[StreamEvent]:
        call_id = f"call_{next(self._calls)}_{name}"
        if isinstance(word, list):
            tool_name = "task"
            prompt = f"q{name.removeprefix('p').removeprefix('q')} {json.dumps(word)}"
            arguments = {"description": "a part", "prompt": prompt, "subagent_type": "helper"}
        else:
            tool_name, arguments = word, {"what": name}
        written = json.dumps(arguments)
        yield ToolInputStart(call_id, tool_name)
        yield ToolCall(call_id, tool_name, written[:-1] if word == "broken" else written)


def _place(request: ModelRequest) -> tuple[str, Plan, int]:
    """The newest plan, its prompt's name, and how many of its answers there were."""
    answers = 0
    for message in reversed(request.messages):
        if message.role == "tool":
            answers += 1
        if message.role == "user" and (found := PLANNED.search(_text(message))):
            plan, _ = json.JSONDecoder().raw_decode(found[2])
            return found[1], plan, answers
    return "p0", [], 0


def _text(message: ModelMessage) -> str:
    """All text of a message; of several prompts in it the newest is the last line."""
    texts = [item.text for item in message.content if isinstance(item, Text)]
    return "\n".join(reversed(texts))


def said(request: ModelRequest) -> list[str]:
    """The names of the prompts in a request, in its order."""
    items: list[Content] = [item for each in request.messages for item in each.content]
    texts = [item.text for item in items if isinstance(item, Text)]
    return [name for text in texts for name in named(text)]


def named(text: str) -> list[str]:
    """The name of the prompt that a text is, if it is one."""
    found = PLANNED.match(text)
    return [found[1]] if found else []


def tools(nap: str) -> tuple[Tool, ...]:
    """The tools that a plan can call; `doze` leaves a process behind that sleeps for `nap`."""

    @tool(permission="read", effect="reads")
    async def look(what: str) -> str:
        """Look."""
        await asyncio.sleep(0.005)
        return f"seen {what}"

    @tool(permission="edit", effect="edits")
    async def put(what: str, context: ToolContext) -> str:
        """Write a file."""
        place = context.directory / f"{context.session.id}.{what}"
        await context.files.replace(place, what.encode())
        await context.record_edit(place)
        return f"written {what}"

    @tool(permission="read", effect="reads")
    async def doze(what: str, context: ToolContext) -> str:
        """Run a process for a moment."""
        await context.run(["/bin/sh", "-c", f"sleep {nap} & sleep 0.02"])
        return f"slept {what}"

    @tool(requires=False)
    async def guarded(what: str, context: ToolContext) -> str:
        """Ask first."""
        await context.require("guarded", [what], always=[what])
        return f"allowed {what}"

    @tool(permission="read", effect="reads")
    async def note(what: str, context: ToolContext) -> str:
        """Note what is left."""
        todo = Todo(id="1", content=what, status="pending", priority="low")
        await context.set_todos([todo])
        await context.set_state("noted", what)
        return f"noted {what}"

    return look, put, doze, guarded, note


class House:
    """What else the sessions need: a policy that asks for `guarded`, a compactor, a slow hook."""

    @hookimpl
    async def chat_system_transform(self) -> None:
        await asyncio.sleep(0.003)

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        if request.permission == "guarded":
            return Verdict(action="ask", reason="it is guarded")
        return Verdict(action="allow")

    @hookimpl
    async def register_compactors(self) -> list["House"]:
        return [self]

    async def compact(self, request: CompactionRequest) -> Compaction:
        summary = await request.ask(SUMMARY)
        return Compaction(summary=summary)
