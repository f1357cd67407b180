"""What a server names is shown by the rules for reading."""

import os
import sys

import pytest

from pegboard.errors import PermissionDeniedError
from pegboard.schema.config import Config, LspConfig
from pegboard.schema.session import Rule
from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import lsp
from support.tools.lsp_project import PROGRAM, asked, config
from support.tools.tool_context import Context, call


async def test_a_server_that_lies_shows_no_line_that_read_would_ask_for(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    secret = "the-content-that-nobody-may-see"
    for path in (tmp_path / "outside", folder / ".env", folder / "denied", folder / "plain"):
        path.write_text(f"{secret}\n")
    (folder / "link").symlink_to(".env")
    (folder / "way").symlink_to(tmp_path)
    (folder / "a.t").write_text("one\n")
    fd = os.open(folder / ".env", os.O_RDONLY)
    hidden = [
        *(tmp_path / "outside", folder / ".env", folder / "denied", folder / "link"),
        *(folder / "way/outside", "/proc/self/environ", f"/proc/self/fd/{fd}"),
        *("/proc/self/cmdline", f"/proc/{os.getpid()}/maps"),
    ]
    settings = LspConfig(
        command=(sys.executable, str(PROGRAM), "lie"),
        extensions=("t",),
        env={"LSP_NAMED": os.pathsep.join(map(str, [*hidden, folder / "plain"]))},
    )
    rules = [Rule("*", "*", "allow"), Rule("read", "*/denied", "deny")]
    context = Context(folder, config=Config(lsp={"tests": settings}), rules=rules)

    *lines, shown = (await asked(context, "goToDefinition", line=1, character=1)).splitlines()
    await plugin.shutdown(context)
    os.close(fd)

    assert shown == f"plain:1:1: {secret}"
    assert [line.rpartition(":1:1: ")[2] for line in lines] == [
        "(not shown: read would ask)" for _ in hidden
    ]


async def test_a_file_that_read_would_ask_for_is_asked_for(tmp_path):
    (tmp_path / "secrets.t").write_text("one\n")
    context = Context(tmp_path, config=config("none", tmp_path / "log"), denied=("read",))

    with pytest.raises(PermissionDeniedError):
        await call(lsp, context, operation="hover", filePath="secrets.t")

    assert context.asks[-1].metadata == {"filepath": str(tmp_path / "secrets.t")}
