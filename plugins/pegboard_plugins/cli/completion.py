"""`pegboard completion`: the scripts that make shells complete commands, options and values."""

import click
from click.shell_completion import get_completion_class

_WAYS = {
    "bash": 'eval "$(pegboard completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(pegboard completion zsh)" in ~/.zshrc, behind compinit',
    "fish": "pegboard completion fish > ~/.config/fish/completions/pegboard.fish",
}


@click.command(epilog="\b\n" + "\n".join(f"{shell}: {way}" for shell, way in _WAYS.items()))
@click.argument("shell", type=click.Choice(list(_WAYS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script.

    The script completes commands, options, sessions, models, agents and plugins.
    """
    found = get_completion_class(shell)
    assert found is not None  # click has these three
    made = found(ctx.find_root().command, {}, "pegboard", "_PEGBOARD_COMPLETE")
    # `source()` would run the shell to look at its version.
    click.echo(made.source_template % made.source_vars())
