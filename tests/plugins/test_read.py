import base64
import codecs
import json
import os
import socket
import tracemalloc

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard_plugins.read import read
from support.tools.tool_context import Context, call


@pytest.fixture
def context(tmp_path):
    return Context(tmp_path)


async def test_lines_come_with_their_numbers(context, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    result = await call(read, context, filePath="a.txt")

    assert result.output == "<file>\n00001| one\n00002| two\n\n(End of file: 2 lines)\n</file>"
    assert result.title == "a.txt"
    assert result.metadata == {
        "preview": "one\ntwo",
        "truncated": False,
        "loaded": [],
        "display": {
            "type": "file",
            "path": str(tmp_path / "a.txt"),
            "text": "one\ntwo",
            "lineStart": 1,
            "lineEnd": 2,
            "totalLines": 2,
            "truncated": False,
        },
    }
    context.files.check_fresh(tmp_path / "a.txt")


async def test_a_part_is_read_by_offset_and_limit(context, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(10)))

    result = await call(read, context, filePath="a.txt", offset=4, limit=2)

    assert (
        "00004| line 3\n00005| line 4\n\n(More lines follow: read on with offset=6)"
        in result.output
    )
    assert result.metadata["truncated"] is True
    assert result.metadata["display"] == {
        "type": "file",
        "path": str(tmp_path / "a.txt"),
        "text": "line 3\nline 4",
        "lineStart": 4,
        "lineEnd": 5,
        "truncated": True,
    }


async def test_the_metadata_of_a_folder_have_its_entries(context, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "sub").mkdir()

    result = await call(read, context, filePath=str(tmp_path))

    assert result.metadata["display"] == {
        "type": "directory",
        "path": str(tmp_path),
        "entries": ["a.txt", "sub/"],
        "offset": 1,
        "totalEntries": 2,
        "truncated": False,
    }


@pytest.mark.parametrize("offset", [0, 1])
async def test_lines_are_counted_from_one(context, tmp_path, offset):
    (tmp_path / "a.txt").write_text("first\nsecond\n")

    result = await call(read, context, filePath="a.txt", offset=offset)
    second = await call(read, context, filePath="a.txt", offset=2)

    assert "00001| first\n00002| second" in result.output
    assert "first" not in second.output
    assert "00002| second" in second.output


async def test_an_offset_behind_the_end_says_how_many_lines_there_are(context, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")

    with pytest.raises(ToolError, match="has only 1 lines"):
        await call(read, context, filePath="a.txt", offset=5)


async def test_an_answer_has_an_end(context, tmp_path):
    (tmp_path / "a.txt").write_text(("x" * 99 + "\n") * 1000)

    result = await call(read, context, filePath="a.txt")

    assert "(An answer ends at 51200 bytes: read on with offset=513)" in result.output
    assert len(result.output) < 60_000


async def measured(context, path):
    """The answer, and how many bytes of memory it needed at most."""
    await call(read, context, filePath=path.name, limit=1)  # what is loaded once does not count
    tracemalloc.start()
    try:
        result = await call(read, context, filePath=path.name)
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_the_first_page_of_two_gigabytes_takes_no_more_than_that_of_a_small_file(
    context, tmp_path
):
    path = tmp_path / "big"
    path.write_text("".join(f"line {number}\n" for number in range(10_000)))
    small, small_peak = await measured(context, path)
    os.truncate(path, 2 << 30)

    result, peak = await measured(context, path)

    assert result.output == small.output
    assert "02000| line 1999\n\n(More lines follow: read on with offset=2001)" in result.output
    assert peak < 2 * small_peak + (1 << 20)


async def test_of_a_line_of_two_gigabytes_the_start_is_shown(context, tmp_path, monkeypatch):
    monkeypatch.setattr("pegboard_plugins.read.SCAN_BYTES", 64 << 20)
    path = tmp_path / "big"
    path.write_bytes(b"start\n" + b"y" * 5000)
    os.truncate(path, 2 << 30)

    result, peak = await measured(context, path)

    assert f"00002| {'y' * 2000}...\n\n(Line 2 has no end within 64 MiB" in result.output
    assert peak < 4 << 20
    with pytest.raises(ToolError, match="too long to be read up to there"):
        await call(read, context, filePath="big", offset=3)


async def test_after_a_long_line_the_next_is_shown(context, tmp_path):
    (tmp_path / "a").write_bytes(b"first\n" + b"y" * 3_000_000 + b"\nend\n")

    whole = await call(read, context, filePath="a")
    rest = await call(read, context, filePath="a", offset=3)

    assert f"00002| {'y' * 2000}...\n00003| end\n" in whole.output
    assert rest.output.startswith("<file>\n00003| end\n")


async def test_an_empty_file_is_read(context, tmp_path):
    (tmp_path / "a").touch()

    assert "(End of file: 0 lines)" in (await call(read, context, filePath="a")).output


async def test_other_encodings_are_said(context, tmp_path):
    (tmp_path / "a").write_bytes(b"caf\xe9\r\n")

    result = await call(read, context, filePath="a")

    assert "00001| café\n" in result.output
    assert "(End of file: 1 lines; the file is in Windows-1252)" in result.output


@pytest.mark.parametrize("name", ["UTF-16LE", "UTF-16BE"])
async def test_utf_16_needs_a_mark_and_the_way_out_is_told(context, tmp_path, name):
    (tmp_path / "a").write_bytes("Größe = 1\r\n".encode(name))

    with pytest.raises(ToolError, match=f"binary file: if it is text, `iconv -f {name} -t UTF-8`"):
        await call(read, context, filePath="a")


async def test_bytes_of_no_encoding_are_said(context, tmp_path):
    (tmp_path / "a").write_bytes("né né".encode() + b"\xff\n")

    result = await call(read, context, filePath="a")

    assert "00001| né né\ufffd\n" in result.output
    assert "several encodings or an unknown one: lines that are not UTF-8" in result.output


@pytest.mark.parametrize(
    ("encoding", "mark", "note"),
    [
        ("utf-8", codecs.BOM_UTF8, "UTF-8 with a byte order mark"),
        ("utf-16-le", codecs.BOM_UTF16_LE, "UTF-16-LE"),
        ("utf-16-be", codecs.BOM_UTF16_BE, "UTF-16-BE"),
        ("utf-32-le", codecs.BOM_UTF32_LE, "UTF-32-LE"),
        ("utf-32-be", codecs.BOM_UTF32_BE, "UTF-32-BE"),
    ],
)
async def test_a_byte_order_mark_tells_the_encoding(context, tmp_path, encoding, mark, note):
    (tmp_path / "a").write_bytes(mark + "öne\r\ntwo\n".encode(encoding))

    result = await call(read, context, filePath="a")

    assert result.output == (
        f"<file>\n00001| öne\n00002| two\n\n(End of file: 2 lines; {note})\n</file>"
    )


async def test_a_notebook_is_shown_as_cells(context, tmp_path):
    code = {
        "cell_type": "code",
        "source": ["x = 1\n", "x"],
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["hi\n"]},
            {"output_type": "display_data", "data": {"image/png": "aaaa", "text/plain": ["1"]}},
            {"output_type": "error", "ename": "KeyError", "evalue": "'a'", "traceback": []},
        ],
    }
    notebook = {"cells": [{"cell_type": "markdown", "source": "# Title"}, code], "nbformat": 4}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))

    result = await call(read, context, filePath="a.ipynb", offset=3, limit=5)

    assert "00004| [cell 2: code]\n00005| x = 1\n00006| x\n00007| [output of cell 2]" in (
        result.output
    )
    whole = await call(read, context, filePath="a.ipynb")
    assert "| # Title\n" in whole.output
    assert "| 1\n00011| (image/png)\n" in whole.output
    assert "| KeyError: 'a'\n" in whole.output
    assert "the cells of a notebook" in whole.output


async def test_what_is_no_notebook_is_shown_as_text(context, tmp_path):
    (tmp_path / "a.ipynb").write_text('{"cells": 1}')

    assert '00001| {"cells": 1}' in (await call(read, context, filePath="a.ipynb")).output


@pytest.mark.parametrize("content", [b"a\0b", b"\x01\x02\x03abc"])
async def test_binary_files_are_refused(context, tmp_path, content):
    (tmp_path / "a").write_bytes(content)

    with pytest.raises(ToolError, match="binary"):
        await call(read, context, filePath="a")


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (PICTURE, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
        (b"GIF89a" + bytes(20), "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20), "image/webp"),
        (b"%PDF-1.7\n" + bytes(20), "application/pdf"),
    ],
)
async def test_pictures_and_documents_are_attached(context, tmp_path, content, mime):
    (tmp_path / "a.dat").write_bytes(content)

    (attachment,) = (await call(read, context, filePath="a.dat")).attachments

    assert attachment.mime == mime
    assert attachment.filename == "a.dat"
    assert base64.b64decode(attachment.url.partition("base64,")[2]) == content
    context.files.check_fresh(tmp_path / "a.dat")


async def test_a_picture_that_is_too_large_is_refused(context, tmp_path):
    (tmp_path / "a.png").write_bytes(PICTURE + bytes(21 << 20))

    with pytest.raises(ToolError, match="larger than 20 MiB"):
        await call(read, context, filePath="a.png")


async def test_a_missing_file_names_its_like(context, tmp_path):
    (tmp_path / "readme.md").touch()

    with pytest.raises(ToolError, match=r"does not exist\. Did you mean .*/readme.md\?"):
        await call(read, context, filePath="README")
    with pytest.raises(ToolError, match=r"does not exist$"):
        await call(read, context, filePath="nowhere/x")


async def test_a_blank_that_looks_like_another_is_named_by_its_number(context, tmp_path):
    (tmp_path / "at 9\u202fPM.txt").touch()

    with pytest.raises(ToolError, match=r"Did you mean .*/at 9\\u202fPM\.txt\?"):
        await call(read, context, filePath="at 9 PM.txt")


async def test_a_directory_is_listed(context, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "new\nline").touch()
    (tmp_path / os.fsdecode(b"caf\xe9")).touch()

    result = await call(read, context, filePath=".")

    assert result.output == f"{tmp_path}/\n  caf\\xe9\n  new\\nline\n  sub/"


async def test_a_circle_of_links_hides_no_other_names(context, tmp_path):
    (tmp_path / "a.py").touch()
    (tmp_path / "circle").symlink_to("circle")

    result = await call(read, context, filePath=".")

    assert result.output == f"{tmp_path}/\n  a.py\n  circle"


async def test_a_large_directory_is_listed_in_part(context, tmp_path):
    for number in range(1005):
        (tmp_path / f"{number:04}").touch()

    result = await call(read, context, filePath=".")

    assert result.output.endswith("  0999\n\n(5 further entries)")
    assert result.metadata["truncated"] is True


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(path.parent)
        listener.bind(path.name)


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, make_socket, lambda path: path.symlink_to("/dev/zero")],
    ids=["pipe", "socket", "device"],
)
async def test_what_could_block_for_ever_is_refused(context, tmp_path, make, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "it")

    with pytest.raises(ToolError, match=r"not a regular file|cannot be read"):
        await call(read, context, filePath="it")


async def test_a_link_is_judged_by_both_its_names(context, tmp_path):
    (tmp_path / ".env").write_text("x")
    (tmp_path / "notes").symlink_to(".env")

    await call(read, context, filePath="notes")

    assert context.asked("read") == [str(tmp_path / "notes"), str(tmp_path / ".env")]
    assert context.asks[-1].always == ("*",)


async def test_a_path_outside_is_asked_for_first(tmp_path):
    context = Context(tmp_path, denied=["external_directory"])

    with pytest.raises(PermissionDeniedError):
        await call(read, context, filePath="/etc/passwd")

    assert context.asked("read") == []
