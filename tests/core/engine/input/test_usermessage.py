"""What a prompt may bring along, and that no plugin can lose it."""

import base64
import sqlite3
from pathlib import Path

import pytest

from pegboard import Prompt, hookimpl, tool
from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.providers import (
    Media,
    ModelRequest,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
)
from pegboard.schema.config import Agent
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.part import AgentInput, AgentPart, FileInput, TextPart
from pegboard.schema.session import Rule
from support.models.played import (
    HI,
    Played,
    PlayedPlugin,
    ToolsPlugin,
    assistant,
    opened,
    shout,
    text,
    texts,
)
from support.tools.media_files import pdf, png

FREE = (Rule("*", "*", "allow"),)
THINKING = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    options={"effort": "low", "store": False},
    variants={"high": {"effort": "high"}},
)


@tool(permission="edit", effect="edits")
async def change(path: str) -> str:
    """Change a file."""
    return path


@tool(permission="edit", effect="edits")
async def rewrite(path: str) -> str:
    """Write a file anew."""
    return path


async def test_system_variant_and_message_id_come_with_the_prompt(tmp_path: Path) -> None:
    provider = Played(text("ok"), model=THINKING)
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(
            session.id, Prompt(HI, system="Speak Latin.", variant="high", message_id="msg_mine")
        )
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    first, second = provider.requests
    assert first.system[-1] == "Speak Latin."
    assert first.options == {"effort": "high", "store": False}
    assert "Speak Latin." not in second.system
    assert second.options == {"effort": "low", "store": False}
    asked = turns[0].info
    assert isinstance(asked, UserMessage)
    assert (asked.id, asked.system, asked.variant) == ("msg_mine", "Speak Latin.", "high")
    assert assistant(turns[1]).variant == "high"


@pytest.mark.parametrize(
    ("switches", "left"),
    [
        (None, ["change", "rewrite", "shout"]),
        ({"shout": False}, ["change", "rewrite"]),
        ({"edit": False}, ["shout"]),
        ({"edit": False, "rewrite": True}, ["rewrite", "shout"]),
        ({"*": False}, []),
        ({"*": False, "sh*": True}, ["shout"]),
    ],
)
async def test_a_prompt_switches_tools_off_for_its_own_answer(
    tmp_path: Path, switches: dict[str, bool] | None, left: list[str]
) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(shout, change, rewrite)) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt(HI, tools=switches))
        await app.prompt(session.id, HI)

    offered = [sorted(each.name for each in request.tools) for request in provider.requests]
    assert offered == [left, ["change", "rewrite", "shout"]]


async def test_an_agent_part_has_the_model_call_the_subagent(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt("look it up", parts=(AgentInput(name="helper"),)))
        [asked, _] = await app.list_turns(session.id)

    assert [type(part) for part in asked.parts] == [TextPart, AgentPart]
    [message] = provider.requests[0].messages
    assert "helper" in str(message.content[1])


async def test_an_image_and_a_pdf_reach_the_model_whatever_url_they_had(tmp_path: Path) -> None:
    pixels, page = png(), pdf()
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        (tmp_path / "project/shot.png").write_bytes(pixels)
        url = (tmp_path / "project/shot.png").as_uri()
        document = f"data:application/pdf;base64,{base64.b64encode(page).decode()}"
        session = await app.create_session()
        files = [
            FileInput(mime="image/png", url=url),
            FileInput(mime="application/pdf", url=document, filename="a.pdf"),
        ]
        await app.prompt(session.id, Prompt(HI, parts=(*files,)))

    media = [item for item in provider.requests[0].messages[0].content if isinstance(item, Media)]
    assert [(item.mime, base64.b64decode(item.url.partition(",")[2])) for item in media] == [
        ("image/png", pixels),
        ("application/pdf", page),
    ]


@pytest.mark.sqlite
async def test_a_prompt_is_in_the_database_before_any_plugin_sees_it(tmp_path: Path) -> None:
    stored: list[bool] = []

    class Looks:
        @hookimpl
        async def chat_message(self, message: Turn) -> Turn:
            with sqlite3.connect(tmp_path / "data/pegboard.db") as db:
                query = "SELECT CAST(data AS TEXT) FROM part WHERE message_id = ?"
                [(found,)] = db.execute(query, (message.info.id,))
            db.close()
            stored.append('"hi"' in found)
            raise RuntimeError("a plugin that fails")

    async with opened(tmp_path, Played(text("ok")), Looks()) as app:
        session = await app.create_session()
        answered = await app.prompt(session.id, HI)

    assert stored == [True]
    assert texts(answered) == ["ok"]


def metadata_of(request: ModelRequest) -> list[object]:
    """What goes back to the provider beside the first answer."""
    said = request.messages[1].content
    return [item.metadata for item in said if isinstance(item, Reasoning | Text)]


async def test_another_model_gets_no_metadata_of_the_one_before(tmp_path: Path) -> None:
    signed = [
        ReasoningStart("r", {"signature": "s"}),
        ReasoningDelta("r", "I think"),
        ReasoningEnd("r", {"signature": "s"}),
        TextStart("t", {"id": "item_1"}),
        TextDelta("t", "so"),
        TextEnd("t", {"id": "item_1"}),
        StreamFinish("stop"),
    ]
    first = Played(signed, text("again"))
    second = Played(
        text("other"), model=Model(id="n", provider_id="other", name="N", api=ModelApi(id="n"))
    )
    second.id = "other"
    agent = Agent(name="build2", mode="primary", permission=FREE, options={})
    async with opened(tmp_path, first, PlayedPlugin(second, agents=(agent,))) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.prompt(session.id, Prompt(HI, model="other/n", agent="build2"))
        back = await app.prompt(session.id, Prompt(HI, model="played/m", agent="build"))

    assert metadata_of(second.requests[0]) == [None, None]
    assert metadata_of(first.requests[1]) == [{"signature": "s"}, {"id": "item_1"}]
    assert (assistant(back).provider_id, assistant(back).agent) == ("played", "build")


async def test_a_message_id_that_is_there_already_is_refused(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt(HI, message_id="msg_mine"))
        before = await app.list_turns(session.id)
        for known in ("msg_mine", before[1].info.id):
            with pytest.raises(InvalidInputError, match="already"):
                await app.prompt(session.id, Prompt(HI, message_id=known))
        other = await app.create_session()
        await app.prompt(other.id, Prompt(HI, message_id="msg_mine"))

        assert await app.list_turns(session.id) == before
    assert len(provider.requests) == 2


async def test_an_agent_that_is_misspelt_once_does_not_stay(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        with pytest.raises(NotFoundError, match="agent not found: biuld"):
            await app.prompt(session.id, Prompt(HI, agent="biuld"))
        went_on = await app.prompt(session.id, HI)

    assert assistant(went_on).agent == "build"
