"""What a client sends: the parts of a prompt, before they have ids."""

from typing import Any

from pegboard.schema.part import ModelChoice, SourceText
from pegboard.schema.wire import Wire


class TextInput(Wire, frozen=True, tag_field="type", tag="text"):
    """Text that the user typed; `synthetic` text is a program's."""

    text: str
    id: str | None = None
    synthetic: bool = False
    ignored: bool = False
    metadata: dict[str, Any] | None = None


class FileInput(Wire, frozen=True, tag_field="type", tag="file"):
    """A file by `data:` or `file:` URL; `?start=&end=` of a `file:` URL select lines."""

    mime: str
    url: str
    id: str | None = None
    filename: str | None = None
    source: dict[str, Any] | None = None


class AgentInput(Wire, frozen=True, tag_field="type", tag="agent"):
    """An `@agent` mention."""

    name: str
    id: str | None = None
    source: SourceText | None = None


class SubtaskInput(Wire, frozen=True, tag_field="type", tag="subtask"):
    """Work for a subagent."""

    prompt: str
    description: str
    agent: str
    id: str | None = None
    model: ModelChoice | None = None
    command: str | None = None


PartInput = TextInput | FileInput | AgentInput | SubtaskInput
