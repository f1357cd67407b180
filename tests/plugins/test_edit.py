import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard_plugins.edit import edit
from support.tools.tool_context import Context, call


@pytest.fixture
def context(tmp_path):
    (tmp_path / "a.txt").write_text("oak\nelm\n")
    context = Context(tmp_path)
    context.files.note_read(tmp_path / "a.txt")
    return context


def change(context, old, new, **more):
    return call(edit, context, filePath="a.txt", oldString=old, newString=new, **more)


async def test_text_is_replaced_and_the_change_is_told(context, tmp_path):
    result = await change(context, "elm", "fir")

    assert (tmp_path / "a.txt").read_text() == "oak\nfir\n"
    assert result.output == "Edited a.txt: one place, +1 -1 lines."
    assert result.metadata["diff"] == "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n oak\n-elm\n+fir\n"
    assert result.metadata["filediff"]["additions"] == 1
    assert context.asks[-1].patterns == ("a.txt",)
    assert context.asks[-1].metadata["diff"] == result.metadata["diff"]
    assert context.changed == (tmp_path / "a.txt",)


async def test_a_loose_match_is_reported_with_the_change(context):
    result = await change(context, "elm  \n", "fir\n")

    assert "matched loosely (line_trimmed)" in result.output
    assert "+fir" in result.output


async def test_several_edits_follow_each_other_without_reading_again(context, tmp_path):
    await change(context, "oak", "ash")
    await change(context, "elm", "fir")

    assert (tmp_path / "a.txt").read_text() == "ash\nfir\n"


async def test_edits_at_once_are_all_applied(context, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {n}.\n" for n in range(10)))
    context.files.note_read(tmp_path / "a.txt")

    await asyncio.gather(*(change(context, f"line {n}.", f"row {n}!") for n in range(10)))

    assert (tmp_path / "a.txt").read_text() == "".join(f"row {n}!\n" for n in range(10))


async def test_an_edit_goes_to_few_threads(context):
    class Counting(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(args)
            return super().submit(*args, **kwargs)

    submitted: list[object] = []
    asyncio.get_running_loop().set_default_executor(Counting())

    await change(context, "elm", "fir")

    # To plan the change, to see that it still can be made, and to make it.
    assert len(submitted) == 3


async def test_a_file_has_to_be_read_first(tmp_path):
    (tmp_path / "a.txt").write_text("oak\n")

    with pytest.raises(ToolError, match="read it first"):
        await change(Context(tmp_path), "oak", "elm")


async def test_a_change_while_the_user_decides_is_not_overwritten(context, tmp_path):
    context.while_asked = lambda: (tmp_path / "a.txt").write_text("oak\nelm\nmine\n")

    with pytest.raises(ToolError, match="read it again"):
        await change(context, "elm", "fir")

    assert (tmp_path / "a.txt").read_text() == "oak\nelm\nmine\n"


async def test_an_empty_old_text_makes_a_file_and_never_overwrites_one(context, tmp_path):
    await call(edit, context, filePath="new/b", oldString="", newString="x\n")
    with pytest.raises(ToolError, match="has content"):
        await change(context, "", "y")

    assert (tmp_path / "new" / "b").read_text() == "x\n"
    assert (tmp_path / "a.txt").read_text() == "oak\nelm\n"


@pytest.mark.parametrize(("path", "match"), [("none", "does not exist"), (".", "is a directory")])
async def test_what_is_no_file_is_not_edited(context, path, match):
    with pytest.raises(ToolError, match=match):
        await call(edit, context, filePath=path, oldString="a", newString="b")


async def test_half_a_letter_is_refused(context):
    with pytest.raises(ToolError, match="half a letter"):
        await change(context, "oak", "\ud800")


async def test_a_denied_edit_changes_nothing(context, tmp_path):
    context.denied.add("edit")

    with pytest.raises(PermissionDeniedError):
        await change(context, "oak", "x")

    assert (tmp_path / "a.txt").read_text() == "oak\nelm\n"


async def test_every_place_is_changed_on_demand(context, tmp_path):
    (tmp_path / "a.txt").write_text("x x x\n")
    context.files.note_read(tmp_path / "a.txt")

    result = await change(context, "x", "y", replaceAll=True)

    assert (tmp_path / "a.txt").read_text() == "y y y\n"
    assert "3 places" in result.output


async def test_a_file_keeps_its_typography_where_an_edit_repeats_it(context, tmp_path):
    (tmp_path / "a.txt").write_text("He said “yes” — twice.\nelm\n")
    context.files.note_read(tmp_path / "a.txt")

    await change(context, 'He said "yes" - twice.', 'He said "yes" - once.')

    assert (tmp_path / "a.txt").read_text() == "He said “yes” — once.\nelm\n"


async def test_an_edit_that_changes_nothing_is_refused(context, tmp_path):
    (tmp_path / "a.txt").write_text("say “yes”\n")
    context.files.note_read(tmp_path / "a.txt")

    with pytest.raises(ToolError, match="was not changed: it has the new text already"):
        await change(context, 'say "yes"', "say “yes”")

    assert context.asks == []
