"""The tools that switch between the agents `plan` and `build`, if the user agrees.

`plan_exit` exists for the agent `plan` if a user is there. `plan_enter` is off unless the
configuration has a table `plugins.plan`.
"""

from pegboard import SessionView, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.errors import QuestionRejectedError
from pegboard.providers import ModelRequest
from pegboard.schema.config import Config
from pegboard.schema.session import Question, QuestionOption

PLAN, BUILD = "plan", "build"
YES, NO = "Yes", "No"


@tool(effect="reads", needs_user=True, requires=False)
async def plan_exit(context: ToolContext) -> ToolResult:
    """Ask the user to leave plan mode, when the plan is complete and you have given it."""
    return await _ask_to_switch(
        context,
        question="The plan is ready. Start building?",
        agent=BUILD,
        prompt="The plan is approved. Carry it out.",
    )


@tool(effect="reads", needs_user=True, requires=False)
async def plan_enter(context: ToolContext) -> ToolResult:
    """Ask the user to change to plan mode, for work that should be thought through first."""
    return await _ask_to_switch(
        context,
        question="Make a plan first, without changing files?",
        agent=PLAN,
        prompt="Make a plan first.",
    )


async def _ask_to_switch(
    context: ToolContext, *, question: str, agent: str, prompt: str
) -> ToolResult:
    """Ask the user; after a yes, the agent named `agent` continues with `prompt` in the next step.

    :raises QuestionRejectedError: on no, which ends the turn.
    """
    options = (
        QuestionOption(label=YES, description=f"switch to {agent}"),
        QuestionOption(label=NO, description=f"stay in {context.agent}"),
    )
    ((answer, *_),) = (
        labels or (NO,)
        for labels in await context.ask_user(
            [Question(question=question, header=agent.capitalize(), options=options)]
        )
    )
    if answer == NO:
        raise QuestionRejectedError(f"The user said no: the agent stays {context.agent}.")
    if answer != YES:
        return ToolResult(output=f"Not yet. The user says: {answer}", title="Not yet")
    await context.queue_prompt(prompt, agent=agent)
    return ToolResult(
        output=f"The user agrees. The agent {agent} goes on; end your answer here.",
        title=f"Switched to {agent}",
    )


switch = {plan_enter.id: "plugins.plan"}


@hookimpl
async def register_tools(config: Config) -> list[Tool]:
    """Return `plan_exit`, and `plan_enter` if the configuration enables it."""
    return [plan_exit, plan_enter] if "plan" in config.plugins else [plan_exit]


@hookimpl
async def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """Remove the switch to the current agent from the request, or both without a user."""
    if not session.interactive:
        return request.without(plan_enter.id, plan_exit.id)
    return request.without(plan_enter.id if session.agent.name == PLAN else plan_exit.id)
