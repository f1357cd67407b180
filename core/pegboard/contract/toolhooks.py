"""Hooks for tool calls: permissions, arguments, results and display."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from msgspec.structs import replace

from pegboard.contract.context import SessionView, ToolContext
from pegboard.contract.plugin import Stash, hookspec
from pegboard.contract.results import Activity, Block, PendingCall, ToolResult
from pegboard.contract.tools import Tool
from pegboard.errors import PermissionDeniedError, PromptRefusedError, ToolError
from pegboard.paths import UserFolders
from pegboard.schema.config import Command
from pegboard.schema.part import Part, ToolPart
from pegboard.schema.session import Decided, PermissionRequest, Verdict


@hookspec("strictest", since="0.1")
def permission_ask(
    session: SessionView, request: PermissionRequest, stash: Stash
) -> Verdict | None:
    """Return an opinion about a permission request of a tool.

    Called for each request, before the user is asked. Deny beats ask beats allow, so a plugin can
    tighten and never loosen; without any opinion the user is asked. A request can have several
    patterns; for `bash` they are the line's commands without quotes and wrappers. Strictest: a
    plugin that raises, exceeds its time limit or could not be loaded counts as deny.

    - request: judge every pattern; the strictest verdict counts.
    - stash: values that plugins keep in memory for the App.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.session import PermissionRequest, Verdict


    @hookimpl
    async def permission_ask(request: PermissionRequest) -> Verdict | None:
        if any(pattern.endswith(".lock") for pattern in request.patterns):
            return Verdict(action="deny", reason="Lock files are written by their own tools.")
        return None
    ```
    """


@hookspec("strictest", since="0.1")
def permission_decided(
    decided: Decided, stash: Stash, places: UserFolders, secrets: tuple[str, ...]
) -> Verdict | None:
    """Record a permission decision before it takes effect, or prevent it, as an audit log needs.

    Called for each verdict on a permission request, each answer of a user to such a request, each
    tool call, and each approval that is taken back. A verdict of deny or ask prevents the effect.
    Strictest: a plugin that raises or exceeds its time limit counts as deny.

    - stash, places: values that plugins keep in memory, and the user's folders; `places.audit` is a
      log file.
    - secrets: texts that no log may contain, such as the keys of providers.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.session import Decided, Verdict


    @hookimpl
    async def permission_decided(decided: Decided) -> Verdict | None:
        facts = decided.facts
        if facts.get("permission") == "ledger_write" and facts.get("by") == "headless":
            return Verdict(action="deny", reason="nobody was there to see it")
        return None
    ```
    """


def _same_call(answer: PendingCall, before: PendingCall) -> PendingCall:
    """Reject a call that differs from `before` in more than its input."""
    if replace(answer, input={}) != replace(before, input={}):
        raise ValueError("another call: only its input may change")
    return answer


@hookspec(
    "fold", subject="call", check=_same_call, raises=(ToolError, PermissionDeniedError), since="0.1"
)
def tool_execute_before(session: SessionView, call: PendingCall) -> PendingCall | None:
    """Change the arguments of a tool call, or stop it with `ToolError`.

    Called before each call whose arguments are valid, while the call is stored; changed arguments
    are validated again. Fold: `ToolError` ends the call with its text for the model; a plugin
    that raises another error is reported and skipped.

    ```python
    from pegboard import PendingCall, ToolError, hookimpl


    @hookimpl
    async def tool_execute_before(call: PendingCall) -> None:
        if call.tool == "bash" and "--no-verify" in str(call.input.get("command")):
            raise ToolError("Commits are verified in this house.")
    ```
    """


@hookspec("fold", subject="result", since="0.1")
def tool_execute_after(
    session: SessionView, call: PendingCall, result: ToolResult, context: ToolContext
) -> ToolResult | None:
    r"""Change the result of a tool call before the model gets it.

    Called after each successful call, before a long output is cut. Fold: a plugin that raises is
    reported and skipped.

    - context: the context of the call, with the files that the call has `changed`.

    ```python
    from pegboard import PendingCall, ToolResult, evolve, hookimpl


    @hookimpl
    async def tool_execute_after(call: PendingCall, result: ToolResult) -> ToolResult:
        return evolve(result, output=result.output.replace("\t", "    "))
    ```
    """


@hookspec("fold", subject="error", since="0.1")
def tool_execute_failed(session: SessionView, call: PendingCall, error: str) -> str | None:
    r"""Change the text of a failed tool call before the model gets it.

    Called after each call that has failed, also by a `ToolError` of `tool_execute_before`; not
    after a call that was denied or stopped. Fold: a plugin that raises is reported and skipped.

    ```python
    from pegboard import hookimpl


    @hookimpl
    async def tool_execute_failed(error: str) -> str | None:
        if "No space left on device" not in error:
            return None
        return f"{error}\nAsk the user to make room; do not delete files yourself."
    ```
    """


@hookspec("fold", subject="parts", raises=(PromptRefusedError,), since="0.1")
def command_execute_before(
    session: SessionView, command: Command, parts: tuple[Part, ...]
) -> tuple[Part, ...] | None:
    r"""Change the parts of a slash command before they are sent, or refuse it.

    Called for each command that the user runs. Fold: `PromptRefusedError` refuses the prompt, as in
    `chat_message`; a plugin that raises another error is reported and skipped.

    ```python
    from pegboard import evolve, hookimpl
    from pegboard.schema.config import Command
    from pegboard.schema.part import Part, TextPart


    @hookimpl
    async def command_execute_before(
        command: Command, parts: tuple[Part, ...]
    ) -> tuple[Part, ...]:
        note = f"(from /{command.name})"
        return tuple(
            evolve(part, text=f"{part.text}\n{note}") if isinstance(part, TextPart) else part
            for part in parts
        )
    ```
    """


@hookspec("collect", since="0.1")
def around_call(activity: Activity) -> Sequence[AbstractContextManager[object]] | None:
    """Return context managers that are entered around an activity: for spans and measurements.

    Called when a turn, a request to a model or a tool call begins. A context manager is entered and
    left in the task of the activity, so that context variables which it sets are there in the
    provider, in the tool and in the turns of subagents. It must not block: nothing limits its time.
    Collect: a plugin that raises is reported and left out, and so is a context manager that raises.

    - activity: changes while it lasts; read `outcome` and `error` at the end.

    ```python
    import logging
    import time
    from collections.abc import Iterator
    from contextlib import AbstractContextManager, contextmanager

    from pegboard import Activity, hookimpl

    log = logging.getLogger("pegboard_house")


    @hookimpl
    async def around_call(activity: Activity) -> tuple[AbstractContextManager[object]]:
        return (timed(activity),)


    @contextmanager
    def timed(activity: Activity) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            log.info("%s %s: %.3f s", activity.kind, activity.name, time.monotonic() - started)
    ```
    """


@hookspec("fold", subject="env", since="0.1")
def shell_env(session: SessionView, env: Mapping[str, str]) -> Mapping[str, str] | None:
    """Change the environment of the processes that tools start.

    Called before each process, without the variables that hold credentials. Fold: a plugin that
    raises is reported and skipped.

    ```python
    from collections.abc import Mapping

    from pegboard import hookimpl


    @hookimpl
    async def shell_env(env: Mapping[str, str]) -> dict[str, str]:
        return {**env, "PAGER": "cat"}
    ```
    """


RENDER_LIMIT_S = 0.5
"""Ten times what a drawing function may take, so that a busy machine loses no block."""


@hookspec("first", limit_s=RENDER_LIMIT_S, when="show", since="0.1")
def render_tool(part: ToolPart, width: int, tool: Tool | None) -> Block | None:
    """Return how people see a tool call: on a terminal, on a page, in an export.

    Called by the program that displays the call, once for each of its states and each width. The
    function must be a plain one, read nothing but its arguments and take 50 ms at most; after 0.5 s
    it is given up. The `draw` of the call's own tool comes after all plugins. Without an answer
    `ToolResult.display` is drawn, or else title and output.
    First: a plugin that raises is reported, and the next one is asked.

    - width: the columns available; longer lines are wrapped.
    - tool: the tool of the call, None where it is absent now.

    ```python
    from pegboard import hookimpl
    from pegboard.display import Block, Span
    from pegboard.schema.part import ToolPart


    @hookimpl
    def render_tool(part: ToolPart, width: int) -> Block | None:
        if part.tool != "ledger":
            return None
        return Block(title="ledger", lines=((Span("one line of it"[:width]),),))
    ```
    """
