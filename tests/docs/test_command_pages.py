"""The pages have every command and every option that the help has, and each says what it means."""

import click
import pytest

from docs.command_pages import commands, options
from docs.reference_pages import REFERENCE

COMMANDS = dict(commands())
PAGE = (REFERENCE / "commands.md").read_text()


@pytest.mark.parametrize("path", COMMANDS)
def test_each_option_has_words_of_its_own(path: str) -> None:
    assert [each.name for each in options(COMMANDS[path]) if not each.help] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_what_the_help_lists_is_on_the_page(path: str) -> None:
    command = COMMANDS[path]
    section = PAGE.partition(f"\n## {path}\n")[2].partition("\n## ")[0]

    assert section
    assert [each for each in options(command) if f"`{each.opts[0]}" not in section] == []
    if isinstance(command, click.Group):
        assert {f"{path} {name}" for name in command.list_commands(click.Context(command))} <= {
            *COMMANDS
        }
