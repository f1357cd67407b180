"""Which files of a project programs act on by themselves, and which are ordinary work."""

from pathlib import Path

import pytest

from pegboard.files.protection import (
    TABLE,
    autorun_files,
    autorun_reason,
    holds_autorun,
    instructs,
)

ACTED_ON = """
.git/config sub/.git/hooks/x .GIT/config .hg/hgrc .gitmodules .gitconfig .pegboard/tool/x.py
pegboard.toml opencode.jsonc .vscode/tasks.json .vscode/mcp.json a/.vscode/settings.json
pegboard.code-workspace .idea/workspace.xml .idea/runConfigurations/x.xml .run/a.run.xml
.zed/tasks.json .helix/languages.toml .nvim.lua .exrc .dir-locals.el .mcp.json .cursor/mcp.json
.cursor/hooks.json .claude/settings.json .claude/settings.local.json .claude/hooks/x.sh
.claude/commands/x.md .claude/agents/x.md .gemini/settings.json .codex/config.toml .aider.conf.yml
.agents/skills/x/SKILL.md
.devcontainer/devcontainer.json .devcontainer.json .gitpod.yml .husky/pre-commit .husky/_/husky.sh
.pre-commit-config.yaml lefthook.yml .lefthook/pre-commit/x.sh .githooks/pre-push .envrc mise.toml
.mise.local.toml .config/mise/config.toml .autoenv.zsh .venv/lib/python3.11/site-packages/x.pth
.venv/lib/python3.11/site-packages/sitecustomize.py env/lib/python3.11/site-packages/requests/api.py
sitecustomize.py src/usercustomize.py .venv/bin/ruff node_modules/.bin/eslint .pdbrc .Rprofile
.npmrc web/.npmrc .yarnrc.yml .yarn/releases/yarn.cjs .pnpmfile.cjs bunfig.toml pip.conf
.cargo/config.toml rust-toolchain.toml gradlew gradle/wrapper/gradle-wrapper.jar .mvn/extensions.xml
.bazelrc tools/bazel node_modules/x/package.json
"""
ORDINARY = """
src/main.py conftest.py tests/conftest.py setup.py pyproject.toml package.json package-lock.json
Makefile Dockerfile docker-compose.yml justfile build.gradle Cargo.toml .gitignore .gitattributes
.github/workflows/ci.yml .gitlab-ci.yml .editorconfig .tool-versions .python-version README.md
CLAUDE.md AGENTS.md eslint.config.js .eslintrc.json .prettierrc vite.config.ts models/best.pth
docs/git/index.md src/vscode/tasks.json tasks.json settings.json src/node_modules.py venv.py
node_modules .venv Lib/venv/__init__.py husky.md src/idea/x.py gradle/libs.versions.toml
gradle.properties config/mise.md tools/x.sh .claude/notes.md .env.example
"""


@pytest.mark.parametrize("path", ACTED_ON.split())
def test_what_programs_act_on_by_themselves_has_a_reason(path: str) -> None:
    assert autorun_reason(path)


@pytest.mark.parametrize("path", ORDINARY.split())
def test_ordinary_work_has_none(path: str) -> None:
    assert autorun_reason(path) is None


@pytest.mark.parametrize(
    "folder", [".cargo", "gradle", ".claude", ".yarn", "web/.cargo", ".config", ".CLAUDE"]
)
def test_a_folder_that_may_bring_such_a_file_is_one_too(folder: str) -> None:
    assert holds_autorun(folder)


@pytest.mark.parametrize("folder", ["src", "node_modules", ".venv", "docs/claude", "config"])
def test_another_folder_is_not(folder: str) -> None:
    assert not holds_autorun(folder)


def test_each_row_has_a_source_and_patterns_that_fit() -> None:
    patterns = [pattern for row in TABLE for pattern in row.patterns]

    assert all(row.why and row.source for row in TABLE)
    assert len(set(patterns)) == len(patterns)
    assert [each for each in patterns if each != each.lower()] == []
    fitting = (each.replace("/**", "/x").replace("*", "x") for each in patterns)
    assert [each for each in fitting if autorun_reason(each) is None] == []


def test_those_at_the_root_are_listed_without_packages_and_links(tmp_path: Path) -> None:
    for name in (".husky/pre-commit", ".venv/x", "node_modules/x", "sub/.npmrc", ".npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".cursor").symlink_to(".husky")

    assert set(autorun_files(tmp_path)) == {tmp_path / ".husky", tmp_path / ".npmrc"}


@pytest.mark.parametrize(
    ("name", "entries", "expected"),
    [
        ("AGENTS.md", (), True),
        ("sub/CLAUDE.md", (), True),
        (".agents/skills/tea/SKILL.md", (), True),
        ("README.md", (), False),
        ("docs/rules.md", ("docs/*.md",), True),
        ("sub/docs/a/rules.md", ("docs/**/*.md",), True),
        ("docs/rules.md", ("/project/docs/rules.md",), True),
        ("docs/rules.md", ("/project/docs/*.md",), True),
        ("docs/rules.rst", ("docs/*.md",), False),
        ("docs/rules.md", ("[",), False),
    ],
)
def test_documents_are_instruction_files_skills_and_what_the_configuration_names(
    name: str, entries: tuple[str, ...], *, expected: bool
) -> None:
    assert instructs(Path("/project", name), entries) is expected
