"""The project's agents, slash commands, skills, tools and language servers."""

import os
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter
from msgspec.structs import fields, replace
from starlette.responses import Response

from pegboard import App
from pegboard.schema.config import Agent, Command, Service
from pegboard.schema.wire import Rest
from pegboard_plugins.server import services
from pegboard_plugins.server.configuration import mask
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.keymask import without_keys
from pegboard_plugins.server.responses import answer
from pegboard_plugins.server.serverstate import Here

_OF_THE_PROTOCOL = frozenset(
    {
        *("name", "description", "mode", "native", "hidden", "top_p", "temperature", "color"),
        *("permission", "model", "variant", "prompt", "options", "steps"),
    }
)
"""The fields of an agent that clients know."""
routes = APIRouter()


class ToolEntry(Rest, frozen=True):
    """A tool with the name, description and schema that the model receives."""

    id: str
    description: str
    parameters: dict[str, Any]


class ListedSkill(Rest, frozen=True):
    """A skill's instructions, with the skill's name and file."""

    name: str
    description: str
    location: str
    content: str


@routes.get("/agent", **operation("app.agents", gives=tuple[Agent, ...]))
async def agents(app: Here) -> Response:
    """List the agents, the default agent first, in the format of OpenCode's protocol."""
    first = app.default_agent()
    rest = (agent for agent in app.agents.values() if agent.name != first.name)
    found = [_as_known(each) for each in (first, *rest)]
    return answer(without_keys(app, found))


def _as_known(agent: Agent) -> Agent:
    own = {each.name: each.default for each in fields(Agent) if each.name not in _OF_THE_PROTOCOL}
    return replace(agent, **own, options=mask(agent.options))


@routes.get("/command", **operation("command.list", gives=tuple[Command, ...]))
async def commands(app: Here) -> Response:
    """List the slash commands in the format of OpenCode's protocol."""
    await app.reload_project_code()
    return answer(
        without_keys(
            app,
            [replace(each, location=None, argument_names=None) for each in app.commands.values()],
        )
    )


@routes.get("/skill", **operation("app.skills", gives=tuple[ListedSkill, ...]))
async def skills(app: Here) -> Response:
    """List the skills, each with its file; skills are slash commands too."""
    found = tuple(
        ListedSkill(
            name=each.name,
            description=each.description or "",
            location=each.location,
            content=each.template,
        )
        for each in app.commands.values()
        if each.source == "skill" and each.location is not None
    )
    return answer(without_keys(app, found))


@routes.get("/experimental/tool/ids", **operation("tool.ids", gives=tuple[str, ...]))
async def tool_ids(app: Here) -> Response:
    """List the names of the tools."""
    return answer(tuple(app.tools))


@routes.get("/experimental/tool", **operation("tool.list", gives=tuple[ToolEntry, ...]))
async def tools(app: Here, provider: str, model: str) -> Response:
    """List the tools as the given model receives them."""
    await app.resolve_model(f"{provider}/{model}")
    offered = {each.name: each for each in await app.policy.offered()}
    found = {name: offered.get(name, tool) for name, tool in app.tools.items()}
    return answer(
        tuple(
            ToolEntry(id=name, description=each.description, parameters=dict(each.parameters))
            for name, each in found.items()
        )
    )


class LspStatus(Rest, frozen=True):
    """A started language server: its id, its folder and its state."""

    id: str
    name: str
    root: str
    status: Literal["connected", "error"]


class FormatterStatus(Rest, frozen=True):
    """A formatter, and whether it is enabled."""

    name: str
    extensions: tuple[str, ...]
    enabled: bool


@routes.get("/lsp", **operation("lsp.status", gives=tuple[LspStatus, ...]))
async def language_servers(app: Here) -> Response:
    """List the started language servers with their states."""
    found = await _services(app, "lsp")
    return answer(tuple(_server(each, app.workspace.worktree) for each in found))


def _server(service: Service, worktree: Path) -> LspStatus:
    return LspStatus(
        id=service.name,
        name=service.name,
        root=os.path.relpath(service.root, worktree),
        status="error" if service.state == "failed" else "connected",
    )


@routes.get("/formatter", **operation("formatter.status", gives=tuple[FormatterStatus, ...]))
async def formatters(app: Here) -> Response:
    """List the formatters, and whether each is enabled."""
    return answer(
        tuple(
            FormatterStatus(
                name=each.name, extensions=each.extensions, enabled=each.state == "ready"
            )
            for each in await _services(app, "formatter")
        )
    )


async def _services(app: App, kind: str) -> list[Service]:
    found = await app.hooks.collect(services, app=app)
    return [each.value for each in found if each.value.kind == kind]


@routes.get(
    "/experimental/workspace/adapter",
    **operation("experimental.workspace.adapter.list", gives=tuple[dict[str, str], ...]),
)
@routes.get(
    "/experimental/workspace", **operation("experimental.workspace.list", gives=tuple[str, ...])
)
@routes.get(
    "/experimental/workspace/status",
    **operation("experimental.workspace.status", gives=tuple[str, ...]),
)
@routes.get("/experimental/worktree", **operation("worktree.list", gives=tuple[str, ...]))
async def none_of_them(_app: Here) -> Response:
    """Return an empty list, because the server manages no workspaces and no worktrees."""
    return answer([])


@routes.get(
    "/experimental/capabilities",
    **operation("experimental.capabilities.get", gives=dict[str, bool]),
)
async def capabilities() -> Response:
    """Return the capabilities that newer OpenCode clients query before they offer a feature."""
    return answer({"backgroundSubagents": False})


@routes.get("/experimental/console", **operation("experimental.console.get", gives=dict[str, Any]))
async def console() -> Response:
    """Return no providers of OpenCode's console, because Pegboard does not use the console."""
    return answer({"consoleManagedProviders": [], "switchableOrgCount": 0})


@routes.get(
    "/experimental/console/orgs",
    **operation("experimental.console.listOrgs", gives=dict[str, tuple[dict[str, Any], ...]]),
)
async def organisations() -> Response:
    """Return no organisations, because there is no console to sign in to."""
    return answer({"orgs": ()})


@routes.post(
    "/experimental/workspace/sync-list",
    **operation("experimental.workspace.syncList", status=204),
)
async def sync_workspaces(_app: Here) -> Response:
    """Return 204 without any work, because Pegboard has no workspaces."""
    return Response(status_code=204)
