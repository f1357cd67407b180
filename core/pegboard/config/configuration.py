"""The configuration: files, environment and program options, merged and checked.

The sources, from the weakest to the strongest, are: the user's folder (`pegboard.toml`,
`opencode.json[c]`, Markdown agents and commands), the file named by `PEGBOARD_CONFIG`, the
project's folders from the worktree's root down to the directory, `PEGBOARD_CONFIG_CONTENT`, a
profile of the user, and the options that the program passes.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.config.keys import Merged, is_named, normalised, unknown_keys, unused_keys
from pegboard.config.layer import (
    Layer,
    from_content,
    json_config,
    line_of,
    markdown_files,
    profile_layers,
    read_layer,
    read_markdown,
    referenced,
    substituted,
)
from pegboard.config.project import (
    as_project,
    redirections,
    shown_before,
    tightening,
    without_loosening,
)
from pegboard.errors import ConfigError
from pegboard.paths import home_of
from pegboard.schema.config import Config
from pegboard.trust.projectcode import read_bounded, way_down

if TYPE_CHECKING:
    from pegboard.workspace import Workspace

_NAMES = ("pegboard.toml", "opencode.json", "opencode.jsonc")
_PROJECT_NAMES = (
    "pegboard.toml",
    ".pegboard/pegboard.toml",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
)
_PROJECT_FOLDERS = (".pegboard", ".opencode")


class LoadedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration, and the files and variables that it was read from.

    `sources` maps a dotted key to the file or variable that set it last. `files` are all files that
    were read. `untrusted` are the project's files with settings that need trust, and the files that
    they include; `warnings` has a line for each. `plugin_paths` are paths of plugins that only the
    project's files name. `config_dir` is the user's configuration folder.
    """

    config: Config
    sources: Mapping[str, str]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]
    untrusted: tuple[Path, ...]
    plugin_paths: tuple[Path, ...] = ()
    config_dir: Path

    def place(self, key: str) -> str:
        """Return a dotted key with the file and line, or the variable, that set it."""
        parts = key.split(".")
        for end in range(len(parts), is_named(parts[0]), -1):
            name = ".".join(parts[:end])
            inside = (known for known in self.sources if f"{known}.".startswith(f"{name}."))
            if source := self.sources.get(next(inside, "")):
                line = line_of(parts, _readable(Path(source)))
                return f"{source}:{line}: {key}" if line else f"{source}: {key}"
        return key


async def load_config(  # noqa: PLR0913 - the sources, all keyword-only
    workspace: "Workspace",
    *,
    config_dir: Path,
    env: Mapping[str, str],
    overrides: Mapping[str, object] | None,
    trusted: bool | Mapping[Path, bytes],
    profile: str | None = None,
) -> LoadedConfig:
    """Load the configuration of a workspace; `overrides` have the syntax of the files.

    The tables `profile.NAME` of the user's sources override all sources.

    `trusted` is whether the project is trusted. It can also be a mapping of the trusted files to
    their content at the time of the trust decision. This content is then used, even if a file has
    changed since. A file that the mapping lacks is not trusted.

    Rules in the project's files always go to `project_permission`. In an untrusted project only
    these rules and instruction files below the project count, and its references `{env:...}` and
    `{file:...}` are not replaced.

    :raises ConfigError: for a file that cannot be read or is invalid, an unknown key in one of
      Pegboard's own files, and a value of the wrong type; with file, line and key.
    """
    contents = {} if isinstance(trusted, bool) else trusted
    reading = _ConfigReading(
        workspace=workspace,
        config_dir=config_dir,
        env=env,
        trusts_all=trusted is True,
        contents=contents,
    )
    return await asyncio.to_thread(reading.loaded, overrides or {}, profile)


class _ConfigReading(msgspec.Struct, kw_only=True):
    """The state of one `load_config` call, which reads and merges all sources.

    `contents` maps each file that the user has trusted to its content at that time.
    """

    workspace: "Workspace"
    config_dir: Path
    env: Mapping[str, str]
    trusts_all: bool
    contents: Mapping[Path, bytes]
    merged: Merged = msgspec.field(default_factory=Merged)
    files: dict[Path, None] = msgspec.field(default_factory=dict)
    untrusted: list[Path] = msgspec.field(default_factory=list)
    plugin_paths: dict[Path, bool] = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)

    def loaded(self, overrides: Mapping[str, object], profile: str | None) -> LoadedConfig:
        users: list[Layer] = []
        for layer in self._layers():
            self._add(layer)
            users += [] if layer.project else [layer]
        for layer in profile_layers(users, profile) if profile is not None else ():
            self._add(layer)
        if overrides:
            self._add(Layer(name="overrides", value=overrides, syntax="pegboard"))
        return LoadedConfig(
            config=self.merged.config(),
            sources=self.merged.sources(),
            files=tuple(self.files),
            # A project's own words are in them, and are no lines of ours.
            warnings=tuple(" ".join(text.splitlines()) for text in self.warnings),
            untrusted=tuple(self.untrusted),
            plugin_paths=tuple(path for path, users in self.plugin_paths.items() if not users),
            config_dir=self.config_dir,
        )

    def _layers(self) -> Iterator[Layer]:
        yield from self._user_layers()
        for folder in way_down(self.workspace.worktree, self.workspace.directory):
            yield from self._project_layers(folder)
        content = self.env.get("PEGBOARD_CONFIG_CONTENT", "")
        if content.strip():
            yield from_content(content, "PEGBOARD_CONFIG_CONTENT")

    def _user_layers(self) -> Iterator[Layer]:
        for file in filter(_is_file, self._rule_files()):
            value = {"instructions": [str(file)]}
            yield Layer(name=str(file), value=value, syntax="pegboard")
        for name in _NAMES:
            yield from self._read(self.config_dir / name, project=False)
        for table, name, file in markdown_files(self.config_dir):
            self.files[file] = None
            yield read_markdown(table, name, file)
        if self.env.get("PEGBOARD_CONFIG"):
            file = self.workspace.directory / self.env["PEGBOARD_CONFIG"]
            if not _is_file(file):
                raise ConfigError("PEGBOARD_CONFIG names a file that does not exist", file=file)
            yield from self._read(file, project=False)

    def _rule_files(self) -> Iterator[Path]:
        """Yield the user's rule files for all projects: Pegboard's, OpenCode's and Claude's."""
        yield self.config_dir / "AGENTS.md"
        yield self._home() / ".config" / "opencode" / "AGENTS.md"
        yield self._home() / ".claude" / "CLAUDE.md"

    def _project_layers(self, folder: Path) -> Iterator[Layer]:
        for name in _PROJECT_NAMES:
            yield from self._read(folder / name, project=True)
        for name in _PROJECT_FOLDERS:
            for table, entry, file in markdown_files(folder / name):
                if file in self.files:
                    continue
                if self._trusts(file):
                    self.files[file] = None
                    content = self.contents.get(file)
                    yield read_markdown(table, entry, file, project=True, content=content)
                else:
                    self._leave_out(file, f"the {table} {entry}")
                    self._include(_readable(file), file.parent)

    def _read(self, file: Path, *, project: bool) -> Iterator[Layer]:
        """Yield the file's layer if the file exists and was not already read as the user's own."""
        if file not in self.files and _is_file(file):
            self.files[file] = None
            content = self.contents.get(file) if project else None
            layer = read_layer(file, project=project, content=content)
            if not layer.text:
                self.warnings.append(f"{file} is empty, and nothing of it counts")
            yield layer

    def _trusts(self, file: Path | None) -> bool:
        return self.trusts_all or file in self.contents

    def _add(self, layer: Layer) -> None:
        folder = layer.file.parent if layer.file else self.workspace.directory
        raw = layer.value
        trusted = layer.project and self._trusts(layer.file)
        if trusted or not layer.project:
            raw = substituted(
                layer, env=self.env, home=self._home(), folder=folder, contents=self.contents
            )
        else:
            self._include(layer.text, folder)
        if layer.project and "plugin_paths" in raw:  # as they are shown before a yes
            raw = {**raw, "plugin_paths": layer.value["plugin_paths"]}
        value = normalised(layer, raw, home=self._home(), folder=folder)
        self._warn_of_the_unusable(layer, value)
        self._note_plugins(value.get("plugin_paths"), users=not layer.project)
        if layer.project:
            value, looser = without_loosening(value, self.merged.value)
            self.warnings.extend(
                f"{layer.name}: ignored, because a project can only tighten it: {name}"
                for name in looser
            )
        if trusted:
            self.warnings.extend(f"{layer.name}: {text}" for text in redirections(layer.value))
            value, ignored = as_project(value)
            if ignored:
                names = ", ".join(ignored)
                self.warnings.append(f"{layer.name}: ignored, only you can set it: {names}")
        elif layer.project:
            value, ignored = tightening(value)
            if ignored and layer.file is not None:
                sent = "".join(f"; with your trust {text}" for text in shown_before(layer.value))
                self._leave_out(layer.file, f"{', '.join(ignored)}{sent}")
        self.merged.lay(layer, value)

    def _warn_of_the_unusable(self, layer: Layer, value: dict[str, Any]) -> None:
        unknown = unknown_keys(layer)
        if unknown:
            self.warnings.append(f"{layer.name}: unknown and ignored: {', '.join(unknown)}")
        if unused := ", ".join(unused_keys(layer)):
            self.warnings.append(f"{layer.name}: OpenCode uses these, Pegboard does not: {unused}")
        given = value.get("instructions")
        urls = [entry for entry in given if "://" in str(entry)] if isinstance(given, list) else []
        if given and urls:
            value["instructions"] = [entry for entry in given if "://" not in str(entry)]
            self.warnings.append(
                f"{layer.name}: only files can be instructions; ignored: {', '.join(urls)}"
            )

    def _note_plugins(self, paths: object, *, users: bool) -> None:
        """Record each plugin path and whether the user names it; project files may also name it."""
        for path in paths if isinstance(paths, list) else ():
            if isinstance(path, str):
                self.plugin_paths[Path(path)] = self.plugin_paths.get(Path(path), False) or users

    def _leave_out(self, file: Path, what: str) -> None:
        self.untrusted.append(file)
        self.warnings.append(f"{file}: ignored until you trust this project: {what}")

    def _include(self, text: str, folder: Path) -> None:
        """Add the project files that untrusted settings include to the files to trust."""
        files = referenced(text, home=self._home(), folder=folder)
        inside = (file for file in files if file.is_relative_to(self.workspace.worktree))
        # `os.path`: a name that is too long for one is that of nothing, and no error.
        self.untrusted.extend(file for file in inside if os.path.isfile(file))  # noqa: PTH113

    def _home(self) -> Path:
        return home_of(self.env)


def _readable(file: Path) -> str:
    """Read a file as text; return "" if it cannot be read."""
    return read_bounded(file)[0].decode("utf-8", "replace")


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=file) from error


def check_config(text: str, file: Path, *, env: Mapping[str, str]) -> None:
    """Check that a text would be valid as an `opencode.json`.

    :raises ConfigError: when it would be invalid.
    """
    home = home_of(env)
    said = json_config(text, file)
    layer = Layer(name=str(file), value=said, syntax="opencode", file=file, text=text)
    raw = substituted(layer, env=env, home=home, folder=file.parent, contents={})
    merged = Merged()
    merged.lay(layer, normalised(layer, raw, home=home, folder=file.parent))
    merged.config()
