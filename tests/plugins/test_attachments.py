"""What the model reads of the files that a user attaches."""

import base64
import os
from pathlib import Path

import pytest

from pegboard.schema.part import FilePart, mime_of
from pegboard_plugins.attachments.expansion import MEDIA_LIMIT_BYTES, Expansion, expansion
from support.tools.charset_texts import sentences
from support.tools.media_files import data_url, jpeg, png, webp


def part(url: str, mime: str = "text/plain", filename: str | None = "f.txt") -> FilePart:
    return FilePart(
        id="prt_1", session_id="ses_1", message_id="msg_1", mime=mime, url=url, filename=filename
    )


def text_of(found: Expansion) -> str:
    _, text = found.texts
    return text


def numbered(*lines: str, start: int = 1, more: bool = False) -> str:
    """Return lines as the read tool answers with them."""
    last = start + len(lines) - 1
    note = f"More lines follow: read on with offset={last + 1}" if more else ""
    note = note or f"End of file: {last} lines"
    rows = [f"{number:05}| {line}" for number, line in enumerate(lines, start)]
    return "\n".join(["<file>", *rows, "", f"({note})", "</file>"])


@pytest.mark.parametrize(
    "url",
    [
        "data:text/plain,h%C3%A9llo%2C%20you",
        "data:,h%C3%A9llo, you",
        "data:text/plain;charset=utf-8;base64," + base64.b64encode("héllo, you".encode()).decode(),
        "data:text/plain;BASE64," + base64.b64encode("héllo, you".encode()).decode().rstrip("="),
        "data:text/plain;base64," + base64.urlsafe_b64encode("héllo, you".encode()).decode(),
        "data:text/plain;charset=utf-16;base64,"
        + base64.b64encode("héllo, you".encode("utf-16")).decode(),
        "data:text/plain;charset=latin-1,h%E9llo%2C%20you",
        "data:text/plain;base64,aMOp%0Abg%3D%3D".replace("aMOp%0Abg", "aMOpbGxv%0ALCB5b3U"),
    ],
)
def test_text_in_a_data_url_is_read_in_every_encoding(url: str) -> None:
    found = expansion(part(url), Path("/"))

    assert text_of(found) == "héllo, you"
    assert found.mime == "text/plain"


@pytest.mark.parametrize(
    ("letters", "encoding"),
    [
        ("Grüße\n", "utf-8-sig"),
        ("Grüße\n", "utf-16"),
        ("Grüße\n", "cp1252"),
        (sentences("koi8_r"), "koi8_r"),
    ],
)
def test_a_file_is_read_in_its_own_encoding(tmp_path: Path, letters: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(letters.encode(encoding))

    found = expansion(part(f"file://{tmp_path}/a.txt"), tmp_path)

    assert text_of(found) == numbered(letters.removesuffix("\n"))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("data:text/plain", "no comma"),
        ("data:text/plain;base64,%%%", "not base64"),
        ("data:text/plain;charset=klingon,x", "character set 'klingon'"),
        ("data:text/plain;charset=hex,x", "character set 'hex'"),
        ("data:text/plain;charset=\0,x", "null character"),
        ("file:///does/not/exist", "/does/not/exist does not exist"),
        ("file:///dev/null", "not a regular file"),
        ("file:///proc/self/environ", "tells of a process"),
        ("file://evil.example/etc/hostname", "on another machine, evil.example"),
    ],
)
def test_what_cannot_be_read_is_said(url: str, why: str) -> None:
    [text] = expansion(part(url), Path("/")).texts

    assert text.startswith("The attached file f.txt could not be read:")
    assert why in text


def test_an_image_reaches_the_model_as_base64_whatever_it_came_as(tmp_path: Path) -> None:
    raw = png(20, 20)
    picture = tmp_path / "a b.png"
    picture.write_bytes(raw)
    whole = f"data:image/png;base64,{base64.b64encode(raw).decode()}"
    percent = "data:image/png," + "".join(f"%{byte:02x}" for byte in raw)

    urls = [
        expansion(part(url, "image/png"), tmp_path).url
        for url in (picture.as_uri(), percent, whole)
    ]

    assert urls == [whole] * 3


def test_structured_text_is_text(tmp_path: Path) -> None:
    found = expansion(part("data:application/json,%7B%7D", "application/json"), tmp_path)

    assert text_of(found) == "{}"
    assert found.mime == "text/plain"


def test_a_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").touch()

    found = expansion(part(tmp_path.as_uri()), tmp_path)

    assert found.texts == (
        f'Called the read tool with these arguments: {{"filePath": "{tmp_path}"}}',
        f"{tmp_path}/\n  a.txt\n  sub/",
    )
    assert found.mime == "application/x-directory"


def test_a_listing_leaves_the_names_of_secrets_out(tmp_path: Path) -> None:
    for name in ("a.txt", ".env", "server.pem"):
        (tmp_path / name).touch()

    found = expansion(part(tmp_path.as_uri()), tmp_path)

    assert text_of(found) == (f"{tmp_path}/\n  a.txt\n\n(2 that look like secrets are left out)")


@pytest.mark.parametrize(
    ("query", "arguments", "lines"),
    [
        ("?start=2&end=3", ', "offset": 2, "limit": 2', numbered("2", "3", start=2, more=True)),
        ("?start=4", ', "offset": 4', numbered("4", "5", start=4)),
        ("?start=4&end=9", ', "offset": 4, "limit": 6', numbered("4", "5", start=4)),
        ("?end=2", ', "limit": 2', numbered("1", "2", more=True)),
        ("", "", numbered("1", "2", "3", "4", "5")),
    ],
)
def test_the_lines_of_a_file_come_as_the_read_tool_shows_them(
    tmp_path: Path, query: str, arguments: str, lines: str
) -> None:
    file = tmp_path / "f.txt"
    file.write_text("1\n2\n3\n4\n5\n")

    found = expansion(part(file.as_uri() + query), tmp_path)

    assert found.texts == (
        f'Called the read tool with these arguments: {{"filePath": "{file}"{arguments}}}',
        lines,
    )


@pytest.mark.parametrize("query", ["?start=9", "?start=2&end=1", "?start=1&end=-1"])
def test_lines_that_the_file_has_not_are_said(tmp_path: Path, query: str) -> None:
    file = tmp_path / "f.txt"
    file.write_text("1\n2\n")

    said = text_of(expansion(part(file.as_uri() + query), tmp_path))

    assert said == "[The file has no such lines.]"


def test_an_empty_file_and_an_empty_folder_are_said_to_be_so(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.touch()
    (tmp_path / "sub").mkdir()

    said = [text_of(expansion(part(path.as_uri()), tmp_path)) for path in (file, tmp_path / "sub")]

    assert said == ["[There is nothing in it.]"] * 2


def test_a_file_is_noted_as_read_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_text("x")
    noted: list[Path] = []

    expansion(part(file.as_uri()), tmp_path, on_read=noted.append)

    assert noted == [file]


@pytest.mark.parametrize(
    ("name", "target", "why"),
    [
        ("notes.md", "../outside.txt", "leads out of the project"),
        ("docs", None, "leads out of the project"),
        ("docs/outside.txt", None, "leads out of the project"),
        ("notes.md", ".env", "a link to a file of secrets"),
        ("pipe", None, "not a regular file"),
    ],
)
def test_a_link_of_the_project_leads_to_nothing_that_is_not_meant(
    tmp_path: Path, name: str, target: str | None, why: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside.txt").write_text("KEY=secret")
    (project / ".env").write_text("KEY=secret")
    (project / "docs").symlink_to("..")
    if target is not None:
        (project / name).symlink_to(target)
    os.mkfifo(project / "pipe")

    [text] = expansion(part((project / name).as_uri()), project).texts

    assert why in text
    assert "KEY" not in text


def test_a_link_that_stays_in_the_project_is_followed_and_a_link_of_the_user_s(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("a")
    (project / "b.txt").symlink_to("a.txt")
    (tmp_path / "mine.txt").symlink_to("project/a.txt")

    for file in (project / "b.txt", tmp_path / "mine.txt"):
        assert text_of(expansion(part(file.as_uri()), project)) == numbered("a")


def test_a_long_file_is_cut_and_a_binary_one_refused(tmp_path: Path) -> None:
    long, single, binary = tmp_path / "long", tmp_path / "single", tmp_path / "binary"
    long.write_text("line\n" * 3000)
    single.write_text("x" * 200_000)
    binary.write_bytes(b"MZ\0\0")

    cut = text_of(expansion(part(long.as_uri()), tmp_path))
    one = text_of(expansion(part(single.as_uri()), tmp_path))
    [refused] = expansion(part(binary.as_uri()), tmp_path).texts

    assert cut == numbered(*["line"] * 2000, more=True)
    assert one == numbered("x" * 2000 + "...")
    assert "it is a binary file" in refused


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.pdf", "a", "a.txt"])
def test_media_have_the_type_of_their_bytes(tmp_path: Path, name: str) -> None:
    for mime, content in (("image/png", png()), ("image/jpeg", jpeg()), ("image/webp", webp())):
        file = tmp_path / name
        file.write_bytes(content)
        found = expansion(part(file.as_uri(), mime_of(file)), tmp_path)
        pasted = expansion(part(data_url("image/gif", content), "image/gif"), tmp_path)

        assert found == pasted == Expansion(url=data_url(mime, content), mime=mime)


def test_text_in_a_file_that_is_named_as_a_picture_is_read_as_text(tmp_path: Path) -> None:
    file = tmp_path / "text.png"
    file.write_text("Just text.\n")

    found = expansion(part(file.as_uri(), "image/png"), tmp_path)

    assert (text_of(found), found.mime) == (numbered("Just text."), "text/plain")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (png(20, 20)[:60], "it is image/png that ends too early or is damaged"),
        (b"\0" * 60, "its content is not image/png"),
    ],
)
def test_a_picture_that_cannot_be_decoded_is_not_attached(
    tmp_path: Path, content: bytes, why: str
) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(content)
    for url in (file.as_uri(), data_url("image/png", content)):
        found = expansion(part(url, "image/png", "a.png"), tmp_path)

        assert found == Expansion(
            texts=(f"The attached file a.png could not be read: {why}",), mime="text/plain"
        )


def test_media_have_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "big.png"
    with file.open("wb") as big:
        os.truncate(big.fileno(), MEDIA_LIMIT_BYTES + 1)

    [text] = expansion(part(file.as_uri(), "image/png"), tmp_path).texts

    assert "can be attached" in text


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("a.png", "image/png"),
        ("a.pdf", "application/pdf"),
        ("a.py", "text/plain"),
        ("a.svg", "text/plain"),
        ("Makefile", "text/plain"),
        ("a.json", "text/plain"),
    ],
)
def test_a_file_has_the_type_that_a_model_can_use(name: str, mime: str) -> None:
    assert mime_of(Path(name)) == mime
