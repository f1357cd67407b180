"""The paths that tools may not change unasked, such as files that programs run by themselves.

`TABLE` lists these files, each with the documentation that says so. A file is in the table if a
program acts on it without an explicit command. This happens when an editor, a shell or another
agent opens the folder, when git commits, when an interpreter or a package manager starts, or
because an installed program loads it.

Files that a user runs by name are not in the table: build scripts, tests, `conftest.py`,
`package.json`, linter configuration that is code, and CI workflows, which run after a push. Nor are
files that only select something defined elsewhere: `.gitattributes`, `.tool-versions`,
`.editorconfig`.
"""

import re
from collections.abc import Iterable, Set
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple

from pegboard.errors import InvalidInputError


class Risk(NamedTuple):
    """A reason for protection, the patterns of its files, and the documentation that confirms it.

    A pattern is the lower-case end of a path in any folder; `*` matches any characters except `/`.
    A pattern that ends in `/` is a folder with its content. One that ends in `/**` is the content
    without the folder.
    """

    why: str
    patterns: tuple[str, ...]
    source: str


_EDITOR = "an editor runs what it says"
_AGENT = "another agent runs what it says"
_BOX = "an editor or a service builds and starts what it says"
_HOOK = "git runs it at a commit"
_SHELL = "a shell runs it when somebody enters the folder"
_STARTS = "an interpreter or a debugger runs it when it starts"
_INSTALLED = "it belongs to an installed package, which programs load"
_PACKAGES = "it decides what a package manager runs, and where packages come from"
_BUILD = "a build tool runs what it says, also for an editor"

TABLE = (
    Risk("git runs what stands there", (".git/",), "git-scm.com/docs/githooks"),
    Risk("it runs what stands there", (".hg/", ".jj/", ".sl/"), "mercurial: hgrc(5), hooks"),
    Risk(
        "it decides what Pegboard and others run in this project",
        (".pegboard/", ".opencode/", "pegboard.toml", "opencode.json", "opencode.jsonc"),
        "docs/how-to/trust-a-project.md",
    ),
    Risk("git fetches and runs what it says", (".gitmodules", ".gitconfig"), "git: gitmodules(5)"),
    Risk(
        _EDITOR, (".vscode/", "*.code-workspace"), "code.visualstudio.com: workspace trust, tasks"
    ),
    Risk(
        _EDITOR, (".idea/", ".run/*.run.xml", ".fleet/"), "jetbrains.com: startup tasks, watchers"
    ),
    Risk(_EDITOR, (".zed/", ".helix/", ".nova/", ".vs/"), "zed.dev, docs.helix-editor.com"),
    Risk(_EDITOR, (".externaltoolbuilders/",), "help.eclipse.org: external tools"),
    Risk(_EDITOR, (".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".lvimrc"), "vimhelp.org: 'exrc'"),
    Risk(_EDITOR, (".dir-locals.el", ".dir-locals-2.el"), "gnu.org/emacs: directory variables"),
    Risk(_AGENT, (".mcp.json",), "modelcontextprotocol.io: server configurations"),
    Risk(
        _AGENT,
        (
            *(".claude/settings*.json", ".claude/hooks/", ".claude/commands/"),
            *(".claude/agents/", ".claude/skills/", ".claude/plugins/"),
        ),
        "code.claude.com/docs: settings, hooks, skills",
    ),
    Risk(
        _AGENT,
        (".cursor/", ".windsurf/", ".continue/", ".kiro/", ".roo/", ".junie/", ".amazonq/"),
        "cursor.com/docs: mcp.json, hooks; the others likewise",
    ),
    Risk(_AGENT, (".gemini/", ".codex/", ".qwen/", ".goose/"), "each one's settings: mcpServers"),
    Risk(_AGENT, (".agents/",), "agentskills.io: skills of a project"),
    Risk(
        _AGENT, (".aider.conf.yml", ".crush.json", "crush.json"), "aider.chat: lint-cmd, test-cmd"
    ),
    Risk(_BOX, (".devcontainer/", ".devcontainer.json"), "containers.dev: initializeCommand"),
    Risk(_BOX, (".gitpod.yml", ".idx/", ".replit"), "gitpod.io, firebase.google.com, replit.com"),
    Risk(_HOOK, (".husky/", ".githooks/", ".git-hooks/"), "typicode.github.io/husky"),
    Risk(_HOOK, (".pre-commit-config.y*ml",), "pre-commit.com"),
    Risk(
        _HOOK,
        (
            *("lefthook.y*ml", ".lefthook.y*ml", "lefthook-local.y*ml", ".lefthook-local.y*ml"),
            *("lefthook.toml", "lefthook.json", ".lefthook/", ".lefthook-local/"),
        ),
        "lefthook.dev",
    ),
    Risk(_HOOK, (".overcommit.yml", ".lintstagedrc*", ".simple-git-hooks.*"), "each one's README"),
    Risk(_SHELL, (".envrc", ".autoenv*", ".shadowenv.d/"), "direnv.net"),
    Risk(
        _SHELL,
        (
            *("mise.toml", ".mise.toml", "mise.*.toml", ".mise.*.toml", ".rtx.toml"),
            *("mise/config*.toml", ".mise/", ".config/mise.toml", ".config/mise/"),
        ),
        "mise.jdx.dev: hooks, env._.source",
    ),
    Risk(_STARTS, ("sitecustomize.py", "usercustomize.py"), "docs.python.org: site"),
    Risk(_STARTS, (".pdbrc", ".gdbinit", ".lldbinit"), "docs.python.org: pdb; gdb: auto-load"),
    Risk(_STARTS, (".rprofile", ".renviron", "renv/activate.r"), "R: Startup"),
    Risk(_STARTS, (".irbrc", ".pryrc", ".iex.exs", ".ghci", ".ocamlinit"), "each one's manual"),
    Risk(
        _INSTALLED,
        ("site-packages/**", ".venv/**", "venv/bin/**", "pyvenv.cfg"),
        "docs.python.org: site, venv",
    ),
    Risk(_INSTALLED, ("node_modules/**", ".pnp.cjs", ".pnp.loader.mjs"), "nodejs.org: modules"),
    Risk(
        _PACKAGES,
        (
            *(".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases/", ".yarn/plugins/"),
            *(".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", "bunfig.toml"),
        ),
        "docs.npmjs.com, yarnpkg.com: yarnPath, pnpm.io: pnpmfile, bun.sh: preload",
    ),
    Risk(_PACKAGES, ("pip.conf", "pip.ini", ".bundle/config", "nuget.config"), "pip.pypa.io"),
    Risk(
        _BUILD,
        (".cargo/config", ".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml"),
        "doc.rust-lang.org/cargo: runner, rustc-wrapper; rustup: toolchain.path",
    ),
    Risk(
        _BUILD,
        ("gradlew", "gradlew.bat", "gradle/wrapper/", "mvnw", "mvnw.cmd", ".mvn/"),
        "docs.gradle.org: wrapper; maven.apache.org: extensions",
    ),
    Risk(_BUILD, (".bazelrc", ".bazeliskrc", "tools/bazel"), "bazel.build: bazelrc, bazelisk"),
)


def autorun_reason(path: str) -> str | None:
    """Return why a program acts by itself on this file of a project, or None if no program does."""
    wanted = path.lower()  # some disks ignore case
    if not _any().search(wanted):
        return None
    return next(row.why for row in TABLE if _of_row(row).search(wanted))


def holds_autorun(path: str) -> bool:
    """Return whether a folder at this path of a project may contain a file of `TABLE`."""
    return _above().search(path.lower()) is not None


def autorun_files(root: Path) -> tuple[Path, ...]:
    """Return the paths below a project's root that exist and match `TABLE`.

    Installed packages and symbolic links are left out. Only a few folders are listed.
    """
    patterns = (each for row in TABLE if row.why != _INSTALLED for each in row.patterns)
    found = (path for pattern in patterns for path in root.glob(pattern.rstrip("/")))
    return tuple(path for path in found if not path.is_symlink())


@cache
def _any() -> re.Pattern[str]:
    return _compiled(tuple(each for row in TABLE for each in row.patterns))


@cache
def _of_row(row: Risk) -> re.Pattern[str]:
    return _compiled(row.patterns)


@cache
def _above() -> re.Pattern[str]:
    """Compile an expression for all folders that contain a pattern's path, and their parents."""
    named = (each for row in TABLE for each in row.patterns if not each.endswith("/**"))
    ways = (pattern.rstrip("/").split("/") for pattern in named)
    folders = {"/".join(way[:end]) for way in ways for end in range(1, len(way))}
    return _compiled(tuple(sorted(folders)))


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:^|/)(?:{'|'.join(map(_expression, patterns))})\Z", re.DOTALL)


def _expression(pattern: str) -> str:
    inside = pattern.endswith("/**")
    folder = pattern.endswith("/")
    text = re.escape(pattern.removesuffix("/**").removesuffix("/")).replace(r"\*", "[^/]*")
    return f"{text}/.+" if inside else f"{text}(?:/.*)?" if folder else text


_TOOL_FOLDERS = frozenset({"tool", "tools", "plugin", "plugins"})
_HELD = "hello.py"
"""A file that is protected in a folder of tools, and in no other folder."""
_HOME_FILES = re.compile(
    r"\.(bash|zsh|ksh|csh|tcsh|mksh)\w*|\.(profile|login|logout|zprofile|zlogin|kshrc|inputrc)"
    r"|\.(vimrc|exrc|gitconfig|npmrc|yarnrc|pypirc|netrc|pythonrc|Rprofile|xprofile|xsession\w*"
    r"|xinitrc|pam_environment|curlrc|wgetrc|gdbinit|screenrc|tmux\.conf|hgrc|lldbinit)"
)
_HOME_FOLDERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".config/fish",
    ".config/git",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/pegboard",
    ".local/share/pegboard",
    ".local/state/pegboard",
    ".pegboard",
    ".oh-my-zsh",
    "Library/LaunchAgents",
)
_HOME_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".oci"),
    *(".netrc", "_netrc", ".git-credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass"),
    *(".my.cnf", ".vault-token", ".terraform.d", ".boto", ".s3cfg", ".databrickscfg"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"),
    *(".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".composer/auth.json"),
    *(".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op"),
    *(".config/git/credentials", ".config/doctl", ".config/containers/auth.json"),
    *(".config/google-chrome", ".config/chromium", ".mozilla", ".thunderbird"),
    *(".local/share/keyrings", ".local/share/opencode/auth.json", ".claude", ".codex"),
    *("Library/Keychains", ".bash_history", ".zsh_history", ".python_history"),
    *(".psql_history", ".mysql_history", ".node_repl_history"),
)


def protected_path(
    path: Path,
    *,
    worktree: Path,
    home: Path,
    private: Iterable[Path] = (),
    changed: Set[Path] = frozenset(),
) -> str | None:
    """Return why changing this path could later run code or change permissions, else None.

    `path` is absolute and resolved, and need not exist. `private` are paths of Pegboard itself and
    of git. `changed` are the paths that are created at the same time, and their parents.

    Protected are the paths in `private`, files that programs run or obey by themselves (`TABLE`),
    the project's tools, keys, and git repositories of any name. Outside of the project, folders
    that contain such files are protected too.
    """
    for place in private:
        if path.is_relative_to(place):
            return "it belongs to Pegboard or git itself"
        if place.is_relative_to(path) and not _holds_all(path, worktree, home):
            return f"it holds {place}, which belongs to Pegboard or git itself"
    if folder := _repository(path, worktree, changed):
        return f"git takes {folder} for a repository, and runs what its config says"
    if path.is_relative_to(worktree):
        return _in_project(path.relative_to(worktree).parts)
    if path.is_relative_to(home):
        return _in_home(path.relative_to(home))
    return autorun_reason(str(path))


def protected_folder(
    path: Path,
    *,
    worktree: Path,
    home: Path,
    private: Iterable[Path] = (),
    changed: Set[Path] = frozenset(),
) -> str | None:
    """Return why changing a folder or link at this path, or files in it, is protected, else None.

    The arguments are the same as for `protected_path`.
    """
    places = tuple(private)
    reasons = (
        protected_path(each, worktree=worktree, home=home, private=places, changed=changed)
        for each in (path, path / _HELD)
    )
    if found := next((reason for reason in reasons if reason), None):
        return found
    below = path.relative_to(worktree) if path.is_relative_to(worktree) else path
    return "programs run what may stand there" if holds_autorun(str(below)) else None


def home_secrets(home: Path) -> tuple[Path, ...]:
    """Return the paths below a home folder that usually hold keys, logins or input histories."""
    return tuple(home / name for name in _HOME_SECRETS)


def _repository(path: Path, worktree: Path, changed: Set[Path]) -> Path | None:
    """Return the folder around `path` that git would take for a repository without `.git`, or None.

    Source: is_git_directory in git's setup.c: a HEAD, and objects with refs or a commondir.
    """
    below = path
    for folder in path.parents:

        def has(name: str, folder: Path = folder, below: Path = below) -> bool:
            is_here = below.name.lower() == name.lower()  # some disks ignore case
            return is_here or folder / name in changed or (folder / name).exists()

        is_one = has("HEAD") and ((has("objects") and has("refs")) or has("commondir"))
        if is_one and not (folder / ".git").exists():
            return folder
        if folder == worktree:  # which may stand in a repository that is called otherwise
            return None
        below = folder
    return None


def _holds_all(path: Path, worktree: Path, home: Path) -> bool:
    """Return whether the path is, or contains, the whole project or the home folder."""
    return worktree.is_relative_to(path) or home.is_relative_to(path)


def _in_project(parts: tuple[str, ...]) -> str | None:
    if reason := autorun_reason("/".join(parts)):
        return reason
    lower = tuple(part.lower() for part in parts)  # some disks ignore case
    is_tool = len(lower) == len(("tool", "hello.py")) and lower[0] in _TOOL_FOLDERS
    if is_tool and lower[1].endswith(".py"):
        return "Pegboard may load it as a tool"
    return None


def _in_home(path: Path) -> str | None:
    if len(path.parts) == 1 and _HOME_FILES.fullmatch(path.name):
        return "a program runs it when it starts"
    above = any(Path(folder).is_relative_to(path) for folder in _HOME_FOLDERS)
    if (above and path.parts) or any(path.is_relative_to(folder) for folder in _HOME_FOLDERS):
        return "it decides what may log in, or what runs at a start"
    return autorun_reason(str(path))


_DOCUMENTS = frozenset(
    {
        *("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "CONTEXT.md", "GEMINI.md", "SKILL.md"),
        *("copilot-instructions.md", ".cursorrules", ".windsurfrules"),
    }
)
_RULE_FOLDERS = ((".claude", "rules"), (".cursor", "rules"))


def instructs(path: Path, entries: Iterable[str] = ()) -> bool:
    """Return whether sessions may read the file at `path` as instructions for the model.

    `entries` are the `instructions` of the configuration: paths and patterns. Relative ones may
    match in any folder of the project.
    """
    is_rule = any(pair in _RULE_FOLDERS for pair in pairwise(path.parts))
    return is_rule or path.name in _DOCUMENTS or any(_fits(path, entry) for entry in entries)


@lru_cache(maxsize=128)
def imported_documents(session_id: str) -> set[Path]:  # noqa: ARG001 - the key
    """Return the paths that a session's instruction files import, also paths that do not exist.

    Changing such a file changes instructions. The set belongs to the session, and callers add to
    it.
    """
    return set()


def _fits(path: Path, entry: str) -> bool:
    if PurePath(entry).is_absolute():
        return path == Path(entry) or path.match(entry)
    from pegboard.files.globs import glob_expression  # where the configuration names documents

    try:
        expression = glob_expression(entry)
    except InvalidInputError:
        return False
    tails = ("/".join(path.parts[start:]) for start in range(1, len(path.parts)))
    return any(expression.fullmatch(tail) for tail in tails)
