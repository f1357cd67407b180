"""`pegboard config get|set|unset|edit`: single keys, comments kept, nothing invalid written."""

import tomllib
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine

COMMENTED = """# which model I use
model = "fake/model" # the cheap one

[budget.run]
usd = 1.5
"""


def user_file(pegboard: CommandLine, text: str = "") -> Path:
    file = pegboard.home / "config" / "pegboard.toml"
    if text:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return file


async def test_a_key_is_set_read_and_taken_out_again(pegboard: CommandLine) -> None:
    file = user_file(pegboard)

    done = await pegboard("config", "set", "budget.run.usd", "2.5")
    mode = file.stat().st_mode & 0o777
    shown = await pegboard("config", "get", "budget.run.usd")
    out = await pegboard("config", "unset", "budget.run.usd")
    gone = await pegboard("config", "get", "budget.run.usd")

    assert (done.code, done.err) == (0, f"written: {file}\n")
    assert shown.out == "2.5\n"
    assert (out.code, gone.code) == (0, 2)
    assert "budget.run.usd is not set" in gone.err
    assert (mode, file.exists()) == (0o600, False)


async def test_a_table_goes_with_its_last_key_unless_it_has_a_comment(
    pegboard: CommandLine,
) -> None:
    kept = 'model = "fake/model"\n\n[provider.known.options]\n# the address comes later\n'
    file = user_file(pegboard, kept)

    for key in ("plugins.webfetch.options.allow_private", "provider.other.options.timeout_s"):
        await pegboard("config", "set", key, "true" if "allow" in key else "5")
        await pegboard("config", "unset", key)
    await pegboard("config", "set", "provider.known.options.timeout_s", "5")
    await pegboard("config", "unset", "provider.known.options.timeout_s")
    checked = await pegboard("doctor", "--json")

    assert file.read_text().rstrip("\n") == kept.rstrip("\n")
    assert "is empty" not in checked.out


async def test_what_else_is_in_the_file_stays_as_it_is(pegboard: CommandLine) -> None:
    file = user_file(pegboard, COMMENTED)

    await pegboard("config", "set", "model", "fake/other")
    await pegboard("config", "set", 'permission.bash."git push *"', "ask")

    text = file.read_text()
    assert text.startswith(COMMENTED.replace("fake/model", "fake/other"))
    assert text.endswith('[permission.bash]\n"git push *" = "ask"\n')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[permission]\ndeploy = "ask"\n', {"deploy": {"*": "ask", "staging/*": "allow"}}),
        ('permission = "ask"\n', {"*": "ask", "deploy": {"staging/*": "allow"}}),
        ('permission = { deploy = "ask" }\n', {"deploy": {"*": "ask", "staging/*": "allow"}}),
        ('permission = { edit = "ask" }\n', {"edit": "ask", "deploy": {"staging/*": "allow"}}),
    ],
)
async def test_a_pattern_is_added_to_a_permission_that_has_one_action(
    pegboard: CommandLine, before: str, after: object
) -> None:
    file = user_file(pegboard, before)

    done = await pegboard("config", "set", 'permission.deploy."staging/*"', "allow")

    assert done.code == 0, done.err
    assert tomllib.loads(file.read_text()) == {"permission": after}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("modle", "a/b", "did you mean model?"),
        ("budget.run.usd", "much", "budget.run.usd: expected float"),
        (
            "budget.run.usd.deeper",
            "1",
            "usd is not a table there; `pegboard config unset budget.run.usd` makes",
        ),
        ("plugins.chat.options.theme", "5", "plugins.chat.options.theme: Expected `str`"),
        ("plugins.chat.options.colour", "red", "plugins.chat.options.colour: unknown"),
        ("plugins.chat.options.theme", "purple", "purple is unknown; known are auto, terminal, "),
        ("permission_mode", "purple", "purple is unknown; known are ask, accept-edits, plan"),
        ("not a key", "1", "is not a key: write it as in TOML"),
    ],
)
async def test_what_would_not_be_valid_is_refused_and_nothing_is_changed(
    pegboard: CommandLine, key: str, value: str, said: str
) -> None:
    file = user_file(pegboard, COMMENTED)

    done = await pegboard("config", "set", key, value)

    assert done.code == 2
    assert said in done.err
    assert file.read_text() == COMMENTED


async def test_a_file_that_counts_more_is_named(pegboard: CommandLine) -> None:
    pegboard.configure(model="fake/first")

    done = await pegboard("config", "set", "model", "fake/second")

    assert done.err.endswith("opencode.json sets model, too, and counts\n")


async def test_the_project_has_a_file_of_its_own(pegboard: CommandLine) -> None:
    done = await pegboard("config", "set", "--project", "model", "fake/model")

    assert done.code == 0
    assert (pegboard.project / "pegboard.toml").read_text() == 'model = "fake/model"\n'


async def test_the_editor_s_text_is_checked_before_it_counts(pegboard: CommandLine) -> None:
    file = user_file(pegboard, COMMENTED)
    pegboard.env["EDITOR"] = "sed -i s/usd/usdd/"

    wrong = await pegboard("config", "edit")
    pegboard.env["EDITOR"] = "sed -i s/1.5/3/"
    right = await pegboard("config", "edit")

    assert wrong.code == 2
    assert "did you mean usd?" in wrong.err
    assert right.code == 0
    assert file.read_text() == COMMENTED.replace("1.5", "3")


async def test_settings_stand_below_the_source_that_they_come_from(pegboard: CommandLine) -> None:
    file = user_file(pegboard, '[permission.bash]\n"git push *" = "ask"\n')

    shown = await pegboard("config", "show")

    built_in, own = shown.out.split("\n\n")
    assert built_in.startswith("# built-in\n")
    assert 'permission."doom_loop"."*" = "ask"' in built_in.splitlines()
    assert own == f'# {file}\npermission."bash"."git push *" = "ask"\n'
