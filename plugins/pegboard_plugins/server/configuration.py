"""The configuration in the format of OpenCode's protocol, without secrets."""

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from pegboard import App, PegboardError
from pegboard.schema.config import AgentConfig, ProviderConfig
from pegboard.schema.session import Rule
from pegboard.schema.wire import to_json
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.keybinds import KEYBINDS
from pegboard_plugins.server.keymask import MASK, without_keys
from pegboard_plugins.server.responses import BodyError, answer, body_of
from pegboard_plugins.server.serverstate import Here, Served, ServerState, asked_directory
from pegboard_plugins.shared.frontend import update_user_config

_SECRET = ("key", "token", "secret", "pass", "pwd", "auth", "credential", "cookie", "headers")
_IN_URL = re.compile(
    r"(?<=://)[^/?#@\s]+(?=@)"
    rf"|(?<=[?&])(?P<name>[^=&#\s]*(?:{'|'.join(_SECRET)})[^=&#\s]*=)[^&#\s]+",
    re.IGNORECASE,
)
"""Who calls, before a host; and what a query says under a name that means a secret."""
_PLAIN = ("model", "small_model", "default_agent", "username", "snapshot")
_LISTS = ("disabled_providers", "enabled_providers", "instructions")
routes = APIRouter()


@routes.get("/config", **operation("config.get", gives=dict[str, Any]))
async def config(app: Here) -> Response:
    """Return the configuration for the request's directory, with all keys of the terminal UI."""
    return answer(configuration_of(app))


@routes.get("/global/config", **operation("global.config.get", gives=dict[str, Any]))
async def global_config(state: Served) -> Response:
    """Return the configuration of the server's own directory."""
    return answer(configuration_of(await state.pool.app(state.directory)))


@routes.patch("/config", **operation("config.update", gives=dict[str, Any], takes=dict[str, Any]))
async def update(request: Request, state: Served) -> Response:
    """Change the user's configuration file; return the configuration of the request's directory."""
    return answer(await _update(request, state, asked_directory(request, state)))


@routes.patch(
    "/global/config",
    **operation("global.config.update", gives=dict[str, Any], takes=dict[str, Any]),
)
async def update_global(request: Request, state: Served) -> Response:
    """Change the user's own file, and return the configuration of the server's own directory."""
    return answer(await _update(request, state, state.directory))


async def _update(request: Request, state: ServerState, directory: Path) -> dict[str, Any]:
    """Change the user's configuration file; restore the old text if the new one is invalid.

    Masked values that a client sends back unchanged are ignored.
    """
    body = await body_of(request, dict[str, Any])
    try:
        changes = drop_masks(body)
    except RecursionError as error:
        raise BodyError("the settings are nested too deeply") from error
    async with state.changing:
        edit = await asyncio.to_thread(
            update_user_config, state.places.config, changes, env=os.environ
        )
        await state.pool.renew()
        try:
            return configuration_of(await state.pool.app(directory))
        except PegboardError:
            await asyncio.to_thread(edit.undo)
            raise


def configuration_of(app: App) -> dict[str, Any]:
    """Return the configuration in the format of OpenCode's protocol, without unset keys."""
    said = app.config
    values: dict[str, Any] = {
        "share": "disabled",
        "autoupdate": False,
        "keybinds": KEYBINDS,
        "provider": {name: _provider(each) for name, each in said.provider.items()},
        "agent": {name: _agent(each) for name, each in said.agent.items()},
        "command": {name: to_json(each) for name, each in said.command.items()},
        "permission": permission_table(said.permission),
        "compaction": to_json(said.compaction),
    }
    values |= {name: getattr(said, name) for name in _PLAIN if getattr(said, name) is not None}
    values |= {name: list(value) for name in _LISTS if (value := getattr(said, name))}
    found: dict[str, Any] = without_keys(app, values)
    return found


def _provider(said: ProviderConfig) -> dict[str, Any]:
    values: dict[str, Any] = to_json(said)
    if said.api:
        values["api"] = mask_address(said.api)
    models = {name: _model(each) for name, each in said.models.items()}
    return {**values, "options": mask(said.options), "models": models}


def _model(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's settings with masked secrets; only options and headers contain any."""
    return {name: mask(value, name) for name, value in said.items()}


def _agent(said: AgentConfig) -> dict[str, Any]:
    values: dict[str, Any] = to_json(said)
    values.pop("project_permission", None)
    values["options"] = mask(said.options)
    if said.permission:
        values["permission"] = permission_table(said.permission)
    return values


def permission_table(rules: Iterable[Rule]) -> dict[str, str | dict[str, str]]:
    """Return the permission rules as a table, in which the last match wins.

    A permission with a single rule for everything maps directly to its action.
    """
    table: dict[str, dict[str, str]] = {}
    for rule in rules:
        patterns = table.pop(rule.permission, {})
        patterns.pop(rule.pattern, None)
        table[rule.permission] = {**patterns, rule.pattern: rule.action}
    return {
        name: patterns["*"] if patterns.keys() == {"*"} else patterns
        for name, patterns in table.items()
    }


def mask(value: Any, name: str = "") -> Any:  # noqa: ANN401 - JSON of any shape
    """Mask each string under a key that is the name of a secret, at any depth.

    Only the secret part of an address is masked.
    """
    if isinstance(value, dict):
        return {
            key: mask(each, name if _is_secret(name) else str(key)) for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask(each, name) for each in value]
    if not isinstance(value, str):
        return value
    return MASK if value and _is_secret(name) else mask_address(value)


def mask_address(text: str) -> str:
    """Mask the secrets in the URLs of a text."""
    return _IN_URL.sub(lambda found: (found["name"] or "") + MASK, text)


def drop_masks(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's changes without the masks of secrets."""
    found: dict[str, Any] = {}
    for name, value in changes.items():
        if MASK in name:
            continue
        if isinstance(value, Mapping):
            rest = drop_masks(value)
            if rest or not value:
                found[name] = rest
        elif not _has_mask(value):
            found[name] = value
    return found


def _has_mask(value: object) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list):
        return any(_has_mask(each) for each in inner)  # type: ignore[attr-defined] # a list then
    return isinstance(value, str) and MASK in value


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)
