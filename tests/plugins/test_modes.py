"""A permission mode asks for more than the rules do, and never allows what they do not."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pegboard import App, Prompt, SessionView, Tool, ToolContext, tool
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.config import Effect
from pegboard.schema.part import Completed, Failed
from pegboard.schema.session import Action, PermissionRequest, Rule, Ruleset
from pegboard_plugins import agents, bash, edit, read, rules, task
from pegboard_plugins.rules import DEFAULTS
from pegboard_plugins.shared.frontend import MODES, change_mode, default_mode, explain, with_mode
from support.models.played import Played, ToolsPlugin, call, calls, opened, text, tools_of

STRICTNESS = ("allow", "ask", "deny")
PERMISSIONS = ("read", "bash", "edit", "sees", "changes", "anothers")
NAMES = ("*", *PERMISSIONS)

actions = st.sampled_from(STRICTNESS)
own_rules = st.lists(
    st.builds(Rule, st.sampled_from(NAMES), st.sampled_from(["*", "a*", "[unclear] *"]), actions),
    max_size=4,
).map(tuple)
patterns = st.lists(st.sampled_from(["a", "ab", "x", "[unclear] $X"]), max_size=2).map(tuple)

Judge = Callable[[str, tuple[Rule, ...], tuple[Rule, ...], str, tuple[str, ...]], Action]


@tool(effect="reads")
async def sees() -> str:
    """Look."""
    return "seen"


@tool(effect="edits")
async def changes() -> str:
    """Change."""
    return "changed"


def shell(command: str) -> list[StreamEvent]:
    return calls(call("bash", json.dumps({"command": command})))


def plugins(*tools: Tool) -> tuple[object, ...]:
    return rules, bash, edit, read, ToolsPlugin(sees, changes, *tools)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """The action for a request by rules of the user, of the session, and in a mode."""
    with asyncio.Runner() as runner:
        folder = tmp_path_factory.mktemp("modes")
        context = opened(folder, Played(text("x")), *plugins(), allow=False)
        app = runner.run(context.__aenter__())
        call = runner.run(app.policy.foresee("read", {"filePath": "x"}))
        yield lambda *facts: runner.run(_judged(app, call.session, *facts))
        runner.run(context.__aexit__(None, None, None))


async def _judged(  # noqa: PLR0917 - the facts of a judgement
    app: App,
    view: SessionView,
    mode: str,
    users: tuple[Rule, ...],
    sessions: tuple[Rule, ...],
    permission: str,
    asked: tuple[str, ...],
) -> Action:
    rulesets = (Ruleset("config", DEFAULTS + users), Ruleset("session", sessions))
    info = replace(view.info, metadata=with_mode(view.info, mode))
    request = PermissionRequest(
        id="per_1",
        session_id=view.id,
        permission=permission,
        patterns=asked,
        metadata={},
        always=(),
    )
    judgement = await app.policy.judge(replace(view, info=info, rulesets=rulesets), request)
    return judgement.verdict.action


@settings(max_examples=60, deadline=None)
@given(own_rules, own_rules, st.sampled_from(PERMISSIONS), patterns)
def test_no_mode_is_looser_than_the_rules(
    judged: Judge,
    users: tuple[Rule, ...],
    sessions: tuple[Rule, ...],
    permission: str,
    asked: tuple[str, ...],
) -> None:
    pure = judged("", users, sessions, permission, asked)

    found = {name: judged(name, users, sessions, permission, asked) for name in [*MODES, "nosuch"]}

    assert found["everything"] == pure
    if pure != "allow":
        assert set(found.values()) == {pure}
    order = [found[name] for name in ("everything", "accept-edits", "ask", "nosuch")]
    assert order == sorted(order, key=STRICTNESS.index)


@pytest.mark.parametrize(
    ("mode", "effects"),
    [
        ("ask", {"reads"}),
        ("accept-edits", {"reads", "edits"}),
        ("plan", {"reads"}),
        ("everything", {"reads", "edits", "runs"}),
    ],
)
def test_a_mode_allows_what_its_effects_are(judged: Judge, mode: str, effects: set[Effect]) -> None:
    wanted = {
        "read": "reads",
        "sees": "reads",
        "edit": "edits",
        "changes": "edits",
        "bash": "runs",
        "anothers": "runs",
    }

    found = {name: judged(mode, (), (), name, ("x",)) for name in PERMISSIONS}

    assert found == {name: "allow" if wanted[name] in effects else "ask" for name in PERMISSIONS}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", [Rule("bash", "*", "allow"), Rule("bash", "a*", "allow")])
def test_a_rule_of_the_user_s_own_counts_before_a_mode(
    judged: Judge, mode: str, rule: Rule
) -> None:
    assert judged(mode, (rule,), (), "bash", ("ab",)) == "allow"


def test_a_user_who_has_allowed_everything_is_asked_in_a_mode_that_was_chosen(
    judged: Judge,
) -> None:
    assert judged("ask", (Rule("*", "*", "allow"),), (), "bash", ("x",)) == "ask"


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("ls -l | head && git status", "allow"),
        ("find . -name x -exec cat {} +", "allow"),
        ("find . -name x -delete", "ask"),
        ("cat a > b", "ask"),
        ("git diff --output=a", "ask"),
        ("FOO=1 ls", "ask"),
        ("ls | xargs rm", "ask"),
        ("./ls", "ask"),
        ("npm test", "ask"),
    ],
)
async def test_a_line_that_only_reads_is_not_asked_for(
    tmp_path: Path, command: str, action: Action
) -> None:
    config = {"model": "played/m", "permission_mode": "ask"}
    async with opened(tmp_path, Played(text("x")), *plugins(), allow=False, config=config) as app:
        found = await explain(app, "bash", {"command": command})

    assert found.verdict.action == action


async def test_a_new_mode_counts_for_the_next_request_of_the_same_step(tmp_path: Path) -> None:
    @tool(effect="reads")
    async def switch(context: ToolContext, mode: str) -> str:
        """Switch."""
        await change_mode(app, context.session.id, mode)
        return mode

    def switched(mode: str, number: int) -> Sequence[StreamEvent]:
        return call("switch", json.dumps({"mode": mode}), call_id=f"s{number}")

    step = calls(switched("ask", 0))
    provider = Played(
        step, shell("touch a"), calls(switched("everything", 1)), shell("touch b"), text("done")
    )
    async with opened(tmp_path, provider, *plugins(switch), allow=False, interactive=False) as app:
        session = await app.create_session()
        await change_mode(app, session.id, "everything")
        await app.prompt(session.id, "go")
        parts = tools_of(await app.list_turns(session.id))

    assert [type(each.state) for each in parts if each.tool == "bash"] == [Failed, Completed]
    assert not (tmp_path / "project" / "a").exists()
    assert (tmp_path / "project" / "b").exists()


async def test_a_subagent_is_bound_by_the_mode_of_the_session_that_it_works_for(
    tmp_path: Path,
) -> None:
    steps: Counter[str] = Counter()
    work = {"description": "work", "prompt": "do it", "subagent_type": "helper"}
    parent = [calls(call("task", json.dumps(work))), text("done")]
    child = [shell("touch a"), text("done")]

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        steps[request.session_id] += 1
        script = parent if next(iter(steps)) == request.session_id else child
        for event in script[steps[request.session_id] - 1]:
            yield event

    async with opened(tmp_path, Played(answer), *plugins(), task, allow=False) as app:
        session = await app.create_session()
        await change_mode(app, session.id, "ask")
        await app.prompt(session.id, "go")
        (below,) = await app.children(session.id)
        (part,) = tools_of(await app.list_turns(below.id))

    assert isinstance(part.state, Failed)
    assert "mode ask" in part.state.error
    assert not (tmp_path / "project" / "a").exists()


async def test_the_mode_plan_of_the_configuration_is_the_agent_plan(tmp_path: Path) -> None:
    config = {"model": "played/m", "permission_mode": "plan"}
    async with opened(
        tmp_path, Played(text("x")), *plugins(), agents, allow=False, config=config
    ) as app:
        edited = await explain(app, "changes", {})
        ran = await explain(app, "bash", {"command": "npm test"})
        looked = await explain(app, "bash", {"command": "git log"})

        assert app.default_agent().name == "plan"
    found = [each.verdict.action for each in (edited, ran, looked)]
    assert found == ["deny", "ask", "allow"]


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        ({}, "ask"),
        ({"permission": {"bash": "allow"}}, "ask"),
        ({"permission": "allow"}, "everything"),
        ({"auto_approve": True}, "everything"),
        ({"permission": "allow", "permission_mode": "accept-edits"}, "accept-edits"),
    ],
)
async def test_a_user_who_has_chosen_nothing_is_asked(
    tmp_path: Path, config: dict[str, object], mode: str
) -> None:
    async with opened(
        tmp_path, Played(text("x")), *plugins(), config={"model": "played/m", **config}
    ) as app:
        assert default_mode(app.config) == mode


async def test_a_session_and_a_configuration_without_a_mode_are_as_the_rules_say(
    tmp_path: Path,
) -> None:
    provider = Played(shell("touch a"), text("done"))
    async with opened(tmp_path, provider, *plugins(), allow=False) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt("go"))

    assert (tmp_path / "project" / "a").exists()


async def test_a_mode_that_does_not_exist_is_named_and_asks_like_the_strictest(
    tmp_path: Path,
) -> None:
    config = {"model": "played/m", "permission_mode": "al"}
    async with opened(tmp_path, Played(text("x")), *plugins(), allow=False, config=config) as app:
        found = await explain(app, "bash", {"command": "touch a"})
        looked = await explain(app, "bash", {"command": "ls"})
        (failure,) = app.failures

    assert (found.verdict.action, looked.verdict.action) == ("ask", "allow")
    assert 'no mode is called "al"; the modes are ask, accept-edits' in failure.message
