"""How many words of a command name what it does: `git log -n 3` is a `git log`."""

import re
from collections.abc import Sequence
from itertools import takewhile

_WORDS = {
    **dict.fromkeys(
        (
            *("ant", "apt", "apt-get", "brew", "bun", "bundle", "cargo", "cmake", "composer"),
            *("conda", "deno", "docker", "dotnet", "flutter", "gem", "git", "go", "gradle"),
            *("helm", "hg", "just", "kubectl", "make", "mix", "mvn", "ninja", "nix", "npm"),
            *("nx", "pip", "pip3", "pnpm", "podman", "poetry", "rails", "rake", "rustup"),
            *("swift", "systemctl", "terraform", "tox", "turbo", "uv", "yarn", "zig"),
        ),
        2,
    ),
    **dict.fromkeys(
        (
            *("aws", "az", "bun run", "cargo run", "docker compose", "gcloud", "gh", "git bisect"),
            *("git config", "git remote", "git stash", "git submodule", "git worktree"),
            *("npm exec", "npm run", "pnpm exec", "pnpm run", "podman compose", "poetry run"),
            *("uv pip", "uv run", "uv tool", "yarn run"),
        ),
        3,
    ),
}


_PLAIN = {"git": ("--no-pager", "--no-optional-locks")}
"""Options before the words that change nothing of what the command does."""
_MODULES = frozenset(
    {
        *("pytest", "unittest", "doctest", "mypy", "pyright", "ruff", "black", "isort", "flake8"),
        *("pylint", "tox", "nox", "build", "compileall"),
    }
)
"""Modules of Python that test, check or build a project."""


def module(argv: Sequence[str]) -> str:
    """The module of Python that a command runs, if it is one that works on a project."""
    name = argv[0].rpartition("/")[2]
    is_python = name.rstrip("0123456789.") == "python" and argv[1:2] in (["-m"], ("-m",))
    return argv[2] if is_python and len(argv) > len("-m") and argv[2] in _MODULES else ""


def prefix(argv: Sequence[str]) -> str:
    """The words that identify the command, one for those that we know nothing of.

    Empty where an option stands among them, as in `git -C src push`: it says nothing of the act;
    and a wildcard, as in `npm run '*'`: in a rule it would fit other acts.
    """
    if name := module(argv):
        return f"{argv[0]} -m {name}"
    plain = sum(1 for _ in takewhile(_PLAIN.get(argv[0], ()).__contains__, argv[1:]))
    words = [argv[0], *argv[1 + plain :]]
    count = _WORDS.get(" ".join(words[:2])) or _WORDS.get(argv[0], 1)
    is_act = not any(re.search(r"^-|[*?]", word) for word in words[:count])
    return " ".join(argv[: plain + count]) if is_act else ""
