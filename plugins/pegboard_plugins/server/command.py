"""The command `pegboard serve`."""

import os
from pathlib import Path

import click


@click.command()
@click.option(
    "--hostname", default="127.0.0.1", show_default=True, help="The address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=4096,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option("--allow-host", multiple=True, help="Another host name of this server, for a proxy.")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="A web site that may use the server.")
@click.option("--trust", is_flag=True, help="Trust the code of all projects.")
@click.option("--no-auth", is_flag=True, help="Require no token: for experiments only.")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also accept the password in the first line of FILE.",
)
@click.option(
    "--fleet",
    "secret_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Work with the other servers of the database; FILE has the secret of all of them.",
)
@click.option("--quiet", is_flag=True, help="Log only warnings and errors.")
@click.pass_obj
def serve(  # noqa: PLR0913 - the options of a command
    directory: Path,
    hostname: str,
    port: int,
    *,
    allow_host: tuple[str, ...],
    cors: tuple[str, ...],
    trust: bool,
    no_auth: bool,
    password_file: Path | None,
    secret_file: Path | None,
    quiet: bool,
) -> None:
    """Serve the protocol of OpenCode's clients over HTTP.

    The token is in a file that only you can read; PEGBOARD_SERVER_PASSWORD sets a password.
    """
    if password_file and no_auth:
        raise click.UsageError("--password-file and --no-auth exclude each other")
    from pegboard import AppOptions
    from pegboard.cli import run_async
    from pegboard.unstable import refuse_within_tool
    from pegboard_plugins.server import lifecycle  # 0.5 s that other commands save
    from pegboard_plugins.server.fleet import read_secret
    from pegboard_plugins.shared.terminal import password_of

    refuse_within_tool("pegboard serve")
    lifecycle.log_to_stderr(is_quiet=quiet)
    settings = lifecycle.ServerSettings(
        directory=directory,
        host=hostname.removeprefix("[").removesuffix("]"),  # as in an address
        port=port,
        known_hosts=allow_host,
        origins=cors,
        is_open=no_auth,
        secret=None if secret_file is None else read_secret(secret_file),
        options=AppOptions(interactive=True, trust=True if trust else None),
    )
    env = dict(os.environ)
    if password_file:
        env["PEGBOARD_SERVER_PASSWORD"] = password_of(password_file)
    run_async(lifecycle.serve(settings, env, _announce))


def _announce(url: str) -> None:
    """Print the server's address for users, and again in the form that launchers expect."""
    names = ("pegboard", "opencode")
    click.echo("\n".join(f"{name} server listening on {url}" for name in names))
