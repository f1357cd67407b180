"""A session with a part of each kind, in whose fields a test places its own strings."""

from typing import Any

from pegboard import App
from pegboard.schema.message import (
    AssistantMessage,
    MessagePath,
    MessageTime,
    TextData,
    UnknownFailure,
    UserMessage,
    UserSummary,
)
from pegboard.schema.part import (
    AgentPart,
    CompactionPart,
    Completed,
    CompletedSpan,
    Failed,
    FilePart,
    Instant,
    ModelChoice,
    Part,
    PatchPart,
    ReasoningPart,
    RetryPart,
    Running,
    StepFinishPart,
    StepStartPart,
    SubtaskPart,
    TextPart,
    TimeSpan,
    ToolPart,
)
from pegboard.schema.session import FileDiff, Session, Todo, Tokens
from pegboard.storage.changes import Change, PutMessage, PutPart, PutTodos

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def diff_of(text: str) -> str:
    """A unified diff that adds one line."""
    return f"--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n one\n+{text}\n"


class Building:
    """The parts of one session of an App, in each free field of which stands `text`."""

    def __init__(self, app: App, session: Session, text: str) -> None:
        self._app, self._session, self._text = app, session, text
        self._message = ""

    def _ids(self) -> dict[str, Any]:
        return {
            "id": self._app.storage.ids.new("part"),
            "session_id": self._session.id,
            "message_id": self._message,
        }

    def changes(self) -> list[Change]:
        """A prompt and an answer."""
        text, session = self._text, self._session
        prompt, answer = (self._app.storage.ids.new("message") for _ in range(2))
        summary = UserSummary(
            diffs=(FileDiff(file="x.py", additions=1, deletions=0, patch=diff_of(text)),)
        )
        user = UserMessage(
            id=prompt,
            session_id=session.id,
            time=MessageTime(created=1_700_000_000_000),
            agent="build",
            model=ModelChoice("played", "m"),
            summary=summary,
        )
        assistant = AssistantMessage(
            id=answer,
            session_id=session.id,
            parent_id=prompt,
            model_id="m",
            provider_id="played",
            mode="build",
            agent="build",
            path=MessagePath(cwd=session.directory, root=session.directory),
            cost=0.25,
            tokens=Tokens(input=10, output=5),
            time=MessageTime(created=1_700_000_001_000, completed=1_700_000_002_000),
            error=UnknownFailure(data=TextData(message=text)),
        )
        self._message = prompt
        asked = list(map(PutPart, self._asked()))
        self._message = answer
        answered = list(map(PutPart, self._answered()))
        todos = PutTodos(session.id, (Todo(content=text, status="pending"),))
        return [PutMessage(user), *asked, PutMessage(assistant), *answered, todos]

    def _asked(self) -> list[Part]:
        text = self._text
        return [
            TextPart(**self._ids(), text=text),
            TextPart(**self._ids(), text=text, synthetic=True),
            FilePart(**self._ids(), mime="image/png", url=PIXEL, filename=text[:40]),
            FilePart(**self._ids(), mime="text/plain", url="file:///x", filename=text[:40]),
            AgentPart(**self._ids(), name=text[:40]),
            SubtaskPart(**self._ids(), prompt=text, description=text[:40], agent="helper"),
            CompactionPart(**self._ids(), auto=True),
        ]

    def _answered(self) -> list[Part]:
        text = self._text
        error = {"name": "APIError", "data": {"message": text, "isRetryable": True}}
        return [
            StepStartPart(**self._ids()),
            RetryPart(**self._ids(), attempt=1, error=error, time=Instant(created=1)),
            ReasoningPart(**self._ids(), text=text, time=TimeSpan(start=1, end=2)),
            TextPart(**self._ids(), text=text),
            self._call(
                Completed(
                    input={"filePath": "x.py", "note": text},
                    output=text,
                    title=text[:40],
                    metadata={"diff": diff_of(text)},
                    time=CompletedSpan(start=1, end=2),
                    attachments=(FilePart(**self._ids(), mime="image/png", url=PIXEL),),
                ),
            ),
            self._call(Failed(input={"command": text}, error=text, time=TimeSpan(start=1, end=2))),
            self._call(Running(input={"command": text}, time=TimeSpan(start=1))),
            StepFinishPart(**self._ids(), reason="length", cost=0.25, tokens=Tokens()),
            PatchPart(**self._ids(), hash="0" * 40, files=(text[:40],)),
        ]

    def _call(self, state: Completed | Failed | Running) -> ToolPart:
        return ToolPart(**self._ids(), call_id="call_1", tool="edit", state=state)


async def session_with(app: App, text: str, *, title: str = "All of it") -> Session:
    """A stored session with each kind of part."""
    session = await app.create_session(title=title)
    await app.storage.commit(*Building(app, session, text).changes())
    return session
