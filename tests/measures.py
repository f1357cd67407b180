"""Print how large and how plain the code is: `poe measures`.

Lines of code are neither blank nor comment nor docstring. A private helper is used once when its
name stands once in its file beside its definition. A circle is a set of modules each of which
imports the others, imports for types included.
"""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "pegboard"
PLUGINS = ROOT / "plugins" / "pegboard_plugins"
CLI = PLUGINS / "cli"
PARTICIPLES = frozenset({"_told", "_said", "_kept", "_shown", "_text", "_found"})
ODD = re.compile(r"^(What|Nothing)\b")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Source:
    """A file: its tree, and what is counted of it."""

    path: Path
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def definitions(self) -> Iterator[Definition]:
        """Its functions and classes."""
        return (node for node in self.nodes if isinstance(node, Definition))

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Its functions and methods."""
        return (node for node in self.definitions if not isinstance(node, ast.ClassDef))

    @cached_property
    def code_lines(self) -> int:
        """Lines of code."""
        texts = set[int]()
        for node in self.nodes:
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    texts |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
                case _:
                    pass
        lines = (line.strip() for n, line in enumerate(self.text.splitlines(), 1) if n not in texts)
        return sum(bool(line) and not line.startswith("#") for line in lines)

    @property
    def single_helpers(self) -> int:
        """Private functions of the module that are used once."""
        names = Counter(re.findall(r"\b_[a-z]\w*", self.text))
        own = (node.name for node in self.tree.body if isinstance(node, Definition))
        return sum(name.startswith("_") and names[name] == 2 for name in own)

    @property
    def lazy_imports(self) -> int:
        """Imports within functions."""
        inner = (node for each in self.functions for node in ast.walk(each))
        return len({id(node) for node in inner if isinstance(node, ast.Import | ast.ImportFrom)})


def sources(*folders: Path) -> list[Source]:
    """Return the files of folders, without tests, templates and what a build makes."""
    left_out = ("tests", "demo_project", "templates", "sync", "__pycache__")
    found = (path for folder in folders for path in sorted(folder.rglob("*.py")))
    return [
        Source(path) for path in found if not set(left_out) & set(path.parts[len(ROOT.parts) :])
    ]


def circles(files: Iterable[Source], root: Path) -> list[set[str]]:
    """The circles of modules that import each other."""
    names = {".".join(each.path.relative_to(root).with_suffix("").parts): each for each in files}
    names = {name.removesuffix(".__init__"): each for name, each in names.items()}
    edges = {name: _imported(each, names) - {name} for name, each in names.items()}
    reached = {name: _reached(edges, name) for name in edges}
    groups = {frozenset(m for m in reached[name] if name in reached[m]) for name in edges}
    return [set(group) for group in groups if len(group) > 1]


def _imported(source: Source, names: Iterable[str]) -> set[str]:
    known, found = set(names), set[str]()
    for node in source.nodes:
        match node:
            case ast.ImportFrom(module=str(module), names=parts):
                whole = {f"{module}.{part.name}" for part in parts}
                found |= {name if name in known else module for name in whole} & known
            case ast.Import(names=parts):
                found |= {part.name for part in parts} & known
            case _:
                pass
    return found


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        for name in edges[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def _docstrings(files: Iterable[Source]) -> list[str]:
    texts = (ast.get_docstring(node) for each in files for node in each.functions)
    return [text for text in texts if text]


def _not_imperative() -> int:
    """How many docstrings of functions ruff's D401 names."""
    words = [sys.executable, "-m", "ruff", "check", "--select", "D401", "--isolated", "-q"]
    words += ["--output-format", "concise", "core", "plugins", "contrib"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.count(" D401 ")


def same_bodies(files: Iterable[Source], least: int = 2) -> list[list[str]]:
    """Return the names of functions with the same body, of so many statements at `least`."""
    found = defaultdict[str, list[str]](list)
    for each in files:
        for node in each.functions:
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if len(body) >= least:
                found["\n".join(map(ast.dump, body))].append(f"{each.path}: {node.name}")
    return [names for names in found.values() if len(names) > 1]


def classes(files: Iterable[Source]) -> Counter[str]:
    """Count the names of classes."""
    nodes = (node for each in files for node in each.definitions)
    return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))


def measures() -> Iterator[tuple[str, str]]:
    """Yield each measure with its value."""
    core, plugins = sources(CORE), sources(PLUGINS)
    contrib, cli = sources(ROOT / "contrib"), sources(CLI)
    every = [*core, *plugins, *contrib]
    lines = dict[str, int]()
    for name, files in (("core", core), ("plugins", plugins), ("contrib", contrib)):
        lines[name] = sum(each.code_lines for each in files)
        yield f"{name}, lines of code / files", f"{lines[name]:,} / {len(files)}"
    texts = _docstrings(every)
    odd = sum(bool(ODD.match(text)) for text in texts)
    yield "docstrings of functions", f"{len(texts):,}"
    yield "of them not in the imperative (D401)", f"{_not_imperative():,}"
    yield "of them with What or Nothing at their beginning", f"{odd:,}"
    for name, files in (("core", core), ("plugins", plugins)):
        helpers = sum(each.single_helpers for each in files)
        share = helpers / lines[name] * 1000
        yield f"private helpers used once, {name}, per 1,000 lines", f"{share:.1f}"
    groups = [len(circles(core, ROOT / "core")), len(circles(plugins, ROOT / "plugins"))]
    yield "import circles in core / in plugins", f"{groups[0]} / {groups[1]}"
    yield "class names that occur twice", f"{sum(n > 1 for n in classes(every).values())}"
    names = (node.name for each in every for node in each.functions)
    yield "functions named by a bare participle", f"{sum(name in PARTICIPLES for name in names)}"
    lazy = sum(each.lazy_imports for each in cli)
    share = lazy / sum(each.code_lines for each in cli) * 1000
    yield "lazy imports in cli, per 1,000 lines", f"{share:.1f}"
    support = (each.name for each in (ROOT / "tests").glob("*.py"))
    flat = sum(not name.startswith("test_") for name in support)
    yield "files of support in tests/ itself", f"{flat}"
    yield "bodies of functions that occur twice", f"{len(same_bodies(every))}"


if __name__ == "__main__":
    for name, value in measures():
        print(f"{name:<55} {value:>12}")  # noqa: T201 - a script
