"""What plugins are called in a turn of a test, and what of them the turn tells."""

import asyncio
import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pegboard import ToolContext, hookimpl, tool
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard.testing import CANCEL, check_hooks

MAILS = """
from pegboard import ToolContext, hookimpl, tool


@tool
async def mail(context: ToolContext) -> str:
    "Send a mail."
    plugin = context.plugin
    return f"{plugin.name}: {plugin.options} by {plugin.secret('token')}"


@hookimpl
async def register_tools():
    return (mail,)
"""


@tool(requires=False)
async def wipe(context: ToolContext) -> str:
    """Wipe the table."""
    await context.require("wipe", ["table"])
    return "clean"


@pytest.mark.parametrize("name", ["mails", "guard"])
def test_the_module_of_an_installed_package_is_the_plugin_of_its_entry_point(
    run_turn, tool_call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    facts = tmp_path / "site" / f"house_{name}-2.5.dist-info" / "entry_points.txt"
    facts.parent.mkdir(parents=True)
    facts.write_text(f"[pegboard]\n{name} = house_{name}\n")
    (tmp_path / "site" / f"house_{name}.py").write_text(MAILS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    module = importlib.import_module(f"house_{name}")
    given = {"options": {"to": "Ada"}, "secrets": {"token": "t"}}

    call = tool_call("mail", {}, module, **given)

    assert (call.output, call.error) == (f"{name}: {{'to': 'Ada'}} by t", "")
    assert run_turn(module, script=["done"], **given).failures == ()
    assert asyncio.run(check_hooks(module, **given)) == ()


def test_a_model_that_nobody_has_is_what_the_turn_ended_with(run_turn) -> None:
    turn = run_turn(script=[], config={"model": "test/modle"})

    assert turn.error.startswith("model not found: test/modle. Did you mean test/model?")
    assert (turn.text, turn.calls) == ("", ())


def test_a_denial_names_the_plugin_to_the_model_and_to_the_user(run_turn) -> None:
    def permission_ask(request: PermissionRequest) -> Verdict | None:
        return (
            Verdict(action="deny", reason="Not at night.") if request.permission == "wipe" else None
        )

    night = SimpleNamespace(permission_ask=hookimpl(permission_ask))
    call = run_turn(wipe, night, script=[("wipe", {}), "done"]).call("wipe")

    assert (call.denied, call.error) == (True, "plugin SimpleNamespace: Not at night.")
    assert call.metadata["advice"] == "no rule allows it: the plugin SimpleNamespace denies it"


@tool
async def wash(context: ToolContext) -> str:
    """Wash the dishes, and dry them whatever comes."""
    await asyncio.sleep(0.1)
    try:
        context.progress(title="washing")
        await asyncio.Event().wait()
    finally:
        (context.directory / "dry.txt").write_text("dry")
    return "never"


def test_a_call_is_cancelled_once_it_has_told_of_its_progress(
    run_turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.testing.scriptedapp.SILENT_S", 30)
    turn = run_turn(wash, script=[[("wash", {}), CANCEL]])

    assert turn.cancelled
    assert (turn.project / "dry.txt").read_text() == "dry"


def test_a_built_in_plugin_that_cannot_be_loaded_is_no_fault_of_the_plugin_under_test(
    run_turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pegboard_plugins.glob", None)

    turn = run_turn(ModuleType("under_test"), script=["done"])

    assert [each for each in turn.failures if "glob" in each] == []


def test_a_fault_of_a_plugin_that_is_called_like_a_built_in_one_is_told(run_turn) -> None:
    plugin = ModuleType("glob")

    @hookimpl
    def text_complete(text: str) -> str:
        raise ValueError(text)

    vars(plugin)["text_complete"] = text_complete

    turn = run_turn(plugin, script=["done"])

    assert any("ValueError: done" in each for each in turn.failures)
