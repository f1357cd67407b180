"""The frames of Claude, OpenAI's Responses and Gemini for the table of providers' faults."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from support.models import claude_frames as claude
from support.models import gemini_frames as gemini
from support.models import response_frames as responses

Usage = tuple[int, int] | None


def _events(frames: Iterable[Any]) -> bytes:
    return b"".join(
        b"data: " + json.dumps(each, ensure_ascii=False).encode() + b"\n\n" for each in frames
    )


class ClaudeFrames:
    """Anthropic's Messages API."""

    _KINDS: ClassVar[Mapping[str, Any]] = {
        "auth": "authentication_error",
        "overflow": "invalid_request_error",
        "quota": "billing_error",
        "policy": "invalid_request_error",
        "overloaded": "overloaded_error",
        "invalid": "invalid_request_error",
    }
    _ENDS: ClassVar[Mapping[str, Any]] = {
        "stop": "end_turn",
        "tool-calls": "tool_use",
        "length": "max_tokens",
        "content-filter": "refusal",
    }

    def start(self) -> bytes:
        return _events(claude.answer(reason=None))

    def text(self, text: str) -> bytes:
        return _events({**frame, "index": 0} for frame in claude.text(text))

    def call(self, call_id: str, name: str, arguments: str, *, index: int = 0) -> bytes:
        block = claude.call(name, json.loads(arguments), call_id)
        return _events({**frame, "index": index} for frame in block)

    def cut_call(self, call_id: str, name: str, arguments: str) -> bytes:
        opened = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        return _events(
            [
                {"type": "content_block_start", "index": 0, "content_block": opened},
                {"type": "content_block_delta", "index": 0, "delta": delta},
            ]
        )

    def end(self, reason: str, *, usage: Usage = (10, 5)) -> bytes:
        counts = {"input_tokens": usage[0], "output_tokens": usage[1]} if usage else {}
        delta = {"type": "message_delta", "delta": {"stop_reason": self._ENDS[reason]}}
        stopped = {"type": "content_block_stop", "index": 0}  # also of a block that was cut
        return _events([stopped, {**delta, "usage": counts}, {"type": "message_stop"}])

    def error(self, refusal: str, message: str) -> bytes:
        return json.dumps(self._error(refusal, message)).encode()

    def error_event(self, refusal: str, message: str) -> bytes:
        return b"event: error\n" + _events([self._error(refusal, message)])

    def stray(self) -> bytes:
        return b"event: weather\n" + _events([{"type": "weather", "sunny": True}])

    def _error(self, refusal: str, message: str) -> dict[str, Any]:
        said = {
            "overflow": "prompt is too long: 9 tokens > 8 maximum",
            "policy": "Output blocked by content filtering policy",
        }
        text = f"{message} {said.get(refusal, '')}"
        return {"type": "error", "error": {"type": self._KINDS[refusal], "message": text}}


class ResponseFrames:
    """OpenAI's Responses API."""

    _CODES: ClassVar[Mapping[str, Any]] = {
        "auth": "invalid_api_key",
        "overflow": "context_length_exceeded",
        "quota": "insufficient_quota",
        "policy": "content_policy_violation",
        "overloaded": "server_error",
        "invalid": "invalid_prompt",
    }
    _CUT: ClassVar[Mapping[str, Any]] = {
        "length": "max_output_tokens",
        "content-filter": "content_filter",
    }

    def start(self) -> bytes:
        return _events(responses.answer(status=None))

    def text(self, text: str) -> bytes:
        return _events({**frame, "output_index": 0} for frame in responses.text(text))

    def call(self, call_id: str, name: str, arguments: str, *, index: int = 0) -> bytes:
        item = responses.call(name, json.loads(arguments), call_id)
        return _events({**frame, "output_index": index} for frame in item)

    def cut_call(self, call_id: str, name: str, arguments: str) -> bytes:
        added, *_ = responses.call(name, {}, call_id)
        delta = {"type": "response.function_call_arguments.delta", "delta": arguments}
        return _events({**frame, "output_index": 0} for frame in (added, delta))

    def end(self, reason: str, *, usage: Usage = (10, 5)) -> bytes:
        cut = self._CUT.get(reason, "")
        counts = {"input_tokens": usage[0], "output_tokens": usage[1]} if usage else None
        frames = responses.answer(
            status="incomplete" if cut else "completed", reason=cut, usage=counts
        )
        return _events(frames[-1:])

    def error(self, refusal: str, message: str) -> bytes:
        return json.dumps({"error": self._error(refusal, message)}).encode()

    def error_event(self, refusal: str, message: str) -> bytes:
        return _events([{"type": "error", **self._error(refusal, message)}])

    def stray(self) -> bytes:
        return _events([{"type": "response.weather", "sunny": True}])

    def _error(self, refusal: str, message: str) -> dict[str, Any]:
        return {"code": self._CODES[refusal], "message": message}


class GeminiFrames:
    """Gemini's `streamGenerateContent`."""

    _CODES: ClassVar[Mapping[str, Any]] = {
        "auth": (401, "UNAUTHENTICATED", ""),
        "overflow": (400, "INVALID_ARGUMENT", "exceeds the maximum number of tokens allowed"),
        "quota": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
        "policy": (400, "INVALID_ARGUMENT", "blocked by the safety system"),
        "overloaded": (503, "UNAVAILABLE", "The model is overloaded"),
        "invalid": (400, "INVALID_ARGUMENT", ""),
    }
    _ENDS: ClassVar[Mapping[str, Any]] = {
        "stop": "STOP",
        "tool-calls": "STOP",
        "length": "MAX_TOKENS",
        "content-filter": "SAFETY",
    }

    def start(self) -> bytes:
        return b""

    def text(self, text: str) -> bytes:
        return _events(gemini.answer(gemini.text(text), reason=None))

    def call(self, call_id: str, name: str, arguments: str, *, index: int = 0) -> bytes:
        part = gemini.call(name, json.loads(arguments), call_id=call_id)
        return _events(gemini.answer(part, reason=None))

    def cut_call(self, call_id: str, name: str, arguments: str) -> bytes:
        return self.call(call_id, name, "{}")

    def end(self, reason: str, *, usage: Usage = (10, 5)) -> bytes:
        names = ("promptTokenCount", "candidatesTokenCount")
        counts = {"usageMetadata": dict(zip(names, usage, strict=True))} if usage else {}
        return _events([{"candidates": [{"finishReason": self._ENDS[reason]}], **counts}])

    def error(self, refusal: str, message: str) -> bytes:
        code, status, text = self._CODES[refusal]
        said = {"code": code, "message": f"{message} {text}", "status": status}
        return json.dumps({"error": said}).encode()

    def error_event(self, refusal: str, message: str) -> bytes:
        return b"data: " + self.error(refusal, message) + b"\n\n"

    def stray(self) -> bytes:
        return _events([{"weather": "sunny"}])
