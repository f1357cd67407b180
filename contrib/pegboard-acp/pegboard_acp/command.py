"""The command `pegboard acp`, which runs Pegboard as an editor's agent."""

import sys
from importlib.metadata import entry_points
from pathlib import Path

import click


@click.command()
@click.option(
    "--login", is_flag=True, help="Ask for a provider's key in this terminal instead, and end."
)
@click.option("--trust", is_flag=True, help="Run the code of projects without asking.")
@click.pass_context
def acp(ctx: click.Context, *, login: bool, trust: bool) -> object:
    """Be the agent of an editor, by the Agent Client Protocol on standard input and output.

    The editor starts this command. The command ends when the editor closes a stream.
    """
    if login:
        root = ctx.find_root()
        assert isinstance(root.command, click.Group)
        auth = root.command.get_command(root, "auth")
        assert auth is not None
        return auth.main(["login"], parent=root, standalone_mode=False)
    from pegboard import AppOptions
    from pegboard.cli import run_async
    from pegboard.unstable import refuse_within_tool
    from pegboard_acp.serving import serve  # what the login does not need

    refuse_within_tool("pegboard acp")
    directory: Path = ctx.obj
    options = AppOptions(interactive=True, trust=True if trust else None)
    run_async(serve(directory, options))
    return None


def main() -> None:
    """Run `pegboard acp` with the arguments of this process, as `uvx pegboard-acp` does."""
    sys.argv[1:1] = ["acp"]
    (program,) = entry_points(group="console_scripts", name="pegboard")
    program.load()()
