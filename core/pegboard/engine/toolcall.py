"""One tool call: repair, validation, loop check, hooks, time limit, execution, truncation."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from pegboard.contract import toolhooks
from pegboard.contract.context import SessionView
from pegboard.contract.results import Activity, PendingCall, ToolResult
from pegboard.contract.tools import Tool, serving
from pegboard.engine.finish import denial, digest, digest_of_call, digest_of_result
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.errors import (
    BudgetError,
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionRejectedError,
    QuestionRejectedError,
    RequiredHookError,
    ToolError,
)
from pegboard.kit.threads import shield
from pegboard.providers import ToolCall, ToolDefinition, ToolInputStart
from pegboard.schema.part import Completed, Failed, ModelChoice, ToolState

if TYPE_CHECKING:
    from pegboard.engine.toolcontext import CallContext, CallTool

DOOM_LOOP_CALLS = 3
"""A call with the same result twice, without news in between, asks before it runs again.

The number of equal calls in a row that asks the user (as opencode's `session/processor.ts`).
"""
MOST_NESTED = 500
"""Levels of nesting in arguments; about twice as many could be read but not stored."""
MOST_NAMED = 5
"""Errors of a task group that the error of a call names."""
NOT_WHOLE = "Do not read that file whole."
_REFUSED: Final = "refused_calls"
STOPPED = "The call was stopped before it ended."


class CallPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A planned tool call: the tool and its arguments.

    An `ordered` call is made by a user. The user is then not asked whether the tool may run, and
    the call may be repeated without limit. `model` replaces the model of subagents that the call
    starts.
    """

    tool: Tool
    input: Mapping[str, Any]
    ordered: bool = False
    model: ModelChoice | None = None


class Caller:
    """The caller of the tools in one step, which gives every tool call exactly one result.

    It raises only errors that end the step, such as the failure of a required hook. `offered` are
    the tools that can be called, as the model sees them. `made` are the ids of calls that ran a
    tool. `denied` is whether any call was denied.
    """

    def __init__(
        self,
        run: Run,
        view: SessionView,
        processor: Processor,
        *,
        offered: Mapping[str, ToolDefinition | None],
    ) -> None:
        self._run = run
        self._view = view
        self._processor = processor
        self._offered = offered
        self.started = 0
        self.made: set[str] = set()
        self.denied = False

    async def __call__(self, call: ToolCall, plan: CallPlan | None = None) -> None:
        """Run a tool call, as `plan` says if given, and pass the call's result to the processor."""
        nested = partial(self._nested_call, call.id)
        await self._answer(call, plan or self._repaired(call), call_tool=nested)

    def refuse(self, call: ToolInputStart, reason: str) -> None:
        """Fail a call that the model has started, with this reason."""
        self._processor.call(call.id, call.name)
        self._processor.tool_failed(call.id, reason)

    async def _nested_call(self, by: str, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Make a call on behalf of the call `by`; a nested call cannot make further calls."""
        self.made.discard(by)  # it counts as made if one of its calls does
        call_id = self._run.engine.ids.new("tool")
        arguments = json.dumps(dict(args), ensure_ascii=False)
        call = ToolCall(call_id, name, arguments)
        plan = self._repaired(call)
        state = await self._answer(call, plan, call_tool=None)
        if isinstance(state, Failed):
            raise ToolError(state.error)
        assert isinstance(state, Completed)
        if plan.tool.serves == _REFUSED:
            raise ToolError(state.output)
        return ToolResult(output=state.output, title=state.title, metadata=state.metadata)

    async def _answer(
        self, call: ToolCall, plan: CallPlan, *, call_tool: "CallTool | None"
    ) -> ToolState:
        self.started += 1
        part = self._processor.tool_running(call.id, plan.tool.id, plan.input, call.metadata)
        before = PendingCall(
            id=call.id, tool=plan.tool.id, input=plan.input, message_id=part.message_id
        )
        try:
            doing = Activity("tool", self._view.id, call.id, plan.tool.id, before)
            async with self._run.engine.hooks.around(doing):
                doing.outcome = result = await self._ran(call, plan, before, call_tool)
            self._processor.tool_done(call.id, result)
        except asyncio.CancelledError as error:
            text = "\n\n".join((*_reported_state(error), STOPPED))
            await shield(self._failed(call, text))
            raise
        except (PermissionDeniedError, QuestionRejectedError) as error:
            if isinstance(error, PermissionRejectedError | QuestionRejectedError):
                self._run.blocked = not self._run.engine.config.continue_loop_on_deny
            if isinstance(error, PermissionCorrectedError):
                self.made.add(call.id)  # the user has said how to go on
            else:
                self.made.discard(call.id)
                self.denied = True
            await self._failed(call, _words(error), metadata=denial(error))
        except (ToolError, BudgetError) as error:
            await self._failed(call, await self._explained(before, _words(error)))
        except RequiredHookError as error:
            await self._failed(call, _words(error))
            raise
        except Exception as error:  # noqa: BLE001 - a tool is foreign code
            text = f"{plan.tool.id} failed: {type(error).__name__}: {_words(error)}"
            await self._failed(call, await self._explained(before, text))
        return self._processor.tool_state(call.id)

    async def _explained(self, call: PendingCall, error: str) -> str:
        """Return the error of a call after the changes that plugins make to it for the model."""
        return await self._run.engine.hooks.fold(
            toolhooks.tool_execute_failed, session=self._view, call=call, error=error
        )

    async def _failed(
        self, call: ToolCall, text: str, *, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Fail the call with an error text, which is cut to the size limit of tool output."""
        from pegboard.engine.toolresult import clean_error  # as the context of calls

        outputs = self._run.engine.outputs(self._view.id)
        cut = await clean_error(text, output_dir=outputs, hint=self._hint())
        self._processor.tool_failed(call.id, cut, metadata)

    def _repaired(self, call: ToolCall) -> CallPlan:
        """Return the plan of a call; a name or arguments that do not match a tool are repaired.

        If they cannot be repaired, the plan makes the call fail with an explanation for the model.
        """
        tool = self._run.engine.tools.get(call.name if call.name in self._offered else "")
        if tool is not None:
            with suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                args = msgspec.json.decode(call.input or "{}")
                if isinstance(args, dict) and tool.arguments.exact(args):
                    return CallPlan(tool=tool, input=args)
        return self._read(call)

    def _read(self, call: ToolCall) -> CallPlan:
        """Repair the name and the arguments of a call, and return the plan.

        If they cannot be repaired, the plan makes the call fail with an explanation for the model.
        """
        from pegboard.arguments.written import fitted, read_arguments, tool_named  # few need it

        name = tool_named(call.name, self._offered)
        tool = self._run.engine.tools.get(name or "")
        if tool is None:
            from pegboard.kit.suggestions import nearest_names  # for a mistake only

            nearest = nearest_names(call.name, sorted(self._offered), limit=1)
            meant = f", the nearest is {nearest[0]!r}" if nearest else ""
            names = ", ".join(sorted(self._offered))
            reason = f"there is no tool {call.name!r}{meant}; there are: {names}"
            return self._invalid(call, reason, **self._absence(call.name.lower()))
        try:
            value = read_arguments(call.input)
        except ValueError as error:
            return self._invalid(call, f"the arguments are not valid JSON: {error}")
        if not isinstance(value, dict):
            return self._invalid(call, "the arguments must be a JSON object")
        args = fitted(tool.own_names(value), tool.parameters)
        brackets = call.input.count("{") + call.input.count("[")
        if brackets > MOST_NESTED and _nesting(args) > MOST_NESTED:
            return self._invalid(call, f"the arguments are nested more than {MOST_NESTED} deep")
        return CallPlan(tool=tool, input=args)

    def _absence(self, name: str) -> dict[str, Any]:
        """Return why the tool `name` is absent: a setting disables it, or it needs a user."""
        engine = self._run.engine
        if (tool := engine.tools.get(name)) is not None:
            return {"needs_user": True} if tool.needs_user else {}
        setting = engine.hooks.switches.get(name)
        return {"setting": setting} if setting else {}

    def _invalid(self, call: ToolCall, reason: str, **facts: Any) -> CallPlan:  # noqa: ANN401 - arguments
        tool = serving(self._run.engine.tools.values(), _REFUSED) or Tool.raw(
            _REFUSED, "", {"type": "object"}, _refuse, serves=_REFUSED
        )
        return CallPlan(tool=tool, input={"tool": call.name, "error": reason, **facts})

    async def _ran(
        self, call: ToolCall, plan: CallPlan, before: PendingCall, call_tool: "CallTool | None"
    ) -> ToolResult:
        from pegboard.engine.toolcontext import CallContext  # loaded while the model thinks

        run, tool = self._run, plan.tool
        run.budget.take_call()
        context = CallContext(
            run,
            self._view,
            self._processor,
            call.id,
            before.message_id,
            tool=tool,
            call_tool=call_tool,
            offered=tuple(filter(None, self._offered.values())),
            exempt=tool.permission if plan.ordered else None,
            model=plan.model,
        )
        run.trail.expect(tool.effect)
        context.stored = run.writer.mark()
        await asyncio.sleep(0)  # it is written while plugins judge the call
        values = await _values(tool, plan.input)
        if tool.serves == _REFUSED:  # no effect, so no check for a loop
            return await self._done(before, plan, context, values)
        key = digest_of_call(tool.id, plan.input)
        if run.calls.times(key) + 1 >= DOOM_LOOP_CALLS:
            await run.trail.finish()  # changed files count as news
        times = 0 if plan.ordered else run.calls.times(key)
        if times + 1 >= DOOM_LOOP_CALLS:
            await context.ask_again(plan.input, times)
        try:
            result = await self._done(before, plan, context, values)
        except Exception as error:  # counted as a result, and raised again
            run.calls.ended(key, digest(_words(error)))
            raise
        run.calls.ended(key, digest_of_result(result))
        return result

    async def _done(
        self, before: PendingCall, plan: CallPlan, context: "CallContext", values: Mapping[str, Any]
    ) -> ToolResult:
        run, engine, tool = self._run, self._run.engine, plan.tool
        pending = await engine.hooks.fold(
            toolhooks.tool_execute_before, session=self._view, call=before
        )
        if pending.input != plan.input:
            values = await _values(tool, pending.input)
        await engine.decided(
            "call",
            {
                "session": run.session.id,
                "agent": self._view.agent.name,
                "tool": tool.id,
                "id": before.id,
                **_by(plan),
            },
        )
        if tool.serves != _REFUSED:
            self.made.add(before.id)
        async with run.trail.calling(tool.effect) as context.writing:
            # In the same block, since a plugin may format what the tool wrote.
            result = await self._within_limit(tool, context, values)
            result = await engine.hooks.fold(
                toolhooks.tool_execute_after,
                session=self._view,
                call=pending,
                result=result,
                context=context,
            )
        from pegboard.engine.toolresult import clean_result  # as the context of calls

        outputs = engine.outputs(self._view.id)
        kept = await clean_result(result, output_dir=outputs, hint=self._hint())
        return replace(kept, metadata={**kept.metadata, **context.kept})

    def _hint(self) -> str:
        tools = self._run.engine.tools.values()
        return cut_hint(tool for tool in tools if tool.id in self._offered)

    async def _within_limit(
        self, tool: Tool, context: "CallContext", values: Mapping[str, Any]
    ) -> ToolResult:
        limit_s = tool.timeout_s or self._run.engine.config.tool_timeout_s
        limit: asyncio.Timeout | None = None
        try:
            async with context.clock.running(limit_s) as limit:
                with self._run.engine.hooks.calling(tool.id), context.cancellable():
                    await context.requirements.settle(values)
                    await self._run.writer.passed(context.stored)  # before it can have an effect
                    result = await tool.call(context, values)
                    context.requirements.check()
                    return result
        except TimeoutError as error:
            if limit is None or not limit.expired():
                raise
            text = f"{tool.id} did not end within {limit_s:g} s."
            raise ToolError(" ".join((text, *_reported_state(error.__cause__)))) from error


def _by(plan: CallPlan) -> dict[str, Any]:
    """Return who made the call, the user or the model, for plugins that log decisions.

    For a user's call the result also has the arguments that are strings, such as a command line.
    """
    words = [text for text in plan.input.values() if isinstance(text, str) and text]
    return {"by": "user", "patterns": words} if plan.ordered else {"by": "model"}


async def _values(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, object]:
    if tool.quick(args):
        return tool.validate(args)
    return await asyncio.to_thread(tool.validate, args)


def cut_hint(tools: Iterable[Tool]) -> str:
    """Return a hint how the model can read the file of a truncated output with its tools."""
    return " ".join((*filter(None, (tool.on_cut for tool in tools)), NOT_WHOLE))


def _words(error: BaseException) -> str:
    """Return the message of an error, even if `str` fails; join the errors of a task group."""
    if isinstance(error, BaseExceptionGroup):
        named = (f"{type(each).__name__}: {_words(each)}" for each in error.exceptions[:MOST_NAMED])
        return "; ".join(named)
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a tool's exceptions are foreign code
        return "its text cannot be had"


def _reported_state(error: BaseException | None) -> tuple[str, ...]:
    """Return the message that a cancelled tool has raised with its own `CancelledError`.

    The message reports how far the tool came. The result is () if there is none.
    """
    own = isinstance(error, asyncio.CancelledError) and error.__cause__ is not None
    return (str(error),) if own and error is not None and error.args else ()


def _nesting(value: object) -> int:
    """Return how deeply objects and arrays are nested in a JSON value."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in inner for item in items]
    return depth


async def _refuse(_: object, args: Mapping[str, Any]) -> ToolResult:
    raise ToolError(str(args["error"]))
