"""The model's questions as ACP forms or Markdown, and the user's answers in such forms."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.schema.session import Answers, Question

FormValue = str | bool | int | float | list[str]


def form_of(questions: Sequence[Question]) -> dict[str, Any]:
    """Return the JSON Schema of a form with a field for each question.

    If a question allows a free answer, a second field accepts it.
    """
    fields: dict[str, Any] = {}
    required = []
    for number, question in enumerate(questions):
        fields[_name(number)] = _field(question)
        if question.options and question.custom:
            fields[_other(number)] = {"type": "string", "title": "Another answer"}
        else:
            required.append(_name(number))
    return {"type": "object", "properties": fields, "required": required}


def answers_of(questions: Sequence[Question], content: Mapping[str, FormValue]) -> Answers:
    """Return the answers from a completed form; a free answer replaces a choice."""
    found = []
    for number, question in enumerate(questions):
        chosen = content.get(_name(number))
        labels = [chosen] if isinstance(chosen, str) and chosen else []
        if isinstance(chosen, list):
            labels = chosen
        other = content.get(_other(number))
        if isinstance(other, str) and other.strip():
            labels = [*labels, other] if question.multiple else [other]
        found.append(tuple(labels))
    return tuple(found)


def text_of(questions: Sequence[Question]) -> str:
    """Return the questions as Markdown, for a client without forms."""
    lines = []
    for question in questions:
        lines.append(question.question)
        for option in question.options:
            meaning = f": {option.description}" if option.description else ""
            lines.append(f"- {option.label}{meaning}")
    return "\n".join([*lines, "", "Answer with your next prompt."])


def _field(question: Question) -> dict[str, Any]:
    about = {"title": question.header or question.question, "description": question.question}
    choices = [
        {"const": option.label, "title": option.label}
        | ({"description": option.description} if option.description else {})
        for option in question.options
    ]
    if not choices:
        return {"type": "string", **about}
    if question.multiple:
        return {"type": "array", "items": {"anyOf": choices}, **about}
    return {"type": "string", "oneOf": choices, **about}


def _name(number: int) -> str:
    return f"answer{number + 1}"


def _other(number: int) -> str:
    return f"other{number + 1}"
