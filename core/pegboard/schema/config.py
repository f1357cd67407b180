"""A project's configuration, its agents, and the programs that plugins run for it.

Keys are spelt as in the files (`small_model`, `default_agent`), unlike the protocol's other values.
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
    """The settings that every table of the configuration shares."""


class AgentConfig(Table, frozen=True, forbid_unknown_fields=True):
    """The settings of one agent; a name that no plugin gives makes a new agent.

    `permission` and `project_permission` are the agent's share of the two of `Config`. `effects`
    are as in `Agent`; only the user can set them. `exposure` comes after that of `Config`.
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
    """A slash command of the user's."""

    template: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    subtask: bool | None = None


class ProviderConfig(Table, frozen=True):
    """A provider that the user adds or changes.

    `options` has `baseURL`, `apiKey`, `headers`, `timeout_s`, `proxy`; `npm` is read for files made
    for OpenCode. `models` maps a model's id to what is known of it (name, limit, cost, options).
    `key` names which of several kept keys is taken, `key_command` is a program that prints it.
    `fallback` stands for that of `Config`, for the models of this provider.
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
    """The settings of one plugin; `options` are the plugin's own."""

    enabled: bool = True
    timeout_s: float | None = None
    options: dict[str, Any] = {}


class FormatterConfig(Table, frozen=True, forbid_unknown_fields=True):
    """A formatter of files: a new one, or a known one that is changed or switched off.

    `command` is a program with its arguments, in which `$FILE` stands for the file. To name a
    known formatter that runs code of the project (prettier's plugins) is to allow that.
    """

    disabled: bool = False
    command: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    environment: dict[str, str] = {}


class LspConfig(Table, frozen=True, forbid_unknown_fields=True):
    """A language server: a new one, or a known one that is changed or switched off.

    `command` is a program with its arguments, `initialization` the options that it gets at its
    start. To name a known server that runs code of the project (rust's build scripts) is to allow
    that.
    """

    disabled: bool = False
    command: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    env: dict[str, str] = {}
    initialization: dict[str, Any] = {}


class CompactionConfig(Table, frozen=True, forbid_unknown_fields=True):
    """The conditions under which the history is summarised."""

    auto: bool = True
    prune: bool = True


class RoleModels(Table, frozen=True, forbid_unknown_fields=True):
    """The models for work of a kind, each as `provider/model`.

    `small` is for short questions beside the work, `title` for titles alone, `compact` for
    summaries of long sessions, `task` for subagents, `plan` for the agent that plans, `vision`
    for prompts with pictures where the chosen model takes none. An agent's own `model` counts
    before them.
    """

    small: str | None = None
    title: str | None = None
    compact: str | None = None
    task: str | None = None
    plan: str | None = None
    vision: str | None = None


class RetryConfig(Table, frozen=True, forbid_unknown_fields=True):
    """The number and the length of retries of a failing model.

    `attempts` counts the first one, `total_s` is the time from the first failure to the last
    attempt. Waits of our own choice are at most `cap_s`; what a provider asks for may be longer.
    """

    attempts: Annotated[int, msgspec.Meta(ge=1)] = 6
    total_s: Annotated[float, msgspec.Meta(ge=0)] = 600.0
    cap_s: Annotated[float, msgspec.Meta(ge=0)] = 30.0


class Limits(Table, frozen=True, forbid_unknown_fields=True):
    """The most that may be spent; what is not set has no limit.

    `usd` is US dollars, `tokens` counts all that models read and write, `steps` the answers of
    models. `minutes` is the time in which something runs, and nobody is asked.
    """

    usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    minutes: Annotated[float, msgspec.Meta(ge=0)] | None = None
    steps: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tool_calls: Annotated[int, msgspec.Meta(ge=0)] | None = None


class RunLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """The most that one run may spend, subagents included.

    The default of `steps` is for models that never come to an end by themselves: work that does
    takes some tens, seldom a few hundreds. `subagents` counts those that are begun, by subagents
    as well: some eight at a time are work, thousands are a chain reaction.
    """

    steps: Annotated[int, msgspec.Meta(ge=0)] | None = 1_000
    subagents: Annotated[int, msgspec.Meta(ge=0)] = 100


class BudgetConfig(Limits, frozen=True, forbid_unknown_fields=True):
    """The limits of a session in all its life, subagents included.

    `run` is for one run of it, from a prompt to the rest; `subagent` for each subagent with
    all that work for it. `unpriced` says whether a model may be asked whose price is not known
    while there is a limit in US dollars: what it costs is then counted as nothing. No project
    can allow it.
    """

    run: RunLimits = RunLimits()
    subagent: Limits = Limits()
    unpriced: Literal["refuse", "allow"] = "refuse"


class ProcessLimits(Table, frozen=True, forbid_unknown_fields=True):
    """The limits of one tool call's processes; 0 is no limit.

    `memory_mb` is for all of them together, three quarters of the machine's if it is not said;
    `open_files` is for each. A project may only lower them.
    """

    processes: Annotated[int, msgspec.Meta(ge=0)] = 2000
    open_files: Annotated[int, msgspec.Meta(ge=0)] = 65_536
    memory_mb: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def tighten(self, other: "ProcessLimits") -> "ProcessLimits":
        """Take the lower of each limit; no limit is the highest."""
        return ProcessLimits(
            processes=_lower(self.processes, other.processes),
            open_files=_lower(self.open_files, other.open_files),
            memory_mb=_lower(self.memory_mb or 0, other.memory_mb or 0)
            or (0 if self.memory_mb == other.memory_mb == 0 else None),
        )


def _lower(limit: int, other: int) -> int:
    return min(limit, other) if limit and other else limit or other


class Config(Table, frozen=True, forbid_unknown_fields=True, weakref=True):
    """The whole configuration; a model is named `provider/model`.

    `permission` is what the user's files say, as rules in order; `project_permission` is what
    the project's files say, which can only tighten. `plugins` maps a plugin's name to how it is
    treated; `plugin_paths` are files and folders of plugins beside the ones that are found.
    `sandbox` says how far the processes of tools may reach, `sandbox_network` whether the network
    is among it, or which hosts of it, `limits` how much they may take.
    `fallback` are models that are asked in turn when the chosen one is gone, refuses the key, or
    cannot be asked within `fallback_after_s` seconds; never behind text that was shown.
    `sandbox_allow_commands`: an enclosed command asks for nothing that it cannot do.
    `title` says who writes the titles of sessions beside the work: nobody, `small_model` if
    there is one, or the model that answers if there is not. `auto_approve` allows what would be
    asked; what is denied, or asked every time, stays so. `permission_mode` names how much runs
    unasked where the user has no rule about it; plugins define the names. No project can set
    either. `keyring` is whether the system's keyring may be asked for keys,
    `resume_on_restart` whether a server goes on with the sessions that ran when the last one ended.
    `continue_loop_on_deny` lets a turn go on after the user rejected a permission or a question.
    `profile` has tables of these same keys, by the name that chooses one for a run.
    `exposure` maps patterns of tools' ids and permissions to how a model gets at them; the last
    pattern that fits counts. A project can only hide. `mcp` has the user's servers of tools by
    name, `project_mcp` those of a trusted project; what they say is for the plugin that starts
    them. Plugins set `rulesets`, each a source of rules that can only tighten, and `approvals`:
    rules that answer an ask of this App as an approval for good does, and are never stored.
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
    """A role that the model plays: its prompt, its model and what it may do.

    A primary agent talks to the user, a subagent is called by the `task` tool. `steps` is the
    hard limit of requests to the model in a turn, None for no limit of the agent's own.
    `prompt` stands in the place of the default prompt, `prompt_append` behind either. `on_enter`
    is what the model is told when the agent takes over from another one, `on_leave` when another
    one takes over. `serves` is work that the engine has for an agent. With `effects` the agent has
    only the tools whose effect is one of them, and those that its own rules or the user's open.
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
    names of the arguments in a text of Claude Code, whose `$0` is the first word; None stands for a
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
        """Whether the text was written for any model, and contains no command to run.

        Nothing in it is a command to run.
        """
        return self.source not in (None, "command")


ServiceState = (
    Literal["ready", "starting", "running", "failed", "absent", "disabled"]
    | Literal["needs_auth", "needs_registration", "changed"]
)


class Service(Wire, frozen=True):
    """A language server, a formatter, or whatever else `kind` says.

    `ready` is installed and would be run, `absent` would not. A service that `needs_auth` waits for
    the user to sign in, one that `needs_registration` for a client id in the settings; one that has
    `changed` for their review. `error` says why it failed, or what it waits for. `root` is the
    folder that it works in, `extensions` are the suffixes of the files that it is for.
    """

    kind: str
    name: str
    state: ServiceState
    root: str = ""
    extensions: tuple[str, ...] = ()
    error: str = ""
