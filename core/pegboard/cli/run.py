"""`pegboard run`: one prompt, then the end."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

import click
import msgspec

from pegboard.cli import complain
from pegboard.cli.asking import Asker
from pegboard.cli.eventloop import run_async
from pegboard.cli.exits import Exit, exit_of
from pegboard.cli.message import Message, MessageCommand, parts_of
from pegboard.cli.opening import find_session, warnings_of
from pegboard.cli.screen import Screen, TerminalScreen, open_screen
from pegboard.cli.tally import Tally
from pegboard.cli.turn import Prompt, take_turn
from pegboard.cli.views import JsonView, Result, TextView, View
from pegboard.errors import InvalidInputError, ModelNotFoundError, NotFoundError, PegboardError
from pegboard.schema.prompt import FileInput, PartInput
from pegboard.schema.session import Session

if TYPE_CHECKING:
    from pegboard.app import App


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
    limit_s: float | None
    budget_usd: float | None


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
@click.argument("words", metavar="MESSAGE...", nargs=-1)
@click.pass_context
def run(  # noqa: PLR0913 - click gives every option by keyword
    ctx: click.Context,
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
    limit_s: float | None,
    budget_usd: float | None,
) -> int:
    """Send one prompt and show what the agent does.

    The words of MESSAGE are joined with blanks; the word `-` stands for standard input, and
    all that follows `--` is text. The answer goes to standard output, everything else to
    standard error.
    """
    if continued and session_id:
        raise click.UsageError("--continue and --session exclude each other")
    options = Options(
        directory=ctx.obj,
        message=Message(words=words, literal=ctx.meta.get(MessageCommand.LITERAL, ())),
        model=model,
        agent=agent,
        continued=continued,
        session_id=session_id,
        title=title,
        style=style,
        files=files,
        trust=trust,
        limit_s=limit_s,
        budget_usd=budget_usd,
    )
    with answer_stream() as out:
        return run_async(_report(options, out))


@contextmanager
def answer_stream() -> Iterator[TextIO]:
    """Standard output, kept for the answer: what plugins print goes to standard error meanwhile."""
    sys.stdout.flush()
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with os.fdopen(
            kept, "w", encoding=sys.stdout.encoding, errors="replace", closefd=False
        ) as out:
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
        view.end(Result(exit=code, error=type(error).__name__))
        raise
    view.end(result)
    if result.error:
        complain(result.error)
    return result.exit


async def _prompted(options: Options, view: View, screen: Screen) -> Result:
    from pegboard.app import App, AppOptions

    text = options.message.text(sys.stdin.buffer)
    parts = parts_of(text, options.files)
    asks = options.style == "text" and isinstance(screen, TerminalScreen) and sys.stdin.isatty()
    usd = options.budget_usd
    limits = {} if usd is None else {"budget": {"run": {"usd": usd}}}
    settings = AppOptions(interactive=asks, trust=True if options.trust else None, config=limits)
    async with await App.open(options.directory, settings) as app:
        for warning in warnings_of(app):
            view.warn(warning)
        session = await _session(app, options)
        tally = Tally(session.id)
        view.begin(tally, options.directory)
        asker = Asker(app, screen, sys.stdin) if asks else None
        prompt = await _prompt(app, session.id, options, text, parts)
        try:
            return await take_turn(app, prompt, view, tally, asker.ask if asker else None)
        except (ModelNotFoundError, NotFoundError) as error:
            kept = await _kept(app, session.id)
            return Result(exit=exit_of(error.exit_code), error=f"{error}{kept}")


async def _prompt(
    app: "App", session_id: str, options: Options, text: str, parts: Sequence[PartInput]
) -> Prompt:
    """The message as a prompt with what it mentions, or as the slash command that it is."""
    from pegboard.app import CommandOrder

    agent, model, limit_s = options.agent, options.model, options.limit_s
    command = options.message.command(text, app.commands)
    if command is None:
        mentioned = await app.mentioned(session_id, options.message.typed, agent=agent)
        return Prompt(parts=(*parts, *mentioned), agent=agent, model=model, limit_s=limit_s)
    name, arguments = command
    order = CommandOrder(
        name=name,
        arguments=arguments,
        typed=options.message.is_typed,
        agent=agent,
        model=model,
        files=tuple(part for part in parts if isinstance(part, FileInput)),
    )
    return Prompt(parts=parts, order=order, limit_s=limit_s)


async def _session(app: "App", options: Options) -> Session:
    if options.session_id:
        return await find_session(app, options.session_id)
    if not options.continued:
        return await app.create_session(title=options.title, agent=options.agent)
    newest = await app.sessions(limit=1)
    if not newest:
        raise InvalidInputError("there is no session to continue in this project")
    return newest[0]


async def _kept(app: "App", session_id: str) -> str:
    """Where the prompt is, if it was stored before its model or agent turned out to be unknown."""
    if not await app.turns(session_id):
        return ""
    way_on = f"pegboard run -s {session_id} -m PROVIDER/MODEL go on"
    return f" The prompt is kept in session {session_id}: {way_on}"
