"""A call has one verdict: whoever makes it, and whether it is made or only foreseen."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from random import Random
from typing import Any

from pegboard import App, Prompt, Tool, ToolContext, tool
from pegboard.errors import PermissionDeniedError
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.testing import tools_of
from pegboard_plugins.lsp import lsp
from pegboard_plugins.shared.frontend import explain
from plugins.test_asks import CALLS, CONFIG
from plugins.test_conformance import PLUGINS
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text

SEEDS = range(8)
NOT_OFFERED = {"apply_patch", "lsp"}
"""The model is offered the other tools that edit, and there is no language server."""
ACTIONS = ("allow", "ask", "deny")


class Now:
    """A context in which what would be required later is required now."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def require(self, *request: Any, later: bool = False, **facts: Any) -> None:
        await self._context.require(*request, **facts)


class Recorded:
    """The built-in tools with what they require and with bodies that only note that they ran."""

    def __init__(self, own: Sequence[Tool]) -> None:
        self.ran: set[str] = set()
        self.calls: dict[str, dict[str, Any]] = {}
        known = {each.id: each for each in own}
        for name, args in CALLS:
            self.calls.setdefault(name, dict(known[name].validate(args)))
        self.tools = [self._recorded(known[name]) for name in self.calls]

    def _recorded(self, own: Tool) -> Tool:
        async def body(context: ToolContext, args: Mapping[str, Any]) -> str:
            await own.require(Now(context), args)  # type: ignore[arg-type]  # stands for one
            self.ran.add(own.id)
            return "done"

        return Tool.raw(
            own.id,
            own.description,
            own.parameters,
            body,
            permission=own.permission,
            requires=own.requires,
            effect=own.effect,
        )


async def recorded() -> Recorded:
    modules = [resolve_name(name) for name in PLUGINS]
    return Recorded(
        [lsp, *[each for mod in modules for each in await tools_of(mod, config=CONFIG)]]
    )


def rules(seed: int, patterns: Mapping[str, str]) -> dict[str, Any]:
    """Rules about each permission, by its own name or by the pattern that a call names."""
    random = Random(seed)
    found: dict[str, Any] = {}
    if random.random() < 0.3:
        found["*"] = random.choice(ACTIONS)
    for permission, pattern in patterns.items():
        one, other = random.choice(ACTIONS), random.choice(ACTIONS)
        kinds = (None, one, {"*": one, pattern: other}, {pattern: other})
        if (kind := random.choice(kinds)) is not None:
            found[permission] = kind
    return {**found, "batch": "allow"}


@tool(requires=False)
async def delegate(context: ToolContext, agent: str) -> str:
    """Have a subagent work."""
    return (await context.run_subagent(agent, "go", description="work")).text


class Model:
    """Makes all the calls: in its own name, in a batch, or in that of a subagent."""

    def __init__(self, made: Mapping[str, Mapping[str, Any]]) -> None:
        self.offered: set[str] = set()
        each = [call(name, json.dumps(args), call_id=name) for name, args in made.items()]
        inner = [{"tool": name, "parameters": args} for name, args in made.items()]
        self._own = calls(*each)
        self._batch = calls(call("batch", json.dumps({"tool_calls": inner})))

    async def __call__(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        said = str(request.messages[-1].content)
        script = text("ok")
        if request.messages[-1].role == "user" and request.tools:
            _, delegates, agent = said.partition("delegate to ")
            if delegates:
                arguments = json.dumps({"agent": agent.partition(".")[0]})
                script = calls(call("delegate", arguments))
            else:
                self.offered = {each.name for each in request.tools}
                script = self._batch if "batch" in said else self._own
        for event in script:
            yield event


def project(folder: Path) -> None:
    """Make a project with a file and a skill, and a file beside it."""
    skill = folder / "project" / ".pegboard" / "skills" / "knots"
    skill.mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text("---\ndescription: Ties knots.\n---\nTie.\n")
    (folder / "project" / "a.txt").write_text("one\n")
    (folder / "a.txt").write_text("one\n")


async def test_a_call_has_one_verdict(tmp_path: Path, record_property: Any) -> None:
    project(tmp_path)
    found = await recorded()
    model = Model(found.calls)
    patterns = {"external_directory": f"{tmp_path}/*"}
    async with opened(tmp_path, Played(text("x")), ToolsPlugin(*found.tools), builtins=True) as app:
        for name, args in found.calls.items():
            foreseen = await app.policy.foresee(name, args)
            patterns |= {each.permission: each.patterns[0] for each in foreseen.requests}
    agents = {f"r{seed}": {"mode": "all", "permission": rules(seed, patterns)} for seed in SEEDS}
    config = {
        "model": "played/m",
        "agent": {"free": {"mode": "all", "permission": "allow"}, **agents},
        "plugins": {"batch": {}},
    }
    plugins = (ToolsPlugin(*found.tools, delegate),)
    options = {"builtins": True, "allow": False, "config": config}
    cases = 0
    async with opened(tmp_path, Played(model), *plugins, **options) as app:
        for agent, settings in agents.items():
            expected = {
                name
                for name, args in found.calls.items()
                if (await explain(app, name, args, agent=agent)).headless.action == "allow"
            }
            for door in (by_model, by_batch, by_subagent, by_program):
                found.ran.clear()
                model.offered = set()
                await door(app, agent, found.calls)
                offered = model.offered or set(found.calls)
                assert expected - offered <= NOT_OFFERED, (agent, door)
                assert found.ran == expected & offered, (agent, door, settings)
                cases += len(found.calls)
    record_property("cases", cases)
    assert cases == len(SEEDS) * 4 * len(found.calls)


async def by_model(app: App, agent: str, made: Mapping[str, Any]) -> None:
    session = await app.create_session()
    await app.prompt(session, Prompt(HI, agent=agent))


async def by_batch(app: App, agent: str, made: Mapping[str, Any]) -> None:
    session = await app.create_session()
    await app.prompt(session, Prompt("batch", agent=agent))


async def by_subagent(app: App, agent: str, made: Mapping[str, Any]) -> None:
    session = await app.create_session()
    await app.prompt(session, Prompt(f"delegate to {agent}.", agent="free"))


async def by_program(app: App, agent: str, made: Mapping[str, Any]) -> None:
    session = await app.create_session()
    for name, args in made.items():
        with suppress(PermissionDeniedError):
            await app.call_tool(session.id, name, args, agent=agent)
