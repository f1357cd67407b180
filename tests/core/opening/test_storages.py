"""Which plugin opens the database: the newest for its scheme, and what is said without one."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pegboard import hookimpl
from pegboard.contract import apphooks
from pegboard.errors import ConfigError, PluginError, StorageError
from pegboard.ids import IdSource
from pegboard.loading.absent import names_hook
from pegboard.opening.options import open_database
from pegboard.schema.config import Config, PluginConfig
from pegboard.storage import OpenStorage, Storage
from pegboard_plugins import sqlite
from support.plugins.plugin_places import Places

HOOK = """
from pegboard import hookimpl

@hookimpl
async def register_storage():
    return {"house": None}
"""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


class Opening:
    """Registers a scheme whose databases are opened by `open_storage`."""

    def __init__(self, scheme: str, open_storage: Any) -> None:
        self._table = {scheme: open_storage}

    @hookimpl
    async def register_storage(self) -> Mapping[str, OpenStorage]:
        return self._table


async def opened(places: Places, url: str | Path, *plugins: object, **facts: Any) -> Storage:
    register = await places.load(extra=plugins, **facts)
    return await open_database(url, register=register, ids=IdSource())


async def test_a_path_is_opened_by_the_newest_plugin_for_paths(
    places: Places, tmp_path: Path
) -> None:
    found: list[str | Path] = []

    async def open_here(url: str | Path, **options: Any) -> Storage:
        found.append(url)
        return await sqlite.open_sqlite(tmp_path / "elsewhere.db", **options)

    storage = await opened(places, str(tmp_path / "a.db"), sqlite, Opening("", open_here))
    await storage.aclose()

    assert found == [tmp_path / "a.db"]
    assert tmp_path / "elsewhere.db" in storage.files
    assert not (tmp_path / "a.db").exists()


async def test_a_url_goes_to_the_plugin_of_its_scheme(places: Places, tmp_path: Path) -> None:
    storage = await opened(places, f"sqlite://{tmp_path}/a.db", sqlite, Opening("", None))
    await storage.aclose()

    assert (tmp_path / "a.db").is_file()


async def test_a_scheme_that_no_plugin_opens_is_an_error_with_those_that_are(
    places: Places,
) -> None:
    with pytest.raises(ConfigError) as caught:
        await opened(places, "nothing://here", sqlite)

    assert str(caught.value) == (
        "PEGBOARD_DATABASE: no plugin opens nothing:// databases; "
        "name one that plugins here open: a path, sqlite://"
    )


async def test_without_the_plugin_for_paths_the_error_says_who_has_switched_it_off(
    places: Places, tmp_path: Path
) -> None:
    off = Config(plugins={"sqlite": PluginConfig(enabled=False)})

    with pytest.raises(ConfigError) as caught:
        await opened(places, tmp_path / "a.db", builtins=True, config=off)

    assert str(caught.value) == (
        f"PEGBOARD_DATABASE: no plugin opens a database at a path, as {tmp_path}/a.db; sqlite is "
        "not loaded: switched off by plugins.sqlite.enabled in the configuration; "
        "load a plugin that opens it"
    )
    assert not (tmp_path / "a.db").exists()


async def test_a_plugin_that_cannot_be_imported_is_named_with_its_error(places: Places) -> None:
    places.write("user/plugins/house.py", f"import nowhere_to_be_found\n{HOOK}")

    with pytest.raises(ConfigError, match=r"house is not loaded: .*nowhere_to_be_found"):
        await opened(places, "house://x")


async def test_an_error_of_the_storage_stays_and_any_other_names_the_plugin(
    places: Places,
) -> None:
    async def refused(url: str | Path, **options: Any) -> Storage:
        raise StorageError(f"no room for {url}")

    async def broken(url: str | Path, **options: Any) -> Storage:
        raise RuntimeError("a bug")

    with pytest.raises(StorageError, match="no room for full://disk"):
        await opened(places, "full://disk", Opening("full", refused))
    with pytest.raises(PluginError, match="the storage mem:// raised RuntimeError: a bug"):
        await opened(places, "mem://", Opening("mem", broken))


async def test_only_plugins_that_name_a_hook_are_loaded_when_one_is_asked_for(
    places: Places,
) -> None:
    places.write("user/plugins/house.py", HOOK)
    places.write("user/plugins/other.py", "raise AssertionError('imported')")

    register = await places.load(
        fitting=partial(names_hook, spec=apphooks.register_storage), builtins=True
    )

    assert {each.name for each in register.infos} == {"sqlite", "house"}
    assert register.problems == ()
