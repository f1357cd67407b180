"""The spans and metrics of activities: turns, model requests and tool calls."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise

from opentelemetry import context, propagate, trace
from opentelemetry.metrics import Histogram, Meter
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from pegboard import Activity, PendingCall, ToolResult, __version__
from pegboard.errors import ProviderError
from pegboard.plugins import FoldStep
from pegboard.providers import ModelRequest, StreamFinish, Usage
from pegboard_otel import content, names

Value = str | bool | int | float | tuple[str, ...]
Attributes = dict[str, Value]
SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class _Turn:
    """The span of the running turn, with the numbers of the turn's model and tool calls."""

    span: Span
    model_calls: int = 0
    tool_calls: int = 0


_CURRENT: ContextVar[_Turn | None] = ContextVar("pegboard_otel_turn", default=None)


class Spans:
    """A factory of OpenTelemetry spans and metrics; `parent` is the parent of top-level turns.

    `capture` says whether contents of messages and calls go into spans, into span events, or
    nowhere. With `has_old_names`, the names of older conventions are sent in addition.
    """

    def __init__(
        self,
        tracer: Tracer,
        meter: Meter,
        *,
        capture: content.Capture,
        parent: Mapping[str, str],
        has_old_names: bool,
    ) -> None:
        self._tracer = tracer
        self._capture = capture
        self._parent = dict(parent)
        self._has_old = has_old_names
        self._durations = {
            kind: [
                meter.create_histogram(each, "s", explicit_bucket_boundaries_advisory=names.SECONDS)
                for each in (name, *([names.OLD_SECONDS.get(name)] if has_old_names else []))
                if each
            ]
            for kind, name in (
                ("turn", names.AGENT_DURATION),
                ("model", names.MODEL_DURATION),
                ("tool", names.TOOL_DURATION),
                ("first", names.MODEL_FIRST_CHUNK),
                ("chunk", names.MODEL_CHUNK),
            )
        }
        self._old_tokens = meter.create_histogram(
            names.OLD_TOKENS, "{token}", explicit_bucket_boundaries_advisory=names.TOKENS
        )
        self._calls = tuple(
            meter.create_histogram(name, "{call}", explicit_bucket_boundaries_advisory=names.CALLS)
            for name in (names.AGENT_MODEL_CALLS, names.AGENT_TOOL_CALLS)
        )
        self._counters = {
            key: meter.create_counter(name, "{token}") for key, name in names.COUNTERS.items()
        }
        self._sizes: dict[str, Histogram] = {
            key: meter.create_histogram(
                name, "{token}", explicit_bucket_boundaries_advisory=names.TOKENS
            )
            for key, name in names.SIZES.items()
        }

    @contextmanager
    def around(self, activity: Activity) -> Iterator[None]:
        """Run the `with` block with a new span for the activity as the current span."""
        started_ns = time.time_ns()
        turn = _CURRENT.get()
        span = self._begun(activity, turn, started_ns)
        of = _Turn(span) if activity.kind == "turn" else turn
        token, outer = context.attach(trace.set_span_in_context(span)), _CURRENT.set(of)
        try:
            yield
        finally:
            _CURRENT.reset(outer)
            context.detach(token)
            self._end(activity, span, of, started_ns)

    def note_text(self, text: str) -> None:
        """Add a text of the model to the request's span, if contents are enabled."""
        if self._capture != "NO_CONTENT":
            self._put(trace.get_current_span(), names.OUTPUT_MESSAGES, content.answer(text))

    def note_fold(self, step: FoldStep) -> None:
        """Add a child span for a plugin's call of a hook that transforms a value."""
        ended_ns = time.time_ns()
        known: Attributes = {
            names.HOOK_NAME: step.hook,
            names.HOOK_PLUGIN: step.plugin,
            names.HOOK_CHANGED: step.after is not step.before,
        }
        if step.session_id:
            known[names.CONVERSATION] = step.session_id
        span = self._tracer.start_span(
            f"{names.HOOK} {step.hook}",
            attributes=known,
            start_time=ended_ns - int(step.elapsed_ms * 1_000_000),
        )
        span.end(ended_ns)

    def _begun(self, activity: Activity, turn: _Turn | None, started_ns: int) -> Span:
        name, kind, attributes = _identity(activity)
        above = None
        if activity.kind == "turn" and not trace.get_current_span().get_span_context().is_valid:
            above = propagate.extract(self._parent)
        elif activity.kind == "tool" and turn is not None:
            # Tools run while their request is still current, and are no part of it.
            above = trace.set_span_in_context(turn.span)
        if turn is not None:
            turn.model_calls += activity.kind == "model"
            turn.tool_calls += activity.kind == "tool"
        span = self._tracer.start_span(
            name, above, kind, attributes=attributes, start_time=started_ns
        )
        if self._capture != "NO_CONTENT":
            match activity.asked:
                case ModelRequest(messages=messages):
                    self._put(span, names.INPUT_MESSAGES, content.news(messages))
                case PendingCall():
                    said = content.value(activity.asked.input)
                    self._put(span, names.TOOL_ARGUMENTS, said)
        return span

    def _end(self, activity: Activity, span: Span, turn: _Turn | None, started_ns: int) -> None:
        ended_ns = activity.last_ns or time.time_ns()
        duration_s = (ended_ns - started_ns) / SECOND_NS
        measured = _measured(activity)
        match activity.outcome:
            case StreamFinish() as finish:
                self._answered(activity, span, finish, measured, started_ns)
            case ToolResult(output=output) if self._capture != "NO_CONTENT":
                self._put(span, names.TOOL_RESULT, content.value(output))
        if error := error_type(activity):
            span.set_status(StatusCode.ERROR)
            span.set_attribute(names.ERROR_TYPE, error)
            measured[names.ERROR_TYPE] = error
        self._measure(activity.kind, duration_s, measured)
        if activity.kind == "turn" and turn is not None:
            for histogram, calls in zip(
                self._calls, (turn.model_calls, turn.tool_calls), strict=True
            ):
                histogram.record(calls, measured)
        span.end(ended_ns)

    def _answered(
        self,
        activity: Activity,
        span: Span,
        finish: StreamFinish,
        measured: Attributes,
        started_ns: int,
    ) -> None:
        span.set_attribute(names.FINISH_REASONS, (finish.reason,))
        if activity.chunks_ns:
            first_s = (activity.chunks_ns[0] - started_ns) / SECOND_NS
            span.set_attribute(names.FIRST_CHUNK, first_s)
            self._measure("first", first_s, measured)
        for before_ns, chunk_ns in pairwise(activity.chunks_ns):
            self._measure("chunk", (chunk_ns - before_ns) / SECOND_NS, measured)
        for key, count in _tokens(finish.usage).items():
            span.set_attribute(key, count)
            self._counters[key].add(count, measured)
            if key in self._sizes:
                self._sizes[key].record(count, measured)
            if self._has_old and key in names.OLD_USAGE_KINDS:
                kind = {names.OLD_USAGE_KIND: names.OLD_USAGE_KINDS[key]}
                self._old_tokens.record(count, {**measured, **kind})
            if self._has_old and key == names.CACHE_WRITE:
                span.set_attribute(names.OLD_CACHE_WRITE, count)

    def _measure(self, kind: str, seconds: float, measured: Attributes) -> None:
        for histogram in self._durations[kind]:
            histogram.record(seconds, measured)

    def _put(self, span: Span, name: str, text: str) -> None:
        """Add content to the span, to a span event, or to both."""
        if self._capture in ("SPAN_ONLY", "SPAN_AND_EVENT"):
            span.set_attribute(name, text)
        if self._capture in ("EVENT_ONLY", "SPAN_AND_EVENT"):
            span.add_event("gen_ai.client.inference.operation.details", {name: text})


def error_type(activity: Activity) -> str:
    """Return the OpenTelemetry name for an activity's error, or "" if there was no error."""
    match activity.error:
        case None:
            outcome = activity.outcome
            failed = isinstance(outcome, StreamFinish) and outcome.reason == "error"
            return "error" if failed else ""
        case ProviderError(status=int(status)):
            return str(status)
        case error:
            return type(error).__name__


def _identity(activity: Activity) -> tuple[str, SpanKind, Attributes]:
    """Return the name, kind and initial attributes of an activity's span."""
    known: Attributes = {names.CONVERSATION: activity.session_id, **_measured(activity)}
    kind = SpanKind.CLIENT if activity.kind == "model" else SpanKind.INTERNAL
    match activity.kind:
        case "turn":
            known[names.AGENT_VERSION] = __version__
        case "tool":
            known |= {names.TOOL_CALL: activity.id, names.TOOL_TYPE: "function"}
        case "model" if isinstance(activity.asked, ModelRequest):
            known |= _parameters(activity.asked)
    return f"{known[names.OPERATION]} {activity.name}".strip(), kind, known


def _measured(activity: Activity) -> Attributes:
    """Return the attributes for metrics: few different values, and no ids."""
    match activity.kind:
        case "turn":
            return {names.OPERATION: "invoke_agent", names.AGENT_NAME: activity.name}
        case "tool":
            return {names.OPERATION: "execute_tool", names.TOOL_NAME: activity.name}
        case "model":
            known: Attributes = {names.OPERATION: "chat", names.MODEL: activity.name}
            if isinstance(activity.asked, ModelRequest):
                provider = activity.asked.model.provider_id
                known[names.PROVIDER] = names.PROVIDERS.get(provider, provider)
            return known


def _parameters(request: ModelRequest) -> Attributes:
    found = {
        names.TEMPERATURE: request.temperature,
        names.TOP_P: request.top_p,
        names.MAX_TOKENS: request.max_output_tokens,
    }
    return {name: value for name, value in found.items() if value is not None}


def _tokens(usage: Usage | None) -> Mapping[str, int]:
    """Return the token counts of a request; totals include cache and reasoning tokens."""
    if usage is None:
        return {}
    found = {
        names.INPUT_TOKENS: usage.input + usage.cache_read + usage.cache_write,
        names.OUTPUT_TOKENS: usage.output + usage.reasoning,
        names.CACHE_READ: usage.cache_read,
        names.CACHE_WRITE: usage.cache_write,
        names.REASONING: usage.reasoning,
    }
    always = (names.INPUT_TOKENS, names.OUTPUT_TOKENS)
    return {name: count for name, count in found.items() if count or name in always}
