"""The known language servers, and the choice of a server for each file."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

import pegboard.processes
from pegboard import ToolError
from pegboard.schema.config import LspConfig

if TYPE_CHECKING:
    from pegboard.processes import FoundProgram
    from pegboard.unstable import ProgramSearch


MOST_LOOKED_AT = 2_000
"""So many names take 5 ms; most projects have a fitting file among the first."""


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """A language server, and the files it serves.

    `languages` maps a file's suffix to the protocol's name of its language. The server's root is
    the nearest folder with one of `markers`. A server that `runs_project_code`, such as build
    scripts, is only used if the configuration names it. `named` means that the configuration does;
    the server's program may then also come from the project. Both need a project that the user
    trusts.
    """

    name: str
    command: tuple[str, ...]
    languages: Mapping[str, str]
    markers: tuple[str, ...] = ()
    runs_project_code: bool = False
    named: bool = False
    env: Mapping[str, str] | None = None
    initialization: Mapping[str, Any] | None = None


class RefusedProgramError(ToolError):
    """An error for a project's language server that may not run; the text says how to allow it."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A server to start for a project; `language` has the path of the server's program.

    `refused` says why a program of the project is not used instead.
    """

    language: Language
    root: Path
    refused: str = ""


_PYTHON = {".py": "python", ".pyi": "python"}
_PYTHON_ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile")
_C = {
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
}
_JAVASCRIPT = {
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
}


def _python(name: str, *command: str) -> Language:
    return Language(name=name, command=command, languages=_PYTHON, markers=_PYTHON_ROOTS)


KNOWN = (
    _python("pyright", "pyright-langserver", "--stdio"),
    _python("basedpyright", "basedpyright-langserver", "--stdio"),
    _python("ty", "ty", "server"),
    _python("pylsp", "pylsp"),
    _python("jedi", "jedi-language-server"),
    Language(
        name="gopls",
        command=("gopls",),
        languages={".go": "go"},
        markers=("go.work", "go.mod"),
    ),
    Language(
        name="rust",
        command=("rust-analyzer",),
        languages={".rs": "rust"},
        markers=("Cargo.lock", "Cargo.toml"),
        runs_project_code=True,
    ),
    Language(
        name="typescript",
        command=("typescript-language-server", "--stdio"),
        languages=_JAVASCRIPT,
        markers=("tsconfig.json", "jsconfig.json", "package.json"),
        runs_project_code=True,
    ),
    Language(
        name="clangd",
        command=("clangd", "--background-index=false"),
        languages=_C,
        markers=("compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt"),
    ),
    Language(
        name="zls",
        command=("zls",),
        languages={".zig": "zig", ".zon": "zig"},
        markers=("build.zig",),
        runs_project_code=True,
    ),
    Language(
        name="ruby-lsp",
        command=("ruby-lsp",),
        languages={".rb": "ruby", ".rake": "ruby"},
        markers=("Gemfile",),
        runs_project_code=True,
    ),
    Language(
        name="bash",
        command=("bash-language-server", "start"),
        languages={".sh": "shellscript", ".bash": "shellscript"},
    ),
    Language(name="lua-ls", command=("lua-language-server",), languages={".lua": "lua"}),
    Language(
        name="terraform",
        command=("terraform-ls", "serve"),
        languages={".tf": "terraform", ".tfvars": "terraform-vars"},
    ),
    Language(name="gleam", command=("gleam", "lsp"), languages={".gleam": "gleam"}),
    Language(name="texlab", command=("texlab",), languages={".tex": "latex", ".bib": "bibtex"}),
)


def configured(said: Mapping[str, LspConfig]) -> Iterator[Language]:
    """Yield servers that only the configuration names, then the known ones as configured."""
    known = {language.name: language for language in KNOWN}
    for name, settings in said.items():
        if name not in known and not settings.disabled and settings.command:
            yield _changed(Language(name=name, command=(), languages={}), settings)
    for name, language in known.items():
        if name not in said:
            if not language.runs_project_code:
                yield language
        elif not said[name].disabled:
            yield _changed(language, said[name])


def serving(path: Path, said: Mapping[str, LspConfig]) -> Iterator[Language]:
    """Yield the enabled language servers for this file, installed or not."""
    return (each for each in configured(said) if path.suffix.lower() in each.languages)


def launch(path: Path, search: "ProgramSearch", said: Mapping[str, LspConfig]) -> Launch | None:
    """Return the start of the first enabled and installed server for this file.

    :raises RefusedProgramError: when only programs of the project exist, and they may not run.
    """
    refused = ""
    for language in serving(path, said):
        root = _root(path, search.root, language.markers)
        program = _program(language, path, replace(search, directory=root))
        refused = refused or program.refused
        if program.path:
            found = replace(language, command=(program.path, *language.command[1:]))
            return Launch(language=found, root=root, refused=refused)
    if refused:
        raise RefusedProgramError(refused)
    return None


def can_answer(search: "ProgramSearch", said: Mapping[str, LspConfig]) -> bool:
    """Return whether an installed language server handles one of the first 2,000 project files.

    In a larger project, any installed server counts, because later files are unknown. Blocks.
    """
    languages = tuple(configured(said))
    own = {suffix for each in languages if each.named for suffix in each.languages}

    @cache
    def is_served(suffix: str) -> bool:
        fitting = (each for each in languages if suffix in each.languages)
        return any(_program(each, search.root / "any", search).path for each in fitting)

    from pegboard_plugins.lsp.sourcetree import source_files  # not where no server is installed

    files, tried = source_files(search.root), set[tuple[Path, str]]()
    for entry in islice(files, MOST_LOOKED_AT):
        suffix = f".{entry.name.rpartition('.')[2].lower()}"  # a path would take ten times as long
        if is_served(suffix):
            return True
        if suffix in own:
            path = Path(entry.path)
            if (path.parent, suffix) not in tried:
                with suppress(RefusedProgramError):
                    if launch(path, search, said):
                        return True
            tried.add((path.parent, suffix))
    if next(files, None) is None:
        return False
    return bool(own) or any(is_served(suffix) for each in languages for suffix in each.languages)


def _program(language: Language, path: Path, search: "ProgramSearch") -> "FoundProgram":
    """Return the server's program from the PATH, or for a `named` server also from the project."""
    if language.runs_project_code and not search.trusted_by_user:
        return pegboard.processes.FoundProgram()
    return search.find(language.command, near=path if language.named else None)


def _changed(language: Language, settings: LspConfig) -> Language:
    suffixes = tuple(f".{each.lower().lstrip('.')}" for each in settings.extensions)
    languages = {each: language.languages.get(each, each[1:]) for each in suffixes}
    return replace(
        language,
        command=settings.command or language.command,
        languages=languages or language.languages,
        env=settings.env,
        initialization=settings.initialization or None,
        named=True,
    )


def _root(path: Path, root: Path, markers: tuple[str, ...]) -> Path:
    """Return the nearest folder of the file with a marker, or else the worktree's root."""
    folders = (folder for folder in path.parents if folder.is_relative_to(root))
    marked = (folder for folder in folders if any((folder / marker).exists() for marker in markers))
    return next(marked, root)
