"""The effects of an agent are the user's to set."""

from pathlib import Path

import pytest

from pegboard.schema.config import AgentConfig
from support.plugins.config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_project_says_no_effects_of_an_agent(place: Place) -> None:
    said = '[agent.plan]\neffects = ["edits"]\nprompt = "Plan."\n'
    mine = place.write(place.user / "pegboard.toml", said)
    loaded = await place.load()
    assert loaded.config.agent["plan"].effects == ("edits",)

    mine.unlink()
    file = place.write(place.project / "pegboard.toml", said)
    loaded = await place.load(trusted=True)

    assert loaded.config.agent == {"plan": AgentConfig(prompt="Plan.")}
    assert loaded.warnings == (f"{file}: ignored, only you can set it: agent.plan.effects",)
