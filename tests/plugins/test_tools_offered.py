"""What all built-in tools together cost a request, and how they are named."""

import json

import pytest

from pegboard import App, AppOptions, hookimpl
from pegboard.schema.model import Model, ModelApi
from pegboard_plugins import bash, edit, glob, grep, invalid, read, task, todo
from pegboard_plugins.apply_patch import apply_patch
from pegboard_plugins.batch import batch
from pegboard_plugins.edit import multiedit, write_plugin
from pegboard_plugins.list import list_files
from pegboard_plugins.plan import plan_enter, plan_exit
from pegboard_plugins.question import question
from pegboard_plugins.skill import skill
from support.models.played import Played, text
from support.tools.tool_context import Context, call

MODULES = (bash, edit, write_plugin, glob, grep, read, task, todo)
LIMIT_BYTES = 9 * 1024
LESS_OFTEN = (
    apply_patch,
    batch,
    list_files,
    multiedit,
    plan_enter,
    plan_exit,
    question,
    skill,
    bash.processes,
)
NOW_AND_THEN = {
    *("apply_patch", "batch", "list", "multiedit"),
    *("plan_enter", "plan_exit", "processes", "question", "skill"),
}
"""Tools of this package that not every session is offered."""


async def offered():
    tools = [tool for module in MODULES for tool in await module.register_tools()]
    return [tool for tool in tools if tool.id not in NOW_AND_THEN]


async def test_the_tools_have_the_protocols_names_and_permissions():
    assert {tool.id: tool.permission for tool in await offered()} == {
        "bash": "bash",
        "edit": "edit",
        "glob": "glob",
        "grep": "grep",
        "read": "read",
        "task": "task",
        "todoread": "todoread",
        "todowrite": "todowrite",
        "write": "edit",
    }


SAYS = {
    "bash": ("shell", "rather than cd", "behind `&`", "cut in the middle", "milliseconds", "quote"),
    "edit": ("copied exactly", "without read's line numbers", "occur once", "write"),
    "glob": ("last changed first", "git ignores", "without a slash", "**/*.py"),
    "grep": ("regular expression", "one line at a time", "git ignores", "(?i)", "*.{ts,tsx}"),
    "read": ("from 1", "several files in one step", "Pictures", "relative to the working"),
    "task": ("in one step", "Not for a file", "must not share files", "what to send back", "user"),
    "todowrite": ("three or more", "not for less", "nothing in_progress at the end"),
    "todoread": ("list",),
    "write": ("whole file", "edit", "read first", "relative to the working"),
    "apply_patch": (
        "*** Begin Patch",
        "three unchanged lines",
        "begins with +",
        "relative to",
        "Do not read",
    ),
    "batch": ("tool",),
    "list": ("tree",),
    "multiedit": ("All are made or none",),
    "plan_enter": ("plan mode",),
    "plan_exit": ("leave plan mode",),
    "processes": ("background", "stop"),
    "question": ("user",),
    "skill": ("instructions of a skill",),
}
"""What a model has to be told about each tool."""


@pytest.mark.parametrize("name", SAYS)
async def test_a_tool_tells_what_a_model_has_to_know(name):
    known = {tool.id: tool for tool in [*await offered(), *LESS_OFTEN]}
    tool = known[name]
    text = " ".join(f"{tool.description} {json.dumps(tool.parameters)}".split())

    assert [words for words in SAYS[name] if words not in text] == []


async def test_every_tool_is_judged_by_what_it_tells():
    assert {tool.id for tool in [*await offered(), *LESS_OFTEN]} == set(SAYS)


@pytest.mark.parametrize("name", ["bash", "edit", "glob", "grep", "read", "task", "write"])
async def test_every_parameter_is_described(name):
    (tool,) = [each for each in await offered() if each.id == name]

    assert [key for key, each in tool.parameters["properties"].items() if len(each) < 2] == []
    assert all("description" in each for each in tool.parameters["properties"].values())


async def test_all_definitions_together_leave_room_for_the_work():
    assert size(await offered()) <= LIMIT_BYTES


def size(tools):
    """How many bytes the definitions take in a request."""
    definitions = [
        {"name": tool.id, "description": tool.description, "parameters": tool.parameters}
        for tool in tools
    ]
    return len(json.dumps(definitions, separators=(",", ":")))


async def names_in_a_request(folder, *, model="m", agent="build", interactive=False, **config):
    """The tools that a session with all built-in plugins is offered."""
    played = Model(id=model, provider_id="played", name="M", api=ModelApi(id=model))
    provider = Played(text("done"), model=played)
    (folder / "project").mkdir()
    options = AppOptions(
        plugins=(OnlyProvider(provider),),
        installed=False,
        interactive=interactive,
        config={"model": f"played/{model}", "snapshot": False, **config},
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)},
        **{f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")},
    )
    async with App.open(folder / "project", options) as app:
        session = await app.create_session(agent=agent)
        await app.prompt(session.id, "Hi.")
        assert app.failures == ()
    return {tool.name for tool in provider.requests[0].tools}


class OnlyProvider:
    """Registers a provider and nothing else."""

    def __init__(self, provider):
        self._provider = provider

    @hookimpl
    async def register_providers(self):
        return [self._provider]


async def test_without_a_person_a_request_has_what_every_session_needs(tmp_path):
    names = await names_in_a_request(tmp_path)

    assert {"bash", "edit", "glob", "grep", "read", "task", "todowrite", "write"} <= names
    assert names & NOW_AND_THEN == set()


async def test_a_person_can_be_asked(tmp_path):
    assert await names_in_a_request(tmp_path, interactive=True) & NOW_AND_THEN == {"question"}


async def test_a_planner_can_ask_to_leave(tmp_path):
    names = await names_in_a_request(tmp_path, interactive=True, agent="plan")

    assert names & NOW_AND_THEN == {"question", "plan_exit"}


async def test_a_model_that_writes_patches_gets_no_other_way_to_edit(tmp_path):
    names = await names_in_a_request(tmp_path, model="gpt-5.2")

    assert names & {"apply_patch", "edit", "write"} == {"apply_patch"}


async def test_where_edits_are_switched_off_patches_are_left(tmp_path):
    names = await names_in_a_request(
        tmp_path, plugins={"edit": {"enabled": False}, "write": {"enabled": False}}
    )

    assert names & {"apply_patch", "edit", "write"} == {"apply_patch"}


async def test_a_table_in_the_configuration_turns_a_tool_on(tmp_path):
    names = await names_in_a_request(
        tmp_path,
        interactive=True,
        plugins={name: {} for name in ("batch", "list", "multiedit", "plan")},
    )

    assert names & NOW_AND_THEN == {"batch", "list", "multiedit", "plan_enter", "question"}


async def test_an_invalid_call_is_answered_with_what_is_wrong(tmp_path):
    (tool,) = await invalid.register_tools()

    result = await call(tool, Context(tmp_path), tool="bash", error="command: is missing")

    assert result.output.startswith("The call of bash could not be used: command: is missing")
