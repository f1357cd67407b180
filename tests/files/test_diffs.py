import subprocess
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard.files.diffs import Diff, diff_texts

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "@@", "+x"]), max_size=30).map("\n".join)


def test_equal_texts_have_no_diff():
    assert diff_texts("a\n", "a\n", name="f") == Diff(text="", additions=0, deletions=0)


def test_a_new_file_is_all_additions():
    diff = diff_texts("", "a\nb\n", name="f")

    assert diff == Diff(text="--- f\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n", additions=2, deletions=0)


def test_a_change_deep_in_a_long_file_is_one_short_hunk():
    lines = [f"{number}\n" for number in range(200_000)]
    changed = [*lines[:150_000], "new\n", *lines[150_001:]]
    started = time.process_time()

    diff = diff_texts("".join(lines), "".join(changed), name="f")

    assert diff.text.splitlines()[2] == "@@ -149998,7 +149998,7 @@"
    assert (diff.additions, diff.deletions) == (1, 1)
    assert time.process_time() - started < 5


def test_a_rewritten_long_file_takes_no_quadratic_time():
    before, after = "a\n" * 30_000 + "b\n", "".join(f"{n}\n" for n in range(30_000))
    started = time.process_time()

    diff = diff_texts(before, after, name="f")

    assert (diff.additions, diff.deletions) == (30_000, 30_001)
    assert time.process_time() - started < 5


@settings(max_examples=25, deadline=None)
@given(TEXTS, TEXTS)
@example("a\na\nb\na\na", "a\nb\na\nb\na\na")  # equal at its end, which no hunk may hide
def test_git_applies_what_we_write(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("apply")
    (folder / "f").write_text(before)
    diff = diff_texts(before, after, name="f")

    if diff.text and before and after:
        subprocess.run(
            ["git", "apply", "-p0", "--whitespace=nowarn", "-"],
            input=diff.text.encode(),
            cwd=folder,
            check=True,
        )
        assert (folder / "f").read_text() == after
