"""The schema of a final answer on each wire, held against the vendors' own types."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pegboard import Prompt
from support.models import claude_frames as claude
from support.models import gemini_frames as gemini
from support.models import model_server as ms
from support.models import response_frames as responses
from support.models.four_wires import WIRES, talking
from support.models.vendor_types import check_chat

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
FRAM = '{"name": "Fram"}'
FORM = {"type": "json_schema", "name": "answer", "schema": SCHEMA}
SAYS = {
    "anthropic": claude.say(FRAM),
    "openai": responses.say(FRAM),
    "gemini": gemini.say(FRAM),
    "house": ms.say(FRAM),
}
FIELDS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "anthropic": lambda body: body.get("output_config", {}).get("format"),
    "openai": lambda body: body.get("text", {}).get("format"),
    "gemini": lambda body: body["generationConfig"].get("responseJsonSchema"),
    "house": lambda body: body.get("response_format"),
}
FORMS = {
    "anthropic": {"type": "json_schema", "schema": SCHEMA},
    "openai": FORM,
    "gemini": SCHEMA,
    "house": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
}
BESIDE_TOOLS = {"anthropic", "openai"}
"""The wires whose servers leave the model its calls."""


@pytest.mark.parametrize("tools", [True, False], ids=["with tools", "without"])
@pytest.mark.parametrize("name", WIRES)
async def test_each_wire_has_a_field_of_its_own(tmp_path: Path, name: str, tools: bool) -> None:
    async with AsyncExitStack() as stack:
        servers = {
            each: await stack.enter_async_context(ms.ModelServer(ms.in_order(SAYS[each])))
            for each in WIRES
        }
        urls = {each: server.url for each, server in servers.items()}
        app = await stack.enter_async_context(talking(tmp_path, urls))
        session = await app.create_session()
        asked = Prompt("Nansen's ship?", output=SCHEMA, model=WIRES[name].model, tools={"*": tools})
        turn = await app.prompt(session, asked)

    [body] = servers[name].requests
    assert turn.output == {"name": "Fram"}
    assert FIELDS[name](body) == (FORMS[name] if not tools or name in BESIDE_TOOLS else None)
    assert "one JSON value and nothing else" in str(body)
    (check_chat if name == "house" else WIRES[name].check)(body)


async def test_a_server_that_refuses_the_field_is_asked_once_without_it(tmp_path: Path) -> None:
    refusal = ms.failure(400, "output_config: Extra inputs are not permitted")
    async with ms.ModelServer(ms.in_order(refusal, claude.say(FRAM))) as server:
        urls = dict.fromkeys(WIRES, server.url)
        async with talking(tmp_path, urls) as app:
            session = await app.create_session()
            asked = Prompt("Ship?", output=SCHEMA, model=WIRES["anthropic"].model)
            turn = await app.prompt(session, asked)

    assert turn.output == {"name": "Fram"}
    assert ["output_config" in body for body in server.requests] == [True, False]
