"""Recorded model answers: the plugin records them in a file and replays them from it.

[plugins.cassette.options]
file = "answers.jsonl"
mode = "auto"

The mode `record` starts a new file, and `replay` calls no provider. `auto` replays an answer if
the file has it, and records it otherwise. `passthrough` turns the plugin off.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from pegboard import Plugin, Workspace, evolve, hookimpl
from pegboard.providers import Keys, Provider
from pegboard.schema.config import Config

Field = Literal[
    "model", "system", "messages", "tools", "temperature", "top_p", "max_output_tokens", "options"
]
Mode = Literal["record", "replay", "auto", "passthrough"]


class CassetteOptions(msgspec.Struct, frozen=True):
    """The options of the plugin; a relative `file` starts at the project's folder.

    `match_on` names the fields that two requests must share to count as equal; empty means all.
    """

    file: str = ""
    mode: Mode = "auto"
    match_on: tuple[Field, ...] = ()


options = CassetteOptions
"""The options of `plugins.cassette.options`."""


@hookimpl
async def config_load(config: Config, workspace: Workspace, plugin: Plugin) -> Config | None:
    """In the mode `replay`, select a recorded model unless the configured model is recorded."""
    file = plugin.options.file
    if not file or plugin.options.mode != "replay":
        return None
    from pegboard_plugins.cassette.taped import open_tape

    tape = await open_tape(Path(workspace.directory, file), "replay")
    names = ["/".join(each) for each in tape.models(workspace.directory)]
    return evolve(config, model=names[0]) if names and config.model not in names else None


@hookimpl
async def wrap_providers(
    providers: Mapping[str, Provider], keys: Keys, workspace: Workspace, plugin: Plugin
) -> Mapping[str, Provider] | None:
    """Wrap each provider in one that records and replays, if the option `file` is set."""
    file, mode = plugin.options.file, plugin.options.mode
    if not file or mode == "passthrough":
        return None
    from pegboard_plugins.cassette.canonical import Wording
    from pegboard_plugins.cassette.taped import Taped, Unasked, open_tape

    wording = Wording(keys, workspace.directory)
    tape = await open_tape(Path(workspace.directory, file), mode, plugin.options.match_on)
    directory = workspace.directory
    all_providers = {name: Unasked(name) for name, _ in tape.models(directory)} | {**providers}
    return {name: Taped(each, tape, wording, directory) for name, each in all_providers.items()}
