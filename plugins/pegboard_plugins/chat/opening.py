"""The `Feed` of a chat, with sessions that run in this process."""

from pegboard import App, AppOptions, InvalidInputError
from pegboard_plugins.chat.chatoptions import StartOptions
from pegboard_plugins.shared.frontend import LocalFeed, RunRules, begin_trace, follow_folder


async def open_local(start: StartOptions) -> LocalFeed:
    """Open an App for the options' directory, with a user who can answer questions.

    :raises InvalidInputError: for an invalid permission rule.
    """
    rules = [RunRules(allow=start.allow, deny=start.deny)] * bool(start.allow or start.deny)
    options = AppOptions(
        interactive=True,
        trust=True if start.trust else None,
        config={} if start.sandbox is None else {"sandbox": start.sandbox},
        plugins=rules,
    )
    app = await App.open(start.directory, options)
    try:
        for each in rules:
            each.check(app)
    except InvalidInputError:
        await app.aclose()
        raise
    begin_trace(app)
    return LocalFeed(app, await follow_folder(app))
