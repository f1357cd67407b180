"""The root of the command line: options, lazy commands, and the outermost frame."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pegboard.cli.root import root
from pegboard.unstable import complain
from plugins.chat.screen import scripts
from plugins.cli.commands import CommandLine


def install(pegboard: CommandLine, module: str, content: str) -> None:
    """Make a distribution `extra` with a command of the module's name."""
    folder = pegboard.home / "site"
    (folder / "extra-1.2.dist-info").mkdir(parents=True)
    (folder / "extra-1.2.dist-info" / "METADATA").write_text("Name: extra\nVersion: 1.2\n")
    entry_points = f"[pegboard.commands]\n{module} = {module}:{module}\nrun = {module}:{module}\n"
    (folder / "extra-1.2.dist-info" / "entry_points.txt").write_text(entry_points)
    (folder / f"{module}.py").write_text(content)
    pegboard.env["PYTHONPATH"] = str(folder)


def private_file(file: Path, folder: Path) -> tuple[int, str]:
    """The mode and the content of a file in a folder."""
    assert file.parent == folder
    return file.stat().st_mode & 0o777, file.read_text()


SHOW_DIRECTORY = """
import click
@click.command()
@click.pass_obj
def hi(directory):
    print(directory)
"""


async def test_the_version_is_printed(pegboard: CommandLine) -> None:
    first, second = await pegboard("--version"), await pegboard("-C", ".", "--version")

    assert (first.code, first.out) == (second.code, second.out) == (0, "pegboard 0.1.0\n")


async def test_help_lists_commands_and_exit_codes(pegboard: CommandLine) -> None:
    done = await pegboard("--help")

    assert done.code == 0
    assert "Send one prompt and show what the agent does." in done.out
    assert "130 interrupted" in done.out


async def test_a_distribution_adds_a_command_that_is_imported_when_invoked(
    pegboard: CommandLine,
) -> None:
    install(
        pegboard,
        "hi",
        "import click, sys\n"
        "print('imported', file=sys.stderr)\n"
        "@click.command()\n"
        "@click.pass_obj\n"
        "def hi(directory):\n"
        "    print('hi from', directory)\n",
    )

    shown, invoked = await pegboard("--help"), await pegboard("hi")

    assert re.search(r"hi +From extra 1\.2\.", shown.out)
    assert "imported" not in shown.err
    assert (invoked.code, invoked.out) == (0, f"hi from {pegboard.project}\n")


async def test_a_distribution_cannot_replace_a_command_of_pegboard(pegboard: CommandLine) -> None:
    install(pegboard, "hi", "raise ImportError('hi was imported')\n")

    done = await pegboard("run", "--help")

    assert done.code == 0
    assert "Send one prompt" in done.out


async def test_a_command_that_cannot_be_imported_is_a_plugin_s_failure(
    pegboard: CommandLine,
) -> None:
    install(pegboard, "hi", "import no_such_module\n")

    done = await pegboard("hi")

    assert done.code == 8
    assert done.err.startswith("error: plugin extra: the command `hi`: hi:hi: ")
    assert done.err.count("\n") == 1


async def test_an_exception_of_another_distribution_s_command_names_it_and_is_a_file(
    pegboard: CommandLine,
) -> None:
    install(
        pegboard, "hi", "import click\n@click.command()\ndef hi():\n    raise KeyError('lost')\n"
    )

    done = await pegboard("hi")

    assert done.code == 8
    said = "error: plugin extra: the command `hi` raised KeyError: 'lost'; the details are in "
    assert done.err.startswith(said)
    mode, log = private_file(Path(done.err.strip().rpartition(" ")[2]), pegboard.home / "state")
    assert mode == 0o600
    assert "raise KeyError('lost')" in log


async def test_a_key_of_the_environment_is_in_no_crash_file_and_no_error(
    pegboard: CommandLine,
) -> None:
    pegboard.env["ACME_TOKEN"] = "planted+key/0123"
    lines = (
        "import os, urllib.parse, click",
        "@click.command()",
        "def hi():",
        "    key = os.environ['ACME_TOKEN']",
        "    raise KeyError(f'{key} is {urllib.parse.quote(key)}, and http://me:hunter2@host')",
    )
    install(pegboard, "hi", "\n".join(lines))

    done = await pegboard("hi")

    _, log = private_file(Path(done.err.strip().rpartition(" ")[2]), pegboard.home / "state")
    assert "[secret] is [secret], and " in done.err
    assert "[secret] is [secret], and http://me:[secret]@host" in log
    assert "planted" not in done.err + log


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-command"], "No such command 'no-such-command'"),
        (["run", "--no-such-option", "hi"], "No such option"),
        (["-C", "/no/such/folder", "run", "hi"], "does not exist"),
        (["run", "-c", "-s", "ses_1", "hi"], "exclude each other"),
        (["run", "--format", "xml", "hi"], "is not one of"),
    ],
)
async def test_wrong_usage_is_said_and_has_its_code(
    pegboard: CommandLine, arguments: list[str], said: str
) -> None:
    done = await pegboard(*arguments)

    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sesion", "list"], "Did you mean session?"),
        (["session", "shw"], "Did you mean show?"),
        (["fix the bug"], 'the chat needs a terminal; for one prompt: pegboard run "..."'),
        (["fix", "the", "bug"], 'To ask the agent: pegboard run "..."'),
        (["zzzzzz"], "Known are audit, "),
    ],
)
async def test_a_command_that_is_not_there_is_answered_with_a_way_on(
    pegboard: CommandLine, arguments: list[str], said: str
) -> None:
    done = await pegboard(*arguments)

    assert done.code == 2
    assert said in done.err


def groups(command: click.Command, name: str) -> Iterator[tuple[str, click.Group]]:
    if isinstance(command, click.Group):
        yield name, command
        ctx = click.Context(command, info_name=name)
        for each in command.list_commands(ctx):
            yield from groups(command.get_command(ctx, each) or command.commands[each], each)


def test_each_summary_is_one_line_and_none_is_cut() -> None:
    found = dict(groups(root, "pegboard"))
    helps = [
        each.get_help(click.Context(each, info_name=name)).partition("Commands:")[2]
        for name, each in found.items()
    ]

    assert {"pegboard", "session", "trust"} <= set(found)
    assert [line for text in helps for line in text.splitlines() if "..." in line] == []
    lines = [line for text in helps for line in text.partition("\n\n")[0].splitlines() if line]
    assert [line for line in lines if not re.match(r"  [a-z]", line)] == []


async def test_options_alone_are_those_of_the_chat(pegboard: CommandLine) -> None:
    chosen = await pegboard("-C", ".", "-m", "acme/large")
    unknown = await pegboard("--modle", "acme/large")
    with_command = await pegboard("-m", "acme/large", "models")

    assert "the chat needs a terminal" in chosen.err
    assert "Usage: pegboard chat" in unknown.err
    assert "'--model'" in unknown.err
    assert "Usage: pegboard [OPTIONS] [COMMAND]" in with_command.err
    assert "No such option '-m'" in with_command.err
    assert (chosen.code, unknown.code, with_command.code) == (2, 2, 2)


async def test_the_directory_can_be_named(pegboard: CommandLine) -> None:
    elsewhere = pegboard.home / "elsewhere"
    elsewhere.mkdir()
    install(pegboard, "hi", SHOW_DIRECTORY)

    done = await pegboard("-C", "../elsewhere", "hi")

    assert done.out == f"{elsewhere}\n"


def test_an_error_that_a_server_has_worded_is_spelt_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    complain("no \x1b]0;x\x07 such\n\nmodel \u202e: café")

    assert capsys.readouterr().err == "error: no \\x1b]0;x\\x07 such model \\u202e: café\n"


async def test_a_prompt_in_quotes_begins_a_chat(pegboard: CommandLine) -> None:
    scripts(pegboard)
    pegboard.env["TERM"] = "xterm-256color"

    async with pegboard.terminal("-C", ".", "say it back", "--mode", "plan") as terminal:
        await terminal.see("You said: say it back")
