"""The hooks that a plugin brings by `register_hooks`, and what a hook's specification has."""

import inspect
from collections.abc import Callable, Mapping
from time import perf_counter

from pegboard.contract import hookspecs
from pegboard.contract.plugin import PROJECT, mark_of
from pegboard.hooks.checks import check_of

BRINGING = hookspecs.register_hooks.__name__
"""The hook that is called before all others, as a plain function of the loop's thread."""
_SPEC = f"{PROJECT}_spec"
Specs = dict[str, Callable[..., object]]


def brought_hooks(
    function: Callable[[], object], limit_s: float, known: Mapping[str, object]
) -> list[Specs]:
    """The specifications of each module that the function gives, whose names are not `known`.

    :raises TypeError: when it gives no row of modules.
    :raises ValueError: for a name that there is, and for a specification that is not well made.
    :raises TimeoutError: when it has taken longer than its limit; it held up everything.
    """
    started = perf_counter()
    answer = function()
    if (took_s := perf_counter() - started) > limit_s:
        raise TimeoutError(f"{BRINGING} took {took_s:.1f} s; its limit is {limit_s:g} s")
    return [_new_specs(each, known) for each in _modules(answer)]


def specs_of(module: object) -> Specs:
    """The specifications of a module, or the one that a function is."""
    if inspect.isfunction(module):
        return {module.__name__: module} if hasattr(module, _SPEC) else {}
    return {name: each for name, each in vars(module).items() if hasattr(each, _SPEC)}


def arguments_of(function: Callable[..., object]) -> tuple[str, ...]:
    """The names of a function's arguments."""
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
        if (subject := mark_of(spec).subject) and subject not in arguments_of(spec):
            raise ValueError(f"the hook {name} has no argument {subject}, its subject")
        check_of(spec)
    if not specs:
        raise ValueError(f"{module!r} has no function that is marked with @hookspec")
    return specs
