"""The shape of the code: sizes, names, broad excepts, what a start may import."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from support.plugins.surface import RINGS

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "core", ROOT / "plugins")
WRITTEN = (*SOURCES, ROOT / "tests", ROOT / "contrib", ROOT / "docs")
DEMO = "demo_project"

BEYOND = {
    "pegboard_acp": ("pegboard_plugins.server.",),  # the hooks by which servers are directed
    "pegboard_fleet": (
        "pegboard_plugins.cli.export.",  # trajectories are exports of sessions
        "pegboard_plugins.server.",  # the values of its hook for fleets
        "pegboard_plugins.web.",  # the value of its hook for pages
        "pegboard_postgres.",  # a fleet has tables next to those of sessions, and their leases
    ),
    "pegboard_plugins.cli": (
        "pegboard_plugins.audit.",  # commands read and write its files
        "pegboard_plugins.chat.",  # a setting names one of the themes that its hook collects
        "pegboard_plugins.foreignfiles.",  # a command shows what these have
        "pegboard_plugins.commandhooks.",  # `doctor` says which hooks wait for trust
        "pegboard_plugins.skill.",  # and which libraries have skills
        "pegboard_plugins.instructions.",  # and which imports have no room
    ),
    "pegboard_plugins.commandhooks": (
        "pegboard_plugins.chat.",  # a command of the chat
        "pegboard_plugins.skill.",  # whose front matter can have hooks
    ),
    "pegboard_plugins.foreignfiles": (
        "pegboard_plugins.commandhooks.",  # a survey shows the hooks of a file
        "pegboard_plugins.instructions.",  # and what a text imports
    ),
    "pegboard_plugins.web": ("pegboard_plugins.server.",),  # its pages are the server's
    "pegboard_plugins.shared": (
        "pegboard.cli.",  # what the script calls paints first
        "pegboard_plugins.foreignfiles.",  # rules of the command line, in their syntax
    ),
}
"""Modules that a plugin imports beyond public names."""

FILE_LINES = 400
CONTRACT = ROOT / "core" / "pegboard" / "contract"
"""Its files have one subject each, however long."""
FUNCTION_LINES = 50
BANNED_WORDS = {"manager", "helper", "helpers", "util", "utils", "misc"}
BANNED_ENDINGS = {"common", "base", "handler", "handlers"}
BROAD = {"Exception", "BaseException"}
MAY_CATCH_ALL = {
    "pegboard/hooks/isolation.py",  # where a plugin's hook is called
    "pegboard/hooks/health.py",  # where other code of a plugin is called
    "pegboard/loading/discovery.py",  # where a plugin is imported
    "pegboard/cli/root.py",  # where another distribution's command is called
    "pegboard_plugins/auth/systemkeyring.py",  # where the package of the keyring is called
    "pegboard/cli/main.py",  # the outermost frame of the command line
    "pegboard/testing/finding.py",  # where a suite checks what an author has written
    "pegboard_plugins/sqlite/writerthread.py",  # the outermost frame of the thread that writes
    "pegboard/engine/toolcall.py",  # the outermost frame of a tool call
    "pegboard_plugins/chat/guests.py",  # where a plugin's command or key of the chat is called
    "pegboard_plugins/server/guard.py",  # the outermost frame of the server
    "pegboard_plugins/web/datasets.py",  # where a plugin's page or panel is drawn
}

HEAVY = {
    "cattrs",
    "docstring_parser",
    "httpx",
    "importlib_metadata",
    "json5",
    "jsonschema",
    "litellm",
    "lsprotocol",
    "openai",
    "prompt_toolkit",
    "pydantic",
    "pygls",
    "rich",
    "yaml",
}
TOP = {
    "LICENSE",
    "README.md",
    "constraints.txt",
    "contrib",
    "core",
    "docs",
    "plugins",
    "pyproject.toml",
    "tests",
}
_ENTRIES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
PLUGINS, COMMANDS = _ENTRIES["pegboard"], _ENTRIES["pegboard.commands"]
FIXTURES = [each for each in _ENTRIES["pytest11"].values() if each.startswith("pegboard_plugins.")]


def _files(*roots: Path) -> list[Path]:
    found = (path for root in roots for path in root.rglob("*.py"))
    return sorted(path for path in found if DEMO not in path.parts)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the rules ask of a file; its tree is walked once, and not kept."""

    long: dict[str, int]
    names: frozenset[str]
    broad: tuple[int, ...]
    imported: frozenset[str]


@cache
def _shape(path: Path) -> Shape:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {f"{each.name}:{each.lineno}": _length(each) for each in functions}
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    handlers = [node for node in nodes if isinstance(node, ast.ExceptHandler)]
    return Shape(
        long={name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES},
        names=frozenset({path.stem, *classes, *(each.name for each in functions)}),
        broad=tuple(each.lineno for each in handlers if _is_broad(each) and not _passes_on(each)),
        imported=frozenset(name for node in nodes for name in _modules(node)),
    )


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield node.module or ""
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def _words(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [word for word in spaced.lower().split("_") if word]


def _banned(name: str) -> bool:
    words = _words(name)
    return bool(words) and (
        not BANNED_WORDS.isdisjoint(words)
        or words[-1] in BANNED_ENDINGS
        or (words[0] == "base" and name[0].isupper())
        or words[0] in {"do", "perform"}
    )


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in BROAD for node in ast.walk(handler.type))


def _passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether it ends by raising again what it caught, so that nothing is swallowed."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _imported_by(statement: str) -> set[str]:
    """The top-level modules that are there after a statement and were not before it."""
    code = (
        f"import sys; before = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - before))"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {module.partition(".")[0] for module in done.stdout.split()}


@pytest.mark.parametrize(
    "path", [path for path in _files(*WRITTEN) if path.parent != CONTRACT], ids=_name
)
def test_a_file_fits_in_400_lines(path: Path) -> None:
    lines = len(path.read_text().splitlines())

    assert lines <= FILE_LINES


@pytest.mark.parametrize("path", _files(*WRITTEN), ids=_name)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    assert _shape(path).long == {}


@pytest.mark.parametrize("path", _files(*SOURCES), ids=_name)
def test_names_say_what_a_thing_is(path: Path) -> None:
    assert {name for name in _shape(path).names if _banned(name)} == set()


def test_the_one_processor_is_the_stream_s() -> None:
    named = {_name(path) for path in _files(*SOURCES) if "processor" in _words(path.stem)}

    assert named <= {"core/pegboard/engine/processor.py"}


@pytest.mark.parametrize("path", _files(*SOURCES), ids=_name)
def test_only_foreign_code_is_called_under_a_broad_except(path: Path) -> None:
    lines = path.read_text().splitlines()
    broad = _shape(path).broad

    if path.relative_to(ROOT).as_posix().split("/", 1)[1] not in MAY_CATCH_ALL:
        assert broad == ()
    assert [line for line in broad if "#" not in lines[line - 1]] == []


@pytest.mark.parametrize(
    "path",
    _files(ROOT / "plugins" / "pegboard_plugins", *(ROOT / "contrib").glob("*/pegboard_*")),
    ids=_name,
)
def test_a_plugin_imports_only_the_public_names(path: Path) -> None:
    top, *parts = path.relative_to(ROOT).parts
    own = ".".join(parts[:2] if top == "plugins" else parts[1:2]).removesuffix(".py")
    imported = _shape(path).imported

    ours = {name for name in imported if name.partition("_")[0].partition(".")[0] == "pegboard"}
    foreign = {
        name
        for name in ours
        if name not in RINGS
        and not f"{name}.".startswith(("pegboard.schema.", "pegboard_client.", f"{own}."))
        and name != "pegboard_plugins.shared"
        and not f"{name}.".startswith(BEYOND.get(own, ()))
    }

    assert foreign == set()


def test_every_command_runs_on_the_loop_that_starts_no_thread_for_a_process() -> None:
    others = [_name(path) for path in _files(*SOURCES) if "asyncio.run(" in path.read_text()]

    assert others == [
        "core/pegboard/app/script.py",  # its program is that of its author
        "core/pegboard/cli/programloop.py",
        "core/pegboard/testing/fixtures.py",  # so is that of a test
        "core/pegboard/testing/sharedstoragechecks.py",  # a process that it kills
    ]


def test_no_module_imports_in_a_circle_not_even_for_its_types() -> None:
    graph = grimp.build_graph("pegboard")
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}

    list(TopologicalSorter(imported).static_order())  # an error names the circle


def test_importing_pegboard_costs_nothing() -> None:
    loaded = _imported_by("import pegboard")

    assert loaded.isdisjoint(
        {*HEAVY, "asyncio", "msgspec", "pluggy", "inspect", "typing_extensions"}
    )


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=list(PLUGINS))
def test_importing_a_plugin_is_cheap(plugin: str) -> None:
    loaded = _imported_by(f"import {plugin.partition(':')[0]}")

    assert loaded & HEAVY == set()


def test_every_built_in_plugin_has_an_entry_point() -> None:
    package = ROOT / "plugins" / "pegboard_plugins"
    found = {path.stem for path in package.glob("*.py")}
    found |= {path.parent.name for path in package.glob("*/*.py")}

    modules = found - {"__init__", "shared"}

    named = {*PLUGINS.values(), *COMMANDS.values(), *FIXTURES}
    assert modules == {re.split("[.:]", place)[1] for place in named}


def test_the_top_level_shows_nothing_but_the_layout() -> None:
    assert {name.partition("/")[0] for name in _tracked() if name[0] != "."} <= TOP


def test_nothing_tells_of_the_place_where_it_was_written() -> None:
    private = re.compile(r"(?<![\w.])/" + "work" + r"/|/tmp/" + r"(brief|venv|peers)\b")

    telling = {
        name
        for name in _tracked()
        if (ROOT / name).is_file()
        and private.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    }

    assert telling == set()


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.split("\0") if name]
