import asyncio
import gc

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.unstable import LocalLedger
from pegboard_plugins.edit import write
from support.tools.tool_context import Context, call


async def test_a_new_file_is_written_with_its_folders(tmp_path):
    context = Context(tmp_path)

    result = await call(write, context, filePath="a/b.txt", content="one\ntwo\n")

    path = tmp_path / "a" / "b.txt"
    assert path.read_text() == "one\ntwo\n"
    assert result.output == "Wrote a/b.txt: +2 -0 lines."
    assert result.title == "a/b.txt"
    assert result.metadata["filepath"] == str(path)
    assert result.metadata["exists"] is False
    assert result.metadata["diagnostics"] == {}
    assert result.metadata["filediff"] == {
        "file": str(path),
        "patch": result.metadata["diff"],
        "additions": 2,
        "deletions": 0,
    }
    assert context.changed == (path,)
    context.files.check_fresh(path)


async def test_the_change_is_asked_for_with_its_diff(tmp_path):
    context = Context(tmp_path)

    await call(write, context, filePath="b.txt", content="x\n")

    (ask,) = context.asks
    assert (ask.permission, ask.patterns, ask.always) == ("edit", ("b.txt",), ("*",))
    assert ask.metadata["diff"].endswith("+x\n")


async def test_a_file_that_was_not_read_is_not_overwritten(tmp_path):
    (tmp_path / "b.txt").write_text("old")

    with pytest.raises(ToolError, match="read it first"):
        await call(write, Context(tmp_path), filePath="b.txt", content="new")

    assert (tmp_path / "b.txt").read_text() == "old"


async def test_a_file_that_was_read_is_overwritten(tmp_path):
    (tmp_path / "b.txt").write_text("old\n")
    context = Context(tmp_path)
    context.files.note_read(tmp_path / "b.txt")

    result = await call(write, context, filePath="b.txt", content="new\n")

    assert result.output == "Overwrote b.txt: +1 -1 lines."
    assert result.metadata["exists"] is True


async def test_a_denied_write_writes_nothing(tmp_path):
    with pytest.raises(PermissionDeniedError):
        await call(write, Context(tmp_path, denied=["edit"]), filePath="a/b", content="x")

    assert list(tmp_path.iterdir()) == []


async def test_of_two_sessions_that_make_one_file_the_second_is_told(tmp_path):
    ledger = LocalLedger()
    first = Context(tmp_path, ledger=ledger, session_id="a")
    second = Context(tmp_path, ledger=ledger, session_id="b")

    results = await asyncio.gather(
        call(write, first, filePath="x", content="1"),
        call(write, second, filePath="x", content="2"),
        return_exceptions=True,
    )

    assert [isinstance(result, ToolError) for result in results] == [False, True]
    assert (tmp_path / "x").read_text() == "1"


@pytest.mark.parametrize(("path", "content"), [(".", "x"), ("a", "\ud800")])
async def test_what_cannot_be_written_is_an_error(tmp_path, path, content):
    with pytest.raises(ToolError):
        await call(write, Context(tmp_path), filePath=path, content=content)


CONFIGURED = """
root = true
[*]
insert_final_newline = true
[*.{bat,cmd}]
end_of_line = crlf
charset = utf-8-bom
"""


# The library leaves a file that it cannot parse to the garbage collection.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "config", ["[*a*a*a*a*b]\nend_of_line = crlf", "nonsense", "[*\n=", "x" * 70_000]
)
async def test_an_editorconfig_that_cannot_be_used_is_as_none(tmp_path, config):
    (tmp_path / ".editorconfig").write_text(f"root = true\n{config}\n")

    await call(write, Context(tmp_path), filePath="aaaa.b", content="one\n")

    assert (tmp_path / "aaaa.b").read_bytes() == b"one\n"
    gc.collect()  # here, where the warning is expected


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"\xef\xbb\xbfold\r\n", "one\ntwo\n", b"\xef\xbb\xbfone\r\ntwo\r\n"),
        (b"old\r\nmixed\n", "one\n", b"one\n"),
        (b"old\n", "one\r\n", b"one\r\n"),
    ],
)
async def test_an_overwritten_file_keeps_its_mark_and_line_ends(tmp_path, before, content, after):
    (tmp_path / ".editorconfig").write_text(CONFIGURED)
    (tmp_path / "a.bat").write_bytes(before)
    context = Context(tmp_path)
    context.files.note_read(tmp_path / "a.bat")

    await call(write, context, filePath="a.bat", content=content)

    assert (tmp_path / "a.bat").read_bytes() == after


@pytest.mark.parametrize(
    ("mebibytes", "encoding", "copied"),
    [(6, "utf-8", True), (6, "utf-16", True), (51, "utf-8", False)],
)
async def test_a_long_file_is_counted_whole_and_the_request_names_what_the_diff_leaves_out(
    tmp_path, mebibytes, encoding, copied
):
    file = tmp_path / "b.txt"
    width = len("x\n".encode(encoding)) - len("".encode(encoding))
    lines = (mebibytes << 20) // width
    file.write_bytes(("x\n" * lines).encode(encoding))
    context = Context(tmp_path)
    context.files.note_read(file)
    size = file.stat().st_size

    result = await call(write, context, filePath="b.txt", content="new\n")

    (ask,) = context.asks
    note = ask.metadata["text"]
    assert f"{lines:,} lines in {size:,} bytes" in note
    assert ("no copy" in note) is not copied
    assert ask.metadata["diff"].startswith("--- b.txt\n+++ b.txt\n@@ -0,0 +1 @@\n+")
    assert result.output == f"Overwrote b.txt: +1 -{lines} lines.\n{note}"
    assert result.metadata["filediff"] == {
        "file": str(file),
        "patch": result.metadata["diff"],
        "additions": 1,
        "deletions": lines,
    }


async def test_a_diff_too_long_to_be_stored_twice_leaves_the_counts_of_the_change(tmp_path):
    context = Context(tmp_path)

    result = await call(write, context, filePath="b.txt", content="x" * (1 << 20))

    assert result.metadata["filediff"] == {
        "file": str(tmp_path / "b.txt"),
        "patch": "",
        "additions": 1,
        "deletions": 0,
    }
