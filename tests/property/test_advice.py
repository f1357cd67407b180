"""What `to_allow` says is true: these rules, behind all others, allow the call; else none does."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pegboard import App, hookimpl
from pegboard.permissions import rules_from_config
from pegboard.schema.session import PermissionRequest, Rule, Verdict
from pegboard_plugins import bash, guard, secrets
from pegboard_plugins import rules as rules_plugin
from pegboard_plugins.shared.frontend import Explanation, explain
from support.models.played import Played, opened, text

actions = st.sampled_from(["allow", "ask", "deny"])
lines = st.sampled_from(
    [
        "ls",
        "git push origin",
        "git status && git push",
        "cat .env",
        "rm -rf ~",
        "$CMD x",
        "echo > /x",
    ]
)
tables = st.dictionaries(st.sampled_from(["*", "git *", "git push *", "ls *", "unclear"]), actions)
permissions = st.dictionaries(
    st.sampled_from(["*", "bash", "b*", "external_directory"]), actions | tables
)


class Policy:
    """Somebody's policy, with the opinion that it is given."""

    opinion: Verdict | None = None

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict | None:
        return self.opinion if "git push" in str(request.patterns) else None


Explained = Callable[[str, tuple[Rule, ...], Verdict | None], Explanation]


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explained]:
    policy = Policy()
    plugins = (rules_plugin, guard, secrets, bash, policy)
    with asyncio.Runner() as runner:
        folder = tmp_path_factory.mktemp("advice")
        context = opened(folder, Played(text("x")), *plugins, allow=False)
        app: App = runner.run(context.__aenter__())
        config = app._engine.config

        def said(line: str, rules: tuple[Rule, ...], opinion: Verdict | None) -> Explanation:
            policy.opinion = opinion
            app._engine.config = replace(config, permission=(*config.permission, *rules))
            arguments: dict[str, Any] = {"command": line, "description": "try"}
            return runner.run(explain(app, "bash", arguments))

        yield said
        runner.run(context.__aexit__(None, None, None))


opinions = st.none() | st.builds(
    Verdict, action=st.sampled_from(["ask", "deny"]), reason=st.just("So."), firm=st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(line=lines, permission=permissions, opinion=opinions)
def test_advice_that_is_followed_allows_and_without_advice_no_rule_does(
    explained: Explained, line: str, permission: dict[str, Any], opinion: Verdict | None
) -> None:
    rules = rules_from_config(permission)
    found = explained(line, rules, opinion)
    everything = tuple(
        Rule(request.permission, pattern, "allow")
        for request in found.requests
        for pattern in (*request.patterns, *request.always, "*")
    )

    after = explained(line, (*rules, *(found.to_allow or everything)), opinion)

    assert bool(found.to_allow) <= (found.verdict.action == "ask")
    if found.verdict.action == "ask":
        assert (after.verdict.action == "allow") is bool(found.to_allow)
