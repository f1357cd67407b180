"""How the fake model's answers look on the wire: OpenAI's chat completions and Responses."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fake_script import Reply

CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
RESPONSES_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}
_HOLE = "\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """An answer's server-sent events: before, around each delta of text, and after the whole."""

    before: bytes
    delta: tuple[bytes, bytes]
    after: Callable[[str], bytes]


def frames(api: str, model: str, answer: Reply, number: int) -> Frames:
    """The events of an answer; `number` makes its ids unique."""
    return (_responses if api == "responses" else _chat)(model, answer, f"{number:x}")


def dumps(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def _split(frame: bytes) -> tuple[bytes, bytes]:
    start, end = frame.split(b"\\u0000")
    return start, end


def _chat(model: str, answer: Reply, ident: str) -> Frames:
    def chunk(delta: object, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + dumps({**frame, "choices": [choice]}) + b"\n\n"

    frame = {"id": ident, "object": "chat.completion.chunk", "created": 1, "model": model}
    before = [chunk({"role": "assistant", "content": ""})]
    for index, (name, arguments) in enumerate(answer.calls):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{ident}_{index}", "type": "function"}
        written = {"index": index, "function": {"arguments": dumps(arguments).decode()}}
        before += [
            chunk({"tool_calls": [{**call, "function": function}]}),
            chunk({"tool_calls": [written]}),
        ]
    usage = b"data: " + dumps({**frame, "choices": [], "usage": CHAT_USAGE}) + b"\n\n"
    end = chunk({}, "tool_calls" if answer.calls else "stop") + usage + b"data: [DONE]\n\n"
    return Frames(
        before=b"".join(before), delta=_split(chunk({"content": _HOLE})), after=lambda _: end
    )


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps({"type": kind, **fields}))


def _responses(model: str, answer: Reply, ident: str) -> Frames:
    response = {
        "id": f"resp_{ident}",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "in_progress",
        "output": [],
    }
    created = _event("response.created", response=response)
    if answer.calls:
        items = [_call_item(call, f"{ident}_{index}") for index, call in enumerate(answer.calls)]
        shown = b"".join(_call_events(index, item) for index, item in enumerate(items))
        end = _completed(response, items)
        return Frames(before=created + shown, delta=(b"", b""), after=lambda _: end)

    def after(text: str) -> bytes:
        part = {"type": "output_text", "text": text, "annotations": []}
        whole = {**item, "status": "completed", "content": [part]}
        done = _event("response.output_item.done", output_index=0, item=whole)
        return done + _completed(response, [whole])

    item = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "content": []}
    place: dict[str, Any] = {"output_index": 0, "content_index": 0, "item_id": item["id"]}
    empty = {"type": "output_text", "text": "", "annotations": []}
    before = (
        created
        + _event("response.output_item.added", output_index=0, item=item)
        + _event("response.content_part.added", **place, part=empty)
    )
    delta = _event("response.output_text.delta", **place, delta=_HOLE)
    return Frames(before=before, delta=_split(delta), after=after)


def _call_item(call: tuple[str, dict[str, Any]], ident: str) -> dict[str, Any]:
    name, arguments = call
    return {
        "id": f"fc_{ident}",
        "type": "function_call",
        "status": "completed",
        "name": name,
        "call_id": f"call_{ident}",
        "arguments": dumps(arguments).decode(),
    }


def _call_events(index: int, item: dict[str, Any]) -> bytes:
    begun = {**item, "status": "in_progress", "arguments": ""}
    return (
        _event("response.output_item.added", output_index=index, item=begun)
        + _event(
            "response.function_call_arguments.delta",
            output_index=index,
            item_id=item["id"],
            delta=item["arguments"],
        )
        + _event("response.output_item.done", output_index=index, item=item)
    )


def _completed(response: dict[str, Any], output: list[dict[str, Any]]) -> bytes:
    whole = {**response, "status": "completed", "usage": RESPONSES_USAGE, "output": output}
    return _event("response.completed", response=whole)
