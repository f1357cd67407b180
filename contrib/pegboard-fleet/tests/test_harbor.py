"""Pegboard as an agent of Harbor, by the installed package `harbor` and on this machine's shell.

The tests run where `harbor` is installed, which asks for Python 3.12.
"""

import asyncio
import json
import os
import platform
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from batches import OK, worker

from support.models.model_server import Answer, ModelServer, Pause, failure, say, step_of, text
from support.sessions.trajectories import check_trajectory

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # which Harbor imports, else it is downloaded
if tuple(map(int, platform.python_version_tuple()[:2])) < (3, 12):
    pytest.skip("harbor needs Python 3.12", allow_module_level=True)
pytest.importorskip("harbor.agents.factory", reason="harbor, on Python 3.12, is not installed")

from harbor.agents.factory import AgentFactory
from harbor.agents.installed.base import ApiRateLimitError, NonZeroAgentExitCodeError
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.agent.context import AgentContext
from harbor.models.task.config import EnvironmentConfig, MCPServerConfig
from harbor.models.trial.paths import TrialPaths

if TYPE_CHECKING:
    from pegboard_fleet.harbor import PegboardAgent

IMPORT_PATH = "pegboard_fleet.harbor:PegboardAgent"
MODEL = {
    "limit": {"context": 100_000, "output": 4_000},
    "cost": {"input": 1.0, "output": 2.0},
    "variants": {"high": {"reasoningEffort": "high"}},
}


class Shell(BaseEnvironment):  # type: ignore[misc] # Harbor may be absent
    """An environment whose commands run on this machine, in a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.work = folder / "work"
        self.work.mkdir()
        self.commands: list[str] = []
        super().__init__(
            environment_dir=folder,
            environment_name="shell",
            session_id="shell__1__env",
            trial_paths=TrialPaths(folder / "trial"),
            task_env_config=EnvironmentConfig(),
        )

    @staticmethod
    def type() -> str:
        return "shell"

    def _validate_definition(self) -> None:
        pass

    async def start(self, force_build: bool) -> None:
        pass

    async def stop(self, delete: bool) -> None:
        pass

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        raise NotImplementedError

    upload_dir = download_file = download_dir = upload_file

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        self.commands.append(command)
        path = f"{self.home}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command.replace("/installed-agent", f"{self.home}/installed-agent")),
            cwd=cwd or self.work,
            env={"PATH": path, "HOME": str(self.home), **(env or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            os.killpg(process.pid, signal.SIGKILL)  # as a container ends
            await process.wait()
            raise
        assert process.returncode is not None
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode)


@pytest.fixture
async def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def agent_of(folder: Path, url: str, **options: Any) -> "PegboardAgent":
    """Return the agent as Harbor makes it, with a model whose server is at this URL."""
    provider = {"options": {"apiKey": "key"}, "models": {"model": MODEL}}
    config = {**OK, "provider": {"fake": provider}}
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    agent: PegboardAgent = AgentFactory.create_agent_from_import_path(
        IMPORT_PATH,
        logs_dir=logs,
        environment_logs_dir=logs,
        **{"model_name": "fake/model", "base_url": url, "config": config, **options},
    )
    return agent


async def test_a_task_is_done_and_its_trajectory_and_cost_are_harbors(
    shell: Shell, tmp_path: Path
) -> None:
    async with ModelServer(worker) as server:
        agent = agent_of(tmp_path, server.url, skip_install=True)
        context = AgentContext()
        await agent.setup(shell)
        await agent.run("Write 'it' -- now", shell, context)
        agent.populate_context_post_run(context)

    assert (shell.work / "made.txt").read_text() == "apple\n"
    document = json.loads((tmp_path / "logs" / "trajectory.json").read_text())
    check_trajectory(document)
    assert document["steps"][0]["message"] == "Write 'it' -- now"
    assert document["steps"][-1]["message"] == "Written."
    assert context.n_output_tokens == document["final_metrics"]["total_completion_tokens"] > 0
    assert context.cost_usd == document["final_metrics"]["total_cost_usd"] > 0
    assert agent.version() == agent.to_agent_info().version != "unknown"
    assert len(server.requests) == 2


async def test_a_second_step_goes_on_in_the_same_session(shell: Shell, tmp_path: Path) -> None:
    async with ModelServer(lambda _: say("Yes.")) as server:
        agent = agent_of(tmp_path, server.url, skip_install=True)
        await agent.setup(shell)
        await agent.run("first", shell, AgentContext())
        await agent.resume("second", shell, AgentContext())

    document = json.loads((tmp_path / "logs" / "trajectory.json").read_text())
    asked = [each["message"] for each in document["steps"] if each["source"] == "user"]
    assert asked == ["first", "second"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(failure(429), ApiRateLimitError), (failure(400), NonZeroAgentExitCodeError)],
)
async def test_a_failure_is_harbors_error_and_leaves_a_trajectory(
    shell: Shell, tmp_path: Path, answer: Answer, error: type[Exception]
) -> None:
    async with ModelServer(lambda _: answer) as server:
        agent = agent_of(tmp_path, server.url, skip_install=True)
        await agent.setup(shell)
        with pytest.raises(error):
            await agent.run("go", shell, AgentContext())

    document = json.loads((tmp_path / "logs" / "trajectory.json").read_text())
    assert document["steps"][-1]["extra"]["error"]["name"] == "APIError"


async def test_a_run_that_harbor_ends_has_a_trajectory_with_its_cost(
    shell: Shell, tmp_path: Path
) -> None:
    asked = asyncio.Event()

    def script(body: dict[str, Any]) -> Answer:
        if not step_of(body):
            return worker(body)
        asked.set()
        return [*text("half"), Pause()]

    async with ModelServer(script) as server:
        agent = agent_of(tmp_path, server.url, skip_install=True)
        running = asyncio.create_task(agent.run("go", shell, AgentContext()))
        async with asyncio.timeout(50):
            await asked.wait()
        running.cancel()
        await asyncio.wait([running])
        context = AgentContext()
        agent.populate_context_post_run(context)

    document = json.loads((tmp_path / "logs" / "trajectory.json").read_text())
    check_trajectory(document)
    assert [each["source"] for each in document["steps"][:2]] == ["user", "agent"]
    assert document["steps"][1]["tool_calls"][0]["function_name"] == "write"
    assert context.cost_usd == document["final_metrics"]["total_cost_usd"] > 0


async def test_options_skills_servers_and_switches_reach_the_program(
    shell: Shell, tmp_path: Path
) -> None:
    skill = tmp_path / "skills" / "knots"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: knots\ndescription: Tie a knot.\n---\nTie.\n")
    async with ModelServer(lambda _: say("Yes.")) as server:
        agent = agent_of(
            tmp_path,
            server.url,
            skip_install=True,
            skills_dir=str(skill.parent),
            mcp_servers=[MCPServerConfig(name="clock", transport="stdio", command="true")],
            disable_web_search=True,
            reasoning_effort="high",
            budget_usd=3,
        )
        await agent.run("go", shell, AgentContext())
        (request,) = server.requests

    command = shell.commands[-1]
    assert "--variant high --budget-usd 3.0 -- go" in command
    assert "knots" in json.dumps(request)
    offered = {each["function"]["name"] for each in request["tools"]}
    assert "bash" in offered
    assert offered.isdisjoint({"webfetch", "websearch"})
    assert agent._settings()["mcp"] == {"clock": {"command": ["true"]}}


async def test_the_version_asked_for_is_installed_apart_from_the_tasks_python(
    shell: Shell, tmp_path: Path
) -> None:
    (shell.home / "bin").mkdir()
    (uv := shell.home / "bin" / "uv").write_text('#!/bin/sh\necho "$@" >> "$HOME/uv.txt"\n')
    uv.chmod(0o755)
    agent = agent_of(tmp_path, "http://127.0.0.1:9", version="99.0")
    await agent.setup(shell)

    assert (shell.home / "uv.txt").read_text() == "tool install --python 3.12 pegboard==99.0\n"


def test_an_unknown_option_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unknown option 'budget'"):
        agent_of(tmp_path, "http://127.0.0.1:9", budget=3)
