"""`pegboard run`: one prompt without a chat."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

import click
import msgspec

import pegboard.unstable
from pegboard import InvalidInputError, PegboardError
from pegboard.app import UserFolders
from pegboard.cli import Exit, run_async
from pegboard.errors import ModelNotFoundError, NotFoundError, ServerError
from pegboard.plugins import nearest_names, shield
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.message import Prompt
from pegboard.schema.part import FileInput, PartInput
from pegboard.schema.session import Session
from pegboard.unstable import complain, exit_of, fault_of
from pegboard_plugins.cli.message import Message, MessageCommand, PromptRequest, read_stdin
from pegboard_plugins.cli.render import OutputScreen, open_screen
from pegboard_plugins.cli.runoptions import Options, config_of, read_options, run_options
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.turn import Ask, Refuser, take_turn
from pegboard_plugins.cli.views import RunResult, TextView, View
from pegboard_plugins.shared import terminal
from pegboard_plugins.shared.frontend import LocalFeed

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Facts, Feed

AUTO = "auto: everything that would be asked is allowed; denied calls stay denied\n"


@click.command(cls=MessageCommand)
@run_options
@click.argument("words", metavar="MESSAGE...", nargs=-1)
@click.pass_context
def run(ctx: click.Context, /, words: tuple[str, ...], **said: Any) -> int:  # noqa: ANN401 - click's own types
    """Send one prompt and show what the agent does.

    The words of MESSAGE are joined with spaces; piped input is appended, or replaces the word
    `-`. Everything after `--` is sent as text. The answer goes to standard output, everything
    else to standard error.
    """
    message = Message(
        words=words,
        literal=ctx.meta.get(MessageCommand.LITERAL, ()),
        stdin=read_stdin(sys.stdin.buffer, words, complain),
    )
    options = read_options(ctx, message, **said)
    if not sys.stdout.encoding.lower().startswith("utf"):  # most have all signs
        terminal.write_plain_signs(sys.stdout, sys.stderr)
    with answer_stream() as out:
        return run_async(_report(options, out))


@contextmanager
def answer_stream() -> Iterator[TextIO]:
    """Yield standard output for the answer, and redirect other output to standard error.

    Each line that a plugin prints gets the plugin's name.
    """
    sys.stdout.flush()
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with (
            os.fdopen(
                kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False
            ) as out,
            pegboard.unstable.named_output(),
        ):
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(kept, sys.stdout.fileno())
        os.close(kept)


async def _report(options: Options, out: TextIO) -> Exit:
    """Run the prompt, show the result even after an error, and return the exit code."""
    screen = open_screen(out, sys.stderr, os.environ)
    view = _view(options, screen, out)
    try:
        if options.output:
            from pegboard_plugins.cli.runsettings import empty_file  # few runs name one

            empty_file(options.output)
        result = await _prompted(options, view, screen)
    except PegboardError as error:
        result = RunResult(exit=exit_of(error.exit_code), error=str(error))
    except BaseException as error:
        code = Exit.FAILED if isinstance(error, Exception) else Exit.INTERRUPTED
        view.end(RunResult(exit=code, error=fault_of(error) or type(error).__name__))
        raise
    view.end(result)
    if options.output:
        from pegboard_plugins.cli.runsettings import write_answer  # see above

        write_answer(options.output, result)
    is_seen = screen.is_terminal and view.has_shown(result.error)
    if result.error and not is_seen:  # a program looks for it in one place
        complain(result.error)
    return result.exit


def _view(options: Options, screen: OutputScreen, out: TextIO) -> View:
    if options.style == "text" and options.schema is None:
        return TextView(screen, thinking=options.thinking)
    from pegboard_plugins.cli.records import JsonView, ResultView, ValueView

    if options.style == "result":
        return ResultView(out)
    return JsonView(out) if options.style == "json" else ValueView(out)


async def _prompted(options: Options, view: View, screen: OutputScreen) -> RunResult:
    """Run the prompt, and show failures of plugins that occur before or after it as well."""
    parts: tuple[PartInput, ...] = ()
    if not options.resumes:
        text = options.message.whole if options.command else options.message.text
        parts = (*map(FileInput.of, options.files), *Prompt(text).inputs)
    asks = options.style == "text" and screen.is_terminal and sys.stdin.isatty()
    asks = asks and not pegboard.unstable.within_tool()
    options = msgspec.structs.replace(options, asks=asks)
    told: list[PluginFailed] = []
    feed: Feed | None = None
    try:
        async with _placed(options, view) as placed, _opened(placed, asks=asks) as feed:
            if asks:
                from pegboard_plugins.cli.dialogs import Asker

                ask: Ask = Asker(feed, screen, sys.stdin).ask
            else:
                ask = _without_terminal(feed, placed, view)
            return await _turn(feed, placed, parts, view, ask, told)
    finally:
        for failure in feed.failures if feed is not None else ():
            if failure not in told:
                told.append(failure)
                view.show(Event(properties=failure))


def _without_terminal(feed: "Feed", options: Options, view: View) -> Ask:
    """Return a responder that denies requests, or first waits for another client's answer."""
    wait_s = options.wait_s if options.attach else 0
    return Refuser(feed, wait_s=wait_s, tell=view.warn).refuse


@asynccontextmanager
async def _placed(options: Options, view: View) -> AsyncIterator[Options]:
    """Yield the options with the working directory: with `--worktree`, a new worktree."""
    if not options.worktree:
        yield options
        return
    from pegboard_plugins.cli.worktree import Worktree

    made = await asyncio.to_thread(Worktree.make, options.directory)
    for line in await asyncio.to_thread(made.begin_lines):
        view.note(line)
    try:
        yield msgspec.structs.replace(options, directory=made.directory)
    finally:
        for line in await shield(asyncio.to_thread(made.end_lines)):
            view.note(line)


async def _turn(  # noqa: PLR0913, PLR0917 - what a prompt needs
    feed: "Feed",
    options: Options,
    parts: Sequence[PartInput],
    view: View,
    ask: Ask,
    told: list[PluginFailed],
) -> RunResult:
    told += feed.failures
    facts = feed.facts
    for warning in await _warnings(facts, options):
        view.warn(warning)
    request = await _request(feed, options, parts)
    if "@" in request.mentions and options.attach is None:
        from pegboard_plugins.shared.frontend import missing_files  # few prompts mention a file

        for warning in await asyncio.to_thread(missing_files, request.mentions, options.directory):
            view.warn(warning)
    found = None
    if options.session_id or options.continued or options.resumes:
        from pegboard_plugins.cli.oldsession import old_session  # most runs begin one

        found = await old_session(feed, options)
    if options.model is None and options.style == "text" and not options.resumes:
        from pegboard_plugins.cli.modelchoice import with_model  # most runs have a model

        prompt = await with_model(feed, request, found, view.note)
        request = msgspec.structs.replace(request, prompt=prompt)
    session = await _session(feed, options, request, found)
    if options.mode or options.asks:
        from pegboard_plugins.cli.permissionmode import take_mode  # scripts have no mode

        await take_mode(feed, session, chosen=options.mode)
    try:
        result = await _answered(feed, options, session, request, view, ask, told)
        if facts.server:  # of which calls tell how they were enclosed
            return result
        return msgspec.structs.replace(result, sandbox=facts.sandbox, hosts=facts.hosts)
    finally:
        if options.unsaved:
            await shield(feed.delete(session.id))


async def _answered(  # noqa: PLR0913, PLR0917 - what a prompt needs
    feed: "Feed",
    options: Options,
    session: Session,
    request: PromptRequest,
    view: View,
    ask: Ask,
    told: list[PluginFailed],
) -> RunResult:
    tally = Tally(session.id, told, is_saved=not options.unsaved)
    view.begin(tally, options.directory)
    try:
        result = await take_turn(feed, request, view, tally, ask)
        if request.resumes and not tally.is_answered:
            view.warn(f"no answer of session {session.id} was interrupted: there is nothing to do")
    except (ModelNotFoundError, NotFoundError, ServerError) as error:
        from pegboard_plugins.cli.unsent import kept_in  # few prompts fail

        kept = "" if options.unsaved else await kept_in(session.id, feed, options.attach, error)
        code = exit_of(error.exit_code)
        result = RunResult(exit=code, error=f"{error}{kept}", sandbox=tally.sandbox)
    return result


@asynccontextmanager
async def _opened(options: Options, *, asks: bool) -> AsyncIterator["Feed"]:
    """Open the project, on a server or in this process; `asks` means that a user can answer."""
    if options.attach is not None:
        try:
            from pegboard_plugins.shared.frontend import attach
        except ModuleNotFoundError as error:
            way = "install the client: pip install 'pegboard[client]'"
            raise InvalidInputError(f"--attach needs {error.name}; {way}") from error

        place = options.attach, options.directory, options.password
        async with aclosing(await attach(*place)) as remote:
            yield remote
        return
    from pegboard import App, AppOptions
    from pegboard.display import escape_controls
    from pegboard_plugins.shared.frontend import follow_folder

    with ExitStack() as leaving:
        settings = AppOptions(
            interactive=asks,
            trust=False if options.bare else options.trust or None,
            config=config_of(options, leaving),
            profile=options.profile,
            plugins=tuple(_plugins(options)),
            env=_environment(options, leaving),
        )
        async with App.open(options.directory, settings) as app:
            _check(app, options)
            if not options.unsaved and (note := await follow_folder(app)):
                sys.stderr.write(f"{escape_controls(note)}\n")
            if app.config.auto_approve:
                sys.stderr.write(AUTO)
            if app.enclosure is not None:
                sys.stderr.write(f"sandbox: {app.enclosure.described}\n")
            yield LocalFeed(app)


def _environment(options: Options, leaving: ExitStack) -> Mapping[str, str] | None:
    if not options.unsaved:
        return None
    from pegboard_plugins.cli.temporarydatabase import with_database  # most runs are saved

    return with_database(leaving)


def _plugins(options: Options) -> Iterator[object]:
    """Yield the plugins that only this run has."""
    if options.tools:
        from pegboard_plugins.cli.chosentools import ChosenTools

        yield ChosenTools(options.tools)
    if options.allow or options.deny:
        from pegboard_plugins.shared.frontend import RunRules

        yield RunRules(allow=options.allow, deny=options.deny)


def _check(app: "pegboard.App", options: Options) -> None:
    """Check that `--record` has its plugin, and that `--allow` and `--deny` name known tools."""
    on = {info.name for info in app.plugins.infos if not info.blocked}
    if options.tape and "cassette" not in on:
        raise InvalidInputError("--record and --replay need the plugin cassette, which is off")
    if options.allow or options.deny:
        from pegboard_plugins.shared.frontend import RunRules

        RunRules(allow=options.allow, deny=options.deny).check(app)


async def _warnings(facts: "Facts", options: Options) -> Sequence[str]:
    """Return the warnings to print: all with JSON output, or else only those that are new today.

    Warnings about untrusted code and not yet accepted instructions are printed at every run.
    """
    others = [each for each in facts.warnings if each not in facts.left_out]
    if options.style == "json" or not facts.warnings:
        return (*(facts.known or facts.left_out), *others)
    from pegboard_plugins.cli.warnings import LINES, shortened, unread  # as most have none

    always = (*facts.left_out, *facts.unseen)
    fresh = await asyncio.to_thread(
        unread,
        [text for text in others if text not in facts.unseen],
        project_id=str(options.directory.absolute()),
        state=UserFolders.of(os.environ).state,
        today=datetime.now(UTC).astimezone().date(),
    )
    return (*always, *shortened(fresh, lines=max(1, LINES - len(always))))


async def _request(feed: "Feed", options: Options, parts: Sequence[PartInput]) -> PromptRequest:
    """Convert the message into a prompt or a slash command.

    :raises NotFoundError: for an unknown command or tool.
    """
    if options.resumes:
        return PromptRequest(prompt=Prompt(), limit_s=options.limit_s, resumes=True)
    message = options.message
    known = [command.name for command in await feed.commands()]
    if options.command is not None:
        found: tuple[str, str] | None = (_known(options.command, known), message.whole)
    else:
        found = message.command(known, untrusted=bool(feed.facts.untrusted))
    command, arguments = found or (None, "")
    system = options.append_system
    if system is not None:
        from pegboard_plugins.cli.runsettings import system_text  # few runs add to it

        system = system_text(system)
    prompt = Prompt(
        arguments,
        parts=[part for part in parts if command is None or isinstance(part, FileInput)],
        agent=options.agent,
        model=options.model,
        variant=options.variant,
        tools=await _switches(feed, options, command),
        output=options.schema,
        system=system,
    )
    return PromptRequest(
        prompt=prompt,
        command=command,
        is_typed=message.is_typed,
        mentions=message.typed,
        limit_s=options.limit_s,
    )


def _known(name: str, commands: Sequence[str]) -> str:
    bare = name.removeprefix("/")
    if bare not in commands:
        if near := nearest_names(bare, commands):
            raise NotFoundError("command", bare, suggestions=near)
        names = ", ".join(sorted(commands))
        raise InvalidInputError(f"no command is called {bare}; the commands are {names}")
    return bare


async def _switches(feed: "Feed", options: Options, command: str | None) -> Mapping[str, bool]:
    if not options.tools:
        return {}
    from pegboard_plugins.cli.chosentools import switches

    if command is not None and options.attach is not None:
        text = "--tools: a server takes it with a message, not with a command; use only one of them"
        raise InvalidInputError(text)
    return switches(options.tools, await feed.tools())


async def _session(
    feed: "Feed", options: Options, request: PromptRequest, found: Session | None
) -> Session:
    """Return the session to use: `found`, its copy, or a new one; check the model variant first."""
    if options.variant is not None:
        from pegboard_plugins.cli.modelchoice import check_variant  # most runs name none

        await check_variant(feed, options.variant, request, found)
    if found is None:
        return await feed.create(title=options.title, agent=options.agent)
    return await feed.fork(found.id) if options.forked else found
