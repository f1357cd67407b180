"""The values of `--set`, `--bare`, `--append-system` and `--output`, which few runs use."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from pegboard import InvalidInputError
from pegboard.errors import ConfigError
from pegboard_plugins.cli.configkeys import parts_of, value_of
from pegboard_plugins.cli.jsontext import as_json

if TYPE_CHECKING:
    from pegboard_plugins.cli.views import RunResult

BARE = ("commandhooks", "foreignfiles", "instructions", "skill")
"""The plugins that read files which people and other products wrote for agents."""

_IN_OVERRIDES = " (in overrides)"
"""The end of an error about a value that is set for one App."""


@contextmanager
def name_option() -> Iterator[None]:
    """Begin an error about a value of `--set` with the name of the option.

    :raises ConfigError: for such an error.
    """
    try:
        yield
    except ConfigError as error:
        text = str(error)
        if not text.endswith(_IN_OVERRIDES):
            raise
        raise ConfigError(f"--set: {text.removesuffix(_IN_OVERRIDES)}") from error


def laid_over(others: Mapping[str, Any], given: Sequence[str], *, bare: bool) -> Mapping[str, Any]:
    """Merge three kinds of settings: `--bare`, then `given` by `--set`, and last `others`."""
    config: dict[str, Any] = {}
    if bare:
        _lay(config, {"plugins": {name: {"enabled": False} for name in BARE}})
    _lay(config, settings_of(given))
    _lay(config, others)
    return config


def settings_of(given: Sequence[str]) -> Mapping[str, Any]:
    """Parse `KEY=VALUE` settings in the syntax of `pegboard config set`.

    :raises InvalidInputError: for a text without `=`, or an invalid key.
    """
    config: dict[str, Any] = {}
    for each in given:
        key, equals, value = _split(each)
        if not equals:
            raise InvalidInputError(f"--set: {each} has no value: write it as KEY=VALUE")
        found = value_of(value)
        for name in reversed(parts_of(key)):
            found = {name: found}
        assert isinstance(found, dict)
        _lay(config, found)
    return config


def system_text(given: str) -> str:
    """Return the text, or the content of the file that follows an `@`.

    :raises InvalidInputError: when the file cannot be read.
    """
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        text = f"--append-system: cannot read {given[1:]}: {reason}; give a file of text, or a text"
        raise InvalidInputError(text) from error


def empty_file(file: Path) -> None:
    """Create or empty the file for the last answer, before a model is asked.

    :raises InvalidInputError: when the file cannot be written.
    """
    try:
        file.write_bytes(b"")
    except OSError as error:
        text = f"--output: cannot write {file}: {error.strerror or error}; give another file"
        raise InvalidInputError(text) from error


def write_answer(file: Path, result: "RunResult") -> None:
    """Write the last answer to the file, or the answer's JSON value if a schema was given."""
    value = result.structured
    text = result.text if value is UNSET else as_json(value)
    if text:
        file.write_text(f"{text}\n", "utf-8")


def _split(setting: str) -> tuple[str, str, str]:
    """Split a setting at the first `=` outside of quotes."""
    quote = ""
    for place, sign in enumerate(setting):
        if sign == "=" and not quote:
            return setting[:place], sign, setting[place + 1 :]
        if sign in {'"', "'"} and quote in {"", sign}:
            quote = "" if quote else sign
    return setting, "", ""


def _lay(config: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Merge the settings of `over` into `config`; tables are merged recursively."""
    for name, value in over.items():
        if isinstance(value, Mapping):
            inner = config.setdefault(name, {})
            if isinstance(inner, dict):
                _lay(inner, value)
                continue
        config[name] = value
