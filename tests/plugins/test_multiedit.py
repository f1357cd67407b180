import tracemalloc

import pytest

from pegboard.errors import ToolError
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins.edit import multiedit, multiedit_plugin
from support.tools.tool_context import Context, call


def project(folder, content):
    (folder / "a.txt").write_text(content)
    context = Context(folder)
    context.files.note_read(folder / "a.txt")
    return context


async def test_each_edit_sees_what_those_before_have_left(tmp_path):
    context = project(tmp_path, "one\ntwo\n")

    result = await call(
        multiedit,
        context,
        filePath="a.txt",
        edits=[
            {"oldString": "one", "newString": "two"},
            {"oldString": "two", "newString": "three", "replaceAll": True},
        ],
    )

    assert (tmp_path / "a.txt").read_text() == "three\nthree\n"
    assert result.output == "Edited a.txt: 3 places, +2 -2 lines."
    assert result.metadata["diff"].count("\n+") == 3


async def test_one_edit_that_fails_stops_them_all(tmp_path):
    context = project(tmp_path, "one\ntwo\n")

    with pytest.raises(ToolError, match=r"edit 2 of 2: .* No edit was made"):
        await call(
            multiedit,
            context,
            filePath="a.txt",
            edits=[
                {"oldString": "one", "newString": "1"},
                {"oldString": "four", "newString": "4"},
            ],
        )

    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert context.asks == []


async def test_an_edit_that_fits_several_places_stops_them_all_and_shows_them(tmp_path):
    context = project(tmp_path, "one\nred\n\tred\n")
    edits = [{"oldString": "one", "newString": "1"}, {"oldString": "  red", "newString": "  x"}]

    with pytest.raises(ToolError) as refused:
        await call(multiedit, context, filePath="a.txt", edits=edits)

    assert str(refused.value).startswith("edit 2 of 2: oldString fits several places in the file:")
    assert "00002| red\n00003| \tred" in str(refused.value)
    assert (tmp_path / "a.txt").read_text() == "one\nred\n\tred\n"


async def test_the_first_edit_may_make_the_file(tmp_path):
    context = Context(tmp_path)

    await call(
        multiedit,
        context,
        filePath="new.txt",
        edits=[
            {"oldString": "", "newString": "a\n"},
            {"oldString": "a", "newString": "b"},
        ],
    )

    assert (tmp_path / "new.txt").read_text() == "b\n"


async def test_the_tool_is_offered_where_the_configuration_names_it():
    assert await multiedit_plugin.register_tools(Config()) == []
    assert await multiedit_plugin.register_tools(Config(plugins={"multiedit": PluginConfig()})) == [
        multiedit
    ]


async def test_edits_that_would_grow_the_file_without_end_are_refused_before_it_is_made(tmp_path):
    context = project(tmp_path, "oooooooooooooo")
    doubled = {"oldString": "o", "newString": "oo", "replaceAll": True}

    tracemalloc.start()
    with pytest.raises(ToolError, match=r"edit 22 of 26: the file would have 58,720,256 letters"):
        await call(multiedit, context, filePath="a.txt", edits=[doubled] * 26)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (tmp_path / "a.txt").read_text() == "oooooooooooooo"
    assert peak < 200 << 20, "no text between is kept"


async def test_more_edits_than_a_call_may_have_are_refused(tmp_path):
    context = project(tmp_path, "one")
    edits = [{"oldString": "one", "newString": "one "}] * 1001

    with pytest.raises(ToolError, match="edits"):
        await call(multiedit, context, filePath="a.txt", edits=edits)
