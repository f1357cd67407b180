"""The built-in sandboxes at work: what is possible inside, and runs of the whole engine."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from enclosed import BOXES, KINDS, LIMIT_S, SECRET, USERS, Surroundings, attempt, site
from pegboard import App, ToolContext, ToolError, hookimpl, tool
from pegboard.enclosure import Enclosure
from pegboard.errors import ConfigError
from pegboard.process import child_env, run_process
from pegboard.sandbox import Sandbox
from pegboard.schema.config import Config
from pegboard.schema.part import Completed, Failed
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import guard, rules, secrets
from pegboard_plugins import lsp as lsp_plugin
from played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of
from processes import alive

WORKSPACE = Config(sandbox="workspace")
SERVER = Path(__file__).parents[2] / "language_server.py"


@pytest.fixture(scope="module", params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Surroundings]:
    with site(request.param) as found:
        yield found


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def enclosure(box: str, config: Config = WORKSPACE) -> AsyncIterator[tuple[Enclosure, Path]]:
    """An enclosure of the user who runs the tests, and its project."""
    user = "root" if os.geteuid() == 0 else "nobody"
    with site(user) as place:
        policy = place.policy(config)
        sandbox = KINDS[box]()
        why_not = await asyncio.to_thread(sandbox.why_not, policy)
        if why_not is not None:
            pytest.skip(f"{box}: {why_not}")
        found = Enclosure(sandbox, policy)
        yield found, place.project
        await found.aclose()
        assert not policy.temp.exists()


async def ran(found: Enclosure, cwd: Path, script: str, *, timeout_s: float = LIMIT_S) -> str:
    env = child_env(os.environ)
    async with found.around(["bash", "-c", script], cwd=cwd, search=env["PATH"]) as command:
        result = await run_process(
            command, cwd=cwd, env=env, timeout_s=timeout_s, limit_bytes=1 << 16
        )
    return "timed out" if result.timed_out else result.output


async def made(file: Path) -> None:
    """The file is there."""
    async with asyncio.timeout(LIMIT_S):
        while not file.exists():  # noqa: ASYNC110, ASYNC240 - a process makes it
            await asyncio.sleep(0.02)


def test_work_in_the_project_goes_on(place: Surroundings, box: str) -> None:
    script = """
        mkdir sub/made && echo a > sub/made/b && mv sub/made sub/moved && cat sub/moved/b
        chmod +x sub/moved/b && rm -r sub/moved && echo c > "$TMPDIR/d" && cat "$TMPDIR/d"
        ls ~ /etc >/dev/null && cat link/file && echo && git status --short >/dev/null 2>&1; id -u
        cat <(echo e) | sort && echo f > /dev/null && (sleep 0 & wait) && pwd
    """
    told = attempt(place, box, script, config=WORKSPACE)

    assert told.output.split("\n") == [
        *("a", "c", "as it was", str(place.uid), "e", str(place.project), "")
    ]
    assert "d" in told.left


def test_new_things_can_be_made_at_the_root(place: Surroundings) -> None:
    told = attempt(place, "bubblewrap", "touch new && mkdir build && rmdir build", config=WORKSPACE)

    assert (told.output, told.code) == ("", 0)
    assert (place.project / "new").exists()


def test_with_the_network_sockets_of_files_stay_closed(place: Surroundings, box: str) -> None:
    script = """
        exec 3<>/dev/tcp/127.0.0.1/$PORT && echo connected
        perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0);
            connect(S, sockaddr_un($ENV{SOCKET_PROJECT})) && print "leak"'
    """
    config = Config(sandbox="workspace", sandbox_network=True)

    told = attempt(place, box, script, config=config)

    assert told.output == "connected\n"
    assert place.called() == ["tcp"]


def test_a_folder_above_something_protected_cannot_be_put_aside(
    place: Surroundings, box: str
) -> None:
    before = place.state()
    script = "cd ..; mv sub old; mkdir -p sub/.pegboard; echo x > sub/.pegboard/config.json; pwd"

    told = attempt(place, box, script, config=WORKSPACE, directory=place.project / "sub")

    assert place.state() == before
    assert told.output.endswith(f"{place.project}\n")


def test_at_the_strict_level_the_home_is_empty(place: Surroundings) -> None:
    told = attempt(
        place,
        "bubblewrap",
        "ls -A ~; ls /home /root; echo x > ~/y",
        config=Config(sandbox="strict"),
    )

    assert SECRET not in told.output
    assert set(told.output.split()) <= {"/home:", "/root:", "project"}
    assert told.code == 0
    assert not (place.home / "y").exists()


def test_landlock_does_not_claim_the_strict_level(place: Surroundings) -> None:
    policy = place.policy(Config(sandbox="strict"))
    policy.temp.rmdir()

    assert KINDS["landlock"]().why_not(policy) == "it has no process namespaces"


def test_without_the_program_bubblewrap_says_so(
    place: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    policy = place.policy(WORKSPACE)
    policy.temp.rmdir()

    assert KINDS["bubblewrap"]().why_not(policy) == "bwrap is not installed"


async def test_a_protected_link_is_refused() -> None:
    async with enclosure("bubblewrap") as (found, project):
        (project / "tool").symlink_to(project / "sub")

        with pytest.raises(ToolError, match="tool is a link"):
            await ran(found, project, "true")


async def test_placeholders_are_there_as_long_as_any_process_is() -> None:
    async with enclosure("bubblewrap") as (found, project):
        before = set(project.iterdir())
        long = asyncio.create_task(ran(found, project, "touch sub/on; sleep 60"))
        await made(project / "sub" / "on")
        short = await ran(found, project, "mkdir tool 2>&1")
        kept = (project / "tool").is_dir()
        long.cancel()
        await asyncio.wait({long})
        after = set(project.iterdir())

    assert "File exists" in short
    assert kept
    assert after == before


async def test_placeholders_of_a_killed_agent_go_with_the_next_process() -> None:
    async with enclosure("bubblewrap") as (found, project):
        before = set(project.iterdir())
        await ran(found, project, "true")
        [lock] = (project.parent / "own" / "state" / "sandbox").iterdir()
        lock.write_bytes(bytes(project / "tool") + b"\0")
        (project / "tool").mkdir()
        (project / "tool" / "mine.py").touch()
        await ran(found, project, "true")
        assert (project / "tool" / "mine.py").exists()
        (project / "tool" / "mine.py").unlink()
        lock.write_bytes(bytes(project / "tool") + b"\0")

        await ran(found, project, "true")

        assert set(project.iterdir()) == before


ESCAPES = {
    "background": "sleep {n} & sleep {n}",
    "own session": "setsid sleep {n} & sleep {n}",
    "daemon": "(setsid sleep {n} >/dev/null 2>&1 </dev/null &); sleep {n}",
    "ignores SIGTERM": "trap '' TERM; sleep {n}; sleep {n}",
}


@pytest.mark.parametrize("kind", ESCAPES)
async def test_nothing_survives_the_time_limit(box: str, kind: str) -> None:
    number = str(74_000_000 + os.getpid())
    async with enclosure(box) as (found, project):
        told = await ran(found, project, ESCAPES[kind].format(n=number), timeout_s=0.6)

        assert told == "timed out"
        assert alive(number) == []


async def test_nothing_survives_an_abort_or_the_end(box: str) -> None:
    number = str(75_000_000 + os.getpid())
    async with enclosure(box) as (found, project):
        script = f"touch sub/on; setsid sleep {number} & env -i sleep {number}"
        running = asyncio.create_task(ran(found, project, script))
        await made(project / "sub" / "on")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ended = await ran(found, project, f"setsid sleep {number} >/dev/null 2>&1 & echo x")

    assert alive(number) == []
    assert ended == "x\n"


async def test_many_run_at_once(box: str) -> None:
    async with enclosure(box) as (found, project):
        told = await asyncio.gather(*(ran(found, project, f"echo {n}") for n in range(10)))

        assert told == [f"{n}\n" for n in range(10)]


class Only:
    """Brings one of the built-in sandboxes."""

    def __init__(self, box: str) -> None:
        self._box = box

    @hookimpl
    async def register_sandboxes(self) -> list[Sandbox]:
        return [KINDS[self._box]()]


@tool
async def words(context: ToolContext, command: str) -> str:
    """Run a command without a word.

    Args:
        command: what to run.
    """
    result = await context.run(["bash", "-c", command])
    return f"{result.output}{result.exit_code}"


@asynccontextmanager
async def engine(
    folder: Path,
    box: str,
    provider: Played,
    *plugins: object,
    config: Mapping[str, object] | None = None,
    **options: object,
) -> AsyncIterator[App]:
    """An App with one sandbox; skipped where the machine does not have it."""
    said = {"model": "played/m", "sandbox": "workspace", **(config or {})}
    try:
        context = opened(folder, provider, Only(box), *plugins, config=said, **options)
        app = await context.__aenter__()
    except ConfigError as error:
        pytest.skip(str(error))
    try:
        yield app
    finally:
        await context.__aexit__(None, None, None)


async def test_a_run_of_the_engine_stays_inside(tmp_path: Path, box: str) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text(SECRET)
    script = (
        "echo in > sub/made; echo out > ../made; cat ~/.ssh/id_rsa; mkdir -p tool;"
        " echo x > tool/pwn.py; cat /proc/$PPID/environ; env"
    )
    provider = Played(calls(call("words", json.dumps({"command": script}))), text("done"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PLAYED_KEY": SECRET}

    async with engine(tmp_path, box, provider, ToolsPlugin(words), env=env) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.turns(session.id))

    assert isinstance(part.state, Completed), part.state
    assert part.state.metadata["sandbox"] == "workspace"
    assert SECRET not in part.state.output
    assert (project / "sub" / "made").read_text() == "in\n"
    assert not (tmp_path / "made").exists()
    assert [path.name for path in project.iterdir()] == ["sub"]


async def test_a_language_server_answers_from_inside(tmp_path: Path, box: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.x").write_text("one\n")
    arguments = {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1}
    provider = Played(calls(call("lsp", json.dumps(arguments))), text("done"))
    config = {
        "lsp": {"own": {"command": [sys.executable, str(SERVER), "none"], "extensions": [".x"]}}
    }

    async with engine(tmp_path, box, provider, lsp_plugin, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.turns(session.id))

    assert isinstance(part.state, Completed), part.state
    assert "at " in part.state.output
    assert part.state.metadata["sandbox"] == "workspace"
    assert alive(str(SERVER)) == []


async def verdicts(app: App, *commands: str) -> list[str]:
    return [
        (await app.policy.explain("bash", {"command": each})).verdict.action for each in commands
    ]


async def test_commands_that_stay_inside_run_unasked_if_the_user_wants_it(tmp_path: Path) -> None:
    bash = {"*": "ask", "git push *": "ask", "rm *": "deny"}
    config = {
        "sandbox_allow_commands": True,
        "permission": {"bash": bash, "edit": "ask", "external_directory": "allow"},
    }
    plugins = (bash_plugin, rules, guard, secrets)
    inside = ("ls", "python3 x.py", "echo x > made", "make | tee log")
    asked = ("git push origin", "ls /etc", "$CMD", "cat .env", "echo x > .git/hooks/a")
    denied = ("rm x", "ls; rm -rf .git")
    provider = Played(calls(call("bash", '{"command": "echo x > made; cat made"}')), text("done"))

    async with engine(
        tmp_path, "bubblewrap", provider, *plugins, config=config, allow=False
    ) as app:
        told = [await verdicts(app, *each) for each in (inside, asked, denied)]
        explained = await app.policy.explain("bash", {"command": "ls"})
        plain = await app.policy.explain("bash", {"command": "rm x"})
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.turns(session.id))

    assert told == [["allow"] * len(inside), ["ask"] * len(asked), ["deny", "deny"]]
    assert explained.verdict.source == "sandbox"
    assert explained.sandbox == (
        "workspace (bubblewrap, no network): it answers what would be asked"
    )
    assert plain.sandbox.endswith(": it does not change the verdict")
    assert isinstance(part.state, Completed), part.state
    assert part.state.output == "x"


async def test_without_the_setting_a_sandbox_answers_nothing(tmp_path: Path) -> None:
    config = {"permission": {"bash": "ask"}}
    provider = Played(calls(call("bash", '{"command": "ls"}')), text("done"))

    plugins = (bash_plugin, rules)
    async with engine(
        tmp_path, "bubblewrap", provider, *plugins, config=config, allow=False
    ) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.turns(session.id))

    assert isinstance(part.state, Failed)
