"""The record of documents that agents wrote and the user has not accepted."""

from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend import UnseenDocuments


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "project" / "AGENTS.md"


@pytest.fixture
def unseen(tmp_path: Path, file: Path) -> UnseenDocuments:
    file.parent.mkdir()
    return UnseenDocuments(tmp_path / "data" / "unseen.json")


def wrote(unseen: UnseenDocuments, file: Path, text: str) -> None:
    file.write_text(text)
    unseen.note([file])


def test_what_an_agent_wrote_waits_until_exactly_that_is_accepted(
    unseen: UnseenDocuments, file: Path
) -> None:
    wrote(unseen, file, "one")
    assert unseen.among([file, file.parent / "CLAUDE.md"]) == {file}
    assert list(unseen.below(file.parent)) == [(file, b"one")]

    unseen.accept({file: b"another"})
    assert unseen.among([file]) == {file}

    unseen.accept({file: b"one"})
    assert unseen.among([file]) == set()


def test_what_somebody_else_wrote_since_counts(unseen: UnseenDocuments, file: Path) -> None:
    wrote(unseen, file, "one")

    file.write_text("from a pull")

    assert unseen.among([file]) == set()
    assert list(unseen.below(file.parent)) == []


def test_an_undo_brings_back_nothing_that_counts(unseen: UnseenDocuments, file: Path) -> None:
    wrote(unseen, file, "one")
    wrote(unseen, file, "two")

    file.write_text("one")

    assert unseen.among([file]) == {file}


def test_documents_of_other_projects_and_those_that_are_gone_are_not_listed(
    unseen: UnseenDocuments, file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "AGENTS.md"
    other.parent.mkdir()
    wrote(unseen, other, "one")
    wrote(unseen, file, "one")
    file.unlink()

    assert list(unseen.below(file.parent)) == []
    assert unseen.among([other]) == {other}


def test_a_damaged_record_is_written_again(unseen: UnseenDocuments, file: Path) -> None:
    wrote(unseen, file, "one")
    [record] = (file.parent.parent / "data").glob("*.json")
    record.write_text("{")
    assert unseen.among([file]) == set()

    wrote(unseen, file, "two")
    assert unseen.among([file]) == {file}


def test_a_record_that_cannot_be_written_is_logged(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    (tmp_path / "data").write_text("a file")

    wrote(UnseenDocuments(tmp_path / "data" / "unseen.json"), file, "one")

    assert str(file) in caplog.text
