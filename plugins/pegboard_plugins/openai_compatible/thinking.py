"""The reasoning of a model, in the forms of chat completion servers.

It arrives in a separate field, in a list of details, or between tags in the text, and is sent back
in the same form.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pegboard.providers import ModelMessage, ModelRequest, Reasoning
from pegboard_plugins.openai_compatible.quirks import Quirks

OWN = "chat"
"""What is under this name in the metadata of parts is ours."""
TAGS = "think"
"""In the place of a field's name: between tags in the text."""
PARTS = "parts"
"""In the place of a field's name: in parts of the content, as Mistral writes it."""
_OPEN, _CLOSE = "<think>", "</think>"
_OFF = ("none", "off", "disabled")
EFFORT = ("reasoningEffort", "reasoning_effort", "effort")
"""Options that set how much to think, by any server's name for it."""
_JOINED = ("reasoning.text", "reasoning.summary")
"""Details that come in pieces."""

Kind = Literal["text", "thought"]


class TagSplitter:
    """A splitter that separates the thoughts that local models write in tags from the answer."""

    def __init__(self) -> None:
        self._state: Literal["start", "thought", "behind", "text"] = "start"
        self._held = ""

    def split(self, text: str) -> Iterator[tuple[Kind, str]]:
        """Yield the thoughts and the text in a piece of an answer; hold back an incomplete tag."""
        if self._state == "text":
            yield "text", text
            return
        self._held += text
        if self._state == "start":
            self._begin()
        if self._state == "thought":
            yield from self._think()
        if self._state == "behind":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "behind"
        if self._state == "text" and self._held:
            yield "text", self._held
            self._held = ""

    def rest(self) -> Iterator[tuple[Kind, str]]:
        """Yield the text that was held back for an incomplete tag, at the end of the answer."""
        if self._held and self._state != "behind":
            yield ("thought" if self._state == "thought" else "text"), self._held
        self._held = ""

    def _begin(self) -> None:
        written = self._held.lstrip()
        if written.startswith(_OPEN):
            self._state, self._held = "thought", written.removeprefix(_OPEN).lstrip("\n")
        elif not _OPEN.startswith(written):
            self._state = "text"

    def _think(self) -> Iterator[tuple[Kind, str]]:
        thought, tag, behind = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "behind", behind
        else:
            kept = max((n for n in range(len(_CLOSE)) if thought.endswith(_CLOSE[:n])), default=0)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield "thought", thought


def add_details(details: list[dict[str, Any]], pieces: object) -> str:
    """Add the reasoning details of a chunk to the list `details`; return the text in them."""
    said = []
    for piece in pieces if isinstance(pieces, list) else ():
        if not isinstance(piece, dict):
            continue
        said.append(str(piece.get("text") or piece.get("summary") or ""))
        last = details[-1] if details else {}
        same = all(last.get(name) == piece.get(name) for name in ("type", "index"))
        if same and piece.get("type") in _JOINED:
            details[-1] = {
                **last,
                **{name: _joined(last, name, each) for name, each in piece.items()},
            }
        else:
            details.append(dict(piece))
    return "".join(said)


def _joined(last: Mapping[str, Any], name: str, value: object) -> object:
    if name in ("text", "summary"):
        return f"{last.get(name) or ''}{value or ''}"
    return last.get(name) if value is None else value


def with_thoughts(value: dict[str, Any], message: ModelMessage, field: str) -> dict[str, Any]:
    """Return the answer `value` with the model's thoughts in `field`, where the model expects them.

    If `field` is "", an answer with tool calls gets the thoughts in the form in which they arrived,
    and other answers get none. If `field` is given and there are no thoughts, an answer with calls
    gets a space: DeepSeek and Kimi refuse calls without the field, and Kimi refuses an empty one.
    """
    thoughts = [part for part in message.content if isinstance(part, Reasoning)]
    details = [each for part in thoughts for each in _own(part).get("details", ())]
    if details:
        return {**value, "reasoning_details": details}
    if field:
        thought = "".join(part.text for part in thoughts).strip()
        thought = thought or (" " if "tool_calls" in value else "")
        return {**value, field: thought} if thought else value
    found: dict[str, str] = {}
    for part in thoughts:
        if (name := _own(part).get("field")) and part.text.strip():
            found[name] = found.get(name, "") + part.text
    if not found or "tool_calls" not in value:
        return value
    if TAGS in found:
        return {**value, "content": f"{_OPEN}{found[TAGS]}{_CLOSE}{value['content'] or ''}"}
    if PARTS in found:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": found[PARTS]}]}
        said = [{"type": "text", "text": value["content"]}] if value["content"] else []
        return {**value, "content": [thinking, *said]}
    return {**value, **found}


def _own(part: Reasoning) -> Mapping[str, Any]:
    own = (part.metadata or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def effort_of(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """Return the fields for the chosen reasoning effort, in the form of the model and its server.

    Without a chosen effort, return no fields.
    """
    effort = next((request.options[name] for name in EFFORT if request.options.get(name)), None)
    style = request.model.reasoning_style
    if effort is None or style == "always":
        return {}
    if style == "switch":
        switch = {"enable_thinking": effort not in _OFF}
        return {"chat_template_kwargs": switch} if quirks.template else switch
    if quirks.effort_object:
        return {"reasoning": {"enabled": False} if effort in _OFF else {"effort": effort}}
    return {"reasoning_effort": effort}


def reasoning_metadata(field: str, details: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the metadata to store with a thought, by which the thought is sent back unchanged."""
    if details:
        return {OWN: {"details": list(details)}}
    return {OWN: {"field": field}} if field else None
