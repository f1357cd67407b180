import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ToolError
from pegboard.files.textfile import FileText, decode_text, new_text


@given(st.binary(max_size=60))
def test_what_is_not_changed_is_the_same_bytes(content: bytes) -> None:
    try:
        file = decode_text(content, name="a")
    except ToolError:
        assert content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[2:4] == b"\xfe\xff"
        return

    assert file.encode(file.text, name="a") == content


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be"])
def test_the_start_of_a_file_may_end_within_a_letter(encoding: str) -> None:
    content = "\ufeffaé".encode(encoding)[:-1]

    assert decode_text(content, name="a", whole=False) == FileText(
        text="\ufeffa", encoding=encoding
    )


def test_a_text_keeps_the_mark_that_it_brings_itself(tmp_path) -> None:
    assert new_text(tmp_path / "a", "\ufeffa") == FileText(text="\ufeffa", encoding="utf-8")


def test_trailing_blanks_are_taken_in_time_that_grows_with_the_text(tmp_path) -> None:
    (tmp_path / ".editorconfig").write_text(
        "root = true\n[*]\ntrim_trailing_whitespace = true\nend_of_line = lf\n"
    )
    text = (" " * 500_000 + "x \r\n") * 4

    assert new_text(tmp_path / "a", text).text == (" " * 500_000 + "x\n") * 4
