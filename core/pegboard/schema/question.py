"""Questions of the model to the user, and their answers."""

from pegboard.schema.permission import ToolReference
from pegboard.schema.wire import Rest, Wire

Answers = tuple[tuple[str, ...], ...]
"""For each question the labels that were chosen, or what the user wrote instead."""


class QuestionOption(Rest, frozen=True):
    """One way to answer: a label of a few words, and what it means."""

    label: str
    description: str = ""


class Question(Rest, frozen=True):
    """What is asked; `header` names it in a word or two, `multiple` takes several labels.

    `custom` says that the user may write an answer of their own.
    """

    question: str
    header: str = ""
    options: tuple[QuestionOption, ...] = ()
    multiple: bool = False
    custom: bool = True


class QuestionRequest(Wire, frozen=True):
    """Questions that wait for the user, with the tool call that they come from."""

    id: str
    session_id: str
    questions: tuple[Question, ...]
    tool: ToolReference | None = None
