"""The settings of the App that `pegboard run` opens."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pegboard import AppOptions, InvalidInputError

if TYPE_CHECKING:
    from pegboard import App
    from pegboard_plugins.cli.runoptions import Options


def app_options(options: "Options", leaving: ExitStack, *, asks: bool) -> AppOptions:
    """Return what the App is opened with; `asks` says whether a user is there to be asked.

    :raises InvalidInputError: for a rule that is none.
    """
    return AppOptions(
        interactive=asks,
        trust=True if options.trust else None,
        config=_config(options),
        profile=options.profile,
        plugins=tuple(_plugins(options)),
        env=_environment(options, leaving),
    )


def check_app(app: "App", options: "Options") -> None:
    """Check what can only be checked in an open App.

    :raises InvalidInputError: when a cassette cannot be used, and for a rule about an unknown tool.
    """
    on = {info.name for info in app.plugins.infos if not info.blocked}
    if options.tape and "cassette" not in on:
        raise InvalidInputError("--record and --replay need the plugin cassette, which is off")
    if options.allow or options.deny:
        from pegboard_plugins.cli.runrules import check_names

        check_names(app)


def _plugins(options: "Options") -> Iterator[object]:
    """Yield the plugins of this run alone."""
    if options.tools:
        from pegboard_plugins.cli.chosentools import ChosenTools

        yield ChosenTools(options.tools)
    if options.allow or options.deny:
        from pegboard_plugins.cli.runrules import RunRules

        yield RunRules(allow=options.allow, deny=options.deny)


def _environment(options: "Options", leaving: ExitStack) -> Mapping[str, str] | None:
    if not options.unsaved:
        return None
    from pegboard_plugins.cli.temporarydatabase import with_database  # most runs are saved

    return with_database(leaving)


def _config(options: "Options") -> dict[str, Any]:
    """Return the settings of the command line."""
    said: dict[str, Any] = {}
    if options.budget_usd is not None:
        said["budget"] = {"run": {"usd": options.budget_usd}}
    if options.auto:
        said["auto_approve"] = True
    if options.sandbox is not None:
        said["sandbox"] = options.sandbox
    if options.tape:
        said["plugins"] = {"cassette": {"options": options.tape}}
    return said
