"""How text reaches the disk is the same for all four tools that write files."""

import codecs

import pytest

from pegboard.errors import PegboardError, ToolError
from pegboard_plugins.apply_patch import apply_patch
from pegboard_plugins.edit import edit, multiedit, write
from pegboard_plugins.grep import grep
from pegboard_plugins.read import read
from support.tools.tool_context import Context, call

TOOLS = ("write", "edit", "multiedit", "apply_patch")
CONFIGURED = """
root = true
[*]
insert_final_newline = true
[*.{bat,cmd}]
end_of_line = crlf
charset = utf-8-bom
[*.u16]
charset = utf-16be
[*.l1]
charset = latin1
[src/**.trim]
trim_trailing_whitespace = true
"""


async def make(tool: str, context: Context, name: str, content: str) -> None:
    """A new file by one of the tools."""
    match tool:
        case "write":
            await call(write, context, filePath=name, content=content)
        case "edit":
            await call(edit, context, filePath=name, oldString="", newString=content)
        case "multiedit":
            edits = [{"oldString": "", "newString": content}]
            await call(multiedit, context, filePath=name, edits=edits)
        case _:
            lines = [f"+{line}" for line in content.removesuffix("\n").split("\n")]
            patch = "\n".join(["*** Begin Patch", f"*** Add File: {name}", *lines, "*** End Patch"])
            await call(apply_patch, context, patchText=patch)


async def change(tool: str, context: Context, old: str, new: str, whole: str) -> None:
    """The line `old` of the file `a` becomes `new`; `whole` is the file's text before."""
    match tool:
        case "write":
            content = whole.replace(old, new)
            await call(write, context, filePath="a", content=content)
        case "edit":
            await call(edit, context, filePath="a", oldString=old, newString=new)
        case "multiedit":
            edits = [{"oldString": old, "newString": new}]
            await call(multiedit, context, filePath="a", edits=edits)
        case _:
            body = ["*** Update File: a", "@@", f"-{old}", f"+{new}"]
            patch = "\n".join(["*** Begin Patch", *body, "*** End Patch"])
            await call(apply_patch, context, patchText=patch)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("name", "content", "written"),
    [
        ("src/a.bat", "one\ntwo\n", b"\xef\xbb\xbfone\r\ntwo\r\n"),
        ("a.txt", "one\n", b"one\n"),
        ("a.u16", "oné\n", codecs.BOM_UTF16_BE + "oné\n".encode("utf-16-be")),
        ("a.l1", "oné\n", b"on\xe9\n"),
        ("src/a.trim", "one  \n\ttwo\t\n", b"one\n\ttwo\n"),
        ("a.trim", "one  \n", b"one  \n"),
    ],
)
async def test_a_new_file_is_laid_down_as_editorconfig_says(tmp_path, tool, name, content, written):
    (tmp_path / ".editorconfig").write_text(CONFIGURED)

    await make(tool, Context(tmp_path), name, content)

    assert (tmp_path / name).read_bytes() == written


@pytest.mark.parametrize("tool", ["write", "edit", "multiedit"])
async def test_a_final_newline_is_added_where_it_is_asked_for(tmp_path, tool):
    (tmp_path / ".editorconfig").write_text(CONFIGURED)

    await make(tool, Context(tmp_path), "a.txt", "one\r\ntwo")

    assert (tmp_path / "a.txt").read_bytes() == b"one\r\ntwo\n"


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_nearer_root_ends_the_search_for_configurations(tmp_path, tool):
    (tmp_path / ".editorconfig").write_text("root = true\n[*]\nend_of_line = crlf\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".editorconfig").write_text("root = true\n")

    await make(tool, Context(tmp_path), "sub/a", "one\n")
    await make(tool, Context(tmp_path), "b", "one\n")

    assert (tmp_path / "sub" / "a").read_bytes() == b"one\n"
    assert (tmp_path / "b").read_bytes() == b"one\r\n"


@pytest.mark.parametrize("tool", TOOLS)
async def test_what_the_charset_of_a_new_file_does_not_have_is_refused(tmp_path, tool):
    (tmp_path / ".editorconfig").write_text(CONFIGURED)

    with pytest.raises(ToolError, match="latin-1, which has no '→'"):
        await make(tool, Context(tmp_path), "a.l1", "→\n")

    assert not (tmp_path / "a.l1").exists()


ENCODINGS = [
    pytest.param(b"", "utf-8", id="utf-8"),
    pytest.param(codecs.BOM_UTF8, "utf-8", id="utf-8-bom"),
    pytest.param(codecs.BOM_UTF16_LE, "utf-16-le", id="utf-16-le"),
    pytest.param(codecs.BOM_UTF16_BE, "utf-16-be", id="utf-16-be"),
    pytest.param(codecs.BOM_UTF32_LE, "utf-32-le", id="utf-32-le"),
    pytest.param(codecs.BOM_UTF32_BE, "utf-32-be", id="utf-32-be"),
    pytest.param(b"", "cp1252", id="latin-1"),
]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("mark", "encoding"), ENCODINGS)
async def test_a_file_keeps_its_encoding(tmp_path, tool, mark, encoding, end):
    text = f"café{end}elm{end}öl{end}"
    path = tmp_path / "a"
    path.write_bytes(mark + text.encode(encoding))
    context = Context(tmp_path)
    shown = (await call(read, context, filePath="a")).output

    await change(tool, context, "café", "thé", "café\nelm\nöl\n")

    assert "00001| café" in shown
    assert path.read_bytes() == mark + text.replace("café", "thé").encode(encoding)


OLDER = {
    "cp932": ("猫が庭で寝ている", "犬は外へ行った", "猫も犬も元気です", "Shift-JIS"),
    "euc_jp": ("猫が庭で寝ている", "犬は外へ行った", "猫も犬も元気です", "EUC-JP"),
    "gb18030": ("我们明天去北京", "他们后天回来", "一共三个人", "GB18030"),
    "cp950": ("我們明天去臺北", "他們後天回來", "一共三個人", "Big5"),
    "cp949": ("우리는 내일 서울에 간다", "그들은 모레 돌아온다", "모두 세 사람이다", "EUC-KR"),
    "cp1251": ("Завтра мы едем в город", "Они вернутся позже", "Идёт дождь", "Windows-1251"),
    "koi8_r": ("Завтра мы едем в город", "Они вернутся позже", "Идёт дождь", "KOI8-R"),
    "cp1253": ("Αύριο πάμε στην πόλη", "Γυρίζουν αργότερα", "Είμαστε τρεις", "Windows-1253"),
    "iso8859_2": ("Jutro jedziemy później", "wracają dziś późną nocą", "są", "ISO 8859-2"),
}
"""Two lines, one that takes the place of the first, and what read calls the encoding."""


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("encoding", OLDER)
async def test_an_older_encoding_is_told_shown_and_kept(tmp_path, tool, encoding):
    one, two, new, name = OLDER[encoding]
    path = tmp_path / "a"
    path.write_bytes(f"x = 1\r\n{one}\r\n{two}\r\n".encode(encoding))
    context = Context(tmp_path)

    shown = (await call(read, context, filePath="a")).output
    found = (await call(grep, context, pattern="x = 1", path=".", context=1)).output
    await change(tool, context, one, new, f"x = 1\n{one}\n{two}\n")

    assert f"00002| {one}\n00003| {two}\n" in shown
    assert f"; the file is in {name})" in shown
    assert one in found
    assert path.read_bytes() == f"x = 1\r\n{new}\r\n{two}\r\n".encode(encoding)


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_letter_that_the_encoding_does_not_have_is_refused(tmp_path, tool):
    path = tmp_path / "a"
    path.write_bytes(before := "café\nelm\n".encode("cp1252"))
    context = Context(tmp_path)
    context.files.note_read(path)

    with pytest.raises(ToolError, match="a is in cp1252, which has no '木'"):
        await change(tool, context, "elm", "木", "café\nelm\n")

    assert path.read_bytes() == before


@pytest.mark.parametrize("tool", ["edit", "multiedit", "apply_patch"])
async def test_bytes_of_no_known_encoding_stay_as_they_are(tmp_path, tool):
    path = tmp_path / "a"
    path.write_bytes(b"\xc3\xa9 \xff\nelm\n\x81\n")
    context = Context(tmp_path)
    context.files.note_read(path)

    await change(tool, context, "elm", "fir", "")
    with pytest.raises(ToolError, match="its encoding is not known: 'ß' cannot be written"):
        await change(tool, context, "fir", "ß", "")

    assert path.read_bytes() == b"\xc3\xa9 \xff\nfir\n\x81\n"


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_file_that_belies_its_mark_is_named_with_it(tmp_path, tool):
    path = tmp_path / "a"
    path.write_bytes(before := codecs.BOM_UTF16_LE + b"a\x00b\x00c")
    context = Context(tmp_path)
    context.files.note_read(path)

    with pytest.raises(PegboardError, match="begins with the mark of utf-16-le, and is not in it"):
        await change(tool, context, "abc", "x", "abc")

    assert path.read_bytes() == before


@pytest.mark.parametrize("tool", ["write", "edit", "multiedit"])
async def test_half_a_letter_is_refused(tmp_path, tool):
    with pytest.raises(ToolError, match="half a letter"):
        await make(tool, Context(tmp_path), "new", "\ud800")

    assert list(tmp_path.iterdir()) == []


async def test_a_file_in_utf_16_is_deleted_with_its_text_in_the_diff(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("\ufeffcafé\n".encode("utf-16-le"))
    context = Context(tmp_path)
    context.files.note_read(path)
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch"

    await call(apply_patch, context, patchText=patch)

    assert "café" in context.asks[-1].metadata["diff"]
