"""The agents that are compared: how each is installed, and started against the fake model.

In `argv` and in the values of `env`, `{program}`, `{url}` (the base URL), `{model}`, `{prompt}`
and `{home}` are filled in; in the files, which are written below the home, the same names stand
in double angle brackets. Each agent asks the fake model only: looking for updates, telemetry,
catalogues and plugins is off. `bench_peers.py --network` checks that.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path(tempfile.gettempdir(), "pegboard-bench-peers")
"""Where `use` finds the other agents, unless it is given another folder."""
PACKAGES = (
    "node@22.23.3",
    "opencode-ai@1.18.33",
    "@openai/codex@0.171.0",
    "@earendil-works/pi-coding-agent@1.6.0",
)
"""The npm packages of the other agents. `node` is the interpreter that pi asks for."""
_CODEX = "node_modules/@openai/codex-*/vendor/*/bin/codex"
"""Codex's program itself, without the script for Node around it, which costs a start of Node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One agent; `variable` is the environment variable that says where its program is."""

    variable: str
    program: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    terminal: tuple[str, ...] = ()

    @property
    def path(self) -> str | None:
        """Where its program is, None where it is not installed."""
        return shutil.which(os.environ.get(self.variable, self.program))

    def command(self, facts: Mapping[str, str], *, terminal: bool = False) -> list[str]:
        """The command line of a run, or that of its `terminal` interface."""
        words = self.terminal if terminal else self.argv
        program = os.environ.get(self.variable, self.program)
        return [word.format(program=program, **facts) for word in words]

    def environment(self, facts: Mapping[str, str]) -> dict[str, str]:
        """What a run gets beside the ordinary variables."""
        return {name: value.format(**facts) for name, value in self.env.items()}

    def write_files(self, home: Path, facts: Mapping[str, str]) -> None:
        """Put the agent's configuration where it looks for it."""
        for name, text in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            for fact, value in facts.items():
                text = text.replace(f"<<{fact}>>", value)  # noqa: PLW2901 - filled in step by step
            path.write_text(text)


def install(folder: Path) -> None:
    """Install the other agents below `folder` with npm, unless these versions are there."""
    done, wanted = folder / "installed.txt", "\n".join(PACKAGES)
    if done.exists() and done.read_text() == wanted:
        return
    quietly = ("--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run(["npm", "install", *quietly, "--prefix", str(folder), *PACKAGES], check=True)
    done.write_text(wanted)


def use(folder: Path) -> None:
    """Put the agents below `folder` first in the `PATH` of this process."""
    os.environ["PATH"] = f"{folder / 'node_modules/.bin'}:{os.environ['PATH']}"
    for program in folder.glob(_CODEX):
        os.environ.setdefault(PEERS["codex"].variable, str(program))


OPENCODE_CONFIG = """{"autoupdate": false, "share": "disabled", "permission": "allow",
 "small_model": "fake/title",
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake",
  "options": {"baseURL": "<<url>>", "apiKey": "k"},
  "models": {
   "title": {"name": "t", "tool_call": true, "limit": {"context": 10000000, "output": 32000}},
   "<<model>>": {"name": "m", "tool_call": true, "limit": {"context": 10000000, "output": 32000}}
  }}}}
"""
CODEX_CONFIG = """model = "<<model>>"
model_provider = "fake"
check_for_update_on_startup = false
model_context_window = 10000000
[analytics]
enabled = false
[features]
plugins = false
apps = false
[projects."<<repository>>"]
trust_level = "trusted"
[model_providers.fake]
name = "fake"
base_url = "<<url>>"
wire_api = "responses"
env_key = "FAKE_KEY"
"""
PI_CONFIG = """{"providers": {"fake": {"baseUrl": "<<url>>", "api": "openai-completions",
 "apiKey": "k", "models": [{"id": "<<model>>", "name": "m", "reasoning": false, "input": ["text"],
  "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
  "contextWindow": 10000000, "maxTokens": 32000}]}}}
"""
PEGBOARD_CONFIG = """permission = "allow"
[provider.fake.options]
baseURL = "<<url>>"
apiKey = "k"
[provider.fake.models."<<model>>"]
tool_call = true
limit = { context = 10000000, output = 32000 }
"""

PEERS: Mapping[str, Peer] = {
    "pegboard": Peer(
        variable="PEER_PEGBOARD",
        program=str(Path(sys.executable).with_name("pegboard")),
        argv=("{program}", "run", "--model", "fake/{model}", "{prompt}"),
        terminal=("{program}", "chat", "--model", "fake/{model}"),
        files={".config/pegboard/pegboard.toml": PEGBOARD_CONFIG},
    ),
    "opencode": Peer(
        variable="PEER_OPENCODE",
        program="opencode",
        argv=("{program}", "run", "--model", "fake/{model}", "{prompt}"),
        terminal=("{program}", "--model", "fake/{model}"),
        env={
            "OPENCODE_CONFIG": "{home}/opencode.json",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        files={"opencode.json": OPENCODE_CONFIG, ".npmrc": "offline=true\n"},
    ),
    "codex": Peer(
        variable="PEER_CODEX",
        program="codex",
        argv=("{program}", "exec", "--dangerously-bypass-approvals-and-sandbox", "{prompt}"),
        terminal=("{program}", "--dangerously-bypass-approvals-and-sandbox"),
        env={"CODEX_HOME": "{home}/.codex", "FAKE_KEY": "k"},
        files={".codex/config.toml": CODEX_CONFIG},
    ),
    "pi": Peer(
        variable="PEER_PI",
        program="pi",
        argv=("{program}", "-p", "--provider", "fake", "--model", "{model}", "{prompt}"),
        terminal=("{program}", "--provider", "fake", "--model", "{model}"),
        env={
            "PI_OFFLINE": "1",
            "PI_SKIP_VERSION_CHECK": "1",
            "PI_TELEMETRY": "0",
            "PI_CODING_AGENT_DIR": "{home}/.pi/agent",
        },
        files={".pi/agent/models.json": PI_CONFIG},
    ),
    "floor": Peer(
        variable="PEER_FLOOR",
        program=sys.executable,
        argv=("{program}", str(HERE / "floor_agent.py"), "{url}", "{model}", "{prompt}"),
    ),
}
TERMINALS: Mapping[str, Peer] = {
    **{name: peer for name, peer in PEERS.items() if peer.terminal},
    "opencode --mini": replace(PEERS["opencode"], terminal=(*PEERS["opencode"].terminal, "--mini")),
}
"""Those with an interface in the terminal."""
