"""The command `pegboard auth`: the keys of providers, stored for the user and never displayed."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pegboard import InvalidInputError
from pegboard.app import UserFolders
from pegboard.cli import Group, open_app, run_async

if TYPE_CHECKING:
    from pegboard import App
    from pegboard_plugins.auth.keptkeys import KeptKeys

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""The form of a provider's id, and of a label."""
_KEY = re.compile(r"[!-~]{1,8192}")
"""Keys are printable ASCII without blanks: all else was pasted by mistake."""


@dataclass(frozen=True, kw_only=True)
class _Order:
    """The options of `pegboard auth login`: which credential to get, and where to store it."""

    provider_id: str | None
    label: str
    way: str | None
    ring: bool
    check: bool


@click.group(cls=Group)
def auth() -> None:
    """Save, list and remove the API keys of providers."""


@auth.command()
@click.argument("provider", required=False)
@click.option("--as", "label", default="", help="A label, for one of several keys of the provider.")
@click.option("--with", "way", help="Sign in by this method of a plugin instead of a key.")
@click.option("--keyring", "ring", is_flag=True, help="Save the key in the system's keyring.")
@click.option("--no-check", is_flag=True, help="Do not check the key.")
@click.pass_obj
def login(  # noqa: PLR0913 - the command's options
    directory: Path,
    provider: str | None,
    *,
    label: str,
    way: str | None,
    ring: bool,
    no_check: bool,
) -> None:
    """Save an API key of PROVIDER after checking it.

    The key is read from the terminal without echo, or from a pipe.
    """
    from pegboard.display import escape_controls

    order = _Order(provider_id=provider, label=label, way=way, ring=ring, check=not no_check)
    for line in run_async(_login(directory, order)):
        click.echo(escape_controls(line))


@auth.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def list_keys(directory: Path, *, as_json: bool) -> None:
    """List the providers that have a key, and where each key comes from."""
    import json

    from pegboard.display import escape_controls

    rows = run_async(_rows(directory))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo("nothing yet; `pegboard auth login PROVIDER` saves a key", err=True)
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        used = "" if row["used"] else "  (not used)"
        click.echo(escape_controls(f"{row['name']:{width}}  {row['from']}{used}"))


@auth.command()
@click.argument("provider")
@click.option("--as", "label", default="", help="The label of one of several keys of the provider.")
@click.pass_obj
def logout(directory: Path, provider: str, *, label: str) -> None:
    """Remove the saved API key of PROVIDER."""
    from pegboard.display import escape_controls

    for line in run_async(_logout(directory, provider, label)):
        click.echo(escape_controls(line))


async def _login(directory: Path, order: _Order) -> list[str]:
    from pegboard_plugins.shared.terminal import question_terminal

    async with open_app(directory) as app:
        provider_id, label = _provider(app, order), order.label
        kept = _keys(app)
        if order.way:
            with question_terminal():
                credential = await _signed_in(app, provider_id, order.way)
            told = "signed in"
            where = kept.keep_credential(provider_id, credential, label=label)
        else:
            key = _typed(provider_id)
            told = await _tried(app, provider_id, key) if order.check else "not verified"
            where = await kept.keep(provider_id, key, label=label, ring=order.ring)
        told = f"{provider_id}: saved to {where} ({told})"
        return [told, *_shadows(app, provider_id, label, where)]


async def _logout(directory: Path, provider_id: str, label: str) -> list[str]:

    async with open_app(directory) as app:
        await _keys(app).forget(provider_id, label=label)
        provider = app.providers.get(provider_id)
        left = app.keys.source(provider_id, provider.env if provider else ())
        more = [f"{provider_id}: a key still comes from {left}"] if left else []
        return [f"{provider_id}: removed", *more]


async def _rows(directory: Path) -> list[dict[str, Any]]:

    async with open_app(directory) as app:
        used = {name: app.keys.source(name, each.env) for name, each in app.providers.items()}
        labels = {name: said.key or "" for name, said in app.config.provider.items()}
        rows = {
            (name, labels.get(name, ""), source): True for name, source in used.items() if source
        }
        for each in _keys(app).listed():
            alone = each.provider_id not in used and not each.label  # one of litellm's providers
            rows.setdefault((each.provider_id, each.label, each.where), alone)
    return [
        {"name": name, "label": label, "from": source, "used": rows[name, label, source]}
        for name, label, source in sorted(rows)
    ]


def _keys(app: "App") -> "KeptKeys":
    from pegboard_plugins.auth.keptkeys import KeptKeys

    return KeptKeys(UserFolders.of(os.environ).keys, app.config, os.environ)


def _provider(app: "App", order: _Order) -> str:
    from pegboard.errors import NotFoundError
    from pegboard.plugins import nearest_names

    name = order.provider_id
    if name is None:
        if not sys.stdin.isatty():
            raise InvalidInputError("name the provider: pegboard auth login PROVIDER")
        known = ", ".join(sorted(each.id for each in app.providers.values() if each.env))
        name = _asked(f"Provider ({known})")
    for text in filter(None, (name, order.label)):
        if not _NAME.fullmatch(text):
            raise InvalidInputError(f"not the name of a provider or a key: {text[:80]!r}")
    nearest = nearest_names(name, app.providers) if name not in app.providers else ()
    if nearest and order.check:
        raise NotFoundError("provider", name, suggestions=nearest)
    return name


def _asked(question: str, *, hide_input: bool = False) -> str:
    from pegboard_plugins.shared.terminal import interruptible, question_terminal

    with interruptible(), question_terminal():
        return str(click.prompt(question, hide_input=hide_input, err=True))


def _typed(provider_id: str) -> str:
    """Return the key from a terminal without echo, or from the first line of standard input."""
    if sys.stdin.isatty():
        key = _asked(f"API key of {provider_id} (hidden)", hide_input=True)
    else:
        key = sys.stdin.readline()
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise InvalidInputError("no key: enter one line of letters, digits and signs")
    return str(key)


async def _tried(app: "App", provider_id: str, key: str) -> str:
    from pegboard_plugins.auth.check import try_key

    return await try_key(app.providers.get(provider_id), key)


async def _signed_in(app: "App", provider_id: str, way: str) -> Any:  # noqa: ANN401 - JSON of the plugin's
    from pegboard.errors import NotFoundError
    from pegboard_plugins.auth import register_logins

    found = [each.value for each in await app.hooks.collect(register_logins, config=app.config)]
    ways = {each.name: each for each in found if each.provider_id == provider_id}
    if way not in ways:
        raise NotFoundError(f"way to sign in with {provider_id}", way, suggestions=tuple(ways))
    return await ways[way].sign_in(lambda line: click.echo(line, err=True))


def _shadows(app: "App", provider_id: str, label: str, where: str) -> list[str]:
    """Return why another key takes precedence over the key just stored; empty if none does."""
    said = app.config.provider.get(provider_id)
    if label and (said is None or said.key != label):
        return [f'`provider.{provider_id}.key = "{label}"` in your configuration takes it']
    provider = app.providers.get(provider_id)
    source = app.keys.source(provider_id, provider.env if provider else ())
    return [f"{source} comes before it"] if source and source != where else []
