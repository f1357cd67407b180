"""Permission rules and verdicts, as pure functions.

Within one source the last matching rule decides. Across sources, deny overrides ask, and ask
overrides allow.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import get_args

from msgspec.structs import replace

from pegboard.errors import ConfigError
from pegboard.schema.session import READ, Action, Rule, Ruleset, Verdict

_STRICTNESS: Mapping[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
_DONE: Mapping[Action, str] = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_ANYTHING = ("*",)
UNCLEAR = "[unclear] "
"""The beginning of the pattern for a string that is unknown until it runs, such as a line with
`$CMD`.

A rule about `*`, about all that is unclear, or about this very pattern speaks of it. One that asks
for less than everything, or denies it, asks: what is unclear may be what it is about.
"""
_ALL_UNCLEAR = f"{UNCLEAR}*"
_UNCLEAR_KEY = "unclear"
"""In a table of rules: all that is unclear."""


_FROM_ROOT = re.compile(r"[^/*?~$]")
"""Begins a pattern that is a path from the top of the project."""


@lru_cache(maxsize=4096)
def _compiled(pattern: str, one: str = ".") -> re.Pattern[str]:
    """Compile a pattern that matches in time bounded by pattern length times string length.

    `one` is the regular expression for `?`. Each part between two stars matches only at its first
    position (an atomic group). This suffices for wildcards and prevents exponential backtracking.
    """
    first, *others = (
        "".join(one if character == "?" else re.escape(character) for character in piece)
        for piece in pattern.split("*")
    )
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether the whole string matches the pattern.

    `*` matches any characters, `?` matches one character, and all else is literal. A pattern that
    ends in a space and `*` also matches without that ending: `ls *` matches `ls`.
    """
    if pattern == "*" or _compiled(pattern).fullmatch(text):
        return True
    return pattern.endswith(" *") and _compiled(pattern[:-2]).fullmatch(text) is not None


def lies_within(pattern: str, wider: str) -> bool:
    """Return whether `wider` matches every string that `pattern` matches.

    A `*` in `wider` covers wildcards of `pattern`; a `?` in `wider` does not cover a `*`.
    """
    texts = (pattern, pattern[:-2]) if pattern.endswith(" *") else (pattern,)
    forms = (wider, wider[:-2]) if wider.endswith(" *") else (wider,)
    return all(any(_compiled(form, "[^*]").fullmatch(text) for form in forms) for text in texts)


def is_unclear(pattern: str) -> bool:
    """Return whether a pattern stands for a string that is known only when its command runs.

    An example is a command line with `$CMD`. Such a pattern begins with `[unclear]`.
    """
    return pattern.startswith(UNCLEAR)


def of_one_text(pattern: str) -> str:
    """Replace the pattern `[unclear] *`, for all unclear strings, by a pattern for a single string.

    Other patterns are returned unchanged.
    """
    return f"{UNCLEAR} *" if pattern == _ALL_UNCLEAR else pattern


def literally(text: str) -> str:
    """Return a pattern that matches the literal `text`; each `*` in the text becomes `?`."""
    return text if text == "*" else text.replace("*", "?")


def _below_home(pattern: str) -> str | None:
    """Return the part of a pattern after `~` or `$HOME`, or None for any other pattern."""
    for sign in ("~", "$HOME"):
        if pattern == sign or pattern.startswith(f"{sign}/"):
            return pattern.removeprefix(sign)
    return None


def _fits(rule: Rule, permission: str, text: str, home: str | None) -> bool:
    if not matches_pattern(rule.permission, permission):
        return False
    if is_unclear(text) and rule.action == "allow":
        return rule.pattern in ("*", _ALL_UNCLEAR, text)
    tail = None if home is None else _below_home(rule.pattern)
    if home is None or tail is None:
        return matches_pattern(rule.pattern, text)
    return text.startswith(home) and matches_pattern(tail, text[len(home) :])


def rooted(rules: Iterable[Rule], root: Path) -> tuple[Rule, ...]:
    """Return the rules with relative patterns of file reads made absolute, starting at `root`.

    Requests to read a file name the file by its absolute path.
    """
    return tuple(
        replace(rule, pattern=f"{root}/{rule.pattern.removeprefix('./')}")
        if rule.permission == READ and _FROM_ROOT.match(rule.pattern.removeprefix("./"))
        else rule
        for rule in rules
    )


def deciding_rule(
    ruleset: Ruleset, permission: str, text: str, *, home: Path | None = None
) -> Rule | None:
    """Return the rule of one ruleset that decides about the string `text`: the last match.

    An unclear string (see `is_unclear`) may turn out to match any rule narrower than `*`. If such a
    rule denies or asks, the decision is to ask.
    """
    return _last(ruleset, permission, text, None if home is None else str(home))


def _last(ruleset: Ruleset, permission: str, text: str, home: str | None) -> Rule | None:
    unclear = is_unclear(text)
    for rule in reversed(ruleset.rules):
        if _fits(rule, permission, text, home):
            return rule
        if unclear and rule.action != "allow" and matches_pattern(rule.permission, permission):
            return replace(rule, action="ask")
    return None


def _spoken(ruleset: Ruleset, permission: str, text: str, home: str | None) -> Verdict | None:
    rule = _last(ruleset, permission, text, home)
    if rule is None:
        return None
    whose = rule.by or ruleset.source
    reason = f'{_DONE[rule.action]} by rule {rule.permission} "{rule.pattern}" ({whose})'
    return Verdict(action=rule.action, reason=reason, source=ruleset.source, rule=rule)


def strictest_verdict(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """Return the first of the strictest verdicts, or None when all are None."""
    opinions = [verdict for verdict in verdicts if verdict is not None]
    return max(
        opinions, key=lambda verdict: (_STRICTNESS[verdict.action], verdict.firm), default=None
    )


def opinion(
    rulesets: Sequence[Ruleset],
    permission: str,
    patterns: Sequence[str],
    *,
    home: Path | None = None,
) -> Verdict | None:
    """Judge a whole permission request by rules; return None if no rule covers some part of it.

    A request without patterns is judged as the pattern `*`. `home` replaces `~` and `$HOME` at the
    start of a rule's pattern. Without `home` they are literal characters.
    """
    folder = None if home is None else str(home)
    verdicts = [
        strictest_verdict(_spoken(ruleset, permission, text, folder) for ruleset in rulesets)
        for text in patterns or _ANYTHING
    ]
    verdict = strictest_verdict(verdicts)
    if verdict is not None and verdict.action == "allow" and None in verdicts:
        return None
    return verdict


def unapproved(
    approvals: Sequence[Rule], permission: str, patterns: Sequence[str], *, home: Path | None = None
) -> tuple[str, ...]:
    """Return the patterns of a request that no approval covers.

    If the verdict on the whole request is ask, only these patterns have to be judged again.
    """
    folder = None if home is None else str(home)
    granted = [rule for rule in approvals if rule.action == "allow"]
    return tuple(
        text
        for text in patterns or _ANYTHING
        if not any(_fits(rule, permission, text, folder) for rule in granted)
    )


def judge_rules(
    rulesets: Sequence[Ruleset],
    permission: str,
    patterns: Sequence[str],
    *,
    approvals: Sequence[Rule] = (),
    home: Path | None = None,
) -> Verdict:
    """Return the strictest verdict of all sources over all patterns of a request.

    A pattern without a matching rule is asked. Approvals answer an ask, pattern by pattern, but
    never a deny. `patterns` and `home` mean the same as in `opinion`.
    """
    unasked = Verdict(action="ask", reason=f"no rule speaks of {permission}")
    verdict = opinion(rulesets, permission, patterns, home=home) or unasked
    if verdict.action != "ask":
        return verdict
    rest = unapproved(approvals, permission, patterns, home=home)
    if not rest:
        return Verdict(action="allow", reason="approved before", source="approvals")
    if not approvals:
        return verdict
    return opinion(rulesets, permission, rest, home=home) or unasked


def hidden(tools: Mapping[str, str], rulesets: Sequence[Ruleset]) -> frozenset[str]:
    """Return the names of tools that a source denies for every pattern.

    `tools` maps names to permissions. A source denies a tool if its last rule for the permission
    denies the pattern `*`.
    """
    return frozenset(
        name
        for name, permission in tools.items()
        if any(_forbids(ruleset, permission) for ruleset in rulesets)
    )


def _forbids(ruleset: Ruleset, permission: str) -> bool:
    for rule in reversed(ruleset.rules):
        if matches_pattern(rule.permission, permission):
            return rule.action == "deny" and rule.pattern == "*"
    return False


def rules_from_config(value: object) -> tuple[Rule, ...]:
    """Parse the `permission` setting of a config file into rules, in the file's order.

    A single action applies to everything. A table maps a permission to an action, or to a table
    from pattern to action. In the inner table, the key `unclear` applies to all strings that are
    known only when they run (see `is_unclear`). Its rules come last.

    :raises ConfigError: for any other value; the error's key is relative to `permission`.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Rule("*", "*", _action(value, "")),)
    if not isinstance(value, Mapping):
        raise ConfigError(f"must be an action or a table, not {_kind(value)}")
    return tuple(
        rule for permission, entry in value.items() for rule in _entry(str(permission), entry)
    )


def _entry(permission: str, entry: object) -> tuple[Rule, ...]:
    if isinstance(entry, Mapping):
        rules = (
            Rule(
                permission,
                _ALL_UNCLEAR if key == _UNCLEAR_KEY else str(key),
                _action(action, f"{permission}.{key}"),
            )
            for key, action in entry.items()
        )
        return tuple(sorted(rules, key=lambda rule: is_unclear(rule.pattern)))
    return (Rule(permission, "*", _action(entry, permission)),)


def _action(value: object, key: str) -> Action:
    for action in get_args(Action):
        if value == action:
            return action  # type: ignore[no-any-return]  # get_args loses the literal's type
    shown = json.dumps(value) if isinstance(value, str) else _kind(value)
    raise ConfigError(f'must be "allow", "ask" or "deny", not {shown}', key=key)


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
