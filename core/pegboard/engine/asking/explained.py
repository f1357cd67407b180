"""What would be asked for a tool call, and who would answer what; nothing runs and is stored."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.contract import hookspecs
from pegboard.contract.context import SessionView
from pegboard.engine.asking.decision import as_asked, as_if, judged, make_request, unattended
from pegboard.engine.asking.enclosed import SANDBOX
from pegboard.engine.asking.external_directory import asked_path
from pegboard.engine.parts import Engine
from pegboard.engine.run import make_view
from pegboard.engine.toolcontext import process_env
from pegboard.errors import ToolError
from pegboard.policy.agents import default_agent, find_agent
from pegboard.policy.permissions import deciding, is_unclear, strictest
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.permission import PermissionRequest, Rule, Verdict
from pegboard.schema.session import Session, SessionTime

"""The source of the rules that are the user's own."""
_NOBODY = Model(id="none", provider_id="none", name="None", api=ModelApi(id="none"))


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of one source that decides about a pattern."""

    permission: str
    pattern: str
    source: str
    rule: Rule


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What one plugin says of a request."""

    plugin: str
    request_id: str
    verdict: Verdict


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call would be allowed, asked for or denied.

    `told` is False for a tool that does not say beforehand what it will ask: then only the
    rules about all of its calls are known. `commands` and `unclear` are those of a shell line,
    `advice` says what is unclear and `place` where. `to_allow` are rules that would allow it, each
    tried; where the call is asked for and there are none, no rule of the user's would.
    `verdicts` are those of the single requests, `headless` is the verdict where nobody is asked.
    `sandbox` says what encloses the processes of tools, and whether the verdict is due to it;
    it is empty where nothing does.
    """

    tool: str
    told: bool
    verdict: Verdict
    headless: Verdict
    requests: tuple[PermissionRequest, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    rules: tuple[Spoken, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    commands: tuple[str, ...] = ()
    paths_outside: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    place: str = ""
    to_allow: tuple[Rule, ...] = ()
    sandbox: str = ""


async def explained(
    engine: Engine, name: str, args: Mapping[str, Any], *, agent: str | None = None
) -> Explanation:
    """How the permissions of this call would be decided.

    :raises ToolError: when there is no such tool, or the arguments do not fit it.
    :raises NotFoundError: when there is no such agent.
    """
    tool = engine.tools.get(name)
    if tool is None:
        raise ToolError(f"there is no tool {name!r}; there are: {', '.join(sorted(engine.tools))}")
    view = _view(engine, agent)
    notes = _Notes(engine, view)
    values = await asyncio.to_thread(tool.validate, args)
    told = await tool.requests(notes, values)  # type: ignore[arg-type]  # a part of a context
    if not told:
        await notes.ask(tool.permission, ("*",))
    verdicts = [await judged(engine, view, request) for request in notes.requests]
    unasked = Verdict(action="allow", reason="it asks for nothing")
    asked = [
        as_asked(view, request, verdict)
        for request, verdict in zip(notes.requests, verdicts, strict=True)
    ]
    return Explanation(
        tool=name,
        told=told,
        verdict=strictest(verdicts) or unasked,
        headless=strictest(map(unattended, notes.requests, verdicts)) or unasked,
        requests=tuple(asked),
        verdicts=tuple(verdicts),
        rules=tuple(rule for request in notes.requests for rule in _rules(view, request)),
        opinions=await _opinions(engine, view, notes.requests),
        commands=_commands(notes.requests),
        paths_outside=await asyncio.to_thread(_paths_outside, view, notes.requests),
        unclear=_listed(notes.requests, "unclear"),
        advice=_listed(notes.requests, "advice"),
        place=_place(notes.requests),
        to_allow=await _to_allow(engine, view, asked, verdicts),
        sandbox=_sandbox(engine, verdicts),
    )


def _sandbox(engine: Engine, verdicts: Sequence[Verdict]) -> str:
    if engine.enclosure is None:
        return ""
    is_allowed = all(verdict.action == "allow" for verdict in verdicts)
    changed = is_allowed and any(verdict.source == SANDBOX for verdict in verdicts)
    effect = "it answers what would be asked" if changed else "it does not change the verdict"
    return f"{engine.enclosure.described}: {effect}"


class _Notes:
    """As much of a `ToolContext` as asking takes; it only notes what is asked."""

    trusted = False
    vouched = False
    cancelled = False

    def __init__(self, engine: Engine, view: SessionView) -> None:
        self._engine = engine
        self.session = view
        self.directory = view.directory
        self.worktree = view.worktree
        self.agent = view.agent.name
        self.requests: list[PermissionRequest] = []

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.requests.append(
            make_request(
                self._engine,
                session_id=self.session.id,
                permission=permission,
                patterns=patterns,
                always=always,
                metadata=metadata or {},
                tool=None,
            )
        )

    async def env(self) -> Mapping[str, str]:
        return await process_env(self._engine, self.session)

    async def ask_path(self, path: Path) -> Path:
        return await asked_path(self._engine, path, self.ask)


def _view(engine: Engine, agent: str | None) -> SessionView:
    """A session that is not there, as its first prompt would see it."""
    chosen = (
        find_agent(engine.agents, agent) if agent else default_agent(engine.config, engine.agents)
    )
    workspace, now = engine.workspace, engine.now()
    session = Session(
        id=engine.ids.new("session"),
        slug="",
        project_id=workspace.project_id,
        directory=str(workspace.directory),
        title="",
        version="",
        time=SessionTime(created=now, updated=now),
    )
    return make_view(engine, session, chosen, _NOBODY)


def _rules(view: SessionView, request: PermissionRequest) -> list[Spoken]:
    found = []
    for pattern in request.patterns:
        for ruleset in view.rulesets:
            rule = deciding(ruleset, request.permission, pattern, home=view.home or Path.home())
            if rule is not None:
                found.append(
                    Spoken(
                        permission=request.permission,
                        pattern=pattern,
                        source=ruleset.source,
                        rule=rule,
                    )
                )
    return found


async def _opinions(
    engine: Engine, view: SessionView, requests: Sequence[PermissionRequest]
) -> tuple[Opinion, ...]:
    found: list[Opinion] = []
    for request in requests:
        said = await engine.hooks.opinions(hookspecs.permission_ask, session=view, request=request)
        found += [
            Opinion(plugin=each.plugin, request_id=request.id, verdict=each.value) for each in said
        ]
    return tuple(found)


async def _to_allow(
    engine: Engine,
    view: SessionView,
    requests: Sequence[PermissionRequest],
    verdicts: Sequence[Verdict],
) -> tuple[Rule, ...]:
    """What the user could allow so that nothing is asked; nothing where that would not do."""
    found: list[Rule] = []
    for request, verdict in zip(requests, verdicts, strict=True):
        if verdict.action == "allow":
            continue
        patterns = request.always or request.patterns
        rules = tuple(Rule(request.permission, pattern, "allow") for pattern in patterns)
        after = await judged(engine, as_if(view, rules), request)
        if verdict.action == "deny" or after.action != "allow":
            return ()
        found += rules
    return tuple(found)


def _commands(requests: Sequence[PermissionRequest]) -> tuple[str, ...]:
    found = (
        pattern
        for request in requests
        if "command" in request.metadata and "unclear" in request.metadata
        for pattern in (*request.patterns, *_listed([request], "commands"))
        if not is_unclear(pattern)
    )
    return tuple(dict.fromkeys(found))


def _listed(requests: Sequence[PermissionRequest], key: str) -> tuple[str, ...]:
    """The texts that the requests have in their metadata under this key."""
    return tuple(
        str(text)
        for request in requests
        if isinstance(texts := request.metadata.get(key), list)
        for text in texts
    )


def _place(requests: Sequence[PermissionRequest]) -> str:
    """The part of a line that is unclear, with its place underlined."""
    places = (request.metadata.get("place") for request in requests)
    return next((str(each.get("marked", "")) for each in places if isinstance(each, dict)), "")


def _paths_outside(view: SessionView, requests: Sequence[PermissionRequest]) -> tuple[str, ...]:
    """All paths outside of the project; /proc/self would be ours when it is resolved."""
    paths: dict[str, None] = {}
    for request in requests:
        named = request.metadata.get("paths")
        if request.permission == "external_directory":
            named = [*(named or ()), request.metadata.get("filepath")]
        for path in named if isinstance(named, list) else ():
            real = str(path) if str(path).startswith("/proc/") else os.path.realpath(str(path))
            if not Path(real).is_relative_to(view.worktree):
                paths[real] = None
    return tuple(paths)
