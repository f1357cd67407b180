"""The export of a session: read, redacted, and written in one of four formats."""

from pathlib import Path
from typing import Literal

import msgspec

from pegboard import App, InvalidInputError
from pegboard.plugins import replace_file
from pegboard.schema.part import ReasoningPart
from pegboard_plugins.cli.export.markdowntext import session_markdown
from pegboard_plugins.cli.export.page import session_page
from pegboard_plugins.cli.export.redaction import Redaction
from pegboard_plugins.cli.export.sessionfile import exported_lines, read_conversations
from pegboard_plugins.cli.export.trajectory import session_trajectory
from pegboard_plugins.shared.frontend import Conversation
from pegboard_plugins.shared.transcripts import transcribe

Form = Literal["html", "md", "jsonl", "atif"]
_AS_IT_IS = "not redacted: it may hold secrets"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The user's options of an export; `last` is the number of prompts, or None for all."""

    form: Form = "jsonl"
    redacted: bool = True
    with_reasoning: bool = False
    last: int | None = None


class Exported(msgspec.Struct, frozen=True):
    """The content of an exported file; `report` is a line on how many secrets were replaced."""

    content: bytes
    report: str


async def export_session(app: App, session_id: str, wanted: Wanted) -> Exported:
    """Return a session in the chosen format; equal sessions give equal bytes.

    :raises NotFoundError: when the session does not exist.
    :raises InvalidInputError: when the session has no message, for the format `atif`.
    """
    found = await read_conversations(app, session_id, last=wanted.last)
    conversations = [each if wanted.with_reasoning else _without_reasoning(each) for each in found]
    report = _AS_IT_IS
    if wanted.redacted:
        redaction = Redaction(app.keys.values(), Path.home())
        conversations = [redaction.apply(each) for each in conversations]
        report = redaction.report()
    if wanted.form == "jsonl":
        return Exported(b"".join(exported_lines(conversations)), report)
    if wanted.form == "atif":
        return Exported(session_trajectory(conversations, last=wanted.last), report)
    transcript = await transcribe(app, conversations)
    text = (session_page if wanted.form == "html" else session_markdown)(transcript, report)
    return Exported(text.encode(), report)


def _without_reasoning(conversation: Conversation) -> Conversation:
    replace = msgspec.structs.replace
    turns = (
        replace(
            turn, parts=tuple(each for each in turn.parts if not isinstance(each, ReasoningPart))
        )
        for turn in conversation.turns
    )
    return replace(conversation, turns=tuple(turns))


def write_export(file: Path, content: bytes) -> None:
    """Write the file atomically, readable only by its owner; a symlink is followed. Blocks.

    :raises InvalidInputError: when the file cannot be written.
    """
    target = file.resolve()
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"cannot write {file}: it is no regular file; name another one")
    try:
        replace_file(target, content)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write {file}: {error.strerror or error}; name a file in a folder that exists"
        ) from error
