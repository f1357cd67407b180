"""The tools whose schemas vendors refuse, in the words of each."""

import json
from typing import Any

import pytest

from pegboard.errors import ProviderError, ToolSchemaError
from pegboard.providers import ToolDefinition
from support.models import model_server as ms
from support.models.provider_run import READ, events_of, provider_at, request_for


def definition(name: str) -> ToolDefinition:
    return ToolDefinition(name=name, description="", parameters={"type": "object"}, permission=name)


TOOLS = (READ, definition("bash"), definition("look_up"))


def error(message: str, **facts: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **facts}}


def refusal(status: int, body: object) -> list[ms.Piece]:
    content = json.dumps(body).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}
    return [ms.Status(code=status, headers=head), content]


OPENAI = error(
    "Invalid schema for function 'look_up': In context=('properties', 'tags'), array schema "
    "missing items.",
    param="tools[2].function.parameters",
    code="invalid_function_parameters",
)
RESPONSES = error(
    "Invalid schema for function 'look_up': schema must have type 'object' and not have "
    "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
    param="tools[2].parameters",
)
ANTHROPIC = error(
    "tools.2.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
    "level"
)
ANTHROPIC_TYPE = error("tools.2.custom.input_schema.type: Field required")
GEMINI = error(
    "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[tags].items: "
    "missing field.\n"
)
GEMINI_UNKNOWN = error(
    'Invalid JSON payload received. Unknown name "exclusiveMinimum" at '
    "'tools[0].function_declarations[2].parameters.properties[0].value': Cannot find field."
)
VERTEX = error(
    "Unable to submit request because `look_up` functionDeclaration `parameters.tags` schema "
    "specified other fields alongside any_of. When using any_of, it must be the only field set."
)
GROQ = error(
    "invalid JSON schema for tool look_up, tools[2].function.parameters: `/properties/x/format`: "
    "unknown `format`"
)
BEDROCK = {
    "message": "The value at toolConfig.tools.2.toolSpec.inputSchema.json.type must be one of the "
    "following: object."
}
FASTAPI = {
    "detail": [
        {
            "type": "value_error",
            "loc": ["body", "tools", 2, "function", "parameters"],
            "msg": "Value error, `additionalProperties` must be a boolean",
        }
    ]
}


@pytest.mark.parametrize(
    ("status", "body", "keyword"),
    [
        (400, OPENAI, "items"),
        (400, RESPONSES, "oneOf"),
        (400, ANTHROPIC, "oneOf"),
        (400, ANTHROPIC_TYPE, "type"),
        (400, GEMINI, "items"),
        (400, GEMINI_UNKNOWN, "exclusiveMinimum"),
        (400, VERTEX, ""),
        (400, GROQ, "format"),
        (400, BEDROCK, "type"),
        (422, FASTAPI, "additionalProperties"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value),
)
async def test_the_refused_tool_and_the_keyword_are_read_from_each_vendor_s_words(
    status: int, body: object, keyword: str
) -> None:
    async with ms.ModelServer(lambda _: refusal(status, body)) as server:
        provider = provider_at(server.url)
        request = request_for(provider.resolve("m"), tools=TOOLS)
        with pytest.raises(ToolSchemaError) as caught:
            await events_of(provider, request)

    assert (caught.value.tools, caught.value.keyword) == (("look_up",), keyword)
    assert (caught.value.retryable, caught.value.status) == (False, status)


@pytest.mark.parametrize(
    "body",
    [
        error("tools.7.custom.input_schema: JSON schema is invalid."),  # no such tool
        error("tools.2.cache_control: at most 4 blocks may have it"),  # the schema is not at fault
        error("Invalid schema for response_format 'look': 'required' is missing"),
        error("messages.2.content.0: the tool 'bash' has no result"),
        error("tools.function.parameters is not a valid moonshot flavored json schema"),
    ],
)
async def test_an_error_that_names_no_tool_of_the_request_is_a_plain_one(body: object) -> None:
    async with ms.ModelServer(lambda _: refusal(400, body)) as server:
        provider = provider_at(server.url)
        with pytest.raises(ProviderError) as caught:
            await events_of(provider, request_for(provider.resolve("m"), tools=TOOLS))

    assert type(caught.value) is ProviderError
