"""Encodings that no mark tells: what is believed, and a guess is never worse than none."""

import sys
from collections import Counter
from io import BufferedReader
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import ToolError
from pegboard.files.charset import SAMPLE_BYTES
from pegboard.files.encodings import file_encoding, marked_encoding
from pegboard.files.textfile import decode_text, line_text
from support.tools.charset_texts import CODE, languages, samples, sentences

ENCODINGS = sorted({sample.encoding for sample in samples()})
LEAST_SHORT = 0.85
"""Of the comments of one line so many are told: with fewer words there is less to tell by."""


def encoding_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with path.open("rb") as file:
        assert isinstance(file, BufferedReader)
        return file_encoding(file)


def test_sentences_are_told_in_each_encoding() -> None:
    long = [sample for sample in samples() if sample.is_long]

    read = [decode_text(sample.content, name="a").text for sample in long]

    assert read == [sample.text for sample in long]


def test_a_comment_of_a_few_words_is_told_or_read_as_before() -> None:
    outcomes: Counter[str] = Counter()
    for sample in samples():
        file = decode_text(sample.content, name="a")
        told = file.text == sample.text
        assert told or file.encoding in {"cp1252", ""}, sample
        outcomes["told" if told else "as before"] += not sample.is_long

    assert outcomes["told"] > LEAST_SHORT * outcomes.total()


@pytest.mark.parametrize("sample", [each for each in samples() if each.encoding == "cp1252"])
def test_western_texts_are_told_as_such(sample) -> None:
    assert decode_text(sample.content, name="a").encoding == "cp1252"


@pytest.mark.parametrize("ruler", ["—" * 12, "·" * 20, "« « «««« »»»»", "Ä" * 30, "±" * 8])
def test_a_ruler_in_a_western_text_is_no_word(ruler) -> None:
    content = f"/* {ruler} */\n// 5 €\n".encode("cp1252")

    assert decode_text(content, name="a").encoding == "cp1252"


def test_without_the_library_all_is_western_and_kept(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "chardetng_py", None)
    content = sentences("koi8_r").encode("koi8_r")
    file = decode_text(content, name="a")

    assert file.encoding in {"cp1252", ""}
    assert file.encode(file.text, name="a") == content


def test_a_file_is_told_as_its_content_is(tmp_path) -> None:
    for sample in samples():
        told = decode_text(sample.content, name="a").encoding

        assert encoding_of(tmp_path / "a", sample.content) == told


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_are_told_alike_in_a_file_and_alone(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    if not marked_encoding(content):
        told = decode_text(content, name="a").encoding

        assert encoding_of(tmp_path_factory.getbasetemp() / "any", content) == told


def test_what_tells_may_stand_deep_in_a_file(tmp_path) -> None:
    content = (CODE * 20_000).encode() + sentences("koi8_r").encode("koi8_r")
    assert len(content) > 50 * SAMPLE_BYTES

    assert encoding_of(tmp_path / "a", content) == "koi8_r"


def test_a_file_in_two_encodings_is_in_none() -> None:
    russian, greek, chinese = map(sentences, ("cp866", "cp1253", "gb18030"))

    for first, second in (
        (russian.encode("cp1251"), chinese.encode()),
        (chinese.encode("gb18030"), greek.encode()),
        (chinese.encode("gb18030") * 30, greek.encode()),
    ):
        file = decode_text(first + second, name="a")

        assert file.encoding == ""
        assert file.encode(file.text, name="a") == first + second


def test_lines_that_look_like_utf_8_by_chance_make_no_file_mixed() -> None:
    # The first line's two letters are also one of UTF-8 each.
    chance = "쨔짜\n".encode("cp949")
    assert chance.decode()
    content = sentences("cp949").encode("cp949").replace(b". ", b".\n") * 10 + chance

    assert decode_text(content, name="a").encoding == "cp949"


def test_a_text_that_would_not_come_back_byte_for_byte_is_in_no_encoding() -> None:
    japanese = sentences("cp932").encode("cp932")
    twice_in_the_table = b"\x87\x90\n"  # 0x81 0xE0 is the same letter
    assert decode_text(japanese, name="a").encoding == "cp932"

    file = decode_text(japanese + twice_in_the_table, name="a")

    assert file.encoding in {"", "cp1252"}
    assert file.encode(file.text, name="a") == japanese + twice_in_the_table


@pytest.mark.parametrize("letter", ["¥", "é", "→¥"])
def test_a_letter_that_would_be_read_as_another_is_refused(letter) -> None:
    file = decode_text(sentences("cp932").encode("cp932"), name="a")

    with pytest.raises(ToolError, match=f"a is in cp932, which has no '{letter[-1]}'"):
        file.encode(file.text + letter, name="a")


def test_the_start_of_a_file_may_end_within_a_letter_of_any_encoding() -> None:
    for language in languages():
        text, encoding = language.sentences.removesuffix("\n"), language.encodings[0]

        file = decode_text(text.encode(encoding)[:-3], name="a", whole=False)

        assert file.encoding == encoding or not text
        assert text.startswith(file.text)


@settings(max_examples=200)
@given(st.sampled_from([each for each in samples() if each.is_long]), st.data())
def test_an_edit_in_any_encoding_changes_its_bytes_only(sample, data) -> None:
    text, encoding = sample.text, sample.encoding
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 20, len(text))))
    own = st.sampled_from(sorted(set(text)))
    new = data.draw(st.text(st.one_of(own, st.characters(max_codepoint=126)), max_size=10))
    file = decode_text(sample.content, name="a")

    written = file.encode(text[:start] + new + text[end:], name="a")

    before, after = (piece.encode(encoding) for piece in (text[:start], text[end:]))
    assert written == before + new.encode(encoding) + after


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_line_is_shown_as_it_is_matched(encoding) -> None:
    for sample in (each for each in samples() if each.encoding == encoding):
        file = decode_text(sample.content, name="a")
        if file.encoding:
            shown = [line_text(each, file.encoding) for each in sample.content.split(b"\n")]
            assert shown == file.text.split("\n")
