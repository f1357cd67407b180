"""The pages about tools and settings name every one that there is, and none that is not."""

import re
import typing
from collections.abc import Iterator

import msgspec

from docs.reference_pages import REFERENCE
from pegboard import Tool
from pegboard.schema.config import Config, PluginConfig
from pegboard.testing import tools_of
from pegboard_plugins import (
    apply_patch,
    bash,
    batch,
    edit,
    glob,
    grep,
    invalid,
    list,  # noqa: A004 - the plugin's name
    lsp,
    plan,
    question,
    read,
    skill,
    task,
    todo,
    toolsearch,
    webfetch,
    websearch,
)
from pegboard_plugins.edit import multiedit_plugin, write_plugin

VARIABLE = re.compile(r"\bPEGBOARD_[A-Z_]*[A-Z]\b")
PLAIN = (bash, edit, write_plugin, glob, grep, invalid, read, task, todo)
ROOT = REFERENCE.parents[1]
RULES = frozenset({"project_permission", "project_mcp", "rulesets", "approvals"})
"""What no file can set."""
CELL = re.compile(r"`([^`]+)`")


def rows(name: str) -> dict[str, tuple[str, ...]]:
    """The further cells of each table row, by each name in its first cell."""
    found: dict[str, tuple[str, ...]] = {}
    for line in (REFERENCE / name).read_text().splitlines():
        if line.startswith("| `"):
            first, *more = (cell.strip() for cell in line.strip("|").split("|"))
            found |= dict.fromkeys(CELL.findall(first), tuple(more))
    return found


def settings(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key below a table, with its default as the page writes it."""
    for field in msgspec.structs.fields(kind):
        key = f"{prefix}{field.encode_name}"
        inner = typing.get_args(field.type)[1:] if typing.get_origin(field.type) is dict else ()
        if field.name in RULES:
            continue
        if inner and isinstance(inner[0], type) and issubclass(inner[0], msgspec.Struct):
            yield from settings(inner[0], f"{key}.NAME.")
        elif isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from settings(field.type, f"{key}.")
        else:
            yield key, _written(field)


def _written(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default
    if value is msgspec.NODEFAULT:
        value = field.default_factory()  # type: ignore[operator] # not required, so it is there
    return "-" if value is None else f"`{msgspec.json.encode(value).decode()}`"


async def tools() -> dict[str, Tool]:
    """Every built-in tool, with all of them switched on."""
    on = Config(
        plugins={
            **{name: PluginConfig() for name in ("batch", "list", "multiedit", "plan")},
            "toolsearch": PluginConfig(options={"gateway": True}),
            "websearch": PluginConfig(options={"url": "http://127.0.0.1"}),
        }
    )
    found = [tool for module in PLAIN for tool in await module.register_tools()]
    for module in (batch, list, multiedit_plugin, plan):
        found += await module.register_tools(on)
    for module in (toolsearch, webfetch, websearch):
        found += await tools_of(module, config=on)
    found += [apply_patch.apply_patch, lsp.lsp, question.question, skill.skill]
    return {tool.id: tool for tool in found}


def test_the_page_has_every_setting_with_its_default() -> None:
    page = {key: cells[0] for key, cells in rows("configuration.md").items()}

    assert page == dict(settings(Config))


async def test_the_page_has_every_tool_with_its_permission() -> None:
    page = rows("tools.md")
    known = await tools()

    assert set(page) == set(known)
    wrong = {
        name
        for name, tool in known.items()
        if name != "batch" and CELL.findall(page[name][1])[0] != tool.permission
    }
    assert wrong == set()


async def test_the_page_has_every_argument_of_every_tool() -> None:
    page = rows("tools.md")

    for name, tool in (await tools()).items():
        assert set(CELL.findall(page[name][0])) == set(tool.parameters.get("properties", {})), name


def test_the_page_of_the_command_line_names_every_variable() -> None:
    code = [*ROOT.glob("core/**/*.py"), *ROOT.glob("plugins/**/*.py")]
    used = {name for file in code for name in VARIABLE.findall(file.read_text())}

    named = {name for name in rows("cli.md") if name.startswith("PEGBOARD_")}
    folders = {f"PEGBOARD_{each}_DIR" for each in ("CONFIG", "DATA", "STATE", "CACHE")}
    assert named == used | folders
