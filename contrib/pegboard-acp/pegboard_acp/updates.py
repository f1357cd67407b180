"""The values of ACP, protocol version 1, that Pegboard sends; names are the schema's."""

from typing import Any, Literal

from pegboard_acp.protocol import AcpValue, ImageBlock, LinkBlock, TextBlock

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
PlanPriority = Literal["high", "medium", "low"]
PlanStatus = Literal["pending", "in_progress", "completed"]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]


class Chunk(AcpValue, frozen=True, omit_defaults=False, tag_field="sessionUpdate"):
    """A piece of a message; pieces with the same id are one message."""

    content: TextBlock | ImageBlock | LinkBlock
    message_id: str


class UserChunk(Chunk, frozen=True, tag="user_message_chunk"):
    """A piece of a prompt."""


class AgentChunk(Chunk, frozen=True, tag="agent_message_chunk"):
    """A piece of an answer."""


class ThoughtChunk(Chunk, frozen=True, tag="agent_thought_chunk"):
    """A piece of the model's reasoning."""


class CallBlock(AcpValue, frozen=True, tag_field="type", tag="content"):
    """A block that a tool call produced."""

    content: TextBlock | ImageBlock


class DiffContent(AcpValue, frozen=True, tag_field="type", tag="diff"):
    """A change of a file; `old_text` is None for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class Location(AcpValue, frozen=True):
    """A file that a call concerns, by its absolute path; lines count from 1."""

    path: str
    line: int | None = None


class CallFields(AcpValue, frozen=True):
    """A tool call; an update replaces the fields that it has."""

    tool_call_id: str
    title: str | None = None
    name: str | None = None
    kind: ToolKind | None = None
    status: ToolStatus | None = None
    content: tuple[CallBlock | DiffContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: dict[str, Any] | None = None
    raw_output: dict[str, Any] | None = None


class CallStarted(CallFields, frozen=True, tag_field="sessionUpdate", tag="tool_call"):
    """A tool call that the client does not know yet."""


class CallChanged(CallFields, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """News of a tool call."""


class PlanEntry(AcpValue, frozen=True):
    """One task of the plan."""

    content: str
    priority: PlanPriority
    status: PlanStatus


class Plan(AcpValue, frozen=True, tag_field="sessionUpdate", tag="plan"):
    """The whole plan."""

    entries: tuple[PlanEntry, ...]


class CommandInput(AcpValue, frozen=True):
    """The arguments of a command."""

    hint: str


class AvailableCommand(AcpValue, frozen=True):
    """A slash command."""

    name: str
    description: str
    input: CommandInput | None = None


class CommandsChanged(
    AcpValue, frozen=True, tag_field="sessionUpdate", tag="available_commands_update"
):
    """The slash commands."""

    available_commands: tuple[AvailableCommand, ...]


class ModeChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="current_mode_update"):
    """Another agent answers from now on."""

    current_mode_id: str


class SelectValue(AcpValue, frozen=True):
    """One value of an option."""

    value: str
    name: str
    description: str | None = None


class SelectOption(AcpValue, frozen=True, tag_field="type", tag="select"):
    """A choice that holds for a session."""

    id: str
    name: str
    category: str
    current_value: str
    options: tuple[SelectValue, ...]


class OptionsChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="config_option_update"):
    """The options with their values."""

    config_options: tuple[SelectOption, ...]


class InfoChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="session_info_update"):
    """A session has another title."""

    title: str
    updated_at: str


class Cost(AcpValue, frozen=True):
    """An amount of money."""

    amount: float
    currency: str


class UsageChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="usage_update"):
    """The tokens in the window, and the cost of the session so far."""

    used: int
    size: int
    cost: Cost | None = None


class Notice(AcpValue, frozen=True, tag_field="sessionUpdate", tag="notice"):
    """News for the user that are no part of the session."""

    severity: Literal["info", "warning", "error"]
    title: str


class CompactionChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="compaction_update"):
    """The state of a compaction."""

    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    error: str | None = None


class CompactionChunk(
    AcpValue, frozen=True, tag_field="sessionUpdate", tag="compaction_summary_chunk"
):
    """A piece of a summary."""

    compaction_id: str
    content: TextBlock


Update = (
    UserChunk
    | AgentChunk
    | ThoughtChunk
    | CallStarted
    | CallChanged
    | Plan
    | CommandsChanged
    | ModeChanged
    | OptionsChanged
    | InfoChanged
    | UsageChanged
    | Notice
    | CompactionChanged
    | CompactionChunk
)


class SessionMode(AcpValue, frozen=True):
    """An agent that talks to the user."""

    id: str
    name: str
    description: str | None = None


class Modes(AcpValue, frozen=True):
    """The modes, and the current one."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...]


class SessionState(AcpValue, frozen=True, kw_only=True):
    """The state of an open session; a new one has an id."""

    session_id: str | None = None
    modes: Modes
    config_options: tuple[SelectOption, ...]


class SessionEntry(AcpValue, frozen=True):
    """A session in a list; times are ISO 8601."""

    session_id: str
    cwd: str
    title: str
    updated_at: str


class Sessions(AcpValue, frozen=True, omit_defaults=False):
    """One page of the list."""

    sessions: tuple[SessionEntry, ...]
    next_cursor: str | None = None


class TurnUsage(AcpValue, frozen=True, omit_defaults=False):
    """The tokens of all answers of a turn; a field of the unstable schema."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    thought_tokens: int
    cached_read_tokens: int
    cached_write_tokens: int


class PromptResult(AcpValue, frozen=True):
    """The end of a turn."""

    stop_reason: StopReason
    usage: TurnUsage | None = None


class PermissionOption(AcpValue, frozen=True):
    """One way to answer a permission request."""

    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
