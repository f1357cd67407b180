import asyncio
import os
import resource
import time
from pathlib import Path

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.model import Model, ModelApi
from pegboard.unstable import LocalLedger
from pegboard_plugins.apply_patch import apply_patch, chat_params
from pegboard_plugins.apply_patch.parser import PatchError
from support.tools.cases import built, load
from support.tools.tool_context import Context, call

CASES = load("patch_cases.json")


def laid_out(case, folder):
    """The files of a case in `folder/work`, and what the session has read."""
    root = folder / "work"
    root.mkdir()
    (folder / "outside").mkdir()
    made = {name: built(pieces) for name, pieces in case.get("gen", {}).get("files", {}).items()}
    for name in case.get("dirs", ()):
        (root / name).mkdir(parents=True)
    for name, content in {**case["files"], **made}.items():
        path = Path(os.path.normpath(root / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    for name, target in case.get("symlinks", {}).items():
        (root / name).symlink_to(target)
    for name, mode in case.get("modes", {}).items():
        (root / name).chmod(int(mode, 8))
    context = Context(root, denied=["external_directory"])
    for name in (*case["files"], *made):
        context.files.note_read(Path(os.path.normpath(root / name)))
    return context


def tree(folder):
    """Every file and link below a folder, with its content and mode."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_file():
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def kind_of(error):
    return "outside" if isinstance(error, PermissionDeniedError) else getattr(error, "kind", "")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_a_case_of_the_collection_is_applied_or_refused_as_it_says(case, tmp_path):
    context = laid_out(case, tmp_path)
    root, before = tmp_path / "work", tree(tmp_path)
    patch = built(case["gen"]["patch"]) if "gen" in case else case["patch"]
    patch = patch.replace("{ROOT}", str(root)).replace("{OUTSIDE}", str(tmp_path / "outside"))
    started = time.process_time()

    try:
        await call(apply_patch, context, patchText=patch)
        error = None
    except (ToolError, PermissionDeniedError) as failed:
        error = failed

    assert time.process_time() - started < case.get("hang_limit_s", 10)
    if error is not None:
        assert case["expect"] in ("error", "ok_or_error")
        assert kind_of(error) in {case["error_kind"], *case.get("error_kind_also", ())}, error
        assert tree(tmp_path) == before
        return
    assert case["expect"] in ("ok", "ok_or_error")
    generated = {
        name: built(pieces) for name, pieces in case.get("gen", {}).get("after", {}).items()
    }
    accepted = [{**case["after"], **generated}, *case.get("after_also", ())]
    contents = {name: facts[0] for name, facts in tree(tmp_path).items()}
    assert contents in [expected(before, after) for after in accepted]
    for name, mode in case.get("modes_after", {}).items():
        assert (root / name).stat().st_mode & 0o777 == int(mode, 8)
    for name, target in case.get("links_after", {}).items():
        assert str((root / name).readlink()) == target


def expected(before, after):
    """The contents once a patch is applied, by path below the folder of the case."""
    contents = {name: facts[0] for name, facts in before.items()}
    for name, content in after.items():
        place = os.path.normpath(f"work/{name}")
        if content is None:
            contents.pop(place)
        elif contents.get(place) != "link":
            contents[place] = content.encode()
    return contents


def patch_of(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def project(folder, **files):
    context = Context(folder)
    for name, content in files.items():
        (folder / name).write_text(content)
        context.files.note_read(folder / name)
    return context


THREE = patch_of(
    "*** Update File: a",
    "@@",
    "-a",
    "+A",
    "*** Delete File: b",
    "*** Update File: c",
    "*** Move to: new/d",
    "@@",
    "-c",
    "+C",
    "*** Add File: new/e",
    "+e",
)


async def test_the_answer_lists_what_became_of_each_file(tmp_path):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")

    result = await call(apply_patch, context, patchText=THREE)

    assert result.output.splitlines()[1:] == [
        "M a +1 -1",
        "D b +0 -1",
        "R c -> new/d +1 -1",
        "A new/e +1 -0",
    ]
    assert [file["type"] for file in result.metadata["files"]] == [
        "update",
        "delete",
        "move",
        "add",
    ]
    assert result.metadata["files"][2]["movePath"] == str(tmp_path / "new" / "d")
    assert "-a\n+A\n" in result.metadata["diff"]
    assert sorted(path.name for path in context.changed) == ["a", "b", "c", "d", "e"]
    context.files.check_fresh(tmp_path / "new" / "d")


DOCK = (
    "def moor():\n    tie()\n    return True\n\n\ndef cast_off():\n    untie()\n    return True\n"
)


async def test_a_chunk_that_fits_in_several_places_is_told_with_the_others(tmp_path):
    context = project(tmp_path, a="a\n", dock=DOCK)
    patch = patch_of(
        *("*** Update File: dock", "@@", "-    tie()", "+    knot()"),
        *("@@", "-    return True", "+    return False"),
    )

    result = await call(apply_patch, context, patchText=patch)

    assert (tmp_path / "dock").read_text() == DOCK.replace("tie()", "knot()", 1).replace(
        "True", "False", 1
    )
    assert result.output.splitlines()[2:] == [
        "chunk 2 of dock: line 3 was taken; the same lines stand at 8, counted before the patch"
    ]
    (listed,) = result.metadata["files"]
    assert listed["choices"] == [{"chunk": 2, "line": 3, "others": (8,), "more": False}]
    assert context.asks[-1].metadata["files"] == [listed]


async def test_of_many_places_five_are_named(tmp_path):
    context = project(tmp_path, a="b\n" + "a\n" * 9)

    one = await call(
        apply_patch, context, patchText=patch_of("*** Update File: a", "@@", "-a", "+c")
    )
    inserted = await call(
        apply_patch, context, patchText=patch_of("*** Update File: a", "@@ a", "+d", "@@ a", "+e")
    )

    assert "chunk 1 of a: line 2 was taken; the same lines stand at 3, 4, 5, 6, 7, ..., " in (
        one.output
    )
    assert "chunk 2 of a: line 4 was taken; the same lines stand at 5, 6, 7, 8, 9, ..., " in (
        inserted.output
    )


async def test_lines_that_are_nowhere_exactly_and_in_several_places_are_refused(tmp_path):
    context = project(tmp_path, a="a\n", dock=DOCK)
    before = tree(tmp_path)
    patch = patch_of(
        *("*** Update File: a", "@@", "-a", "+A", "*** Update File: dock", "@@"),
        *("-return True", "+return False"),
    )

    with pytest.raises(PatchError) as refused:
        await call(apply_patch, context, patchText=patch)

    assert refused.value.kind == "context"
    assert "00003|     return True\n00008|     return True\n" in str(refused.value)
    assert tree(tmp_path) == before


async def test_sources_and_targets_are_asked_for_together(tmp_path):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")

    await call(apply_patch, context, patchText=THREE)

    (ask,) = context.asks
    assert (ask.permission, ask.patterns) == ("edit", ("a", "b", "c", "new/d", "new/e"))
    assert "-a\n+A\n" in ask.metadata["diff"]


async def test_a_denied_patch_changes_nothing(tmp_path):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")
    context.denied = {"edit"}
    before = tree(tmp_path)

    with pytest.raises(PermissionDeniedError):
        await call(apply_patch, context, patchText=THREE)

    assert tree(tmp_path) == before


async def test_a_file_that_was_not_read_is_not_patched(tmp_path):
    context = project(tmp_path, a="a\n")
    (tmp_path / "b").write_text("b\n")

    with pytest.raises(ToolError, match="read it first"):
        await call(apply_patch, context, patchText=patch_of("*** Delete File: b"))

    assert (tmp_path / "b").exists()


async def test_a_file_that_changes_while_the_user_decides_stops_the_patch(tmp_path):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")

    context.while_asked = lambda: (tmp_path / "c").write_text("somebody else's\n")

    with pytest.raises(ToolError, match="read it again"):
        await call(apply_patch, context, patchText=THREE)

    assert tree(tmp_path).keys() == {"a", "b", "c"}
    assert (tmp_path / "a").read_text() == "a\n"


@pytest.fixture
def small_disk():
    """No file of this process can grow beyond a megabyte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("failing", ["A", "C", "e"])
async def test_when_one_file_cannot_be_written_all_are_as_before(tmp_path, small_disk, failing):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")
    (tmp_path / "a").chmod(0o750)
    context.files.note_read(tmp_path / "a")
    before = tree(tmp_path)
    patch = THREE.replace(f"+{failing}", "+" + "x" * (2 << 20))

    with pytest.raises(PatchError, match=r"File too large.*Nothing was changed"):
        await call(apply_patch, context, patchText=patch)

    assert tree(tmp_path) == before
    assert not (tmp_path / "new").exists()
    for name in "abc":
        context.files.check_fresh(tmp_path / name)


async def test_a_cancelled_patch_is_applied_whole(tmp_path):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")
    writing = asyncio.Event()
    files = context.files

    class Slow:
        def __getattr__(self, attribute):
            return getattr(files, attribute)

        async def replace(self, path, content):
            writing.set()
            await asyncio.sleep(0.01)
            return await files.replace(path, content)

    context.files = Slow()
    patching = asyncio.create_task(call(apply_patch, context, patchText=THREE))
    await writing.wait()
    patching.cancel()

    with pytest.raises(asyncio.CancelledError, match="applied whole"):
        await patching

    contents = {name: facts[0] for name, facts in tree(tmp_path).items()}
    assert contents == {"a": b"A\n", "new/d": b"C\n", "new/e": b"e\n"}


async def test_patches_of_the_same_files_in_another_order_do_not_block_each_other(tmp_path):
    ledger = LocalLedger()
    first = Context(tmp_path, ledger=ledger, session_id="a")
    second = Context(tmp_path, ledger=ledger, session_id="b")
    for name in "ab":
        (tmp_path / name).write_text("x\n")
        first.files.note_read(tmp_path / name)
        second.files.note_read(tmp_path / name)
    a, b = (["*** Update File: " + name, "@@", "-x", "+y"] for name in "ab")

    async with asyncio.timeout(30):
        results = await asyncio.gather(
            call(apply_patch, first, patchText=patch_of(*a, *b)),
            call(apply_patch, second, patchText=patch_of(*b, *a)),
            return_exceptions=True,
        )

    assert sorted(isinstance(result, ToolError) for result in results) == [False, True]
    assert "read it again" in str(next(r for r in results if isinstance(r, ToolError)))
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "y\n"


async def test_a_moved_file_keeps_its_mode(tmp_path):
    context = project(tmp_path, a="a\n")
    (tmp_path / "a").chmod(0o755)
    context.files.note_read(tmp_path / "a")

    await call(
        apply_patch,
        context,
        patchText=patch_of("*** Update File: a", "*** Move to: b", "@@", "-a", "+A"),
    )

    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("start", ["<<EOF", "cat <<'EOF'", "apply_patch <<'EOF'"])
async def test_a_patch_may_stand_in_a_here_document(tmp_path, start):
    patch = f"{start}\n*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\nEOF\n"

    await call(apply_patch, Context(tmp_path), patchText=patch)

    assert (tmp_path / "f").read_text() == "x\n"


async def test_a_line_that_is_not_understood_is_named_by_its_number(tmp_path):
    with pytest.raises(PatchError, match="line 3 of the patch: 'two' begins with none"):
        await call(
            apply_patch,
            Context(tmp_path),
            patchText=patch_of("*** Update File: a", "two", "-b"),
        )


def offered(model_id, *names):
    definitions = [
        ToolDefinition(name=name, description="", parameters={}, permission="edit")
        for name in names
    ]
    model = Model(id=model_id, provider_id="p", name="M", api=ModelApi(id=model_id))
    return ModelRequest(model=model, system=(), messages=(), tools=tuple(definitions))


@pytest.mark.parametrize(
    ("model", "names", "left"),
    [
        ("gpt-5.2", ("apply_patch", "edit", "read", "write"), ["apply_patch", "read"]),
        ("gpt-4.1", ("apply_patch", "edit", "write"), ["edit", "write"]),
        ("gpt-oss-120b", ("apply_patch", "edit", "write"), ["edit", "write"]),
        ("claude", ("apply_patch", "edit", "multiedit"), ["edit", "multiedit"]),
        ("claude", ("apply_patch", "read"), ["apply_patch", "read"]),
        ("gpt-5.2", ("edit", "read"), ["edit", "read"]),
    ],
)
async def test_a_model_gets_patches_or_edits_and_never_both(model, names, left):
    request = offered(model, *names)

    changed = await chat_params(request) or request

    assert [tool.name for tool in changed.tools] == left
