"""A password that is read from a file, because other users can see the command line."""

from pathlib import Path

from pegboard.errors import InvalidInputError


def password_of(file: Path) -> str:
    """Return the first line of a password file, without the line break.

    :raises InvalidInputError: when the file cannot be read, or its first line is empty.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            password = opened.readline().rstrip("\r\n")
    except OSError as error:
        text = f"--password-file: cannot read {file}: {error.strerror or error}"
        raise InvalidInputError(text) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--password-file: {file} is not UTF-8 text") from error
    if not password:
        raise InvalidInputError(f"--password-file: the first line of {file} has no password")
    return password
