"""A file that a rule about `read` denies is read by no tool, in either spelling of the rule."""

import json

import pytest

from plugins.cli.commands import CommandLine

HIDDEN = "the-hidden-word"


@pytest.fixture
def guarded(pegboard: CommandLine) -> CommandLine:
    """A project with a folder that a rule closes."""
    folder = pegboard.project / "secrets"
    folder.mkdir()
    (folder / "key.txt").write_text(f"{HIDDEN}\n")
    (pegboard.project / "notes.txt").write_text("open\n")
    return pegboard


async def call(pegboard: CommandLine, tool: str, **arguments: object) -> tuple[int, str]:
    done = await pegboard("tool", "call", tool, json.dumps(arguments))
    return done.code, done.out + done.err


@pytest.mark.timeout(180)
@pytest.mark.parametrize("pattern", ["secrets/*", "./secrets/*", "*/secrets/*", "secrets/key.*"])
async def test_a_denied_file_is_read_by_no_tool(guarded: CommandLine, pattern: str) -> None:
    guarded.configure(permission={"read": {"*": "allow", pattern: "deny"}})

    calls = [
        await call(guarded, "read", filePath="secrets/key.txt"),
        await call(guarded, "grep", pattern="hidden"),
        await call(guarded, "bash", command="cat secrets/key.txt", description="x"),
        await call(guarded, "bash", command="cat secrets/k*", description="x"),
        await call(guarded, "bash", command="cat */key.txt", description="x"),
        await call(guarded, "bash", command="cp secrets/key.txt b; cat b", description="x"),
        await call(guarded, "bash", command="cd secrets; cat *", description="x"),
    ]

    assert [HIDDEN in out for _, out in calls] == [False] * len(calls)
    assert [code for code, _ in calls if code] == [5] * 6  # a search leaves it out


@pytest.mark.timeout(120)
@pytest.mark.parametrize("line", ["cp -r secrets b; cat b/*", "ln -s secrets b; cat b/key.txt"])
async def test_a_folder_of_denied_files_is_read_by_no_line(guarded: CommandLine, line: str) -> None:
    guarded.configure(permission={"*": "allow", "read": {"*": "allow", "secrets/*": "deny"}})

    code, out = await call(guarded, "bash", command=line, description="x")

    assert (code, HIDDEN in out) == (5, False)


async def test_other_files_stay_open(guarded: CommandLine) -> None:
    guarded.configure(permission={"read": {"*": "allow", "secrets/*": "deny"}})

    code, out = await call(guarded, "bash", command="cat notes.txt; ls", description="x")

    assert (code, "open" in out) == (0, True)
