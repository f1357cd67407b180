"""The user's price of a model counts for every built-in provider, before anything is asked."""

from pathlib import Path

from pegboard import App, AppOptions, Prompt
from pegboard.schema.message import AssistantMessage, BudgetFailure
from pegboard.schema.model import ModelCost
from support.models.played import HI

COST = {"input": 100_000, "output": 100_000}
ELSEWHERE = {"scripted", "litellm"}
"""The models of the one are files, those of the other have the names of the firms behind it."""


def options(folder: Path, *names: str) -> AppOptions:
    settings = {"models": {"m": {"cost": COST}}, "options": {"apiKey": "k"}}
    folders = {f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")}
    config = {"budget": {"usd": 0.01}, "provider": dict.fromkeys(names, settings)}
    return AppOptions(config=config, env={"HOME": str(folder)}, installed=False, **folders)


async def test_a_budget_holds_for_a_model_of_every_provider(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with App.open(tmp_path / "project", options(tmp_path)) as app:
        names = sorted({*app.providers} - ELSEWHERE)
    refused: dict[str, object] = {}
    async with App.open(tmp_path / "project", options(tmp_path, *names)) as app:
        for name in names:
            model = await app.resolve_model(f"{name}/m")
            assert model.cost == ModelCost(input=100_000, output=100_000), name
            session = await app.create_session()
            turn = await app.prompt(session.id, Prompt(HI, model=f"{name}/m"))
            assert isinstance(turn.info, AssistantMessage)
            refused[name] = type(turn.info.error)

    assert {"anthropic", "gemini", "openai", "openrouter"} <= set(names)
    assert refused == dict.fromkeys(names, BudgetFailure)
