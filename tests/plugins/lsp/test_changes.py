"""What changes on the disk reaches the servers, and what an edit breaks reaches the model."""

import asyncio
import shutil

import pytest

from pegboard_plugins.lsp import HERE, server, sourcetree
from support.tools.lsp_project import asked, edited, said


def events(context):
    """What the server was told of files, since the last call."""
    told = [word for word in said(context) if word.startswith(("created:", "changed:", "deleted:"))]
    (context.directory / "log").write_text("")
    return sorted(told)


async def test_a_file_that_comes_is_known_before_the_next_question(project):
    context = project()
    (context.directory / "a.t").write_text("needs b.t\n")
    assert await asked(context, "diagnostics") == "1:1: error: needs b.t on 0"

    (context.directory / "b.t").write_text("x")

    assert await asked(context, "diagnostics") == "No results for diagnostics"


async def test_files_that_come_change_and_go_are_told_once(project):
    context = project()
    folder = context.directory
    (folder / "pack").mkdir()
    for name in ("changes.t", "goes.t", "pack/moves.t"):
        (folder / name).write_text("x")
    await asked(context)
    events(context)

    (folder / "comes.t").write_text("x")
    (folder / "changes.t").write_text("another")
    (folder / "goes.t").unlink()
    (folder / "pack").rename(folder / "moved")
    await asked(context)
    told = events(context)
    await asked(context)

    assert told == [
        *("changed:changes.t", "created:comes.t", "created:moves.t"),
        *("deleted:goes.t", "deleted:moves.t"),
    ]
    assert events(context) == []


async def test_open_documents_follow_the_disk_until_they_are_gone(project):
    context = project()
    for name in ("b.t", "c.t"):
        (context.directory / name).write_text("x")
        await asked(context, "diagnostics", name)

    (context.directory / "b.t").write_text("y")
    (context.directory / "c.t").unlink()
    await asked(context)

    words = said(context)
    assert words.count("textDocument/didChange") == 1
    assert "closed:c.t" in words
    assert "closed:b.t" not in words


async def test_a_document_that_is_there_again_is_opened_again(project):
    context = project()
    await asked(context)
    (context.directory / "a.t").unlink()
    (context.directory / "b.t").write_text("x")
    await asked(context, name="b.t")

    (context.directory / "a.t").write_text("wrong\n")

    assert await asked(context, "diagnostics") == "1:1: error: wrong on 0"
    assert said(context).count("opened:a.t") == 2


async def test_a_server_that_names_no_patterns_hears_of_its_own_kinds_alone(project):
    context = project()
    await asked(context)
    events(context)

    for name in ("b.t", "c.log"):
        (context.directory / name).write_text("x")
    await asked(context)

    assert events(context) == ["created:b.t"]


@pytest.mark.parametrize(
    "globs", ["**/*.{x,y}", "*.x", "**/sub/* *.x", "{folder}/**/*.x", "}{ *.x"]
)
async def test_a_server_hears_of_what_fits_its_patterns(project, tmp_path, globs):
    context = project(globs=globs.replace("{folder}", str(tmp_path)))
    await asked(context)
    events(context)
    (context.directory / "sub").mkdir()

    (context.directory / "sub/b.x").write_text("x")
    (context.directory / "b.t").write_text("x")
    await asked(context)

    unreadable = "}{" in globs  # then it hears of everything
    assert "created:b.x" in (told := events(context))
    assert ("created:b.t" in told) == unreadable


async def test_installed_and_hidden_files_are_not_looked_at(project):
    context = project()
    await asked(context)
    events(context)
    folders = [context.directory / name for name in (".cache", "node_modules", "env", "out", "src")]
    for folder in folders:
        folder.mkdir()
        (folder / "b.t").write_text("x")

    (context.directory / "env/pyvenv.cfg").touch()
    (context.directory / "out/CACHEDIR.TAG").touch()
    await asked(context)

    assert events(context) == ["created:b.t"]


async def test_after_too_many_changes_a_server_is_started_anew_once(project, monkeypatch):
    monkeypatch.setattr(server, "MOST_CHANGES", 3)
    context = project()
    (context.directory / "a.t").write_text("needs 3.t\n")
    await asked(context, "diagnostics")

    for number in range(4):
        (context.directory / f"{number}.t").write_text("x")
    answers = await asyncio.gather(asked(context, "diagnostics"), asked(context, "diagnostics"))

    assert answers == ["No results for diagnostics"] * 2
    assert said(context).count("initialize") == 2
    assert events(context) == []


async def test_of_a_big_folder_open_and_edited_files_are_watched_all_the_same(project, monkeypatch):
    monkeypatch.setattr(sourcetree, "MOST_FILES", 2)
    context = project()
    deep = context.directory / "deep"
    deep.mkdir()
    for name in ("open.t", "other.t"):
        (deep / name).write_text("x")
    await asked(context, name="deep/open.t")
    await asked(context)
    events(context)

    (deep / "open.t").write_text("y")
    (deep / "other.t").write_text("y")
    await edited(context, "x", name="deep/told.t")

    assert events(context) == ["changed:open.t", "created:told.t"]


async def test_an_edit_is_told_what_it_breaks_elsewhere_and_nothing_older(project):
    context = project()
    await edited(context, "wrong\nneeds c.t\n")
    await edited(context, "x", name="c.t")

    broken = await edited(context, None, name="c.t")
    again = await edited(context, "x", name="d.t")

    assert broken == (
        "\n\nThese other files have errors now that they had not before:\n\n"
        f'<diagnostics file="{context.directory}/a.t">\nERROR [2:1] needs c.t on 1\n</diagnostics>'
    )
    assert again == ""


async def test_a_file_that_was_only_asked_about_counts_as_known(project):
    context = project()
    (context.directory / "a.t").write_text("wrong\nneeds c.t\n")
    (context.directory / "c.t").write_text("x")
    await asked(context)

    broken = await edited(context, None, name="c.t")

    assert broken.count("ERROR") == 1
    assert "ERROR [2:1] needs c.t on 1" in broken


async def test_errors_of_the_file_and_of_others_are_told_apart(project):
    context = project()
    await edited(context, "needs c.t\n")
    await edited(context, "x", name="c.t")
    (context.directory / "c.t").rename(context.directory / "d.t")

    answer = await edited(context, "wrong\n", name="d.t")

    here, elsewhere = answer.split("These other files")
    assert HERE in here
    assert "ERROR [1:1] wrong on 0" in here
    assert "ERROR [1:1] needs c.t on 0" in elsewhere


async def test_five_broken_files_are_told_and_the_others_next_time(project):
    context = project()
    await edited(context, "x", name="base.t")
    for number in range(7):
        await edited(context, "needs base.t\n", name=f"{number}.t")

    first = await edited(context, None, name="base.t")
    second = await edited(context, "x", name="other.t")

    assert (first.count("<diagnostics"), second.count("<diagnostics")) == (5, 2)


async def test_a_folder_that_is_removed_closes_its_documents(project):
    context = project()
    (context.directory / "pack").mkdir()
    (context.directory / "pack/b.t").write_text("x")
    await asked(context, name="pack/b.t")
    events(context)

    shutil.rmtree(context.directory / "pack")
    await asked(context)

    words = said(context)
    assert "closed:b.t" in words
    assert "deleted:b.t" in words
