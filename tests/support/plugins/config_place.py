"""A user's folders and a project, for the tests of the configuration."""

from collections.abc import Mapping
from pathlib import Path

from pegboard.config.configuration import LoadedConfig, load_config
from pegboard.workspace import open_workspace


class Place:
    """A home, a config folder and a project with a subfolder, all real."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.user = root / "home" / ".config" / "pegboard"
        self.project = root / "project"
        self.directory = self.project / "sub"
        for folder in (self.user, self.directory, self.project / ".git"):
            folder.mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def write(self, file: Path, text: str) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    async def load(
        self,
        *,
        trusted: bool | Mapping[Path, bytes] = False,
        env: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
        profile: str | None = None,
    ) -> LoadedConfig:
        return await load_config(
            open_workspace(self.directory),
            config_dir=self.user,
            env={"HOME": str(self.home), **(env or {})},
            overrides=overrides,
            trusted=trusted,
            profile=profile,
        )
