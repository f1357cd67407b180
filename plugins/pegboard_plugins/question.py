"""The question tool: it asks the user for decisions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pegboard.unstable
from pegboard import SessionView, Tool, ToolContext, ToolResult, hookimpl
from pegboard.providers import ModelRequest
from pegboard.schema.part import Completed, ToolPart
from pegboard.schema.session import Question, QuestionOption

if TYPE_CHECKING:
    from pegboard.display import Block

_OPTION = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "minLength": 1},
        "description": {"type": "string"},
    },
    "required": ["label"],
}
_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1},
        "header": {"type": "string", "description": "1 or 2 words"},
        "options": {"type": "array", "items": _OPTION},
        "multiple": {"type": "boolean"},
    },
    "required": ["question", "options"],
}
_PARAMETERS = {
    "type": "object",
    "properties": {"questions": {"type": "array", "items": _QUESTION, "minItems": 1}},
    "required": ["questions"],
}
_DESCRIPTION = (
    "Ask the user what only they can decide, and wait for it. The option that you advise comes"
    " first; they may also write an answer of their own."
)


async def _question(context: ToolContext, args: Mapping[str, Any]) -> ToolResult:
    questions = [
        Question(
            question=asked["question"],
            header=asked.get("header", ""),
            options=tuple(
                QuestionOption(label=option["label"], description=option.get("description", ""))
                for option in asked["options"]
            ),
            multiple=asked.get("multiple", False),
        )
        for asked in args["questions"]
    ]
    answers = await context.ask_user(questions)
    lines = [
        f"{question.question}\n  {', '.join(labels) or '(no answer)'}"
        for question, labels in zip(questions, answers, strict=True)
    ]
    count = "1 question" if len(questions) == 1 else f"{len(questions)} questions"
    return ToolResult(
        output="\n".join(["The user's answers:", *lines]),
        title=f"Asked {count}",
        metadata={"answers": [list(labels) for labels in answers]},
    )


def _drawn(part: ToolPart) -> "Block | None":
    """Return each question with the user's answers, for the user interface."""
    if not isinstance(part.state, Completed):
        return None
    from pegboard.display import Block, Span

    asked: Sequence[Any] = part.state.input.get("questions", ())
    given: Sequence[Any] = part.state.metadata.get("answers", ())
    rows = [
        (
            Span(pegboard.unstable.one_line(str(question.get("question", "")))),
            Span(f"  {', '.join(labels)}", "done"),
        )
        for question, labels in zip(asked, given, strict=False)
        if isinstance(question, dict) and isinstance(labels, list)
    ]
    title = part.state.title or pegboard.unstable.subject_of(part.state.input)
    return Block(title=title, lines=tuple(rows), fold=len(rows))


question = Tool.raw(
    "question",
    _DESCRIPTION,
    _PARAMETERS,
    _question,
    effect="reads",
    needs_user=True,
    requires=False,
    draw=_drawn,
)


@hookimpl
async def register_tools() -> list[Tool]:
    """Return the question tool."""
    return [question]


@hookimpl
async def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """Remove the tool from the request if no user can answer."""
    return None if session.interactive else request.without(question.id)
