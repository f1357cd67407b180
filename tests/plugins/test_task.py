from pathlib import Path

import pytest

from pegboard.contract.context import SessionView, SubagentResult
from pegboard.display import plain_line
from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.providers import ToolDefinition
from pegboard.schema.config import Agent, Config
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.part import Failed, TimeSpan, ToolPart
from pegboard.schema.session import Rule, Ruleset, Session, SessionTime
from pegboard.trust.decisions import Decision
from pegboard_plugins.task import task, tool_definition
from support.tools.tool_context import Context, call

NOTE = "<task_metadata>\nsession_id: ses_child\n</task_metadata>"
ARGS = {"description": "find it", "prompt": "Find it.", "subagent_type": "explore"}


async def test_the_subagents_answer_comes_with_its_session(tmp_path):
    context = Context(tmp_path)

    result = await call(task, context, **ARGS)

    assert result.output == ("found it\n\n<task_metadata>\nsession_id: ses_child\n</task_metadata>")
    assert result.title == "find it"
    assert result.metadata == {"sessionId": "ses_child", "outcome": "done"}
    assert context.shown == [("find it", {"sessionId": "ses_child"})]
    assert context.asked("task") == ["explore"]
    assert context.prompted == ("explore", "Find it.", "find it", None)


async def test_an_earlier_task_is_continued(tmp_path):
    context = Context(tmp_path)

    await call(task, context, **ARGS, session_id="ses_child")

    assert context.prompted[-1] == "ses_child"


async def test_a_subagent_that_fails_is_an_error_with_what_it_said(tmp_path):
    child = SubagentResult(session_id="ses_child", outcome="timed_out", text="so far: nothing")

    context = Context(tmp_path, child=child)

    with pytest.raises(ToolError, match=r"timed out\. so far: nothing\n\n<task_metadata>"):
        await call(task, context, **ARGS)

    assert context.shown[-1] == (None, {"sessionId": "ses_child", "outcome": "timed_out"})


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (f"{NOTE}\n\nThe call was stopped before it ended.", ["Stopped."]),
        (
            f"the subagent's work timed out. so far\n\n{NOTE}",
            ["the subagent's work timed out. so far"],
        ),
    ],
)
def test_people_do_not_see_what_names_the_session_to_the_model(error, shown):
    state = Failed(input=ARGS, error=error, time=TimeSpan(start=0, end=1))
    facts = {"id": "prt_1", "session_id": "ses_1", "message_id": "msg_1", "call_id": "call_1"}

    assert task.draw is not None
    block = task.draw(ToolPart(**facts, tool="task", state=state))

    assert [plain_line(line) for line in block.lines] == shown
    assert block.title == "explore: find it"


@pytest.mark.parametrize("timeout_s", [0, -1, 3601])
async def test_the_deadline_has_limits(tmp_path, timeout_s):
    with pytest.raises(ToolError, match="from 1 to 3600 seconds"):
        await call(task, Context(tmp_path), **ARGS, timeout_s=timeout_s)


async def test_an_empty_prompt_is_refused(tmp_path):
    with pytest.raises(ToolError, match="the prompt is empty"):
        await call(task, Context(tmp_path), description="d", prompt=" ", subagent_type="x")


async def test_a_denied_subagent_is_not_started(tmp_path):
    context = Context(tmp_path, denied=["task"])

    with pytest.raises(PermissionDeniedError):
        await call(task, context, **ARGS)

    assert not hasattr(context, "prompted")


def agent(name, mode="subagent", **more):
    return Agent(name=name, mode=mode, permission=(), options={}, **more)


def view(*agents, rules=()):
    return SessionView(
        info=Session(
            id="ses_1",
            slug="s",
            project_id="p",
            directory="/w",
            title="t",
            version="0",
            time=SessionTime(created=0, updated=0),
        ),
        directory=Path("/w"),
        worktree=Path("/w"),
        agent=agents[0],
        agents=agents,
        model=Model(id="m", provider_id="p", name="m", api=ModelApi(id="m")),
        config=Config(),
        rulesets=(Ruleset(source="config", rules=tuple(rules)),),
        trust=Decision(trusted=False, root=Path("/w")),
    )


async def test_the_description_lists_the_subagents_that_may_be_used():
    session = view(
        agent("build", "primary"),
        agent("explore", description="Searches."),
        agent("general", "all"),
        agent("secret", hidden=True),
        agent("banned"),
        rules=[Rule(permission="task", pattern="banned", action="deny")],
    )
    given = ToolDefinition(name="task", description="D.", parameters={}, permission="task")

    changed = await tool_definition(session, given)

    assert changed.description == (
        "D.\nsubagent_type is one of\n- explore: Searches.\n- general: no description"
    )


async def test_other_tools_keep_their_description():
    given = ToolDefinition(name="bash", description="D.", parameters={}, permission="bash")

    assert await tool_definition(view(agent("build")), given) is None
