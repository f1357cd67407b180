"""Permission requests and questions as MCP forms, and the replies from filled forms."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.schema.session import Answers, PermissionRequest, Question, QuestionRequest, Reply

REPLY = "reply"
MESSAGE_LETTERS = 8 << 10
_REPLIES: Mapping[Any, Reply] = {"once": "once", "always": "always"}


def form_of(request: PermissionRequest | QuestionRequest) -> tuple[str, dict[str, Any]]:
    """Return the message of a request to the user, and the JSON Schema of the answer form."""
    if isinstance(request, PermissionRequest):
        return _permission_message(request), _permission_schema(request)
    message = "\n".join(each.question for each in request.questions)
    fields: dict[str, Any] = {}
    required = []
    for number, question in enumerate(request.questions, 1):
        fields[f"answer{number}"] = _field(question)
        if question.options and question.custom:
            fields[f"other{number}"] = {"type": "string", "title": "Another answer"}
        else:
            required.append(f"answer{number}")
    return message, {"type": "object", "properties": fields, "required": required}


def reply_of(content: Mapping[str, Any] | None) -> Reply:
    """Return the reply to a permission request; any answer except an approval is a rejection."""
    return _REPLIES.get(content.get(REPLY), "reject") if content is not None else "reject"


def answers_of(questions: Sequence[Question], content: Mapping[str, Any]) -> Answers:
    """Return the answers from a filled form; text typed by the user replaces a selected choice."""
    found = []
    for number, question in enumerate(questions, 1):
        chosen = content.get(f"answer{number}")
        labels = [*map(str, chosen)] if isinstance(chosen, list) else [chosen] if chosen else []
        other = content.get(f"other{number}")
        if isinstance(other, str) and other.strip():
            labels = [*labels, other] if question.multiple else [other]
        found.append(tuple(map(str, labels)))
    return tuple(found)


def _permission_message(request: PermissionRequest) -> str:
    """Return a permission request's details: all patterns or the whole command, and file diffs."""
    subject = request.line or ", ".join(request.patterns)
    diff = request.metadata.get("diff")
    text = "\n".join(
        line
        for line in (
            f"Pegboard asks for the permission {request.permission}: {subject}",
            f"`always` allows {', '.join(request.always)}" if request.always else "",
            diff if isinstance(diff, str) else "",
        )
        if line
    )
    if len(text) <= MESSAGE_LETTERS:
        return text
    return f"{text[:MESSAGE_LETTERS]}\n[cut: {len(text) - MESSAGE_LETTERS} more characters]"


def _permission_schema(request: PermissionRequest) -> dict[str, Any]:
    choices = ["once", *(["always"] if request.always else []), "reject"]
    reply = {"type": "string", "title": "Reply", "enum": choices}
    return {"type": "object", "properties": {REPLY: reply}, "required": [REPLY]}


def _field(question: Question) -> dict[str, Any]:
    about = {"title": question.header or question.question, "description": question.question}
    choices = [each.label for each in question.options]
    if not choices:
        return {"type": "string", **about}
    if question.multiple:
        return {"type": "array", "items": {"type": "string", "enum": choices}, **about}
    return {"type": "string", "enum": choices, **about}
