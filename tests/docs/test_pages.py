"""What the pages show can be done: links lead somewhere, code loads and runs, commands exist."""

import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from docs.pages import EXAMPLES, PAGES, ROOT, Block, blocks, links
from pegboard import App, AppOptions, Tool
from pegboard.cli.root import root
from pegboard.hooks.implementation import CALL
from pegboard.loading.registration import PLUGIN
from pegboard.providers.function import FunctionProvider
from pegboard.schema.part import TextPart
from support.models.model_server import ModelServer, by_step, say
from support.plugins.surface import hooks
from support.tools.tool_context import Context, call

PROGRAMS = {"ask.py", "client.py", "watch.py"}
"""Blocks that are programs of their own; they are run by tests of what they use."""
BESIDE = {PLUGIN, CALL}
"""The arguments that an implementation can have beside the hook's."""
HOOKS = {hook.name: {each.arg for each in hook.args.args} for _, hook, _ in hooks()}


def _load(block: Block, folder: Path) -> ModuleType:
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text)
    spec = importlib.util.spec_from_file_location(f"page_{path.stem}_{block.line}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not (page.parent / link).exists()]

    assert broken == []


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_code_loads_and_gives_a_tool_or_hooks(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    module = _load(block, tmp_path)

    tools = [value for value in vars(module).values() if isinstance(value, Tool)]
    marked = {
        name: set(inspect.signature(value).parameters)
        for name, value in vars(module).items()
        if hasattr(value, "pegboard_impl")
    }

    provided = [value for value in vars(module).values() if isinstance(value, FunctionProvider)]
    assert tools or marked or provided or block.file in PROGRAMS or block.file.startswith("test_")
    assert all(each.description and each.parameters["type"] == "object" for each in tools)
    assert {name: args - HOOKS[name] - BESIDE for name, args in marked.items()} == {
        name: set() for name in marked
    }


@pytest.mark.parametrize("block", blocks("console"), ids=str)
def test_commands_exist_with_these_options(block: Block) -> None:
    for line in block.text.splitlines():
        for command in re.split(r"&&|\|", line):
            words = shlex.split(command)
            while words and "=" in words[0]:
                del words[0]
            if words[1:] and Path(words[0]).name == "pegboard":
                _parse(root, words[1:])


def _parse(command: click.Command, words: list[str]) -> None:
    """Let click read a command line as far as it can without running anything.

    :raises click.UsageError: for a command or an option that does not exist.
    """
    context = command.make_context("pegboard", words)
    while isinstance(command, click.Group):
        _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found
        command, context = found, found.make_context(found.name, rest, parent=context)


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
async def test_settings_are_accepted(block: Block, tmp_path: Path) -> None:
    settings = tomllib.loads(block.text)
    if "project" in settings:
        assert settings["project"]["entry-points"]["pegboard"]
        return
    from pegboard.config.configuration import load_config
    from pegboard.workspace import open_workspace

    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "pegboard.toml").write_text(block.text)

    loaded = await load_config(
        open_workspace(tmp_path),
        config_dir=tmp_path / "config",
        env={"HOUSE_KEY": "k"},
        overrides=None,
        trusted=False,
    )

    assert loaded.warnings == ()
    assert set(settings) <= {key.partition(".")[0] for key in loaded.sources}


def test_the_readme_s_commands_stand_on_one_line_each_and_contributors_are_given_the_same() -> None:
    starts: dict[str, list[str]] = {}
    for block in blocks("console"):
        if "-m venv" in block.text:
            starts.setdefault(block.page.name, []).append(block.text)

    assert set(starts) == {"README.md", "CONTRIBUTING.md"}
    assert [len(text.splitlines()) for text in starts["README.md"]] == [1, 1]
    assert starts["CONTRIBUTING.md"] == starts["README.md"]


async def test_the_program_that_embeds_it_gets_an_answer(tmp_path: Path) -> None:
    (block,) = [each for each in blocks("python") if each.file == "ask.py"]
    ask = _load(block, tmp_path).ask

    async with ModelServer(by_step(say("A demo."))) as server:
        provider = {"fake": {"options": {"baseURL": server.url, "apiKey": "k"}}}
        config = {"model": "fake/any", "provider": provider}
        answer = await ask(tmp_path, "What is this project?", _options(tmp_path, config=config))

    assert answer == "A demo."


@pytest.mark.parametrize(
    "block", [each for each in blocks("python") if "@hookimpl" in each.text], ids=str
)
async def test_a_plugin_that_is_shown_is_accepted(block: Block, tmp_path: Path) -> None:
    plugin = _load(block, tmp_path)

    async with App.open(tmp_path, _options(tmp_path, plugins=(plugin,))) as app:
        problems = [each.text for each in app.plugins.problems]
        origins = {each.origin: each.hooks for each in app.plugins.infos}

    assert problems == []
    assert origins["embedded"]


async def test_the_provider_that_is_shown_answers(tmp_path: Path) -> None:
    (block,) = [each for each in blocks("python") if each.file.endswith("echo.py")]
    options = _options(tmp_path, plugins=(_load(block, tmp_path),), config={"model": "echo/parrot"})

    async with App.open(tmp_path, options) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, "Polly")

    assert [each.text for each in turn.parts if isinstance(each, TextPart)] == ["Polly"]


async def test_the_function_that_is_a_provider_answers(tmp_path: Path) -> None:
    (block,) = [each for each in blocks("python") if each.file.endswith("rectangles.py")]

    def area(width: float, height: float) -> str:
        """Work out the area of a rectangle."""
        return str(width * height)

    plugin = _load(block, tmp_path)
    config = {"model": "rectangles/any"}
    options = _options(tmp_path, plugins=(plugin,), tools=(area,), config=config)

    async with App.open(tmp_path, options) as app:
        session = await app.create_session()
        turn = await app.prompt(session, "3 by 4?")
        turns = await app.list_turns(session.id)

    assert turn.text == "You said something."
    assert [each.text for each in turns] == ["3 by 4?", "I work it out.", turn.text]


def _options(folder: Path, **options: Any) -> AppOptions:
    places = {f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")}
    return AppOptions(**places, **options)


@pytest.mark.timeout(300)  # a suite of its own, in which each test has the usual limit
def test_the_tests_that_are_shown_pass(tmp_path: Path) -> None:
    shown = [block for block in blocks("python") if block.file.startswith("test_")]
    for block in shown:
        (tmp_path / block.file).write_text(block.text)

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "--timeout", "60", "--basetemp", str(tmp_path / "given"), "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert shown
    assert done.returncode == 0, done.stdout


CALLS: dict[str, tuple[dict[str, Any], re.Pattern[str]]] = {
    "hello": ({"name": "Ada"}, re.compile("Hello, Ada!")),
    "ticket": ({"number": 7}, re.compile("a cent short")),
    "close": ({"number": 9}, re.compile(r"Closed ticket 9\.")),
    "greet": ({"name": "Ada"}, re.compile("Good day, Ada!")),
    "count": ({}, re.compile("1 times")),
}
"""For each tool that a page shows outside of a test: arguments, and what it answers."""


@pytest.mark.parametrize(
    "block", [each for each in blocks("python") if not each.file.startswith("test_")], ids=str
)
async def test_a_tool_that_is_shown_works(block: Block, tmp_path: Path) -> None:
    module = _load(block, tmp_path)
    (ticket,) = [each.text for each in blocks("json") if "cent short" in each.text]
    (tmp_path / "tickets.json").write_text(ticket)
    context = Context(tmp_path)

    for tool in [value for value in vars(module).values() if isinstance(value, Tool)]:
        arguments, expected = CALLS[tool.id]
        result = await call(tool, context, **arguments)
        assert expected.search(result.output)
