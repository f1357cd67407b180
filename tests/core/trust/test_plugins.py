"""The plugins that a project's configuration names are those that its owner was shown."""

import os
from pathlib import Path
from typing import Any

import pytest

from pegboard import App, AppOptions
from pegboard.trust.decisions import Decision, TrustStore
from pegboard_plugins import sqlite

LEAVES_A_TRACE = "from pathlib import Path\n\n(Path(__file__).parent / 'ran').touch()\n"


class Repository:
    """A project, and the user's folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "project"
        self.folder.mkdir()
        self.evil = self.folder / "more" / "evil.py"
        self.write(self.evil, LEAVES_A_TRACE)

    def write(self, path: Path, text: str | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    @property
    def ran(self) -> bool:
        return (self.folder / "more" / "ran").exists()

    async def open(self, trust: bool | Decision | None = None) -> App:
        root = self.root
        options = AppOptions(
            plugins=(sqlite,),
            builtins=False,
            installed=False,
            trust=trust,
            env={"PATH": os.environ["PATH"], "HOME": str(root / "home")},
            config_dir=root / "config",
            data_dir=root / "data",
            state_dir=root / "state",
            cache_dir=root / "cache",
        )
        return await App.open(self.folder, options)

    async def decision(self) -> Decision:
        async with await self.open() as app:
            return app.trust

    async def plugins(self, trust: bool | Decision | None = None) -> dict[str, str]:
        """Each plugin but the storage with its origin, `blocked` where it did not run."""
        async with await self.open(trust) as app:
            infos = app.plugins.infos
        ours = (info for info in infos if info.origin != "embedded")
        return {info.name: "blocked" if info.blocked else info.origin for info in ours}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path.resolve())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pegboard.toml", "plugin_paths = ['more']"),
        ("pegboard.toml", "plugin_paths = ['more/evil.py']"),
        ("pegboard.toml", b"\xef\xbb\xbfplugin_paths = ['more']"),
        ("pegboard.toml", b"plugin_paths = ['more']\rkeyring = true\r"),
        ("opencode.jsonc", '{\n // ours\n "plugin_paths": ["more"],\n}'),
        (".pegboard/pegboard.toml", "plugin_paths = ['../more']"),
    ],
    ids=["folder", "file", "byte order mark", "carriage returns", "comments", "beside"],
)
async def test_however_it_is_written_what_is_named_is_shown_and_asked_again_when_it_changes(
    repository: Repository, name: str, text: str | bytes
) -> None:
    repository.write(repository.folder / name, text)

    shown = await repository.decision()
    TrustStore(repository.root / "state" / "trust.json").allow(shown)
    repository.evil.write_text(f"{LEAVES_A_TRACE}# changed\n")
    again = await repository.decision()

    assert [path.name for path in shown.files] == ["evil.py", Path(name).name]
    assert (again.trusted, repository.ran) == (False, False)
    assert [path.name for path in again.changed] == ["evil.py"]


@pytest.mark.parametrize("named", ["{env:NOWHERE}more", "{file:where}", "~nobody/evil.py"])
async def test_what_is_named_is_just_what_is_written(repository: Repository, named: str) -> None:
    repository.write(repository.folder / "pegboard.toml", f"plugin_paths = ['{named}']")
    repository.write(repository.folder / "where", "more")
    repository.write(repository.folder / "~nobody" / "evil.py", "")

    shown = await repository.decision()
    async with await repository.open(shown) as app:
        problems = [problem.text for problem in app.plugins.problems]
        infos = [each for each in app.plugins.infos if each.origin != "embedded"]
        plugins = {each.name: each.location for each in infos}

    is_there = named.endswith("evil.py")
    assert not repository.ran
    assert (repository.folder / named in shown.files) == is_there
    name = Path(named).stem if is_there else Path(named).name
    assert plugins == {name: str(repository.folder / named)}
    assert len(problems) == (0 if is_there else 1)


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}.py", "a\\u0000b", "a\\u0000b.py"])
async def test_a_name_that_is_none_is_that_of_no_plugin(repository: Repository, name: str) -> None:
    repository.write(repository.folder / "pegboard.toml", f'plugin_paths = ["{name}"]')

    assert set((await repository.plugins()).values()) <= {"project"}
    assert set((await repository.plugins(trust=True)).values()) == {"project"}


@pytest.mark.parametrize("named", ["/dev/null", "pipe.py", "huge.py"])
async def test_no_device_or_pipe_is_read_and_no_more_than_people_write(
    repository: Repository, named: str
) -> None:
    os.mkfifo(repository.folder / "pipe.py")
    with (repository.folder / "huge.py").open("wb") as huge:
        huge.truncate(1 << 40)
    repository.write(repository.folder / "pegboard.toml", f"plugin_paths = ['{named}']")

    async with await repository.open(trust=True) as app:
        [problem] = app.plugins.problems

    assert "cannot be read: " in problem.text


@pytest.mark.parametrize("name", ["agent/x.md", "command/x.md"])
async def test_a_pipe_is_no_setting(repository: Repository, name: str) -> None:
    file = repository.folder / ".pegboard" / name
    file.parent.mkdir(parents=True)
    os.mkfifo(file)

    assert not (await repository.decision()).trusted
    assert await repository.plugins(trust=True) == {}


async def test_a_project_names_no_module_whose_code_nobody_was_shown(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(repository.evil.parent))
    repository.write(repository.folder / "pegboard.toml", "plugin_paths = ['evil']")

    async with await repository.open(trust=True) as app:
        [problem] = app.plugins.problems

    assert "evil: there is none" in problem.text
    assert not repository.ran


async def test_a_plugin_that_comes_after_the_yes_does_not_run(repository: Repository) -> None:
    repository.write(repository.folder / "pegboard.toml", "plugin_paths = ['more', 'late']")
    repository.evil.unlink()
    repository.write(repository.folder / "more" / "good.py", "")

    shown = await repository.decision()
    repository.write(repository.evil, LEAVES_A_TRACE)
    late = repository.write(repository.folder / "late" / "evil.py", LEAVES_A_TRACE)
    plugins = await repository.plugins(shown)

    assert not repository.ran
    assert not (late.parent / "ran").exists()
    assert set(plugins.values()) == {"blocked"}


async def test_a_project_that_names_a_plugin_of_the_user_s_does_not_switch_it_off(
    repository: Repository,
) -> None:
    guard = repository.write(repository.root / "home" / "guards" / "guard.py", "")
    repository.write(repository.root / "config" / "pegboard.toml", f"plugin_paths = ['{guard}']")
    repository.write(
        repository.folder / "pegboard.toml", "plugin_paths = ['~/guards', '~/guards/guard.py']"
    )

    assert await repository.plugins() == {"guard": "user"}
    assert await repository.plugins(trust=True) == {"guard": "user"}


async def test_a_configuration_that_changes_while_it_is_read_names_no_plugin_unseen(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = repository.write(repository.folder / "pegboard.toml", "plugin_paths = ['more']")
    shown = await repository.decision()
    repository.evil.write_text(f"{LEAVES_A_TRACE}# changed\n")
    config.write_text("keyring = true")
    decide = TrustStore.decide

    def decide_late(store: TrustStore, **facts: Any) -> Decision:
        config.write_bytes(shown.files[config])  # between the two readings
        return decide(store, **facts)

    monkeypatch.setattr(TrustStore, "decide", decide_late)

    assert set((await repository.plugins(shown)).values()) <= {"blocked", "project"}
    assert not repository.ran
