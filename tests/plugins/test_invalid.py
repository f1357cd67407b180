"""What a model hears that calls a tool which is there, but off."""

from types import SimpleNamespace

import pytest

from pegboard import App, AppOptions, hookimpl
from pegboard_plugins.invalid import invalid
from support.models.played import Played, calls, opened, text
from support.models.played import call as called
from support.sessions.asked import outcomes
from support.tools.tool_context import Context, call


@pytest.mark.parametrize(
    ("tool", "setting"),
    [
        ("websearch", "plugins.websearch.options.url"),
        ("codesearch", "plugins.websearch.options.url"),
        ("batch", "plugins.batch"),
        ("list", "plugins.list"),
        ("multiedit", "plugins.multiedit"),
        ("Plan_Enter", "plugins.plan"),
        ("house_swept", "plugins.sweeper"),
    ],
)
async def test_a_tool_that_is_off_names_its_setting(tmp_path, tool, setting):
    off = SimpleNamespace(switch={"house_swept": "plugins.sweeper"})

    [said] = await answers(tmp_path, tool, off)

    assert f"the setting `{setting}`" in said
    assert said.startswith(f"{tool} is off")


async def test_a_tool_that_is_on_or_of_nobody_has_no_such_setting(tmp_path):
    tables = {"batch": {}, "websearch": {"options": {"url": "http://127.0.0.1:1"}}}
    for tool in ("batch", "websearch", "codesearch", "nothing"):
        for said in await answers(tmp_path, tool, plugins=tables):
            assert "the setting" not in said


async def answers(folder, tool, *brought, **config):
    """What the model reads of a call of this tool."""
    provider = Played(calls(called(tool, "{}")), text("done"))
    settings = {"model": "played/m", "snapshot": False, **config}
    async with opened(folder, provider, *brought, builtins=True, config=settings) as app:
        session = await app.create_session()
        await app.prompt(session, "Hi.")
        return await outcomes(app, session.id)


@pytest.mark.parametrize(("interactive", "said"), [(False, "Nobody is there"), (True, "no tool")])
async def test_who_asks_where_nobody_answers_is_told_so(tmp_path, interactive, said):
    context = Context(tmp_path)
    context.session.interactive = interactive

    error = "there is no tool 'question'"
    result = await call(invalid, context, tool="question", error=error, needs_user=True)

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
