"""What a person orders is a call like any other, but for the question whether it may be made."""

from pathlib import Path

from msgspec.structs import replace

from pegboard import Prompt, Tool, ToolContext, tool
from pegboard.engine.input.usermessage import UserCall
from pegboard.schema.model import Model
from pegboard.schema.part import Completed, Failed, ModelChoice, SubtaskInput, ToolPart
from pegboard_plugins import task
from support.models.played import Played, ToolsPlugin, opened, text, texts, tools_of


class Several(Played):
    """Has a model of every name."""

    def resolve(self, model_id: str) -> Model | None:
        return replace(self._model, id=model_id)


async def test_work_for_a_subagent_is_not_asked_about_and_names_its_model(tmp_path: Path) -> None:
    provider = Several(text("seven"), text("There are seven."))
    config = {"model": "played/m", "permission": {"task": "deny"}}
    async with opened(tmp_path, provider, task, allow=False, config=config) as app:
        session = await app.create_session()
        order = SubtaskInput(
            prompt="count them",
            description="count",
            agent="helper",
            model=ModelChoice(provider_id="played", model_id="other"),
        )
        answer = await app.prompt(session.id, Prompt(parts=[order]))

    assert [request.model.id for request in provider.requests] == ["other", "m"]
    assert texts(answer) == ["There are seven."]


async def test_what_the_ordered_tool_asks_beside_its_own_permission_is_asked(
    tmp_path: Path,
) -> None:
    @tool(requires=False)
    async def deploy(context: ToolContext, where: str) -> str:
        """Deploy."""
        await context.require("deploy", [where])
        await context.require("careful", [where])
        return "deployed"

    async with opened(tmp_path, Played(), ToolsPlugin(deploy), allow=False) as app:
        session = await app.create_session()
        turn = await app.run_user_call(session.id, ordered(deploy))

    [part] = tools_of((turn,))
    assert isinstance(part.state, Failed)
    assert part.state.metadata is not None
    assert part.state.metadata["denied"]
    assert "careful" in part.state.error


async def test_an_ordered_tool_need_not_be_one_of_the_app_s(tmp_path: Path) -> None:
    @tool
    async def deploy(context: ToolContext, where: str) -> str:
        """Deploy."""
        return f"deployed to {where} by {context.agent}"

    async with opened(tmp_path, Played(text("I see")), allow=False) as app:
        session = await app.create_session()
        turn = await app.run_user_call(session.id, ordered(deploy))
        turns = await app.list_turns(session.id)

    [part] = turn.parts
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, Completed)
    assert part.state.output == "deployed to the moon by build"
    assert [texts(each) for each in turns] == [["The user deployed."], []]


def ordered(called: Tool) -> UserCall:
    return UserCall(tool=called, input={"where": "the moon"}, said="The user deployed.")
