"""What holds of permissions whatever the rules, the plugins and the approvals are."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.policy.permissions import (
    UNCLEAR,
    hidden,
    judge_rules,
    lies_within,
    matches_pattern,
    rules_from_config,
)
from pegboard.schema.session import Action, Rule, Ruleset, Verdict
from support.plugins.dispatching import JUDGE, Plugins, implementation

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
ACTIONS: tuple[Action, ...] = ("allow", "ask", "deny")
HOME = Path("/home/ana")

actions = st.sampled_from(ACTIONS)
permissions = st.sampled_from(["bash", "read", "edit"])
texts = st.sampled_from(
    [*("ls", "ls -l", "git push", "/home/ana/x", "/home/ana", "~/x", ""), f"{UNCLEAR}$CMD", "* x"]
)
rules = st.builds(
    Rule,
    st.sampled_from(["*", "bash", "read", "?ash", "ed*"]),
    st.sampled_from(["*", "ls", "ls *", "git *", "~/*", "$HOME/x", "?s", "*x"]),
    actions,
)
rulesets = st.lists(
    st.builds(Ruleset, source=st.just("any"), rules=st.lists(rules, max_size=4).map(tuple)),
    min_size=1,
    max_size=4,
)
patterns = st.lists(texts, max_size=3)
approvals = st.lists(rules, max_size=4)


def strictness(
    sources: Sequence[Ruleset], permission: str, asked: Sequence[str], given: Sequence[Rule] = ()
) -> int:
    verdict = judge_rules(sources, permission, asked, approvals=given, home=HOME)
    return STRICTNESS[verdict.action]


@given(rulesets, permissions, patterns, approvals, st.data())
def test_one_more_deny_never_loosens_wherever_it_stands(
    sources: list[Ruleset],
    permission: str,
    asked: list[str],
    given: list[Rule],
    data: st.DataObject,
) -> None:
    before = strictness(sources, permission, asked, given)
    drawn = data.draw(rules)
    deny = Rule(drawn.permission, drawn.pattern, "deny")
    at = data.draw(st.integers(0, len(sources) - 1))
    place = data.draw(st.integers(0, len(sources[at].rules)))
    more = (*sources[at].rules[:place], deny, *sources[at].rules[place:])
    inside = [*sources[:at], Ruleset(source="any", rules=more), *sources[at + 1 :]]
    beside = [*sources, Ruleset(source="any", rules=(deny,))]

    assert strictness(inside, permission, asked, given) >= before
    assert strictness(beside, permission, asked, given) >= before


@given(rulesets, permissions, patterns, st.data())
def test_a_rule_made_stricter_never_loosens(
    sources: list[Ruleset], permission: str, asked: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(sources) - 1))
    stricter = tuple(
        Rule(rule.permission, rule.pattern, data.draw(st.sampled_from(_at_least(rule.action))))
        for rule in sources[at].rules
    )
    changed = [*sources[:at], Ruleset(source="any", rules=stricter), *sources[at + 1 :]]

    assert strictness(changed, permission, asked) >= strictness(sources, permission, asked)


def _at_least(action: Action) -> tuple[Action, ...]:
    return ACTIONS[STRICTNESS[action] :]


@given(rulesets, permissions, patterns, approvals, st.randoms())
def test_neither_the_order_of_sources_nor_of_patterns_nor_of_approvals_counts(
    sources: list[Ruleset], permission: str, asked: list[str], given: list[Rule], random: Random
) -> None:
    before = strictness(sources, permission, asked, given)

    for each in (sources, asked, given):
        random.shuffle(each)  # type: ignore[arg-type]  # a list of whatever

    assert strictness(sources, permission, asked, given) == before


@given(rulesets, permissions, patterns, approvals)
def test_no_approval_beats_a_deny(
    sources: list[Ruleset], permission: str, asked: list[str], given: list[Rule]
) -> None:
    everything = [Rule("*", "*", "allow"), *given]

    if strictness(sources, permission, asked) == STRICTNESS["deny"]:
        assert strictness(sources, permission, asked, everything) == STRICTNESS["deny"]
    assert strictness(sources, permission, asked, given) <= strictness(sources, permission, asked)


@given(rulesets, permissions, patterns, texts, approvals)
def test_to_ask_for_more_never_loosens(
    sources: list[Ruleset], permission: str, asked: list[str], more: str, given: list[Rule]
) -> None:
    before = strictness(sources, permission, asked, given) if asked else 0

    assert strictness(sources, permission, [*asked, more], given) >= before


@given(rulesets, permissions, patterns, approvals)
def test_a_tool_that_is_not_offered_would_be_denied_whatever_it_asks_for(
    sources: list[Ruleset], permission: str, asked: list[str], given: list[Rule]
) -> None:
    if hidden({"tool": permission}, sources):
        assert strictness(sources, permission, asked, given) == STRICTNESS["deny"]


@given(st.dictionaries(permissions, st.one_of(actions, st.dictionaries(texts, actions))))
def test_the_config_s_table_means_its_rules_in_order(table: dict[str, object]) -> None:
    """Those about what is unclear come last."""
    expected = [
        Rule(name, pattern, action)
        for name, entry in table.items()
        for is_last in (False, True)
        for pattern, action in (entry.items() if isinstance(entry, dict) else [("*", entry)])
        if pattern.startswith(UNCLEAR) == is_last
    ]

    assert list(rules_from_config(table)) == expected


def _fails(value: object) -> object:
    raise RuntimeError("broken")


def _says(action: Action) -> Callable[[object], object]:
    return lambda value: Verdict(action=action)


PLUGINS: dict[str, Callable[[object], object]] = {
    "silent": lambda value: None,
    "nonsense": lambda value: "allow",
    "raises": _fails,
    **{action: _says(action) for action in ACTIONS},
}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(PLUGINS)), max_size=4),
    st.lists(st.sampled_from(sorted(PLUGINS)), max_size=3),
)
def test_a_plugin_can_only_tighten_and_one_that_fails_denies(
    some: list[str], more: list[str]
) -> None:
    before, after = asyncio.run(_verdicts(some)), asyncio.run(_verdicts([*more, *some]))

    assert after >= before
    if {"nonsense", "raises"} & {*some}:
        assert before == STRICTNESS["deny"]


async def _verdicts(names: list[str]) -> int:
    """The verdict of these plugins, -1 for none."""
    plugins = [implementation(f"p{at}", PLUGINS[name]) for at, name in enumerate(names)]
    async with Plugins(*plugins) as hooks:
        verdict = await hooks.strictest(JUDGE, value="-")
    return -1 if verdict is None else STRICTNESS[verdict.action]


wildcards = st.text("ab *?", max_size=6)


@given(wildcards, wildcards, st.text("ab *?", max_size=8))
def test_what_lies_within_a_pattern_matches_nothing_else(inner: str, outer: str, text: str) -> None:
    assert lies_within(outer, outer)
    if lies_within(inner, outer) and matches_pattern(inner, text):
        assert matches_pattern(outer, text)


@given(wildcards, st.text("ab ", max_size=8))
def test_a_literal_text_lies_within_what_matches_it(outer: str, text: str) -> None:
    assert lies_within(text, outer) == matches_pattern(outer, text)
