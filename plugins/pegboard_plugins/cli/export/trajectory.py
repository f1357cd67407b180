"""The export of a session in the Agent Trajectory Interchange Format (ATIF), version 1.7.

The format is defined in RFC 0001 of the Harbor framework, "Agent Trajectory Interchange Format
(ATIF) Specification".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Literal

import msgspec

from pegboard import InvalidInputError
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import (
    AgentPart,
    CompactionPart,
    Completed,
    Failed,
    FilePart,
    Part,
    PatchPart,
    Pending,
    ReasoningPart,
    RetryPart,
    StepStartPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import Tokens
from pegboard.schema.wire import encode
from pegboard_plugins.shared.frontend import Conversation

VERSION = "ATIF-v1.7"


class _Atif(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of the trajectory format ATIF; JSON omits fields that have no value."""


class TrajectoryAgent(_Atif, frozen=True, kw_only=True):
    """The program that ran the agent; `model_name` is the model of the last request."""

    name: str
    version: str
    model_name: str | None = None
    extra: Mapping[str, Any] | None = None


class TrajectoryCall(_Atif, frozen=True, kw_only=True):
    """A tool call."""

    tool_call_id: str
    function_name: str
    arguments: Mapping[str, Any]
    extra: Mapping[str, Any] | None = None


class SubagentReference(_Atif, frozen=True, kw_only=True):
    """A reference to a subagent's trajectory, which the parent's trajectory contains, by its id."""

    trajectory_id: str


class CallObservation(_Atif, frozen=True, kw_only=True):
    """The result of a tool call."""

    source_call_id: str
    content: str
    subagent_trajectory_ref: tuple[SubagentReference, ...] = ()
    extra: Mapping[str, Any] | None = None


class StepObservation(_Atif, frozen=True, kw_only=True):
    """The results of the calls of a step."""

    results: tuple[CallObservation, ...]


class StepMetrics(_Atif, frozen=True, kw_only=True):
    """The usage of one model request; `prompt_tokens` includes cached tokens."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost_usd: float | None = None
    extra: Mapping[str, Any] | None = None


class TrajectoryStep(_Atif, frozen=True, kw_only=True):
    """One message as a step; `llm_call_count` is 0 for a user's own shell command."""

    step_id: int = 0
    timestamp: str
    source: Literal["system", "user", "agent"]
    message: str
    model_name: str | None = None
    reasoning_effort: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[TrajectoryCall, ...] = ()
    observation: StepObservation | None = None
    metrics: StepMetrics | None = None
    llm_call_count: int | None = None
    extra: Mapping[str, Any] | None = None


class TrajectoryMetrics(_Atif, frozen=True, kw_only=True):
    """The totals of a trajectory; the cost includes subagents."""

    total_prompt_tokens: int
    total_completion_tokens: int
    total_cached_tokens: int
    total_cost_usd: float | None = None
    total_steps: int


class Trajectory(_Atif, frozen=True, kw_only=True):
    """The trajectory of a session, which contains the trajectories of its subagents."""

    schema_version: str
    session_id: str
    trajectory_id: str
    agent: TrajectoryAgent
    steps: tuple[TrajectoryStep, ...]
    notes: str | None = None
    final_metrics: TrajectoryMetrics
    subagent_trajectories: "tuple[Trajectory, ...]" = ()


def session_trajectory(conversations: Sequence[Conversation], *, last: int | None = None) -> bytes:
    """Return the first session as a JSON document; the others are its subagents, inside it.

    `last` is the number of prompts if the session was limited; the cost is then left out.

    :raises InvalidInputError: when the session has no message.
    """
    if not conversations[0].turns:
        raise InvalidInputError(
            f"{conversations[0].info.id} has no message yet, and a trajectory has at least one: "
            "name another session, or export this one with --jsonl"
        )
    document = _trajectory(conversations[0], conversations[1:], last)
    return msgspec.json.format(encode(document), indent=2) + b"\n"


def _trajectory(
    conversation: Conversation, others: Sequence[Conversation], last: int | None
) -> Trajectory:
    info = conversation.info
    inner = [each for each in others if each.info.parent_id == info.id and each.turns]
    waiting = {each.info.id for each in inner}
    each_step = chain.from_iterable(_steps(turn, waiting) for turn in conversation.turns)
    steps = [msgspec.structs.replace(each, step_id=n) for n, each in enumerate(each_step, 1)]
    model = info.model
    return Trajectory(
        schema_version=VERSION,
        session_id=info.id,
        trajectory_id=info.id,
        agent=TrajectoryAgent(
            name="pegboard",
            version=info.version,
            model_name=f"{model.provider_id}/{model.id}" if model else None,
            extra={"title": info.title, "directory": info.directory},
        ),
        steps=tuple(steps),
        notes=None if last is None else f"Only the last {last} prompts of the session.",
        final_metrics=_sums(steps, info.known_cost if last is None else None),
        subagent_trajectories=tuple(_trajectory(each, others, None) for each in inner),
    )


def _sums(steps: Sequence[TrajectoryStep], cost: float | None) -> TrajectoryMetrics:
    metrics = [each.metrics for each in steps if each.metrics is not None]
    return TrajectoryMetrics(
        total_prompt_tokens=sum(each.prompt_tokens for each in metrics),
        total_completion_tokens=sum(each.completion_tokens for each in metrics),
        total_cached_tokens=sum(each.cached_tokens for each in metrics),
        total_cost_usd=cost,
        total_steps=len(steps),
    )


def _steps(turn: Turn, waiting: set[str]) -> Iterator[TrajectoryStep]:
    info = turn.info
    if isinstance(info, AssistantMessage):
        yield _answer(info, turn.parts, waiting)
        return
    own = "\n\n".join(_own_texts(turn.parts))
    added = "\n\n".join(_added_texts(info, turn.parts))
    extra = {"message_id": info.id}
    at = _timestamp(info)
    if own or not added:
        yield TrajectoryStep(timestamp=at, source="user", message=own, extra=extra)
    if added:
        yield TrajectoryStep(timestamp=at, source="system", message=added, extra=extra)


def _own_texts(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the user's own texts in a prompt, and the names of attachments and agents."""
    for part in parts:
        match part:
            case TextPart(synthetic=False, ignored=False, text=text):
                yield text
            case FilePart():
                yield _file(part)
            case AgentPart(name=name):
                yield f"@{name}"
            case SubtaskPart(agent=agent, prompt=prompt):
                yield f"@{agent} {prompt}"
            case _:
                pass


def _added_texts(info: UserMessage, parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts that Pegboard added to a prompt."""
    yield from filter(None, info.orders)
    for part in parts:
        match part:
            case TextPart(synthetic=True, ignored=False, text=text):
                yield text
            case CompactionPart():
                yield "The earlier messages are replaced by the summary that follows."
            case _:
                pass


def _answer(info: AssistantMessage, parts: Sequence[Part], waiting: set[str]) -> TrajectoryStep:
    calls = [part for part in parts if isinstance(part, ToolPart)]
    texts = [each.text for each in parts if isinstance(each, TextPart) and not each.ignored]
    thoughts = [each.text for each in parts if isinstance(each, ReasoningPart)]
    results = tuple(_observations(calls, waiting))
    is_asked = (
        bool(thoughts)
        or info.tokens != Tokens()
        or any(isinstance(each, StepStartPart) for each in parts)
    )
    return TrajectoryStep(
        timestamp=_timestamp(info),
        source="agent",
        message="\n\n".join(texts),
        model_name=f"{info.provider_id}/{info.model_id}",
        reasoning_effort=info.variant,
        reasoning_content="\n\n".join(thoughts) or None,
        tool_calls=tuple(map(_call, calls)),
        observation=StepObservation(results=results) if results else None,
        metrics=_metrics(info) if is_asked else None,
        llm_call_count=int(is_asked),
        extra=dict(_extra(info, parts)),
    )


def _call(part: ToolPart) -> TrajectoryCall:
    state = part.state
    extra: dict[str, Any] = {"call_id": part.call_id}
    if isinstance(state, Pending) and state.raw:
        extra["raw_arguments"] = state.raw
    return TrajectoryCall(
        tool_call_id=part.id, function_name=part.tool, arguments=state.input, extra=extra
    )


def _observations(calls: Iterable[ToolPart], waiting: set[str]) -> Iterator[CallObservation]:
    """Yield the results of tool calls, with a reference to the subagent that a call started.

    `waiting` are ids of subagents without a reference yet. The first call that contains an id in
    its state gets the reference, and the id is removed.
    """
    for part in calls:
        match part.state:
            case Completed(output=output, attachments=attachments):
                content, extra = "\n\n".join((output, *map(_file, attachments))), None
            case Failed(error=content):
                extra = {"status": "error"}
            case _:
                continue
        named = encode(part.state).decode() if waiting else ""
        found = sorted(each for each in waiting if each in named)
        waiting.difference_update(found)
        yield CallObservation(
            source_call_id=part.id,
            content=content,
            subagent_trajectory_ref=tuple(SubagentReference(trajectory_id=id_) for id_ in found),
            extra=extra,
        )


def _metrics(info: AssistantMessage) -> StepMetrics:
    tokens = info.tokens
    return StepMetrics(
        prompt_tokens=tokens.input + tokens.cache.read + tokens.cache.write,
        completion_tokens=tokens.output + tokens.reasoning,
        cached_tokens=tokens.cache.read,
        cost_usd=info.cost,
        extra={"reasoning_tokens": tokens.reasoning, "cache_write_tokens": tokens.cache.write},
    )


def _extra(info: AssistantMessage, parts: Iterable[Part]) -> Iterator[tuple[str, object]]:
    yield "message_id", info.id
    yield "agent", info.agent
    if info.finish:
        yield "finish", info.finish
    if info.summary:
        yield "is_summary", True
    if info.error is not None:
        name = info.error.__struct_config__.tag
        yield "error", {"name": name, "message": info.error.data.message}
    if retries := sum(isinstance(each, RetryPart) for each in parts):
        yield "failed_attempts", retries
    if files := sorted(
        {file for each in parts if isinstance(each, PatchPart) for file in each.files}
    ):
        yield "changed_files", files


def _file(part: FilePart) -> str:
    """Return a line that names a file, because a trajectory has no content of files."""
    return f"[file: {part.filename or 'without a name'} ({part.mime})]"


def _timestamp(info: UserMessage | AssistantMessage) -> str:
    return datetime.fromtimestamp(info.time.created / 1000, UTC).isoformat()
