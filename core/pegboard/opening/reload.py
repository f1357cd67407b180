"""The tools, commands, agents and providers of plugins, and the reload of project code.

Before each prompt, an open App checks the project's code and the agents and commands in its
settings. The trusted code stays in use until the user trusts the change, so that an edit cannot
remove a policy.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from pegboard.contract import apphooks
from pegboard.contract.plugin import Answer, mark_of
from pegboard.engine.engine import Engine
from pegboard.errors import PegboardError, RequiredHookError, TrustError
from pegboard.hooks.callers import Hooks
from pegboard.loading.register import PluginChange, Register
from pegboard.loading.registration import core_specs
from pegboard.opening.options import Opening
from pegboard.providers import Provider
from pegboard.schema.config import Command, Config
from pegboard.schema.session import Rule
from pegboard.trust.decisions import Decision


@dataclass(slots=True, kw_only=True)
class Reload:
    """The updates of the engine's plugin objects when trusted project code changes.

    `said` is the configuration without plugins' rules; `written` are the user's own rules. `seen`
    is the newest decision on trust.

    If `AppOptions.trust` is True, the files that existed at the opening stay trusted. If it is
    False, no project code runs. Otherwise the user's decisions count, also later ones: revoked
    trust removes the code. `outdated` are providers of replaced code, which a running turn may
    still use.
    """

    opening: Opening
    engine: Engine
    register: Register
    said: Config
    written: Sequence[Rule]
    seen: Decision
    outdated: list[tuple[str, Provider]] = field(default_factory=list, init=False)
    _loaded: Decision = field(init=False)
    _commands: tuple[Answer[Command], ...] = field(default=(), init=False)
    _replaced: dict[str, Sequence[Command]] = field(default_factory=dict, init=False)
    _looking: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _answers: tuple[Answer[Provider], ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self._loaded = self.engine.decision

    async def collect(self) -> None:
        """Collect rules, commands, agents and providers from all plugins for the engine.

        :raises RequiredHookError: when a required wrapper of providers fails.
        :raises ConfigError: when an agent's settings are invalid.
        """
        await self._collect_plain()
        self._answers = await self._providers(self.engine.hooks)
        self._have(await self._wrapped(self._answers))

    async def _renew(self, change: PluginChange) -> Iterable[str]:
        """Use the new tools, commands, agents and providers of the project's changed plugins.

        Return a line for the user about each hook or provider that cannot take effect now.
        """
        lines = list(_unheard(change))
        await self._collect_plain()
        gone = {each.key for each in change.old}
        new = await self._providers(self.engine.hooks.only({each.key for each in change.new}))
        replaced = {each.value.id for each in self._answers if each.key in gone}
        left = tuple(each for each in self._answers if each.key not in gone)
        before = self.engine.providers
        table = {name: each for name, each in before.items() if name not in replaced}
        back = tuple(each for each in left if each.value.id in replaced)
        try:
            table |= await self._wrapped((*back, *new))
        except RequiredHookError as error:
            lines.append(f"its providers are left out: {error}")
        now = set(map(id, table.values()))
        self.outdated += [each for each in before.items() if id(each[1]) not in now]
        self._answers = (*left, *new)
        self._have(table)
        return lines

    async def _collect_plain(self) -> None:
        engine = self.engine
        engine.config = await self.register.with_permissions(self.said, self.written)
        agents = await engine.hooks.collect(apphooks.register_agents, config=engine.config)
        engine.registered = [answer.value for answer in agents]
        commands = await engine.hooks.collect(
            apphooks.register_commands,
            config=engine.config,
            workspace=engine.workspace,
            home=engine.home,
            config_dir=engine.places.config,
        )
        engine.set_tools(self.register.tools)
        self._commands = commands
        self._have_commands()

    def replace_commands(self, plugin: str, commands: Sequence[Command]) -> None:
        """Replace the plugin's slash commands from now on."""
        self._replaced[self.register.loaded(plugin).key] = tuple(commands)
        self._have_commands()

    def _have_commands(self) -> None:
        found: dict[str, Sequence[Command]] = {
            key: [each.value for each in self._commands if each.key == key]
            for key in self.register.keys
        }
        found |= {key: each for key, each in self._replaced.items() if key in found}
        self.engine.commands = _by_name([*chain(*found.values())], self.engine.config)

    async def _providers(self, hooks: Hooks) -> tuple[Answer[Provider], ...]:
        engine = self.engine
        return await hooks.collect(
            apphooks.register_providers, config=engine.config, env=engine.env, keys=engine.keys
        )

    def _have(self, providers: Mapping[str, Provider]) -> None:
        self.engine.providers = providers
        self.engine.models = replace(self.engine.models, providers=providers)
        self.engine.secrets = self.engine.keys.values()

    async def _wrapped(self, answers: Sequence[Answer[Provider]]) -> dict[str, Provider]:
        """Return the providers by id, without the providers that the user has disabled."""
        engine, config = self.engine, self.engine.config
        engine.hooks.know(answers)
        found = {answer.value.id: answer.value for answer in answers}
        engine.keys.note(name for provider in found.values() for name in provider.env)
        wanted, off = config.enabled_providers, config.disabled_providers
        left = {
            name: provider
            for name, provider in found.items()
            if name not in off and (wanted is None or name in wanted)
        }
        wrapped = await engine.hooks.fold(
            apphooks.wrap_providers,
            providers=left,
            config=config,
            keys=engine.keys,
            workspace=engine.workspace,
        )
        return dict(wrapped)

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The project's files with current content that the user has not trusted."""
        if self.seen.trusted:
            return ()
        old = self._loaded.files if self._loaded.trusted else {}
        return tuple(path for path, content in self.seen.files.items() if old.get(path) != content)

    async def look(self) -> None:
        """Check whether the project's code, or the user's trust in this code, has changed.

        Code that the user has trusted meanwhile is loaded. Each untrusted change is reported once.
        """
        if self.opening.options.trust is False:
            return
        async with self._looking:
            before = self.seen
            found = await asyncio.to_thread(self._decide)
            if (found.trusted, found.key) == (before.trusted, before.key):
                return
            self.seen = found
            is_same = found.key == self._loaded.key
            if found.trusted and not (is_same and self._loaded.trusted):
                await self._take(found)
            elif not found.trusted and is_same and self._loaded.trusted:
                await self._take(found)  # trust was taken back
            elif not found.trusted:
                text = f"{found.reason}: `pegboard trust allow` has it used"
                kept = "; until then what was trusted before goes on"
                self._tell(text + (kept if self._loaded.trusted and self._loaded.files else ""))

    def _decide(self) -> Decision:
        known = (self._loaded, self.seen)  # a file that plugins name may be in the newer alone
        code = {file.path for each in known for file in each.code}
        files = [path for path in {**known[0].files, **known[1].files} if path not in code]
        try:
            found = self.opening.decide(files, self._loaded.named)
            holds = self.opening.options.trust is not None and self._loaded.trusted
            if holds and not found.trusted:
                found = self.opening.decide(files, self._loaded.named, answer=self._loaded)
        except TrustError:
            return self.seen  # the lock file is being written
        return found

    async def _take(self, decision: Decision) -> None:
        try:
            loaded = await self.opening.read(trusted=decision.trusted and decision.files)
            config = await self.opening.as_plugins_say(self.engine.hooks, loaded.config, decision)
            change = await self.register.reload(decision, self.engine.config)
            self.said = replace(self.said, agent=config.agent, command=config.command)
            for line in (*change.problems, *await self._renew(change)):
                self._tell(line)
            code = {file.path for file in decision.code}
            counted = self._loaded.files if self._loaded.trusted else {}
            for path, content in decision.files.items():
                is_new = path not in code and counted.get(path) != content
                if is_new and path.suffix != ".md":  # that of an agent or a command counts now
                    text = "counts once the project is opened again"
                    self._tell(f"what {path} sets, except agents and commands, {text}")
        except PegboardError as error:
            self._tell(f"the project's code is not loaded anew: {error}")
            return
        self._loaded = decision

    def _tell(self, text: str) -> None:
        self.engine.hooks.tell("project", "reload", text)


def _by_name(every: Sequence[Command], config: Config) -> dict[str, Command]:
    """Return the slash commands by name, one command for each name.

    If names are equal, the user's command is used, else a plugin's command, else a document such as
    a skill.
    """
    found = {each.name: each for each in every if not each.is_document}
    found |= {each.name: each for each in every if each.is_document and each.name not in found}
    for name, said in config.command.items():
        found[name] = Command(
            name=name,
            template=said.template,
            hints=tuple(sorted(set(re.findall(r"\$\d+|\$ARGUMENTS", said.template)))),
            description=said.description,
            agent=said.agent,
            model=said.model,
            source="command",
            subtask=said.subtask,
        )
    return found


def _unheard(change: PluginChange) -> Iterator[str]:
    """Yield a line for each hook of a changed plugin that takes effect only when an App opens.

    The line says that the project must be opened again.
    """
    opening = {name for name, spec in core_specs().items() if mark_of(spec).when == "open"}
    for seen, others, what in (
        (change.new, change.old, "counts once"),
        (change.old, change.new, "as it was goes on until"),
    ):
        same = {(each.name, each.file) for each in others}
        for each in seen:
            hooks = opening.intersection(each.hooks) - (
                {"startup"} if seen is change.old else set()
            )
            if (each.name, each.file) not in same:
                yield from (
                    f"{each.name}: its {hook} {what} the project is opened again"
                    for hook in sorted(hooks)
                )
