import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.schema.session import Rule
from pegboard_plugins.glob import NOTHING as GLOB_NOTHING
from pegboard_plugins.glob import glob
from pegboard_plugins.grep import grep
from pegboard_plugins.grep.results import NOTHING as GREP_NOTHING
from support.processes.processes import alive, remaining
from support.tools.tool_context import Context, call
from support.tools.with_ripgrep import KINDS, offer


@pytest.fixture(params=KINDS)
def context(request, tmp_path, monkeypatch):
    """A context of a project, with ripgrep on the PATH and without it."""
    offer(request.param, tmp_path / "bin", monkeypatch)
    project = tmp_path / "project"
    for number, (name, text) in enumerate(FILES.items()):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (number, number))
    return Context(project)


FILES = {
    ".git/config": "needle in git\n",
    ".gitignore": "*.log\nbuilt/\n!keep.log\n",
    "a.py": "x = 1\nneedle = 2\n",
    "src/b.py": "# needle: here\n",
    "src/.hidden.py": "secret needle\n",
    "src/deep/c.ts": "let needle;\r\nlet other;\n",
    "out.log": "needle\n",
    "keep.log": "no\n",
    "built/x.py": "needle\n",
    "binary.dat": "\0needle\n",
}


def found(result, context):
    lines = result.output.splitlines()
    return [line.removeprefix(f"{context.directory}/") for line in lines]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["src/.hidden.py", "src/b.py", "a.py"]),
        ("**/*.py", ["src/.hidden.py", "src/b.py", "a.py"]),
        ("src/*.py", ["src/.hidden.py", "src/b.py"]),
        ("src/**", ["src/deep/c.ts", "src/.hidden.py", "src/b.py"]),
        ("*.{ts,log}", ["keep.log", "src/deep/c.ts"]),
        ("[ab].py", ["src/b.py", "a.py"]),
        ("[!a].py", ["src/b.py"]),
        ("?.ts", ["src/deep/c.ts"]),
        ("**.ts", ["src/deep/c.ts"]),
        ("src/deep/*", ["src/deep/c.ts"]),
        ("none*", [GLOB_NOTHING]),
    ],
)
async def test_files_are_found_by_name_newest_first(context, pattern, expected):
    result = await call(glob, context, pattern=pattern)

    assert found(result, context) == expected
    assert context.asked("glob") == [pattern]
    assert result.metadata["truncated"] is False


async def test_of_many_files_the_newest_hundred_are_shown(context):
    for number in range(150):
        path = context.directory / f"{number}.x"
        path.touch()
        os.utime(path, (number + 10**6, number + 10**6))

    result = await call(glob, context, pattern="*.x")

    assert found(result, context)[:2] == ["149.x", "148.x"]
    assert result.output.endswith("(50 more files fit: use a narrower pattern or path)")
    assert result.metadata == {"count": 100, "truncated": True}


async def test_a_search_for_very_many_files_is_ended(context, monkeypatch):
    monkeypatch.setattr("pegboard_plugins.glob.MOST_MATCHES", 120)
    for number in range(500):
        (context.directory / f"{number}.x").touch()

    result = await call(glob, context, pattern="*.x")

    assert "\n\n(The newest of 120 that fit; there are more, not looked at: " in result.output
    assert result.metadata == {"count": 100, "truncated": True}


@pytest.mark.parametrize(("tool", "found"), [(glob, "count"), (grep, "matches")])
async def test_who_watches_is_told_of_the_first_results(context, tool, found):
    (context.directory / "many").write_text("e\n" * 1000)

    await call(tool, context, pattern="*" if tool is glob else "e")

    # The walk of glob without ripgrep is one piece of work in a thread.
    heard = tool is grep or shutil.which("rg")
    assert bool(heard) == any(told.get(found) for _, told in context.shown)


async def test_a_folder_that_is_none_is_an_error(context):
    with pytest.raises(ToolError, match="not a directory"):
        await call(glob, context, pattern="*", path="a.py")
    with pytest.raises(ToolError, match="does not exist"):
        await call(grep, context, pattern="x", path="none")


async def test_lines_are_found_in_the_newest_files_first(context):
    result = await call(grep, context, pattern="needle")

    assert result.output == "\n".join(
        [
            "Found 4 matches",
            *("", f"{context.directory}/src/deep/c.ts:", "  Line 1: let needle;"),
            *("", f"{context.directory}/src/.hidden.py:", "  Line 1: secret needle"),
            *("", f"{context.directory}/src/b.py:", "  Line 1: # needle: here"),
            *("", f"{context.directory}/a.py:", "  Line 2: needle = 2"),
        ]
    )
    assert result.metadata == {"matches": 4, "truncated": False}
    assert context.asked("grep") == ["needle"]


@pytest.mark.parametrize(
    ("include", "count"), [("*.ts", 1), ("*.{ts,py}", 4), ("src/*.py", 2), ("*.md", 0)]
)
async def test_the_search_is_limited_to_names(context, include, count):
    result = await call(grep, context, pattern="needle", include=include)

    assert result.metadata["matches"] == count


async def test_lines_around_a_match_are_shown(context):
    text = "".join(f"line {number}\n" for number in range(1, 21))
    (context.directory / "src" / "many").write_text(text)

    result = await call(grep, context, pattern="line (5|8|15)$", context=1, after=2)

    assert result.output.splitlines()[3:] == [
        *("  Line 4- line 4", "  Line 5: line 5", "  Line 6- line 6", "  Line 7- line 7"),
        *("  Line 8: line 8", "  Line 9- line 9", "  Line 10- line 10", "  ..."),
        *("  Line 14- line 14", "  Line 15: line 15", "  Line 16- line 16", "  Line 17- line 17"),
    ]
    assert result.metadata["matches"] == 3


async def test_at_the_ends_of_a_file_there_are_fewer_lines_around(context):
    result = await call(grep, context, pattern="needle", path="src/deep/c.ts", context=9)

    assert result.output.splitlines()[3:] == ["  Line 1: let needle;", "  Line 2- let other;"]


@pytest.mark.parametrize(("kind", "count"), [("ts", 1), ("py", 3), ("go", 0)])
async def test_the_search_is_limited_to_a_language(context, kind, count):
    result = await call(grep, context, pattern="needle", type=kind)

    assert result.metadata["matches"] == count


async def test_language_and_names_have_to_fit_both(context):
    result = await call(grep, context, pattern="needle", type="py", include="src/*")

    assert result.metadata["matches"] == 2


async def test_an_unknown_language_names_the_known_ones(context):
    with pytest.raises(ToolError, match=r"no type 'python'; there are .* py,"):
        await call(grep, context, pattern="needle", type="python")


async def test_only_the_files_with_matches_are_named(context):
    result = await call(grep, context, pattern="needle", output_mode="files_with_matches")

    assert found(result, context) == [
        *("Found 4 files", "src/deep/c.ts", "src/.hidden.py", "src/b.py", "a.py"),
    ]


async def test_only_the_number_of_matches_is_given(context):
    (context.directory / "a.py").write_text("needle\n\nneedle needle\n")

    result = await call(grep, context, pattern="needle", output_mode="count", include="*.py")

    assert found(result, context) == [
        *("Found 4 matches in 3 files", "a.py: 2", "src/.hidden.py: 1", "src/b.py: 1"),
    ]


async def test_lines_of_protected_files_are_left_out(context):
    (context.directory / ".env").write_text("needle=secret\n")
    allow = Rule(permission="read", pattern="*", action="allow")
    ask = Rule(permission="read", pattern="*.env", action="ask")
    context = Context(context.directory, rules=[allow, ask])

    result = await call(grep, context, pattern="needle")

    assert "needle=secret" not in result.output
    assert result.metadata["matches"] == 4
    assert result.output.endswith("need a permission to be read are left out)")


async def test_one_file_is_searched_by_an_expression(context):
    result = await call(grep, context, pattern=r"^n\w+ = \d$", path="a.py")

    assert "Line 2: needle = 2" in result.output


@pytest.mark.parametrize("place", ["long.txt", ""])
async def test_an_answer_of_long_lines_has_an_end(context, place):
    long = "".join(f"{'é' * 3000}\nneedle {'z' * 3000}\n" for _ in range(50))
    (context.directory / "long.txt").write_text(long)

    result = await call(grep, context, pattern="needle", path=place, context=3)

    assert result.output.startswith("Found 5")
    assert 40_000 < len(result.output.encode()) < 52_000
    assert "An answer ends at 51200 bytes" in result.output
    assert result.metadata["truncated"] is True


async def test_what_could_be_searched_for_ever_is_refused(context):
    os.mkfifo(context.directory / "pipe")

    with pytest.raises(ToolError, match="is a device, pipe or socket"):
        await call(grep, context, pattern="x", path="pipe")


async def test_nothing_found_is_said(context):
    assert (await call(grep, context, pattern="absent")).output == GREP_NOTHING


async def test_a_wrong_expression_is_an_error(context):
    with pytest.raises(ToolError, match="search failed"):
        await call(grep, context, pattern="(")


@pytest.mark.parametrize("pattern", ["^let needle;$", r"^let needle.$", r"let.*\W\r$"])
async def test_a_line_ends_before_its_line_end_of_any_kind(context, pattern):
    result = await call(grep, context, pattern=pattern)

    assert result.metadata["matches"] == 1


async def test_what_no_pattern_can_be_is_said(context):
    with pytest.raises(ToolError, match=r"none has a \\n"):
        await call(grep, context, pattern=r"needle\n")
    with pytest.raises(ToolError, match="half a letter"):
        await call(grep, context, pattern="\ud83d")
    with pytest.raises(ToolError, match="say with path where to search"):
        await call(glob, context, pattern="../*.py")


async def test_a_search_that_is_ended_leaves_no_process(context):
    for name in ("b", "c", "d"):
        (context.directory / name).write_bytes((b"ab" * 40 + b"\n") * 200_000)
    word = f"nowhere{os.urandom(6).hex()}"
    pattern = rf"(a*b*)*(\w|c)+(a|b)*\1$|{word}"
    searching = asyncio.create_task(call(grep, context, pattern=pattern))
    async with asyncio.timeout(30):
        while not alive(word):  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(0.01)

    searching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await searching
    assert remaining(word) == []


async def test_names_are_as_in_the_folder_that_is_searched(context):
    include = f"{context.directory}/src/*.py"

    result = await call(grep, context, pattern="needle", include=include)

    assert result.metadata["matches"] == 2


async def test_an_expression_that_looks_like_an_option_is_none(context):
    (context.directory / "new").write_text("--files -e x\n")

    result = await call(grep, context, pattern="--files")

    assert result.metadata["matches"] == 1


async def test_a_search_with_very_many_matches_is_ended(context):
    (context.directory / "many").write_text("needle\n" * 200_000)

    result = await call(grep, context, pattern="needle")

    assert " or more matches" in result.output
    assert result.output.count("Line ") == 100
    assert result.metadata["truncated"] is True


async def test_the_fallback_does_not_block_for_a_hopeless_expression(tmp_path, monkeypatch):
    offer("python", tmp_path / "bin", monkeypatch)
    monkeypatch.setattr("pegboard_plugins.grep.searching.TIME_LIMIT_S", 1.0)
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a" * 60 + "!\n")

    with pytest.raises(ToolError, match="took longer"):
        await call(grep, Context(project), pattern="(a|aa)+$")


def test_python_is_where_the_fallback_needs_it():
    assert Path(sys.executable).is_absolute()


async def test_the_exact_path_of_an_ignored_file_is_found(context):
    found = await call(glob, context, pattern="built/x.py")
    fitting = await call(glob, context, pattern="built/*.py")

    assert found.output == str(context.directory / "built" / "x.py")
    assert fitting.output == GLOB_NOTHING


async def test_glob_counts_the_files_that_it_cannot_name(context):
    for name in (b"src/caf\xe9.py", b"src/\xff.py", b"src/\xff.other"):
        (context.directory / os.fsdecode(name)).write_text("x")
    (context.directory / "src/real\ufffd.py").write_text("x")

    result = await call(glob, context, pattern="src/*.py")

    names, _, note = result.output.partition("\n\n")
    assert len(names.splitlines()) == 3
    assert "real\ufffd.py" in names
    assert note == (
        "(2 that fit are left out, as their names are not UTF-8: only a command can open them)"
    )
