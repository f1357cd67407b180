"""What the head of a file of weights says."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pegboard_local.weights import ModelHead, read_head

Written = Callable[..., Path]


def test_name_and_window_are_read_whatever_else_is_there(gguf: Written) -> None:
    path = gguf(
        general__architecture="qwen2",
        general__name="Some Coder",
        general__size="0.5B",
        qwen2__block_count=24,
        qwen2__context_length=32_768,
    )

    assert read_head(path) == ModelHead("Some Coder", 32_768)


def test_a_window_that_is_not_said_is_unknown(gguf: Written) -> None:
    assert read_head(gguf(general__architecture="llama")) == ModelHead(None, None)


@pytest.mark.parametrize("size", [4, 12, 24, 40, 70])
def test_a_file_that_is_cut_off_is_named(gguf: Written, size: int) -> None:
    path = gguf(general__architecture="llama", llama__context_length=2048)
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(ValueError, match=r"model\.gguf"):
        read_head(path)


def test_another_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_text("These are notes.")

    with pytest.raises(ValueError, match=r"notes\.gguf: this is no GGUF file"):
        read_head(tmp_path / "notes.gguf")


def test_a_length_beyond_reason_is_not_read(gguf: Written) -> None:
    path = gguf(general__name="x")
    path.write_bytes(path.read_bytes()[:24] + b"\xff" * 8)

    with pytest.raises(ValueError, match="bytes"):
        read_head(path)
