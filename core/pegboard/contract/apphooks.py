"""Hooks for the life of an App: registrations, configuration, startup, events, shutdown."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pegboard.contract.context import FileLedger
from pegboard.contract.host import Compactor, HookCalls, Host
from pegboard.contract.plugin import hookspec
from pegboard.contract.tools import Tool
from pegboard.enclosing import Encloser, OpenProcesses
from pegboard.errors import InvalidInputError
from pegboard.paths import UserFolders
from pegboard.providers import Provider
from pegboard.providers.keylookup import Keys, KeyStore
from pegboard.providers.spending import OpenBudget
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import Event
from pegboard.schema.part import FileInput, TextInput
from pegboard.schema.session import Rule
from pegboard.snapshots import Snapshots
from pegboard.storage import OpenStorage
from pegboard.workspace import Workspace


@hookspec("collect", when="load", since="0.1")
def register_hooks() -> Sequence[object] | None:
    """Return hooks that other plugins can implement: functions marked `@hookspec`, or modules.

    Called once, after all plugins are imported and before every other hook; it must be a plain
    function. The plugin calls its hooks with the argument `hooks` of `register_tools`, or with
    `app.hooks`. Another plugin marks its implementation of such a hook with
    `@hookimpl(optionalhook=True)`, unless it requires the plugin that defines the hook. Collect:
    the hooks of a plugin that raises are missing, and the plugin is reported; a hook whose name is
    taken is reported and left out.

    ```python
    from pegboard import hookimpl, hookspec


    @hookspec("collect")
    def register_greetings() -> tuple[str, ...] | None:
        '''Greetings in other languages.'''


    @hookimpl
    def register_hooks() -> tuple[object, ...]:
        return (register_greetings,)
    ```
    """


@hookspec("collect", when="load", since="0.1")
def register_tools(config: Config, hooks: HookCalls) -> Sequence[Tool] | None:
    """Return the plugin's tools, which the model can call by name.

    Called when the App opens and when project code is reloaded. Collect: the tools of a plugin
    that raises are missing, and the plugin is reported; of two tools with one name the later
    origin's wins, and within one origin the name is an error.

    - config: the merged configuration; the plugin's own table is `config.plugins[name]`.
    - hooks: calls the hooks that the plugin brings with `register_hooks`.

    ```python
    from pegboard import Tool, hookimpl, tool


    @tool(effect="reads")
    async def greet(name: str) -> str:
        '''Greet somebody.

        Args:
            name: who it is.
        '''
        return f"Good day, {name}!"


    @hookimpl
    async def register_tools() -> tuple[Tool, ...]:
        return (greet,)
    ```
    """


@hookspec("collect", when="load", since="0.1")
def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> Sequence[Provider] | None:
    """Return the plugin's providers of models; `ID/model` then asks the provider with that id.

    Called when the App opens and when project code is reloaded, before any model is named.
    Collect: the providers of a plugin that raises are missing, and the plugin is reported; of
    two providers with one id the later wins.

    - config: the merged configuration, with the user's `provider` table.
    - env: the App's environment, with proxies and addresses; it can differ from the process's.
    - keys: gives a provider its key when a request needs it.

    ```python
    from collections.abc import AsyncIterator

    from pegboard import hookimpl
    from pegboard.providers import ModelRequest, Provider, StreamEvent, StreamFinish
    from pegboard.schema.model import Model, ModelApi

    MUTE = Model(id="mute", provider_id="silence", name="Mute", api=ModelApi(id="mute"))


    class Silence:
        id, name, env = "silence", "Silence", ()

        def models(self) -> tuple[Model, ...]:
            return (MUTE,)

        def resolve(self, model_id: str) -> Model | None:
            return MUTE if model_id == MUTE.id else None

        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            yield StreamFinish("stop")

        async def aclose(self) -> None:
            return None


    @hookimpl
    async def register_providers() -> tuple[Provider, ...]:
        return (Silence(),)
    ```
    """


@hookspec("fold", subject="providers", raises=(InvalidInputError,), when="open", since="0.1")
def wrap_providers(
    providers: Mapping[str, Provider], config: Config, keys: Keys, workspace: Workspace
) -> Mapping[str, Provider] | None:
    """Replace providers by id, to record, replay or observe their answers.

    Called once when the App opens, after `register_providers` and without the providers that the
    user has switched off. If a plugin raises `InvalidInputError`, the App does not open and
    the user sees the error's text. Fold: a plugin that raises another error is reported and
    skipped.

    - keys: `keys.values()` are secrets, which a recording of answers must not contain.
    - workspace: the directory of the App.

    ```python
    from collections.abc import Mapping

    from pegboard import hookimpl
    from pegboard.providers import Provider


    @hookimpl
    async def wrap_providers(providers: Mapping[str, Provider]) -> Mapping[str, Provider]:
        return {name: each for name, each in providers.items() if name != "forbidden"}
    ```
    """


@hookspec("collect", when="load", since="0.1")
def register_permissions() -> Sequence[Rule] | None:
    """Return default rules for the plugin's own permission names.

    Called when the App opens and when project code is reloaded. The rules come
    after the built-in rule for `*` and before the user's rules; the last matching rule decides, so
    the user has the last word. Collect: a plugin that raises is reported and left out; so is a rule
    whose permission name has wildcards or belongs to another plugin's tool.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.session import Rule


    @hookimpl
    async def register_permissions() -> tuple[Rule, ...]:
        return (Rule("ledger_write", "*", "ask"),)
    ```
    """


@hookspec("collect", when="load", since="0.1")
def register_agents(config: Config) -> Sequence[Agent] | None:
    """Return the plugin's agents.

    Called when the App opens and when project code is reloaded. The user's `agent` table is
    applied on top. Collect: a plugin that raises is reported and left out; the later of two
    agents with one name wins.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.config import Agent
    from pegboard.schema.session import Rule

    READ_ONLY = (Rule("*", "*", "deny"), Rule("read", "*", "allow"))


    @hookimpl
    async def register_agents() -> tuple[Agent, ...]:
        reader = Agent(name="reader", mode="subagent", permission=READ_ONLY, options={})
        return (reader,)
    ```
    """


@hookspec("collect", when="load", since="0.1")
def register_commands(
    config: Config, workspace: Workspace, home: Path, config_dir: Path
) -> Sequence[Command] | None:
    """Return the plugin's slash commands.

    Called when the App opens and when project code is reloaded. The user's `command` table is
    applied on top. Collect: a plugin that raises is reported and left out; the later of two
    commands with one name wins, but a skill or the prompt of an MCP server takes no name in use.

    - home, config_dir: the user's home, and the folder of their settings.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.config import Command


    @hookimpl
    async def register_commands() -> tuple[Command, ...]:
        return (Command(name="explain", template="Explain $ARGUMENTS to a newcomer.", hints=()),)
    ```
    """


@hookspec("collect", when="open", since="0.1")
def register_storage() -> Mapping[str, OpenStorage] | None:
    """Return kinds of database: a URL scheme, and the function that opens such a URL.

    Called once when the App opens. `PEGBOARD_DATABASE` is the URL; the scheme "" stands for a
    plain path, and for the default database. Collect: a plugin that raises is reported and left
    out; the newest plugin wins a scheme. Without a plugin for its scheme no App opens.

    ```python
    from pathlib import Path

    from pegboard import hookimpl
    from pegboard.app import IdSource, open_storage
    from pegboard.storage import OnCommit, OpenStorage, Storage


    async def open_shared(
        url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
    ) -> Storage:
        path = Path(str(url).removeprefix("shared://"))
        return await open_storage(path, ids=ids, on_commit=on_commit)


    @hookimpl
    async def register_storage() -> dict[str, OpenStorage]:
        return {"shared": open_shared}
    ```
    """


@hookspec("collect", when="run", since="0.1")
def register_compactors() -> Sequence[Compactor] | None:
    """Return ways to shorten a history that has outgrown the model's window.

    Called when a session must be compacted. The newest compactor acts, outside of the hook's time
    limit. Collect: a plugin that raises is reported and left out.

    ```python
    from pegboard import hookimpl
    from pegboard.compaction import Compaction, CompactionRequest, Compactor


    class Short:
        async def compact(self, request: CompactionRequest) -> Compaction:
            return Compaction(summary=await request.ask("In one sentence: what has been done?"))


    @hookimpl
    async def register_compactors() -> tuple[Compactor, ...]:
        return (Short(),)
    ```
    """


@hookspec("first", when="open", since="0.1")
def register_encloser(hooks: HookCalls) -> Encloser | None:
    """Return the object that confines the processes of tools, or `None` to let other plugins do it.

    Called when an App with a `sandbox` in its configuration opens; without an answer it does not
    open. First: a plugin that raises is reported, and the next one is asked.

    ```python
    from pegboard import HookCalls, hookimpl
    from pegboard.processes import Encloser


    @hookimpl
    async def register_encloser(hooks: HookCalls) -> Encloser | None:
        return None  # the plugin `sandbox` knows how
    ```
    """


@hookspec("first", when="open", since="0.1")
def register_snapshots(
    config: Config, workspace: Workspace, places: UserFolders, env: Mapping[str, str]
) -> Snapshots | None:
    """Return the store of the project's file states, for revert and for diffs.

    Called once when the App opens. Without an answer a revert takes messages back and leaves
    files as they are. First: a plugin that raises is reported, and the next one is asked.

    - places, env: `places.snapshots` is a folder for this; git is on the PATH of `env`.

    ```python
    from pegboard import Workspace, hookimpl
    from pegboard.snapshots import Snapshots


    @hookimpl
    async def register_snapshots(workspace: Workspace) -> Snapshots | None:
        return None  # only git knows how, here
    ```
    """


@hookspec("first", when="open", since="0.1")
def register_keystore(
    env: Mapping[str, str], places: UserFolders, workspace: Workspace
) -> KeyStore | None:
    """Return the store of provider keys and plugin secrets.

    Called once when the App opens, before every hook but `register_hooks`. The store is asked for
    keys that neither the settings nor the environment have. First: the newest plugin with an
    answer counts, and a plugin that raises is reported.

    ```python
    from pegboard import hookimpl
    from pegboard.app import UserFolders
    from pegboard.providers import KeyStore


    @hookimpl
    async def register_keystore(places: UserFolders) -> KeyStore | None:
        return None  # the plugin `auth` keeps them
    ```
    """


@hookspec("first", when="open", since="0.1")
def register_budget() -> OpenBudget | None:
    """Return the budget that holds runs within limits on money, tokens, minutes, steps and calls.

    Called once when the App opens. Without an answer nothing is limited, and an App for which
    the user has set limits does not open. First: a plugin that raises is reported, and the next
    one is asked.

    ```python
    from pegboard import hookimpl
    from pegboard.budgets import OpenBudget


    @hookimpl
    async def register_budget() -> OpenBudget | None:
        return None  # the plugin `budget` counts steps, tokens, dollars and minutes
    ```
    """


@hookspec("first", when="open", since="0.1")
def register_processes() -> OpenProcesses | None:
    """Return the runner of tools' processes, for instance in a container.

    Called once when the App opens. Without an answer a tool that starts a program fails and names
    what is missing. First: a plugin that raises is reported, and the next one is asked.

    ```python
    from pegboard import hookimpl
    from pegboard.processes import OpenProcesses


    @hookimpl
    async def register_processes() -> OpenProcesses | None:
        return None  # the plugin `processes` runs them on this machine
    ```
    """


@hookspec("first", when="open", since="0.1")
def register_files() -> Callable[[], FileLedger] | None:
    """Return the function that makes a `FileLedger`: a record of files read, and write locks.

    Called once when the App opens; the function is called at the first use of `context.files`.
    Without an answer a tool that uses files fails and names what is missing, and so does a
    prompt with a file. First: a plugin that raises is reported, and the next one is asked.

    ```python
    from collections.abc import Callable

    from pegboard import hookimpl
    from pegboard.files import FileLedger


    @hookimpl
    async def register_files() -> Callable[[], FileLedger] | None:
        return None  # the plugin `files` knows those of this machine
    ```
    """


@hookspec("fold", subject="config", when="open", since="0.1")
def config_load(
    config: Config,
    workspace: Workspace,
    home: Path,
    places: UserFolders,
    trusted: Mapping[Path, bytes],
) -> Config | None:
    """Change the configuration after all files are merged.

    Called when the App opens. Later plugins and the App use the returned configuration. Called
    again when the user's trust in the project's files changes; then only the agents and commands of
    the returned configuration take effect. Fold: a plugin that raises is reported and skipped.

    - home, places: the user's home folder, and the folders of Pegboard in it.
    - trusted: the project's files that the user trusts, with their bytes, see `trusted_files`.

    ```python
    from pegboard import evolve, hookimpl
    from pegboard.schema.config import Config


    @hookimpl
    async def config_load(config: Config) -> Config:
        return evolve(config, tool_timeout_s=min(config.tool_timeout_s, 120.0))
    ```
    """


@hookspec("collect", when="open", since="0.1")
def trusted_files(workspace: Workspace) -> Sequence[Path] | None:
    """Return the project's files that make the plugin run something, such as lists of servers.

    Called when the App opens, and when the user is asked about the project's trust. The user
    trusts these files along with the project's code: the question shows them, and after a change
    the user is asked again. Use such a file only if its path is not in `app.untrusted`, and then
    use its bytes in `app.trust.files`. A plugin of the project is not asked, and a file outside of
    the project does not count. Collect: a plugin that raises is reported and left out.

    ```python
    from pathlib import Path

    from pegboard import Host, Workspace, hookimpl


    @hookimpl
    async def trusted_files(workspace: Workspace) -> tuple[Path, ...]:
        return (workspace.worktree / "house.json",)


    @hookimpl
    async def startup(app: Host) -> None:
        path = app.workspace.worktree / "house.json"
        if path in app.trust.files and path not in app.untrusted:
            print(app.trust.files[path].decode())
    ```
    """


@hookspec("collect", since="0.1")
def mention(app: Host, name: str) -> Sequence[FileInput | TextInput] | None:
    """Return the parts that `@name` stands for in a prompt that the user typed.

    Called for each name that is neither a file of the project nor an agent, by the program in which
    the user types. Without an answer the model gets `@name` as text. Collect: a plugin that raises
    is reported and left out.

    - name: without the `@`, such as `tickets:42`.

    ```python
    from pegboard import Host, hookimpl
    from pegboard.schema.part import TextInput


    @hookimpl
    async def mention(app: Host, name: str) -> tuple[TextInput, ...] | None:
        kind, found, number = name.partition(":")
        if kind != "tickets" or not found:
            return None
        return (TextInput(text=f"Ticket {number}: the door is stuck.", synthetic=True),)
    ```
    """


@hookspec("notify", when="open", since="0.1")
def startup(app: Host) -> None:
    """React to the opening of the App: everything is registered, and nothing runs yet.

    Called once. Notify: a plugin that raises is reported.

    ```python
    import logging

    from pegboard import Host, hookimpl

    log = logging.getLogger("pegboard_house")


    @hookimpl
    async def startup(app: Host) -> None:
        log.info("open")


    @hookimpl
    async def shutdown(app: Host) -> None:
        log.info("closed")
    ```
    """


@hookspec("notify", since="0.1")
def event(event: Event) -> None:
    """React to an event of the project.

    Called for every event, in order. Notify: each plugin has a queue of its own; a plugin that
    falls 1,000 events behind loses the oldest ones and is reported.

    ```python
    import logging

    from pegboard import hookimpl
    from pegboard.schema.event import Event, FileEdited

    log = logging.getLogger("pegboard_house")


    @hookimpl
    async def event(event: Event) -> None:
        if isinstance(event.properties, FileEdited):
            log.info("%s was edited", event.properties.file)
    ```
    """


@hookspec("notify", since="0.1")
def shutdown(app: Host) -> None:
    """React to the closing of the App: turns have ended, and the database is still open.

    Called once; the App waits for it within the plugin's time limit. Notify: a plugin that
    raises is reported.

    The example of `startup` has a `shutdown`, too.
    """
