"""Elicitation: questions from a server to the user during a call.

The first start of a server imports this module, because it imports the MCP SDK.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import mcp_types as types
from mcp.client import ClientRequestContext

from pegboard import ToolError
from pegboard.errors import QuestionRejectedError
from pegboard.schema.session import Answers, Question, QuestionOption
from pegboard_mcp.listing import clean_text

QUESTIONS_PER_ROUND = 8
FIELDS = 16
ATTEMPTS = 3
"""The most questions for a field whose answers do not fit it."""
OPENED = "I have opened it"
DECLINED = "Decline"
MESSAGE_BYTES = 2 << 10
AskUser = Callable[[Sequence[Question]], Awaitable[Answers]]
Value = str | int | float | bool | list[str] | None
_T = TypeVar("_T")


class FieldError(ValueError):
    """An answer is not valid for a form field; the error's message says which answers are valid."""


class Inbox:
    """A queue of questions from a server with an older protocol version, answered during calls.

    The SDK delivers the questions in its own task, but the call that waits for its result asks the
    user. Its time limit can therefore pause until the user has answered.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._asked = deque[tuple[types.ElicitRequestParams, asyncio.Future[types.ElicitResult]]]()
        self._calls = set[asyncio.Event]()
        """One for each call under way, set when a question or the answer to the call arrives."""

    async def put(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Queue a question of the server; decline the question at once if no call is running."""
        del context
        if not self._calls or len(self._asked) >= QUESTIONS_PER_ROUND:
            return types.ElicitResult(action="decline")
        answer: asyncio.Future[types.ElicitResult] = asyncio.get_running_loop().create_future()
        self._asked.append((params, answer))
        for news in self._calls:
            news.set()
        return await answer

    async def attend(self, request: Awaitable[_T], ask_user: AskUser | None) -> _T:
        """Await a request to a server, and answer the server's questions meanwhile."""
        if ask_user is None:
            return await request
        task, news = asyncio.ensure_future(request), asyncio.Event()
        task.add_done_callback(lambda _: news.set())
        self._calls.add(news)
        try:
            while not task.done():
                news.clear()
                if self._asked:
                    await self._answer_next(ask_user)
                else:
                    await news.wait()
            return await task
        finally:
            self._calls.remove(news)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            while not self._calls and self._asked:
                await self._answer_next(None)

    async def _answer_next(self, ask_user: AskUser | None) -> None:
        """Pass the oldest question to the user; if the call is cancelled, cancel the question."""
        params, answer = self._asked.popleft()
        result = types.ElicitResult(action="cancel")
        try:
            result = await answer_elicitation(self._server, params, ask_user)
        finally:
            if not answer.done():
                answer.set_result(result)


async def answer_elicitation(
    server: str, params: types.ElicitRequestParams, ask_user: AskUser | None
) -> types.ElicitResult:
    """Ask the user a server's question; decline without a user, or if the user declines."""
    if ask_user is None:
        return types.ElicitResult(action="decline")
    try:
        if isinstance(params, types.ElicitRequestURLParams):
            return await _opened(server, params, ask_user)
        content = await _filled(server, params, ask_user)
    except QuestionRejectedError:
        return types.ElicitResult(action="decline")
    except ToolError:
        return types.ElicitResult(action="cancel")  # no user is there
    if content is None:
        return types.ElicitResult(action="decline")
    return types.ElicitResult(action="accept", content=content)


async def _opened(
    server: str, params: types.ElicitRequestURLParams, ask_user: AskUser
) -> types.ElicitResult:
    """Ask the user to open an address that the server sent."""
    message = clean_text(params.message, MESSAGE_BYTES)[0]
    question = Question(
        question=f"The MCP server {server} asks you to open {_clean(params.url)}\n{message}",
        header=server[:30],
        options=(QuestionOption(OPENED), QuestionOption(DECLINED)),
        custom=False,
    )
    answers = await ask_user((question,))
    opened = bool(answers) and OPENED in answers[0]
    return types.ElicitResult(action="accept" if opened else "decline")


async def _filled(
    server: str, params: types.ElicitRequestFormParams, ask_user: AskUser
) -> dict[str, Value] | None:
    """Ask the user to fill in a form; None if a field is unsupported or values stay invalid."""
    schema = params.requested_schema
    properties = schema.get("properties")
    fields = dict(properties) if isinstance(properties, Mapping) else {}
    if len(fields) > FIELDS or not all(isinstance(each, Mapping) for each in fields.values()):
        return None
    message = clean_text(params.message, MESSAGE_BYTES)[0]
    if not fields:
        return {} if await _confirmed(server, message, ask_user) else None
    required = {each for each in schema.get("required") or () if isinstance(each, str)}
    content: dict[str, Value] = {}
    open_fields = dict.fromkeys(fields, "")
    for _ in range(ATTEMPTS):
        questions = [
            _question(server, message, name, fields[name], flaw)
            for name, flaw in open_fields.items()
        ]
        answers = await ask_user(questions)
        wrong = {}
        for (name, _flaw), answer in zip(open_fields.items(), answers, strict=False):
            try:
                value = _value(fields[name], [*answer])
            except FieldError as error:
                wrong[name] = str(error)
                continue
            if value is not None:
                content[name] = value
            elif name in required:
                wrong[name] = "it is required"
        if not wrong:
            return content
        open_fields = wrong
    return None


async def _confirmed(server: str, message: str, ask_user: AskUser) -> bool:
    question = Question(
        question=f"The MCP server {server} asks: {message}",
        header=server[:30],
        options=(QuestionOption("Yes"), QuestionOption("No")),
        custom=False,
    )
    answers = await ask_user((question,))
    return bool(answers) and "Yes" in answers[0]


def _question(
    server: str, message: str, name: str, field: Mapping[str, Any], flaw: str
) -> Question:
    described = _clean(field.get("description") or field.get("title") or name)
    default = field.get("default")
    lines = (
        f"The MCP server {server} asks: {message}",
        described,
        f"Without an answer: {_label(default)}" if default is not None else "",
        f"That answer cannot be used: {flaw}" if flaw else "",
    )
    options, is_multiple = _options(field)
    return Question(
        question="\n".join(line for line in lines if line),
        header=_clean(field.get("title") or name)[:30],
        options=tuple(QuestionOption(each) for each in options),
        multiple=is_multiple,
        custom=not options,
    )


def _options(field: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """Return the labels to choose from, and whether the user may choose several."""
    if field.get("type") == "boolean":
        return ("yes", "no"), False
    if field.get("type") == "array":
        items = field.get("items")
        return tuple(_choices(items if isinstance(items, Mapping) else {})), True
    return tuple(_choices(field)), False


def _choices(field: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of an enumeration field by label."""
    for key in ("oneOf", "anyOf"):
        if isinstance(titled := field.get(key), list):
            return {_clean(each.get("title") or each["const"]): each["const"] for each in titled}
    values = field.get("enum")
    if not isinstance(values, list):
        return {}
    names = field.get("enumNames")
    titles = names if isinstance(names, list) and len(names) == len(values) else values
    return {_clean(title): value for title, value in zip(titles, values, strict=True)}


def _value(field: Mapping[str, Any], answer: list[str]) -> Value:
    """Convert an answer to the type of a form field; None if there is no answer.

    :raises FieldError: when the answer does not fit the field.
    """
    chosen = [each for each in answer if each.strip()]
    if not chosen:
        default = field.get("default")
        return default if isinstance(default, str | int | float | bool | list) else None
    kind = field.get("type")
    if kind == "array":
        choices = _choices(field.get("items") or {})
        return [choices.get(each, each) for each in chosen]
    text = chosen[0]
    if choices := _choices(field):
        if text not in choices:
            raise FieldError(f"it must be one of {', '.join(choices)}")
        return choices[text]
    match kind:
        case "boolean":
            return text.strip().lower() in ("yes", "y", "true", "1")
        case "integer" | "number":
            return _number(text, kind)
        case _:
            return text


def _number(text: str, kind: str) -> int | float:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        article = "a whole number" if kind == "integer" else "a number"
        raise FieldError(f"it must be {article}") from None


def _label(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else _clean(value)


def _clean(value: object) -> str:
    return clean_text(str(value), MESSAGE_BYTES)[0]
