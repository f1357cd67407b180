"""The core names no tool and no agent: what it has for one, it has for all that say the same."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.contract import apphooks
from support.models.played import Played, opened, text
from support.plugins.surface import CORE, KITS

ALL_ON = {
    "model": "played/m",
    "lsp": {"here": {"command": ["sh"], "extensions": [".x"]}},
    "plugins": {
        **{name: {} for name in ("batch", "list", "multiedit", "plan")},
        "websearch": {"options": {"url": "http://127.0.0.1:9"}},
    },
}
HOMONYMS = {
    "compaction": {
        "config/keys.py": "a table of the configuration",
        "schema/part.py": "the kind of a part, in the protocol",
        "engine/history.py": "a key of a message's metadata, in stored sessions",
    },
    "edit": {
        "schema/session.py": "a permission of the protocol's config files, for all that edits",
    },
    "lsp": {
        "config/keys.py": "a table of the configuration",
        "config/project.py": "the plugin of that table",
    },
    "multiedit": {
        "schema/session.py": "a word of the `tools` tables of OpenCode's files",
    },
    "processes": {
        "engine/engine.py": "a field of the engine",
    },
    "question": {
        "ids.py": "a kind of id, in the protocol",
        "policy/pending.py": "a kind of request, in an error",
        "engine/asking/toolquestion.py": "a kind of id, in the protocol",
    },
    "read": {
        "schema/session.py": "a permission of the protocol's config files, for all that reads",
    },
    "skill": {
        "schema/config.py": "where a slash command comes from, in the protocol",
    },
    "title": {
        "engine/toolresult.py": "a field of a tool's result",
        "storage/changes.py": "a field of a session",
        "arguments/pydantic_model.py": "a keyword of JSON Schema",
    },
    "write": {
        "schema/session.py": "a word of the `tools` tables of OpenCode's files",
    },
}
"""Strings that are spelt as the id of a tool or an agent is, file by file, and what they mean."""


def texts_of(tree: ast.AST) -> Iterator[str]:
    """The string constants, without docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def texts_of_core() -> Iterator[tuple[str, str]]:
    """Yield every string of the core with its file."""
    for path in CORE.rglob("*.py"):
        name = path.relative_to(CORE)
        if name.parts[0] not in KITS:
            yield from ((each, name.as_posix()) for each in texts_of(ast.parse(path.read_text())))


async def test_the_core_has_no_string_that_is_the_id_of_a_built_in_tool_or_agent(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, Played(text("hi")), builtins=True, config=ALL_ON) as app:
        ids = {*app.tools, *app.agents} - {"helper"}

    assert {"bash", "batch", "multiedit", "plan_enter", "websearch", "title", "plan"} <= ids
    strings = set(texts_of_core())
    meant = {(word, path) for word, places in HOMONYMS.items() for path in places}
    assert {(text, path) for text, path in strings if text in ids} == meant
    assert not any(f"the {each} tool" in text for text, _ in strings for each in ids)


async def test_the_core_names_no_database(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi")), builtins=True) as app:
        found = await app.hooks.answers(apphooks.register_storage)
        schemes = {scheme for each in found for scheme in each.value}

    assert schemes == {"sqlite", ""}
    assert [place for place in texts_of_core() if "sqlite" in place[0].lower()] == []


@pytest.mark.parametrize(
    "code", ['x = "bash"', 'f(tool="bash")', 'x = {"bash": 1}', 'f"{x}" "bash"']
)
def test_a_string_is_found_wherever_it_stands_but_in_a_docstring(code: str) -> None:
    assert "bash" in texts_of(ast.parse(code))
    assert "bash" not in texts_of(ast.parse('def f():\n    """bash"""'))
