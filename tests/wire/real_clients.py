"""Real clients of the protocol, from the npm registry, and how each is run."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

TERMINALS = ("1.1.53", "1.18.33")
SDKS = ("1.1.48", "1.19.3")
INSTALL_WITHIN_S = 180
PRINTED_WITHIN_S = 60
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_TERMINAL_TITLE": "1",
}


@dataclass(frozen=True, slots=True)
class Clients:
    """The folder that they are installed in."""

    folder: Path

    def terminal(self, version: str) -> Path:
        """The program with the terminal interface, `run` and a server."""
        return self.folder / "node_modules" / f"oc-{version}" / "bin" / "opencode"

    def sdk(self, version: str) -> Path:
        """The package of the JavaScript client."""
        return self.folder / "node_modules" / f"sdk-{version}"


def installed() -> Clients:
    """The clients, installed once into a folder that outlives the tests."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("needs node and npm, to run the real clients")
    place = os.environ.get("PEGBOARD_TEST_CLIENTS") or f"{tempfile.gettempdir()}/pegboard-clients"
    clients = Clients(Path(place))
    wanted = [*map(clients.terminal, TERMINALS), *map(clients.sdk, SDKS)]
    clients.folder.mkdir(parents=True, exist_ok=True)
    with (clients.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one installs
        if not all(path.exists() for path in wanted):
            _install(clients.folder)
    return clients


def _install(folder: Path) -> None:
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text('{"name": "clients", "private": true}')
    modern = "avx2" in Path("/proc/cpuinfo").read_text()
    program = "opencode-linux-x64" if modern else "opencode-linux-x64-baseline"
    packages = [f"oc-{version}@npm:{program}@{version}" for version in TERMINALS]
    packages += [f"sdk-{version}@npm:@opencode-ai/sdk@{version}" for version in SDKS]
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the clients cannot be installed: {done.stderr.strip()[-300:]}")


def environment(root: Path, **more: str) -> dict[str, str]:
    """The environment of a client that has a home of its own."""
    own = ("OPENCODE", "XDG_", "TMUX", "PEGBOARD")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    for name in ("config", "data", "state", "cache"):
        env[f"XDG_{name.upper()}_HOME"] = str(root / name)
        (root / name).mkdir(parents=True, exist_ok=True)
    return {**env, **QUIET, "HOME": str(root), **more}


def openapi_document(clients: Clients, root: Path) -> Path:
    """The file with the document of the newer real server, as its program prints it.

    It is what the server gives at `/doc`, with samples of code.
    """
    file = root / "openapi.json"
    with file.open("wb") as document:
        subprocess.run(
            [clients.terminal(TERMINALS[-1]), "generate"],
            cwd=root,
            env=environment(root),
            stdin=subprocess.DEVNULL,
            stdout=document,
            timeout=PRINTED_WITHIN_S,
            check=True,
        )
    return file
