"""A scan of a Python file for its imports and actions, without running it.

The scan helps a user to judge code; it proves nothing. Code can hide its actions, so the scan also
lists `exec`, `getattr` with a computed name, and similar calls.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pegboard.app import Decision
from pegboard.unstable import imported_modules

_BUILTINS = {
    "eval": "runs code from text",
    "exec": "runs code from text",
    "compile": "runs code from text",
    "__import__": "imports by a computed name",
    "breakpoint": "starts a debugger",
}
_MODULES = {
    "aiohttp": "uses the network",
    "asyncio.create_subprocess_exec": "runs a process",
    "asyncio.create_subprocess_shell": "runs a process",
    "asyncio.open_connection": "uses the network",
    "asyncio.start_server": "uses the network",
    "ctypes": "calls native code",
    "ftplib": "uses the network",
    "http.client": "uses the network",
    "httpx": "uses the network",
    "importlib": "imports by a computed name",
    "marshal": "runs code from data",
    "multiprocessing": "runs a process",
    "os.chmod": "changes files",
    "os.chown": "changes files",
    "os.environ": "changes or reads the environment",
    "os.exec": "runs a process",
    "os.fork": "runs a process",
    "os.getenv": "reads the environment",
    "os.kill": "signals processes",
    "os.link": "changes files",
    "os.makedirs": "changes files",
    "os.mkdir": "changes files",
    "os.popen": "runs a process",
    "os.posix_spawn": "runs a process",
    "os.putenv": "changes the environment",
    "os.remove": "deletes files",
    "os.removedirs": "deletes files",
    "os.rename": "changes files",
    "os.replace": "changes files",
    "os.rmdir": "deletes files",
    "os.spawn": "runs a process",
    "os.symlink": "changes files",
    "os.system": "runs a process",
    "os.truncate": "changes files",
    "os.unlink": "deletes files",
    "os.write": "changes files",
    "pickle.load": "runs code from data",
    "pty": "runs a process",
    "requests": "uses the network",
    "runpy": "runs code from a file",
    "shutil": "changes files",
    "smtplib": "uses the network",
    "socket": "uses the network",
    "site.addsitedir": "imports from another folder",
    "subprocess": "runs a process",
    "sys.meta_path": "changes what is imported",
    "sys.modules": "changes what is imported",
    "sys.path": "imports from another folder",
    "sys.path_hooks": "changes what is imported",
    "tempfile": "changes files",
    "urllib.request": "uses the network",
    "urllib3": "uses the network",
    "webbrowser": "runs a process",
}
"""The beginnings of dotted names that have an effect, each with its description."""
_METHODS = {
    "write_text": "changes files",
    "write_bytes": "changes files",
    "unlink": "deletes files",
    "rmdir": "deletes files",
    "mkdir": "changes files",
    "rename": "changes files",
    "touch": "changes files",
    "chmod": "changes files",
    "symlink_to": "changes files",
    "hardlink_to": "changes files",
}
_WRITING_MODES = frozenset("wax+")


@dataclass(frozen=True, slots=True, order=True)
class CodeFinding:
    """An action in a line of a file, such as `calls subprocess.run: runs a process`."""

    line: int
    what: str


class ScanReport(msgspec.Struct, frozen=True, kw_only=True):
    """The imports and actions of a file; `error` is the reason if it could not be parsed."""

    imports: tuple[str, ...] = ()
    findings: tuple[CodeFinding, ...] = ()
    error: str = ""


def scans_of(decision: Decision) -> dict[Path, ScanReport]:
    """Scan each Python file that the user is asked to trust, without running the file."""
    return {path: scan(content) for path, content in decision.files.items() if path.suffix == ".py"}


def scan(source: bytes) -> ScanReport:
    """Scan the source of a Python file; nothing is imported or run."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        place = f", line {error.lineno}, column {error.offset}" if error.lineno else ""
        return ScanReport(error=f"{type(error).__name__}: {error.msg}{place}")
    except (ValueError, RecursionError, MemoryError) as error:
        return ScanReport(error=f"{type(error).__name__}: {error}")
    names = dict(_aliases(tree))
    found = {
        CodeFinding(node.lineno, f"calls {called}: {does}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for called, does in _effects(node, names)
    }
    found |= set(_mentions(tree, names))
    imports = tuple(sorted(set(imported_modules(tree))))
    return ScanReport(imports=imports, findings=tuple(sorted(found)))


def _aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, with its full dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    alias.asname or alias.name.partition(".")[0],
                    (alias.name if alias.asname else alias.name.partition(".")[0]),
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _mentions(tree: ast.AST, names: dict[str, str]) -> Iterator[CodeFinding]:
    """Yield uses without a call: `os.environ["KEY"]`, or `os.remove` passed as an argument."""
    nodes = list(ast.walk(tree))
    parts = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in parts:
            used = _dotted(node, names)
            of_module = _of_module(used) if _first(node) in names else ""
            if does := of_module or _BUILTINS.get(used, ""):
                yield CodeFinding(node.lineno, f"uses {used}: {does}")


def _first(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _effects(call: ast.Call, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    called = _dotted(call.func, names)
    if called == "open" or called.endswith(".open"):
        if _writes(call):
            yield called, "changes files"
    elif called in _BUILTINS:
        yield called, _BUILTINS[called]
    elif called == "getattr" and not _is_text(call.args[1:2]):
        yield called, "looks up a computed name"
    elif does := _of_module(called):
        yield called, does
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        yield called, _METHODS[call.func.attr]


def _of_module(called: str) -> str:
    for beginning, does in _MODULES.items():
        if called == beginning or called.startswith(f"{beginning}."):
            return does
        if beginning in ("os.exec", "os.spawn", "os.fork", "os.posix_spawn", "pickle.load") and (
            called.startswith(beginning)
        ):
            return does
    return ""


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full dotted name of an expression: `sp.run` becomes `subprocess.run`."""
    match node:
        case ast.Name(id=name):
            return names.get(name, name).removeprefix("builtins.")
        case ast.Attribute(value=value, attr=attribute):
            return f"{_dotted(value, names)}.{attribute}".removeprefix("builtins.")
        case ast.Call(func=function):
            return f"{_dotted(function, names)}()"
        case _:
            return "…"


def _writes(call: ast.Call) -> bool:
    """Return whether a call of `open` may write; a mode that is not a literal may write."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    place = 1 if isinstance(call.func, ast.Name) else 0
    modes = given or call.args[place : place + 1]
    if not modes:
        return False
    mode = modes[0]
    if not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)):
        return True
    return not _WRITING_MODES.isdisjoint(mode.value)


def _is_text(arguments: list[ast.expr]) -> bool:
    return bool(arguments) and isinstance(arguments[0], ast.Constant)
