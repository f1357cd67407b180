"""Old output of tools is cleared from the model's view, when that is worth it."""

from pathlib import Path

import pytest

from pegboard import tool
from pegboard.engine.history import CLEARED
from pegboard.providers import Result
from pegboard.schema.part import Completed, ToolPart
from support.models.played import Played, ToolsPlugin, call, calls, opened, text

TOKENS_10K = "word" * 10_000


@tool
async def look(number: int) -> str:
    """Look.

    Args:
        number: which.
    """
    return f"{number}" + TOKENS_10K


@tool(lasting=True)
async def lesson(number: int) -> str:
    """Learn.

    Args:
        number: which.
    """
    return f"{number}" + TOKENS_10K


def looking(times: int, name: str = "look") -> list[object]:
    return [
        calls(call(name, f'{{"number": {number}}}', call_id=f"c{number}"))
        for number in range(times)
    ]


async def cleared(folder: Path, provider: Played, prompts: int, **options: object) -> list[bool]:
    async with opened(folder, provider, ToolsPlugin(look, lesson), **options) as app:
        session = await app.create_session()
        for _ in range(prompts):
            await app.prompt(session.id, "look")
        turns = await app.list_turns(session.id)
    parts = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    states = [part.state for part in parts]
    assert all(isinstance(state, Completed) and TOKENS_10K in state.output for state in states)
    return [isinstance(s, Completed) and s.time.compacted is not None for s in states]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (6, [False] * 6),
        (7, [True] * 3 + [False] * 4),
        (9, [True] * 5 + [False] * 4),
    ],
)
async def test_what_is_beyond_the_newest_40000_tokens_is_cleared(
    tmp_path: Path, times: int, expected: list[bool]
) -> None:
    # The output of 10,000 tokens and a character counts as 10,000: 4 of them are protected.
    provider = Played(*looking(times), text("done"))

    assert await cleared(tmp_path, provider, prompts=3) == expected


async def test_output_of_the_newest_two_prompts_stays(tmp_path: Path) -> None:
    assert await cleared(tmp_path, Played(*looking(9), text("done")), 2) == [False] * 9


async def test_protected_tools_keep_their_output(tmp_path: Path) -> None:
    provider = Played(*looking(9, "lesson"), text("done"))

    assert await cleared(tmp_path, provider, 3) == [False] * 9


async def test_prune_false_clears_nothing(tmp_path: Path) -> None:
    provider = Played(*looking(9), text("done"))
    config = {"model": "played/m", "compaction": {"prune": False}}

    assert await cleared(tmp_path, provider, 3, config=config) == [False] * 9


async def test_the_model_sees_that_an_output_was_cleared(tmp_path: Path) -> None:
    provider = Played(*looking(7), text("done"))

    await cleared(tmp_path, provider, prompts=4)

    results = [
        item.output
        for message in provider.requests[-1].messages
        for item in message.content
        if isinstance(item, Result)
    ]
    assert [output == CLEARED for output in results] == [True] * 3 + [False] * 4
