"""Any history goes to any model: valid by the vendors' types, and without another's secrets."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pegboard import Prompt
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Completed, TextInput
from support.models import model_server as ms
from support.models.four_wires import PICTURE, WIRES, serving, strings, talking
from support.models.played import HI, texts, tools_of

VENDORS = {"anthropic", "google", "openai", "litellm"}
ROUND = ("anthropic", "openai", "gemini", "house", "gemini", "openai", "anthropic")
CHILD = """
import asyncio, json, sys
from pathlib import Path
from support.models.four_wires import WIRES, talking
from pegboard import Prompt
from support.models.played import HI

before = set(sys.modules)

async def main(folder, urls, first, second):
    async with talking(folder, urls) as app:
        session = await app.create_session()
        print(session.id, flush=True)
        for name in (first, second):
            await app.prompt(session.id, Prompt(HI, model=WIRES[name].model))
    print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}), flush=True)

asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2]), *sys.argv[3:]))
"""


def _answered(turn: Turn) -> str:
    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is None
    (said,) = texts(turn)
    return said


def _check_requests(servers: Mapping[str, ms.ModelServer]) -> None:
    """Each request fits its vendor's types, and has no secret but of its own model."""
    for name, server in servers.items():
        foreign = {wire.secret for other, wire in WIRES.items() if other != name}
        for body in server.requests:
            WIRES[name].check(body)
            assert foreign.isdisjoint(strings(body))


def _child(folder: Path, servers: Mapping[str, ms.ModelServer], *names: str) -> tuple[Any, ...]:
    urls = json.dumps({name: server.url for name, server in servers.items()})
    return sys.executable, "-c", CHILD, str(folder), urls, *names


def _environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return {**env, "PYTHONPATH": str(Path(__file__).parents[1])}


async def test_a_session_goes_through_all_providers_and_back(tmp_path: Path) -> None:
    async with serving() as servers:
        urls = {name: server.url for name, server in servers.items()}
        async with talking(tmp_path, urls) as app:
            session = await app.create_session()
            said = [
                _answered(await app.prompt(session.id, Prompt(HI, model=WIRES[name].model)))
                for name in ROUND
            ]
            turns = await app.list_turns(session.id)

    assert said == ["It is there."] * len(ROUND)
    assert [type(part.state) for part in tools_of(turns)] == [Completed] * len(ROUND)
    _check_requests(servers)
    for name, server in servers.items():
        last = set(strings(server.requests[-1]))
        assert WIRES[name].secret in last, f"{name} gets back what it thought"


async def test_a_picture_goes_as_one_where_the_model_sees_and_else_as_a_note(
    tmp_path: Path,
) -> None:
    async with serving() as servers:
        urls = {name: server.url for name, server in servers.items()}
        async with talking(tmp_path, urls) as app:
            session = await app.create_session()
            for name in ("anthropic", "openai", "gemini", "house"):
                await app.prompt(session.id, Prompt(HI, model=WIRES[name].model))

    pictures = {name: str(server.requests[-1]).count(PICTURE.partition(",")[2]) for name, server in
                servers.items()}  # fmt: skip
    assert pictures == {"anthropic": 1, "openai": 2, "gemini": 3, "house": 0}
    assert str(servers["house"].requests[-1]).count('"seen.png" was left out') == 4


@pytest.mark.parametrize("name", WIRES)
async def test_the_second_request_begins_with_nearly_all_of_the_first(
    tmp_path: Path, name: str
) -> None:
    async with serving() as servers:
        urls = {other: server.url for other, server in servers.items()}
        async with talking(tmp_path, urls) as app:
            session = await app.create_session()
            long = (TextInput(text="Look at this. " * 400),)
            await app.prompt(session.id, Prompt(parts=long, model=WIRES[name].model))
        first, second = servers[name].requests

    assert _cached_share(first, second, by_marks=name == "anthropic") > 0.9


def _cached_share(first: Mapping[str, Any], second: Mapping[str, Any], *, by_marks: bool) -> float:
    """How much of the first request the cache has for the second; up to a mark, where it has any.

    The order is the vendors': tools, system prompt, messages. A prefix is kept where the first
    request marks its end, and found where the second has a mark, or some blocks before one.
    """
    kept, asked = _blocks(first), _blocks(second)
    same = 0
    while same < min(len(kept), len(asked)) and kept[same][0] == asked[same][0]:
        same += 1
    if by_marks:
        marked = [place for place, (_, mark) in enumerate(kept[:same]) if mark]
        same = marked[-1] + 1 if marked and any(mark for _, mark in asked[same:]) else 0
    length = sum(len(block) for block, _ in kept)
    return sum(len(block) for block, _ in kept[:same]) / length


def _blocks(body: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """The blocks that a cache sees, and whether each is marked."""
    system = body.get("system") or body.get("instructions") or body.get("systemInstruction") or ()
    found: list[Any] = [*body["tools"], *([system] if isinstance(system, str | dict) else system)]
    for message in body.get("messages") or body.get("input") or body["contents"]:
        content = message.get("content") or message.get("parts") or [message]
        found += [content] if isinstance(content, str) else content
    blocks = []
    for each in found:
        plain = (
            {key: value for key, value in each.items() if key != "cache_control"}
            if isinstance(each, dict)
            else each
        )
        blocks.append((json.dumps(plain), plain != each))
    return blocks


def _stuck(name: str, body: ms.Body) -> ms.Answer:
    return [ms.Pause()] if WIRES[name].is_seen(body) else WIRES[name].look


async def test_a_session_that_was_killed_goes_on_with_any_other_model(tmp_path: Path) -> None:
    for first, second, third in (
        ("anthropic", "gemini", "openai"),
        ("openai", "anthropic", "gemini"),
        ("gemini", "house", "anthropic"),
        ("house", "openai", "house"),
    ):
        folder = tmp_path / first
        folder.mkdir()
        async with serving() as servers:
            stuck = servers[second]
            stuck._script = partial(_stuck, second)
            child = await asyncio.create_subprocess_exec(
                *_child(folder, servers, first, second),
                env=_environment(),
                stdout=subprocess.PIPE,
            )
            assert child.stdout
            session_id = (await child.stdout.readline()).decode().strip()
            async with asyncio.timeout(30):
                while len(stuck.requests) < 2:  # noqa: ASYNC110 - another process makes them
                    await asyncio.sleep(0.01)
            child.send_signal(signal.SIGKILL)
            await child.wait()

            urls = {name: server.url for name, server in servers.items()}
            async with talking(folder, urls) as app:
                model = WIRES[third].model
                assert (
                    _answered(await app.prompt(session_id, Prompt(HI, model=model)))
                    == "It is there."
                )
                turns = await app.list_turns(session_id)
        assert [type(part.state) for part in tools_of(turns)] == [Completed] * 3
        _check_requests(servers)


async def test_no_native_provider_imports_a_vendor_s_library(tmp_path: Path) -> None:
    async with serving() as servers:
        for number, names in enumerate((("anthropic", "openai"), ("gemini", "house"))):
            folder = tmp_path / str(number)
            folder.mkdir()
            child = await asyncio.create_subprocess_exec(
                *_child(folder, servers, *names), env=_environment(), stdout=subprocess.PIPE
            )
            out, _ = await child.communicate()
            _, loaded = out.decode().splitlines()

            assert child.returncode == 0
            assert VENDORS & set(loaded.split()) == set()
