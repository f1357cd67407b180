"""What is hidden of a text that is kept, and what is left."""

import base64
import html
import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from pegboard.kit.redact import redact, secret_values, without_values

VALUE = 'sé/cr+et="<key>"1user'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: Bearer [secret]'"),
        ("git clone https://me:pa55@host/x", "git clone https://me:[secret]@host/x"),
        ("export API_KEY=abc && ls", "export API_KEY=[secret] && ls"),
        ("AWS_SECRET_ACCESS_KEY='a b' make", "AWS_SECRET_ACCESS_KEY=[secret] make"),
        ("psql --password hunter2 -h x", "psql --password [secret] -h x"),
        ('{"client_secret": "xyz", "n": 1}', '{"client_secret": [secret], "n": 1}'),
        ("echo sk-" + "a1" * 12, "echo [secret]"),
        ("echo ghp_abcdefghijklmnopqrstuvwxyz0123456789", "echo [secret]"),
        ("echo AKIAABCDEFGHIJKLMNOP", "echo [secret]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[secret]"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, kept: str) -> None:
    assert redact(text).startswith(kept)


@pytest.mark.parametrize(
    "text", ["git status", "grep -rn tokens src", "rule bash *", "ls ~/secrets/", "pytest -k 'a:b'"]
)
def test_what_is_none_stays(text: str) -> None:
    assert redact(text) == text


def test_the_directory_is_no_password() -> None:
    env = {"PWD": "/home/me/project", "OLDPWD": "/home/me", "DB_PWD": "hunter22"}

    assert secret_values(env) == ("hunter22",)


def test_values_of_variables_that_speak_of_secrets_are_hidden_wherever_they_stand() -> None:
    env = {"MY_TOKEN": "abcdefgh", "MODEL_X": "12345678", "PATH": "/usr/bin:/bin", "PASSWORD": "a"}

    values = secret_values(env, ["MODEL_X"])

    assert sorted(values) == ["12345678", "abcdefgh"]
    assert redact("a abcdefgh 12345678 /usr/bin:/bin", values) == (
        "a [secret] [secret] /usr/bin:/bin"
    )


@pytest.mark.parametrize("text", ["token" * 2_000, "-" * 10_000, "://" * 3_000, "sk-" * 3_000])
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()

    redact(text)

    assert time.process_time() - started < 2


def _base64(ahead: str) -> Callable[[str], str]:
    return lambda value: base64.b64encode(f"{ahead}{value}".encode()).decode()


@pytest.mark.parametrize(
    "spelled",
    [
        str,
        json.dumps,
        lambda value: json.dumps(value, ensure_ascii=False),
        lambda value: json.dumps(json.dumps(value)),
        lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
        repr,
        html.escape,
        quote,
        quote_plus,
        lambda value: quote(value, safe=""),
        lambda value: quote(value, safe="").lower(),
        _base64(""),
        _base64("u:"),
        _base64("me:"),
        _base64("user:"),
        lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
        lambda value: value.encode().hex(),
    ],
)
@pytest.mark.parametrize("wrap", ["", "\n", "\r\n    ", "\\n", " \\\n", "=\n"])
def test_a_value_is_hidden_in_every_spelling_and_over_the_ends_of_lines(
    spelled: Callable[[str], str], wrap: str
) -> None:
    whole = spelled(VALUE)
    cuts = range(0, len(whole), 12) if wrap else (0,)
    lines = [whole[at : at + 12] if wrap else whole for at in cuts]

    text = without_values(f"before {wrap.join(lines)} after", [VALUE])

    assert text.startswith("before ")
    assert text.endswith(" after")
    assert "[secret]" in text
    assert len(text) <= len("before [secret] after") + 12  # base64 keeps what stands around it


def test_a_word_over_two_words_is_no_value() -> None:
    assert without_values("change me, or changing", ["changeme"]) == "change me, or changing"
