"""An App is opened by a block, or awaited and closed by hand."""

from pathlib import Path

import pytest

from pegboard import App, AppOptions, hookimpl
from pegboard.errors import InvalidInputError


class Life:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @hookimpl
    async def startup(self, app: App) -> None:
        self.heard.append("startup")

    @hookimpl
    async def shutdown(self, app: App) -> None:
        self.heard.append("shutdown")


def _options(folder: Path, *plugins: object) -> AppOptions:
    places = {f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")}
    return AppOptions(installed=False, plugins=plugins, **places)


async def test_a_block_opens_and_closes(tmp_path: Path) -> None:
    life = Life()

    async with App.open(tmp_path, _options(tmp_path, life)) as app:
        assert app.workspace.directory == tmp_path
        assert "shutdown" not in life.heard

    assert life.heard == ["startup", "shutdown"]


async def test_an_awaited_app_is_closed_by_hand(tmp_path: Path) -> None:
    life = Life()

    app = await App.open(tmp_path, _options(tmp_path, life))
    await app.create_session()
    await app.aclose()

    assert life.heard == ["startup", "shutdown"]


async def test_an_awaited_app_may_be_a_block(tmp_path: Path) -> None:
    app = await App.open(tmp_path, _options(tmp_path))
    async with app as same:
        assert same is app


async def test_a_folder_that_is_not_there_is_an_error_of_the_opening(tmp_path: Path) -> None:
    opening = App.open(tmp_path / "missing", _options(tmp_path))

    with pytest.raises(InvalidInputError):
        await opening
    with pytest.raises(InvalidInputError):
        async with App.open(tmp_path / "missing", _options(tmp_path)):
            pass
