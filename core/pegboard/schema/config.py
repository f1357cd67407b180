"""The configuration of a project, with its agents, commands and services.

Keys are spelled as in the files (`small_model`), unlike the protocol's other values.
"""

from typing import Annotated, Any, Literal

import msgspec

from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Rule, Ruleset
from pegboard.schema.wire import Wire

SandboxLevel = Literal["off", "workspace", "strict"]
"""How tightly the processes of tools are enclosed, from the loosest to the strictest."""

Effect = Literal["reads", "edits", "runs", "delegates"]
"""What a call of a tool may do to files of the project.

`reads`: nothing, so it waits for no snapshot and fails if it wants to change a file. `edits`: it
writes, and says each file by `ToolContext.record_edit`. `runs`: whatever programs do. `delegates`:
nothing itself; it has other calls, or a subagent's, do it.
"""


Exposure = Literal["direct", "deferred", "hidden"]
"""How a model gets at a tool.

`direct`: it is in each request. `deferred`: it is in none until it is found, and can be called.
`hidden`: it can be neither found nor called.
"""


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all tables of the configuration, which sets the options of their structs."""


class AgentConfig(Table, frozen=True, forbid_unknown_fields=True):
    """The settings of one agent; a name that no plugin provides creates a new agent.

    `permission` and `project_permission` are the rules for this agent, in addition to those of
    `Config`. `effects` limit the agent's tools to these effects, as `Agent` documents; only the
    user can set them. `exposure` has precedence over that of `Config`.
    """

    model: str | None = None
    variant: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    prompt: str | None = None
    prompt_append: str | None = None
    description: str | None = None
    mode: Literal["primary", "subagent", "all"] | None = None
    hidden: bool | None = None
    disable: bool = False
    color: str | None = None
    steps: int | None = None
    effects: tuple[Effect, ...] | None = None
    exposure: dict[str, Exposure] = {}
    options: dict[str, Any] = {}
    permission: tuple[Rule, ...] = ()
    project_permission: tuple[Rule, ...] = ()


class CommandConfig(Table, frozen=True, forbid_unknown_fields=True):
    """A slash command that the user defines."""

    template: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    subtask: bool | None = None


class ProviderConfig(Table, frozen=True):
    """A provider that the user adds or changes.

    `options` has `baseURL`, `apiKey`, `headers`, `timeout_s` and `proxy`; `npm` is read for files
    made for OpenCode. `models` maps a model's id to its settings (name, limit, cost, options).
    `key` is the name of one of several stored keys. `key_command` is a program that prints the key.
    `fallback` replaces the fallback of `Config` for the models of this provider.
    """

    name: str | None = None
    npm: str | None = None
    api: str | None = None
    env: tuple[str, ...] = ()
    key: str | None = None
    key_command: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    models: dict[str, dict[str, Any]] = {}
    fallback: tuple[str, ...] = ()


class PluginConfig(Table, frozen=True):
    """The settings of one plugin; `options` are defined by the plugin."""

    enabled: bool = True
    timeout_s: float | None = None
    options: dict[str, Any] = {}


class FormatterConfig(Table, frozen=True, forbid_unknown_fields=True):
    """A formatter of files: a new formatter, or a known formatter that is changed or disabled.

    `command` is a program with its arguments, in which `$FILE` stands for the file. Naming a known
    formatter that runs code of the project (prettier's plugins) allows it.
    """

    disabled: bool = False
    command: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    environment: dict[str, str] = {}


class LspConfig(Table, frozen=True, forbid_unknown_fields=True):
    """A language server: a new server, or a known server that is changed or disabled.

    `command` is a program with its arguments, `initialization` the options sent at its start.
    Naming a known server that runs code of the project (rust's build scripts) allows it.
    """

    disabled: bool = False
    command: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    env: dict[str, str] = {}
    initialization: dict[str, Any] = {}


class CompactionConfig(Table, frozen=True, forbid_unknown_fields=True):
    """The settings of compaction: `auto` summarises long histories, `prune` clears old output."""

    auto: bool = True
    prune: bool = True


class RoleModels(Table, frozen=True, forbid_unknown_fields=True):
    """The models for special kinds of work, each as `provider/model`.

    `small` is for short side questions, `title` for titles only, and `compact` for summaries of
    long sessions. `task` is for subagents, `plan` for the agent that plans, and `vision` for
    prompts with images if the chosen model accepts none. An agent's own `model` has precedence.
    """

    small: str | None = None
    title: str | None = None
    compact: str | None = None
    task: str | None = None
    plan: str | None = None
    vision: str | None = None


class RetryConfig(Table, frozen=True, forbid_unknown_fields=True):
    """The limits for retries of a failing request to a model.

    `attempts` includes the first one. `total_s` is the time from the first failure to the last
    attempt. Waits that Pegboard chooses are at most `cap_s`; a provider may ask for longer ones.
    """

    attempts: Annotated[int, msgspec.Meta(ge=1)] = 6
    total_s: Annotated[float, msgspec.Meta(ge=0)] = 600.0
    cap_s: Annotated[float, msgspec.Meta(ge=0)] = 30.0


class Limits(Table, frozen=True, forbid_unknown_fields=True):
    """The limits of spending; None is no limit.

    `usd` is in US dollars. `tokens` counts all that models read and write. `steps` counts answers
    of models. `minutes` is running time without the waits for a user.
    """

    usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    minutes: Annotated[float, msgspec.Meta(ge=0)] | None = None
    steps: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tool_calls: Annotated[int, msgspec.Meta(ge=0)] | None = None


class RunLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """The limits of spending for one run, including subagents.

    The default of `steps` stops models that never finish: normal work takes tens, rarely hundreds
    of steps. `subagents` counts all started subagents, also by other subagents; thousands of them
    would be a chain reaction.
    """

    steps: Annotated[int, msgspec.Meta(ge=0)] | None = 1_000
    subagents: Annotated[int, msgspec.Meta(ge=0)] = 100


class BudgetConfig(Limits, frozen=True, forbid_unknown_fields=True):
    """The limits of spending for the whole life of a session, including subagents.

    `run` is for one run, from a prompt until the session is idle. `subagent` is for each subagent,
    including its own subagents. `unpriced` is whether a model with an unknown price may be asked
    while there is a limit in US dollars; its cost then counts as zero. No project can allow it.
    """

    run: RunLimits = RunLimits()
    subagent: Limits = Limits()
    unpriced: Literal["refuse", "allow"] = "refuse"


class ProcessLimits(Table, frozen=True, forbid_unknown_fields=True):
    """The limits of the processes of one tool call; 0 means no limit.

    `memory_mb` is for all of them together, by default three quarters of the machine's memory.
    `open_files` is for each process. A project may only lower them.
    """

    processes: Annotated[int, msgspec.Meta(ge=0)] = 2000
    open_files: Annotated[int, msgspec.Meta(ge=0)] = 65_536
    memory_mb: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def tighten(self, other: "ProcessLimits") -> "ProcessLimits":
        """Return the lower of each pair of limits, where 0 (no limit) is the highest."""
        return ProcessLimits(
            processes=_lower(self.processes, other.processes),
            open_files=_lower(self.open_files, other.open_files),
            memory_mb=_lower(self.memory_mb or 0, other.memory_mb or 0)
            or (0 if self.memory_mb == other.memory_mb == 0 else None),
        )


def _lower(limit: int, other: int) -> int:
    return min(limit, other) if limit and other else limit or other


class Config(Table, frozen=True, forbid_unknown_fields=True, weakref=True):
    """The whole configuration; models are named `provider/model`.

    Permissions: `permission` are the rules in the user's files, in order. `project_permission` are
    the rules in the project's files, which can only tighten. `rulesets` are further sources of
    rules that plugins set, which can only tighten. `approvals` are rules that plugins set: they
    allow requests which the user would be asked about, like permanent approvals, but are never
    stored. `auto_approve` allows requests that the user would be asked about, except those to be
    asked about every time. `permission_mode` names how much runs without asking if the user has no
    rule; plugins define the names. No project can set `auto_approve` or `permission_mode`.
    `continue_loop_on_deny` continues a turn after the user rejected a permission or a question.

    Sandbox: `sandbox` is the access of tool processes to files, `sandbox_network` their access to
    the network or to some hosts, `limits` their resources. With `sandbox_allow_commands`, a
    sandboxed command is not asked about.

    Models: `fallback` are models to ask in turn when the chosen one does not exist, refuses the
    key, or cannot be asked within `fallback_after_s` seconds. They are not asked once text was
    displayed. `title` is which model writes session titles: none ("off"), `small_model` if it is
    set ("small"), or `small_model` and else the answering model ("model").

    Plugins and tools: `plugins` maps a plugin's name to its settings, and `plugin_paths` are
    additional plugin files and folders. `exposure` maps patterns of tool ids and permissions to a
    tool's exposure to models; the last match counts, and a project can only hide. `mcp` are the
    user's tool servers by name, `project_mcp` those of a trusted project; a plugin starts them.

    `keyring` is whether the system's keyring may be asked for keys. `resume_on_restart` is whether
    a server continues the sessions that ran when the last one ended. `profile` has tables of these
    same keys, by the name that selects one for a run.
    """

    model: str | None = None
    small_model: str | None = None
    models: RoleModels = RoleModels()
    fallback: tuple[str, ...] = ()
    fallback_after_s: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    title: Literal["off", "small", "model"] = "small"
    default_agent: str | None = None
    username: str | None = None
    agent: dict[str, AgentConfig] = {}
    command: dict[str, CommandConfig] = {}
    provider: dict[str, ProviderConfig] = {}
    disabled_providers: tuple[str, ...] = ()
    enabled_providers: tuple[str, ...] | None = None
    instructions: tuple[str, ...] = ()
    permission: tuple[Rule, ...] = ()
    project_permission: tuple[Rule, ...] = ()
    rulesets: tuple[Ruleset, ...] = ()
    approvals: tuple[Rule, ...] = ()
    auto_approve: bool = False
    permission_mode: str | None = None
    sandbox: SandboxLevel = "off"
    sandbox_network: bool | tuple[str, ...] = False
    sandbox_allow_commands: bool = False
    limits: ProcessLimits = ProcessLimits()
    exposure: dict[str, Exposure] = {}
    mcp: dict[str, dict[str, Any]] = {}
    project_mcp: dict[str, dict[str, Any]] = {}
    plugins: dict[str, PluginConfig] = {}
    plugin_paths: tuple[str, ...] = ()
    formatter: dict[str, FormatterConfig] = {}
    lsp: dict[str, LspConfig] = {}
    compaction: CompactionConfig = CompactionConfig()
    retry: RetryConfig = RetryConfig()
    budget: BudgetConfig = BudgetConfig()
    snapshot: bool = True
    hook_timeout_s: float = 5.0
    tool_timeout_s: float = 600.0
    stream_idle_timeout_s: float = 120.0
    keyring: bool = True
    resume_on_restart: bool = False
    continue_loop_on_deny: bool = False
    profile: dict[str, dict[str, Any]] = {}


AgentWork = Literal["titles", "summaries"]
"""What the engine has an agent for: titles of sessions, summaries of histories."""
Purpose = Literal["turn", "aside"] | AgentWork
"""The purpose of a request: a session's own turn, a side question, its title or a summary."""


class Agent(Wire, frozen=True, weakref=True):
    """A role of the model, with a prompt, a model and permissions of its own.

    A primary agent talks to the user; a subagent is called by the `task` tool. `steps` is the limit
    of requests to the model in a turn, None for no limit. `prompt` replaces the default prompt, and
    `prompt_append` follows it. `on_enter` is a note for the model when this agent takes over from
    another, `on_leave` when another takes over. `serves` is the engine's own work that this agent
    does: writing titles or summaries. An agent with `effects` has only tools with one of these
    effects, and tools that its own rules or the user's rules allow.
    """

    name: str
    mode: Literal["primary", "subagent", "all"]
    permission: tuple[Rule, ...]
    options: dict[str, Any]
    description: str | None = None
    native: bool = False
    hidden: bool = False
    temperature: float | None = None
    top_p: float | None = None
    color: str | None = None
    model: ModelChoice | None = None
    variant: str | None = None
    prompt: str | None = None
    prompt_append: str | None = None
    steps: int | None = None
    on_enter: str | None = None
    on_leave: str | None = None
    serves: AgentWork | None = None
    effects: tuple[Effect, ...] = ()


class Command(Wire, frozen=True):
    """A slash command: a template that becomes a prompt.

    `location` is the file of a skill's text, None for any other command. `argument_names` are the
    names of the arguments in a Claude Code template, in which `$0` is the first word. None means a
    template with Pegboard's placeholders.
    """

    name: str
    template: str
    hints: tuple[str, ...]
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    source: Literal["command", "mcp", "skill"] | None = None
    subtask: bool | None = None
    location: str | None = None
    argument_names: tuple[str, ...] | None = None

    @property
    def is_document(self) -> bool:
        """Whether the text of the command was written for any model, as in a skill.

        Such a text contains no commands to run.
        """
        return self.source not in (None, "command")


ServiceState = (
    Literal["ready", "starting", "running", "failed", "absent", "disabled"]
    | Literal["needs_auth", "needs_registration", "changed"]
)


class Service(Wire, frozen=True):
    """A service of the kind `kind`, such as a language server or a formatter.

    `ready` means installed but not started, `absent` not installed. In the state `needs_auth` the
    service waits for the user to sign in, in `needs_registration` for a client id in the settings,
    and in `changed` for the user's review. `error` is the reason for a failure or wait. `root` is
    the folder that it works in. `extensions` are the suffixes of its files.
    """

    kind: str
    name: str
    state: ServiceState
    root: str = ""
    extensions: tuple[str, ...] = ()
    error: str = ""
