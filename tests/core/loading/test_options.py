"""A plugin's options: judged when it is loaded, and wrong ones cost that plugin alone."""

import logging
from pathlib import Path
from typing import cast

import pytest

from pegboard import AppOptions, Plugin, ToolContext, hookimpl, tool
from pegboard.app.application import App
from pegboard.kit.pluginhttp import PluginHttp
from pegboard.paths import UserFolders
from pegboard.schema.part import Completed
from pegboard_plugins import auth, sqlite
from pegboard_plugins.shared.frontend import store_secret
from support.models.played import HI, Played, ToolsPlugin, call, calls, text, tools_of
from support.models.played import opened as played_opened

SOURCES = {
    "struct": "import msgspec\nclass Model(msgspec.Struct):\n    volume: int = 1\n",
    "model": "import pydantic\nclass Model(pydantic.BaseModel):\n    volume: int = 1\n",
    "data": "import dataclasses\n@dataclasses.dataclass\nclass Model:\n    volume: int = 1\n",
}
REST = """
from pegboard import hookimpl, tool

options = Model

@hookimpl
def register_tools(plugin):
    @tool(id=f"volume_{plugin.options.volume}")
    def louder() -> str:
        '''Louder.'''
        return 'x'

    return [louder]
"""


async def opened(folder: Path, settings: str, *plugins: object, **options: object) -> App:
    """An App with the user's settings and the plugins in the config folder."""
    (folder / "config").mkdir(exist_ok=True)
    (folder / "project").mkdir(exist_ok=True)
    (folder / "config" / "pegboard.toml").write_text(settings)
    chosen = AppOptions(
        plugins=plugins if options.get("builtins") else (auth, sqlite, *plugins),
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        **{"builtins": False, "installed": False, "env": {"HOME": str(folder)}, **options},
    )
    return await App.open(folder / "project", chosen)


def write(folder: Path, name: str, source: str) -> None:
    """Make a plugin of the user's."""
    plugins = folder / "config" / "plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    (plugins / f"{name}.py").write_text(source)


@pytest.mark.parametrize("kind", SOURCES)
async def test_options_are_handed_over_as_the_class_that_is_declared(
    tmp_path: Path, kind: str
) -> None:
    write(tmp_path, "echo", SOURCES[kind] + REST)

    async with await opened(tmp_path, "[plugins.echo]\noptions = { volume = 3 }\n") as app:
        assert list(app.tools) == ["volume_3"]
        assert app.plugins.problems == ()
        assert app.plugins.infos[0].options.__name__ == "Model"


@pytest.mark.parametrize("kind", SOURCES)
async def test_an_option_that_has_to_be_set_is_named(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "echo", SOURCES[kind].replace("volume: int = 1", "volume: int") + REST)

    async with await opened(tmp_path, "") as app:
        (problem,) = app.plugins.problems

    assert "plugins.echo.options.volume: " in problem.text
    assert "required" in problem.text


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("line", "said"),
    [("volum = 3", "volum: unknown option; did you mean volume?"), ("volume = 'x'", "volume: ")],
)
async def test_a_wrong_option_is_told_with_its_line_and_costs_that_plugin_alone(
    tmp_path: Path, kind: str, line: str, said: str
) -> None:
    write(tmp_path, "echo", SOURCES[kind] + REST)
    write(
        tmp_path,
        "other",
        "from pegboard import tool, hookimpl\n@tool\ndef other() -> str:\n"
        "    '''x'''\n    return ''\n@hookimpl\ndef register_tools(): return [other]\n",
    )

    async with await opened(tmp_path, f"\n[plugins.echo.options]\n{line}\n") as app:
        (problem,) = app.plugins.problems
        assert (problem.kind, problem.plugin) == ("options", "echo")
        place = tmp_path / "config" / "pegboard.toml"
        assert problem.text.startswith(f"{place}:3: plugins.echo.options.{said}")
        assert list(app.tools) == ["other"]
        assert app.plugins.infos[0].error == problem.text


@pytest.mark.parametrize(
    ("kind", "value", "example"),
    [
        ("time", "9:00", "09:30:00"),
        ("date", "1.3.2026", "2026-03-01"),
        ("datetime", "today", "2026-03-01T09:30:00Z"),
    ],
)
async def test_a_wrong_time_is_refused_with_an_example(
    tmp_path: Path, kind: str, value: str, example: str
) -> None:
    source = SOURCES["struct"].replace("volume: int = 1", f"volume: datetime.{kind} | None = None")
    write(tmp_path, "echo", f"import datetime\n{source}{REST}")

    async with await opened(tmp_path, f"\n[plugins.echo.options]\nvolume = '{value}'\n") as app:
        (problem,) = app.plugins.problems

    assert problem.text.endswith(f"write it as {example}")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            "[plugins.gaurd]\nenabled = false",
            ":1: plugins.gaurd: there is no plugin gaurd; did you mean guard?",
        ),
        ("[plugins.qqqqq]", ":1: plugins.qqqqq: there is no plugin qqqqq"),
        (
            "[plugins.webfetch.options]\nallow_private = 'yes'",
            ":2: plugins.webfetch.options.allow_private: Expected `bool`, got `str`",
        ),
        (
            "[plugins.webfetch.options]\nallow_privat = true",
            ":2: plugins.webfetch.options.allow_privat: unknown option; did you mean allow_private",
        ),
        (
            "[plugins.cassette.options]\nmode = 'replai'",
            ":2: plugins.cassette.options.mode: Invalid enum value 'replai'",
        ),
        ("[plugins.chat.options]\nkey = 'x'", ":2: plugins.chat.options.key: unknown option; did"),
        (
            "[plugins.catalogue.options]\nuri = 'x'",
            ":2: plugins.catalogue.options.uri: unknown option; did you mean url?",
        ),
        (
            "[plugins.read.options]\na = 1",
            ":2: plugins.read.options.a: unknown option; this plugin",
        ),
        (
            "[plugins.websearch.options]\nbacknd = 'x'",
            ":2: plugins.websearch.options.backnd: unknown option; did you mean backend?",
        ),
    ],
)
async def test_each_misspelt_setting_of_a_plugin_is_one_line(
    tmp_path: Path, settings: str, said: str
) -> None:
    async with await opened(tmp_path, f"{settings}\n", builtins=True) as app:
        (problem,) = app.plugins.problems

    assert said in problem.text


class Asks:
    """A plugin that keeps what it is handed."""

    plugin: Plugin

    @hookimpl
    def register_tools(self, plugin: Plugin) -> None:
        """Keep it."""
        self.plugin = plugin


async def test_a_plugin_has_folders_a_client_and_a_log_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asks = Asks()
    store_secret(
        UserFolders.of({}, data=tmp_path / "data", config=tmp_path, state=tmp_path, cache=tmp_path),
        "Asks",
        "key",
        "hush-hush",
    )
    caplog.set_level(logging.INFO)

    async with await opened(tmp_path, "", asks):
        plugin = asks.plugin
        assert plugin.name == "Asks"
        assert plugin.data_dir == tmp_path / "data" / "plugins" / "Asks"
        assert plugin.cache_dir.is_dir()
        assert plugin.http is plugin.http
        assert (plugin.secret("key"), plugin.secret("other")) == ("hush-hush", None)
        plugin.logger.info("the key is %s", plugin.secret("key"))

    assert cast("PluginHttp", plugin.http).is_closed
    assert caplog.messages == ["plugin Asks: the key is [secret]"]
    assert (tmp_path / "data" / "secrets.json").stat().st_mode & 0o777 == 0o600


async def test_a_secret_of_the_environment_comes_before_a_stored_one(tmp_path: Path) -> None:
    asks = Asks()
    env = {"HOME": str(tmp_path), "PEGBOARD_SECRET_ASKS_KEY": "from-outside"}

    async with await opened(tmp_path, "", asks, env=env):
        assert asks.plugin.secret("key") == "from-outside"


@tool
async def note(context: ToolContext) -> str:
    """Note it."""
    (context.plugin.data_dir / "note").write_text(context.plugin.options["text"])
    return context.plugin.name


async def test_a_tool_reaches_what_its_plugin_has(tmp_path: Path) -> None:
    provider = Played(calls(call("note", "{}")), text("done"))
    settings = {"model": "played/m", "plugins": {"ToolsPlugin": {"options": {"text": "noted"}}}}
    async with played_opened(tmp_path, provider, ToolsPlugin(note), config=settings) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        (part,) = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed)
    assert part.state.output == "ToolsPlugin"
    assert (tmp_path / "data" / "plugins" / "ToolsPlugin" / "note").read_text() == "noted"
