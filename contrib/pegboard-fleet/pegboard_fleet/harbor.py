"""The Harbor agent that installs Pegboard in the container of a task and runs Pegboard there.

Select it with `harbor run --agent pegboard_fleet.harbor:PegboardAgent`. Harbor needs
Python 3.12 or later, and only this module needs Harbor.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from harbor.agents.agent_auth_resolution import ModelConnectionSpec
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    ApiOverloadedError,
    ApiRateLimitError,
    BaseInstalledAgent,
    ErrorPattern,
    with_prompt_template,
)
from harbor.agents.options import InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import Trajectory
from pydantic import Field

TRAJECTORY, OUTPUT = "trajectory.json", "pegboard.txt"
"""The files in the folder of the agent's logs."""
STORED = "pegboard"
"""The folder there that has the database of the sessions."""
EXPORT = ("pegboard", "session", "export", "--with-reasoning", "--atif")
EXPORT_LIMIT_S = 60.0
ON_PATH = 'export PATH="$HOME/.local/bin:$PATH"'
PYTHON = "3.12"
"""The Python that Pegboard has in the container, whichever the task has."""
WEB_TOOLS = ("webfetch", "websearch")


class PegboardOptions(InstalledAgentOptions):  # type: ignore[misc] # Harbor may be absent
    """The options of the agent, set with `--ak NAME=VALUE` of `harbor run`."""

    package: str = Field(
        default="pegboard",
        description="Requirement to install, such as a wheel's path or URL in the container.",
    )
    agent: str | None = Field(default=None, description="Agent of Pegboard, such as build.")
    budget_usd: float | None = Field(default=None, ge=0, description="Most US dollars of a run.")
    reasoning_effort: str | None = Field(
        default=None, description="Variant of the model, such as high."
    )


class PegboardAgent(BaseInstalledAgent):  # type: ignore[misc] # likewise
    """Pegboard as an agent that Harbor installs in the container of a task."""

    capabilities = AgentCapabilities(
        atif=True,
        base_url=True,
        mcp_servers=True,
        native_config=True,
        native_web_tools=True,
        reasoning_effort=True,
        resume=True,
        skills=True,
    )
    MODEL_CONNECTION = ModelConnectionSpec(base_url_destination_names={"default": None})
    ERROR_PATTERNS = [  # noqa: RUF012 - so Harbor has it
        *BaseInstalledAgent.ERROR_PATTERNS,
        ErrorPattern(r"(?m)^error: .*\(429\)$", ApiRateLimitError),
        ErrorPattern(r"(?m)^error: .*\((?:503|529)\)$", ApiOverloadedError),
    ]
    options_model = PegboardOptions
    options: PegboardOptions

    @staticmethod
    def name() -> str:
        """Return the name by which Harbor knows the agent."""
        return "pegboard"

    def get_version_command(self) -> str:
        """Return the shell command that prints Pegboard's version."""
        return f"{ON_PATH}; pegboard --version"

    def parse_version(self, stdout: str) -> str:
        """Return the version in the output of `get_version_command`."""
        return stdout.rsplit(maxsplit=1)[-1]

    async def install(self, environment: BaseEnvironment) -> None:
        """Install Pegboard with uv, and a Python for Pegboard instead of the task's Python."""
        if await self.is_requested_version_installed(environment):
            return
        await self.ensure_system_dependencies(environment, ("curl", "bash", "git"))
        package = self.options.package
        if self.mcp_servers and package == "pegboard":
            package = "pegboard[mcp]"
        if self._version:
            package = f"{package}=={self._version}"
        await self.exec_as_agent(
            environment,
            command=(
                f"set -e; {ON_PATH}; "
                "command -v uv >/dev/null || curl -LsSf https://astral.sh/uv/install.sh | sh; "
                f"uv tool install --python {PYTHON} {shlex.quote(package)} && pegboard --version"
            ),
        )

    @with_prompt_template  # type: ignore[untyped-decorator] # likewise
    async def run(
        self,
        instruction: str,
        environment: BaseEnvironment,
        context: AgentContext,  # noqa: ARG002 - filled in by `populate_context_post_run`
    ) -> None:
        """Run a prompt; write the file with the session's trajectory even if the run fails."""
        if not self.model_name:
            raise ValueError("pegboard needs a model: --model PROVIDER/MODEL")
        logs = self.environment_logs_dir
        words = ["pegboard", "run", "--auto", "--model", self.model_name]
        options = {
            "--variant": self.options.reasoning_effort,
            "--agent": self.options.agent,
            "--budget-usd": self.options.budget_usd,
        }
        for option, value in options.items():
            words += [] if value is None else [option, str(value)]
        words += ["--continue"] if self._resume else []
        output, trajectory = (shlex.quote(str(logs / name)) for name in (OUTPUT, TRAJECTORY))
        await self.exec_as_agent(
            environment,
            command=(
                f"{ON_PATH}; mkdir -p {shlex.quote(str(logs))}; rm -f {trajectory}; "
                f"{self._copy_skills()}"
                f"{shlex.join([*words, '--', instruction])} </dev/null >{output} 2>&1; code=$?; "
                f"{shlex.join(EXPORT)} {trajectory} >>{output} 2>&1; "
                f"tail -c 8000 {output}; exit $code"
            ),
            env={
                **self.model_connection.env,
                "PEGBOARD_CONFIG_CONTENT": json.dumps(self._settings()),
                "PEGBOARD_DATA_DIR": str(logs / STORED / "data"),
                "PEGBOARD_STATE_DIR": str(logs / STORED / "state"),
            },
        )

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Copy the token counts and the cost from the trajectory to Harbor's context.

        If Harbor's time limit ended the run, the trajectory comes from the stored session.
        """
        file = self.logs_dir / TRAJECTORY
        if not file.is_file() and not self._export(file):
            return
        metrics = Trajectory.model_validate_json(file.read_text()).final_metrics
        if metrics is not None:
            context.n_input_tokens = metrics.total_prompt_tokens
            context.n_cache_tokens = metrics.total_cached_tokens
            context.n_output_tokens = metrics.total_completion_tokens
            context.cost_usd = metrics.total_cost_usd

    def _export(self, file: Path) -> bool:
        """Write the newest stored session as a trajectory to `file`; return False on failure."""
        stored = self.logs_dir / STORED
        if not (stored / "data").is_dir():
            return False
        folders = {f"PEGBOARD_{each.upper()}_DIR": str(stored / each) for each in ("data", "state")}

        def run(*words: str) -> bytes:
            return subprocess.run(
                (Path(sys.executable).with_name("pegboard"), *words),
                cwd=stored,
                env={**os.environ, **folders},
                check=True,
                capture_output=True,
                timeout=EXPORT_LIMIT_S,
            ).stdout

        try:
            every = ("--all", "--all-projects", "--max-count", "1", "--format", "json")
            (newest,) = json.loads(run("session", "list", *every))
            run(*EXPORT[1:], str(file), newest["id"])
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.logger.warning("cannot read the sessions in %s: %s", stored, error)
            return False
        return True

    def _copy_skills(self) -> str:
        if not self.skills_dir:
            return ""
        folder = shlex.quote(self.skills_dir)
        return f'mkdir -p "$HOME/.agents/skills"; cp -R {folder}/. "$HOME/.agents/skills/"; '

    def _settings(self) -> dict[str, Any]:
        """Return the user's configuration with the MCP servers and settings of Harbor."""
        source = self.config_source
        settings = json.loads(source.read_text()) if isinstance(source, Path) else source or {}
        if self.mcp_servers:
            servers = {each.name: _server(each) for each in self.mcp_servers}
            settings = {**settings, "mcp": {**settings.get("mcp", {}), **servers}}
        if self.options.disable_web_search:
            hidden = dict.fromkeys(WEB_TOOLS, "hidden")
            settings = {**settings, "exposure": {**settings.get("exposure", {}), **hidden}}
        url = self.model_connection.execution_base_url
        if url is not None and self.model_name:
            provider = self.model_name.partition("/")[0]
            known = settings.get("provider", {})
            own = known.get(provider, {})
            options = {**own.get("options", {}), "baseURL": url}
            settings = {
                **settings,
                "provider": {**known, provider: {**own, "options": options}},
            }
        return settings


def _server(server: Any) -> dict[str, Any]:  # noqa: ANN401 - Harbor's own, which may be absent
    if server.transport == "stdio":
        return {"command": [server.command, *server.args]}
    return {"url": server.url, **({"type": "sse"} if server.transport == "sse" else {})}
