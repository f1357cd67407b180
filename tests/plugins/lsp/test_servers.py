"""Language servers that misbehave, and the bounds that hold for all."""

import asyncio
import os
import signal
import time

import pytest

from pegboard.errors import ToolError
from pegboard.schema.config import Config, LspConfig
from pegboard.unstable import ProgramSearch
from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import client, lsp, server, servers, textdocuments
from pegboard_plugins.lsp.known import KNOWN, RefusedProgramError, launch
from support.models.written import until
from support.tools.lsp_project import asked, config, edited, said
from support.tools.tool_context import Context, call


def running(context):
    [slot] = context.stash.get(plugin._SERVERS)._slots.values()
    return slot.starting.result()


async def test_places_are_counted_in_the_servers_units(project):
    output = await asked(project(), line=4, character=3)

    assert output.startswith("at {'line': 3, 'character': 3}")


async def test_errors_follow_the_text_and_warnings_are_left_out(project):
    context = project()

    first = await edited(context, "wrong\nodd\n")
    second = await edited(context, "right\nodd\n")

    assert "ERROR [1:1] wrong on 0\n</diagnostics>" in first
    assert not second
    assert said(context).count("textDocument/didOpen") == 1


async def test_of_many_errors_twenty_are_shown(project):
    answer = await edited(project("many"), "x\n")

    assert answer.count("ERROR") == 20
    assert "... and 10 more" in answer


async def test_a_silent_server_delays_edits_less_and_less(project, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE_S", client.PATIENCE_S)
    context = project("silent")
    waits = []

    for number in range(4):  # with the first it may only have started
        started = time.monotonic()
        assert not await edited(context, f"{number}\n")
        waits.append(time.monotonic() - started)

    assert waits[3] < waits[0] / 2


async def test_an_edit_does_not_wait_for_a_slow_start(project, monkeypatch):
    monkeypatch.setattr(plugin, "WAIT_S", 0.2)
    context = project("slow")

    assert not await edited(context, "wrong\n")

    (context.directory / "go").touch()
    assert "at " in await asked(context)


async def test_a_crashed_server_is_started_again_with_growing_pauses(project):
    context = project("crash")

    for _ in range(2):
        with pytest.raises(ToolError, match="gone"):
            await asked(context)
    with pytest.raises(ToolError, match=r"has failed 2 times; it is started again in"):
        await asked(context)

    assert said(context).count("initialize") == 2


async def test_after_a_crash_the_documents_are_open_again(project):
    context = project()
    await edited(context, "wrong\n")
    running(context)._process.kill()
    await running(context)._process.wait()

    assert "at " in await asked(context)
    assert said(context).count("textDocument/didOpen") == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("dead", "gone"),
        ("noise", "no valid message"),
        ("huge", "no valid message"),
        ("headless", "no valid message"),
        ("early", "gone"),
        ("flood", "no valid message"),
        ("half", "gone"),
    ],
)
async def test_a_server_that_breaks_the_protocol_is_an_error_and_can_be_ended(
    project, caplog, fault, reason
):
    context = project(fault)

    with pytest.raises(ToolError, match=reason):
        await asked(context)

    async with asyncio.timeout(60):
        await plugin.shutdown(context)
    assert not [record for record in caplog.records if record.name == "asyncio"]


async def test_a_server_that_is_not_understood_does_not_stay(project, monkeypatch):
    monkeypatch.setattr(server, "WATCH_S", 0.05)
    context = project("flood")
    with pytest.raises(ToolError, match="no valid message"):
        await asked(context)

    async with asyncio.timeout(60):
        await asyncio.wait(running(context)._tasks)

    [service] = await plugin.services(context)
    assert service.state == "failed"


async def test_an_edit_goes_on_beside_a_server_that_floods_from_the_start(project):
    assert not await edited(project("early"), "wrong\n")


async def test_a_request_without_an_answer_ends_in_time(project, monkeypatch):
    monkeypatch.setattr(client, "REQUEST_S", 0.3)
    context = project("mute")

    with pytest.raises(ToolError, match=r"did not answer textDocument/hover within 0\.3 s"):
        await asked(context)

    assert running(context).alive


async def test_a_server_that_fills_its_stderr_does_not_hang(project):
    assert "at " in await asked(project("chatty"))


async def test_what_a_server_cannot_do_is_told(project):
    with pytest.raises(ToolError, match="no textDocument/definition"):
        await asked(project(), "goToDefinition")


async def test_what_is_not_in_the_protocol_ends_neither_the_server_nor_us(project):
    context = project("odd")

    answer = await edited(context, "wrong\n")
    with pytest.raises(ToolError, match=r"refused textDocument/hover: its answer cannot be read"):
        await asked(context)
    with pytest.raises(ToolError, match=r"refused textDocument/definition: .*no name there"):
        await asked(context, "goToDefinition")

    assert "ERROR [1:1] wrong on 0" in answer
    assert running(context).alive
    assert said(context).count("initialize") == 1


async def test_a_long_answer_is_whole(project):
    assert await asked(project("long")) == "x" * (128 << 10)


async def test_old_documents_are_closed(project, monkeypatch):
    monkeypatch.setattr(textdocuments, "MOST_DOCUMENTS", 2)
    context = project()

    for name in ("1.t", "2.t", "3.t"):
        (context.directory / name).write_text("x")
        path = str(context.directory / name)
        await call(lsp, context, operation="diagnostics", filePath=path)

    assert [word for word in said(context) if word.startswith("closed:")] == ["closed:1.t"]


@pytest.mark.parametrize(("bound", "value"), [("IDLE_S", 0.0), ("LIMIT_RSS_BYTES", 1)])
async def test_an_idle_or_too_big_server_is_ended_and_comes_back(
    project, monkeypatch, bound, value
):
    monkeypatch.setattr(server, "WATCH_S", 0.05)
    context = project()
    first = await asked(context)
    monkeypatch.setattr(server, bound, value)
    old = running(context)

    async with asyncio.timeout(30):
        await old._process.wait()
    monkeypatch.undo()

    async with asyncio.timeout(30):
        await asyncio.wait(old._tasks)
    assert await asked(context) != first


async def test_a_server_that_hangs_is_ended_and_comes_back(project, monkeypatch):
    monkeypatch.setattr(server, "WATCH_S", 0.05)
    context = project()
    first = await asked(context)
    old = running(context)
    monkeypatch.setattr(client, "REQUEST_S", 0.2)
    os.kill(old._process.pid, signal.SIGSTOP)

    for _ in range(server.MOST_UNANSWERED):
        with pytest.raises(ToolError, match="language server"):
            await asked(context)
    async with asyncio.timeout(30):
        await old._process.wait()
    monkeypatch.undo()

    assert await asked(context) != first


async def test_a_file_that_is_gone_hides_no_errors_of_others(project):
    context = project()

    result = await edited(context, "wrong\n", gone="gone.t")

    assert "ERROR [1:1] wrong on 0" in result


async def test_a_letter_before_the_first_is_an_error(project):
    with pytest.raises(ToolError, match="character counts from 1, and is -1"):
        await asked(project(), character=-1)


async def test_no_server_starts_before_the_project_is_trusted(project):
    context = project()
    context.trusted = False

    assert not await edited(context, "wrong\n")
    with pytest.raises(ToolError, match="projects that the user trusts"):
        await asked(context)

    assert not (context.directory / "log").exists()


async def test_all_servers_end_with_the_app_even_while_they_start(project):
    context = project("slow")
    starting = asyncio.create_task(asked(context))
    await until(lambda: context.stash.get(plugin._SERVERS) is not None)
    kept = context.stash.get(plugin._SERVERS)
    await until(lambda: bool(kept._slots))
    [slot] = kept._slots.values()
    assert not slot.starting.done()

    await kept.aclose()

    with pytest.raises((asyncio.CancelledError, ToolError)):
        await starting


async def test_an_old_server_ends_though_nobody_waits_for_the_new_one(project, monkeypatch):
    monkeypatch.setattr(servers, "MOST_SERVERS", 1)
    context = project()
    await asked(context)
    old, kept = running(context), context.stash.get(plugin._SERVERS)
    os.kill(old._process.pid, signal.SIGSTOP)  # so that its end takes a while
    [key] = kept._slots
    context.session.config = Config(lsp={"another": context.session.config.lsp["tests"]})

    wanting = asyncio.create_task(asked(context))
    await until(lambda: key not in kept._slots)
    wanting.cancel()
    await asyncio.wait({wanting})
    await kept.aclose()

    assert old._process.returncode is not None


def another(context, name, fault="none"):
    """Have the file belong to a server of another name."""
    settings = config(fault, context.directory / "log").lsp["tests"]
    context.session.config = Config(lsp={name: settings})


async def names(context):
    return [service.name for service in await plugin.services(context)]


async def test_the_server_that_was_not_used_for_the_longest_time_makes_room(project, monkeypatch):
    monkeypatch.setattr(servers, "MOST_SERVERS", 2)
    context = project()
    for name in ("one", "two", "one", "three"):
        another(context, name)
        await asked(context)

    assert await names(context) == ["one", "three"]
    assert said(context).count("initialize") == 3


async def test_no_server_is_ended_while_it_is_asked(project, monkeypatch):
    monkeypatch.setattr(servers, "MOST_SERVERS", 1)
    monkeypatch.setattr(client, "REQUEST_S", 2.0)
    context = project()
    another(context, "one", "mute")
    waiting = asyncio.create_task(asked(context))
    log = context.directory / "log"
    await until(lambda: log.exists() and "textDocument/hover" in said(context))

    another(context, "two")
    with pytest.raises(ToolError, match="all 1 language servers are in use"):
        await asked(context)

    with pytest.raises(ToolError, match="did not answer"):
        await waiting
    assert "at " in await asked(context)
    assert await names(context) == ["two"]


async def test_a_server_that_is_asked_outlives_the_one_that_takes_its_place(project, monkeypatch):
    monkeypatch.setattr(server, "MOST_CHANGES", 0)
    monkeypatch.setattr(client, "REQUEST_S", 2.0)
    context = project("mute")
    waiting = asyncio.create_task(asked(context))
    log = context.directory / "log"
    await until(lambda: log.exists() and "textDocument/hover" in said(context))

    (context.directory / "b.t").write_text("x")
    assert await asked(context, "diagnostics", "b.t") == "No results for diagnostics"

    with pytest.raises(ToolError, match="did not answer"):  # and not: is gone
        await waiting
    await until(lambda: said(context).count("shutdown") == 1)


def test_a_server_that_runs_the_projects_code_must_be_named(tmp_path):
    program, project = tmp_path / "rust-analyzer", tmp_path / "project"
    program.write_text("")
    program.chmod(0o755)
    (project / "a/b").mkdir(parents=True)
    (project / "a/Cargo.toml").touch()

    def found(said, *, trusted_by_user=True):
        env = {"PATH": str(tmp_path)}
        search = ProgramSearch(
            root=project, directory=project, trusted_by_user=trusted_by_user, env=env
        )
        return launch(project / "a/b/c.rs", search, said)

    assert found({}) is None
    assert found({"rust": LspConfig(disabled=True)}) is None
    assert found({"rust": LspConfig()}, trusted_by_user=False) is None
    chosen = found({"rust": LspConfig()})
    assert (chosen.language.command, chosen.root) == ((str(program),), project / "a")


def test_a_server_that_is_named_may_be_the_projects_own(tmp_path):
    program = tmp_path / "web/node_modules/.bin/typescript-language-server"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)

    context = Context(tmp_path)

    def found(said, *, trusted_by_user=True):
        context.trusted_by_user = trusted_by_user
        return launch(tmp_path / "web/src/a.ts", context.programs({"PATH": "/none"}), said)

    assert found({}) is None
    assert found({"typescript": LspConfig()}, trusted_by_user=False) is None
    with pytest.raises(RefusedProgramError, match=r"nobody has trusted; .*trust program .*"):
        found({"typescript": LspConfig()})
    context.trust_program(program)
    assert found({"typescript": LspConfig()}).language.command == (str(program), "--stdio")


async def test_the_tool_is_offered_where_a_server_is_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert plugin.register_tools(Config()) == []

    assert plugin.register_tools(config("none", os.devnull)) == [lsp]
    assert plugin.register_tools(Config(lsp={"tests": LspConfig(disabled=True)})) == []


def test_each_known_server_has_its_own_name():
    assert len({language.name for language in KNOWN}) == len(KNOWN)
