"""The registration of plugins' hook implementations with pluggy.

A hook function that does not match its specification is left out and reported; the plugin's other
hooks stay. If the hook guards an operation, the operation is refused. pluggy receives an empty
module with only the valid functions. Thus equal plugin objects stay separate, and pluggy reads no
other attribute of a plugin.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from time import perf_counter
from types import ModuleType

import pluggy
from msgspec.structs import replace

from pegboard.contract import apphooks, modelhooks, toolhooks
from pegboard.contract.plugin import PROJECT, Kind, hookimpl, mark_of, said_by
from pegboard.errors import RequiredHookError
from pegboard.hooks.checks import check_of
from pegboard.hooks.implementation import CALL, Implementation, circle
from pegboard.kit.suggestions import did_you_mean, nearest_names
from pegboard.loading.discovery import (
    MARK,
    PluginProblem,
    attempt,
    is_marked,
    is_provider,
    marked,
    owned,
)
from pegboard.loading.registrant import Registrant, quoted
from pegboard.schema.config import Config

HOOK_MODULES = (apphooks, modelhooks, toolhooks)
"""The modules that specify the hooks of the core."""
BRINGING = apphooks.register_hooks.__name__
"""The hook that is called before all others, as a plain function of the loop's thread."""
_PROVIDERS = apphooks.register_providers.__name__
_SPEC = f"{PROJECT}_spec"
Specs = dict[str, Callable[..., object]]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

WRAPPED: tuple[Kind, ...] = ("fold", "first")
"""The kinds that can be wrapped: a policy can only tighten, notifications have no answer."""
PLUGIN = "plugin"
"""The argument that every implementation can have: what is its plugin's own."""

_RULES = apphooks.register_permissions.__name__
_DENIED = "what needs its consent is refused"
_REFUSED = {_RULES: "calls of its tools are asked about"}
"""What comes of a hook that guards something and is not there."""


def _seat(functions: Mapping[str, Callable[..., object]]) -> ModuleType:
    """Return a new module with only these functions, because pluggy reads every attribute."""
    seat = ModuleType("seat")
    vars(seat).update(functions)
    return seat


def _stub(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function without arguments that has the hook marks of `function`, for pluggy.

    pluggy rejects arguments that the hook's specification lacks, and a plugin may take others.
    """

    def stub() -> None: ...

    vars(stub).update(vars(function))
    return stub


class Registry:
    """The plugins of one App, oldest first, and the problems with their hooks."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._plugins: dict[str, Registrant] = {}
        self._specs = core_specs()
        self._functions: dict[tuple[str, str], Callable[..., object]] = {}
        self._refusals: dict[tuple[str, str], str] = {}
        self._pluggy = pluggy.PluginManager(PROJECT)
        for module in HOOK_MODULES:
            self._pluggy.add_hookspecs(module)
        self.problems: list[PluginProblem] = []

    def bring(self, registrant: Registrant) -> None:
        """Add the hooks that a plugin specifies; called for all plugins before any `add`."""
        if not is_marked(registrant.plugin, BRINGING):
            return
        function = getattr(registrant.plugin, BRINGING)
        limit_s = self._limit_s(registrant, function, BRINGING)
        brought = attempt(lambda: brought_hooks(function, limit_s, self._specs))
        if isinstance(brought, PluginProblem):
            text = f"its hooks are missing: {brought.text}"
            self.problems.append(PluginProblem("hook", registrant.name, text, brought.detail))
            return
        for specs in brought:
            self._pluggy.add_hookspecs(_seat(specs))
            self._specs |= specs

    def add(self, registrant: Registrant) -> tuple[str, ...]:
        """Register a plugin after all earlier plugins, and return the names of its hooks."""
        fitting: dict[str, Callable[..., object]] = {}
        functions = dict(marked(registrant.plugin))
        if providers := [each for _, each in owned(registrant.plugin, is_provider)]:
            functions.setdefault(_PROVIDERS, hookimpl(lambda: providers))
        for hook, function in functions.items():
            problem = self._problem(registrant.name, hook, function)
            if problem is None:
                fitting[hook] = function
                continue
            self.problems.append(problem)
            meant = self._meant(hook)
            if self._guards(meant, function) and (
                hook in self._specs or not said_by(function).required
            ):
                fitting.setdefault(meant, function)
                self._refuse(registrant, meant, f"cannot be asked: {problem.text}")
            elif said_by(function).required:
                text = f"{problem.text}; it is required, so nothing runs without it"
                raise RequiredHookError(registrant.name, text)
        for hook in self._unmarked(registrant):
            text = f"the function {hook} is not marked with @hookimpl: mark it, or rename it"
            self.problems.append(PluginProblem("unmarked", registrant.name, text))
            if self._guards(hook, hookimpl(unmarked := lambda: None)):
                fitting.setdefault(hook, unmarked)
                self._refuse(registrant, hook, f"cannot be asked: {text}")
        return self._take(registrant, fitting)

    def _unmarked(self, registrant: Registrant) -> Iterator[str]:
        """Yield functions that have the name and arguments of a hook but lack `@hookimpl`."""
        if registrant.origin == "builtin":
            return
        plugin = registrant.plugin
        place = plugin if isinstance(plugin, ModuleType) else type(plugin)
        for hook, spec in self._specs.items():
            function = vars(place).get(hook)
            if not inspect.isfunction(function) or {MARK, _SPEC} & vars(function).keys():
                continue
            arguments = inspect.signature(getattr(plugin, hook)).parameters.keys()
            if arguments <= {*_arguments_of(spec), PLUGIN}:
                yield hook

    def stand_in(
        self,
        registrant: Registrant,
        functions: Mapping[str, Callable[..., object]],
        text: str,
        *,
        known: bool = True,
    ) -> None:
        """Refuse the operations that the hooks in `functions` guard; their plugin is not loaded.

        `text` is the reason. If `known` is false, the plugin's hooks could not be determined. All
        guarded operations are then refused, and only one problem is recorded.
        """
        guards = {hook: each for hook, each in functions.items() if self._guards(hook, each)}
        text = f"could not be loaded: {text}"
        if known:
            for hook in guards:
                self._refuse(registrant, hook, text)
        else:
            way = f"mend it, or do without it by {_off(registrant)}"
            self._refusals |= {(registrant.key, hook): f"{text}; {way}" for hook in guards}
            said = f"nothing runs without it, since it cannot be read whether it is a guard: {way}"
            self.problems.append(PluginProblem("refusal", registrant.name, said))
        self._take(registrant, guards)

    def _take(
        self, registrant: Registrant, functions: Mapping[str, Callable[..., object]]
    ) -> tuple[str, ...]:
        self._plugins[registrant.key] = registrant
        self._functions |= {(registrant.key, hook): each for hook, each in functions.items()}
        stubs = {hook: _stub(function) for hook, function in functions.items()}
        self._pluggy.register(_seat(stubs), name=registrant.key)
        return tuple(name for name in self._specs if name in functions)

    def _meant(self, hook: str) -> str:
        """Return the hook with this name, else the hook with the most similar name."""
        nearest = nearest_names(hook, self._specs, limit=1)
        return hook if hook in self._specs else nearest[0] if nearest else hook

    def _guards(self, hook: str, function: Callable[..., object]) -> bool:
        """Return whether the operation that calls the hook must be refused without the function."""
        kind = mark_of(self._specs[hook]).kind if hook in self._specs else None
        is_required_fold = kind == "fold" and said_by(function).required
        return kind == "strictest" or is_required_fold or hook == _RULES

    def _refuse(self, registrant: Registrant, hook: str, text: str) -> None:
        self._refusals[registrant.key, hook] = text
        said = (
            f"{_REFUSED.get(hook, _DENIED)}, because its {hook} is not there: mend it, or do"
            f" without it by {_off(registrant)}"
        )
        self.problems.append(PluginProblem("refusal", registrant.name, said))

    def implementations(self) -> dict[str, tuple[Implementation, ...]]:
        """Return the implementations of each hook, oldest plugin first."""
        place = {key: number for number, key in enumerate(self._plugins)}
        found = {}
        for hook in self._specs:
            kept = getattr(self._pluggy.hook, hook).get_hookimpls()
            if kept:
                kept.sort(key=lambda each: place[each.plugin_name])
                each_one = [self._implementation(hook, each) for each in kept]
                usable = (self._with_what_it_requires(each) for each in each_one)
                found[hook] = tuple(each for each in usable if each is not None)
                if plugins := circle(found[hook]):
                    text = f"the hook {hook}: {', '.join(plugins)} want to be before one another"
                    problem = PluginProblem("order", plugins[0], f"{text}; the usual order holds")
                    self.problems.append(problem)
        return {hook: each for hook, each in found.items() if each}

    def _with_what_it_requires(self, each: Implementation) -> Implementation | None:
        """Return the implementation, or None if another plugin that it requires is missing.

        If the hook is a guard, None is not returned. The implementation is then replaced by one
        that refuses the guarded operation.

        :raises RequiredHookError: when the implementation is required.
        """
        names = {registrant.name for registrant in self._plugins.values()}
        missing = [name for name in said_by(each.function).requires if name not in names]
        if not missing or each.refusal:
            return each
        text = f"the hook {each.hook} requires {', '.join(missing)}, and there is none"
        text += did_you_mean(missing[0], names)
        self.problems.append(PluginProblem("order", each.plugin, text))
        if each.required:
            raise RequiredHookError(each.plugin, text)
        if not self._guards(each.hook, each.function):
            return None
        reason = f"cannot be asked: {text}"
        self._refuse(self._plugins[each.key], each.hook, reason)
        return replace(each, refusal=reason)

    def _implementation(self, hook: str, kept: pluggy.HookImpl) -> Implementation:
        registrant = self._plugins[kept.plugin_name]
        function = self._functions[registrant.key, hook]
        said = said_by(function)
        known = _known(function, self._specs[hook])
        parameters = inspect.signature(function).parameters
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        return Implementation(
            key=registrant.key,
            plugin=registrant.name,
            origin=registrant.origin,
            hook=hook,
            kind=mark_of(self._specs[hook]).kind,
            function=function,
            arguments=tuple(name for name in known if takes_all or name in parameters),
            wrapper=said.wrapper,
            before=tuple(said.before),
            after=tuple(said.after),
            given={PLUGIN: registrant.handle} if PLUGIN in parameters else {},
            timeout_s=self._limit_s(registrant, function, hook),
            position=kept.trylast - kept.tryfirst,
            required=said.required,
            guards=self._guards(hook, function),
            refusal=self._refusals.get((registrant.key, hook), ""),
        )

    def _limit_s(self, registrant: Registrant, function: object, hook: str) -> float:
        said = self._config.plugins.get(registrant.table)
        wish = said_by(function).timeout_s
        own = mark_of(self._specs[hook]).limit_s
        limits = (said.timeout_s if said else None, wish, own, self._config.hook_timeout_s)
        return next(limit for limit in limits if limit is not None)

    def _problem(
        self, plugin: str, hook: str, function: Callable[..., object]
    ) -> PluginProblem | None:
        if hook not in self._specs:
            if getattr(function, MARK).get("optionalhook"):
                return None
            text = f"there is no hook {hook}{did_you_mean(hook, self._specs)}"
            return PluginProblem("hook", plugin, text)
        kind = mark_of(self._specs[hook]).kind
        wrong = _misfit(function, _known(function, self._specs[hook]))
        if not wrong and said_by(function).wrapper and kind not in WRAPPED:
            wrong = f"cannot be wrapped: it is no {' or '.join(WRAPPED)}"
        if not wrong and said_by(function).required and kind != "fold":
            wrong = "cannot be required: that is for folds"
            if kind == "strictest":
                wrong += "; leave the mark out, as one that fails denies already"
        if not wrong:
            return None
        return PluginProblem("signature", plugin, f"the hook {hook} {wrong}")


def _off(registrant: Registrant) -> str:
    """Return the line of configuration that disables a plugin."""
    return f"[plugins.{quoted(registrant.table)}] enabled = false"


def _known(function: Callable[..., object], spec: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the arguments that an implementation of the hook may take.

    A wrapper may also take `call`, the function that calls the wrapped implementations.
    """
    arguments = _arguments_of(spec)
    return (CALL, *arguments) if said_by(function).wrapper else arguments


def _misfit(function: Callable[..., object], known: tuple[str, ...]) -> str:
    """Return why an implementation cannot be called with the arguments `known`, or "" if it can."""
    options = getattr(function, MARK)
    if options.get("wrapper") or options.get("hookwrapper"):
        return "is a wrapper of pluggy's: use @hookimpl(wrapper=True) of Pegboard"
    if said_by(function).wrapper and not inspect.iscoroutinefunction(inspect.unwrap(function)):
        return "is a wrapper, which has to be async: it awaits call()"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "yields: it has to return its answer"
    for name, parameter in inspect.signature(function).parameters.items():
        required = parameter.kind in _NAMED and parameter.default is parameter.empty
        if required and name not in (*known, PLUGIN):
            has = f"it has {', '.join(known)}" if known else "it has none"
            return f"has no argument {name}{did_you_mean(name, known)} ({has})"
        if parameter.kind is parameter.POSITIONAL_ONLY:
            return f"is called by keyword, so {name} cannot be positional-only"
    return ""


def brought_hooks(
    function: Callable[[], object], limit_s: float, known: Mapping[str, object]
) -> list[Specs]:
    """Return the hook specifications of each module that the function returns.

    :raises TypeError: when the function does not return a sequence of modules.
    :raises ValueError: for a name in `known`, and for an invalid specification.
    :raises TimeoutError: when the function took longer than `limit_s`; it runs on the event loop.
    """
    started = perf_counter()
    answer = function()
    if (took_s := perf_counter() - started) > limit_s:
        raise TimeoutError(f"{BRINGING} took {took_s:.1f} s; its limit is {limit_s:g} s")
    return [_new_specs(each, known) for each in _modules(answer)]


def specs_of(module: object) -> Specs:
    """Return the hook specifications in a module; a function may be a specification itself."""
    if inspect.isfunction(module):
        return {module.__name__: module} if hasattr(module, _SPEC) else {}
    return {name: each for name, each in vars(module).items() if hasattr(each, _SPEC)}


def core_specs() -> Specs:
    """Return the specifications of the core's own hooks, by name."""
    return {name: spec for module in HOOK_MODULES for name, spec in specs_of(module).items()}


@cache
def _arguments_of(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of a function's arguments."""
    return tuple(inspect.signature(function).parameters)


def _modules(answer: object) -> tuple[object, ...]:
    if inspect.iscoroutine(answer):
        answer.close()
    if not isinstance(answer, tuple | list | None):
        what = type(answer).__name__
        raise TypeError(f"it gave {what}, not a tuple of modules with @hookspec, such as (hooks,)")
    return tuple(answer or ())


def _new_specs(module: object, known: Mapping[str, object]) -> Specs:
    specs = specs_of(module)
    for name, spec in specs.items():
        if name in known:
            raise ValueError(f"there is a hook {name} already")
        if (subject := mark_of(spec).subject) and subject not in _arguments_of(spec):
            raise ValueError(f"the hook {name} has no argument {subject}, its subject")
        check_of(spec)
    if not specs:
        raise ValueError(f"{module!r} has no function that is marked with @hookspec")
    return specs
