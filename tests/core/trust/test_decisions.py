"""Nothing of a project runs before its owner said yes, to these very bytes."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pegboard.errors import TrustError
from pegboard.trust.decisions import Decision, TrustStore
from pegboard_plugins.cli.trustlock import write_lock
from pegboard_plugins.shared.frontend import scans_of

SOURCE = "from pegboard import tool\n"


class Project:
    """A project with one tool file, and its user's store."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "project"
        self.tool = self.root / ".pegboard" / "tool" / "hello.py"
        self.tool.parent.mkdir(parents=True)
        self.tool.write_text(SOURCE)
        self.path = tmp_path / "state" / "trust.json"

    @property
    def store(self) -> TrustStore:
        return TrustStore(self.path)

    def decide(self, *config_files: Path, directory: Path | None = None, **facts: Any) -> Decision:
        return self.store.decide(
            directory=directory or self.root,
            worktree=self.root,
            config_files=config_files,
            **facts,
        )

    def allow(self, *config_files: Path) -> None:
        self.store.allow(self.decide(*config_files))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_code_is_not_trusted_until_its_owner_says_so(project: Project) -> None:
    before = project.decide()
    project.allow()
    after = project.decide()

    assert (before.trusted, after.trusted) == (False, True)
    assert before.files == {project.tool: SOURCE.encode()}
    assert before.reason == ".pegboard/tool/hello.py is not trusted yet"
    assert before.changed == ()


def test_a_project_without_code_needs_no_trust(tmp_path: Path) -> None:
    decision = TrustStore(tmp_path / "trust.json").decide(directory=tmp_path, worktree=tmp_path)

    assert decision.trusted
    assert decision.files == {}
    assert not (tmp_path / "trust.json").exists()


def test_who_says_yes_to_a_project_without_code_trusts_it_until_it_brings_some(
    project: Project,
) -> None:
    project.tool.unlink()
    unasked = project.decide()
    project.store.allow(unasked)
    said_yes = project.decide()
    project.tool.write_text(SOURCE)
    after = project.decide()

    told = [(each.trusted, each.trusted_by_user) for each in (unasked, said_yes, after)]
    assert told == [(True, False), (True, True), (False, False)]
    assert project.decide(answer=True).trusted_by_user


def test_a_changed_file_asks_again_and_shows_the_difference(project: Project) -> None:
    project.allow()
    project.tool.write_text(SOURCE + "import os\n")

    decision = project.decide()

    assert not decision.trusted
    assert decision.changed == (project.tool,)
    assert decision.reason == ".pegboard/tool/hello.py changed since it was trusted"
    difference = project.store.difference(decision).splitlines()
    assert difference[:2] == [
        "--- trusted/.pegboard/tool/hello.py",
        "+++ project/.pegboard/tool/hello.py",
    ]
    assert difference[-1] == "+import os"


def test_a_new_file_asks_again_and_is_shown_whole(project: Project) -> None:
    project.allow()
    project.tool.with_name("other.py").write_text("x = 1\n")

    decision = project.decide()

    assert not decision.trusted
    assert project.store.difference(decision).splitlines()[-1] == "+x = 1"


def test_a_file_that_is_gone_asks_nothing(project: Project) -> None:
    other = project.tool.with_name("other.py")
    other.write_text("x = 1\n")
    project.allow()
    other.unlink()

    assert project.decide().trusted


def test_what_is_allowed_is_what_was_shown(project: Project) -> None:
    shown = project.decide()
    project.tool.write_text("import os; os.remove('all')\n")

    project.store.allow(shown)

    assert not project.decide().trusted
    assert shown.code[0].content == SOURCE.encode()


def test_the_user_s_word_for_this_time_is_not_stored(project: Project) -> None:
    decided = [
        project.store.decide(directory=project.root, worktree=project.root, answer=answer)
        for answer in (True, False)
    ]

    assert [decision.trusted for decision in decided] == [True, False]
    assert not project.path.exists()


def test_a_yes_to_a_decision_is_for_its_files_as_they_were(project: Project) -> None:
    def decided(answer: Decision) -> Decision:
        return project.store.decide(directory=project.root, worktree=project.root, answer=answer)

    shown = project.decide()
    same = decided(shown)
    project.tool.write_text("import os; os.remove('all')\n")
    changed = decided(shown)
    elsewhere = msgspec.structs.replace(project.decide(), root=project.root / "other")

    assert (same.trusted, changed.trusted, decided(elsewhere).trusted) == (True, False, False)
    assert (same.key == shown.key, changed.key == shown.key) == (True, False)
    assert changed.changed == (project.tool,)
    assert not project.path.exists()


def test_no_means_no_even_for_what_is_trusted(project: Project) -> None:
    project.allow()

    decision = project.store.decide(directory=project.root, worktree=project.root, answer=False)

    assert not decision.trusted


def test_trust_of_one_folder_covers_what_was_shown_there(project: Project) -> None:
    inner = project.root / "app"
    (inner / ".pegboard" / "tools").mkdir(parents=True)
    (inner / ".pegboard" / "tools" / "deploy.py").write_text("x = 1")
    project.allow()

    assert project.decide().trusted
    assert not project.decide(directory=inner).trusted

    project.store.allow(project.decide(directory=inner))

    assert project.decide().trusted
    assert project.decide(directory=inner).trusted


def test_a_link_to_the_project_is_the_project(project: Project, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project.root)
    project.allow()

    assert project.store.decide(directory=link, worktree=link).trusted


def test_files_of_the_configuration_and_the_plugins_they_name_belong_to_the_set(
    project: Project,
) -> None:
    config = project.root / "pegboard.toml"
    config.write_text("plugin_paths = ['plugs/one.py', 'more']")
    named = (project.root / "plugs" / "one.py", project.root / "more", project.root / "gone")
    for plugin in ("plugs/one.py", "more/two.py"):
        (project.root / plugin).parent.mkdir()
        (project.root / plugin).write_text("x = 1")

    decision = project.decide(config, plugin_paths=named)

    names = {path.name for path in decision.files}
    assert names == {"hello.py", "one.py", "two.py", "pegboard.toml"}
    project.store.allow(decision)
    (project.root / "more" / "two.py").write_text("x = 2")
    changed = project.decide(config, plugin_paths=named).changed
    assert changed == (project.root / "more" / "two.py",)


def test_revoking_forgets_the_project_and_its_copies(project: Project) -> None:
    project.allow()
    copies = project.path.parent / "trust-copies"
    assert len(list(copies.iterdir())) == 1

    assert project.store.revoke(project.root)
    assert not project.store.revoke(project.root)

    assert not project.decide().trusted
    assert list(copies.iterdir()) == []
    assert project.store.projects() == {}


def test_the_projects_are_listed_with_their_digests(project: Project) -> None:
    project.allow()

    ((root, trusted),) = project.store.projects().items()

    assert root == str(project.root)
    assert list(trusted.files) == [".pegboard/tool/hello.py"]
    assert trusted.allowed_at > 1_700_000_000_000


def test_only_the_user_can_read_the_store(project: Project) -> None:
    project.allow()

    files = [path for path in project.path.parent.rglob("*") if path.is_file()]

    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(project.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 9}', '{"version": 1, "projects": {"/x": 3}}', "\0"]
)
def test_a_damaged_store_is_set_aside_and_counts_as_empty(
    project: Project, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    project.allow()
    project.path.write_text(content)

    assert not project.decide().trusted
    [aside] = project.path.parent.glob("trust.json.damaged-*")
    assert aside.read_text() == content
    [message] = caplog.messages
    assert str(aside) in message

    project.allow()
    assert project.decide().trusted


def test_a_store_that_others_can_write_is_kept_beside_the_new_one(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.allow()
    content = project.path.read_text()
    project.path.chmod(0o666)

    assert not project.decide().trusted
    assert project.path.read_text() == content
    project.allow()

    assert project.decide().trusted
    [aside] = project.path.parent.glob("trust.json.damaged-*")
    assert aside.read_text() == content
    assert "can be written by others" in caplog.text


def test_processes_that_allow_at_once_lose_nothing(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "state" / "trust.json")
    projects = []
    for number in range(8):
        (tmp_path / str(number)).mkdir()
        projects.append(Project(tmp_path / str(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: store.allow(each.decide()), projects))

    assert len(store.projects()) == 8


def test_a_store_that_cannot_be_written_says_so(project: Project) -> None:
    project.path.parent.write_text("a file where the folder should be")

    with pytest.raises(TrustError, match="cannot be written"):
        project.allow()


def test_a_lock_file_that_the_user_trusts_is_trusted(project: Project) -> None:
    lock = project.root / ".pegboard" / "trust.lock"
    write_lock(project.decide(), lock)

    def locked() -> Decision:
        return project.store.decide(
            directory=project.root, worktree=project.root, lock=Path(".pegboard/trust.lock")
        )

    assert not project.decide().trusted
    assert locked().trusted
    project.tool.write_text("x = 2")
    assert not locked().trusted


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_store_that_others_may_write_counts_as_empty(project: Project, mode: int) -> None:
    project.allow()
    project.path.chmod(mode)

    assert not project.decide().trusted
    project.allow()
    assert project.decide().trusted


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_store_of_somebody_else_counts_as_empty(project: Project) -> None:
    project.allow()
    os.chown(project.path, 12345, -1)

    assert not project.decide().trusted


@pytest.mark.parametrize("content", [None, "{", json.dumps({"files": 3})])
def test_a_lock_file_that_cannot_be_used_is_an_error(project: Project, content: str | None) -> None:
    lock = project.root / "lock"
    if content is not None:
        lock.write_text(content)

    with pytest.raises(TrustError, match="cannot be used"):
        project.store.decide(directory=project.root, worktree=project.root, lock=lock)


def test_a_lock_file_that_is_a_link_of_the_project_s_is_not_followed(project: Project) -> None:
    precious = project.root.parent / "precious"
    precious.write_text("mine")
    lock = project.root / ".pegboard" / "trust.lock"
    lock.symlink_to(precious)

    write_lock(project.decide(), lock)

    assert (precious.read_text(), lock.is_symlink()) == ("mine", False)


def test_a_lock_file_that_cannot_be_written_is_an_error(project: Project) -> None:
    with pytest.raises(TrustError, match="cannot be written"):
        write_lock(project.decide(), project.root / "missing" / "lock")


def test_each_python_file_is_scanned(project: Project) -> None:
    project.tool.write_text("import os\nos.system('ls')\n")

    reports = scans_of(project.decide())

    assert reports[project.tool].imports == ("os",)
    assert "os.system" in reports[project.tool].findings[0].what
