"""A provider: models behind an HTTP API of one's own, which answers in server-sent events.

    data: {"text": "I look."}
    data: {"call": {"id": "c1", "name": "read", "input": {"filePath": "a.txt"}}}
    data: {"end": {"input": 120, "output": 9}}

`end` counts the tokens. The address is `provider.lines.options.baseURL`; the key is looked for as
those of all providers, in the variable LINES_API_KEY among other places.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pegboard import hookimpl
from pegboard.providers import (
    Keys,
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Config
from pegboard.schema.model import Model
from pegboard_http import (
    Endpoint,
    HttpProvider,
    Post,
    WireFormat,
    decode_json,
    encode_json,
    endpoints,
)

LINES = Endpoint(id="lines", name="Lines", url="", env=("LINES_API_KEY",))


def encode(request: ModelRequest, endpoint: Endpoint, key: str) -> Post:
    """What the server is asked with: texts, calls and results, each with its kind."""
    body = {
        **request.options,
        "model": request.model.api.id,
        "temperature": request.temperature,
        "max_tokens": request.max_output_tokens,
        "system": "\n\n".join(request.system),
        "messages": [
            {"role": message.role, "content": [_content(each) for each in message.content]}
            for message in request.messages
        ],
        "tools": [msgspec.to_builtins(tool) for tool in request.tools],
    }
    return Post(endpoint.at("answer"), {"authorization": f"Bearer {key}"}, encode_json(body))


def _content(content: msgspec.Struct) -> dict[str, Any]:
    return {"kind": type(content).__name__.lower(), **msgspec.to_builtins(content)}


class LineReader:
    """The events of one answer; `finished` says that the model has come to its end."""

    def __init__(self) -> None:
        self.finished = False
        self._has_text = False
        self._calls: list[ToolCall] = []
        self._usage: Usage | None = None

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """The events of the next line; an error that is raised here makes the answer a failure."""
        line = decode_json(frame)
        if text := line.get("text"):
            if not self._has_text:
                yield TextStart("text")
            self._has_text = True
            yield TextDelta("text", text)
        if call := line.get("call"):
            yield ToolInputStart(call["id"], call["name"])
            arguments = encode_json(call["input"]).decode()
            self._calls.append(ToolCall(call["id"], call["name"], arguments))
        if end := line.get("end"):
            self.finished = True
            self._usage = Usage(input=end["input"], output=end["output"])

    def end(self) -> Iterator[StreamEvent]:
        """Behind the last line: calls are made only now, as nothing of them can be cut off."""
        if self._has_text:
            yield TextEnd("text")
        yield from self._calls
        yield StreamFinish("tool-calls" if self._calls else "stop", self._usage)


def _wire(_: Model) -> WireFormat:
    return WireFormat(encode=encode, reader=lambda _: LineReader())


@hookimpl
async def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> Sequence[Provider]:
    """The provider, if the configuration has an address for it."""
    found = endpoints(config, env, known={"lines": LINES}, npm=())
    return [HttpProvider(endpoint, _wire, environ=env, keys=keys) for endpoint in found]
