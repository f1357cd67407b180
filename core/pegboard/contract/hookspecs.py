"""Every hook of Pegboard: this is the one file that the author of a plugin must read.

A plugin is a module or object with functions of the names below and `@hookimpl`. A function names
only the arguments that it wants. An `async` one runs on the event loop, a plain one in a worker
thread, for five seconds unless the configuration or `@hookimpl(timeout_s=...)` says otherwise.

How answers combine is the hook's kind:

- `collect`: the answers of all, oldest plugin first, one after the other in one list.
- `fold`: each plugin gets the value that the one before left; `None` leaves it as it is.
- `first`: the newest plugin is asked first; the first answer that is not `None` counts.
- `strictest`: all are asked; deny beats ask beats allow; `None` is no opinion.
- `notify`: all hear it, in order, each at its own pace; nobody waits for them.

Oldest to newest is: built-in plugins, installed ones by name, the user's, the project's.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pegboard.contract.compactors import Compactor
from pegboard.contract.context import SessionView, ToolContext
from pegboard.contract.host import HookCalls, Host
from pegboard.contract.modelhooks import expand_file as expand_file  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import model_facts as model_facts  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import model_names as model_names  # noqa: PLC0414 - likewise
from pegboard.contract.modelhooks import model_resolve as model_resolve  # noqa: PLC0414 - likewise
from pegboard.contract.modelhooks import register_budget as register_budget  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import register_files as register_files  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import register_keystore as register_keystore  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import register_processes as register_processes  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import register_providers as register_providers  # noqa: PLC0414 - a hook too
from pegboard.contract.modelhooks import render_tool as render_tool  # noqa: PLC0414 - likewise
from pegboard.contract.modelhooks import wrap_providers as wrap_providers  # noqa: PLC0414 - a hook too
from pegboard.contract.plugin import Stash
from pegboard.contract.plugin import hookspec as _hookspec
from pegboard.contract.results import PendingCall, ToolResult
from pegboard.contract.tools import Tool
from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.paths import Places
from pegboard.processes import Encloser
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import Part, TextPart
from pegboard.schema.session import Decided, PermissionRequest, Rule, Verdict
from pegboard.storage import OpenStorage, Snapshots
from pegboard.workspace import Workspace


@_hookspec("collect")
def register_hooks() -> Sequence[object] | None:
    """Hooks that the plugin brings: functions marked with `@hookspec`, or modules of them.

    Called once when the App opens and all plugins are imported, before any other hook; it must
    be a plain function. Collect: a plugin that raises is reported and its hooks are missing; a
    hook whose name another has is reported and left out. The plugin calls its hooks with
    `hooks` (`register_tools`) or `app.hooks`. Who implements one writes
    `@hookimpl(optionalhook=True)`, unless it is of no use without the plugin that brings it.

    Since 0.1.
    """


@_hookspec("collect")
def register_tools(config: Config, hooks: HookCalls) -> Sequence[Tool] | None:
    """The plugin's tools.

    Called once when the App opens. The tools are offered to the model under their names.
    Collect: a plugin that raises is reported and its tools are missing; of two tools with one
    name the later origin's replaces the earlier's, within one origin it is an error.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.
    - hooks: calls the hooks that the plugin brings, as `register_hooks` says.

    Since 0.1.
    """


@_hookspec("collect")
def register_permissions() -> Sequence[Rule] | None:
    """Rules for the plugin's own permission names, for users who have none about them.

    Called once when the App opens. The rules stand behind the built-in `*` and before all that
    the user has written, so that the user has the last word. Collect: a plugin that raises is
    reported and left out; so is a rule about more than one name, or that of another plugin's tool.

    Since 0.1.
    """


@_hookspec("collect")
def register_agents(config: Config) -> Sequence[Agent] | None:
    """The plugin's agents.

    Called once when the App opens. The user's `agent` table is applied on top. Collect: a
    plugin that raises is reported and left out; a later agent of a name replaces an earlier.

    Since 0.1.
    """


@_hookspec("collect")
def register_commands(
    config: Config, workspace: Workspace, home: Path, config_dir: Path
) -> Sequence[Command] | None:
    """The plugin's slash commands.

    Called once when the App opens. The user's `command` table is applied on top. Collect: a
    plugin that raises is reported and left out; a later command of a name replaces an earlier,
    but a skill's, or that of an MCP server, takes no name that another has.

    - home, config_dir: the user's folder, and that of their settings.

    Since 0.1.
    """


@_hookspec("collect")
def register_storage() -> Mapping[str, OpenStorage] | None:
    """Kinds of database: URL scheme to a function that opens such a URL.

    Called once when the App opens. `PEGBOARD_DATABASE` is the URL; "" is the scheme of a plain
    path, and of the database where the variable is not set. Collect: a plugin that raises is
    reported and left out; the newest scheme wins. Without a plugin for its scheme no App opens.

    Since 0.1.
    """


@_hookspec("collect")
def register_compactors() -> Sequence[Compactor] | None:
    """Ways to shorten a history that has outgrown the model's window.

    Called when a session has to be compacted; the newest acts, outside of the hook's time limit.
    Collect: a plugin that raises is reported and left out.

    Since 0.1.
    """


@_hookspec("first")
def register_encloser(hooks: HookCalls) -> Encloser | None:
    """What encloses the processes that tools start, and says how far they may reach.

    Called when an App opens with a `sandbox` in its configuration; without an answer it does not
    open. First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


@_hookspec("first")
def register_snapshots(
    config: Config, workspace: Workspace, places: Places, env: Mapping[str, str]
) -> Snapshots | None:
    """What keeps the states of the project's files, for revert and for diffs.

    Called once when the App opens. Without an answer there are no snapshots: a revert takes
    messages back and leaves files as they are. First: a plugin that raises is reported and the
    next is asked.

    - places, env: `places.snapshots` is a folder for this, git is on the PATH of `env`.

    Since 0.1.
    """


@_hookspec("fold", subject="config")
def config_load(config: Config) -> Config | None:
    """The configuration, with what the plugin sets.

    Called once when the App opens, after all files are merged. The answer replaces it
    for every later plugin and for the App. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="message")
def chat_message(session: SessionView, message: Turn) -> Turn | None:
    """The user's message with its parts, as the model shall get it.

    Called for each prompt, after the message is stored, so that none is ever lost. The answer
    is stored in its place; ids must stay. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="messages")
def chat_messages_transform(
    session: SessionView, messages: tuple[Turn, ...]
) -> tuple[Turn, ...] | None:
    """The history, as the model shall see it in this one request.

    Called before each request to a model, of which `session.purpose` says what it is for. What is
    asked beside the conversation, as for a title, comes as one turn that is stored nowhere; for
    a summary the history comes first, for the compactor, then each text that it asks. The
    answer is not stored. A turn that is the same object as before costs nothing, a new one is
    encoded again. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="system")
def chat_system_transform(
    session: SessionView, model: Model, system: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The system prompt, piece by piece.

    Called before each request to a model, with the pieces that the plugins before have
    written; the agent's own prompt is the first. What only the session's own turns shall be
    told is for a `session.purpose` of `turn`. An empty answer is an error and skipped.
    Write the same text every time where you can: providers cache the prefix. Fold: a plugin
    that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="request")
def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """The request with other parameters: temperature, limits, the provider's options.

    Called before each request to a model, as the last hook. The messages stay as they are:
    `chat_messages_transform` is for these, `chat_system_transform` and `tool_definition` are for
    the rest of what the model reads. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="headers")
def chat_headers(session: SessionView, headers: Mapping[str, str]) -> Mapping[str, str] | None:
    """The HTTP headers of a request to a model, the credential's not among them.

    Called before each request to a model, before `chat_params`. Fold: a plugin that raises is
    reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="text")
def text_complete(session: SessionView, part: TextPart, text: str) -> str | None:
    """A text of the model, as it shall be stored and shown.

    Called when a block of text is complete or cut off, before it is stored for good; for a title or
    another answer beside the conversation, before anybody gets it. Viewers have seen the raw text
    stream by; the answer replaces it. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("strictest")
def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """The plugin's opinion about what a tool wants to do.

    Called for each request, before the user is asked. Deny beats ask beats allow, so a plugin
    can tighten and never loosen; if nobody has an opinion the user is asked. Strictest: a
    plugin that raises, exceeds its time limit or could not be loaded counts as deny.

    - request: judge every pattern of it; the strictest counts.

    Since 0.1.
    """


@_hookspec("strictest")
def permission_decided(
    decided: Decided, stash: Stash, places: Places, secrets: tuple[str, ...]
) -> Verdict | None:
    """A word against what was decided, before it has an effect: for logs that miss nothing.

    Called for each verdict on a request, answer to one, tool call, and approval taken back; with
    a deny or an ask it does not happen. Strictest: who raises or is late counts as deny.

    - stash, places: what plugins keep in memory, and where; `places.audit` is a file for this.
    - secrets: texts that no log may have, such as the keys of providers.

    Since 0.1.
    """


@_hookspec("fold", subject="tool")
def tool_definition(session: SessionView, tool: ToolDefinition) -> ToolDefinition | None:
    """A tool's description and schema, as the model shall see them.

    Called for each offered tool when a turn begins. The name must stay. Fold: a plugin that
    raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="call", raises=(ToolError, PermissionDeniedError))
def tool_execute_before(session: SessionView, call: PendingCall) -> PendingCall | None:
    """A tool call with other arguments; to stop the call, raise `ToolError`.

    Called before each call, when its arguments are valid; changed ones are validated again.
    Fold: `ToolError` ends the call with its text for the model, any other error is reported
    and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="result")
def tool_execute_after(
    session: SessionView, call: PendingCall, result: ToolResult, context: ToolContext
) -> ToolResult | None:
    """A tool's answer, as the model shall get it.

    Called after each call that succeeded, before a long output is cut. Fold: a plugin that
    raises is reported and skipped.

    - context: the call's own, with the files that it `changed`.

    Since 0.1.
    """


@_hookspec("fold", subject="parts")
def command_execute_before(
    session: SessionView, command: Command, parts: tuple[Part, ...]
) -> tuple[Part, ...] | None:
    """The parts that a slash command has become, before they are sent.

    Called for each command that the user runs. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="env")
def shell_env(session: SessionView, env: Mapping[str, str]) -> Mapping[str, str] | None:
    """The environment of the processes that tools start.

    Called before each process. It comes without the variables that hold keys of providers.
    Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("fold", subject="prompt")
def session_compacting(session: SessionView, prompt: str) -> str | None:
    """The prompt that asks for a summary of the history.

    Called before a session is compacted. Fold: a plugin that raises is reported and skipped.

    Since 0.1.
    """


@_hookspec("notify")
def event(event: Event) -> None:
    """Something happened.

    Called for every event of the project, in order. Notify: each plugin has its own queue; one
    that falls 1,000 events behind loses the oldest and is reported.

    Since 0.1.
    """


@_hookspec("notify")
def startup(app: Host) -> None:
    """The App is open: all is registered, nothing runs.

    Called once. Notify: a plugin that raises is reported.

    Since 0.1.
    """


@_hookspec("notify")
def shutdown(app: Host) -> None:
    """The App closes: turns have ended, the database is still open.

    Called once; the App waits for it within the plugin's time limit. Notify: a plugin that
    raises is reported.

    Since 0.1.
    """
