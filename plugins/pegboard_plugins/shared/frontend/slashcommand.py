"""Slash commands: the conversion of a template and its arguments into a prompt.

The template's shell snippets run first, as calls of the shell tool. Their output and the user's
arguments are inserted afterwards, so that neither can become a command or a placeholder.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from pegboard import App, InvalidInputError, PermissionDeniedError, ToolError
from pegboard.errors import NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import CommandExecuted
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.part import FileInput, ModelChoice, PartInput, SubtaskInput, TextInput
from pegboard.schema.session import Session
from pegboard.storage import PublishEvent
from pegboard.unstable import serving
from pegboard_plugins.shared.frontend import material, mentioned
from pegboard_plugins.shared.frontend.claudetemplate import template_of

_SNIPPET = re.compile(r"!`([^`\n]+)`")
_PLACEHOLDER = re.compile(
    r"""\$(?:
        ARGUMENTS\[(?P<word>\d+)\|(?P<default>.*?)\|\]  # one word, counted from 0
        |ARGUMENTS\[\+\|(?P<given>.*?)\|\]              # a text for arguments, if there are some
        |(?P<all>ARGUMENTS)\b
        |(?P<number>[1-9]\d*)
    )""",
    re.VERBOSE,
)
_SESSION = "${CLAUDE_SESSION_ID}"
_PARAMETER = re.compile(r"\$\{?[1-9@*#]")
_TOKEN = re.compile(
    r"""\[Image\ \d+\]                  # a client's stand-in for a picture
    |'(?P<single>[^']*)'(?!\S)          # quoted as a whole
    |(?:[^\s"]|"(?:\\.|[^"\\])*")+      # a word, of which pieces may stand in double quotes
    |\S+                                # a quote that nobody closed
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"')


_Known = TypeVar("_Known")


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """An expanded template; `typed` is the part of `text` in which each `@name` is resolved."""

    text: str
    typed: str


def tokens(arguments: str) -> tuple[str, ...]:
    """Split a command's arguments into words.

    Quotes group words as in a shell, and a backslash escapes a double quote. An apostrophe inside a
    word, or a quote without an end, is an ordinary character.
    """
    return tuple(_unquoted(match) for match in _TOKEN.finditer(arguments))


def _unquoted(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"]
    return _QUOTED.sub(lambda quoted: re.sub(r'\\(["\\])', r"\1", quoted[1]), match[0])


def snippets(template: str) -> tuple[str, ...]:
    """Return the distinct shell commands in a template."""
    return tuple(dict.fromkeys(_SNIPPET.findall(template)))


def fill(template: str, arguments: str, outputs: Mapping[str, str], *, label: str = "") -> Filled:
    """Replace the placeholders and the shell snippets of a template.

    `$1`, `$2` ... are words of the arguments; the highest one takes all remaining words.
    `$ARGUMENTS` is all arguments, `$ARGUMENTS[1|TEXT|]` is the second word, or else TEXT, and
    `$ARGUMENTS[+|TEXT|]` is TEXT if there are arguments. If the template has no placeholder, the
    arguments are appended after `label`. `outputs` maps snippets to their outputs; a snippet
    without an output stays as written.
    """
    pieces = _SNIPPET.split(template)
    own = "".join(pieces[::2])
    put_in = _filler(arguments, own)
    texts, typed = [], []
    for place, piece in enumerate(pieces):
        if place % 2:
            output = outputs.get(piece)
            texts.append(f"!`{piece}`" if output is None else material(output, piece))
        else:
            typed.append(put_in(piece))
            texts.append(typed[-1])
    if not _PLACEHOLDER.search(own) and arguments.strip():
        typed.append(f"\n\n{label}{arguments.strip()}")
        texts.append(typed[-1])
    return Filled(text="".join(texts).strip(), typed="\n".join(typed))


def _filler(arguments: str, template: str) -> Callable[[str], str]:
    words = tokens(arguments)
    numbers = (match["number"] for match in _PLACEHOLDER.finditer(template))
    highest = max((int(number) for number in numbers if number), default=0)

    def value(match: re.Match[str]) -> str:
        if match["all"]:
            return arguments
        if match["word"]:
            return next(iter(words[int(match["word"]) :]), match["default"])
        if match["number"] is None:
            given = match["given"] if arguments.strip() else ""
            return given.replace("$ARGUMENTS", arguments.strip())
        number = int(match["number"])
        last = len(words) if number == highest else number
        return " ".join(words[number - 1 : last])

    return lambda text: _PLACEHOLDER.sub(value, text)


class CommandOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A user's call of a slash command, with the files that a client attaches.

    `typed` means that a user wrote the arguments, so each `@name` in them is resolved.
    """

    name: str
    arguments: str = ""
    typed: bool = True
    agent: str | None = None
    model: str | None = None
    message_id: str | None = None
    variant: str | None = None
    files: tuple[FileInput, ...] = ()


async def run_command(app: App, session_id: str, order: CommandOrder) -> Turn:
    """Run a command's snippets, send the prompt, and return the answer.

    :raises NotFoundError: for an unknown session, agent or command, with the nearest names.
    :raises ModelNotFoundError: when no provider serves the model.
    :raises PermissionDeniedError: when a snippet may not run. Other errors are those of
        `App.prompt`.
    """
    await app.reload_project_code()
    command = _find("command", order.name, app.commands)
    command = replace(command, template=command.template.replace(_SESSION, session_id))
    template = _template(command)
    session = await app.session(session_id)
    own = order.agent or session.agent or app.default_agent().name
    agent = _find("agent", command.agent or own, app.agents)
    is_subtask = command.subtask or (agent.mode == "subagent" and command.subtask is not False)
    speaker = _find("agent", own, app.agents) if is_subtask else agent
    model = await app.resolve_model(_model(app, session, command, order, agent))
    name = f"{model.provider_id}/{model.id}"
    calling = replace(order, agent=speaker.name, model=name)
    outputs = {
        snippet: await _output(app, session_id, calling, snippet)
        for snippet in (() if command.is_document else snippets(template))
    }
    label = "ARGUMENTS: " if command.source == "skill" else ""  # as Claude Code does
    filled = fill(template, order.arguments, outputs, label=label)
    if command.is_document:
        searched = order.arguments if order.typed else ""
    else:
        searched = filled.typed if order.typed else command.template
    parts: tuple[PartInput, ...]
    if is_subtask:
        choice = ModelChoice(provider_id=model.provider_id, model_id=model.id)
        parts = (_subtask(command, agent, filled.text, choice),)
    else:
        found = await mentioned(app, session_id, searched, agent=agent.name)
        parts = (TextInput(text=filled.text), *found, *order.files)
    prompt = Prompt(
        parts=parts,
        agent=speaker.name,
        model=order.model if is_subtask else name,
        message_id=order.message_id,
        variant=order.variant,
        command=command,
        typed=f"/{command.name} {order.arguments}".strip(),
    )
    turn = await app.prompt(session_id, prompt)
    done = CommandExecuted(
        name=command.name,
        session_id=session_id,
        arguments=order.arguments,
        message_id=turn.info.id,
    )
    await app.storage.commit(PublishEvent(done))
    return turn


async def require_answerer(
    app: App, session_id: str, *, agent: str | None, model: str | None
) -> None:
    """Check that the agent and the model exist, before the session stores the prompt.

    :raises NotFoundError: for an unknown session or agent, with the nearest names.
    :raises ModelNotFoundError: when no provider serves the model, or none is chosen.
    """
    await app.reload_project_code()
    session = await app.session(session_id)
    name = agent or session.agent or app.default_agent().name
    await app.resolve_model(_answering(app, session, model, _find("agent", name, app.agents)))


def _template(command: Command) -> str:
    """Return the command's template with Pegboard's placeholders."""
    if command.argument_names is None:
        return command.template
    appends = not command.is_document  # `fill` appends the arguments of a document
    return template_of(command.template, command.argument_names, appends=appends)


def _find(kind: str, name: str, known: Mapping[str, _Known]) -> _Known:
    if name not in known:
        raise NotFoundError(kind, name, suggestions=nearest_names(name, known))
    return known[name]


def _model(app: App, session: Session, command: Command, order: CommandOrder, agent: Agent) -> str:
    """Return the first model that is set: of the command, its agent, the user, or the session.

    The answering agent's model comes before that of the session.
    """
    of_command = _name(agent.model) if command.agent else None
    return _answering(app, session, command.model or of_command or order.model, agent)


def _answering(app: App, session: Session, chosen: str | None, agent: Agent) -> str:
    """Return `chosen`, or else the model of the agent, the session or the configuration, or ""."""
    last = session.model
    of_session = f"{last.provider_id}/{last.id}" if last else None
    return chosen or _name(agent.model) or of_session or app.config.model or ""


def _name(choice: ModelChoice | None) -> str | None:
    return f"{choice.provider_id}/{choice.model_id}" if choice else None


def _subtask(command: Command, agent: Agent, text: str, model: ModelChoice) -> SubtaskInput:
    return SubtaskInput(
        prompt=text,
        description=command.description or command.name,
        agent=agent.name,
        model=model,
        command=command.name,
    )


async def _output(app: App, session_id: str, order: CommandOrder, snippet: str) -> str:
    """Run a snippet as a call of the shell tool, and return its output."""
    shell = serving(app.tools.values(), "shell")
    if shell is None:
        raise InvalidInputError(f"/{order.name} was not sent: no tool here runs shell commands")
    given = {
        "command": _with_arguments(snippet, order.arguments),
        "description": f"/{order.name}",
    }
    text = f"/{order.name} was not sent: `{snippet}` did not run"
    try:
        done = await app.call_tool(
            session_id, shell.id, given, agent=order.agent, model=order.model
        )
    except PermissionDeniedError as error:
        raise type(error)(f"{text}: {error}") from error
    except ToolError as error:
        raise InvalidInputError(f"{text}: {error}") from error
    return _output_of(done.output, done.metadata)


def _output_of(output: str, metadata: Mapping[str, object]) -> str:
    """Return the output of a successful snippet, for use inside a sentence.

    For a failed snippet, or one with output that was cut, return the tool's whole result.
    """
    wrote = str(metadata.get("output", "")).strip("\n")
    went_well = metadata.get("exit") == 0
    return wrote if went_well and (not wrote or output.startswith(f"{wrote}\n\n[")) else output


def _with_arguments(snippet: str, arguments: str) -> str:
    """Return the snippet, preceded by shell variables with the arguments if the snippet uses them.

    A shell never parses the values of variables as commands.
    """
    lines = []
    if _PARAMETER.search(snippet):
        lines.append(f"set -- {shlex.join(tokens(arguments))}")
    if re.search(r"\$\{?ARGUMENTS\b", snippet):
        lines.append(f"ARGUMENTS={shlex.quote(arguments)}")
    return "\n".join([*lines, snippet])
