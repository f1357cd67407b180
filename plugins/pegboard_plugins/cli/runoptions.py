"""The options of `pegboard run`, and the checks of their combinations."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
import msgspec

from pegboard import InvalidInputError
from pegboard.schema.config import SandboxLevel
from pegboard_plugins.cli.message import Message
from pegboard_plugins.shared import rule_options, terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pegboard_plugins.cli.completing import Completer, Kind


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `pegboard run` on the command line."""

    directory: Path
    message: Message
    model: str | None
    variant: str | None
    agent: str | None
    continued: bool
    session_id: str | None
    resumes: bool
    forked: bool
    unsaved: bool
    title: str | None
    command: str | None
    style: Literal["text", "json", "result"]
    schema: Mapping[str, Any] | None
    output: Path | None
    append_system: str | None
    thinking: bool
    files: Sequence[Path]
    tools: Sequence[str]
    allow: Sequence[str]
    deny: Sequence[str]
    trust: bool
    auto: bool
    limit_s: float | None
    budget_usd: float | None
    max_steps: int | None
    settings: Sequence[str]
    bare: bool
    sandbox: str | None
    profile: str | None
    worktree: bool
    attach: str | None
    password: str | None
    wait_s: float
    tape: Mapping[str, str]
    mode: str | None = None
    asks: bool = False
    """A user is at the terminal."""


_FILE = click.Path(path_type=Path, dir_okay=False)
WAIT_S = 30.0
"""How long other clients of a server have for a permission request; a user has to see it."""
MODES = ("ask", "accept-edits", "plan", "everything")
"""The permission modes, which no other option needs."""
LOCAL_ONLY = frozenset(
    {
        *("trust", "budget_usd", "max_steps", "sandbox", "auto", "allow", "deny"),
        *("record", "replay", "profile", "worktree", "settings", "bare"),
    }
)
"""What a server decides for itself."""
OF_A_PROMPT = frozenset(
    {
        *("model", "variant", "agent", "forked", "title", "command", "schema", "files", "tools"),
        "append_system",
    }
)
"""What a prompt that is there already was sent with."""
ATTACHED_ONLY = frozenset({"password_file", "wait_s"})


def _live(kind: "Kind") -> "Completer":
    """Return a function that completes values; it imports its module at the first use."""

    def complete(
        ctx: click.Context, parameter: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from pegboard_plugins.cli.completing import live

        return live(kind)(ctx, parameter, incomplete)

    return complete


_OPTIONS = (
    click.option(
        "-m",
        "--model",
        metavar="PROVIDER/MODEL",
        help="The model to ask.",
        shell_complete=_live("model"),
    ),
    click.option("--variant", metavar="NAME", help="How hard the model thinks, such as `high`."),
    click.option(
        "--agent",
        metavar="NAME",
        help="The agent to ask; `build` if nothing else is set.",
        shell_complete=_live("agent"),
    ),
    click.option("--mode", type=click.Choice(MODES), help="What runs before you are asked."),
    click.option("-c", "--continue", "continued", is_flag=True, help="Continue the last session."),
    click.option(
        "-s",
        "--session",
        "session_id",
        metavar="ID",
        help="Continue this session.",
        shell_complete=_live("session"),
    ),
    click.option(
        "--resume",
        "resumes",
        is_flag=True,
        help="Finish the last session's interrupted answer, or with -s that session's.",
    ),
    click.option(
        "--fork", "forked", is_flag=True, help="Continue in a copy of the session; needs -c or -s."
    ),
    click.option("--no-save", "unsaved", is_flag=True, help="Do not save the session."),
    click.option("--title", help="The title of a new session."),
    click.option(
        "--command",
        metavar="NAME",
        help="Run this slash command; MESSAGE is its arguments.",
        shell_complete=_live("command"),
    ),
    click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json", "result"]),
        default="text",
        show_default=True,
        help="Text, one JSON record per line, or the last of these records alone.",
    ),
    click.option(
        "--json-schema",
        "--output-schema",
        "schema",
        metavar="FILE|TEXT",
        help="Print only the answer, as JSON that matches this JSON Schema.",
    ),
    click.option(
        "-o", "--output", type=_FILE, metavar="FILE", help="Write the last answer to FILE as well."
    ),
    click.option(
        "--append-system",
        metavar="TEXT|@FILE",
        help="Add TEXT, or the text of FILE, to the system prompt.",
    ),
    click.option("--thinking", is_flag=True, help="Show the model's thinking."),
    click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Attach a file or a folder; repeatable.",
    ),
    click.option(
        "--tools",
        metavar="NAMES",
        help="Offer only these tools: names separated by commas, wildcards allowed.",
        shell_complete=_live("tool"),
    ),
    rule_options,
    click.option("--trust", is_flag=True, help="Trust this project's code for this run."),
    click.option(
        "--auto", is_flag=True, help="Allow whatever would be asked; denied calls stay denied."
    ),
    click.option(
        "--time-limit",
        "limit_s",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop the turn after SECONDS.",
    ),
    click.option(
        "--budget-usd",
        type=click.FloatRange(min=0),
        metavar="DOLLARS",
        help="Stop before the turn, including subagents, costs more.",
    ),
    click.option(
        "--max-steps",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop after N answers of the model, those of subagents included.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set KEY of the configuration for this run; repeatable.",
    ),
    click.option(
        "--bare",
        is_flag=True,
        help="Run without the project's code, instruction files, skills and foreign files.",
    ),
    click.option(
        "--sandbox",
        type=click.Choice(get_args(SandboxLevel)),
        help="How strictly to sandbox the processes of tools.",
    ),
    click.option(
        "--profile",
        metavar="NAME",
        help="Apply `[profile.NAME]` of the configuration.",
        shell_complete=_live("profile"),
    ),
    click.option("--worktree", is_flag=True, help="Work in a new git worktree of this project."),
    click.option(
        "--attach", metavar="URL", help="Send the prompt to a server that `pegboard serve` started."
    ),
    click.option(
        "--password-file",
        type=_FILE,
        metavar="FILE",
        help="Read the server's password from the first line of FILE.",
    ),
    click.option(
        "--wait-permission",
        "wait_s",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        default=WAIT_S,
        show_default=True,
        help="Seconds to wait for another client to answer a permission request.",
    ),
    click.option(
        "--record", type=_FILE, metavar="FILE", help="Record the model's answers in FILE."
    ),
    click.option(
        "--replay",
        type=_FILE,
        metavar="FILE",
        help="Answer from the recording FILE instead of a model.",
    ),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `run` to a command, in the order of its help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def config_of(options: Options, leaving: ExitStack) -> Mapping[str, object]:
    """Return the command line's configuration; errors within `leaving` name the option `--set`."""
    limits = {"usd": options.budget_usd, "steps": options.max_steps}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    said: dict[str, object] = {"budget": {"run": limits}} if limits else {}
    if options.auto:
        said["auto_approve"] = True
    if options.sandbox is not None:
        said["sandbox"] = options.sandbox
    if options.tape:
        said["plugins"] = {"cassette": {"options": options.tape}}
    if options.bare or options.settings:
        from pegboard_plugins.cli.runsettings import laid_over, name_option  # few runs set anything

        leaving.enter_context(name_option())
        return laid_over(said, options.settings, bare=options.bare)
    return said


def read_options(  # noqa: PLR0913 - click gives every option by keyword
    ctx: click.Context,
    message: Message,
    *,
    password_file: Path | None,
    tools: str | None,
    record: Path | None,
    replay: Path | None,
    schema: str | None,
    **said: Any,  # noqa: ANN401 - click's own types
) -> Options:
    """Convert the command line's options, and check their combinations.

    :raises click.UsageError: for options that exclude each other.
    :raises InvalidInputError: for an unusable file or value of an option.
    """
    _check(ctx, message, said)
    for option in filter(said.get, ("trust", "auto", "allow", "bare", "settings")):
        from pegboard.unstable import refuse_within_tool  # only a decision needs it

        refuse_within_tool(f"pegboard {ctx.command.name} --{option.replace('settings', 'set')}")
    if said["mode"] == "plan":
        said |= {"mode": "ask", "agent": said["agent"] or "plan"}
    return Options(
        directory=ctx.obj,
        message=message,
        tools=tuple(filter(None, (name.strip() for name in (tools or "").split(",")))),
        password=terminal.password_of(password_file) if password_file else None,
        tape=_tape(record=record, replay=replay),
        schema=_schema(schema) if schema is not None else None,
        **said,
    )


def _schema(given: str) -> Mapping[str, Any]:
    """Parse the JSON Schema in a file, or in a text that begins with a brace."""
    is_text = given.lstrip().startswith("{")
    try:
        found = msgspec.json.decode(given if is_text else Path(given).read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        text = f"--json-schema: cannot read {given}: {reason}; give a file, or the schema itself"
        raise InvalidInputError(text) from error
    except (msgspec.DecodeError, RecursionError) as error:
        place = "the text" if is_text else given
        raise InvalidInputError(f"--json-schema: {place} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"--json-schema: {given} is not a schema; give a JSON object")
    return found


def _check(ctx: click.Context, message: Message, said: Mapping[str, Any]) -> None:
    _check_session(said)
    if said["resumes"]:
        _check_resumed(ctx, message)
    if said["command"] and message.is_slashed:
        raise click.UsageError("--command and a message that begins with / exclude each other")
    for name, shown in (("schema", "--json-schema"), ("append_system", "--append-system")):
        if _is_said(ctx, name) and (said["command"] or message.is_slashed):
            raise click.UsageError(f"{shown} is for a message, and not for a slash command")
    if said["bare"] and said["trust"]:
        raise click.UsageError("--bare and --trust exclude each other")
    if _is_said(ctx, "tools") and not any(map(str.strip, (ctx.params["tools"] or "").split(","))):
        raise click.UsageError("--tools names no tool; `pegboard tool list` shows them")
    attached = said["attach"] is not None
    for option in filter(lambda each: _is_said(ctx, each.name or ""), ctx.command.params):
        if attached and option.name in LOCAL_ONLY:
            raise click.UsageError(f"{option.opts[0]} is the server's to decide, not --attach's")
        if not attached and option.name in ATTACHED_ONLY:
            raise click.UsageError(f"{option.opts[0]} is for a server: it needs --attach")


def _check_resumed(ctx: click.Context, message: Message) -> None:
    """Reject a message or options that would change the prompt that `--resume` continues."""
    if message.whole:
        raise click.UsageError("--resume takes no MESSAGE; to send one, go on with -c or -s ID")
    for option in filter(lambda each: _is_said(ctx, each.name or ""), ctx.command.params):
        if option.name in OF_A_PROMPT:
            raise click.UsageError(f"--resume and {option.opts[-1]} exclude each other")


def _check_session(said: Mapping[str, Any]) -> None:
    if (given := said["session_id"]) and not given.startswith("ses_"):
        from pegboard_plugins.cli.foreignoptions import SANDBOXES  # ids begin otherwise

        if given in SANDBOXES:
            text = f"-s names a session; the sandbox {given} is `--sandbox {SANDBOXES[given]}`"
            raise click.UsageError(text)
    going_on = said["continued"] or said["session_id"] or said["resumes"]
    if said["continued"] and said["session_id"]:
        raise click.UsageError("--continue and --session exclude each other")
    if said["forked"] and not going_on:
        raise click.UsageError("--fork copies a session: say which with -c or -s ID")
    if said["unsaved"] and going_on and not said["forked"]:
        raise click.UsageError(
            "--no-save would drop a session that is there already; with --fork its copy goes"
        )
    if said["worktree"] and going_on:
        raise click.UsageError("--worktree begins a session: -c and -s go on where theirs began")


def _is_said(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) not in (None, click.core.ParameterSource.DEFAULT)


def _tape(**files: Path | None) -> Mapping[str, str]:
    """Return a file and a mode, as options for the plugin that records and replays requests."""
    tapes = [{"file": str(file.absolute()), "mode": mode} for mode, file in files.items() if file]
    if len(tapes) > 1:
        raise click.UsageError("--record and --replay exclude each other")
    return tapes[0] if tapes else {}
