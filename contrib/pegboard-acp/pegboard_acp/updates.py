"""The types of ACP, protocol version 1, that Pegboard sends, with the names of the schema."""

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
    """A part of a streamed message; all chunks of a message have the same message id."""

    content: TextBlock | ImageBlock | LinkBlock
    message_id: str


class UserChunk(Chunk, frozen=True, tag="user_message_chunk"):
    """A chunk of the user's prompt."""


class AgentChunk(Chunk, frozen=True, tag="agent_message_chunk"):
    """A chunk of the model's answer."""


class ThoughtChunk(Chunk, frozen=True, tag="agent_thought_chunk"):
    """A chunk of the model's reasoning."""


class CallBlock(AcpValue, frozen=True, tag_field="type", tag="content"):
    """A block that a tool call produced."""

    content: TextBlock | ImageBlock


class DiffContent(AcpValue, frozen=True, tag_field="type", tag="diff"):
    """A change of a file; `old_text` is None for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class Location(AcpValue, frozen=True):
    """A file that a tool call reads or changes: its absolute path, and a line number from 1."""

    path: str
    line: int | None = None


class CallFields(AcpValue, frozen=True):
    """The fields of a tool call; in an update, only changed fields are set."""

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
    """The update for a new tool call."""


class CallChanged(CallFields, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """The update for changes of a known tool call."""


class PlanEntry(AcpValue, frozen=True):
    """One entry of a plan: a todo with its priority and status."""

    content: str
    priority: PlanPriority
    status: PlanStatus


class Plan(AcpValue, frozen=True, tag_field="sessionUpdate", tag="plan"):
    """The update with the whole plan."""

    entries: tuple[PlanEntry, ...]


class CommandInput(AcpValue, frozen=True):
    """The description of a slash command's arguments."""

    hint: str


class AvailableCommand(AcpValue, frozen=True):
    """A slash command."""

    name: str
    description: str
    input: CommandInput | None = None


class CommandsChanged(
    AcpValue, frozen=True, tag_field="sessionUpdate", tag="available_commands_update"
):
    """The update with all slash commands."""

    available_commands: tuple[AvailableCommand, ...]


class ModeChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="current_mode_update"):
    """The update for a change of the agent that answers."""

    current_mode_id: str


class SelectValue(AcpValue, frozen=True):
    """A value that the user can select for an option."""

    value: str
    name: str
    description: str | None = None


class SelectOption(AcpValue, frozen=True, tag_field="type", tag="select"):
    """An option of a session, with the possible values and the selected value."""

    id: str
    name: str
    category: str
    current_value: str
    options: tuple[SelectValue, ...]


class OptionsChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="config_option_update"):
    """The update with all options of a session and their values."""

    config_options: tuple[SelectOption, ...]


class InfoChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="session_info_update"):
    """The update for a new title of a session."""

    title: str
    updated_at: str


class Cost(AcpValue, frozen=True):
    """An amount of money."""

    amount: float
    currency: str


class UsageChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="usage_update"):
    """The update with the tokens in the context window and the session's cost so far."""

    used: int
    size: int
    cost: Cost | None = None


class Notice(AcpValue, frozen=True, tag_field="sessionUpdate", tag="notice"):
    """The update with a message for the user that is not part of the conversation."""

    severity: Literal["info", "warning", "error"]
    title: str


class CompactionChanged(AcpValue, frozen=True, tag_field="sessionUpdate", tag="compaction_update"):
    """The update for the state of a compaction."""

    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    error: str | None = None


class CompactionChunk(
    AcpValue, frozen=True, tag_field="sessionUpdate", tag="compaction_summary_chunk"
):
    """A chunk of a compaction's summary."""

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
    """A mode of ACP: an agent that can talk to the user."""

    id: str
    name: str
    description: str | None = None


class Modes(AcpValue, frozen=True):
    """The available modes of a session, and the current mode."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...]


class SessionState(AcpValue, frozen=True, kw_only=True):
    """The answer to a request that opens a session; `session_id` is set for a new session."""

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
    """One page of the list of sessions."""

    sessions: tuple[SessionEntry, ...]
    next_cursor: str | None = None


class TurnUsage(AcpValue, frozen=True, omit_defaults=False):
    """The total tokens of a turn's answers; a field that only ACP's unstable schema defines."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    thought_tokens: int
    cached_read_tokens: int
    cached_write_tokens: int


class PromptResult(AcpValue, frozen=True):
    """The result of a prompt: why the answer stopped, and the token usage."""

    stop_reason: StopReason
    usage: TurnUsage | None = None


class PermissionOption(AcpValue, frozen=True):
    """An option that the user can choose to answer a permission request."""

    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
