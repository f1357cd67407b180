"""What is hidden of a text that is kept, and what is left."""

import time

import pytest

from pegboard.kit.redact import redacted, secret_values


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
    assert redacted(text).startswith(kept)


@pytest.mark.parametrize(
    "text", ["git status", "grep -rn tokens src", "rule bash *", "ls ~/secrets/", "pytest -k 'a:b'"]
)
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_directory_is_no_password() -> None:
    env = {"PWD": "/home/me/project", "OLDPWD": "/home/me", "DB_PWD": "hunter22"}

    assert secret_values(env) == ("hunter22",)


def test_values_of_variables_that_speak_of_secrets_are_hidden_wherever_they_stand() -> None:
    env = {"MY_TOKEN": "abcdefgh", "MODEL_X": "12345678", "PATH": "/usr/bin:/bin", "PASSWORD": "a"}

    values = secret_values(env, ["MODEL_X"])

    assert sorted(values) == ["12345678", "abcdefgh"]
    assert redacted("a abcdefgh 12345678 /usr/bin:/bin", values) == (
        "a [secret] [secret] /usr/bin:/bin"
    )


@pytest.mark.parametrize("text", ["token" * 2_000, "-" * 10_000, "://" * 3_000, "sk-" * 3_000])
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()

    redacted(text)

    assert time.process_time() - started < 2
