"""The hooks that the chat brings."""

from collections.abc import Sequence
from pathlib import Path

from pegboard import hookspec
from pegboard_plugins.chat.additions import (
    ChatKey,
    ChatState,
    Completion,
    FooterWidget,
    SlashCommand,
    StatusItem,
    Theme,
)

DRAWN_WITHIN_S = 0.5


@hookspec("collect")
def register_slash() -> Sequence[SlashCommand] | None:
    """Slash commands of the chat itself, beside those that become prompts.

    Called once when the chat has its App. A name that the chat has stays the chat's. Collect: a
    plugin that raises is reported and left out. What a command's action raises is shown with the
    plugin's name.

    Since 0.1.
    """


@hookspec("collect")
def register_keys() -> Sequence[ChatKey] | None:
    """Keys of the chat.

    Called once when the chat has its App. A key that is taken is reported and stays as it is;
    `plugins.chat.options.keys` of the user's configuration gives a name another key. Collect: a
    plugin that raises is reported and left out.

    Since 0.1.
    """


@hookspec("collect", limit_s=DRAWN_WITHIN_S)
def status_items(state: ChatState) -> Sequence[StatusItem] | None:
    """Pieces of the status line.

    Called when something of the state has changed, not more than once a second. Collect: a
    plugin that raises, or takes half a second, is reported and its items are missing.

    Since 0.1.
    """


@hookspec("collect", limit_s=DRAWN_WITHIN_S)
def footer_widget(state: ChatState) -> Sequence[FooterWidget] | None:
    """Lines of the footer.

    Called when something of the state has changed, not more than once a second; they are left
    out where the terminal has too few rows. Collect: a plugin that raises, or takes half a
    second, is reported and its lines are missing.

    Since 0.1.
    """


@hookspec("collect")
def register_themes() -> Sequence[Theme] | None:
    """Themes of the chat, by name.

    Called once when the chat has its App. Collect: a plugin that raises is reported and left
    out; of two themes with one name the newest counts.

    Since 0.1.
    """


@hookspec("collect")
def complete(kind: str, text: str, directory: Path) -> Sequence[Completion] | None:
    """What may stand behind a sign that asks for something, such as `@` for a file.

    Called while the person writes such a word, at most once for each state of it. Collect: a
    plugin that raises is reported and its texts are missing.

    - kind: the sign, `@`.
    - text: what is written behind it.
    - directory: the project's folder.

    Since 0.1.
    """
