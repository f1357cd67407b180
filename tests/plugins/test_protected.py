"""What is secret is not read, and what runs by itself is not changed, by any tool of a real App.

The user has allowed everything, and nobody is there to be asked.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pegboard.schema.model import Model, ModelApi
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard_plugins.shared.frontend import mentioned
from support.models.played import HI, Played, call, calls, opened, text, tools_of

SECRET = "the-content-that-nobody-may-see"
MODELS = {"edit": "m", "apply_patch": "gpt-5"}
CONFIG = {
    "model": "played/m",
    "permission": "allow",
    "plugins": {"batch": {}, "multiedit": {}, "list": {}},
}
Call = tuple[str, dict[str, Any]]


async def outcomes(folder: Path, *wanted: Call, model: str = "m", **options: Any) -> list[ToolPart]:
    """The parts of these calls, in their order, those that a batch has made at the end."""
    made = [
        call(name, json.dumps(args), call_id=f"call_{number}")
        for number, (name, args) in enumerate(wanted)
    ]
    played = Model(id="m", provider_id="played", name="M", api=ModelApi(id=model))
    provider = Played(calls(*made), text("done"), model=played)
    chosen = {"builtins": True, "allow": False, "config": CONFIG} | options
    async with opened(folder, provider, **chosen) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        return tools_of(await app.list_turns(session.id))


def shown(part: ToolPart) -> str:
    match part.state:
        case Completed(output=output):
            return output
        case Failed(error=error):
            return error
        case _:
            raise AssertionError(part)


def failed(parts: list[ToolPart]) -> list[bool]:
    return [isinstance(part.state, Failed) for part in parts]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with secrets, by their own names and by others."""
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    for name in (".env", ".env.local", "server.pem", "sub/credentials.json", "ID_RSA"):
        (folder / name).write_text(f"KEY={SECRET}\n")
    (folder / "plain.txt").symlink_to(".env")
    (folder / "way").symlink_to("sub")
    (folder / "notes.txt").write_text("KEY=nothing\n")
    return folder


READS: list[Call] = [
    ("read", {"filePath": ".env"}),
    ("read", {"filePath": "sub/../.env.local"}),
    ("read", {"filePath": "server.pem"}),
    ("read", {"filePath": "plain.txt"}),
    ("read", {"filePath": "way/credentials.json"}),
    ("read", {"filePath": "ID_RSA"}),
    ("bash", {"command": "cat .env"}),
    ("bash", {"command": "cat < server.pem"}),
    ("bash", {"command": "cat plain.txt"}),
    ("bash", {"command": "cat .e*"}),
    ("bash", {"command": "cat ./sub/cred*.json"}),
    ("bash", {"command": "F=.env; cat $F"}),
    ("bash", {"command": "cd sub && base64 credentials.json"}),
    ("bash", {"command": "sh -c 'head -1 .env'"}),
    ("bash", {"command": "ln .env other && cat other"}),
    ("bash", {"command": "cp .env other && cat other"}),
    ("bash", {"command": "mv .env other && cat other"}),
    ("bash", {"command": "cat /proc/self/environ"}),
    ("edit", {"filePath": ".env", "oldString": "KEY", "newString": "KEY"}),
    ("multiedit", {"filePath": ".env", "edits": [{"oldString": "K", "newString": "J"}]}),
    ("write", {"filePath": ".env", "content": "KEY=1"}),
]


OF_PROCESSES: list[Call] = [
    *(("bash", {"command": f"cat /proc/1/{name}"}) for name in ("cmdline", "fd/0", "maps")),
    *(
        ("read", {"filePath": f"/proc/{name}"})
        for name in ("self/environ", "1/environ", "self/task/1/environ", "self/cmdline")
    ),
    *(("read", {"filePath": f"/proc/self/{name}"}) for name in ("maps", "smaps", "mem", "fd/0")),
]


async def test_no_tool_tells_of_a_process(tmp_path: Path, project: Path) -> None:
    parts = await outcomes(tmp_path, *OF_PROCESSES)

    assert failed(parts) == [True] * len(OF_PROCESSES)


async def test_no_tool_reads_a_secret(tmp_path: Path, project: Path) -> None:
    *parts, free = await outcomes(tmp_path, *READS, ("read", {"filePath": "notes.txt"}))

    assert "KEY=nothing" in shown(free)
    assert [part.tool for part in parts] == [name for name, _ in READS]
    assert failed(parts) == [True] * len(READS)
    assert not any(SECRET in shown(part) for part in parts)
    assert not (project / "other").exists()


async def test_no_patch_reads_a_secret(tmp_path: Path, project: Path) -> None:
    pieces = ("*** Update File: .env\n@@\n-KEY\n+KEYS", "*** Delete File: server.pem")
    patches = [f"*** Begin Patch\n{piece}\n*** End Patch" for piece in pieces]

    parts = await outcomes(
        tmp_path, *[("apply_patch", {"patchText": patch}) for patch in patches], model="gpt-5"
    )

    assert failed(parts) == [True, True]
    assert not any(SECRET in shown(part) for part in parts)
    assert (project / "server.pem").exists()


async def test_a_batch_reads_no_secret_either(tmp_path: Path, project: Path) -> None:
    wanted = [{"tool": name, "parameters": args} for name, args in READS]

    whole, *parts = await outcomes(tmp_path, ("batch", {"tool_calls": wanted}))

    assert failed(parts) == [True] * len(READS)
    assert not any(SECRET in shown(part) for part in (whole, *parts))


async def test_searches_and_listings_leave_secrets_out(tmp_path: Path, project: Path) -> None:
    parts = await outcomes(
        tmp_path,
        ("grep", {"pattern": "KEY"}),
        ("grep", {"pattern": "KEY", "path": ".env"}),
        ("glob", {"pattern": "**/*"}),
        ("glob", {"pattern": ".env*"}),
        ("list", {}),
        ("read", {"filePath": "."}),
    )

    texts = [shown(part) for part in parts]
    assert not any(SECRET in each for each in texts)
    assert [name in each for name in (".env", "server.pem") for each in texts[2:]] == [False] * 8
    assert ["notes.txt" in each for each in texts] == [True, False, True, False, True, True]
    assert "(5 that look like secrets are left out: read would ask)" in texts[2]


async def test_a_search_does_not_tell_what_pegboard_itself_was_given(
    tmp_path: Path, project: Path
) -> None:
    (part,) = await outcomes(tmp_path, ("grep", {"pattern": ".", "path": "/proc/self/environ"}))

    assert "PATH=" not in shown(part)


async def test_a_rule_about_the_file_opens_it_for_reading_and_listing(
    tmp_path: Path, project: Path
) -> None:
    rules = {"*": "allow", "read": {"*/project/.env": "allow"}}

    parts = await outcomes(
        tmp_path,
        ("read", {"filePath": ".env"}),
        ("grep", {"pattern": "KEY"}),
        ("glob", {"pattern": ".env*"}),
        ("bash", {"command": "cat .env"}),
        config=CONFIG | {"permission": rules},
    )

    assert [SECRET in shown(part) for part in parts] == [True, True, False, True]
    assert shown(parts[2]).splitlines()[0] == str(project / ".env")


async def test_a_mention_of_a_secret_attaches_nothing(tmp_path: Path, project: Path) -> None:
    options = {"builtins": True, "allow": False, "config": CONFIG}
    async with opened(tmp_path, Played(text("x")), **options) as app:
        session = await app.create_session()
        parts = await mentioned(app, session.id, "@server.pem @plain.txt @notes.txt")

    kinds = [type(part).__name__ for part in parts]
    assert kinds == ["TextInput", "TextInput", "FileInput"]


async def test_what_a_model_mentions_is_not_attached(tmp_path: Path, project: Path) -> None:
    asks = {"description": "x", "prompt": "see @notes.txt @.env", "subagent_type": "general"}
    answers = (calls(call("task", json.dumps(asks))), text("I looked at @notes.txt and @.env"))
    provider = Played(*answers)
    options: dict[str, Any] = {"builtins": True, "allow": False, "config": CONFIG}
    async with opened(tmp_path, provider, **options) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.prompt(session.id, HI)

    assert len(provider.requests) == 4
    sent = "".join(str(request.messages) for request in provider.requests)
    assert ("@notes.txt" in sent, "KEY=nothing" in sent, SECRET in sent) == (True, False, False)


def tree(folder: Path) -> dict[str, str]:
    """What is below the folder, but for what an App itself keeps there."""
    own = ("data/", "cache/", "state/audit")
    (folder / "state").mkdir(exist_ok=True)
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: path.read_text(errors="replace") if path.is_file() else ""
        for name, path in names.items()
        if not f"{name}/".startswith(own)
    }


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def separate(folder: Path) -> Path:
    """A project whose git folder is elsewhere, under a name that says nothing."""
    git(folder, "init", "-q", f"--separate-git-dir={folder / 'store'}", "project")
    return folder / "store"


def linked(folder: Path) -> Path:
    """A project that is a linked worktree."""
    git(folder, "init", "-q", "main")
    git(folder / "main", "commit", "-q", "--allow-empty", "-m", "start")
    git(folder / "main", "worktree", "add", "-q", str(folder / "project"))
    return folder / "main/.git/worktrees/project"


def plain(folder: Path) -> Path:
    git(folder, "init", "-q", "project")
    return folder / "project/.git"


@pytest.mark.parametrize("make", [plain, separate, linked])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
async def test_no_tool_changes_what_runs_by_itself(tmp_path: Path, make: Any, model: str) -> None:
    git_dir = make(tmp_path)
    project = tmp_path / "project"
    (project / "evil").mkdir()
    (project / "evil/x.py").write_text("from pegboard import tool\n")
    (tmp_path / ".bashrc").write_text("# mine\n")
    (tmp_path / "config").mkdir()
    targets = [
        *(git_dir / "hooks/post-checkout", git_dir / "config", project / ".pegboard/tool/x.py"),
        *(tmp_path / "config/pegboard.toml", tmp_path / "state/trust.json", tmp_path / ".bashrc"),
        *(project / "tool/x.py", project / "pegboard.toml", project / ".vscode/tasks.json"),
        *(tmp_path / "data/pegboard.db", project / ".git", project / ".opencode/opencode.json"),
        *(tmp_path / ".ssh/authorized_keys", tmp_path / "cache/x", project / ".PEGBOARD/x"),
        *(project / ".cursor/mcp.json", project / ".husky/pre-commit", project / ".npmrc"),
        *(project / ".venv/lib/python3.11/site-packages/x.pth", tmp_path / "other/.idea/x.xml"),
    ]
    before = tree(tmp_path)

    wanted = [attempt for target in targets for attempt in attempts(target, model)]
    *parts, free = await outcomes(tmp_path, *wanted, *FREE[model], model=model)

    assert isinstance(free.state, Completed)
    (project / "free.txt").unlink()
    assert [wanted[number] for number, state in enumerate(failed(parts)) if not state] == []
    assert tree(tmp_path) == before


FREE: dict[str, list[Call]] = {
    "m": [("write", {"filePath": "free.txt", "content": "x"})],
    "gpt-5": [
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Add File: free.txt\n+x\n*** End Patch"})
    ],
}


def attempts(target: Path, model: str) -> list[Call]:
    """The ways to change a path, or to bring something about there."""
    if model == MODELS["apply_patch"]:
        ways = (f"*** Add File: {target}\n+x", f"*** Add File: {target.parent}/new\n+x")
        return [
            ("apply_patch", {"patchText": f"*** Begin Patch\n{way}\n*** End Patch"})
            for way in ways[: 1 + (target.parent.name in ("hooks", "config", "state"))]
        ]
    commands = (
        f"echo x > {target}",
        f"echo x | tee -a {target}",
        f"cp evil/x.py {target}",
        f"ln -s evil {target}",
        f"mv evil {target}",
        f"sh -c 'echo x >> {target}'",
        f"rm -f {target}",
        f"chmod 777 {target}",
    )
    return [
        ("write", {"filePath": str(target), "content": "x"}),
        ("edit", {"filePath": str(target), "oldString": "", "newString": "x"}),
        ("multiedit", {"filePath": str(target), "edits": [{"oldString": "", "newString": "x"}]}),
        *(("bash", {"command": command}) for command in commands),
    ]
