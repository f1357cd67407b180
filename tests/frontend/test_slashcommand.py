"""Slash commands: what a template becomes, and what it may not do."""

import asyncio
from pathlib import Path

import pytest

from pegboard import Tool, ToolContext, hookimpl, tool
from pegboard.errors import (
    AbortedError,
    InvalidInputError,
    ModelNotFoundError,
    NotFoundError,
    PermissionDeniedError,
)
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import CommandExecuted, PermissionAsked
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost
from pegboard.schema.part import (
    FileInput,
    FilePart,
    ModelChoice,
    Part,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import PermissionRequest, Rule, Verdict
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import task
from pegboard_plugins.shared.frontend import CommandOrder, material, run_command
from pegboard_plugins.shared.frontend.slashcommand import fill, snippets, tokens
from support.models.played import Played, PlayedPlugin, heard, opened, text
from support.tools.media_files import data_url, png

PICTURE = data_url("image/png", png())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("a b  c", ["a", "b", "c"]),
        ("don't stop", ["don't", "stop"]),
        ('"two words" x', ["two words", "x"]),
        ("'two words' x", ["two words", "x"]),
        (r'"say \"hi\"" x', ['say "hi"', "x"]),
        ('key="a b" x', ["key=a b", "x"]),
        ('an "open quote', ["an", '"open', "quote"]),
        ("[Image 1] what", ["[Image 1]", "what"]),
        ("$& $1 \\1", ["$&", "$1", "\\1"]),
        ("''", [""]),
        ("", []),
    ],
)
def test_arguments_are_split_as_a_shell_would(arguments: str, words: list[str]) -> None:
    assert list(tokens(arguments)) == words


@pytest.mark.parametrize(
    ("template", "arguments", "filled"),
    [
        ("fix $1 in $2", "bug main.py and more", "fix bug in main.py and more"),
        ("fix $1 in $2", "bug", "fix bug in"),
        ("all: $ARGUMENTS!", "a $& b", "all: a $& b!"),
        ("$1 $2", "$2 x", "$2 x"),
        ("plain", "with words", "plain\n\nwith words"),
        ("plain", "  ", "plain"),
        ("costs $0 and $x", "a", "costs $0 and $x\n\na"),
        ("$ARGUMENTSX $10", "a b", "$ARGUMENTSX"),
    ],
)
def test_placeholders_are_replaced_once(template: str, arguments: str, filled: str) -> None:
    assert fill(template, arguments, {}).text == filled


def test_neither_outputs_nor_arguments_are_read_as_a_template() -> None:
    outputs = {"git log": "$1 @secret !`rm`"}

    filled = fill("see !`git log` for $1", "!`id`", outputs)

    shown = '<material from="git log">$1 @secret !`rm`</material>'
    assert filled.text == f"see {shown} for !`id`"
    assert "@secret" not in filled.typed


def test_snippets_are_found_once_each() -> None:
    assert snippets("!`a b` and !`c` and !`a b` but not `d`") == ("a b", "c")


class Commands:
    """Registers slash commands, and the bash tool for their snippets."""

    def __init__(self, *commands: Command) -> None:
        self._commands = commands

    @hookimpl
    async def register_commands(self) -> list[Command]:
        return list(self._commands)

    @hookimpl
    async def register_tools(self) -> list[Tool]:
        return [bash_plugin.bash]


def command(template: str, **facts: object) -> Command:
    return Command(**{"name": "do", "template": template, "hints": (), **facts})


def said(turn: Turn) -> list[str]:
    return [part.text for part in turn.parts if isinstance(part, TextPart)]


async def test_a_command_is_a_prompt_with_agent_model_files_and_an_event(tmp_path: Path) -> None:
    agent = Agent(name="writer", mode="primary", permission=(Rule("*", "*", "allow"),), options={})
    provider = Played(text("done"))
    plugins = (
        Commands(command("Write about @notes.md: $ARGUMENTS", agent="writer")),
        PlayedPlugin(provider, agents=[agent]),
    )
    async with opened(tmp_path, provider, *plugins) as app:
        (app.workspace.directory / "notes.md").write_text("the notes")
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, CommandExecuted))
        )
        await asyncio.sleep(0)
        picture = FileInput(mime="image/png", url=PICTURE)
        answer = await run_command(
            app, session.id, CommandOrder(name="do", arguments="cats", files=(picture,))
        )
        [user, _] = await app.list_turns(session.id)
        *_, last = await listening
        title = (await app.session(session.id)).title

    assert said(answer) == ["done"]
    assert isinstance(user.info, UserMessage)
    assert user.info.agent == "writer"
    assert said(user)[0] == "Write about @notes.md: cats"
    assert "| the notes\n" in said(user)[-1]
    files = [part for part in user.parts if isinstance(part, FilePart)]
    assert [file.mime for file in files] == ["text/plain", "image/png"]
    assert last.properties == CommandExecuted(
        name="do", session_id=session.id, arguments="cats", message_id=answer.info.id
    )
    assert title == "/do cats"


async def test_snippets_run_in_the_project_before_arguments_are_put_in(tmp_path: Path) -> None:
    template = 'In !`pwd`: !`printf \'%s|\' "$1" "$2" "$ARGUMENTS"` and $1'
    async with opened(tmp_path, Played(text("x")), Commands(command(template))) as app:
        session = await app.create_session()
        evil = "'; touch evil; echo $(touch evil) `touch evil`"
        await run_command(app, session.id, CommandOrder(name="do", arguments=f'"{evil}" b'))
        [user, _] = await app.list_turns(session.id)
        files = list(app.workspace.directory.iterdir())

    place = tmp_path / "project"
    words = material(f'{evil}|b|"{evil}" b|', 'printf \'%s|\' "$1" "$2" "$ARGUMENTS"')
    assert said(user)[0] == f"In {material(str(place), 'pwd')}: {words} and {evil} b"
    assert files == []


async def test_what_a_session_has_cost_stays_when_a_command_takes_its_time(tmp_path: Path) -> None:
    price = ModelCost(input=1000, output=0, cache=CacheCost())
    model = Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"), cost=price)
    slow = command("Now !`touch begun; until test -e go; do sleep 0.02; done; echo done`")
    async with opened(tmp_path, Played(text("x"), model=model), Commands(slow)) as app:
        session = await app.create_session()
        ordered = asyncio.create_task(run_command(app, session.id, CommandOrder(name="do")))
        async with asyncio.timeout(30):
            while not (app.workspace.directory / "begun").exists():  # noqa: ASYNC110 - a file tells it
                await asyncio.sleep(0.02)
        turn = await app.prompt(session.id, "meanwhile")
        before = await app.session(session.id)
        (app.workspace.directory / "go").touch()
        await ordered
        after = await app.session(session.id)

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.cost
    assert (before.cost, after.cost) == (turn.info.cost, 2 * turn.info.cost)
    assert before.title == after.title == "meanwhile"


class DenyPush:
    """Denies `git push` and allows the rest."""

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        pushes = any("push" in pattern for pattern in request.patterns)
        return Verdict(action="deny" if pushes else "allow", reason="no pushing")


async def test_a_snippet_that_is_denied_keeps_the_command_from_being_sent(tmp_path: Path) -> None:
    provider = Played(text("x"))
    plugins = (Commands(command("Now !`git push`")), DenyPush())
    async with opened(tmp_path, provider, *plugins, allow=False) as app:
        session = await app.create_session()
        with pytest.raises(PermissionDeniedError, match=r"git push.*no pushing"):
            await run_command(app, session.id, CommandOrder(name="do"))
        assert await app.list_turns(session.id) == ()

    assert provider.requests == []


async def test_a_template_from_elsewhere_runs_nothing_and_attaches_nothing(tmp_path: Path) -> None:
    remote = command("!`touch evil` @notes.md $1", source="mcp")
    async with opened(tmp_path, Played(text("x")), Commands(remote)) as app:
        (app.workspace.directory / "notes.md").write_text("n")
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="do", arguments="a"))
        [user, _] = await app.list_turns(session.id)
        files = [path.name for path in app.workspace.directory.iterdir()]

    assert said(user) == ["!`touch evil` @notes.md a"]
    assert files == ["notes.md"]


@pytest.mark.parametrize("by", ["abort", "close"])
async def test_an_abort_and_the_end_of_the_app_end_a_snippet(tmp_path: Path, by: str) -> None:
    async with opened(
        tmp_path, Played(text("x")), Commands(command("!`touch on; sleep 60`"))
    ) as app:
        session = await app.create_session()
        running = asyncio.create_task(run_command(app, session.id, CommandOrder(name="do")))
        async with asyncio.timeout(30):
            while not (app.workspace.directory / "on").exists():  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.01)
        if by == "abort":
            assert await app.abort(session.id)
        else:
            await app.aclose()
        with pytest.raises(AbortedError):
            await asyncio.wait_for(running, 30)


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"agent": "nobody"}, NotFoundError),
        ({"model": "played/none"}, ModelNotFoundError),
        ({"template": "!`false`", "name": "do"}, None),
    ],
)
async def test_unknown_agents_and_models_are_errors(
    tmp_path: Path, facts: dict[str, str], error: type[Exception] | None
) -> None:
    made = command(**{"template": "x", **facts})
    async with opened(tmp_path, Played(text("x")), Commands(made)) as app:
        session = await app.create_session()
        if error is None:
            await run_command(app, session.id, CommandOrder(name="do"))
            [user, _] = await app.list_turns(session.id)
            assert "[exit code 1, " in said(user)[0]
            return
        with pytest.raises(error):
            await run_command(app, session.id, CommandOrder(name="do"))
        assert await app.list_turns(session.id) == ()


async def test_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x")), Commands(command("x", name="review"))) as app:
        session = await app.create_session()
        with pytest.raises(NotFoundError, match="review"):
            await run_command(app, session.id, CommandOrder(name="reveiw"))


async def test_snippets_need_a_tool_that_serves_the_shell(tmp_path: Path) -> None:
    class OnlyCommands:
        @hookimpl
        async def register_commands(self) -> list[Command]:
            return [command("!`pwd`")]

    async with opened(tmp_path, Played(text("x")), OnlyCommands()) as app:
        session = await app.create_session()
        with pytest.raises(InvalidInputError, match="no tool here runs shell commands"):
            await run_command(app, session.id, CommandOrder(name="do"))


@pytest.mark.fires("command_execute_before")
async def test_a_plugin_changes_the_parts_of_a_command(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    class Polite:
        @hookimpl
        async def command_execute_before(
            self, command: Command, parts: tuple[Part, ...]
        ) -> tuple[Part, ...]:
            first = parts[0]
            assert isinstance(first, TextPart)
            seen.append((command.name, first.text))
            return (type(first)(**{**_fields(first), "text": "please " + first.text}), *parts[1:])

        @hookimpl
        async def chat_message(self, message: Turn) -> None:
            seen.append(("chat_message", said(message)[0]))

    plugins = (Commands(command("go")), Polite())
    async with opened(tmp_path, Played(text("x")), *plugins) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="do"))
        [user, _] = await app.list_turns(session.id)

    assert seen == [("do", "go"), ("chat_message", "please go")]
    assert said(user) == ["please go"]


def _fields(part: TextPart) -> dict[str, object]:
    return {name: getattr(part, name) for name in part.__struct_fields__}


async def test_a_command_for_a_subagent_is_a_task_and_the_main_agent_goes_on(
    tmp_path: Path,
) -> None:
    provider = Played(text("found it"), text("It was found."))
    review = command("Look for $1", agent="helper", description="look")
    async with opened(tmp_path, provider, Commands(review), task) as app:
        session = await app.create_session()
        answer = await run_command(app, session.id, CommandOrder(name="do", arguments="bugs"))
        turns = await app.list_turns(session.id)
        [child] = await app.children(session.id)
        inner = await app.list_turns(child.id)

    assert said(answer) == ["It was found."]
    [part] = turns[0].parts
    assert isinstance(part, SubtaskPart)
    assert (part.prompt, part.agent, part.command) == ("Look for bugs", "helper", "do")
    assert part.model == ModelChoice(provider_id="played", model_id="m")
    [called] = [part for part in turns[1].parts if isinstance(part, ToolPart)]
    assert (called.tool, called.call_id) == ("task", part.id)
    assert called.state.output.startswith("found it")
    assert turns[1].info.finish == "tool-calls"
    assert said(inner[0]) == ["Look for bugs"]
    assert (child.agent, turns[0].info.agent) == ("helper", "build")
    assert len(provider.requests) == 2


async def test_a_command_can_be_a_task_of_a_primary_agent(tmp_path: Path) -> None:
    provider = Played(text("reviewed"), text("ok"))
    async with opened(tmp_path, provider, Commands(command("Review", subtask=True)), task) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="do"))
        [child] = await app.children(session.id)

    assert child.agent == "build"


async def test_a_queued_command_is_answered_by_the_same_run(tmp_path: Path) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    @tool
    async def wait(context: ToolContext) -> str:
        """Wait."""
        started.set()
        await go.wait()
        return "waited"

    from support.models.played import ToolsPlugin, call, calls

    provider = Played(calls(call("wait", "{}")), text("first"), text("second"))
    plugins = (Commands(command("and then")), ToolsPlugin(wait))
    async with opened(tmp_path, provider, *plugins) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, "hi"))
        await started.wait()
        queued = asyncio.create_task(run_command(app, session.id, CommandOrder(name="do")))
        while len(await app.list_turns(session.id)) < 3:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        go.set()
        answers = await asyncio.gather(prompt, queued)

    assert said(answers[0]) == said(answers[1])


async def test_a_person_is_asked_for_a_snippet(tmp_path: Path) -> None:
    class Ask:
        @hookimpl
        async def permission_ask(self) -> Verdict:
            return Verdict(action="ask")

    plugins = (Commands(command("!`echo hi`")), Ask())
    async with opened(tmp_path, Played(text("x")), *plugins, allow=False, interactive=True) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, PermissionAsked))
        )
        await asyncio.sleep(0)
        running = asyncio.create_task(run_command(app, session.id, CommandOrder(name="do")))
        *_, asked = await listening
        assert isinstance(asked.properties, PermissionAsked)
        assert asked.properties.request.patterns == ("echo hi",)
        await app.answer_permission(asked.properties.request.id, "once")
        await running
        [user, _] = await app.list_turns(session.id)

    assert said(user) == [material("hi", "echo hi")]
