"""The known formatters, and the choice of formatters for a file of a project."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

import pegboard.processes
from pegboard.schema.config import FormatterConfig, Service

if TYPE_CHECKING:
    from pegboard.processes import FoundProgram
    from pegboard.unstable import ProgramSearch


FILE = "$FILE"
_PROBE_BYTES = 1 << 20
"""As much of a project's file is searched for the name of a formatter."""


class Formatter(msgspec.Struct, frozen=True, kw_only=True):
    """A program that rewrites a file.

    `declared` holds pairs of a file name and a string. If there are any, one such file with the
    string in it must exist, in the file's folder or above it up to the worktree's root.
    `runs_project_code` marks a formatter that loads code of the project, so that it runs only if
    the configuration names it. `named` says whether the configuration does. A named formatter may
    be a program in the project's own packages. Both kinds need the user's trust in the project.
    `refused` says why Pegboard does not run the project's program; `command` is then empty unless
    there is another program.
    """

    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    declared: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] | None = None
    runs_project_code: bool = False
    named: bool = False
    refused: str = ""


_WEB = (
    *(".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".css", ".graphql"),
    *(".json", ".jsonc", ".html", ".vue", ".svelte", ".astro"),
)
_DOCUMENTS = (".scss", ".less", ".md", ".mdx", ".yaml", ".yml")
_C = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".ino")
_PYTHON = (".py", ".pyi")
_NAMES_RUFF = tuple((name, "ruff") for name in ("pyproject.toml", "requirements.txt", "Pipfile"))

KNOWN = (
    Formatter(
        name="ruff",
        command=("ruff", "format", FILE),
        extensions=_PYTHON,
        declared=(("ruff.toml", ""), (".ruff.toml", ""), *_NAMES_RUFF),
    ),
    Formatter(
        name="black",
        command=("black", "--quiet", FILE),
        extensions=_PYTHON,
        declared=(("pyproject.toml", "[tool.black]"),),
    ),
    Formatter(name="gofmt", command=("gofmt", "-w", FILE), extensions=(".go",)),
    # Without a manifest at hand it takes 2015, in which `async` is no word.
    Formatter(name="rustfmt", command=("rustfmt", "--edition", "2021", FILE), extensions=(".rs",)),
    Formatter(name="shfmt", command=("shfmt", "-w", FILE), extensions=(".sh", ".bash")),
    Formatter(
        name="clang-format",
        command=("clang-format", "-i", FILE),
        extensions=_C,
        declared=((".clang-format", ""),),
    ),
    Formatter(
        name="biome",
        command=("biome", "format", "--write", FILE),
        extensions=_WEB,
        declared=(("biome.json", ""), ("biome.jsonc", "")),
    ),
    Formatter(
        name="prettier",
        command=("prettier", "--write", "--log-level=warn", FILE),
        extensions=_WEB + _DOCUMENTS,
        declared=(("package.json", "prettier"),),
        runs_project_code=True,
    ),
    Formatter(name="zig", command=("zig", "fmt", FILE), extensions=(".zig", ".zon")),
    Formatter(name="dart", command=("dart", "format", FILE), extensions=(".dart",)),
    Formatter(name="gleam", command=("gleam", "format", FILE), extensions=(".gleam",)),
    Formatter(name="nixfmt", command=("nixfmt", FILE), extensions=(".nix",)),
    Formatter(name="terraform", command=("terraform", "fmt", FILE), extensions=(".tf", ".tfvars")),
    Formatter(
        name="ocamlformat",
        command=("ocamlformat", "-i", FILE),
        extensions=(".ml", ".mli"),
        declared=((".ocamlformat", ""),),
    ),
    Formatter(
        name="mix",
        command=("mix", "format", FILE),
        extensions=(".ex", ".exs", ".eex", ".heex"),
        declared=((".formatter.exs", ""),),
        runs_project_code=True,
    ),
)


def fitting(path: Path, root: Path, said: Mapping[str, FormatterConfig]) -> tuple[Formatter, ...]:
    """Return the enabled formatters for a file in the worktree `root`, installed or not.

    `said` is the table `formatter` of the configuration.
    """
    return tuple(
        each
        for each in _configured(said)
        if path.suffix.lower() in each.extensions and _declared(each, path, root)
    )


def installed(
    wanted: Iterable[Formatter], path: Path, search: "ProgramSearch"
) -> tuple[Formatter, ...]:
    """Return the formatters whose programs are installed, with `command` ready to run for the file.

    Formatters whose program Pegboard refuses to run are included; `refused` gives the reason.
    """
    found = []
    for formatter in wanted:
        program = _program(formatter, path, search)
        words = tuple(part.replace(FILE, str(path)) for part in formatter.command[1:])
        command = (program.path, *words) if program.path else ()
        if command or program.refused:
            found.append(replace(formatter, command=command, refused=program.refused))
    return tuple(found)


def services(search: "ProgramSearch", said: Mapping[str, FormatterConfig]) -> tuple[Service, ...]:
    """Return the enabled formatters, each "ready" or "absent" for this project."""
    path = search.root / "_"
    return tuple(
        Service(
            kind="formatter",
            name=each.name,
            extensions=each.extensions,
            state="ready"
            if _program(each, path, search).path and _declared(each, path, search.root)
            else "absent",
        )
        for each in _configured(said)
    )


def _program(formatter: Formatter, path: Path, search: "ProgramSearch") -> "FoundProgram":
    """Find the program on the PATH; search the project's packages first for a `named` formatter."""
    if formatter.runs_project_code and not search.trusted_by_user:
        return pegboard.processes.FoundProgram()
    return search.find(formatter.command, near=path if formatter.named else None)


def _configured(said: Mapping[str, FormatterConfig]) -> Iterator[Formatter]:
    """Yield the known formatters as configured, then formatters that only the user configured."""
    for formatter in KNOWN:
        settings = said.get(formatter.name)
        if settings is None:
            if not formatter.runs_project_code:
                yield formatter
        elif not settings.disabled:
            yield _changed(formatter, settings)
    known = {formatter.name for formatter in KNOWN}
    for name, settings in said.items():
        if name not in known and not settings.disabled and settings.command:
            yield _changed(Formatter(name=name, command=(), extensions=()), settings)


def _changed(formatter: Formatter, settings: FormatterConfig) -> Formatter:
    extensions = settings.extensions or formatter.extensions
    return replace(
        formatter,
        command=settings.command or formatter.command,
        extensions=tuple(f".{each.lower().lstrip('.')}" for each in extensions),
        # Who writes the command means it for the project, whatever the project's files say.
        declared=() if settings.command else formatter.declared,
        environment=settings.environment,
        named=True,
    )


def _declared(formatter: Formatter, path: Path, root: Path) -> bool:
    if not formatter.declared:
        return True
    folders = [folder for folder in path.parents if folder.is_relative_to(root)]
    return any(
        _contains(folder / name, text) for folder in folders for name, text in formatter.declared
    )


def _contains(file: Path, text: str) -> bool:
    try:
        with file.open("rb") as content:
            return text.encode() in content.read(_PROBE_BYTES)
    except OSError:
        return False
