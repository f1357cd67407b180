"""What a model hears that calls a tool which is there, but off."""

import pytest

from pegboard import App, AppOptions, hookimpl
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins.invalid import invalid, switched_off
from played import Played, calls, text
from played import call as called
from tool_context import Context, call


@pytest.mark.parametrize(
    ("tool", "setting"),
    [
        ("websearch", "plugins.websearch.options.url"),
        ("codesearch", "plugins.websearch.options.url"),
        ("batch", "plugins.batch"),
        ("plan_enter", "plugins.plan"),
    ],
)
async def test_a_tool_that_is_off_names_its_setting(tmp_path, tool, setting):
    result = await call(invalid, Context(tmp_path), tool=tool, error="there is no such tool")

    assert result.title == f"{tool} is off"
    assert f"the setting `{setting}`" in result.output


@pytest.mark.parametrize("tool", ["websearch", "batch", "bash"])
def test_a_tool_that_is_on_has_no_such_setting(tool):
    on = Config(
        plugins={
            "websearch": PluginConfig(options={"url": "https://searx.test"}),
            "batch": PluginConfig(),
        }
    )

    assert switched_off(tool, on) == ""


@pytest.mark.parametrize(("interactive", "said"), [(False, "Nobody is there"), (True, "no tool")])
async def test_who_asks_where_nobody_answers_is_told_so(tmp_path, interactive, said):
    context = Context(tmp_path)
    context.session.interactive = interactive

    result = await call(invalid, context, tool="question", error="there is no tool 'question'")

    assert said in result.output


class OnlyProvider:
    """Registers a provider and nothing else."""

    def __init__(self, provider):
        self._provider = provider

    @hookimpl
    async def register_providers(self):
        return [self._provider]


async def test_a_session_goes_on_after_a_call_of_a_search_that_is_off(tmp_path):
    provider = Played(calls(called("websearch", '{"query": "x"}')), text("done"))
    (tmp_path / "project").mkdir()
    options = AppOptions(
        plugins=(OnlyProvider(provider),),
        installed=False,
        config={"model": "played/m", "snapshot": False},
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
        **{f"{name}_dir": tmp_path / name for name in ("config", "data", "state", "cache")},
    )

    async with App.open(tmp_path / "project", options) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, "Hi.")

    assert turn.info.error is None
    assert "websearch" not in {tool.name for tool in provider.requests[0].tools}
    assert "`plugins.websearch.options.url`" in str(provider.requests[1].messages[-1])
