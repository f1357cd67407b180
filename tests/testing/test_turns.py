"""Turns that a test has written: the fixtures, the script's vocabulary, and what they leave."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest

from pegboard import Attachment, Plugin, ToolContext, ToolError, ToolResult, hookimpl, tool
from pegboard.errors import PluginError, ProviderError
from pegboard.providers import ModelRequest, Result, StreamEvent, StreamFinish
from pegboard.schema.event import PermissionAsked, SessionIdle
from pegboard.schema.model import Model, ModelApi
from pegboard.testing import CANCEL, ScriptedModel, scripted_app
from pegboard_plugins import webfetch
from support.models.written import until

PNG = b"\x89PNG\r\n\x1a\n"


@tool(requires=False)
async def erase(context: ToolContext, name: str) -> str:
    """Erase a thing.

    Args:
        name: which.
    """
    await context.require("erase", [name])
    return f"erased {name}"


@tool
async def photo() -> ToolResult:
    """Take a picture."""
    return ToolResult(output="taken", attachments=(Attachment.of_bytes(PNG, "image/png"),))


@tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


class Careful:
    """Erases, takes pictures and waits."""

    @hookimpl
    async def register_tools(self) -> list[object]:
        return [erase, photo, wait]


def test_a_turn_with_a_denial_a_picture_and_a_cancel_takes_six_lines(run_turn) -> None:
    script = [("erase", {"name": "a"}), ("photo", {}), ["I wait.", ("wait", {}), CANCEL]]
    turn = run_turn(Careful(), script=script, config={"permission": {"erase": "ask"}})
    assert turn.call("erase").denied
    assert turn.call("photo").attachments[0].mime == "image/png"
    assert turn.cancelled
    assert turn.call("wait").error == "The call was stopped before it ended."


def test_a_call_of_one_tool_takes_one_line(tool_call) -> None:
    assert tool_call(erase, {"name": "a"}).output == "erased a"
    assert "- name: Input should be" in tool_call("erase", {"name": 1}, Careful()).error
    assert "not valid JSON" in tool_call("photo", "{", Careful()).output


def test_what_is_asked_is_answered_as_the_test_says(run_turn) -> None:
    asks = {"permission": {"erase": "ask"}}
    script = [("erase", {"name": "a"}), ("erase", {"name": "b"}), "done"]

    turn = run_turn(
        erase,
        script=script,
        config=asks,
        reply=lambda request: "once" if request.patterns == ("a",) else "reject",
    )

    assert [call.output for call in turn.calls] == ["erased a", ""]
    assert turn.calls[1].denied
    assert len(turn.events_of(PermissionAsked)) == 2
    assert turn.events_of(SessionIdle) != []


def test_a_denial_that_says_what_to_do_instead_does_not_end_the_turn(run_turn) -> None:
    script = [("erase", {"name": "a"}), ("photo", {}), [("wait", {}), CANCEL]]

    turn = run_turn(
        Careful(),
        script=script,
        config={"permission": {"erase": "ask"}},
        reply=lambda _: ("reject", "take a picture"),
    )

    erased, taken, waited = turn.calls
    assert erased.denied
    assert "take a picture" in erased.error
    assert taken.attachments[0].mime == "image/png"
    assert (waited.output, turn.cancelled) == ("", True)


class Settled:
    """Has options of a class, one of which is required, and a secret."""

    class options(msgspec.Struct):  # noqa: N801 - the attribute's name
        """Its options."""

        base_url: str

    @hookimpl
    async def register_tools(self, plugin: Plugin) -> list[object]:
        @tool
        async def reach() -> str:
            """Reach it."""
            return f"{plugin.options.base_url} by {plugin.secret('token')}"

        return [reach]


def test_a_plugin_is_given_options_and_secrets(run_turn, tool_call) -> None:
    given = {"options": {"base_url": "http://a"}, "secrets": {"token": "t"}}

    assert tool_call("reach", {}, Settled(), **given).output == "http://a by t"
    turn = run_turn(Settled(), script=["done"], options={})
    assert "base_url: is required, and missing" in turn.failures[0]


def test_the_options_of_a_module_go_to_its_entry_point(run_turn) -> None:
    turn = run_turn(webfetch, script=["done"], options={"allow_privat": True})

    assert any("plugins.webfetch.options.allow_privat" in each for each in turn.failures)


def test_the_requests_hold_what_the_model_was_told(run_turn) -> None:
    turn = run_turn(
        photo, script=[("photo", {}), "a nice one"], prompt="take one", files={"a.txt": "x"}
    )

    first, second = turn.requests
    results = [part for each in second.messages for part in each.content]
    assert "photo" in [each.name for each in first.tools]
    assert [part.media[0].mime for part in results if isinstance(part, Result)] == ["image/png"]
    assert turn.text == "a nice one"
    assert (turn.error, turn.failures, turn.cancelled) == ("", (), False)
    assert (turn.project / "a.txt").read_text() == "x"


def test_an_answer_can_fail_end_otherwise_or_depend_on_the_request(run_turn) -> None:
    def counted(request: ModelRequest) -> str:
        return f"{len(request.messages)} messages"

    busy = ProviderError("the model is away", provider_id="test")

    assert run_turn(script=[counted]).text == "1 messages"
    assert run_turn(script=[busy]).error == "the model is away"
    assert run_turn(script=[["half", StreamFinish("length")]]).text == "half"
    assert "is asked once more" in run_turn(script=[("glob", {"pattern": "*"})]).error


def test_a_cancel_while_the_model_speaks_stops_the_turn(run_turn) -> None:
    turn = run_turn(script=[["I begin", CANCEL]])

    assert (turn.text, turn.cancelled) == ("I begin", True)


def test_a_cancel_behind_a_call_that_never_begins_stops_the_turn(run_turn) -> None:
    def refuse() -> None:
        raise ToolError("not today")

    plugin = SimpleNamespace(tool_execute_before=hookimpl(refuse))

    turn = run_turn(plugin, erase, script=[[("erase", {"name": "a"}), CANCEL]])

    assert (turn.call("erase").error, turn.cancelled) == ("not today", True)


def test_faults_of_plugins_are_on_the_result(run_turn) -> None:
    def text_complete(text: str) -> str:
        raise ValueError(text)

    plugin = SimpleNamespace(
        text_compelte=hookimpl(text_complete), text_complete=hookimpl(text_complete)
    )

    turn = run_turn(plugin, script=["hi"])

    assert any("text_compelte" in each for each in turn.failures)
    assert any("ValueError: hi" in each for each in turn.failures)


async def test_a_built_in_plugin_that_a_busy_machine_holds_up_is_no_fault(tmp_path: Path) -> None:
    script = [("bash", {"command": "touch begun; sleep 4"}), "done"]

    async with scripted_app(tmp_path, erase, script=script) as scripted:
        turn = asyncio.create_task(scripted.turn())
        await until((scripted.project / "begun").exists)
        time.sleep(2)  # noqa: ASYNC251 - what holds up the event loop
        record = await turn
        failures = scripted.app.failures

    assert (tuple(failures), record.text, record.failures) == ((), "done", ())


def test_a_required_hook_that_fails_is_what_the_turn_ended_with(run_turn) -> None:
    def refuse(text: str) -> str:
        raise ValueError(text)

    turn = run_turn(SimpleNamespace(text_complete=hookimpl(required=True)(refuse)), script=["hi"])

    assert "the required hook text_complete raised ValueError: hi" in turn.error


class Broken:
    """A provider that raises what is no error of a provider."""

    id, name, env = "broken", "Broken", ()

    def models(self) -> tuple[Model, ...]:
        return (Model(id="m", provider_id="broken", name="M", api=ModelApi(id="m")),)

    def resolve(self, model_id: str) -> Model | None:
        return self.models()[0]

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        raise KeyError(request.model.id)
        yield

    async def aclose(self) -> None:
        return None

    @hookimpl
    async def register_providers(self) -> tuple["Broken", ...]:
        return (self,)


def test_a_provider_that_raises_is_what_the_turn_ended_with(run_turn) -> None:
    turn = run_turn(Broken(), script=[], config={"model": "broken/m"})

    assert turn.error == "plugin Broken: the provider broken raised KeyError: 'm'"


def test_code_among_the_files_of_a_project_is_loaded_and_bytes_are_written(run_turn) -> None:
    helper = "def shout(text: str) -> str:\n    return text.upper()\n"
    body = (
        "from _shared import shout\n"
        "from pegboard import ToolContext, tool\n"
        "@tool\n"
        "def close(context: ToolContext) -> str:\n"
        '    """Close it."""\n'
        "    return shout((context.worktree / 'a.bin').read_bytes().decode('latin-1'))\n"
    )
    files = {"tool/_shared.py": helper, "tool/ticket.py": body, "a.bin": b"\xe9a"}

    turn = run_turn(script=[("ticket_close", {}), "ok"], files=files)

    assert (turn.call("ticket_close").output, turn.failures) == ("\xc9A", ())


def test_a_file_of_tools_is_a_plugin(run_turn) -> None:
    module = ModuleType("weather")
    module.__dict__.update(photo=photo)

    assert run_turn(module, script=[("photo", {}), "ok"]).call("photo").output == "taken"


def test_a_call_that_was_not_made_is_told_with_those_that_were(run_turn) -> None:
    turn = run_turn(photo, script=[("photo", {}), "ok"])

    with pytest.raises(LookupError, match=r"no call of 'phot'; its calls: photo"):
        turn.call("phot")


async def test_an_app_has_several_turns(pegboard_app) -> None:
    async with pegboard_app(photo, script=[("photo", {}), "one", "two"]) as scripted:
        first = await scripted.turn("a")
        second = await scripted.turn("b")

    assert (first.text, len(first.calls), len(first.requests)) == ("one", 1, 2)
    assert (second.text, len(second.calls), len(second.requests)) == ("two", 0, 1)


async def test_a_nonsense_script_says_what_is_wrong(tmp_path: Path) -> None:
    async with scripted_app(tmp_path, script=[3]) as scripted:  # type: ignore[list-item]
        with pytest.raises(PluginError, match="3 is nothing that a script can say"):
            await scripted.turn()


async def test_a_model_without_an_app_cannot_cancel() -> None:
    model = ScriptedModel([CANCEL])
    request = ModelRequest(model=model.models()[0], system=("a",), messages=())

    with pytest.raises(ProviderError, match="the script has no App that could cancel"):
        [event async for event in model.stream(request)]


SUITE = '''
from pegboard import tool
from pegboard.testing import CANCEL


@tool
async def note(text: str) -> str:
    """Note.

    Args:
        text: what.
    """
    return text


def test_turn(run_turn):
    script = [("note", {"text": "a"}), ("bash", {"command": "echo x > x.txt"}), "done"]
    turn = run_turn(note, script=script)
    assert turn.text == "done"
    assert turn.failures == ()


def test_cancel(run_turn):
    assert run_turn(note, script=[[("bash", {"command": "sleep 9"}), CANCEL]]).cancelled
'''
WATCH = """
import os, socket, sys
seen = []
def hook(event, args):
    if event == "open" and isinstance(args[0], str) and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        seen.append(["open", os.path.abspath(args[0])])
    elif event == "socket.connect" and args[0].family != socket.AF_UNIX:
        seen.append(["connect", str(args[1])])
    elif event == "socket.getaddrinfo":
        seen.append(["resolve", str(args[0])])
sys.addaudithook(hook)
def pytest_unconfigure(config):
    import json
    with open(os.environ["SEEN"], "w") as file:
        json.dump(seen, file)
"""


def _suite(folder: Path, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, "."],
        cwd=folder,
        env={**env, "HOME": str(home), "SEEN": str(folder / "seen.json")},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_a_turn_writes_below_tmp_path_alone_and_uses_no_network(tmp_path: Path) -> None:
    suite, home, given = tmp_path / "suite", tmp_path / "home", tmp_path / "given"
    suite.mkdir()
    home.mkdir()
    (suite / "conftest.py").write_text(WATCH)
    (suite / "test_note.py").write_text(SUITE)

    done = _suite(suite, "-p", "no:xdist", f"--basetemp={given}", home=home)

    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((suite / "seen.json").read_text())
    ours = (str(given), str(suite), "/dev/", "/sys/fs/cgroup/")  # limits of processes, no files
    written = {path for kind, path in seen if kind == "open" and not path.startswith(ours)}
    assert {path for path in written if ".pyc" not in path} == set()
    assert [each for each in seen if each[0] != "open"] == []
    assert list(home.iterdir()) == []
    assert (given / "test_turn0" / "project" / "x.txt").read_text() == "x\n"


def test_a_run_without_the_fixtures_loads_the_module_alone(tmp_path: Path) -> None:
    (tmp_path / "test_none.py").write_text(
        "import sys\n\n\ndef test_none():\n"
        "    kit = {'pegboard', 'pegboard.testing'}\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] in kit}\n"
        "    assert ours == {'pegboard', 'pegboard.testing', 'pegboard.testing.fixtures'}\n"
    )

    done = _suite(tmp_path, home=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
