"""The reference pages that repeat the code: hooks, public names, values and commands.

Run as a program it writes them; a test compares them with the code.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from contract.public_api import since
from docs.command_pages import commands_page
from support.plugins.surface import (
    CORE,
    PROMISED,
    RINGS,
    definitions,
    hooks,
    marks,
    signature,
    source,
    tree,
)

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

HOOKS_HEAD = """# Hooks

<!-- Written by tests/docs/reference_pages.py from the specifications of the hooks. -->

"""
HOOKS_OF = {
    "pegboard.contract.apphooks": "The App",
    "pegboard.contract.modelhooks": "Requests to models",
    "pegboard.contract.toolhooks": "Tool calls",
    "pegboard_plugins.*": "Hooks that plugins bring",
}
BROUGHT = """Mark an implementation `@hookimpl(optionalhook=True)`: then it is not an error that
the plugin with the hook is switched off."""
API_HEAD = """# Python names

<!-- Written by tests/docs/reference_pages.py from the docstrings. -->

What the code of others may import. First come the names that a tool needs, then all others by the
module that they are imported from; each name has one. [What is promised](promise.md) says what may
change. Messages, parts, events, permissions and other values are on the page of
[values](schema.md).

"""
TOOL_NAMES = (
    *("tool", "ToolContext", "PermissionContext", "ToolResult", "Attachment", "ToolError"),
    *("Plugin", "hookimpl", "evolve", "Tool"),
)
"""What authors of tools import from `pegboard`, in the order in which they need it."""
TOOL_DOC = """All of these are imported from `pegboard`. A file with `@tool` functions is a whole
plugin: see [Your first tool](../tutorial/first-tool.md),
[Package a tool](../how-to/package-a-tool.md) and [Test a plugin](../how-to/test-a-plugin.md)."""
SCHEMA_HEAD = """# Values

<!-- Written by tests/docs/reference_pages.py from core/pegboard/schema. -->

What hooks and tools are given and answer with, by the module of `pegboard.schema` that it is
imported from. All of it is frozen: `pegboard.evolve(value, field=...)` makes another one. What
something is says its class: `isinstance(part, TextPart)`, or `match part:` with
`case ToolPart(state=Completed(output=output))`. A field without a default must be given.

"""
HANDED = {
    "BackgroundAccess": "pegboard.contract.context",
    "Effect": "pegboard.schema.config",
    "FileAccess": "pegboard.contract.context",
    "ImplFacts": "pegboard.contract.plugin",
    "Meaning": "pegboard.http.wireformat",
    "Service": "pegboard.contract.tools",
    "ToolFacts": "pegboard.contract.tools",
}
"""Types of fields and arguments that nobody has to import, with the modules that define them."""
ROOTS = {"Wire", "Rest", "Table", "msgspec.Struct"}
"""Classes of the schema without fields, which say how values are written."""
HANDED_DOC = "Types of what stands above; nobody has to import them."
RING = """## {ring}

{doc}

{entries}"""
HOOK = """### {name}

```py
{signature}
```

Kind: {kind}. Since {since}.

{doc}
"""


def hooks_page() -> str:
    """Return the page of hooks: each with its kind, signature, contract and example."""
    sections = []
    for module, title in HOOKS_OF.items():
        found = [
            (hook, mark)
            for source, hook, mark in hooks()
            if source == module or (module.endswith("*") and source not in HOOKS_OF)
        ]
        rows = (
            f"| [`{hook.name}`](#{hook.name}) | {_kind(mark)} | {_first(hook)} |"
            for hook, mark in found
        )
        table = "\n".join(["| hook | kind | |", "|---|---|---|", *rows])
        intro = BROUGHT if module.endswith("*") else _doc(tree(module))
        sections += [f"## {title}\n\n{intro}\n\n{table}\n", *(_hook(*each) for each in found)]
    intro = _doc(tree("pegboard.contract")).partition("\n\n")[2]
    return f"{HOOKS_HEAD}{intro}\n\n" + "\n".join(sections)


def _hook(hook: ast.FunctionDef, mark: ast.Call) -> str:
    file = f"```python\n# hook/{hook.name}.py\n"
    doc = _doc(hook).replace("```python\n", file).replace("'''", '"""')
    [since] = [ast.literal_eval(each.value) for each in mark.keywords if each.arg == "since"]
    return HOOK.format(
        name=hook.name, signature=signature(hook), kind=_kind(mark), since=since, doc=doc
    )


def _kind(mark: ast.Call) -> str:
    kind: str = ast.literal_eval(mark.args[0])
    return kind


def api_page() -> str:
    """Return every public name with its signature and docstring: tools first, then by ring."""
    entries = "\n".join(_since("pegboard", name) for name in TOOL_NAMES)
    first = RING.format(ring="For a tool", doc=TOOL_DOC, entries=entries)
    sections = (
        RING.format(
            ring=ring,
            doc=_doc(source(ring)),
            entries="\n".join(
                _since(ring, name)
                for name in sorted(RINGS[ring])
                if ring != "pegboard" or name not in TOOL_NAMES
            ),
        )
        for ring in PROMISED
    )
    handed = "\n".join(_entry(*name) for name in HANDED.items())
    last = RING.format(ring="Handed over", doc=HANDED_DOC, entries=handed)
    return API_HEAD + "\n".join([first, *sections, last])


def _since(ring: str, name: str) -> str:
    return f"{_entry(name, RINGS[ring][name])}\nSince {since(ring, name)}.\n"


def schema_page() -> str:
    """Every value of the schema with its fields, by module."""
    modules = sorted(path.stem for path in (CORE / "schema").glob("[!_]*.py"))
    public = (f"pegboard.schema.{module}" for module in modules if module != "wire")
    sections = map(_schema_module, public)
    return SCHEMA_HEAD + "\n".join(sections)


def _schema_module(module: str) -> str:
    body = tree(module)
    names = [
        name
        for node in body.body
        for name in _defined(node)
        if not name.startswith("_") and not name.isupper()
    ]
    entries = "\n".join(_entry(name, module) for name in names)
    return RING.format(ring=module, doc=_doc(body), entries=entries)


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            yield name


def _entry(name: str, module: str) -> str:
    match definitions(name, module)[-1]:
        case ast.ClassDef() as node:
            members = "\n".join(_all_members(node, module))
            made = f"```python\n{_made(node)}\n```\n\n" if _made(node) else ""
            how = "\nMade by keyword.\n" if _is_made_by_keyword(node) else ""
            listed = f"\n{members}\n" if members else ""
            return f"### {name}\n\n{made}{_doc(node)}\n{how}{listed}"
        case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
            return f"### {name}\n\n```python\n{signature(node)}\n```\n\n{_doc(node)}\n"
        case node:
            return f"### {name}\n\n```python\n{ast.unparse(node)}\n```\n"


def _made(node: ast.ClassDef) -> str:
    """How a value of the class is made, "" where its fields say it or `open` does."""
    functions = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    if "__init__" not in functions or any(name.startswith("open") for name in _names(node)):
        return ""
    return (
        signature(functions["__init__"], bound=True)
        .replace("def __init__", node.name, 1)
        .removesuffix(" -> None")
    )


def _is_made_by_keyword(node: ast.ClassDef) -> bool:
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    said = [*node.keywords, *(word for call in calls for word in call.keywords)]
    return any(word.arg == "kw_only" for word in said)


def _names(node: ast.ClassDef) -> list[str]:
    return [
        each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _all_members(node: ast.ClassDef, module: str) -> Iterator[str]:
    """The members, those that the class has from another one of the schema before its own."""
    for base in map(ast.unparse, node.bases):
        if module.startswith("pegboard.schema.") and base not in ROOTS:
            yield from _all_members(cast("ast.ClassDef", definitions(base, module)[-1]), module)
    yield from _members(node)


def _members(node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        match member:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                yield f"- `{ast.unparse(member)}`"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not member.name.startswith("_"):
                yield f"- `{_member(member)}`: {_first(member)}{_raised(member)}"


def _raised(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What a method raises, as sentences behind the first."""
    found = re.findall(
        r"^:raises (\w+): (.*?)(?=^:raises |\Z)",
        inspect.cleandoc(ast.get_docstring(function) or ""),
        re.MULTILINE | re.DOTALL,
    )
    return "".join(f" Raises `{error}` {' '.join(when.split())}" for error, when in found)


def _member(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    shown = signature(function, bound=True)
    if "property" in marks(function):
        return shown.removeprefix("def ").replace("() -> ", ": ")
    return shown.replace("async def ", "await ").removeprefix("def ")


def _doc(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The docstring as Markdown; what is raised becomes a list."""
    lines = []
    for line in inspect.cleandoc(ast.get_docstring(node) or "").splitlines():
        error, _, when = line.removeprefix(":raises ").partition(":")
        lines.append(f"- raises `{error}`:{when}" if line.startswith(":raises ") else line)
    return "\n".join(lines)


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return _doc(node).partition("\n\n")[0].replace("\n", " ")


PAGES = {
    "hooks.md": hooks_page,
    "api.md": api_page,
    "schema.md": schema_page,
    "commands.md": commands_page,
}
"""What writes each page, by the name of its file."""

if __name__ == "__main__":
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())
        sys.stdout.write(f"{REFERENCE / name}\n")
