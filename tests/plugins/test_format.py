import asyncio
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from pegboard.contract.results import ToolResult
from pegboard.schema.config import Config, FormatterConfig
from pegboard.schema.part import Completed
from pegboard.unstable import ProgramSearch
from pegboard_plugins import format as plugin
from pegboard_plugins.edit import edit, write, write_plugin
from pegboard_plugins.format import formatting
from pegboard_plugins.format.known import KNOWN, fitting, installed
from support.models.played import Played, calls, opened, text
from support.models.played import call as model_call
from support.tools.tool_context import Context, call

BIN = Path(sys.executable).parent
UGLY = "x = {  'a':1 }\n"
NEAT = 'x = {"a": 1}\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    return folder


async def written(context, content, name="a.py"):
    """What the model reads once the plugin has seen a write of the file."""
    result = await call(write, context, filePath=str(context.directory / name), content=content)
    return (await plugin.tool_execute_after(context, result)) or result


def own(command, *extensions, **facts):
    settings = FormatterConfig(command=tuple(command), extensions=extensions, **facts)
    return Config(formatter={"own": settings})


def script(folder, code):
    """A formatter of a few lines of Python, which gets the file's path."""
    program = folder.parent / "formatter.py"  # one of the project would want to be trusted
    program.write_text(f"import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n{code}\n")
    return [sys.executable, str(program), "$FILE"]


async def test_a_written_file_is_formatted_and_the_model_is_told_how(project):
    result = await written(Context(project), UGLY)

    assert (project / "a.py").read_text() == NEAT
    assert "ruff formatted a.py: +1 -1 lines.\n\n--- a.py" in result.output
    assert '+x = {"a": 1}' in result.output


async def test_the_next_edit_needs_no_new_read(project):
    context = Context(project)
    await written(context, UGLY)

    await call(
        edit, context, filePath=str(project / "a.py"), oldString='"a": 1', newString='"b": 2'
    )

    assert (project / "a.py").read_text() == 'x = {"b": 2}\n'


async def test_a_file_that_is_neat_already_is_not_spoken_of(project):
    result = await written(Context(project), NEAT)

    assert "ruff" not in result.output


async def test_a_file_that_cannot_be_formatted_is_as_it_was_written(project):
    result = await written(Context(project), "def broken(:\n")

    assert (project / "a.py").read_text() == "def broken(:\n"
    assert "(ruff could not format a.py, which is as it was written: error:" in result.output


async def test_a_project_that_does_not_name_the_formatter_is_left_alone(project):
    (project / "pyproject.toml").unlink()

    result = await written(Context(project), UGLY)

    assert (project / "a.py").read_text() == UGLY
    assert "ruff" not in result.output


async def test_nothing_is_formatted_before_the_project_is_trusted(project):
    context = Context(project)
    context.trusted = False

    await written(context, UGLY)

    assert (project / "a.py").read_text() == UGLY


async def test_a_call_that_changes_nothing_starts_nothing(project):
    context = Context(project)

    assert await plugin.tool_execute_after(context, ToolResult(output="x")) is None


async def test_the_configuration_adds_a_formatter_with_its_environment(project):
    code = "import os\nfile.write_text(file.read_text() + os.environ['MARK'])"
    config = own(script(project, code), "txt", environment={"MARK": "!"})

    result = await written(Context(project, config=config), "hi\n", "a.txt")

    assert (project / "a.txt").read_text() == "hi\n!"
    assert "own formatted a.txt" in result.output


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("file.write_text('half'); sys.exit('it broke')", "it broke"),
        ("file.write_text('')", "it left nothing"),
        ("file.write_text('all')", "it left less than half of the file"),
        ("file.write_bytes(b'all of it\\xff')", "it left no text in UTF-8"),
        ("file.write_bytes(b'all of it\\0')", "it left no text in UTF-8"),
        ("file.unlink()", "it left no file there, or a link"),
        ("file.unlink(); file.symlink_to('other')", "it left no file there, or a link"),
        ("file.unlink(); file.symlink_to('.')", "it left no file there, or a link"),
        ("file.write_text('half'); import os; os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
async def test_a_formatter_that_fails_halfway_costs_nothing(project, code, reason):
    config = own(script(project, code), ".txt")
    (project / "other").write_text("another\n")

    result = await written(Context(project, config=config), "all of it\n", "a.txt")

    assert not (project / "a.txt").is_symlink()
    assert (project / "a.txt").read_text() == "all of it\n"
    assert (project / "other").read_text() == "another\n"
    assert f"(own could not format a.txt, which is as it was written: {reason}" in result.output


async def test_a_formatter_that_takes_too_long_costs_nothing(project, monkeypatch):
    monkeypatch.setattr(formatting, "FILE_S", 0.5)
    code = "file.write_text('half'); import time; time.sleep(60)"
    config = own(script(project, code), ".txt")

    result = await written(Context(project, config=config), "all of it\n", "a.txt")

    assert (project / "a.txt").read_text() == "all of it\n"
    reason = "it took longer than 0.5 s"
    assert f"(own could not format a.txt, which is as it was written: {reason}" in result.output


async def test_what_cannot_be_put_back_is_said(project):
    code = "file.unlink(); file.mkdir(); (file / 'x').touch()"
    config = own(script(project, code), ".txt")

    result = await written(Context(project, config=config), "all of it\n", "a.txt")

    assert "(own failed at a.txt: it left no file there, or a link" in result.output
    assert "What was there cannot be put back: " in result.output


async def test_a_file_keeps_its_mode_when_the_formatter_puts_another_in_its_place(project):
    code = "text = file.read_text(); file.unlink(); file.write_text(text + '!')"
    (project / "a.txt").write_text("hi\n")
    (project / "a.txt").chmod(0o750)
    context = Context(project, config=own(script(project, code), ".txt"))
    context.files.note_read(project / "a.txt")

    await written(context, "ho\n", "a.txt")

    assert (project / "a.txt").read_text() == "ho\n!"
    assert (project / "a.txt").stat().st_mode & 0o777 == 0o750


async def test_a_link_in_the_place_of_the_file_is_not_formatted(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "a.py"
    outside.write_text(UGLY)
    context = Context(project)
    result = await call(write, context, filePath=str(project / "a.py"), content=UGLY)
    (project / "a.py").unlink()
    (project / "a.py").symlink_to(outside)

    assert await plugin.tool_execute_after(context, result) is None

    assert outside.read_text() == UGLY


async def test_a_call_that_is_stopped_leaves_the_file_whole(project):
    code = "file.write_text('half'); import time; time.sleep(60)"
    context = Context(project, config=own(script(project, code), ".txt"))
    path = project / "a.txt"

    running = asyncio.create_task(written(context, "all of it\n", "a.txt"))
    until = time.monotonic() + 60
    while not path.exists() or path.read_text() != "half":
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert path.read_text() == "all of it\n"


async def test_after_a_long_time_the_rest_of_a_call_is_not_formatted(project, monkeypatch):
    monkeypatch.setattr(formatting, "CALL_S", -1.0)

    result = await written(Context(project), UGLY)

    assert "were not formatted: it took too long" in result.output
    assert (project / "a.py").read_text() == UGLY


def test_a_formatter_that_runs_the_projects_code_must_be_named(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"devDependencies": {"prettier": "3"}}')
    (tmp_path / "prettier").write_text("#!/bin/sh\n")
    (tmp_path / "prettier").chmod(0o755)

    def found(said, *, trusted_by_user=True):
        env = {"PATH": str(tmp_path)}
        search = ProgramSearch(
            root=project, directory=project, trusted_by_user=trusted_by_user, env=env
        )
        path = project / "a.css"
        return [each.command for each in installed(fitting(path, project, said), path, search)]

    assert found({}) == []
    assert found({"prettier": FormatterConfig(disabled=True)}) == []
    assert found({"prettier": FormatterConfig()}, trusted_by_user=False) == []
    assert found({"prettier": FormatterConfig()}) == [
        (
            str(tmp_path / "prettier"),
            *("--write", "--log-level=warn", str(project / "a.css")),
        )
    ]


def test_a_formatter_that_is_named_may_be_the_projects_own(tmp_path):
    for place in ("node_modules/.bin", "web/node_modules/.bin", "path"):
        program = tmp_path / place / "prettier"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (tmp_path / "package.json").write_text('{"devDependencies": {"prettier": "3"}}')

    def found(name, said):
        context = Context(tmp_path)
        for program in tmp_path.rglob("prettier"):
            context.trust_program(program)
        search = context.programs({"PATH": str(tmp_path / "path")})
        path = tmp_path / name
        chosen = installed(fitting(path, tmp_path, said), path, search)
        return [Path(each.command[0]).parent for each in chosen]

    named = {"prettier": FormatterConfig()}
    assert found("web/src/a.css", named) == [tmp_path / "web/node_modules/.bin"]
    assert found("a.css", named) == [tmp_path / "node_modules/.bin"]
    assert found("a.css", {}) == []


@pytest.fixture
def own_ruff(project):
    """A formatter that the project has installed for itself."""
    program = project / ".venv/bin/ruff"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {project}/ran\n")
    program.chmod(0o755)
    return program


NAMED = Config(formatter={"ruff": FormatterConfig()})


async def test_the_projects_own_program_waits_for_a_yes_though_it_brings_no_code(project, own_ruff):
    context = Context(project, config=NAMED)
    context.trusted_by_user = False

    await written(context, UGLY)
    assert (project / "a.py").read_text() == NEAT  # by the one on the PATH
    assert not (project / "ran").exists()

    context.trusted_by_user = True
    context.trust_program(own_ruff)
    await written(context, UGLY, "b.py")
    assert (project / "ran").exists()


async def test_a_program_of_the_project_runs_only_as_it_was_when_somebody_trusted_it(
    project, own_ruff
):
    context = Context(project, config=NAMED)

    first = await written(context, UGLY)
    second = await written(context, UGLY, "b.py")
    context.trust_program(own_ruff)
    own_ruff.write_text(own_ruff.read_text() + "# changed\n")
    third = await written(context, UGLY, "c.py")

    hint = f"; `pegboard trust program {own_ruff}` allows it)"
    assert f"(ruff: .venv/bin/ruff is a program of the project that nobody has trusted{hint}" in (
        first.output
    )
    assert "trusted" not in second.output
    assert f"(ruff: .venv/bin/ruff has changed since it was trusted{hint}" in third.output
    assert not (project / "ran").exists()


async def test_a_program_of_the_project_on_the_path_is_no_other(project, own_ruff, monkeypatch):
    monkeypatch.setenv("PATH", f"{own_ruff.parent}:/usr/bin:/bin")

    result = await written(Context(project), UGLY)

    assert "nobody has trusted" in result.output
    assert not (project / "ran").exists()


async def test_a_script_of_the_project_in_a_command_is_trusted_too(project, tmp_path):
    (project / "fmt.py").write_text(f"open({str(project / 'ran')!r}, 'w')")
    config = own([sys.executable, "fmt.py", "$FILE"], ".txt")
    context = Context(project, config=config)

    refused = await written(context, "hi\n", "a.txt")
    assert "fmt.py is a program of the project that nobody has trusted" in refused.output
    assert not (project / "ran").exists()

    context.trust_program(project / "fmt.py")
    await written(context, "hi\n", "b.txt")
    assert (project / "ran").exists()


PRETTIER = os.environ.get("PEGBOARD_PRETTIER")


@pytest.mark.skipif(PRETTIER is None, reason="PEGBOARD_PRETTIER names no folder with prettier")
async def test_prettier_of_the_project_formats_and_its_errors_are_told(tmp_path, monkeypatch):
    """Opt-in: PEGBOARD_PRETTIER is a folder in which `npm install prettier` was run."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    (tmp_path / "node_modules").symlink_to(Path(PRETTIER, "node_modules"))
    (tmp_path / "package.json").write_text('{"devDependencies": {"prettier": "3"}}')
    context = Context(tmp_path, config=Config(formatter={"prettier": FormatterConfig()}))

    good = await written(context, "a  {color:red}\n", "a.css")
    bad = await written(context, "a { color: \n", "b.css")

    assert (tmp_path / "a.css").read_text() == "a {\n  color: red;\n}\n"
    assert "prettier formatted a.css" in good.output
    assert (tmp_path / "b.css").read_text() == "a { color: \n"
    assert "(prettier could not format b.css, which is as it was written:" in bad.output


def test_each_known_formatter_gets_the_file():
    assert [each.name for each in KNOWN if each.command.count("$FILE") != 1] == []


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")
async def test_another_formatter_that_is_installed_is_used(tmp_path):
    result = await written(Context(tmp_path), "async fn f(){}\n", "a.rs")

    if (tmp_path / "a.rs").read_text() != "async fn f() {}\n":
        pytest.skip(f"rustfmt does not run here: {result.output}")
    assert "rustfmt formatted a.rs" in result.output


async def test_in_an_app_a_turn_formats_what_it_writes(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.ruff]\n")
    arguments = f'{{"filePath": "{folder}/a.py", "content": "x = {{  }}\\n"}}'
    provider = Played(calls(model_call("write", arguments)), text("done"))
    env = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": os.fspath(tmp_path)}

    async with opened(tmp_path, provider, write_plugin, plugin, env=env) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")
        turns = await app.list_turns(session.id)

    [state] = [
        part.state for turn in turns for part in turn.parts if getattr(part, "tool", "") == "write"
    ]
    assert (folder / "a.py").read_text() == "x = {}\n"
    assert isinstance(state, Completed)
    assert "ruff formatted a.py" in state.output
