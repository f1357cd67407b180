"""`pegboard run`: one prompt, then the end."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO, get_args

import click
import msgspec

from pegboard import InvalidInputError, PegboardError
from pegboard.cli import Exit, complain, exit_of, fault_of, named_output
from pegboard.embedding import Places, run_async
from pegboard.errors import ModelNotFoundError, NotFoundError, ServerError, ServerUnreachableError
from pegboard.schema.config import SandboxLevel
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.prompt import PartInput
from pegboard.schema.session import Session
from pegboard_plugins.cli.backend import Backend, PromptRequest, SlashCommand
from pegboard_plugins.cli.dialogs import Asker, refuse
from pegboard_plugins.cli.local import LocalBackend
from pegboard_plugins.cli.message import Message, MessageCommand, parts_of, read_stdin
from pegboard_plugins.cli.screen import Screen, TerminalScreen, open_screen
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.turn import Ask, take_turn
from pegboard_plugins.cli.views import JsonView, Result, TextView, View

if TYPE_CHECKING:
    from pegboard import App


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said on the command line."""

    directory: Path
    message: Message
    model: str | None
    agent: str | None
    continued: bool
    session_id: str | None
    title: str | None
    style: Literal["text", "json"]
    files: Sequence[Path]
    trust: bool
    auto: bool
    limit_s: float | None
    budget_usd: float | None
    sandbox: str | None
    attach: str | None
    password: str | None
    tape: Mapping[str, str]


_FILE = click.Path(path_type=Path, dir_okay=False)
AUTO = "auto: what would be asked is allowed without asking; what is denied stays denied\n"
LEVELS = get_args(SandboxLevel)
LOCAL_ONLY = frozenset({"trust", "budget_usd", "sandbox", "auto", "record", "replay"})
"""What a server decides for itself."""


@click.command(cls=MessageCommand)
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="The model to ask.")
@click.option("--agent", metavar="NAME", help="The agent to ask; `build` if nothing else is set.")
@click.option("-c", "--continue", "continued", is_flag=True, help="Go on with the last session.")
@click.option("-s", "--session", "session_id", metavar="ID", help="Go on with this session.")
@click.option("--title", help="The title of a new session.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or one JSON record a line.",
)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Attach a file or a folder; may be given again.",
)
@click.option("--trust", is_flag=True, help="Run the code that this project brings, this time.")
@click.option("--auto", is_flag=True, help="Allow what would be asked; what is denied stays so.")
@click.option(
    "--time-limit",
    "limit_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop the turn after so long.",
)
@click.option(
    "--budget-usd",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="Stop before the turn, subagents included, costs more.",
)
@click.option(
    "--sandbox", type=click.Choice(LEVELS), help="How tightly to enclose what tools start."
)
@click.option(
    "--attach", metavar="URL", help="Send it to a server, as `pegboard serve` starts one."
)
@click.option("--password", metavar="TEXT", help="What opens the server, if not its own token.")
@click.option("--record", type=_FILE, metavar="FILE", help="Keep the answers of models in FILE.")
@click.option("--replay", type=_FILE, metavar="FILE", help="Ask no model: FILE has the answers.")
@click.argument("words", metavar="MESSAGE...", nargs=-1)
@click.pass_context
def run(  # noqa: PLR0913 - click gives every option by keyword
    ctx: click.Context,
    /,
    *,
    words: tuple[str, ...],
    model: str | None,
    agent: str | None,
    continued: bool,
    session_id: str | None,
    title: str | None,
    style: Literal["text", "json"],
    files: tuple[Path, ...],
    trust: bool,
    auto: bool,
    limit_s: float | None,
    budget_usd: float | None,
    sandbox: str | None,
    attach: str | None,
    password: str | None,
    **tape: Path | None,
) -> int:
    """Send one prompt and show what the agent does.

    The words of MESSAGE are joined with blanks; what is piped in stands behind them, or where
    the word `-` is, and all that follows `--` is text. The answer goes to standard output,
    everything else to standard error.
    """
    if continued and session_id:
        raise click.UsageError("--continue and --session exclude each other")
    _check_attached(ctx, attach, password)
    options = Options(
        directory=ctx.obj,
        message=Message(
            words=words,
            literal=ctx.meta.get(MessageCommand.LITERAL, ()),
            stdin=read_stdin(sys.stdin.buffer, words, complain),
        ),
        model=model,
        agent=agent,
        continued=continued,
        session_id=session_id,
        title=title,
        style=style,
        files=files,
        trust=trust,
        auto=auto,
        limit_s=limit_s,
        budget_usd=budget_usd,
        sandbox=sandbox,
        attach=attach,
        password=password,
        tape=_tape(**tape),
    )
    with answer_stream() as out:
        return run_async(_report(options, out))


def _tape(**files: Path | None) -> Mapping[str, str]:
    """The options of the plugin that records and replays, by the mode that has a file."""
    tapes = [{"file": str(file.absolute()), "mode": mode} for mode, file in files.items() if file]
    if len(tapes) > 1:
        raise click.UsageError("--record and --replay exclude each other")
    return tapes[0] if tapes else {}


def _check_attached(ctx: click.Context, attach: str | None, password: str | None) -> None:
    if attach is None:
        if password is not None:
            raise click.UsageError("--password is for a server: it needs --attach")
        return
    source = click.core.ParameterSource.DEFAULT
    for option in ctx.command.params:
        if option.name in LOCAL_ONLY and ctx.get_parameter_source(option.name) is not source:
            raise click.UsageError(f"{option.opts[0]} is the server's to decide, not --attach's")


@contextmanager
def answer_stream() -> Iterator[TextIO]:
    """Standard output, kept for the answer.

    What plugins print meanwhile goes to standard error, with their names.
    """
    sys.stdout.flush()
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with (
            os.fdopen(
                kept, "w", encoding=sys.stdout.encoding, errors="replace", closefd=False
            ) as out,
            named_output(),
        ):
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(kept, sys.stdout.fileno())
        os.close(kept)


async def _report(options: Options, out: TextIO) -> Exit:
    """Run the prompt and report its end, whatever it is."""
    screen = open_screen(out, sys.stderr, os.environ)
    view: View = JsonView(out) if options.style == "json" else TextView(screen)
    try:
        result = await _prompted(options, view, screen)
    except PegboardError as error:
        result = Result(exit=exit_of(error.exit_code), error=str(error))
    except BaseException as error:
        code = Exit.FAILED if isinstance(error, Exception) else Exit.INTERRUPTED
        view.end(Result(exit=code, error=fault_of(error) or type(error).__name__))
        raise
    view.end(result)
    if result.error:
        complain(result.error)
    return result.exit


async def _prompted(options: Options, view: View, screen: Screen) -> Result:
    """How the prompt ended; what plugins fail at before and after it is told as well."""
    parts = parts_of(options.message.text, options.files)
    asks = options.style == "text" and isinstance(screen, TerminalScreen) and sys.stdin.isatty()
    told: list[PluginFailed] = []
    backend: Backend | None = None
    try:
        async with _opened(options, asks=asks) as backend:
            ask = Asker(backend, screen, sys.stdin).ask if asks else partial(refuse, backend)
            return await _turn(backend, options, parts, view, ask, told)
    finally:
        for failure in backend.failures if backend is not None else ():
            if failure not in told:
                told.append(failure)
                view.show(Event(properties=failure))


async def _turn(  # noqa: PLR0913, PLR0917 - what a prompt needs
    backend: Backend,
    options: Options,
    parts: Sequence[PartInput],
    view: View,
    ask: Ask,
    told: list[PluginFailed],
) -> Result:
    told += backend.failures
    for warning in await _warnings(backend, options):
        view.warn(warning)
    session = await _session(backend, options)
    tally = Tally(session.id, told)
    view.begin(tally, options.directory)
    prompt = await _prompt(backend, options, parts)
    try:
        result = await take_turn(backend, prompt, view, tally, ask)
        return msgspec.structs.replace(result, sandbox=backend.sandbox, hosts=backend.hosts)
    except (ModelNotFoundError, NotFoundError, ServerError) as error:
        kept = await _kept(backend, session.id, options.attach, error)
        code = exit_of(error.exit_code)
        return Result(
            exit=code, error=f"{error}{kept}", sandbox=backend.sandbox, hosts=backend.hosts
        )


@asynccontextmanager
async def _opened(options: Options, *, asks: bool) -> AsyncIterator[Backend]:
    """The server to attach to, or an App of this process; `asks`: somebody is there to be asked."""
    if options.attach is not None:
        try:
            from pegboard_plugins.cli.attached import attached
        except ModuleNotFoundError as error:
            way = "install the client: pip install 'pegboard[client]'"
            raise InvalidInputError(f"--attach needs {error.name}; {way}") from error

        async with attached(options.attach, options.directory, options.password) as backend:
            yield backend
        return
    from pegboard import App, AppOptions

    trust, config = True if options.trust else None, _config(options)
    settings = AppOptions(interactive=asks, trust=trust, config=config)
    async with await App.open(options.directory, settings) as app:
        _check_tape(app, options)
        if app.config.auto_approve:
            sys.stderr.write(AUTO)
        if app.policy.sandbox:
            sys.stderr.write(f"sandbox: {app.policy.sandbox}\n")
        yield LocalBackend(app)


def _check_tape(app: "App", options: Options) -> None:
    """An answer that is to come from a file comes from nowhere else."""
    on = {info.name for info in app.register.infos if not info.blocked}
    if options.tape and "cassette" not in on:
        raise InvalidInputError("--record and --replay need the plugin cassette, which is off")


def _config(options: Options) -> dict[str, object]:
    """What the command line sets of the configuration."""
    said: dict[str, object] = {}
    if options.budget_usd is not None:
        said["budget"] = {"run": {"usd": options.budget_usd}}
    if options.auto:
        said["auto_approve"] = True
    if options.sandbox is not None:
        said["sandbox"] = options.sandbox
    if options.tape:
        said["plugins"] = {"cassette": {"options": options.tape}}
    return said


async def _warnings(backend: Backend, options: Options) -> Sequence[str]:
    """What is to be shown: to a program all, to a person what they have not read today."""
    if options.style == "json" or not backend.warnings:
        return backend.warnings
    from pegboard_plugins.cli.warnings import unread  # most runs have no warnings

    return await asyncio.to_thread(
        unread,
        backend.warnings,
        project_id=str(options.directory.absolute()),
        state=Places.of(os.environ).state,
        today=datetime.now(UTC).astimezone().date(),
    )


async def _prompt(backend: Backend, options: Options, parts: Sequence[PartInput]) -> PromptRequest:
    """The message as a prompt, or as the slash command that it is."""
    message = options.message
    found = message.command(await backend.commands(), untrusted=backend.untrusted)
    command = None
    if found is not None:
        name, arguments = found
        command = SlashCommand(name=name, arguments=arguments, is_typed=message.is_typed)
    return PromptRequest(
        parts=parts,
        typed=message.typed,
        command=command,
        agent=options.agent,
        model=options.model,
        limit_s=options.limit_s,
    )


async def _session(backend: Backend, options: Options) -> Session:
    if options.session_id:
        return await backend.session(options.session_id)
    if not options.continued:
        return await backend.create(title=options.title, agent=options.agent)
    newest = await backend.newest()
    if newest is None:
        raise InvalidInputError("there is no session to continue in this project")
    return newest


async def _kept(backend: Backend, session_id: str, attach: str | None, error: PegboardError) -> str:
    """Where the prompt is, if it was stored before its model or agent turned out to be unknown."""
    if isinstance(error, ServerUnreachableError) or not await backend.is_begun(session_id):
        return ""
    place = f"--attach {attach} " if attach else ""
    text = str(error)  # all that a server's error has
    other = "--agent NAME" if "agent not found" in text else "-m PROVIDER/MODEL"
    stop = "" if text.endswith((".", "?")) else "."
    way_on = f"pegboard run {place}-s {session_id} {other} go on"
    return f"{stop} The prompt is kept in session {session_id}: {way_on}"
