"""What stays as it is, is said once a day."""

from datetime import date
from pathlib import Path

from model_server import ModelServer, by_step, say
from pegboard_plugins.cli.warnings import FILE, MOST_PROJECTS, shortened, unread
from plugins.cli.commands import CommandLine

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


async def test_a_run_warns_a_person_once_and_a_program_each_time(pegboard: CommandLine) -> None:
    tool = pegboard.project / "tool" / "hello.py"
    tool.parent.mkdir(parents=True)
    tool.write_text("from pegboard import tool\n")
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        runs = [await pegboard("run", "hi") for _ in range(2)]
        record = await pegboard("run", "--format", "json", "hi")

    assert ["not trusted" in done.err for done in runs] == [True, False]
    assert any("not trusted" in str(each.get("message")) for each in record.records)


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

    warnings = [line for line in first.err.splitlines() if "warning:" in line]
    assert len(warnings) == 2, first.err
    assert "5 more: `pegboard plugins doctor` shows them" in warnings[1]
    assert "not loaded, because this project is not trusted" in left_out.err
    assert "not loaded, because this project is not trusted" in shown.err
    assert all(f"broken{number}" in shown.err for number in range(4))
    assert all(f"nothing{number}" in trusted.out for number in range(4))
    assert "dict where a tuple of Agent is expected" in trusted.out
