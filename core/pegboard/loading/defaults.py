"""The rules that plugins bring for their own permission names."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pegboard.contract.plugin import Answer
from pegboard.loading.discovery import Problem
from pegboard.schema.config import Config
from pegboard.schema.session import EDIT, READ, Rule

RESERVED = frozenset({EDIT, READ, "external_directory", "doom_loop"})
"""The permissions that no plugin may have rules of its own for."""


def with_defaults(
    config: Config,
    written: Sequence[Rule],
    answers: Sequence[Answer[Rule]],
    names: Mapping[str, str],
) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration with the rules of plugins before those that the user has `written`.

    `names` maps the permission of each tool to the plugin that the tool is of. What a plugin may
    not say is left out, and told.
    """
    fitting: list[Rule] = []
    problems: list[Problem] = []
    for answer in answers:
        flaw = _flaw(answer, names)
        if flaw:
            problems.append(Problem("name", answer.plugin, flaw))
        else:
            fitting.append(replace(answer.value, by=f"plugin {answer.plugin}"))
    rules = config.permission
    end = len(rules) - len(written) if rules[len(rules) - len(written) :] == tuple(written) else 0
    return replace(config, permission=(*rules[:end], *fitting, *rules[end:])), tuple(problems)


def _flaw(answer: Answer[Rule], names: Mapping[str, str]) -> str:
    name = answer.value.permission
    text = f"its rule about the permission {name} is left out"
    if set("*?") & set(name):
        return f"{text}: it is about more than one"
    owner = names.get(name, answer.plugin)
    if name in RESERVED or owner != answer.plugin:
        whose = f"the plugin {owner}" if owner != answer.plugin else "Pegboard"
        return f"{text}: that is {whose}'s own"
    return ""
