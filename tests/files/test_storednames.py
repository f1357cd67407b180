"""Each name of a file has a form that JSON can hold, and comes back from it."""

import os

import pytest

from pegboard.schema.wire import encode_checked
from pegboard.unstable import name_of, stored_name


@pytest.mark.parametrize(
    "name",
    [
        b"/p/plain.txt",
        "/p/ünï.txt".encode(),
        b"/p/caf\xe9",
        b"\xff\xfe/\xe9\xc3\xa9",
        "\ufffd".encode(),
        "\ufffdE9".encode(),
        b"\xef\xbf\xbd41\xff",
        b"\xed\xa0\x80",
        b"with\nline",
    ],
)
def test_a_name_of_any_bytes_is_stored_and_comes_back(name: bytes) -> None:
    stored = stored_name(os.fsdecode(name))

    encode_checked(stored)
    assert os.fsencode(name_of(stored)) == name


def test_a_name_that_is_text_is_stored_as_it_is() -> None:
    assert stored_name("/p/ünï 文.txt") == "/p/ünï 文.txt"
    assert stored_name(os.fsdecode(b"caf\xe9")) == "caf\ufffdE9"
