"""A provider: models behind an HTTP API of one's own, which answers in server-sent events.

    data: {"text": "I look."}
    data: {"call": {"id": "c1", "name": "read", "input": {"filePath": "a.txt"}}}
    data: {"end": {"input": 120, "output": 9, "why": "stop"}}

`end` counts the tokens and says why the model stopped: `stop`, `length` or `content-filter`. The
same objects as lines of JSON (`application/x-ndjson`) are read as well. What fails behind the
status 200 comes as `data: {"error": {"code": 503, "message": "..."}}`.

The address is `provider.lines.options.baseURL`; the key is looked for as those of all providers,
in the variable LINES_API_KEY among other places.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pegboard import hookimpl
from pegboard.http import (
    Endpoint,
    ErrorFrameError,
    HttpProvider,
    Post,
    WireFormat,
    count_in,
    decode_json,
    encode_json,
    endpoints,
    unique_id,
)
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
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Config
from pegboard.schema.model import Model

LINES = Endpoint(id="lines", name="Lines", url="", env=("LINES_API_KEY",))


def encode(request: ModelRequest, endpoint: Endpoint, key: str) -> Post:
    """Return the request in the form of the server: texts, calls and results with their kinds."""
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
        self._end: Mapping[str, Any] = {}

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Yield the events of the next frame; an error that is raised here fails the answer."""
        line = decode_json(frame)
        if "error" in line:
            raise ErrorFrameError(line["error"])
        if text := line.get("text"):
            if not self._has_text:
                yield TextStart("text")
            self._has_text = True
            yield TextDelta("text", text)
        if call := line.get("call"):
            call_id = unique_id(call["id"], {each.id for each in self._calls})
            yield ToolInputStart(call_id, call["name"])
            yield ToolInputEnd(call_id)
            arguments = encode_json(call["input"]).decode()
            self._calls.append(ToolCall(call_id, call["name"], arguments))
        if "end" in line:
            self.finished = True
            self._end = line["end"]

    def end(self) -> Iterator[StreamEvent]:
        """Yield the last events: calls only now, because none of them can be cut off any more."""
        if self._has_text:
            yield TextEnd("text")
        why = self._end.get("why")
        counts = Usage(input=count_in(self._end, "input"), output=count_in(self._end, "output"))
        if why in ("length", "content-filter"):
            yield StreamFinish(why, counts)
            return
        yield from self._calls
        yield StreamFinish("tool-calls" if self._calls else "stop", counts)


def wire(_: Model) -> WireFormat:
    """Return the wire format of each model, which is the same for all."""
    return WireFormat(encode=encode, reader=lambda _: LineReader())


@hookimpl
async def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> Sequence[Provider]:
    """Return the provider, if the configuration has an address for it."""
    found = endpoints(config, env, known={"lines": LINES}, npm=())
    return [HttpProvider(endpoint, wire, environ=env, keys=keys) for endpoint in found]
