"""A request gets the verdict of the rules, whoever asks and whether somebody is there to answer."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pegboard import App
from pegboard.engine.asking.decision import judged, make_request, unattended
from pegboard.engine.sessions import unstored_view
from pegboard.policy.agents import default_agent
from pegboard.policy.permissions import UNCLEAR, judge_rules
from pegboard.schema.session import Action, Rule, Ruleset
from pegboard.storage.changes import DropApproval, PutApproval
from pegboard_plugins import rules as rules_plugin
from pegboard_plugins.shared.frontend import approvals_of
from support.models.played import Played, opened, text

actions = st.sampled_from(["allow", "ask", "deny"])
patterns = st.lists(st.sampled_from(["ls", "ls -l", "git push", f"{UNCLEAR}$X", "~/x"]), max_size=3)
rules = st.lists(
    st.builds(
        Rule, st.sampled_from(["*", "bash"]), st.sampled_from(["*", "ls *", "git *"]), actions
    ),
    max_size=3,
).map(tuple)
approvals = st.sets(st.sampled_from(["*", "ls *", "git *", "~/x"]), max_size=2).map(
    lambda found: tuple(Rule("bash", pattern, "allow") for pattern in sorted(found))
)
rulesets = st.lists(st.builds(Ruleset, source=st.just("any"), rules=rules), min_size=1, max_size=3)

Judged = Callable[..., tuple[Action, Action, Action]]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """What an App decides where somebody is there, where nobody is, and with `--auto`."""
    with asyncio.Runner() as runner:
        folder = tmp_path_factory.mktemp("modes")
        context = opened(folder, Played(text("x")), rules_plugin, allow=False)
        app = runner.run(context.__aenter__())
        yield lambda *facts: runner.run(_verdicts(app, *facts))
        runner.run(context.__aexit__(None, None, None))


async def _verdicts(
    app: App, sources: Sequence[Ruleset], asked: Sequence[str], approved: Sequence[Rule]
) -> tuple[Action, Action, Action]:
    engine = app._engine
    agent = default_agent(engine.config, engine.agents)
    view = replace(unstored_view(engine, agent), rulesets=tuple(sources))
    request = make_request(
        engine.ids,
        session_id=view.id,
        permission="bash",
        patterns=asked,
        always=(),
        metadata={},
        tool=None,
    )
    await app.storage.commit(PutApproval(engine.workspace.project_id, tuple(approved)))
    config = replace(engine.config, auto_approve=True)
    auto = await judged(replace(engine, config=config), view, request)
    verdict = await judged(engine, view, request)
    given = await approvals_of(app)
    await app.storage.commit(DropApproval(tuple(each.id for each in given)))
    return verdict.action, unattended(request, verdict).action, auto.action


@settings(max_examples=60, deadline=None)
@given(st.lists(rulesets, min_size=2, max_size=2), patterns, approvals, st.randoms())
def test_every_mode_is_the_pure_verdict_and_who_works_for_others_is_bound_by_their_rules(
    verdicts: Judged,
    own_and_parents: list[list[Ruleset]],
    asked: list[str],
    approved: tuple[Rule, ...],
    random: Random,
) -> None:
    own, parents = own_and_parents
    mixed = [*own, *parents]
    random.shuffle(mixed)

    attended, headless, auto = verdicts(own, asked, approved)
    child, *_ = verdicts(mixed, asked, approved)

    pure, above, both = (
        judge_rules(each, "bash", asked, approvals=approved).action
        for each in (own, parents, mixed)
    )
    assert attended == pure
    assert headless == ("deny" if pure == "ask" else pure)
    assert auto == ("allow" if pure == "ask" else pure)
    assert child == both
    assert "deny" not in (pure, above) or child == "deny"
