"""What everyday wishes need is offered, takes the arguments, and says what leads to it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from evals.choose import Choice, is_right, scores
from evals.everyday import FILES, TASKS, Task
from pegboard import App, AppOptions, hookimpl
from pegboard.providers import ToolDefinition
from support.models.played import Played, text

CALLING = {task.name: task for task in TASKS if task.tool}
Offered = Mapping[str, ToolDefinition]


class PlayedModel:
    """Registers the provider of a played model."""

    def __init__(self, provider: Played) -> None:
        self._provider = provider

    @hookimpl
    async def register_providers(self) -> list[Played]:
        return [self._provider]


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Offered:
    """The tools that a model is told of in a run without a person."""
    return asyncio.run(_offered(tmp_path_factory.mktemp("offered")))


async def _offered(folder: Path) -> Offered:
    provider = Played(text("done"))
    options = AppOptions(
        installed=False,
        plugins=(PlayedModel(provider),),
        config={"model": "played/m", "snapshot": False},
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PEGBOARD_DISABLE_PLUGINS": "litellm"},
        **{f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")},
    )
    async with App.open(folder, options) as app:
        session = await app.create_session(agent="build")
        await app.prompt(session.id, "Hi.")
    return {tool.name: tool for tool in provider.requests[0].tools}


def test_there_are_thirty_wishes() -> None:
    assert len({task.name for task in TASKS}) == len(TASKS) == 30


@pytest.mark.parametrize("task", CALLING.values(), ids=CALLING)
def test_the_right_call_is_offered_and_valid(task: Task, offered: Offered) -> None:
    jsonschema.validate(dict(task.arguments), dict(offered[task.tool].parameters))


@pytest.mark.parametrize("task", CALLING.values(), ids=CALLING)
def test_words_of_the_tool_lead_to_the_call(task: Task, offered: Offered) -> None:
    tool = offered[task.teller or task.tool]
    said = " ".join([tool.description, *_descriptions(tool.parameters)])
    plain = " ".join(said.split())

    assert task.told
    assert [words for words in task.told if words not in plain] == []


@pytest.mark.parametrize("task", CALLING.values(), ids=CALLING)
def test_the_example_is_a_right_choice(task: Task) -> None:
    calls = [(task.tool, {**task.arguments, "n": number}) for number in range(task.times)]

    assert is_right(task, calls)
    assert not is_right(task, calls[1:])
    assert not is_right(task, [("no such tool", task.arguments)])


@pytest.mark.parametrize("task", CALLING.values(), ids=CALLING)
def test_each_expression_can_fail(task: Task) -> None:
    others = [
        {key: value for key, value in task.arguments.items() if key not in names.split("|")}
        for names in task.fits
    ]

    assert [each for each in others if is_right(task, [(task.tool, each)] * task.times)] == []


def patch(head: str, *lines: str) -> str:
    return "\n".join(("*** Begin Patch", f"*** {head}", *lines, "*** End Patch")) + "\n"


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "right"),
    [
        ("write-file", "apply_patch", patch("Add File: LICENSE.txt", "+MIT"), True),
        ("write-file", "apply_patch", patch("Add File: LICENSE.txt", "+BSD"), False),
        ("write-folder", "apply_patch", patch("Add File: tools/hello.sh", "+echo hello"), True),
        ("write-folder", "apply_patch", patch("Add File: hello.sh", "+echo hello"), False),
        (
            "edit-value",
            "apply_patch",
            patch("Update File: server.toml", "@@", "-port = 8080", "+port = 9000"),
            True,
        ),
        (
            "edit-value",
            "apply_patch",
            patch("Update File: new.toml", "@@", "-port = 8080", "+port = 9000"),
            False,
        ),
        (
            "edit-all",
            "apply_patch",
            patch(
                "Update File: page.txt",
                "-The colour red.",
                "-The colour blue.",
                "+The color red.",
                "+The color blue.",
            ),
            True,
        ),
        (
            "edit-all",
            "apply_patch",
            patch("Update File: page.txt", "-The colour red.", "+The color red."),
            False,
        ),
        (
            "edit-removal",
            "apply_patch",
            patch("Update File: flags.txt", " VERBOSE", "-DEBUG"),
            True,
        ),
        ("edit-removal", "apply_patch", patch("Update File: flags.txt", "-VERBOSE"), False),
        ("bash-folder", "bash", {"command": "make -C firmware"}, True),
        ("bash-folder", "bash", {"command": "make -C other"}, False),
        ("grep-context", "grep", {"pattern": "ValueError", "before": 3, "after": 3}, True),
        ("grep-context", "grep", {"pattern": "ValueError", "before": 3}, False),
        ("read-two", "bash", {"command": "diff -u old.toml new.toml"}, True),
        ("read-two", "bash", {"command": "diff -u old.toml page.txt"}, False),
    ],
)
def test_other_fair_calls_are_right_for_all_that_is_wished(
    name: str, tool: str, arguments: object, right: bool
) -> None:
    given = {"patchText": arguments} if isinstance(arguments, str) else arguments

    assert is_right(CALLING[name], [(tool, given)]) is right  # type: ignore[list-item]


def test_where_no_call_is_right_each_call_is_wrong() -> None:
    task = next(task for task in TASKS if not task.tool)

    assert is_right(task, [])
    assert not is_right(task, [("read", {"filePath": "settings.py"})])


def test_files_of_the_wishes_are_there() -> None:
    named = {name for task in TASKS for name in task.attached}

    assert named <= FILES.keys()


def test_the_scores_count_right_first_calls_by_variant() -> None:
    made = [_choice("plain", True), _choice("plain", False), _choice("brief", True)]

    assert scores(made) == (
        "plain: t: bash, bash\n\n"
        "model  variant  right first calls\n"
        "p/m    brief    1/1\n"
        "p/m    plain    1/2\n"
    )


def _choice(variant: str, right: bool) -> Choice:
    return Choice(
        task="t",
        model="p/m",
        variant=variant,
        right=right,
        calls=(("bash", {}), ("bash", {})),
        tokens_in=1,
        tokens_out=1,
        tokens_cached=0,
        cost=0,
        seconds=0,
        exit_code=0,
    )


def _descriptions(schema: object) -> list[str]:
    """All descriptions of a schema, at any depth, and its names."""
    found = json.loads(json.dumps(schema))
    match found:
        case dict():
            own = [found["description"]] if isinstance(found.get("description"), str) else []
            return own + [text for value in found.values() for text in _descriptions(value)]
        case list():
            return [text for value in found for text in _descriptions(value)]
        case _:
            return []
