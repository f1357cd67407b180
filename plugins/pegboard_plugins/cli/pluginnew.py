"""`pegboard plugins new`: a new package with a working plugin and its tests."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click

from pegboard import __version__
from pegboard_plugins.cli.distributions import COMMANDS, GROUP, OWN, entries
from pegboard_plugins.cli.jsontext import as_json, format_option

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TEMPLATES = Path(__file__).parent / "templates"
KINDS: Mapping[str, tuple[str, str]] = {
    "tool": (
        "A tool for Pegboard.",
        'The model has the tool `FUNCTION`; `permission = { FUNCTION = "ask" }` has it asked for.',
    ),
    "provider": (
        "A provider of models for Pegboard.",
        "Set `provider.NAME.options.baseURL` and a key (`pegboard auth login NAME`).",
    ),
    "policy": (
        "A permission policy for Pegboard.",
        "`plugins.NAME.options.frozen` in `pegboard.toml` names the folders that nobody writes in.",
    ),
    "hooks": (
        "Hooks for Pegboard: a piece of the prompt and a text filter.",
        "Nothing is to be set.",
    ),
    "chat": ("A command and a status item for Pegboard's chat.", "Type `/NAME` in the chat."),
    "command": ("A command for Pegboard.", "It is `pegboard NAME`."),
    "storage": ("A kind of database for Pegboard.", "Set `PEGBOARD_DATABASE=NAME:///path/to/it`."),
}
"""The description and the use of the package for each kind."""


@click.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(list(KINDS)),
    default="tool",
    show_default=True,
    help="One sentence about the plugin.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to create the package in.",
)
@format_option("text")
@click.pass_obj
def new(
    directory: Path, name: str, kind: str, into: Path | None, style: Literal["text", "json"]
) -> None:
    """Make the package pegboard-NAME with a plugin and its tests.

    The package also has a README and a CI workflow. It works at once: run
    `pip install -e '.[test]' && pytest` in it.
    """
    name = name.removeprefix("pegboard-")
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"{name!r} is not a package name: use a-z, 0-9 and single dashes")
    if name in _builtin_names(kind):
        what = "command" if kind == "command" else "plugin"
        raise click.UsageError(f"{name} is the name of a built-in {what}: choose another")
    folder = (into or directory) / f"pegboard-{name}"
    if folder.exists():
        raise click.UsageError(f"{folder} is there already")
    files = written(name, kind)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if style == "json":
        click.echo(as_json({"folder": str(folder), "files": sorted(files)}, indent=2))
        return
    for path in sorted(files):
        click.echo(folder / path)


def _builtin_names(kind: str) -> set[str]:
    """Return the names of the built-in plugins, or of the built-in commands."""
    found = entries(COMMANDS if kind == "command" else GROUP)
    return {each.name for each in found if each.distribution == OWN}


def written(name: str, kind: str) -> dict[str, str]:
    """Return the texts of a new package's files, by their paths in the package's folder."""
    summary, usage = KINDS[kind]
    module = f"pegboard_{name.replace('-', '_')}"
    function = name.replace("-", "_")
    is_command = kind == "command"
    words = {
        "SUMMARY": summary,
        "USAGE": usage,
        "VERSION": __version__,
        "GROUP": "pegboard.commands" if is_command else "pegboard",
        "ENTRY": f"{module}:{function}" if is_command else module,
        "MODULE": module,
        "FUNCTION": function,
        "NAMED": function,
        "VARIABLE": function.upper(),
        "CLASS": "".join(part.capitalize() for part in name.split("-")),
        "TITLE": name.replace("-", " ").capitalize(),
        "NAME": name,
    }
    sources = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        ".github/workflows/test.yml": "ci.yml",
        f"{module}/__init__.py": f"{kind}.py",
        f"tests/test_{function}.py": f"test_{kind}.py",
    }
    files = {path: _fill(source, words) for path, source in sources.items()}
    return {**files, f"{module}/py.typed": ""}


def _fill(source: str, words: Mapping[str, str]) -> str:
    text = (_TEMPLATES / f"{source}.txt").read_text(encoding="utf-8")
    pattern = re.compile("|".join(words))
    while (filled := pattern.sub(lambda found: words[found[0]], text)) != text:
        text = filled  # a summary may have words of its own
    return text
