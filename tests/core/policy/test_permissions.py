import itertools
import json
import operator
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ConfigError
from pegboard.policy.permissions import (
    UNCLEAR,
    hidden,
    judge_rules,
    matches_pattern,
    opinion,
    rules_from_config,
    strictest_verdict,
    unapproved,
)
from pegboard.schema.session import Action, Rule, Ruleset, Verdict

Case = dict[str, Any]
CASES: list[Case] = [
    case
    for case in json.loads(
        (Path(__file__).parent.parent.parent / "data" / "permission_cases.json").read_text()
    )
    if "request" in case
]
EDITING = ("edit", "write", "apply_patch")
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def _rulesets(case: Case) -> tuple[list[Ruleset], list[Rule]]:
    rulesets = [
        Ruleset(source=each["source"], rules=tuple(Rule(**rule) for rule in each["rules"]))
        for each in case["rulesets"]
    ]
    approvals = [rule for each in rulesets if each.source == "approvals" for rule in each.rules]
    return [each for each in rulesets if each.source != "approvals"], approvals


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_verdict_is_the_expected_one(case: Case) -> None:
    rulesets, approvals = _rulesets(case)
    request = case["request"]
    home = Path(case["home"]) if "home" in case else None
    started = time.process_time()

    answer: object
    if "tools" in request:
        tools = {name: "edit" if name in EDITING else name for name in request["tools"]}
        answer = {"hidden": sorted(hidden(tools, rulesets))}
        expected = {"hidden": sorted(case["expect"]["hidden"])}
    else:
        answer = judge_rules(
            rulesets, request["permission"], request["patterns"], approvals=approvals, home=home
        ).action
        expected = case["expect"]

    assert answer == expected
    assert time.process_time() - started < 1


def _slow_but_sure(pattern: str, text: str) -> bool:
    """Wildcards by dynamic programming: the definition, to compare with."""
    fits = [True] + [False] * len(text)
    for sign in pattern:
        if sign == "*":
            fits = list(itertools.accumulate(fits, operator.or_))
        else:
            fits = [False] + [
                before and sign in ("?", character)
                for before, character in zip(fits, text, strict=False)
            ]
    return fits[-1]


@given(st.text("ab*? \n", max_size=8), st.text("ab*? \n", max_size=10))
def test_wildcards_mean_what_their_definition_says(pattern: str, text: str) -> None:
    expected = _slow_but_sure(pattern, text)
    if pattern.endswith(" *"):
        expected = expected or _slow_but_sure(pattern[:-2], text)

    assert matches_pattern(pattern, text) == expected


_rules = st.builds(
    Rule,
    st.sampled_from(["*", "bash", "read", "b*"]),
    st.sampled_from(["*", "a", "a *", "?", "b*"]),
    st.sampled_from(["allow", "ask", "deny"]),
)
_sources = st.lists(
    st.builds(Ruleset, source=st.just("any"), rules=st.lists(_rules, max_size=4).map(tuple)),
    max_size=4,
)
_permissions = st.sampled_from(["bash", "read", "edit"])
_patterns = st.lists(st.sampled_from(["a", "b", "a b", "c"]), max_size=3)


def _action(
    rulesets: list[Ruleset], permission: str, patterns: list[str], approvals: Sequence[Rule] = ()
) -> Action:
    return judge_rules(rulesets, permission, patterns, approvals=approvals).action


@given(_sources, _permissions, _patterns, st.randoms())
def test_the_order_of_sources_and_patterns_means_nothing(
    rulesets: list[Ruleset], permission: str, patterns: list[str], random: Random
) -> None:
    before = _action(rulesets, permission, patterns)

    random.shuffle(rulesets)
    random.shuffle(patterns)

    assert _action(rulesets, permission, patterns) == before


@given(_sources, _sources, _permissions, _patterns)
def test_a_further_source_never_loosens_an_opinion(
    rulesets: list[Ruleset], more: list[Ruleset], permission: str, patterns: list[str]
) -> None:
    before = opinion(rulesets, permission, patterns)

    after = opinion([*rulesets, *more], permission, patterns)

    if before is not None:
        assert after is not None
        assert STRICTNESS[after.action] >= STRICTNESS[before.action]


@given(_sources, _permissions, _patterns, _patterns)
def test_a_further_pattern_never_loosens(
    rulesets: list[Ruleset], permission: str, patterns: list[str], more: list[str]
) -> None:
    before = _action(rulesets, permission, patterns or ["a"])

    after = _action(rulesets, permission, [*(patterns or ["a"]), *more])

    assert STRICTNESS[after] >= STRICTNESS[before]


@given(_sources, st.lists(_rules, max_size=4), _permissions, _patterns)
def test_approvals_change_nothing_but_an_ask(
    rulesets: list[Ruleset], approvals: list[Rule], permission: str, patterns: list[str]
) -> None:
    before = _action(rulesets, permission, patterns)

    after = _action(rulesets, permission, patterns, approvals)

    assert after == before or (before, after) == ("ask", "allow")


def _config(*rules: tuple[str, str, Action]) -> list[Ruleset]:
    return [Ruleset(source="config", rules=tuple(Rule(*rule) for rule in rules))]


def test_the_reason_names_the_rule_and_its_source() -> None:
    verdict = judge_rules(_config(("bash", "rm *", "deny")), "bash", ["ls", "rm -r x"])

    assert verdict == Verdict(
        action="deny",
        reason='denied by rule bash "rm *" (config)',
        source="config",
        rule=Rule("bash", "rm *", "deny"),
    )


def test_silence_about_one_pattern_is_no_opinion_about_the_request() -> None:
    rulesets = _config(("bash", "ls", "allow"))

    assert opinion(rulesets, "bash", ["ls", "make"]) is None
    assert judge_rules(rulesets, "bash", ["ls", "make"]) == Verdict(
        action="ask", reason="no rule speaks of bash", source=""
    )


def test_a_request_without_patterns_is_judged_as_the_star() -> None:
    assert _action(_config(("deploy", "*", "deny")), "deploy", []) == "deny"
    assert _action([], "deploy", []) == "ask"


def test_a_rule_and_an_approval_settle_a_request_together() -> None:
    rulesets = _config(("bash", "*", "ask"), ("bash", "ls *", "allow"))
    approvals = [Rule("bash", "git push *", "allow")]

    assert _action(rulesets, "bash", ["ls", "git push"], approvals) == "allow"
    assert unapproved(approvals, "bash", ["ls", "git push"]) == ("ls",)


@pytest.mark.parametrize("home", ["/home/ana", "/srv/[u]", "/srv/u*b?"])
def test_the_home_folder_is_taken_literally(home: str) -> None:
    rulesets = _config(("read", "~/notes/*", "allow"), ("read", "$HOME/x", "allow"))

    def allowed(path: str) -> bool:
        return judge_rules(rulesets, "read", [path], home=Path(home)).action == "allow"

    assert allowed(f"{home}/notes/a")
    assert allowed(f"{home}/x")
    assert not allowed(f"{home.replace('u', 'uu')}a/notes/a")
    assert judge_rules(rulesets, "read", ["~/notes/a"], home=Path(home)).action != "allow"


def test_the_strictest_of_no_opinions_is_none() -> None:
    assert strictest_verdict([None, None]) is None


def test_rules_keep_the_order_of_the_config() -> None:
    rules = rules_from_config({"bash": {"*": "ask", "git *": "allow"}, "edit": "deny"})

    assert rules == (
        Rule("bash", "*", "ask"),
        Rule("bash", "git *", "allow"),
        Rule("edit", "*", "deny"),
    )
    assert rules_from_config("allow") == (Rule("*", "*", "allow"),)
    assert rules_from_config(None) == ()


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        ("maybe", "", '"maybe"'),
        ({"bash": "yes"}, "bash", '"yes"'),
        ({"bash": {"rm *": 1}}, "bash.rm *", "type int"),
        (["allow"], "", "type list"),
    ],
)
def test_a_wrong_permission_names_its_key(value: object, key: str, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        rules_from_config(value)

    assert raised.value.key == key
    assert text in str(raised.value)


def unclear(*sources: object) -> str:
    """The verdict on an unclear line of rules as they stand in a config, one for each source."""
    rulesets = tuple(Ruleset(source="any", rules=rules_from_config(each)) for each in sources)
    return judge_rules(rulesets, "bash", [f"{UNCLEAR}$CMD x"]).action


def test_what_is_unclear_is_allowed_by_a_star_or_by_its_very_pattern_alone() -> None:
    for pattern in ("*", "unclear", f"{UNCLEAR}$CMD x", f"{UNCLEAR}*"):
        assert unclear({"bash": {pattern: "allow"}}) == "allow"
    for pattern in ("*x", "$CMD *", "* *", "[*", f"{UNCLEAR}$CMD ?"):
        assert unclear({"bash": {pattern: "allow"}}) == "ask"


@pytest.mark.parametrize(
    ("sources", "action"),
    [
        ([{"bash": "deny"}], "deny"),
        ([{"bash": {"*x": "deny"}}], "deny"),
        ([{"bash": {"*": "allow", "rm *": "deny"}}], "ask"),
        ([{"bash": {"*": "allow", "rm *": "ask"}}], "ask"),
        ([{"*": "allow"}, {"bash": {"rm *": "deny"}}], "ask"),
        ([{"bash": {"rm *": "deny", "*": "allow"}}], "allow"),
        ([{"bash": {"ls *": "allow", "*": "ask"}}], "ask"),
        ([{"bash": {"unclear": "allow", "*": "ask", "rm *": "deny"}}], "allow"),
        ([{"bash": {"unclear": "deny", "*": "allow"}}], "deny"),
        ([{"bash": {"unclear": "allow"}}, {"bash": {"rm *": "deny"}}], "ask"),
        ([{"edit": {"a": "deny"}, "bash": "allow"}], "allow"),
        ([{"*": "allow", "ba*": {"rm *": "deny"}}], "ask"),
    ],
)
def test_what_is_unclear_is_asked_for_where_a_rule_may_mean_it(
    sources: list[object], action: str
) -> None:
    assert unclear(*sources) == action


def test_a_firm_ask_beats_another_ask() -> None:
    loose, firm = Verdict(action="ask"), Verdict(action="ask", firm=True)

    assert strictest_verdict([loose, firm, loose]) is firm
