"""Warnings: what stays as it is once a day, and code that is left out at every run."""

from datetime import date
from pathlib import Path

from pegboard_plugins.cli.warnings import FILE, MOST_PROJECTS, shortened, unread
from plugins.cli.commands import CommandLine, Done
from support.models.model_server import ModelServer, by_step, say
from support.wire.served import make_project, model, served

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)


def shown(state: Path, *texts: str, project: str = "/p", day: date = MONDAY) -> list[str]:
    return unread(texts, project_id=project, state=state, today=day)


def test_a_warning_is_shown_once_a_day_and_project(tmp_path: Path) -> None:
    assert shown(tmp_path, "one", "two") == ["one", "two"]
    assert shown(tmp_path, "one", "three") == ["three"]
    assert shown(tmp_path, "one", project="/q") == ["one"]
    assert shown(tmp_path, "one", "three", day=TUESDAY) == ["one", "three"]
    assert shown(tmp_path, "one", day=TUESDAY) == []


def test_a_damaged_or_forbidden_file_hides_no_warning(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[1")
    assert shown(tmp_path, "one") == ["one"]

    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    assert shown(tmp_path, "one") == ["one"]
    assert shown(tmp_path, "one") == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_run_begins_with_two_lines_of_which_the_last_says_where_the_others_are() -> None:
    assert shortened(["one", "two"]) == ["one", "two"]
    assert shortened(["one", "two", "three"]) == (
        "one",
        "2 more: `pegboard plugins doctor` shows them",
    )


def test_projects_that_were_not_warned_for_long_are_forgotten(tmp_path: Path) -> None:
    for number in range(MOST_PROJECTS + 1):
        shown(tmp_path, "one", project=f"/p{number}")

    assert shown(tmp_path, "one", project="/p1") == []
    assert shown(tmp_path, "one", project="/p0") == ["one"]


async def test_code_that_is_left_out_is_one_line_at_every_run(pegboard: CommandLine) -> None:
    tool = pegboard.project / "tool" / "hello.py"
    tool.parent.mkdir(parents=True)
    tool.write_text("from pegboard import tool\n")
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        untrusted = [await pegboard("run", "hi") for _ in range(2)]
        record = await pegboard("run", "--format", "json", "hi")
        await pegboard("trust", "allow", "--yes")
        trusted = await pegboard("run", "hi")
        tool.write_text("from pegboard import tool\n\n")
        changed = [await pegboard("run", "hi") for _ in range(2)]
        tool.write_text("from pegboard import tool\n\ndef broken(:\n")
        broken = [await pegboard("run", "--trust", "hi") for _ in range(2)]

    allow = "`pegboard trust allow` shows and trusts it, --trust does so once"
    untrusted_line = f"warning: not loaded: tool/hello.py (not trusted); {allow}"
    changed_line = f"warning: not loaded: tool/hello.py (changed since trusted); {allow}"
    broken_line = (
        "warning: not loaded: tool/hello.py (line 3, column 12: SyntaxError: invalid syntax:"
        " `def broken(:`); `pegboard plugins doctor` shows more"
    )
    assert [warnings_of(done) for done in untrusted] == [[untrusted_line]] * 2
    assert any("not trusted" in str(each.get("message")) for each in record.records)
    assert warnings_of(trusted) == []
    assert [warnings_of(done) for done in changed] == [[changed_line]] * 2
    assert [warnings_of(done) for done in broken] == [[broken_line]] * 2


async def test_several_that_are_left_out_are_counted_on_that_line(pegboard: CommandLine) -> None:
    folder = pegboard.project / ".pegboard" / "plugins"
    folder.mkdir(parents=True)
    for name in "abcde":
        (folder / f"{name}.py").write_text("import nothing\n")
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        untrusted = await pegboard("run", "hi")
        broken = [await pegboard("run", "--trust", "hi") for _ in range(2)]

    (line,) = warnings_of(untrusted)
    assert "not loaded: .pegboard/plugins/a.py, " in line
    assert "c.py and 2 more (not trusted); `pegboard trust allow` shows and trusts them" in line
    for done in broken:
        (line,) = warnings_of(done)
        assert "not loaded: a (" in line
        assert "No module named 'nothing'" in line
        assert "and 4 more; `pegboard plugins doctor` shows more" in line


SLOW = """
import time

from pegboard import hookimpl


@hookimpl
async def register_agents():
    time.sleep(2)
    return ()
"""


def warnings_of(done: Done) -> list[str]:
    return [line for line in done.err.splitlines() if "warning:" in line]


async def test_a_command_of_an_untrusted_file_is_named_in_one_warning(
    pegboard: CommandLine,
) -> None:
    file = pegboard.project / ".pegboard" / "commands" / "hey.md"
    file.parent.mkdir(parents=True)
    file.write_text("Say hey.")
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "hi")

    (warning,) = warnings_of(done)
    assert "not loaded: .pegboard/commands/hey.md (not trusted); `pegboard trust" in warning


async def test_a_plugin_whose_hook_stalls_is_loaded_and_named_so(pegboard: CommandLine) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "slow.py").write_text(SLOW)
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "hi")

    (warning,) = warnings_of(done)
    assert warning.startswith(
        "warning: plugin slow: hook register_agents held up everything for more than"
    )


async def test_what_a_run_leaves_out_the_doctor_shows_in_full(pegboard: CommandLine) -> None:
    folder = pegboard.project / ".pegboard" / "plugins"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"broken{number}.py").write_text(f"import nothing{number}\n")
    (folder / "hooks.py").write_text(
        "from pegboard import hookimpl\n\n\n@hookimpl\ndef register_agents():\n    return {}\n"
    )
    (pegboard.project / "opencode.json").write_text('{"unknown_key": 1}')
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        first = await pegboard("run", "--trust", "hi")
        left_out = await pegboard("run", "hi")
        shown = await pegboard("plugins", "doctor")
        await pegboard("trust", "allow", "--yes")
        trusted = await pegboard("plugins", "doctor")

    warnings = warnings_of(first)
    assert len(warnings) == 2, first.err
    assert "and 4 more; `pegboard plugins doctor` shows more" in warnings[0]
    assert "unknown_key" in warnings[1]
    assert "and 2 more (not trusted); `pegboard trust allow` shows and trusts them" in left_out.err
    assert "not loaded, because this project is not trusted" in shown.err
    assert all(f"broken{number}" in shown.err for number in range(4))
    assert all(f"nothing{number}" in trusted.out for number in range(4))
    assert "dict where a tuple of Agent is expected" in trusted.out


async def test_an_attached_run_names_code_that_its_server_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with model() as port, served(tmp_path / "root", port) as server:
        project = make_project(tmp_path / "project")
        (project / "tool").mkdir()
        (project / "tool" / "hello.py").write_text("from pegboard import tool\n")
        user = CommandLine(server.places, project)
        words = ("run", "--attach", server.url)
        runs = [await user(*words, "%say Done.") for _ in range(2)]
        record = await user(*words, "--format", "json", "%say Done.")

    line = "warning: not loaded: tool/hello.py (not trusted); `pegboard trust allow` shows and"
    assert [done.err.count(line) for done in runs] == [1, 1]
    assert any("tool/hello.py" in str(each.get("message")) for each in record.records)
