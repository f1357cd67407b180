"""Answers of models on tape: recorded to a file, and played from it without a model.

[plugins.cassette.options]
file = "answers.jsonl"
mode = "auto"

`record` begins the file anew, `replay` asks no model, `auto` asks for what the file does not have,
and `passthrough` leaves everything as it is.
"""

from collections.abc import Mapping
from pathlib import Path

from pegboard import InvalidInputError, Workspace, hookimpl
from pegboard.providers import Keys, Provider
from pegboard.schema.config import Config, PluginConfig

MODES = ("record", "replay", "auto", "passthrough")


@hookimpl
async def wrap_providers(
    providers: Mapping[str, Provider], config: Config, keys: Keys, workspace: Workspace
) -> Mapping[str, Provider] | None:
    """The providers over the tape, if the configuration names a file for one."""
    options = config.plugins.get("cassette", PluginConfig()).options
    file, mode = options.get("file"), options.get("mode", "auto")
    if mode not in MODES:
        raise InvalidInputError(f"cassette: the mode is one of {', '.join(MODES)}, not {mode!r}")
    if not file or mode == "passthrough":
        return None
    from pegboard_plugins.cassette.canonical import Wording
    from pegboard_plugins.cassette.taped import Taped, open_tape

    wording = Wording(keys, workspace.directory)
    tape = await open_tape(Path(workspace.directory, file), mode)
    return {name: Taped(each, tape, wording) for name, each in providers.items()}
