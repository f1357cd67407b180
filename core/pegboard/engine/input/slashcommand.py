"""Slash commands: a template with its arguments becomes a prompt.

The shell snippets of a template run first, as calls of the tool that serves the shell. Their
output and the user's arguments are inserted afterwards, so that neither can become a command or a
placeholder.
"""

import json
import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec

from pegboard.contract.context import ChildResult, SessionView
from pegboard.contract.tools import serving
from pegboard.engine.engine import ChildRequest, Engine
from pegboard.engine.history import History
from pegboard.engine.input.mentions import mentioned
from pegboard.engine.input.usermessage import CommandOrder, Prompt, model_for
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.engine.sessions import SessionIds, ancestor_rulesets
from pegboard.engine.toolcall import Caller
from pegboard.engine.writer import Writer
from pegboard.errors import (
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    PermissionRejectedError,
    ToolError,
)
from pegboard.kit.suggestions import nearest_names
from pegboard.policy.agents import default_agent, find_agent
from pegboard.providers.provider import ToolCall
from pegboard.schema.config import Agent, Command
from pegboard.schema.part import (
    Completed,
    Failed,
    ModelChoice,
    Part,
    PartInput,
    SubtaskInput,
    TextInput,
)
from pegboard.schema.session import Session

_SNIPPET = re.compile(r"!`([^`\n]+)`")
_PLACEHOLDER = re.compile(r"\$(?:(?P<all>ARGUMENTS)\b|(?P<number>[1-9]\d*))")
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


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A template with everything put in; `typed` is what mentions are looked for in."""

    text: str
    typed: str


def tokens(arguments: str) -> tuple[str, ...]:
    """The words of a command's arguments.

    Quotes keep blanks together as in a shell, and a backslash keeps a double quote; an
    apostrophe inside a word, or a quote without an end, is a character like any other.
    """
    return tuple(_unquoted(match) for match in _TOKEN.finditer(arguments))


def _unquoted(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"]
    return _QUOTED.sub(lambda quoted: re.sub(r'\\(["\\])', r"\1", quoted[1]), match[0])


def snippets(template: str) -> tuple[str, ...]:
    """The shell commands of a template, each once."""
    return tuple(dict.fromkeys(_SNIPPET.findall(template)))


def fill(template: str, arguments: str, outputs: Mapping[str, str]) -> Filled:
    """The template with `$1`, `$2` ..., `$ARGUMENTS` and the outputs of its snippets.

    The highest placeholder takes all words that are left. Arguments for which there is no
    placeholder go to the end. A snippet without an output stays as it stands.
    """
    pieces = _SNIPPET.split(template)
    own = "".join(pieces[::2])
    put_in = _filler(arguments, own)
    texts, typed = [], []
    for place, piece in enumerate(pieces):
        if place % 2:
            texts.append(outputs.get(piece, f"!`{piece}`"))
        else:
            typed.append(put_in(piece))
            texts.append(typed[-1])
    if not _PLACEHOLDER.search(own) and arguments.strip():
        typed.append(f"\n\n{arguments.strip()}")
        texts.append(typed[-1])
    return Filled(text="".join(texts).strip(), typed="\n".join(typed))


def _filler(arguments: str, template: str) -> Callable[[str], str]:
    words = tokens(arguments)
    numbers = [int(found) for found in re.findall(r"\$([1-9]\d*)", template)]
    highest = max(numbers, default=0)

    def value(match: re.Match[str]) -> str:
        if match["all"]:
            return arguments
        number = int(match["number"])
        last = len(words) if number == highest else number
        return " ".join(words[number - 1 : last])

    return lambda text: _PLACEHOLDER.sub(value, text)


def find_command(commands: Mapping[str, Command], name: str) -> Command:
    """The slash command of this name.

    :raises NotFoundError: when there is none, with the nearest names.
    """
    if name not in commands:
        raise NotFoundError("command", name, suggestions=nearest_names(name, commands))
    return commands[name]


async def prepared(
    engine: Engine, session: Session, command: Command, order: CommandOrder, ids: SessionIds
) -> Prompt:
    """The prompt that a slash command becomes; its snippets have run, nothing is stored.

    :raises NotFoundError: for an unknown agent.
    :raises ModelNotFoundError: when no provider serves the model.
    :raises PermissionDeniedError: when a snippet may not run.
    """
    own = order.agent or session.agent or default_agent(engine.config, engine.agents).name
    agent = find_agent(engine.agents, command.agent or own)
    is_subtask = command.subtask or (agent.mode == "subagent" and command.subtask is not False)
    speaker = find_agent(engine.agents, own) if is_subtask else agent
    choice = _model(engine, session, command, order, agent)
    model = await engine.models.find(f"{choice.provider_id}/{choice.model_id}")
    outputs: Mapping[str, str] = {}
    if not command.is_document and snippets(command.template):
        async with _aside(engine, session, ids) as run:
            view = run.view(speaker, model)
            outputs = {
                snippet: await _output(run, view, command, snippet, order.arguments)
                for snippet in snippets(command.template)  # one after the other
            }
    filled = fill(command.template, order.arguments, outputs)
    if command.is_document:
        searched = order.arguments if order.typed else ""
    else:
        searched = filled.typed if order.typed else command.template
    parts: tuple[PartInput, ...]
    if is_subtask:
        parts = (_subtask(command, agent, filled.text, choice),)
        chosen = order.model
    else:
        found = await mentioned(engine, session, searched, agent=agent.name)
        parts = (TextInput(text=filled.text), *found, *order.files)
        chosen = f"{choice.provider_id}/{choice.model_id}"
    return Prompt(
        parts=parts,
        agent=speaker.name,
        model=chosen,
        message_id=order.message_id,
        variant=order.variant,
        command=command,
        typed=f"/{command.name} {order.arguments}".strip(),
    )


def _model(
    engine: Engine, session: Session, command: Command, order: CommandOrder, agent: Agent
) -> ModelChoice:
    """The command's model, that of the command's agent, the user's, the session's."""
    of_agent = agent.model if command.agent is not None else None
    if command.model is None and of_agent is not None:
        return of_agent
    return model_for(engine, session, command.model or order.model, agent.name)


def _subtask(command: Command, agent: Agent, text: str, model: ModelChoice) -> SubtaskInput:
    return SubtaskInput(
        prompt=text,
        description=command.description or command.name,
        agent=agent.name,
        model=model,
        command=command.name,
    )


@asynccontextmanager
async def _aside(engine: Engine, session: Session, ids: SessionIds) -> AsyncIterator[Run]:
    """A run for calls outside of an answer, beside the session's own run."""
    depth, parents = await ancestor_rulesets(engine, session)
    async with Writer(engine.storage, engine.bus.publish_all, fence=None) as writer:
        run = Run(
            engine=engine,
            session=session,
            history=History(()),
            ids=ids,
            writer=writer,
            depth=depth,
            parent_rulesets=parents,
            run_child=_no_subagents,
        )
        try:
            yield run
        finally:
            await run.snapshots.close()


async def _no_subagents(request: ChildRequest) -> ChildResult:
    raise ToolError(
        f"{request.agent.name} cannot work here: a subagent needs an answer to work for"
    )


def _output_of(output: str, metadata: Mapping[str, object]) -> str:
    """What a snippet that went well wrote, which stands inside of a sentence.

    Of one that failed, or wrote more than its metadata keep, all that the tool says of it.
    """
    wrote = str(metadata.get("output", "")).strip("\n")
    went_well = metadata.get("exit") == 0
    return wrote if went_well and (not wrote or output.startswith(f"{wrote}\n\n[")) else output


async def _output(
    run: Run, view: SessionView, command: Command, snippet: str, arguments: str
) -> str:
    message = run.new_answer(run.ids.message(), view.agent.name, view.model)
    processor = Processor(message, sink=_Unstored(), new_id=run.ids.part, now=run.engine.now)
    shell = serving(run.engine.tools.values(), "shell")
    if shell is None:
        raise InvalidInputError(f"/{command.name} was not sent: no tool here runs shell commands")
    caller = Caller(run, view, processor, offered=frozenset({shell.id}))
    given = {
        "command": _with_arguments(snippet, arguments),
        "description": f"/{command.name}",
    }
    call_id = run.engine.ids.new("tool")
    await caller(ToolCall(call_id, shell.id, json.dumps(given)))
    [part] = processor.calls()
    match part.state:
        case Completed(output=output, metadata=metadata):
            return _output_of(output, metadata)
        case Failed(error=error, metadata=metadata):
            text = f"/{command.name} was not sent: `{snippet}` did not run: {error}"
            if not (metadata or {}).get("denied"):
                raise InvalidInputError(text)
            raise (PermissionRejectedError if run.blocked else PermissionDeniedError)(text)
        case _:
            raise AssertionError("a call has ended when its caller returns")


def _with_arguments(snippet: str, arguments: str) -> str:
    """The snippet, in front of it the arguments as the shell's own parameters if it uses them.

    Values of parameters are never read as commands, whatever the user has typed.
    """
    lines = []
    if _PARAMETER.search(snippet):
        lines.append(f"set -- {shlex.join(tokens(arguments))}")
    if re.search(r"\$\{?ARGUMENTS\b", snippet):
        lines.append(f"ARGUMENTS={shlex.quote(arguments)}")
    return "\n".join([*lines, snippet])


class _Unstored:
    """A sink that drops the parts of a call outside of an answer."""

    def put(self, part: Part) -> None:
        pass

    def delta(self, part: Part, text: str) -> None:
        pass

    def touch(self) -> None:
        pass
